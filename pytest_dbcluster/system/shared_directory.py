"""Directories that all users of a machine share. They lie where any of them may put something else by their name.

So no link is ever followed there, and what is made open to all is only what we have made ourselves. Locks there are
the kernel's (flock), which drops those of a dead holder.
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
    """A descriptor of the directory, which is made open to all users where there is none.

    Raises ProvisionError that begins with ``what``, for a symbolic link too: it says what to remove.
    """
    made = False
    try:
        with contextlib.suppress(FileExistsError):
            directory.mkdir()
            made = True
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as error:
        why = f"{directory}: {error.strerror}"
        if directory.is_symlink():
            why = f"{directory} is a symbolic link, which any user may have put there; remove it: rm {directory}"
        raise ProvisionError(f"{what}: {why}") from None
    try:
        if made:  # one that was there is its owner's, and has the mode that its owner gave it
            os.fchmod(descriptor, OPEN_TO_ALL)
        yield descriptor
    finally:
        os.close(descriptor)


def lock_file(place: int, name: str) -> int:
    """A descriptor of a lock file in a directory that was entered, made by whoever comes first.

    To read is enough to lock, and everybody may. Raises OSError, for a symbolic link too.
    """
    # Not with O_CREAT where it is there: fs.protected_regular refuses that for another user's file.
    with contextlib.suppress(FileExistsError):
        if name not in os.listdir(place):
            made = os.open(name, os.O_CREAT | os.O_EXCL | os.O_RDONLY, dir_fd=place)
            os.fchmod(made, 0o644)
            os.close(made)
    # What is no file at all, such as a pipe, must not keep us waiting.
    return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=place)


def try_lock(file: int | IO[Any], kind: int = fcntl.LOCK_EX) -> bool:
    """Lock an open file or directory where that takes no waiting; False where another process holds its lock.

    ``kind`` is LOCK_EX or LOCK_SH of fcntl. The lock ends when the file is closed. Raises OSError.
    """
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
