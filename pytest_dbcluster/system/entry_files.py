"""The files of a cache entry: recorded when it is made, and compared when it is used.

``record`` writes size and SHA-256 digest of every file into RECORD. ``damage`` compares the sizes at each use. It reads
a file's contents only if its ctime, inode or mtime has changed since the last comparison. So a use costs some
milliseconds, and the first use of a copied cache reads it once. If a failing disk changes contents without a write,
we do not notice.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import hashlib
import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path

from pytest_dbcluster.formatting import quantity

RECORD = ".files.json"  # path -> [size in bytes, SHA-256 digest]
COMPARED = ".compared.json"  # path -> state of the file at the last comparison of its contents
OWN = (RECORD, COMPARED, f"{RECORD}.new", f"{COMPARED}.new")
THREADS = 8  # waiting for the disk at the same time


def record(entry: Path) -> None:
    """Record the files of an entry that is complete. Raises OSError."""
    files = {name: [status.st_size, digest(entry / name)] for name, status in _files(entry).items()}
    _write(entry / RECORD, files)
    _write(entry / COMPARED, {name: _state(status) for name, status in _files(entry).items()})


def is_recorded(entry: Path) -> bool:
    """Whether an entry has a record; entries of older versions have none."""
    return (entry / RECORD).exists()


def damage(entry: Path) -> str:
    """Describe the damage to an entry's files in a few words; empty if they are intact.

    If an entry has no record, its files are recorded as they are. Raises OSError for files that cannot be read.
    """
    if not is_recorded(entry):
        if os.access(entry, os.W_OK):  # not the entry of another user
            record(entry)
        return ""
    recorded, compared = _read(entry / RECORD), _read(entry / COMPARED)
    if not recorded:
        return f"{RECORD} cannot be read"
    states = {}
    for name, (size, _) in recorded.items():
        try:
            status = os.lstat(f"{entry}/{name}")  # a Path for each file would take longer than everything else
        except FileNotFoundError:
            return f"{name} is missing"
        if status.st_size != size:
            return f"{name} has {quantity(status.st_size, 'byte')} instead of {size}"
        states[name] = _state(status)
    touched = [name for name, state in states.items() if compared.get(name) != state]
    changed = [name for name in touched if digest(entry / name) != recorded[name][1]]
    if changed:
        return f"{changed[0]} has other contents than when it was made"
    if touched:
        with contextlib.suppress(OSError):  # the entry of another user: it is compared again at the next use
            _write(entry / COMPARED, states)
    return ""


def digest(path: Path) -> str:
    """The SHA-256 digest of a file's contents. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def make_durable(tree: Path) -> None:
    """Force every file and directory of a tree to disk. Raises OSError.

    Otherwise a power failure could leave an incomplete entry that looks complete.
    """
    directories = [Path(parent) for parent, _, _ in os.walk(tree)]
    with concurrent.futures.ThreadPoolExecutor(THREADS) as threads:
        own = [tree / name for name in OWN if (tree / name).exists()]
        list(threads.map(sync, [*(tree / name for name in _files(tree)), *own]))
        list(threads.map(sync, directories))


def sync(path: Path) -> None:
    """Force one file or directory to disk. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _files(entry: Path) -> dict[str, os.stat_result]:
    """The regular files of an entry, by path in the entry; without our record files and without links."""
    found = {}
    for parent, _, names in os.walk(entry):
        for name in names:
            path = Path(parent) / name
            status = path.lstat()
            if stat.S_ISREG(status.st_mode):
                found[str(path.relative_to(entry))] = status
    return {name: status for name, status in found.items() if name not in OWN}


def _state(status: os.stat_result) -> list[int]:
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]


def _read(file: Path) -> Mapping[str, list[object]]:
    """A record; empty if it is missing or cannot be read."""
    try:
        document = json.loads(file.read_bytes())
    except (FileNotFoundError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}


def _write(file: Path, document: Mapping[str, object]) -> None:
    fresh = file.with_name(f"{file.name}.new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), "w", encoding="utf-8") as stream:
        json.dump(document, stream)
    fresh.replace(file)
