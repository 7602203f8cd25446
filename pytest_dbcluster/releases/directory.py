"""A release in a directory that the user names: ``mariadb:11.4=/opt/mariadb-11.4``.

Three layouts are known: a vendor's tarball (bin/, scripts/, lib/plugin, share/), unpacked packages (usr/bin, usr/sbin,
usr/lib/mysql/plugin, usr/share/mysql), with or without the libraries that they need, and an entry of the cache.
"""

from __future__ import annotations

from pathlib import Path

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.releases import fetched, installed, layout, shims
from pytest_dbcluster.releases.catalogue import PROGRAMS
from pytest_dbcluster.releases.release import Release
from pytest_dbcluster.spec import ReleaseName
from pytest_dbcluster.system import cache

_BINS = ("bin", "sbin", "scripts", "libexec")


def find(name: ReleaseName) -> Release:
    """The release in ``name.directory``. Raises ConfigError when it is not there, or is another version."""
    directory = Path(name.directory).expanduser().absolute()
    if not directory.is_dir():
        raise ConfigError(f"{name}={name.directory}: there is no directory {directory}")
    manifest = cache.read(directory)
    if manifest:
        if (manifest.product, manifest.version) != (name.product, name.version):
            raise ConfigError(f"{name}: {directory} holds {manifest.product} {manifest.version}")
        return fetched.from_entry(directory, manifest)
    for prefix in (directory / part for part in layout.PREFIXES):
        programs = _programs(prefix, directory, name)
        if any(server in programs for server in layout.SERVERS[name.product]):
            return _at(name, directory, prefix, programs)
    servers = " or ".join(layout.SERVERS[name.product])
    looked = ", ".join(f"{part}/" for part in _BINS)
    raise ConfigError(f"{name}: {directory} has no {servers}; looked in {looked} of it and of usr/")


def _programs(prefix: Path, directory: Path, name: ReleaseName) -> dict[str, Path]:
    # An older tarball keeps its installer in scripts/; unpacked packages may have ss and ip outside usr.
    places = [prefix / part for part in _BINS] + [directory / part for part in ("bin", "sbin")]
    return installed.programs_in(places, PROGRAMS[name.product])


def _at(name: ReleaseName, directory: Path, prefix: Path, programs: dict[str, Path]) -> Release:
    whole = prefix != directory and shims.has_loader(directory)
    entry = installed.linked(name.product, str(directory), programs, directory if whole else None)
    if whole and not (entry / "share").exists():
        fetched.link_prefix(entry)
    found = installed.release(name, entry / "bin", prefix, str(directory))
    return installed.with_prefix(found, entry) if whole else found
