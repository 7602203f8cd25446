"""Turns on this machine: builds run side by side, measured rounds run alone, across all processes and users.

Two kernel locks (flock) decide; the kernel releases the locks of a dead process. A process takes the lock ``next``
first, and waits for the lock ``work`` while it holds ``next``: shared to build, exclusive to measure. So nobody
overtakes the process that is next. A build can run between two blocks of another run's rounds, and a block of rounds
can run between two builds.
Two measuring runs do not alternate block by block, because then neither run warms up. While only measuring processes
wait, a run continues with its next block for ``STINT`` seconds.
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

# One directory for all users of the machine, because they share its cores. Not $TMPDIR, which may be private.
PARENTS = ("/run/lock", "/tmp")
ANYBODY_MAY = stat.S_ISVTX | stat.S_IWOTH
NEXT, WORK, ADMIT, NOTE = "next", "work", "admit", ".json"
BUILDING, MEASURING = "building", "measuring"
POLL = 0.01  # seconds between two attempts, the maximum delay of a hand-over
TOLD_AFTER, TOLD_AGAIN = 5.0, 15.0  # seconds of waiting before the first report, and between reports
STINT = 10.0  # seconds that a run measures while another run waits to measure
LINGER = 0.2  # seconds to begin the next block; judging the last block takes milliseconds
NO_LOCK = "cannot use the lock that keeps measured rounds apart"
INSIDE = "a measured round would run inside a build of {}, which may disturb it: end the build first"


@dataclasses.dataclass(frozen=True)
class Holder:
    """A process that has the machine, or waits for it.

    does: BUILDING or MEASURING. since: start of the turn or of the waiting, in seconds since the epoch.
    waits: whether it still waits.
    """

    run: str
    pid: int
    user: str
    does: str
    since: float
    waits: bool

    def __str__(self) -> str:
        return (
            f"run {self.run} of pid {self.pid} ({self.user}) has been {self.does} for {time.time() - self.since:.0f} s"
        )


class MachineLock:
    """The turns of this process. A turn inside another turn of this process is part of the outer turn.

    Only one thread of a process may use it at a time.
    """

    def __init__(self, directory: Path | None = None) -> None:
        self.directory = directory or lock_directory()
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
        """Hold the machine for BUILDING or MEASURING during the block. Waiting is reported to ``progress``.

        ``most``: the maximum time to wait, in seconds; after it the block runs without the machine. A turn inside a
        turn of this process, or of a parent process, is part of the outer turn. Raises ConfigError for measuring
        inside a build, and ProvisionError when the lock files cannot be used.
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
        """Whether the last turn still lingers. If so, its timer is cancelled, and the caller continues the turn."""
        with self._guard:
            timer, self._lingers = self._lingers, None
            if timer:
                timer.cancel()
            return timer is not None

    def _leave(self) -> None:
        """End the turn: after LINGER seconds if only measuring processes wait within our STINT, at once otherwise."""
        if self._does == MEASURING and time.monotonic() - self._began < STINT:
            waiting = {holder.does for holder in self.holders() if holder.waits}
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
        """Hold a lock during the block, inside a turn to build: nobody else can take the memory that we saw free."""
        (file,) = self._open(ADMIT)
        tell = time.monotonic() + TOLD_AFTER
        with file:
            while not shared_directory.try_lock(file, fcntl.LOCK_EX):
                if time.monotonic() >= tell:
                    tell = time.monotonic() + TOLD_AGAIN
                    progress("waiting: another run is starting servers, which take their memory first")
                time.sleep(POLL)
            yield

    def _open(self, *names: str) -> list[IO[str]]:
        """Open the lock files with these names. Raises ProvisionError."""
        with shared_directory.entered(self.directory, NO_LOCK) as directory:
            try:
                return [os.fdopen(shared_directory.lock_file(directory, name)) for name in names]
            except OSError as error:
                path = self.directory / str(error.filename)
                raise ProvisionError(f"{NO_LOCK}: {path}: {error.strerror}; remove it: rm {path}") from None

    def holders(self) -> list[Holder]:
        """The processes that have the machine or wait for it. Removes the notes of dead processes."""
        holders = []
        for path in sorted(self.directory.glob(f"*{NOTE}")):
            with contextlib.suppress(OSError, ValueError, TypeError), _note(path) as file:
                if shared_directory.try_lock(file, fcntl.LOCK_SH):
                    path.unlink()
                else:
                    holders.append(Holder(**json.load(file)))
        return holders

    @contextlib.contextmanager
    def noted(self, run: str, does: str, *, waits: bool) -> Iterator[None]:
        """Keep a locked note about this process during the block. Other users can read the note, but not remove it."""
        path = self.directory / f"{os.getpid()}-{secrets.token_hex(4)}"
        holder = Holder(run, os.getpid(), _user(), does, time.time(), waits)
        with path.open("x") as file:
            os.fchmod(file.fileno(), 0o644)
            fcntl.flock(file, fcntl.LOCK_EX)
            json.dump(dataclasses.asdict(holder), file)
            file.flush()
            note = path.rename(path.with_name(f"{path.name}{NOTE}"))
            try:
                yield
            finally:
                note.unlink(missing_ok=True)


class _Waiting:
    """A process that waits for a turn."""

    def __init__(self, machine: MachineLock, does: str, run: str, progress: Report, most: float | None) -> None:
        self._machine, self._does, self._run, self._progress, self._most = machine, does, run, progress, most
        self._began = time.monotonic()
        self._tell = TOLD_AFTER

    def locked(self, file: IO[str], kind: int) -> bool:
        """Wait for a lock. False when a parent process already has the machine, or after the maximum time."""
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
                    others = ", ".join(str(holder) for holder in self._machine.holders() if not holder.waits)
                    self._progress(f"waiting: {others or 'another process has the machine'}")
                time.sleep(POLL)
        return True

    def _covered(self) -> bool:
        """Whether a parent process has the machine. It waits for us, so waiting for it would deadlock."""
        above = {process.pid for process in psutil.Process().parents()}
        outer = [holder for holder in self._machine.holders() if holder.pid in above and not holder.waits]
        if outer and self._does == MEASURING and all(holder.does == BUILDING for holder in outer):
            raise ConfigError(INSIDE.format(outer[0]))
        return bool(outer)


def _note(path: Path) -> IO[str]:
    """Open a note. A symbolic link raises OSError; a pipe reads as empty."""
    return os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK))


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user id without a name, as in a container
        return str(os.getuid())


def lock_directory() -> Path:
    """The directory of the locks, in the first of PARENTS that every user may write to."""
    for parent in map(Path, PARENTS):
        with contextlib.suppress(OSError):
            if parent.stat().st_mode & ANYBODY_MAY == ANYBODY_MAY:
                return parent / "pytest-dbcluster"
    return Path(tempfile.gettempdir()) / "pytest-dbcluster"


@functools.cache
def this() -> MachineLock:
    """The one lock of this process for the machine that it runs on."""
    return MachineLock()


@dataclasses.dataclass(frozen=True)
class Turns:
    """The turns of one run. ``machine`` is None when the hosts have their own cores; then nobody waits."""

    machine: MachineLock | None
    run: str = "-"
    progress: Report = lambda _: None

    @classmethod
    def on(cls, offers: frozenset[str], run: str, progress: Report) -> Turns:
        """The turns of a run on hosts with these powers. Only hosts with ``shared-cores`` need turns."""
        return cls(this() if "shared-cores" in offers else None, run, progress)

    def building(self, most: float | None = None) -> AbstractContextManager[None]:
        """A turn to start, populate, check or end clusters, and for all other work that uses cores and the disk.

        ``most``: the maximum time to wait, in seconds; None waits without a limit.
        """
        return self._turn(BUILDING, most)

    def admitting(self) -> AbstractContextManager[None]:
        """A lock inside ``building``: check free memory and disk, and start the servers that take them."""
        return self.machine.admitting(self.progress) if self.machine else contextlib.nullcontext()

    def measuring(self) -> AbstractContextManager[None]:
        """A turn to measure rounds: nobody builds and nobody else measures."""
        return self._turn(MEASURING, None)

    def _turn(self, does: str, most: float | None) -> AbstractContextManager[None]:
        if self.machine is None:
            return contextlib.nullcontext()
        return self.machine.turn(does, run=self.run, progress=self.progress, most=most)
