"""Wait for a condition; after a timeout the error lists the open problems. ``locks``: how long to wait for a lock."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from pytest_dbcluster.errors import NotReady

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

LOCK_SECONDS = 1800.0  # usual limit of a wait for a lock
SLOW_SECONDS = 3600.0  # timeout of a statement that reads or writes whole tables
_of_this_thread = threading.local()


class LockLimit:
    """How long this process waits for the machine's lock, or a lock of the cache, if another process holds it."""

    def __init__(self) -> None:
        self.given = [(object(), LOCK_SECONDS, "--db-wait")]  # a limit counts until a later one is given

    @property
    def seconds(self) -> float:
        """The limit."""
        return self.given[-1][1]

    @property
    def option(self) -> str:
        """The option that sets it."""
        return self.given[-1][2]


locks = LockLimit()
"""The limit of this process. The command line sets it, before anything waits."""


@contextlib.contextmanager
def lock_limit(seconds: float, option: str) -> Iterator[None]:
    """A context in which this process waits so long for a lock. ``option`` is the user's option for it.

    Contexts may end in any order, as those of runs of pytest in one process do.
    """
    limit = object(), seconds, option
    locks.given.append(limit)
    try:
        yield
    finally:
        locks.given.remove(limit)


@contextlib.contextmanager
def interruptible_by(stop: threading.Event) -> Iterator[None]:
    """A context in which waits of this thread raise KeyboardInterrupt when ``stop`` is set.

    Ctrl-C reaches the main thread only, so other threads need the event. Contexts may be nested: each event counts.
    """
    before = _stops()
    _of_this_thread.stops = (*before, stop)
    try:
        yield
    finally:
        _of_this_thread.stops = before


def _stops() -> tuple[threading.Event, ...]:
    return getattr(_of_this_thread, "stops", ())


def raise_if_interrupted() -> None:
    """Raise KeyboardInterrupt if this thread must end; every wait of a thread calls this at least once a second."""
    if any(stop.is_set() for stop in _stops()):
        raise KeyboardInterrupt


@contextlib.contextmanager
def threads(most: int, name: str = "dbcluster") -> Iterator[ThreadPoolExecutor]:
    """An executor whose threads end their waits when Ctrl-C or a signal leaves the block.

    Otherwise the block would wait for all answers that the threads wait for.
    """
    import concurrent.futures

    ended = threading.Event()
    stops = (*_stops(), ended)
    made = concurrent.futures.ThreadPoolExecutor(most, name, lambda: setattr(_of_this_thread, "stops", stops))
    try:
        yield made
        made.shutdown()
    except BaseException as error:
        interrupted = not isinstance(error, Exception)
        if interrupted:
            ended.set()
        made.shutdown(cancel_futures=interrupted)
        raise


def until(
    problems: Callable[[], Sequence[str]],
    what: str,
    *,
    seconds: float,
    poll: float = 0.02,
) -> float:
    """Call ``problems`` until it returns no problem, and return the seconds that this took.

    what: the condition, for the error. seconds: the timeout. poll: seconds between two calls. Raises NotReady with the
    last problems after the timeout, and KeyboardInterrupt within ``interruptible_by``. An exception of ``problems``
    ends the wait at once, so a dead server does not cost the whole timeout.
    """
    start = time.monotonic()
    while True:
        raise_if_interrupted()
        remaining = problems()
        elapsed = time.monotonic() - start
        if not remaining:
            return elapsed
        if elapsed > seconds:
            raise NotReady(what, seconds, remaining)
        time.sleep(poll)
