"""Turns on this machine: builds run side by side, measured rounds run exclusively, across all processes and users.

Two kernel locks (flock) decide; the kernel releases the locks of a dead process. A process takes the lock ``next``
first, and waits for the lock ``work`` while it holds ``next``: shared to build, exclusive to measure. So nobody
overtakes the process that is next. A build can run between two blocks of another run's rounds, and a block of rounds
between two builds. Two measuring runs do not alternate block by block, because then neither run would stay warm. While
only measuring processes wait, a run continues with its next block for ``STINT`` seconds.

The lock files are directly in root's sticky directory, with notes that show who has the machine. Every user may write
such notes. So the owner of a note must also own the process in its name. Only the locks decide who waits.
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
from pytest_dbcluster.system.tracing.recorder import span

# One directory for all users of the machine, because they share its cores. Not $TMPDIR, which may be private. We use no
# subdirectory, because any other user could create it first and replace it later.
PARENTS = ("/run/lock", "/tmp")
ANYBODY_MAY = stat.S_ISVTX | stat.S_IWOTH
NAME = "pytest-dbcluster"  # the prefix of all our names in that directory
NEXT, WORK, ADMIT = (f"{NAME}-{name}.lock" for name in ("next", "work", "admit"))
NOTE = re.compile(rf"{NAME}-note-[0-9a-f]{{8}}-{processes.MARK.pattern}")
NOTE_BYTES, RUN_LETTERS = 1000, 40  # the maximum length of a note, and of the run's id in messages
BUILDING, MEASURING = "building", "measuring"
POLL = 0.01  # seconds between two attempts, the maximum delay of a hand-over
FIRST_REPORT, NEXT_REPORT = 5.0, 15.0  # seconds of waiting before the first report, and between reports
STINT = 10.0  # seconds that a run measures while another run waits to measure
LINGER = 0.2  # seconds to begin the next block; judging the last block takes milliseconds
# Seconds to wait for the last steps of a measurement (its checks and reports) after the run's time was used.
FINISH_SECONDS = 20.0
NO_LOCK = "cannot use the lock that keeps measured rounds from overlapping"
WAITED = "{}; another run had the machine while this run waited: {}"
STARTS = "another run that starts servers"
INSIDE = "cannot measure inside a build of {}, which may disturb the round: end the build first"


@dataclasses.dataclass(frozen=True)
class Holder:
    """A process that has the machine, or waits for it.

    The process itself wrote run, does, since and waits; we checked pid and user.
    """

    run: str
    """The id of the run, "-" without a run."""

    pid: int
    """The process id."""

    user: str
    """The user of the process."""

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
    """The content of a note. The file name contains the process id, and the owner of the file is the user."""

    run: str
    does: Literal["building", "measuring"]
    since: float
    waits: bool


class MachineLock:
    """The turns of this process. A turn inside another turn of this process is part of the outer turn.

    Not thread-safe: one thread of a process may use it at a time.
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
        self.gave_up = False  # a wait timed out, so later ones are short

    @property
    def had_turn(self) -> bool:
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
            with span("wait for other runs"):
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

        A turn inside a turn of this process, or of a parent process, is part of the outer turn.

        ``over``: returns why the wait must end, empty while it may go on. Given a reason, the wait ends with
        Inconclusive, which names who has the machine. ``most``: seconds after which the block runs without the machine.
        If both are given, ``most`` counts from the first reason of ``over``. Once an earlier wait has timed out, it
        counts from the start.

        Raises ConfigError for measuring inside a build, and ProvisionError if the lock files cannot be used. After
        ``wait.locks`` seconds it raises LockHeld; with ``most``, the block runs without the machine.
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
                if wait.wait_for(queue, fcntl.LOCK_EX):
                    wait.wait_for(work, kind)
            held.enter_context(self.note(wait.run, does, waits=False))
            self._turn = held.pop_all()
        self._does, self._began = does, time.monotonic()

    @contextlib.contextmanager
    def admitting(self, progress: Report, over: Callable[[], str] = lambda: "") -> Iterator[None]:
        """Hold a lock during the block, inside a turn to build: no other run can take the memory that we saw free.

        Raises Inconclusive, with who holds it, if ``over`` returns a reason to stop waiting, and LockHeld after
        ``wait.locks`` seconds.
        """
        began = time.monotonic()
        tell = began + FIRST_REPORT
        with contextlib.closing(self._lock(ADMIT)) as file:
            with self.waiting():
                while not file.try_lock():
                    if reason := over():
                        raise Inconclusive(WAITED.format(reason, _lockers(file) or STARTS))
                    if time.monotonic() - began >= wait.locks.seconds:
                        raise shared_directory.held_error(_lockers(file, commands=True) or STARTS)
                    if time.monotonic() >= tell:
                        tell = time.monotonic() + NEXT_REPORT
                        who = f"{lockers}; " if (lockers := _lockers(file)) else ""
                        progress(
                            "waiting: another run is starting its servers; then we see how much memory is free "
                            f"({who}{shared_directory.limit()})"
                        )
                    time.sleep(POLL)
            yield

    def _lock(self, name: str) -> LockFile:
        return LockFile(self.directory, name, NO_LOCK)

    def describe_holders(self, *, commands: bool = False) -> str:
        """Who has the machine, for messages: from the notes, otherwise from the kernel's list of locks.

        commands: add the command of each process and its start time.
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
        """The processes that have the machine or wait for it, from their notes.

        Removes the notes of this user's dead processes, and leaves those of other users.
        """
        with contextlib.suppress(ProvisionError), shared_directory.enter(self.directory, NO_LOCK) as directory:
            names = [match for match in map(NOTE.fullmatch, shared_directory.names(directory)) if match]
            return [holder for match in names if (holder := _holder(directory, match))]
        return []

    @contextlib.contextmanager
    def note(self, run: str, does: str, *, waits: bool) -> Iterator[None]:
        """Keep a note about this process during the block. Other users can read it, but not remove it.

        If the disk is full, it writes no note: notes only show who has the machine.
        """
        note = {"run": run, "does": does, "since": time.time(), "waits": waits}
        name = f"{NAME}-note-{secrets.token_hex(4)}-{processes.mark()}"
        with shared_directory.enter(self.directory, NO_LOCK) as directory, contextlib.ExitStack() as made:
            with contextlib.suppress(OSError):
                file = shared_directory.create(directory, name)
                made.callback(os.close, file)
                made.callback(_unlink, directory, name)
                os.write(file, msgspec.json.encode(note))
            yield


def _holder(directory: int, name: re.Match[str]) -> Holder | None:
    """The process that wrote this note; None if the process is dead, or if another user owns the note."""
    try:
        file = shared_directory.open_plain(directory, name.string)
    except OSError:
        return None
    try:
        owner, process = os.fstat(file).st_uid, processes.process_of(name)
        user = processes.user_of(*process)
        if user is None and owner == os.geteuid() and not processes.is_running(*process):
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
    return Holder(run, process[0], processes.user_name(owner), note.does, note.since, note.waits)


def _unlink(directory: int, name: str) -> None:
    """Remove a note of ours. In a sticky directory no other user can replace it."""
    with contextlib.suppress(OSError):
        os.unlink(name, dir_fd=directory)


def _lockers(file: LockFile, *, commands: bool = False) -> str:
    """The other processes that hold a lock, from the kernel's list; empty if it names no process."""
    named = shared_directory.describe(file.lockers(), commands=commands)
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
        self._tell = FIRST_REPORT

    def wait_for(self, file: LockFile, kind: int) -> bool:
        """Wait for a lock. False when a parent process already has the machine, or after the maximum time."""
        if file.try_lock(kind):
            return True
        if self._is_nested():
            return False
        with self._machine.note(self.run, self._does, waits=True), self._machine.waiting():
            while not file.try_lock(kind):
                if self._too_long():
                    return False
                waited = time.monotonic() - self._began
                if waited >= self._tell:
                    self._tell = waited + NEXT_REPORT
                    self._progress(f"waiting: {self._machine.describe_holders()}; {shared_directory.limit()}")
                time.sleep(POLL)
        return True

    def _too_long(self) -> bool:
        """Whether the maximum time has passed.

        Without a maximum it raises Inconclusive if the wait must end, and LockHeld after ``wait.locks`` seconds.
        """
        if time.monotonic() - self._began >= wait.locks.seconds:
            if self._most is not None:
                return True
            self._machine.gave_up = True
            raise shared_directory.held_error(f"the machine: {self._machine.describe_holders(commands=True)}")
        if self._counts_from is None and self._over and (reason := self._over()):
            if self._most is None:
                raise Inconclusive(WAITED.format(reason, self._machine.describe_holders()))
            self._counts_from = time.monotonic()
        if self._counts_from is None or self._most is None:
            return False
        return time.monotonic() - self._counts_from >= self._most

    def _is_nested(self) -> bool:
        """Whether a parent process has the machine. It waits for us, so waiting for it would deadlock."""
        above = {process.pid for process in psutil.Process().parents()}
        outer = [holder for holder in self._machine.holders() if holder.pid in above and not holder.waits]
        if outer and self._does == MEASURING and all(holder.does == BUILDING for holder in outer):
            raise ConfigError(INSIDE.format(outer[0]))
        return bool(outer)


def lock_directory() -> Path:
    """The directory of the locks: the first of PARENTS that is root's, sticky, and writable for every user.

    Without such a directory it is one in the cache, and only this user's runs take turns.
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
    """The turns of one run. After ``wait.locks`` seconds a wait ends with LockHeld."""

    machine: MachineLock | None
    """The lock of the machine; None if the hosts have their own cores, and then nobody waits."""

    run: str = "-"
    """The id of the run, "-" without a run."""

    progress: Report = lambda _: None
    """Prints a line while the run waits."""

    over: Callable[[], str] = lambda: ""
    """Returns why the run must stop waiting, such as its used time; empty while it may wait."""

    @classmethod
    def on(cls, offers: frozenset[str], run: str, progress: Report, over: Callable[[], str] = lambda: "") -> Turns:
        """The turns of a run on hosts with these powers. Only hosts with ``shared-cores`` need turns."""
        return cls(this() if "shared-cores" in offers else None, run, progress, over)

    def clock(self) -> float:
        """``time.monotonic`` without the seconds of waiting for other runs, on this machine or for hosts."""
        return (self.machine or this()).clock()

    @property
    def had_turn(self) -> bool:
        """Whether this process has had the machine, and so may have started servers. True on hosts with own cores."""
        return self.machine is None or self.machine.had_turn

    def building(self, most: float | None = None) -> AbstractContextManager[None]:
        """A turn to start, populate, check or end clusters, and for all other work that uses cores and the disk.

        ``most``: seconds to wait, after which the block runs without the machine. None waits until the run's time is
        used, then raises Inconclusive.
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
