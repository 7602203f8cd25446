"""Wait for a condition; after a timeout the error says what is still missing."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence

from pytest_dbcluster.errors import NotReady

_of_this_thread = threading.local()


@contextlib.contextmanager
def ended_by(stop: threading.Event) -> Iterator[None]:
    """A context in which ``until`` in this thread raises KeyboardInterrupt when ``stop`` is set.

    Ctrl-C reaches the main thread only, so other threads need the event.
    """
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
    """Call ``problems`` until it returns no problem, and return the seconds that this took.

    what: the condition, for the error. seconds: the timeout. poll: seconds between two calls. Raises NotReady with the
    last problems after the timeout, and KeyboardInterrupt within ``ended_by``. An exception raised by ``problems`` ends
    the wait at once; so a dead server does not cost the whole timeout.
    """
    start = time.monotonic()
    stop: threading.Event | None = getattr(_of_this_thread, "stop", None)
    while True:
        if stop and stop.is_set():
            raise KeyboardInterrupt
        remaining = problems()
        elapsed = time.monotonic() - start
        if not remaining:
            return elapsed
        if elapsed > seconds:
            raise NotReady(what, seconds, remaining)
        time.sleep(poll)
