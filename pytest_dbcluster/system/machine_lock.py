"""The machine's time: builds share it, measured rounds have it alone, whichever process of whichever user asks.

Two locks of the kernel (flock), which drops those of a dead holder. Who wants the machine first takes ``next``, and
waits for ``work`` while it has that: shared to build, exclusive to measure. So nobody overtakes the one who is next:
a build gets in between two blocks of another run's rounds, and a block of rounds gets in between builds.
Two runs that measure do not alternate block by block, for that warms neither up: while only rounds wait, a run goes on
with its next block for ``STINT`` seconds.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import functools
import getpass
import json
import os
import secrets
import stat
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO

import psutil

from pytest_dbcluster.errors import ConfigError, ProvisionError
from pytest_dbcluster.formatting import Report
from pytest_dbcluster.system import shared_directory

# One place for all users of the machine, because they share its cores; not below $TMPDIR, which may be a user's own.
PLACES = ("/run/lock", "/tmp")
ANYBODY_MAY = stat.S_ISVTX | stat.S_IWOTH
NEXT, WORK, ADMIT, NOTE = "next", "work", "admit", ".json"
BUILDING, MEASURING = "building", "measuring"
POLL = 0.01  # seconds between two tries: what a hand-over costs at the most
TOLD_AFTER, TOLD_AGAIN = 5.0, 15.0  # seconds of waiting
STINT = 10.0  # seconds that a run measures while another one waits to measure
LINGER = 0.2  # seconds in which it has to begin its next block; judging the last one takes milliseconds
NO_PLACE = "no place for the lock that keeps measured rounds apart"
INSIDE = "a measured round would run inside a build of {}, which may disturb it: end the build first"


@dataclasses.dataclass(frozen=True)
class Holder:
    """Who has the machine, or waits for it, since when (seconds of the epoch)."""

    run: str
    pid: int
    user: str
    does: str
    since: float
    waits: bool

    def __str__(self) -> str:
        return f"run {self.run} of pid {self.pid} ({self.user}) is {self.does} since {time.time() - self.since:.0f} s"


class MachineLock:
    """The turns that this process has. Asked for inside another one's turn it is the same turn.

    One thread of a process asks at a time.
    """

    def __init__(self, directory: Path | None = None) -> None:
        self.directory = directory or place()
        self._does = ""
        self._depth = 0
        self._began = 0.0
        self._turn = contextlib.ExitStack()
        self._guard = threading.RLock()
        self._lingers: threading.Timer | None = None

    @contextlib.contextmanager
    def turn(
        self, does: str, *, run: str = "-", progress: Report = lambda _: None, most: float | None = None
    ) -> Iterator[None]:
        """The machine for BUILDING or for MEASURING while the block runs; waiting for it is told.

        ``most``: after so many seconds of waiting it goes on without. A turn inside one of this process, or of a
        process that this one was started by, is part of that. Raises ConfigError for measuring inside of a build.
        """
        if self._depth and does == MEASURING != self._does:
            raise ConfigError(INSIDE.format(f"this process (pid {os.getpid()})"))
        if not self._depth and not (self._still_ours() and does == MEASURING):
            self._turn.close()
            self._take(does, run, progress, most)
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            if not self._depth:
                self._leave()

    def _still_ours(self) -> bool:
        """Whether the last turn lingers; it does not end by itself any more."""
        with self._guard:
            timer, self._lingers = self._lingers, None
            if timer:
                timer.cancel()
            return timer is not None

    def _leave(self) -> None:
        """The end of a turn, at once, or soon where another block may follow and only rounds of others wait."""
        if self._does == MEASURING and time.monotonic() - self._began < STINT:
            waiting = {one.does for one in self.holders() if one.waits}
            if waiting == {MEASURING}:
                self._lingers = threading.Timer(LINGER, self._end)
                self._lingers.daemon = True
                self._lingers.start()
                return
        self._turn.close()

    def _end(self) -> None:
        with self._guard:
            if threading.current_thread() is self._lingers:
                self._lingers = None
                self._turn.close()

    def _take(self, does: str, run: str, progress: Report, most: float | None) -> None:
        with contextlib.ExitStack() as held:
            queue, work = map(held.enter_context, self._open(NEXT, WORK))
            wait = _Waiting(self, does, run, progress, most)
            with contextlib.closing(queue):
                kind = fcntl.LOCK_EX if does == MEASURING else fcntl.LOCK_SH
                if wait.locked(queue, fcntl.LOCK_EX):
                    wait.locked(work, kind)
            held.enter_context(self.noted(run, does, waits=False))
            self._turn = held.pop_all()
        self._does, self._began = does, time.monotonic()

    @contextlib.contextmanager
    def admitting(self, progress: Report) -> Iterator[None]:
        """Inside a turn to build: who asks for memory and then takes it, with nobody else between the two."""
        (file,) = self._open(ADMIT)
        tell = time.monotonic() + TOLD_AFTER
        with file:
            while not shared_directory.try_lock(file, fcntl.LOCK_EX):
                if time.monotonic() >= tell:
                    tell = time.monotonic() + TOLD_AGAIN
                    progress("waiting: another run's servers are starting, and take their memory first")
                time.sleep(POLL)
            yield

    def _open(self, *names: str) -> list[IO[str]]:
        """Lock files of these names."""
        with shared_directory.entered(self.directory, NO_PLACE) as place:
            try:
                return [os.fdopen(shared_directory.lock_file(place, name)) for name in names]
            except OSError as error:
                where = self.directory / str(error.filename)
                raise ProvisionError(f"{NO_PLACE}: {where}: {error.strerror}; remove it: rm {where}") from None

    def holders(self) -> list[Holder]:
        """Who has the machine or waits for it now; notes of the dead are removed."""
        found = []
        for path in sorted(self.directory.glob(f"*{NOTE}")):
            with contextlib.suppress(OSError, ValueError, TypeError), _note(path) as file:
                if shared_directory.try_lock(file, fcntl.LOCK_SH):
                    path.unlink()
                else:
                    found.append(Holder(**json.load(file)))
        return found

    @contextlib.contextmanager
    def noted(self, run: str, does: str, *, waits: bool) -> Iterator[None]:
        """A note that says who we are, locked while it is true; another user can read and not remove it."""
        path = self.directory / f"{os.getpid()}-{secrets.token_hex(4)}"
        said = Holder(run, os.getpid(), _user(), does, time.time(), waits)
        with path.open("x") as file:
            os.fchmod(file.fileno(), 0o644)
            fcntl.flock(file, fcntl.LOCK_EX)
            json.dump(dataclasses.asdict(said), file)
            file.flush()
            note = path.rename(path.with_name(f"{path.name}{NOTE}"))
            try:
                yield
            finally:
                note.unlink(missing_ok=True)


class _Waiting:
    """One who waits for a turn."""

    def __init__(self, machine: MachineLock, does: str, run: str, progress: Report, most: float | None) -> None:
        self._machine, self._does, self._run, self._progress, self._most = machine, does, run, progress, most
        self._began = time.monotonic()
        self._tell = TOLD_AFTER

    def locked(self, file: IO[str], kind: int) -> bool:
        """Wait for a lock; False when there is no need of it, or no more time."""
        if shared_directory.try_lock(file, kind):
            return True
        if self._covered():
            return False
        with self._machine.noted(self._run, self._does, waits=True):
            while not shared_directory.try_lock(file, kind):
                waited = time.monotonic() - self._began
                if self._most is not None and waited >= self._most:
                    return False
                if waited >= self._tell:
                    self._tell = waited + TOLD_AGAIN
                    others = ", ".join(str(one) for one in self._machine.holders() if not one.waits)
                    self._progress(f"waiting: {others or 'another process has the machine'}")
                time.sleep(POLL)
        return True

    def _covered(self) -> bool:
        """Whether a process that started this one has the machine: it waits for us, so we must not wait for it."""
        above = {process.pid for process in psutil.Process().parents()}
        outer = [one for one in self._machine.holders() if one.pid in above and not one.waits]
        if outer and self._does == MEASURING and all(one.does == BUILDING for one in outer):
            raise ConfigError(INSIDE.format(outer[0]))
        return bool(outer)


def _note(path: Path) -> IO[str]:
    """A note as a file; a link or a pipe that somebody put there is an OSError, or empty."""
    return os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK))


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a uid without a name, as in a container
        return str(os.getuid())


def place() -> Path:
    """The directory of the locks: in the first of PLACES that is open to all users."""
    for parent in map(Path, PLACES):
        with contextlib.suppress(OSError):
            if parent.stat().st_mode & ANYBODY_MAY == ANYBODY_MAY:
                return parent / "pytest-dbcluster"
    return Path(tempfile.gettempdir()) / "pytest-dbcluster"


@functools.cache
def this() -> MachineLock:
    """The machine that this process runs on."""
    return MachineLock()


@dataclasses.dataclass(frozen=True)
class Turns:
    """The turns of one run. ``machine`` None: its hosts have cores of their own, so nobody has to wait."""

    machine: MachineLock | None
    run: str = "-"
    progress: Report = lambda _: None

    @classmethod
    def on(cls, offers: frozenset[str], run: str, progress: Report) -> Turns:
        """Those of a run on hosts that offer this; only ``shared-cores`` have to be shared."""
        return cls(this() if "shared-cores" in offers else None, run, progress)

    def building(self, most: float | None = None) -> AbstractContextManager[None]:
        """While clusters are started, filled, checked or ended, and whatever else takes cores and the disk."""
        return self._turn(BUILDING, most)

    def admitting(self) -> AbstractContextManager[None]:
        """While servers take the memory and the disk that were free a moment ago; inside ``building``."""
        return self.machine.admitting(self.progress) if self.machine else contextlib.nullcontext()

    def measuring(self) -> AbstractContextManager[None]:
        """While rounds are measured: nobody builds and nobody else measures."""
        return self._turn(MEASURING, None)

    def _turn(self, does: str, most: float | None) -> AbstractContextManager[None]:
        if self.machine is None:
            return contextlib.nullcontext()
        return self.machine.turn(does, run=self.run, progress=self.progress, most=most)
