"""Lock files that all users of a machine share, in a directory where every user may create files.

So the directory must be sticky and owned by root or by us: then other users cannot replace or remove our files. We
never follow a link, never write to a file that we did not make, and lock only plain files. The locks are kernel locks
(flock); the kernel releases the locks of a dead process. A lock counts whoever made the file.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from pytest_dbcluster import formatting, wait
from pytest_dbcluster.errors import LockHeld, ProvisionError
from pytest_dbcluster.system import processes

OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
# O_NONBLOCK: opening a pipe must not block. O_NOCTTY: a terminal must not become ours.
READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
# Attempts to open a file whose maker has not set its mode yet, and the seconds between them.
TRIES, TRY_AGAIN = 100, 0.01
NOT_PLAIN = "it is not a plain file with a single name"


@contextlib.contextmanager
def enter(directory: Path, what: str) -> Iterator[int]:
    """Open a directory and yield its descriptor. A missing directory is created with mode 0700.

    Raises ProvisionError, also for a symbolic link, and for a directory in which another user could replace our files.
    ``what``: the beginning of the error message.
    """
    try:
        with contextlib.suppress(FileExistsError):
            directory.mkdir(0o700, parents=True)
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as error:
        reason = f"{directory}: {error.strerror}"
        if directory.is_symlink():
            reason = f"{directory} is a symbolic link, which any user may have put there; remove it: rm {directory}"
        raise ProvisionError(f"{what}: {reason}") from None
    try:
        if reason := _unsafe(os.fstat(descriptor)):
            raise ProvisionError(f"{what}: {directory} {reason}")
        yield descriptor
    finally:
        os.close(descriptor)


def _unsafe(status: os.stat_result) -> str:
    """Why other users could replace our files in the directory with this status; empty if they cannot."""
    if status.st_uid not in (0, os.geteuid()):
        return f"belongs to {processes.user_name(status.st_uid)}, who could replace our files there"
    if status.st_mode & OTHERS_WRITE and not status.st_mode & stat.S_ISVTX:
        return "is writable for other users, who could replace our files there: chmod +t"
    return ""


def open_plain(directory: int, name: str) -> int:
    """Open a plain file in the directory with this descriptor for reading, and return its descriptor.

    Raises OSError, also for a link and for a file with several names: its other name may be in use for something else.
    """
    descriptor = os.open(name, READ, dir_fd=directory)
    status = os.fstat(descriptor)
    if stat.S_ISREG(status.st_mode) and status.st_nlink == 1:
        return descriptor
    os.close(descriptor)
    if not status.st_nlink:  # it was removed just now
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
    raise OSError(errno.EINVAL, NOT_PLAIN, name)


def names(directory: int) -> list[str]:
    """The names in the directory with this descriptor, sorted. Raises OSError."""
    with os.scandir(directory) as entries:
        return sorted(entry.name for entry in entries)


def create(directory: int, name: str) -> int:
    """Create an empty file that all users may read, and return a descriptor for writing. Raises OSError."""
    made = os.open(name, os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_WRONLY, 0o644, dir_fd=directory)
    os.fchmod(made, 0o644)  # independent of the umask
    return made


class LockFile:
    """A file for a lock that all users share. All users may read it, which is enough to lock it.

    Raises ProvisionError if the file cannot be used; the message begins with ``what``.
    """

    def __init__(self, directory: Path, name: str, what: str) -> None:
        self.path = directory / name
        self._what = what
        self._open = contextlib.ExitStack()
        self._reopen()

    def _reopen(self) -> None:
        self.close()
        with contextlib.ExitStack() as opening:
            self._directory = opening.enter_context(enter(self.path.parent, self._what))
            try:
                self._file = _open_or_create(self._directory, self.path.name)
            except OSError as error:
                raise ProvisionError(f"{self._what}: {self.path}: {self._reason(error)}") from None
            opening.callback(os.close, self._file)
            self._open = opening.pop_all()

    def _reason(self, error: OSError) -> str:
        try:
            owner = processes.user_name(os.stat(self.path.name, dir_fd=self._directory, follow_symlinks=False).st_uid)
        except OSError:
            return str(error.strerror)
        if self.path.is_symlink():
            return f"it is a symbolic link of {owner}; remove it: rm {self.path}"
        return f"{error.strerror}; it belongs to {owner}; remove it: rm {self.path}"

    def try_lock(self, kind: int = fcntl.LOCK_EX) -> bool:
        """Try to take the lock without waiting. False if another process holds it, or has just replaced the file."""
        if not self._there():
            self._reopen()
        return try_lock(self._file, kind) and self._there()

    def _there(self) -> bool:
        """Whether the open file still has its name. Its owner or a clean-up of old files may remove it."""
        try:
            named = os.stat(self.path.name, dir_fd=self._directory, follow_symlinks=False)
        except OSError:
            return False
        return os.path.samestat(named, os.fstat(self._file))

    def lockers(self) -> list[int]:
        """The ids of the processes that hold the lock, by the kernel's own list; empty if we cannot see them."""
        return lockers(os.fstat(self._file))

    def close(self) -> None:
        """Release the lock and close the file."""
        self._open.close()


def _open_or_create(directory: int, name: str) -> int:
    """Open the file; create it only if it is missing. fs.protected_regular forbids O_CREAT on files of others."""
    for attempt in range(1, TRIES + 1):
        try:
            return open_plain(directory, name)
        except FileNotFoundError:
            with contextlib.suppress(FileExistsError):
                os.close(create(directory, name))
                continue
        except PermissionError:  # its maker sets the mode right after creating it
            if attempt == TRIES:
                raise
        time.sleep(TRY_AGAIN)
    raise OSError(errno.EAGAIN, "another process keeps creating and removing it", name)


def lockers(status: os.stat_result) -> list[int]:
    """The ids of the processes that hold a lock on the file with this status, by the kernel's own list."""
    device = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    with contextlib.suppress(OSError):
        # 1: FLOCK  ADVISORY  WRITE 4711 00:17:1234 0 EOF
        lines = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
        return [int(line[4]) for line in lines if line[1] == "FLOCK" and line[5] == device and int(line[4]) > 0]
    return []


def describe(pids: Sequence[int], *, commands: bool = False) -> str:
    """The running processes among ``pids``, except this one, for messages: ``pid 4711 (alice)``; or empty.

    commands: add the command of each process and its start time.
    """
    users = {pid: user for pid in pids if pid != os.getpid() and (user := processes.user_of(pid)) is not None}
    told = {pid: processes.command_of(pid) if commands else "" for pid in users}
    shown = {
        pid: f"{processes.user_name(user)}: {told[pid]}" if told[pid] else processes.user_name(user)
        for pid, user in users.items()
    }
    return ", ".join(f"pid {pid} ({text})" for pid, text in shown.items())


def limit() -> str:
    """How long this process waits for a lock, for messages: ``30 min at most (--db-wait)``."""
    return f"{formatting.duration(wait.locks.seconds)} at most ({wait.locks.option})"


def held_error(who: str) -> LockHeld:
    """The error for a lock that another process held for the whole wait. who: what we waited for, and who holds it."""
    option, waited = wait.locks.option, formatting.duration(wait.locks.seconds)
    return LockHeld(f"waited {waited} ({option}) for {who}; end that process, or raise {option}")


def try_lock(file: int | IO[Any], kind: int = fcntl.LOCK_EX) -> bool:
    """Try to lock an open file or directory without waiting. False if another process holds the lock.

    ``kind``: fcntl.LOCK_EX or fcntl.LOCK_SH. The lock ends when the file is closed. Raises OSError.
    """
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
