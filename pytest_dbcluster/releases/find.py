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
    state: str
    """"cached", "on PATH", "can be fetched" or "not found"."""

    version: str = ""
    """The exact version, empty if unknown."""

    size: int = 0
    """Bytes on disk, 0 if unknown."""

    source: str = ""
    """Where the release lies, or where we would fetch it from."""


def find(name: ReleaseName | str, *, progress: Report | None = None, mirror: str | None = None) -> Release:
    """The release with this name, fetched if needed. ``name``: a server ("mariadb:10.11"), "sysbench" or "haproxy".

    Sources in this order: the directory in the name, PATH (``mariadb:path``), the cache, the apt suites of this
    machine, other suites of its mirrors or of ``mirror`` (environment: DBCLUSTER_MIRROR).
    Raises ConfigError for an unknown version; ProvisionError, or Unsupported on a machine without apt, when no source
    has the release, and ProvisionError for a cache that others can write. The message lists what the user can do.
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
    return cached.lookup(name.product, name.version, report) or _fetched(name, report, mirror)


def check_age(name: ReleaseName) -> None:
    """Raise ConfigError for a server that is older than the oldest one that can be measured."""
    from pytest_dbcluster.releases import catalogue

    if name.product in VENDORS and (old := catalogue.too_old(name.product, name.version, name.series)):
        raise ConfigError(old)


def unknown(name: ReleaseName) -> ConfigError:
    """Return the error for a release that nobody offers and that names no directory."""
    from pytest_dbcluster.releases import catalogue

    known = ", ".join(candidate.name for candidate in catalogue.OFFERS)
    return ConfigError(f"unknown release {name}; known: {known}; others as {name}=DIRECTORY")


def check(name: ReleaseName) -> None:
    """Raise ConfigError for a release that this machine cannot have: too old, unknown, or without its directory.

    Downloads and starts nothing.
    """
    from pytest_dbcluster.releases import catalogue

    check_age(name)
    if name.directory:
        if not Path(name.directory).expanduser().is_dir():
            raise ConfigError(f"{name}={name.directory}: there is no directory {name.directory}")
    elif name.version != "path" and catalogue.offer(name.product, name.version) is None:
        from pytest_dbcluster.releases import fetched

        if fetched.lookup(name.product, name.version) is None:
            raise unknown(name)


def at_hand(name: ReleaseName) -> bool:
    """Whether ``find`` has nothing to fetch. Raises what ``check`` raises."""
    from pytest_dbcluster.releases import fetched

    check(name)
    return bool(name.directory) or name.version == "path" or fetched.lookup(name.product, name.version) is not None


def _fetched(name: ReleaseName, progress: Report, mirror: str | None) -> Release:
    from pytest_dbcluster.releases import catalogue, local_programs, sources
    from pytest_dbcluster.releases import fetched as cached

    offer = catalogue.offer(name.product, name.version)
    if offer is None:
        raise unknown(name)
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
        raise kind(f"{offer.name} cannot be fetched: {error}. {_ways_out(offer.name)}") from error


def _installable(product: str) -> bool:
    """Whether a tool may come from PATH. Guests and stand-in hosts have the files of their system as their root."""
    from pytest_dbcluster.releases.catalogue import GUEST_SYSTEM, STAND_IN_SYSTEM

    return product in TOOLS and product not in (GUEST_SYSTEM, STAND_IN_SYSTEM)


def _ways_out(name: str) -> str:
    product = name.partition(":")[0]
    local = ""
    if _installable(product):
        local = f"install {product}; "
    elif product not in TOOLS:
        local = f"--db-release {name}=DIRECTORY uses an unpacked release, {product}:path the installed one; "
    return (
        f"Ways out: {local}DBCLUSTER_MIRROR=URL names another Debian mirror; `dbcluster fetch {name}` on a "
        f"machine with network access fetches it into {cache.root()}, which you can copy to this machine"
    )


def cached() -> list[Known]:
    """The releases in the cache, sorted by name."""
    return sorted(
        (
            Known(_name(manifest.product, manifest.version), "cached", manifest.exact, manifest.size, str(entry))
            for entry, manifest in cache.entries()
        ),
        key=lambda row: row.name,
    )


def known(mirror: str | None = None) -> list[Known]:
    """Every known release and tool with its state on this machine. Fetches nothing."""
    from pytest_dbcluster.releases import catalogue, local_programs, sources

    fetched = {row.name: row for row in cached()}
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


def elsewhere(program: str, product: str) -> Path | None:
    """The path of a program on PATH, or else in the newest cached release of this product that has it; or None."""
    from pytest_dbcluster.releases import local_programs

    installed = shutil.which(program, path=os.pathsep.join(map(str, local_programs.path_directories())))
    if installed:
        return Path(installed)
    release = holder(program, product)
    return release.bin / program if release else None


def holder(program: str, product: str) -> Release | None:
    """The newest cached release of this product that has a program; None when no release has it."""
    newest_first = [row.name for row in reversed(cached()) if row.name.startswith(f"{product}:")]
    releases = (find(name) for name in newest_first)
    return next((release for release in releases if (release.bin / program).exists()), None)


def _name(product: str, version: str) -> str:
    return f"{product}:{version}" if version else product
