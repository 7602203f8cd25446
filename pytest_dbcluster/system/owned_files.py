"""Files in the directory of a run. Other users may have directories beside it, and may write in those what they like.

So a file is read only when nobody but the owner of its directory can have written it. Whoever uses its content still
checks who that owner is. Directories are removed in a way that a user who replaces them meanwhile cannot redirect.
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

    Raises OSError, also for a link, for a file of more than MOST_BYTES, and when anybody else could have written it.
    """
    with _entered(directory) as (descriptor, owner):
        # Check and read the same open file: somebody could replace the file between two uses of its path.
        file = shared_directory.opened(descriptor, name)
        with os.fdopen(file, "rb") as stream:
            _refuse_others(os.fstat(file), owner)
            content = stream.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise OSError(f"{name} has more than {MOST_BYTES} bytes")
    return content, owner


def write(directory: Path, name: str, text: str) -> None:
    """Write a file for this user alone; it replaces an older one at once and completely. Raises OSError."""
    fresh = directory / f".{name}"
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    fresh.rename(directory / name)


def owner(directory: Path) -> int:
    """The id of the user who owns a directory. Raises OSError, also when other users may write to it."""
    with _entered(directory) as (_, uid):
        return uid


def untrusted(directory: Path) -> str:
    """Why programs below a directory may be those of another user: whose it is, with its mode; "" if nobody else can.

    Root also needs every directory above it to be safe, because who may rename a directory may replace it. In a
    directory with the sticky bit nobody renames what belongs to others. A group that has the name of the owner is taken
    for the owner. What does not exist is safe.
    """
    path = directory.absolute()
    # Every link is followed: what counts is where the programs are.
    found = [path, path.resolve(), *(path.resolve().parents if os.geteuid() == 0 else ())]
    for one in dict.fromkeys(found):
        with contextlib.suppress(FileNotFoundError):
            status = one.stat()
            if status.st_uid not in _trusted():
                return f"{one} belongs to {_user(status.st_uid)}, mode {stat.S_IMODE(status.st_mode):04o}"
            sticky = status.st_mode & stat.S_ISVTX and one not in found[:2]
            shared = status.st_mode & stat.S_IWGRP and not _own_group(status)
            if (status.st_mode & stat.S_IWOTH or shared) and not sticky:
                return (
                    f"others can write to {one}, which belongs to {_user(status.st_uid)}, "
                    f"mode {stat.S_IMODE(status.st_mode):04o}"
                )
    return ""


def _trusted() -> set[int]:
    """Root, this user, and in a user namespace everybody outside of it, root too."""
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
def _entered(directory: Path) -> Iterator[tuple[int, int]]:
    """Open a directory; yields its descriptor and its owner. Raises OSError as ``owner`` does."""
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

    The directory is opened once: if somebody replaces it meanwhile, the other one stays.
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
