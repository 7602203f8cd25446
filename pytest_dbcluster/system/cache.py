"""The cache: fetched releases, images and other files that we make once per product, version and architecture.

An entry appears complete or not at all. We make it in a staging directory beside its final path, force it to disk, and
then rename it. We write its manifest, a JSON file, last: an entry with a manifest is complete. If an entry is damaged
later, we rename it and make it again (``set_aside_if_damaged``).
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

from pytest_dbcluster import formatting, wait
from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.formatting import Report
from pytest_dbcluster.system import entry_files, owned_files, shared_directory

MANIFEST = "manifest.json"
STAGING = ".fetching-"
REPLACED = ".replaced"  # in a new entry, for a moment: the entry that was there before
REMOVED = ".removed-"
DAMAGED = ".damaged-"
REASON = "damage.txt"  # in an entry that was set aside: what is wrong with it
FORMAT = 2  # of an entry; entries of another format are fetched again
SILENT_SECONDS = 1.0  # shorter waits for a lock are not reported

Value = TypeVar("Value")


def root() -> Path:
    """The directory of the cache: ``$XDG_CACHE_HOME/pytest-dbcluster``, by default ``~/.cache/pytest-dbcluster``."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if base.startswith("/") else Path.home() / ".cache") / "pytest-dbcluster"


def releases() -> Path:
    """The directory of the fetched releases."""
    return root() / "releases"


def require_trusted(directory: Path) -> None:
    """Raise ProvisionError if another user could have written the programs in a directory of the cache.

    After sudo -E, root uses the cache of the calling user and would run that user's programs.
    """
    if reason := owned_files.distrust_reason(root()) or owned_files.distrust_reason(directory):
        raise ProvisionError(
            f"the cache {root()} is not used, because another user could have changed its programs: {reason}; set "
            "XDG_CACHE_HOME to a directory that only you can write, or correct owner and mode"
        )


@dataclasses.dataclass(frozen=True)
class Manifest:
    """The description of a cached release. We write it last, so an entry with a manifest is complete."""

    product: str
    """The product, such as mariadb or sysbench."""

    version: str
    """The version as the user names it ("10.11")."""

    exact: str
    """The version that the program reports ("10.11.19")."""

    architecture: str
    """Debian's name of the architecture, such as amd64."""

    suite: str
    """The suite of its packages, such as bookworm."""

    source: str
    """The mirror and suite that it came from, for messages."""

    packages: dict[str, str]
    """Package name -> version."""

    downloaded: int
    """Size of the packages, in bytes."""

    size: int
    """Size on disk, in bytes."""

    fetched: str
    """Time in ISO 8601."""

    format: int = FORMAT
    """Version of the layout, ``FORMAT``."""

    supplier: str = ""
    """Who supplied the packages, such as Debian or a vendor's repository; empty in older entries."""


def read(entry: Path) -> Manifest | None:
    """The manifest of a release; None if it is missing or has another format."""
    return read_manifest(entry / MANIFEST, lambda fields: Manifest(**fields) if fields["format"] == FORMAT else None)


def write(entry: Path, manifest: Manifest) -> None:
    """Write the manifest of a release into its staging directory. Raises OSError."""
    write_manifest(entry / MANIFEST, dataclasses.asdict(manifest))


def read_manifest(file: Path, parse: Callable[[Any], Value | None]) -> Value | None:
    """The JSON value of a manifest, converted by ``parse``; None if the manifest is missing or incomplete.

    For a manifest of another format ``parse`` returns None, or raises KeyError, TypeError or ValueError.
    """
    try:
        return parse(json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, KeyError):
        return None


def write_manifest(file: Path, value: object, *, mode: int = 0o666) -> None:
    """Write a JSON value as the manifest of an entry, atomically. Call it after the entry's other files are written.

    ``mode``: permissions of the file before the umask; 0o600 for a manifest with a password. Raises OSError.
    """
    fresh = file.with_name(f".{file.name}.new")
    fresh.unlink(missing_ok=True)  # left by a process that died
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w", encoding="utf-8") as stream:
        json.dump(value, stream, indent=1, sort_keys=True)
        stream.write("\n")
        stream.flush()
        os.fsync(stream.fileno())
    fresh.replace(file)


def entries() -> list[tuple[Path, Manifest]]:
    """Every complete release in the cache, sorted by name."""
    if not releases().is_dir():
        return []
    candidates = [(entry, read(entry)) for entry in sorted(releases().iterdir()) if entry.name[0] != "."]
    return [(entry, manifest) for entry, manifest in candidates if manifest]


def size(directory: Path) -> int:
    """The size of all readable files in a directory, in bytes. Hard links count once; links are not followed."""
    sizes = {}
    for parent, _, names in os.walk(directory):
        for name in names:
            with contextlib.suppress(OSError):  # another process removes the file, or another user owns it
                status = os.lstat(Path(parent) / name)
                sizes[status.st_dev, status.st_ino] = status.st_size
    return sum(sizes.values())


@contextlib.contextmanager
def lock(name: str, *, progress: Report, does: str = "fetches") -> Iterator[None]:
    """Hold the lock ``name`` during the block. One process holds it at a time; others report that they wait.

    The lock is released when its process dies. Raises ProvisionError if we cannot take the lock, for example because
    another user created its file. ``does``: what the other process does, for the report.
    """
    with hold_file(_lock_file(name), progress=progress, waits_for=f"another process that {does} {name}"):
        yield


@contextlib.contextmanager
def hold_file(file: Path, *, progress: Report, waits_for: str) -> Iterator[None]:
    """Hold a lock in this file during the block, as ``lock`` does. ``waits_for``: the other process, for the report.

    A wait below ``SILENT_SECONDS`` is not reported, because another process only reads the entry then. Raises LockHeld
    after ``wait.locks`` seconds.
    """
    _create(file.parent)
    guard = filelock.FileLock(file, mode=0o600)
    if not _acquire(guard, seconds=min(SILENT_SECONDS, wait.locks.seconds)):
        progress(f"waiting for {waits_for}; {shared_directory.limit()}")
        if not _acquire(guard, seconds=wait.locks.seconds):
            who = shared_directory.describe(shared_directory.lockers(file.stat()), commands=True)
            raise shared_directory.held_error(f"{waits_for} ({who or file})")
    try:
        yield
    finally:
        guard.release()


@contextlib.contextmanager
def if_free(name: str) -> Iterator[bool]:
    """Try to hold a lock during the block; yields whether it was free. Raises ProvisionError as ``lock`` does."""
    guard = filelock.FileLock(_lock_file(name), mode=0o600)
    free = _acquire(guard, seconds=0)
    try:
        yield free
    finally:
        guard.release()  # does nothing if the lock was not free


def is_free(file: Path) -> bool:
    """Whether nobody holds the lock in this file; False if we may not try it."""
    if not file.exists():
        return True
    guard = filelock.FileLock(file, mode=0o600)
    try:
        return _acquire(guard, seconds=0)
    except ProvisionError:
        return False
    finally:
        guard.release()


def lock_file(name: str) -> Path:
    """The file of the lock ``name``; it need not exist."""
    return root() / "locks" / f"{name}.lock"


def _lock_file(name: str) -> Path:
    file = lock_file(name)
    _create(file.parent)
    return file


def _acquire(guard: filelock.BaseFileLock, *, seconds: float) -> bool:
    """Try to take a lock for at most ``seconds``. Returns whether we have it."""
    try:
        guard.acquire(timeout=seconds)
    except filelock.Timeout:  # a subclass of OSError
        return False
    except OSError as error:
        raise ProvisionError(
            f"cannot take the lock {guard.lock_file} of the cache: {error.strerror or error}; get write permission for "
            "that file, or set XDG_CACHE_HOME to your own directory"
        ) from error
    return True


def discard(entry: Path) -> None:
    """Remove an entry. It leaves the cache at once, even if something interrupts the removal of its files.

    The caller holds the lock of the entry. Raises ProvisionError if we may not remove all of the entry.
    """
    gone = entry.with_name(f"{REMOVED}{entry.name}-{secrets.token_hex(4)}")
    try:
        entry.rename(gone)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise ProvisionError(
            f"cannot remove {entry} from the cache: {error.strerror}; it needs write permission for {entry.parent}"
        ) from error
    left = sweep(entry.parent)
    if gone in left:
        raise ProvisionError(left[gone])


def set_aside_if_damaged(entry: Path, manifest: str, progress: Report) -> bool:
    """Rename an entry if its files have changed since they were written; return whether it did.

    manifest: the file name of its manifest. The caller holds the lock of the entry, and makes the entry again.
    Reports the damage to ``progress``. The last damaged version of each entry is kept for inspection. Raises
    ProvisionError.
    """
    if not entry.is_dir():
        return False
    try:
        if not (reason := _damage(entry, manifest)):
            return False
        for earlier in entry.parent.glob(f"{DAMAGED}{entry.name}-*"):
            shutil.rmtree(earlier, ignore_errors=True)
        aside = entry.with_name(f"{DAMAGED}{entry.name}-{secrets.token_hex(4)}")
        entry.rename(aside)
    except OSError as error:
        raise ProvisionError(
            f"cannot check {entry} in the cache: {error.strerror}: {error.filename}; run as the owner of the cache, or "
            "set XDG_CACHE_HOME to your own directory"
        ) from error
    with contextlib.suppress(OSError):
        (aside / REASON).write_text(reason)
    progress(
        f"{entry} is damaged: {reason}. We make it again; the damaged one is now {aside.name} (dbcluster cache lists "
        "it, dbcluster cache clean removes it)"
    )
    return True


def is_damaged(entry: Path, manifest: str) -> bool:
    """Whether ``set_aside_if_damaged`` would set this entry aside. Needs no lock. Raises OSError."""
    return entry.is_dir() and bool(_damage(entry, manifest))


def _damage(entry: Path, manifest: str) -> str:
    try:
        content = (entry / manifest).read_bytes()
        document = json.loads(content)
    except FileNotFoundError:
        return f"{manifest} is missing"
    except IsADirectoryError:
        return f"{manifest} is a directory"
    except ValueError:
        return f"{manifest} is not JSON" if content.strip() else f"{manifest} is empty"
    if manifest == MANIFEST and isinstance(document, dict) and not entry_files.is_recorded(entry):
        # Older versions recorded the size of all files together.
        total, wanted = size(entry) - len(content), document.get("size", 0)
        if total != wanted:
            return f"its files have {formatting.quantity(total, 'byte')} instead of {wanted}"
    return entry_files.damage(entry)


def leftovers(parent: Path) -> dict[Path, str]:
    """The damaged and the unfinished entries of a directory -> a description of each.

    If the lock of an unfinished entry is held, a process is still making it.
    """
    found = {}
    for path in sorted(parent.glob(f"{DAMAGED}*")):
        try:
            found[path] = f"damaged: {(path / REASON).read_text()}"
        except OSError:
            found[path] = "damaged"
    unfinished = "unfinished: the process that made it was killed"
    return found | dict.fromkeys(sorted(parent.glob(f"{STAGING}*")), unfinished)


def entry_of(path: Path) -> Path:
    """The entry of a path: for a damaged or unfinished entry (``leftovers``) the original one, otherwise the path."""
    for prefix in (DAMAGED, STAGING):
        if path.name.startswith(prefix):
            return path.with_name(path.name.removeprefix(prefix).rpartition("-")[0])
    return path


def sweep(parent: Path) -> dict[Path, str]:
    """Finish interrupted removals of entries in a directory. Returns the paths that remain -> why."""
    reasons = {path: _delete(path) for path in sorted(parent.glob(f"{REMOVED}*"))}
    return {path: reason for path, reason in reasons.items() if reason}


def _delete(tree: Path) -> str:
    """Delete a removed entry as far as possible. Returns a message about what is left, empty if nothing is."""
    shutil.rmtree(tree, ignore_errors=True)
    if not tree.exists():
        return ""
    try:
        shutil.rmtree(tree)  # again, to get the error
    except FileNotFoundError:  # another process deletes it at the same time
        return ""
    except OSError as error:
        return (
            f"{formatting.size(size(tree))} of a removed cache entry are left in {tree}: "
            f"{error.strerror or error}; delete it as a user with write permission for all of it"
        )
    return ""


@contextlib.contextmanager
def stage(name: str, *, among: Path | None = None, mode: int = 0o755) -> Iterator[Path]:
    """A staging directory for the entry ``name``. It becomes the entry when the block ends without an error.

    ``among``: the parent of the entry, by default the directory of releases. ``mode``: permissions of the entry. The
    caller holds the lock of ``name``. So an older staging directory of this entry is stale, and we remove it. We also
    remove the parent if it was made for this entry and is empty.
    """
    parent = among or releases()
    made = not parent.exists()
    for stale in parent.glob(f"{STAGING}{name}-*"):
        shutil.rmtree(stale, ignore_errors=True)
    staging = _staging(name, parent)
    try:
        yield staging
        staging.chmod(mode)
        entry_files.record(staging)
        entry_files.make_durable(staging)
        entry = parent / name
        if entry.exists():
            entry.rename(staging / REPLACED)
        staging.rename(entry)
        entry_files.sync(parent)
        shutil.rmtree(entry / REPLACED, ignore_errors=True)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
        if made:
            with contextlib.suppress(OSError):  # the entry is there
                parent.rmdir()


def _staging(name: str, parent: Path) -> Path:
    prefix = f"{STAGING}{name}-"
    try:
        return Path(tempfile.mkdtemp(prefix=prefix, dir=_create(parent)))
    except FileNotFoundError:  # another process has just removed the parent that it had made
        return Path(tempfile.mkdtemp(prefix=prefix, dir=_create(parent)))


def _create(directory: Path) -> Path:
    """Create a directory of the cache. Raises ProvisionError."""
    try:
        made = [path for path in (directory, *directory.parents) if not path.exists()]
        directory.mkdir(parents=True, exist_ok=True)
        for path in made:  # whatever the umask is: we refuse programs that others may write
            path.chmod(path.stat().st_mode & ~0o022)
    except OSError as error:
        raise ProvisionError(
            f"cannot create the cache {directory}: {error.strerror}; set XDG_CACHE_HOME to a writable directory"
        ) from error
    return directory
