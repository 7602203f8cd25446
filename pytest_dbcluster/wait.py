"""Waiting for a condition, with the last problem in hand when time is up."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from pytest_dbcluster.errors import NotReady


def until(
    problems: Callable[[], Sequence[str]],
    what: str,
    *,
    seconds: float,
    poll: float = 0.02,
) -> float:
    """Call ``problems`` until it returns nothing, and return the seconds that it took.

    Raises NotReady with the last problems when ``seconds`` have passed. An exception out of ``problems``
    ends the waiting at once: that is how a dead server is told from a slow one.
    """
    start = time.monotonic()
    while True:
        seen = problems()
        took = time.monotonic() - start
        if not seen:
            return took
        if took > seconds:
            raise NotReady(what, seconds, seen)
        time.sleep(poll)
