"""Directories that all users of a machine share. They lie where any of them may put something else by their name.

So we never follow a link there, and we give permissions to all users only for files that we made. The locks are kernel
locks (flock); the kernel releases the locks of a dead process.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from pytest_dbcluster.errors import ProvisionError

OPEN_TO_ALL = 0o1777


@contextlib.contextmanager
def entered(directory: Path, what: str) -> Iterator[int]:
    """Open a directory and yield its descriptor. A missing directory is created, writable for all users.

    Raises ProvisionError, also for a symbolic link. ``what``: the beginning of the message.
    """
    made = False
    try:
        with contextlib.suppress(FileExistsError):
            directory.mkdir()
            made = True
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as error:
        reason = f"{directory}: {error.strerror}"
        if directory.is_symlink():
            reason = f"{directory} is a symbolic link, which any user may have put there; remove it: rm {directory}"
        raise ProvisionError(f"{what}: {reason}") from None
    try:
        if made:  # an existing directory keeps the mode that its owner chose
            os.fchmod(descriptor, OPEN_TO_ALL)
        yield descriptor
    finally:
        os.close(descriptor)


def lock_file(directory: int, name: str) -> int:
    """Open a lock file in the directory with this descriptor, and create it if needed. Returns a descriptor.

    The file is readable for all users, which is enough to lock it. Raises OSError, also for a symbolic link.
    """
    # No O_CREAT for an existing file: fs.protected_regular forbids that for files of other users.
    with contextlib.suppress(FileExistsError):
        if name not in os.listdir(directory):
            made = os.open(name, os.O_CREAT | os.O_EXCL | os.O_RDONLY, dir_fd=directory)
            os.fchmod(made, 0o644)
            os.close(made)
    # O_NONBLOCK: opening a pipe must not block.
    return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=directory)


def try_lock(file: int | IO[Any], kind: int = fcntl.LOCK_EX) -> bool:
    """Try to lock an open file or directory without waiting. False if another process holds the lock.

    ``kind``: fcntl.LOCK_EX or fcntl.LOCK_SH. The lock ends when the file is closed. Raises OSError.
    """
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
