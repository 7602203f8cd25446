"""Files in the directory of a run. Other users may have directories beside it with any content.

So we read a file only if nobody but the owner of its directory could write it. The caller checks who the owner is.
If another user replaces a directory while we remove it, we do not remove anything in the replacement.
"""

from __future__ import annotations

import contextlib
import grp
import os
import pwd
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from pytest_dbcluster.system import shared_directory

MOST_BYTES = 2**20  # of a file; ours have a few hundred


def read(directory: Path, name: str) -> tuple[bytes, int]:
    """The content of a file in this directory, and the id of the user who owns both.

    Raises OSError, also for a link, for a file of more than MOST_BYTES, and if another user could write it.
    """
    with _enter(directory) as (descriptor, owner):
        # Check and read the same open file: somebody could replace the file between two uses of its path.
        file = shared_directory.open_plain(descriptor, name)
        with os.fdopen(file, "rb") as stream:
            _refuse_others(os.fstat(file), owner)
            content = stream.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise OSError(f"{name} has more than {MOST_BYTES} bytes")
    return content, owner


def write(directory: Path, name: str, text: str) -> None:
    """Write a file that only this user can read; it replaces an older one atomically. Raises OSError."""
    fresh = directory / f".{name}"
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
    fresh.rename(directory / name)


def owner(directory: Path) -> int:
    """The id of the user who owns a directory. Raises OSError, also when other users may write to it."""
    with _enter(directory) as (_, uid):
        return uid


def distrust_reason(directory: Path) -> str:
    """Why another user may have changed the programs below a directory: its owner and mode; "" if nobody could.

    For root, every directory above it must be safe too: whoever may rename a directory may replace it. In a directory
    with the sticky bit, users can rename only their own files. A group with the owner's name counts as the owner. A
    missing directory is safe.
    """
    path = directory.absolute()
    # Follow every link, because the real place of the programs counts.
    found = [path, path.resolve(), *(path.resolve().parents if os.geteuid() == 0 else ())]
    for one in dict.fromkeys(found):
        with contextlib.suppress(FileNotFoundError):
            status = one.stat()
            if status.st_uid not in _trusted_users():
                return f"{one} belongs to {_user(status.st_uid)}, mode {stat.S_IMODE(status.st_mode):04o}"
            sticky = status.st_mode & stat.S_ISVTX and one not in found[:2]
            shared = status.st_mode & stat.S_IWGRP and not _own_group(status)
            if (status.st_mode & stat.S_IWOTH or shared) and not sticky:
                return (
                    f"others can write to {one}, which belongs to {_user(status.st_uid)}, "
                    f"mode {stat.S_IMODE(status.st_mode):04o}"
                )
    return ""


def _trusted_users() -> set[int]:
    """Root and this user; in a user namespace also all users outside of it, because one of them is root."""
    whole = Path("/proc/self/uid_map").read_text().split() == ["0", "0", str(2**32 - 1)]
    return {0, os.geteuid()} | (set() if whole else {int(Path("/proc/sys/kernel/overflowuid").read_text())})


def _user(uid: int) -> str:
    try:
        return f"user {pwd.getpwuid(uid).pw_name}"
    except KeyError:
        return f"user {uid}"


def _own_group(status: os.stat_result) -> bool:
    try:
        return status.st_gid == 0 or grp.getgrgid(status.st_gid).gr_name == pwd.getpwuid(status.st_uid).pw_name
    except KeyError:
        return False


@contextlib.contextmanager
def _enter(directory: Path) -> Iterator[tuple[int, int]]:
    """Open a directory; yields its descriptor and its owner. Raises OSError like ``owner``."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        status = os.fstat(descriptor)
        _refuse_others(status, status.st_uid)
        yield descriptor, status.st_uid
    finally:
        os.close(descriptor)


def _refuse_others(status: os.stat_result, owner: int) -> None:
    if status.st_uid != owner or status.st_mode & shared_directory.OTHERS_WRITE:
        raise PermissionError("another user owns the file or may write to it")


def remove_tree(directory: Path, owner: int) -> None:
    """Remove a directory that this user owns, with everything in it, as far as we may. Never raises.

    We open the directory once. If somebody replaces it meanwhile, the replacement stays.
    """
    with contextlib.suppress(OSError), contextlib.ExitStack() as opened:
        parent = os.open(directory.parent, os.O_RDONLY | os.O_DIRECTORY)
        opened.callback(os.close, parent)
        inside = os.open(directory.name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=parent)
        opened.callback(os.close, inside)
        if os.fstat(inside).st_uid != owner:
            return
        for name in shared_directory.names(inside):
            _remove(inside, name)
        if os.path.samestat(os.fstat(inside), os.stat(directory.name, dir_fd=parent, follow_symlinks=False)):
            os.rmdir(directory.name, dir_fd=parent)


def _remove(parent: int, name: str) -> None:
    with contextlib.suppress(OSError):
        if stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
            shutil.rmtree(name, ignore_errors=True, dir_fd=parent)
        else:
            os.unlink(name, dir_fd=parent)
