"""Turns on this machine: builds run side by side, measured rounds run alone, across all processes and users.

Two kernel locks (flock) decide; the kernel releases the locks of a dead process. A process takes the lock ``next``
first, and waits for the lock ``work`` while it holds ``next``: shared to build, exclusive to measure. So nobody
overtakes the process that is next. A build can run between two blocks of another run's rounds, and a block of rounds
can run between two builds.
Two measuring runs do not alternate block by block, because then neither run warms up. While only measuring processes
wait, a run continues with its next block for ``STINT`` seconds.

The lock files lie directly in root's sticky directory, and so do notes that say who has the machine. Every user may
write such notes. So the owner of a note and the process id in its name have to be of one user, and nothing but the
locks themselves decides who waits.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import functools
import math
import os
import re
import secrets
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Literal

import msgspec
import psutil

from pytest_dbcluster import formatting, wait
from pytest_dbcluster.errors import ConfigError, Inconclusive, ProvisionError
from pytest_dbcluster.formatting import Report
from pytest_dbcluster.system import cache, processes, shared_directory
from pytest_dbcluster.system.shared_directory import LockFile

# One directory for all users of the machine, because they share its cores. Not $TMPDIR, which may be private. A
# directory of our own in it could be made first, and replaced later, by any other user.
PARENTS = ("/run/lock", "/tmp")
ANYBODY_MAY = stat.S_ISVTX | stat.S_IWOTH
NAME = "pytest-dbcluster"  # every name of ours in that directory begins with it
NEXT, WORK, ADMIT = (f"{NAME}-{name}.lock" for name in ("next", "work", "admit"))
NOTE = re.compile(rf"{NAME}-note-[0-9a-f]{{8}}-([0-9]{{1,10}})-([0-9]{{1,12}})")  # process id and start time
NOTE_BYTES, RUN_LETTERS = 1000, 40  # the longest note that is read, and the longest id of a run that is shown
BUILDING, MEASURING = "building", "measuring"
POLL = 0.01  # seconds between two attempts, the maximum delay of a hand-over
TOLD_AFTER, TOLD_AGAIN = 5.0, 15.0  # seconds of waiting before the first report, and between reports
STINT = 10.0  # seconds that a run measures while another run waits to measure
LINGER = 0.2  # seconds to begin the next block; judging the last block takes milliseconds
# Seconds to wait for the last steps of a measurement (its checks and reports) after the run's time was used.
FINISH_SECONDS = 20.0
NO_LOCK = "cannot use the lock that keeps measured rounds apart"
WAITED = "{}; it was used while this run waited for the machine: {}"
STARTS = "another run that starts servers"
INSIDE = "a measured round would run inside a build of {}, which may disturb it: end the build first"


@dataclasses.dataclass(frozen=True)
class Holder:
    """A process that has the machine, or waits for it.

    run, does, since and waits are what the process wrote; pid and user are checked.
    """

    run: str
    pid: int
    user: str
    does: str
    """BUILDING or MEASURING."""

    since: float
    """Start of the turn or of the waiting, in seconds since the epoch."""

    waits: bool
    """Whether it still waits."""

    def __str__(self) -> str:
        seconds = max(time.time() - self.since, 0)
        return f"run {self.run} of pid {self.pid} ({self.user}) has been {self.does} for {seconds:.0f} s"


@dataclasses.dataclass(frozen=True)
class _Note:
    """The content of a note. Its file's name has the process id, and its file's owner is the user."""

    run: str
    does: Literal["building", "measuring"]
    since: float
    waits: bool


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
        self._waited = 0.0
        self._waits_since: float | None = None
        self.gave_up = False  # a wait was in vain, so later ones are short

    @property
    def used(self) -> bool:
        """Whether this process has had a turn."""
        return self._began > 0

    def clock(self) -> float:
        """``time.monotonic`` without the seconds that this process has waited for other processes."""
        now, since = time.monotonic(), self._waits_since
        return now - self._waited - (0.0 if since is None else now - since)

    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        """A context in which ``clock`` stands still."""
        self._waits_since = time.monotonic()
        try:
            yield
        finally:
            self._waited += time.monotonic() - self._waits_since
            self._waits_since = None

    @contextlib.contextmanager
    def turn(
        self,
        does: str,
        *,
        run: str = "-",
        progress: Report = lambda _: None,
        most: float | None = None,
        over: Callable[[], str] | None = None,
    ) -> Iterator[None]:
        """Hold the machine for BUILDING or MEASURING during the block. Waiting is reported to ``progress``.

        ``over``: returns why the waiting must end, empty while it need not. Then Inconclusive is raised, with who has
        the machine. ``most``: after so many seconds of waiting the block runs without the machine; with ``over`` too,
        they count from its first reason. A turn inside a turn of this process, or of a parent process, is part of the
        outer turn. Raises ConfigError for measuring inside a build, ProvisionError when the lock files cannot be
        used, and LockHeld after ``wait.locks`` seconds of waiting; with ``most`` the block runs without the machine
        then. After a wait in vain, ``most`` counts from its start.
        """
        if self._depth and does == MEASURING != self._does:
            raise ConfigError(INSIDE.format(f"this process (pid {os.getpid()})"))
        if not self._depth and not (self._still_ours() and does == MEASURING):
            self._turn.close()
            self._take(does, _Waiting(self, does, run, progress, most, over))
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

    def _take(self, does: str, wait: _Waiting) -> None:
        with contextlib.ExitStack() as held:
            work = held.enter_context(contextlib.closing(self._lock(WORK)))
            with contextlib.closing(self._lock(NEXT)) as queue:
                kind = fcntl.LOCK_EX if does == MEASURING else fcntl.LOCK_SH
                if wait.locked(queue, fcntl.LOCK_EX):
                    wait.locked(work, kind)
            held.enter_context(self.noted(wait.run, does, waits=False))
            self._turn = held.pop_all()
        self._does, self._began = does, time.monotonic()

    @contextlib.contextmanager
    def admitting(self, progress: Report, over: Callable[[], str] = lambda: "") -> Iterator[None]:
        """Hold a lock during the block, inside a turn to build: nobody else can take the memory that we saw free.

        Raises Inconclusive, with who holds it, when ``over`` returns a reason to wait no longer, and LockHeld after
        ``wait.locks`` seconds.
        """
        began = time.monotonic()
        tell = began + TOLD_AFTER
        with contextlib.closing(self._lock(ADMIT)) as file:
            with self.waiting():
                while not file.try_lock():
                    if reason := over():
                        raise Inconclusive(WAITED.format(reason, _lockers(file) or STARTS))
                    if time.monotonic() - began >= wait.locks.seconds:
                        raise shared_directory.still_held(_lockers(file, commands=True) or STARTS)
                    if time.monotonic() >= tell:
                        tell = time.monotonic() + TOLD_AGAIN
                        who = f"{lockers}; " if (lockers := _lockers(file)) else ""
                        progress(
                            "waiting: another run is starting servers, which take their memory first "
                            f"({who}{shared_directory.limit()})"
                        )
                    time.sleep(POLL)
            yield

    def _lock(self, name: str) -> LockFile:
        return LockFile(self.directory, name, NO_LOCK)

    def having(self, *, commands: bool = False) -> str:
        """Who has the machine, for messages: by their notes, or else by the kernel's list of locks.

        commands: add the command of each process, and when it began.
        """
        noted = [holder for holder in self.holders() if not holder.waits and holder.pid != os.getpid()]
        if noted:
            told = {holder: processes.command_of(holder.pid) if commands else "" for holder in noted}
            return ", ".join(f"{holder} ({command})" if command else str(holder) for holder, command in told.items())
        for name in (WORK, NEXT):
            with contextlib.closing(self._lock(name)) as file:
                if lockers := _lockers(file, commands=commands):
                    return lockers
        return "another process has the machine"

    def holders(self) -> list[Holder]:
        """The processes that have the machine or wait for it, by their notes.

        Removes the notes of this user's dead processes; those of other users are not ours to remove.
        """
        with contextlib.suppress(ProvisionError), shared_directory.entered(self.directory, NO_LOCK) as directory:
            names = [match for match in map(NOTE.fullmatch, shared_directory.names(directory)) if match]
            return [holder for match in names if (holder := _holder(directory, match))]
        return []

    @contextlib.contextmanager
    def noted(self, run: str, does: str, *, waits: bool) -> Iterator[None]:
        """Keep a note about this process during the block. Other users can read it, but not remove it.

        Without room for it there is none: notes only say who has the machine.
        """
        note = {"run": run, "does": does, "since": time.time(), "waits": waits}
        name = f"{NAME}-note-{secrets.token_hex(4)}-{processes.mark()}"
        with shared_directory.entered(self.directory, NO_LOCK) as directory, contextlib.ExitStack() as made:
            with contextlib.suppress(OSError):
                file = shared_directory.created(directory, name)
                made.callback(os.close, file)
                made.callback(_unlink, directory, name)
                os.write(file, msgspec.json.encode(note))
            yield


def _holder(directory: int, name: re.Match[str]) -> Holder | None:
    """The process that wrote this note; None for the note of a dead process, or of another user than the process."""
    try:
        file = shared_directory.opened(directory, name.string)
    except OSError:
        return None
    try:
        owner, pid, born = os.fstat(file).st_uid, int(name[1]), int(name[2])
        user = processes.user_of(pid, born)
        if user is None and owner == os.geteuid() and not processes.is_running(pid, born):
            _unlink(directory, name.string)
        if user != owner:
            return None
        note = msgspec.json.decode(os.read(file, NOTE_BYTES), type=_Note)
    except (OSError, msgspec.DecodeError, RecursionError):
        return None
    finally:
        os.close(file)
    if not math.isfinite(note.since):
        return None
    run = formatting.printable(note.run[:RUN_LETTERS])
    return Holder(run, pid, processes.user_name(owner), note.does, note.since, note.waits)


def _unlink(directory: int, name: str) -> None:
    """Remove a note of ours. In a sticky directory nobody else can have put another file in its place."""
    with contextlib.suppress(OSError):
        os.unlink(name, dir_fd=directory)


def _lockers(file: LockFile, *, commands: bool = False) -> str:
    """The other processes that hold a lock, by the kernel's list; empty where it names none."""
    named = shared_directory.named(file.lockers(), commands=commands)
    return f"{named} holds {file.path}" if named else ""


class _Waiting:
    """A process that waits for a turn."""

    def __init__(
        self,
        machine: MachineLock,
        does: str,
        run: str,
        progress: Report,
        most: float | None,
        over: Callable[[], str] | None,
    ) -> None:
        self.run = run
        self._machine, self._does, self._progress, self._most, self._over = machine, does, progress, most, over
        self._began = time.monotonic()
        # None: the seconds of ``most`` do not count yet.
        self._counts_from = self._began if over is None or machine.gave_up else None
        self._tell = TOLD_AFTER

    def locked(self, file: LockFile, kind: int) -> bool:
        """Wait for a lock. False when a parent process already has the machine, or after the maximum time."""
        if file.try_lock(kind):
            return True
        if self._covered():
            return False
        with self._machine.noted(self.run, self._does, waits=True), self._machine.waiting():
            while not file.try_lock(kind):
                if self._too_long():
                    return False
                waited = time.monotonic() - self._began
                if waited >= self._tell:
                    self._tell = waited + TOLD_AGAIN
                    self._progress(f"waiting: {self._machine.having()}; {shared_directory.limit()}")
                time.sleep(POLL)
        return True

    def _too_long(self) -> bool:
        """Whether the maximum time has passed.

        Where there is none, raises Inconclusive when the waiting must end, and LockHeld after ``wait.locks`` seconds.
        """
        if time.monotonic() - self._began >= wait.locks.seconds:
            if self._most is not None:
                return True
            self._machine.gave_up = True
            raise shared_directory.still_held(f"the machine: {self._machine.having(commands=True)}")
        if self._counts_from is None and self._over and (reason := self._over()):
            if self._most is None:
                raise Inconclusive(WAITED.format(reason, self._machine.having()))
            self._counts_from = time.monotonic()
        if self._counts_from is None or self._most is None:
            return False
        return time.monotonic() - self._counts_from >= self._most

    def _covered(self) -> bool:
        """Whether a parent process has the machine. It waits for us, so waiting for it would deadlock."""
        above = {process.pid for process in psutil.Process().parents()}
        outer = [holder for holder in self._machine.holders() if holder.pid in above and not holder.waits]
        if outer and self._does == MEASURING and all(holder.does == BUILDING for holder in outer):
            raise ConfigError(INSIDE.format(outer[0]))
        return bool(outer)


def lock_directory() -> Path:
    """The directory of the locks: the first of PARENTS that is root's, sticky, and writable for every user.

    Without one it is a directory in the cache, where this user's runs alone take turns.
    """
    for parent in map(Path, PARENTS):
        with contextlib.suppress(OSError):
            status = parent.lstat()
            shared = stat.S_ISDIR(status.st_mode) and status.st_mode & ANYBODY_MAY == ANYBODY_MAY
            if shared and status.st_uid == 0:
                return parent
    return cache.root() / "machine"


@functools.cache
def this() -> MachineLock:
    """The one lock of this process for the machine that it runs on."""
    return MachineLock()


@dataclasses.dataclass(frozen=True)
class Turns:
    """The turns of one run. ``machine`` is None when the hosts have their own cores; then nobody waits.

    ``over``: returns why the run must wait no longer, such as its used time; empty while it may. A wait ends with
    LockHeld after ``wait.locks`` seconds.
    """

    machine: MachineLock | None
    run: str = "-"
    progress: Report = lambda _: None
    over: Callable[[], str] = lambda: ""

    @classmethod
    def on(cls, offers: frozenset[str], run: str, progress: Report, over: Callable[[], str] = lambda: "") -> Turns:
        """The turns of a run on hosts with these powers. Only hosts with ``shared-cores`` need turns."""
        return cls(this() if "shared-cores" in offers else None, run, progress, over)

    def clock(self) -> float:
        """``time.monotonic`` without the seconds of waiting for other runs, also for hosts that those use."""
        return (self.machine or this()).clock()

    @property
    def used(self) -> bool:
        """Whether this process has had the machine; else it has started nothing. True on hosts with their own cores."""
        return self.machine is None or self.machine.used

    def building(self, most: float | None = None) -> AbstractContextManager[None]:
        """A turn to start, populate, check or end clusters, and for all other work that uses cores and the disk.

        ``most``: the maximum time to wait, in seconds, after which the block runs without the machine; None waits until
        the run's time is used, and then raises Inconclusive.
        """
        return self._turn(BUILDING, most, self.over if most is None else None)

    def finishing(self) -> AbstractContextManager[None]:
        """A turn to build for the last steps of a measurement: it waits FINISH_SECONDS more than the run's time."""
        return self._turn(BUILDING, FINISH_SECONDS, self.over)

    def admitting(self) -> AbstractContextManager[None]:
        """A lock inside ``building``: check free memory and disk, and start the servers that take them."""
        return self.machine.admitting(self.progress, self.over) if self.machine else contextlib.nullcontext()

    def measuring(self) -> AbstractContextManager[None]:
        """A turn to measure rounds: nobody builds, nobody else measures. Raises Inconclusive as ``building`` does."""
        return self._turn(MEASURING, None, self.over)

    def _turn(self, does: str, most: float | None, over: Callable[[], str] | None) -> AbstractContextManager[None]:
        if self.machine is None:
            return contextlib.nullcontext()
        return self.machine.turn(does, run=self.run, progress=self.progress, most=most, over=over)
