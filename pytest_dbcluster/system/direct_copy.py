"""Copies of large directories that are on disk when they are done.

A copy that still waits in the page cache is written while the first rounds are measured, and each of their fsyncs
waits for it. So large files are read through the page cache, which the next copy shares, and written past it
(O_DIRECT). Where the file system can share blocks nothing is written at all.
"""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import shutil
from pathlib import Path

FICLONE = 0x40049409  # ioctl_ficlone(2)
CHUNK = 4 * 2**20
BLOCK = 4096  # what O_DIRECT wants lengths to be a multiple of: open(2)
SMALL = 2**20  # bytes of a file that is written faster than it is asked for twice


def copy_tree(source: Path, target: Path) -> None:
    """Copy a directory with its files and their modes. Raises OSError, for a full disk before a file is written."""
    for parent, _, names in os.walk(source):
        place = target / Path(parent).relative_to(source)
        place.mkdir(parents=True, exist_ok=True)
        for name in names:
            _copy_file(Path(parent, name), place / name)
        shutil.copymode(parent, place)


def _copy_file(source: Path, target: Path) -> None:
    with source.open("rb", buffering=0) as old:
        about = os.fstat(old.fileno())
        new = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, about.st_mode & 0o777)
        try:
            if not _shares(old.fileno(), new):
                _write(old.fileno(), new, about.st_size)
        finally:
            os.close(new)


def _shares(old: int, new: int) -> bool:
    try:
        fcntl.ioctl(new, FICLONE, old)
    except OSError:
        return False
    return True


def _write(old: int, new: int, size: int) -> None:
    direct = False
    if size > SMALL:
        os.posix_fallocate(new, 0, size)
        with contextlib.suppress(OSError):  # some file systems have no way past the page cache
            fcntl.fcntl(new, fcntl.F_SETFL, fcntl.fcntl(new, fcntl.F_GETFL) | os.O_DIRECT)
            direct = True
    view = memoryview(mmap.mmap(-1, CHUNK))  # O_DIRECT wants memory that begins with a page
    while got := os.readv(old, [view]):
        _write_all(new, view[: -(-got // BLOCK) * BLOCK if direct else got])
    os.ftruncate(new, size)
    if size > SMALL and not direct:
        os.fsync(new)


def _write_all(file: int, view: memoryview) -> None:
    while view:
        view = view[os.write(file, view) :]
