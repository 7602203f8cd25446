"""Releases in tarballs: ``mysql:8.4=mysql-8.4.8-linux-glibc2.17-x86_64.tar.xz``, unpacked into the cache."""

from __future__ import annotations

import hashlib
from pathlib import Path

from pytest_dbcluster.errors import CommandFailed, ConfigError
from pytest_dbcluster.formatting import Report
from pytest_dbcluster.releases import apt
from pytest_dbcluster.system import cache

SUFFIXES = (".tar.xz", ".tar.gz", ".tgz", ".tar.zst", ".tar.bz2", ".tar")
ROOT = "unpacked"
MANIFEST = "tarball.json"
_MINUTES = 60


def check(written: str) -> None:
    """Raise ConfigError if a path of the user is neither a directory nor a tarball. ``written``: ``NAME=PATH``."""
    name, _, text = written.partition("=")
    path = Path(text).expanduser()
    if path.is_dir() or (path.is_file() and path.name.endswith(SUFFIXES)):
        return
    if path.exists():
        raise ConfigError(f"{name}={text}: {text} is neither a directory nor a tarball ({', '.join(SUFFIXES)})")
    raise ConfigError(f"{name}={text}: there is no directory {text}")


def unpack(file: Path, progress: Report) -> Path:
    """The directory of an unpacked tarball in the cache; unpacked again only if the file has changed.

    Raises ConfigError for a file that tar cannot read, ProvisionError for a cache that we cannot write.
    """
    status = file.stat()
    signature = [cache.FORMAT, str(file), status.st_size, status.st_mtime_ns]
    name = "tar-" + hashlib.sha256(repr(signature).encode()).hexdigest()[:12]
    entry = cache.releases() / name
    with cache.lock(name, progress=progress, does="unpacks"):
        if cache.read_manifest(entry / MANIFEST, lambda value: value) != signature:
            progress(f"unpacking {file}")
            with cache.stage(name) as staging:
                (staging / ROOT).mkdir()
                _extract(file, staging / ROOT)
                cache.write_manifest(staging / MANIFEST, signature)
    return _top(entry / ROOT)


def _extract(file: Path, into: Path) -> None:
    command = ["tar", "--extract", "--file", str(file), "--directory", str(into), "--no-same-owner"]
    try:
        apt.run(command, seconds=30 * _MINUTES)
    except CommandFailed as error:
        raise ConfigError(f"cannot unpack {file}: {error}") from error


def _top(directory: Path) -> Path:
    """The only directory in a directory, because most tarballs have one; otherwise the directory itself."""
    entries = list(directory.iterdir())
    return entries[0] if len(entries) == 1 and entries[0].is_dir() else directory
