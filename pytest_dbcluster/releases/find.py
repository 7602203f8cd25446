"""Find a release by its name: in a directory, on PATH, in the cache, or on a Debian mirror."""

from __future__ import annotations

import dataclasses
import os
import shutil
from pathlib import Path

from pytest_dbcluster.errors import ConfigError, ProvisionError, Unsupported
from pytest_dbcluster.formatting import Report
from pytest_dbcluster.releases.release import Release
from pytest_dbcluster.spec import TOOLS, VENDORS, ReleaseName
from pytest_dbcluster.system import cache


@dataclasses.dataclass(frozen=True)
class Known:
    """One row of ``dbcluster releases``."""

    name: str
    """The name as users write it."""

    state: str
    """"cached", "on PATH", "can be fetched" or "not found"."""

    version: str = ""
    """The exact version, empty if unknown."""

    size: int = 0
    """Bytes on disk, 0 if unknown."""

    source: str = ""
    """The place of the release, or where we would fetch it from."""


def find(name: ReleaseName | str, *, progress: Report | None = None, mirror: str | None = None) -> Release:
    """The release with this name, fetched if needed. ``name``: a server ("mariadb:10.11"), "sysbench" or "haproxy".

    The sources, in this order:

    - the directory in the name, then PATH (``mariadb:path``)
    - the cache
    - the apt suites of this machine
    - other suites of its mirrors or of ``mirror`` (in the environment DBCLUSTER_MIRROR)

    Raises ConfigError for an unknown version. If no source has the release, raises ProvisionError, or Unsupported on
    a machine without apt. Raises ProvisionError also for a cache that other users can write. The message lists what
    the user can do.
    """
    from pytest_dbcluster.releases import fetched as cached
    from pytest_dbcluster.releases import local_programs

    if isinstance(name, str):
        name = ReleaseName(name, "") if name in TOOLS else ReleaseName.parse(name)
    if name.directory:
        return local_programs.in_directory(name)
    check_age(name)
    if name.version == "path":
        return local_programs.on_path(name)
    report = progress or (lambda _: None)
    cache.require_trusted(cache.releases())
    return cached.lookup(name.product, name.version, report) or _fetch(name, report, mirror)


def check_age(name: ReleaseName) -> None:
    """Raise ConfigError for a server that is older than the oldest one that can be measured."""
    from pytest_dbcluster.releases import catalogue

    if name.product in VENDORS and (old := catalogue.too_old(name.product, name.version, name.series)):
        raise ConfigError(old)


def unknown_release(name: ReleaseName) -> ConfigError:
    """The error for a release that cannot be fetched and that names no directory."""
    from pytest_dbcluster.releases import catalogue

    known = ", ".join(candidate.name for candidate in catalogue.OFFERS if candidate.product in VENDORS)
    return ConfigError(f"unknown release {name}; known: {known}; others as {name}=DIRECTORY")


def check(name: ReleaseName) -> None:
    """Raise ConfigError for a release that is too old, unknown, or whose directory is missing.

    Does not download or start anything.
    """
    from pytest_dbcluster.releases import catalogue

    check_age(name)
    if name.directory:
        if not Path(name.directory).expanduser().is_dir():
            raise ConfigError(f"{name}={name.directory}: there is no directory {name.directory}")
    elif name.version != "path" and catalogue.offer(name.product, name.version) is None:
        from pytest_dbcluster.releases import fetched

        if fetched.lookup(name.product, name.version) is None:
            raise unknown_release(name)


def is_local(name: ReleaseName) -> bool:
    """Whether ``find`` can find it without a download. Raises what ``check`` raises."""
    from pytest_dbcluster.releases import fetched

    check(name)
    return bool(name.directory) or name.version == "path" or fetched.lookup(name.product, name.version) is not None


def _fetch(name: ReleaseName, progress: Report, mirror: str | None) -> Release:
    from pytest_dbcluster.releases import catalogue, local_programs, sources
    from pytest_dbcluster.releases import fetched as cached

    offer = catalogue.offer(name.product, name.version)
    if offer is None:
        raise unknown_release(name)
    mirror = mirror or os.environ.get("DBCLUSTER_MIRROR")
    candidates = sources.candidates(offer, sources.host_entries(), mirror)
    try:
        return cached.fetch(offer, candidates, progress)
    except (ProvisionError, Unsupported) as error:
        tool = local_programs.tool_on_path(offer.product, str(error)) if _installable(offer.product) else None
        if tool:
            progress(f"{offer.name}: using {tool.source}")
            return tool
        kind = Unsupported if isinstance(error, Unsupported) else ProvisionError
        raise kind(f"{offer.name} cannot be fetched: {error}. {_alternatives(offer.name)}") from error


def _installable(product: str) -> bool:
    """Whether a tool may come from PATH. The systems of guests and stand-in hosts are root directories, not tools."""
    from pytest_dbcluster.releases.catalogue import GUEST_SYSTEM, STAND_IN_SYSTEM

    return product in TOOLS and product not in (GUEST_SYSTEM, STAND_IN_SYSTEM)


def _alternatives(name: str) -> str:
    product = name.partition(":")[0]
    local = ""
    if _installable(product):
        local = f"install {product}; "
    elif product not in TOOLS:
        local = (
            f"use an unpacked release with --db-release {name}=DIRECTORY, or the installed one with {product}:path; "
        )
    return (
        f"What you can do: {local}name another Debian mirror with DBCLUSTER_MIRROR=URL; run `dbcluster fetch {name}` "
        f"on a machine with network access, and copy its {cache.root()} to this machine"
    )


def cached_releases() -> list[Known]:
    """The releases in the cache, sorted by name."""
    return sorted(
        (
            Known(_name(manifest.product, manifest.version), "cached", manifest.exact, manifest.size, str(entry))
            for entry, manifest in cache.entries()
        ),
        key=lambda row: row.name,
    )


def list_releases(mirror: str | None = None) -> list[Known]:
    """Every known release and tool with its state on this machine. Does not fetch anything."""
    from pytest_dbcluster.releases import catalogue, local_programs, sources

    fetched = {row.name: row for row in cached_releases()}
    entries = sources.host_entries()
    rows: dict[str, Known] = {}
    for offer in catalogue.OFFERS:
        candidates = sources.candidates(offer, entries, mirror or os.environ.get("DBCLUSTER_MIRROR"))
        where = candidates[0].where if candidates else "no apt source of this system has it"
        row = Known(offer.name, "can be fetched" if candidates else "not found", source=where)
        rows[offer.name] = fetched.pop(offer.name, row)
    rows |= fetched
    for product in VENDORS:
        program = local_programs.server_on_path(product)
        rows[f"{product}:path"] = Known(
            f"{product}:path", "on PATH" if program else "not found", source=str(program or "")
        )
    return list(rows.values())


def find_program(program: str, product: str) -> Path | None:
    """The path of a program on PATH, otherwise in the newest cached release of this product with it; or None."""
    from pytest_dbcluster.releases import local_programs

    installed = shutil.which(program, path=os.pathsep.join(map(str, local_programs.path_directories())))
    if installed:
        return Path(installed)
    release = newest_with(program, product)
    return release.bin / program if release else None


def newest_with(program: str, product: str) -> Release | None:
    """The newest cached release of this product that has a program; None if no release has it."""
    newest_first = [row.name for row in reversed(cached_releases()) if row.name.startswith(f"{product}:")]
    releases = (find(name) for name in newest_first)
    return next((release for release in releases if (release.bin / program).exists()), None)


def _name(product: str, version: str) -> str:
    return f"{product}:{version}" if version else product
