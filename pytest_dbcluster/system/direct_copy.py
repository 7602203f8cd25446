"""Copies of large directories that are on disk when the function returns.

A copy that is still in the page cache would be written to disk during the first measured rounds. It would slow down
each of their fsyncs. So we read large files through the page cache, which the next copy uses again, and write them with
O_DIRECT. On a file system that can share blocks (reflinks), nothing is written at all.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import mmap
import os
import shutil
from pathlib import Path

FICLONE = 0x40049409  # ioctl_ficlone(2)
CHUNK = 4 * 2**20  # bytes of one read and write
BLOCK = 4096  # bytes; O_DIRECT needs lengths that are a multiple of it: open(2)
SMALL = 2**20  # bytes; smaller files are written without O_DIRECT, which is faster for them


def copy_tree(source: Path, target: Path) -> None:
    """Copy a directory with its files and their modes.

    Raises OSError; if the disk is full, before it writes the content of a large file.
    """
    for parent, _, names in os.walk(source):
        directory = target / Path(parent).relative_to(source)
        directory.mkdir(parents=True, exist_ok=True)
        for name in names:
            _copy_file(Path(parent, name), directory / name)
        shutil.copymode(parent, directory)


def copy_sparse(source: Path, target: Path) -> None:
    """Copy a file over an existing one and keep its holes. Raises OSError.

    The copy goes through the page cache; on a file system that can share blocks, nothing is written.
    """
    with source.open("rb", buffering=0) as old, target.open("r+b", buffering=0) as new:
        size = os.fstat(old.fileno()).st_size
        new.truncate(0)  # old contents of the target would show through the holes
        if not _shares(old.fileno(), new.fileno()):
            new.truncate(size)
            _copy_data(old.fileno(), new.fileno(), size)


def _copy_data(old: int, new: int, size: int) -> None:
    view = memoryview(bytearray(CHUNK))
    end = 0
    while (begin := _next_data(old, end)) < size:
        end = os.lseek(old, begin, os.SEEK_HOLE)
        while begin < end:
            part = view[: os.preadv(old, [view[: end - begin]], begin)]
            begin += os.pwrite(new, part, begin)


def _next_data(file: int, offset: int) -> int:
    """The offset of the next data after ``offset``; the size of the file if only a hole follows."""
    try:
        return os.lseek(file, offset, os.SEEK_DATA)
    except OSError as error:
        if error.errno != errno.ENXIO:
            raise
        return os.fstat(file).st_size


def _copy_file(source: Path, target: Path) -> None:
    with source.open("rb", buffering=0) as old:
        status = os.fstat(old.fileno())
        new = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, status.st_mode & 0o777)
        try:
            if not _shares(old.fileno(), new):
                _write(old.fileno(), new, status.st_size)
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
        with contextlib.suppress(OSError):  # some file systems do not support O_DIRECT
            fcntl.fcntl(new, fcntl.F_SETFL, fcntl.fcntl(new, fcntl.F_GETFL) | os.O_DIRECT)
            direct = True
    view = memoryview(mmap.mmap(-1, CHUNK))  # O_DIRECT needs memory that is aligned to a page
    while length := os.readv(old, [view]):
        _write_all(new, view[: -(-length // BLOCK) * BLOCK if direct else length])
    os.ftruncate(new, size)
    if size > SMALL and not direct:
        os.fsync(new)


def _write_all(file: int, view: memoryview) -> None:
    while view:
        view = view[os.write(file, view) :]
