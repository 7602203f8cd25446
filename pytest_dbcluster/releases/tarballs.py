"""Releases in tarballs, unpacked into the cache: those of users, and those of a vendor's archive.

A user names a tarball: ``mysql:8.4=mysql-8.4.8-linux-glibc2.17-x86_64.tar.xz``. A tarball of an archive needs a valid
signature of its vendor.
"""

from __future__ import annotations

import dataclasses
import hashlib
import http.client
import re
import shutil
import tempfile
import urllib.error
import urllib.request
from pathlib import Path

from pytest_dbcluster import formatting
from pytest_dbcluster.errors import CommandFailed, ConfigError, ProvisionError
from pytest_dbcluster.formatting import Report
from pytest_dbcluster.releases import apt
from pytest_dbcluster.releases.vendors import signing_key
from pytest_dbcluster.releases.vendors.tarball_archive import TarballArchive
from pytest_dbcluster.system import cache

SUFFIXES = (".tar.xz", ".tar.gz", ".tgz", ".tar.zst", ".tar.bz2", ".tar")
ROOT = "unpacked"
MANIFEST = "tarball.json"
_MINUTES = 60
_ANSWER_SECONDS = 30.0
_ABSENT = (403, 404, 410)  # statuses of a server that does not have a file
_BLOCK = 2**20
_VALID = re.compile(r"^\[GNUPG:\] VALIDSIG .*\b([0-9A-F]{40})$", re.MULTILINE)  # the fingerprint of the primary key


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


@dataclasses.dataclass(frozen=True)
class Downloaded:
    """A tarball of an archive."""

    address: str
    """Where it came from."""

    size: int
    """Its size in bytes."""


def download(archive: TarballArchive, version: str, architecture: str, into: Path, progress: Report) -> Downloaded:
    """Unpack the tarball of an exact version into ``into``, after a check of its signature.

    The programs are then in ``into/bin``. Raises ProvisionError if the archive does not have it or does not answer.
    Raises it too for a wrong signature, and without a program that checks signatures.
    """
    keys = b"".join(signing_key.check(signer) for signer in archive.signers)
    for address in archive.files(version, architecture):
        with tempfile.TemporaryDirectory(dir=into) as name:
            directory = Path(name)
            file, signature = directory / address.rpartition("/")[2], directory / "signature"
            if not _get(f"{address}.asc", signature) or not _get(address, file, progress):
                continue
            _check_signature(archive, address, file, signature, keys)
            progress(f"unpacking {file.name}")
            (directory / ROOT).mkdir()
            _extract(file, directory / ROOT)
            for path in _top(directory / ROOT).iterdir():
                path.rename(into / path.name)
            return Downloaded(address, file.stat().st_size)
    places = " and ".join(address.format(series=version.rpartition(".")[0]) for address in archive.addresses)
    raise ProvisionError(f"{archive.title} has no tarball of {version} for {architecture} in {places}")


def _get(address: str, file: Path, progress: Report | None = None) -> bool:
    """Download a file; False if the server does not have it. ``progress``: gets each quarter."""
    try:
        with urllib.request.urlopen(address, timeout=_ANSWER_SECONDS) as answer, file.open("wb") as stream:
            total, arrived, quarters = int(answer.headers.get("Content-Length") or 0), 0, 0
            if progress:
                progress(f"downloading {address}{f': {formatting.size(total)}' if total else ''}")
            while block := answer.read(_BLOCK):
                stream.write(block)
                arrived += len(block)
                if progress and total and 4 * arrived // total > quarters < 3:
                    quarters = 4 * arrived // total
                    progress(f".. {formatting.size(arrived)} of {formatting.size(total)}")
            if arrived < total:
                raise ProvisionError(f"cannot download {address}: it ended after {arrived} of {total} bytes")
            return True
    except http.client.HTTPException as error:
        raise ProvisionError(f"cannot download {address}: {error!r}") from error
    except urllib.error.HTTPError as error:
        if error.code in _ABSENT:
            return False
        raise ProvisionError(f"cannot download {address}: {error}") from error
    except urllib.error.URLError as error:
        if isinstance(error.reason, FileNotFoundError):
            return False
        raise ProvisionError(f"cannot download {address}: {error.reason}") from error


def _check_signature(archive: TarballArchive, address: str, file: Path, signature: Path, keys: bytes) -> None:
    """Raise ProvisionError unless one of the archive's keys signed the file. A key may have expired since then."""
    known = [signer.fingerprint for signer in archive.signers]
    ring = signature.with_name("keys.gpg")
    ring.write_bytes(keys)
    program = next(filter(None, map(shutil.which, ("gpgv", "sqv"))), None)
    if program is None:
        raise ProvisionError(
            f"cannot check the signature of {address}: there is neither gpgv nor sqv on PATH; install gpgv, or check "
            "the tarball yourself and use it with --db-release NAME:VERSION=TARBALL"
        )
    status = ["--status-fd", "1"] if program.endswith("gpgv") else []
    try:
        output = apt.run([program, *status, "--keyring", str(ring), str(signature), str(file)])
    except CommandFailed as error:
        raise ProvisionError(
            f"{address} has no valid signature of a key that we know ({' or '.join(known)}): {error}"
        ) from error
    if status and not set(_VALID.findall(output)) & set(known):
        raise ProvisionError(f"{address} has no valid signature: {output.strip() or 'gpgv printed nothing'}")
