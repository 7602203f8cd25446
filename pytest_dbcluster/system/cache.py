"""The cache: what was fetched once, kept by product, version and architecture.

An entry appears whole or not at all: it is made in a directory beside its place and renamed into it at the end.
Beside its files lies a manifest, a JSON file that is written last: an entry that has one is whole.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import filelock

from pytest_dbcluster import formatting
from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.formatting import Report

MANIFEST = "manifest.json"
STAGING = ".fetching-"
REMOVED = ".removed-"
FORMAT = 2  # of an entry; those of another format are fetched anew

Value = TypeVar("Value")


def root() -> Path:
    """``$XDG_CACHE_HOME/pytest-dbcluster``, ``~/.cache/pytest-dbcluster`` without that variable."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if base.startswith("/") else Path.home() / ".cache") / "pytest-dbcluster"


def releases() -> Path:
    """Where the fetched releases are."""
    return root() / "releases"


@dataclasses.dataclass(frozen=True)
class Manifest:
    """What an entry holds: written last, so an entry that has one is whole.

    size: bytes on disk. downloaded: bytes of its packages. source: where it was fetched from, for people.
    """

    product: str
    version: str
    exact: str
    architecture: str
    suite: str
    source: str
    packages: dict[str, str]
    downloaded: int
    size: int
    fetched: str
    format: int = FORMAT


def read(entry: Path) -> Manifest | None:
    """The manifest of a release; None where there is none, or one that an older program wrote."""
    return read_manifest(entry / MANIFEST, lambda fields: Manifest(**fields) if fields["format"] == FORMAT else None)


def write(entry: Path, manifest: Manifest) -> None:
    """The manifest of a release, written into an entry that is being made."""
    write_manifest(entry / MANIFEST, dataclasses.asdict(manifest))


def read_manifest(file: Path, parse: Callable[[Any], Value | None]) -> Value | None:
    """What ``parse`` makes of the JSON value in a manifest; None where there is no manifest, or a half-written one.

    ``parse`` returns None for the manifest of another format. Its KeyError, TypeError and ValueError mean the same.
    """
    try:
        return parse(json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, KeyError):
        return None


def write_manifest(file: Path, value: object, *, mode: int = 0o666) -> None:
    """Write a JSON value as the manifest of an entry, whole or not at all, after the entry's other files.

    ``mode`` is the file's, less the umask: 0o600 for a manifest that holds a password. Raises OSError.
    """
    fresh = file.with_name(f".{file.name}.new")
    fresh.unlink(missing_ok=True)  # a process that died has left it
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w", encoding="utf-8") as stream:
        json.dump(value, stream, indent=1, sort_keys=True)
        stream.write("\n")
    fresh.replace(file)


def entries() -> list[tuple[Path, Manifest]]:
    """Every whole entry of the cache, by name."""
    if not releases().is_dir():
        return []
    found = [(entry, read(entry)) for entry in sorted(releases().iterdir()) if entry.name[0] != "."]
    return [(entry, manifest) for entry, manifest in found if manifest]


def size(directory: Path) -> int:
    """The bytes that a directory's files hold, as far as we see: each file counted once, links not followed."""
    seen = {}
    for parent, _, names in os.walk(directory):
        for name in names:
            with contextlib.suppress(OSError):  # it is going, or another user's
                status = os.lstat(Path(parent) / name)
                seen[status.st_dev, status.st_ino] = status.st_size
    return sum(seen.values())


@contextlib.contextmanager
def lock(name: str, *, progress: Report, does: str = "fetches") -> Iterator[None]:
    """Held by one process at a time; the second says that it waits. It ends with the process that holds it.

    Raises ProvisionError where it cannot be taken, as one that another user has made.
    """
    with held(_lock_file(name), progress=progress, waits_for=f"another process that {does} {name}"):
        yield


@contextlib.contextmanager
def held(file: Path, *, progress: Report, waits_for: str) -> Iterator[None]:
    """A lock as ``lock`` is one, in a file of its own place in the cache."""
    _made(file.parent)
    guard = filelock.FileLock(file, mode=0o600)
    if not _taken(guard, seconds=0):
        progress(f"waiting for {waits_for}")
        _taken(guard, seconds=-1)
    try:
        yield
    finally:
        guard.release()


@contextlib.contextmanager
def if_free(name: str) -> Iterator[bool]:
    """Whether nobody holds a lock; it is held meanwhile then. Raises ProvisionError as ``lock`` does."""
    guard = filelock.FileLock(_lock_file(name), mode=0o600)
    free = _taken(guard, seconds=0)
    try:
        yield free
    finally:
        guard.release()  # nothing, where it was not free


def _lock_file(name: str) -> Path:
    return _made(root() / "locks") / f"{name}.lock"


def _taken(guard: filelock.BaseFileLock, *, seconds: float) -> bool:
    """Whether a lock was free within these seconds; below zero there is no limit."""
    try:
        guard.acquire(timeout=seconds)
    except filelock.Timeout:  # an OSError too
        return False
    except OSError as error:
        raise ProvisionError(
            f"the lock {guard.lock_file} of the cache cannot be taken: {error.strerror or error}; only who may write "
            f"that file can do that, others set XDG_CACHE_HOME to a directory of their own"
        ) from error
    return True


def discard(entry: Path) -> None:
    """Remove an entry: it is none from the first moment on, however far the removal comes. The caller holds its lock.

    Raises ProvisionError where it may not be removed, and where something of it is left.
    """
    gone = entry.with_name(f"{REMOVED}{entry.name}-{secrets.token_hex(4)}")
    try:
        entry.rename(gone)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise ProvisionError(
            f"{entry} in the cache cannot be removed: {error.strerror}; only who may write {entry.parent} can do that"
        ) from error
    left = sweep(entry.parent)
    if gone in left:
        raise ProvisionError(left[gone])


def sweep(parent: Path) -> dict[Path, str]:
    """Finish the removals among the entries of a folder that were interrupted; what is left all the same, and why."""
    found = {path: _delete(path) for path in sorted(parent.glob(f"{REMOVED}*"))}
    return {path: why for path, why in found.items() if why}


def _delete(tree: Path) -> str:
    """Delete as much of a removed entry as can be; what is to be said of the rest, nothing where there is none."""
    shutil.rmtree(tree, ignore_errors=True)
    if not tree.exists():
        return ""
    try:
        shutil.rmtree(tree)  # again, for the reason
    except FileNotFoundError:  # another process deletes it too
        return ""
    except OSError as error:
        return (
            f"{tree} is left of an entry that was removed from the cache, {formatting.size(size(tree))}: "
            f"{error.strerror or error}; only who may write all of it can delete that"
        )
    return ""


@contextlib.contextmanager
def staged(name: str, *, among: Path | None = None, mode: int = 0o755) -> Iterator[Path]:
    """A directory to make the entry ``name`` in; it becomes the entry when the block ends without an error.

    ``among``: the folder of its kind, that of releases without it. ``mode`` is the entry's.
    The caller holds the lock of ``name``, so what another fetch of it left behind is stale, and is removed.
    """
    parent = _made(among or releases())
    for stale in parent.glob(f"{STAGING}{name}-*"):
        shutil.rmtree(stale, ignore_errors=True)
    staging = Path(tempfile.mkdtemp(prefix=f"{STAGING}{name}-", dir=parent))
    try:
        yield staging
        staging.chmod(mode)
        entry = parent / name
        if entry.exists():
            entry.rename(staging / ".replaced")
        staging.rename(entry)
        shutil.rmtree(entry / ".replaced", ignore_errors=True)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _made(directory: Path) -> Path:
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ProvisionError(
            f"the cache {directory} cannot be made: {error.strerror}; set XDG_CACHE_HOME to a writable directory"
        ) from error
    return directory
