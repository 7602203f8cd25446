"""Waiting for a condition, with the last problem in hand when time is up."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence

from pytest_dbcluster.errors import NotReady

_of_this_thread = threading.local()


@contextlib.contextmanager
def ended_by(stop: threading.Event) -> Iterator[None]:
    """Within it, waiting in this thread ends when ``stop`` is set, as by Ctrl-C, which the main thread alone gets."""
    _of_this_thread.stop = stop
    try:
        yield
    finally:
        del _of_this_thread.stop


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
    stop: threading.Event | None = getattr(_of_this_thread, "stop", None)
    while True:
        if stop and stop.is_set():
            raise KeyboardInterrupt
        seen = problems()
        took = time.monotonic() - start
        if not seen:
            return took
        if took > seconds:
            raise NotReady(what, seconds, seen)
        time.sleep(poll)
