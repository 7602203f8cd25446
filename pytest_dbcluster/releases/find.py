"""Find a release by its name: in a directory, on PATH, in the cache, or with a Debian mirror."""

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
    """One row of ``dbcluster releases``.

    state: "cached", "on PATH", "can be fetched" or "not found". version: exact where it is known. size:
    bytes on disk, 0 where it is not known. source: where it is, or where it would be fetched from.
    """

    name: str
    state: str
    version: str = ""
    size: int = 0
    source: str = ""


def find(name: ReleaseName | str, *, progress: Report | None = None, mirror: str | None = None) -> Release:
    """The release of this name, fetched when it has to be; ``name`` is a server's, "sysbench" or "haproxy".

    Sources in this order: the directory that the name gives, PATH (``mariadb:path``), the cache, the host's own apt
    suites, further suites of its mirrors or of ``mirror`` (environment: DBCLUSTER_MIRROR).
    Raises ConfigError for a version that nobody has; ProvisionError, or Unsupported on a host without apt, with the
    ways out when there is none to be had.
    """
    from pytest_dbcluster.releases import fetched as cached
    from pytest_dbcluster.releases import local_programs

    if isinstance(name, str):
        name = ReleaseName(name, "") if name in TOOLS else ReleaseName.parse(name)
    if name.directory:
        return local_programs.in_directory(name)
    if name.version == "path":
        return local_programs.on_path(name)
    return cached.lookup(name.product, name.version) or _fetched(name, progress or (lambda line: None), mirror)


def _fetched(name: ReleaseName, progress: Report, mirror: str | None) -> Release:
    from pytest_dbcluster.releases import catalogue, local_programs, sources
    from pytest_dbcluster.releases import fetched as cached

    offer = catalogue.offer(name.product, name.version)
    if offer is None:
        known = ", ".join(each.name for each in catalogue.OFFERS)
        raise ConfigError(f"unknown release {name}; known: {known}; others as {name}=DIRECTORY")
    mirror = mirror or os.environ.get("DBCLUSTER_MIRROR")
    places = sources.candidates(offer, sources.host_entries(), mirror)
    try:
        return cached.fetch(offer, places, progress)
    except (ProvisionError, Unsupported) as error:
        tool = local_programs.tool_on_path(offer.product, str(error)) if offer.product in TOOLS else None
        if tool:
            progress(f"{offer.name}: taking {tool.source}")
            return tool
        kind = Unsupported if isinstance(error, Unsupported) else ProvisionError
        raise kind(f"{offer.name} cannot be fetched: {error}. {_ways_out(offer.name)}") from error


def _ways_out(name: str) -> str:
    product = name.partition(":")[0]
    local = (
        f"install {product}"
        if product in TOOLS
        else f"--db-release {name}=DIRECTORY takes an unpacked one, {product}:path the installed one"
    )
    return (
        f"Ways out: {local}; DBCLUSTER_MIRROR=URL names another Debian mirror; `dbcluster fetch {name}` on a "
        f"connected machine fills {cache.root()}, which can be copied to this one"
    )


def cached() -> list[Known]:
    """What the cache holds, by name."""
    return sorted(
        (
            Known(_name(manifest.product, manifest.version), "cached", manifest.exact, manifest.size, str(entry))
            for entry, manifest in cache.entries()
        ),
        key=lambda row: row.name,
    )


def known(mirror: str | None = None) -> list[Known]:
    """Every release and tool that can be named, with its state on this host. Nothing is fetched for it."""
    from pytest_dbcluster.releases import catalogue, local_programs, sources

    fetched = {row.name: row for row in cached()}
    entries = sources.host_entries()
    rows: dict[str, Known] = {}
    for offer in catalogue.OFFERS:
        places = sources.candidates(offer, entries, mirror or os.environ.get("DBCLUSTER_MIRROR"))
        where = places[0].where if places else "no apt source of this system has it"
        row = Known(offer.name, "can be fetched" if places else "not found", source=where)
        rows[offer.name] = fetched.pop(offer.name, row)
    rows |= fetched
    for product in VENDORS:
        program = local_programs.server_on_path(product)
        rows[f"{product}:path"] = Known(
            f"{product}:path", "on PATH" if program else "not found", source=str(program or "")
        )
    return list(rows.values())


def elsewhere(program: str, product: str) -> Path | None:
    """A program that may come from anywhere: on PATH, or else of a cached release of this product; None without any."""
    from pytest_dbcluster.releases import local_programs

    installed = shutil.which(program, path=os.pathsep.join(map(str, local_programs.path_directories())))
    if installed:
        return Path(installed)
    newest_first = [row.name for row in reversed(cached()) if row.name.startswith(f"{product}:")]
    found = (find(name).bin / program for name in newest_first)
    return next((each for each in found if each.exists()), None)


def _name(product: str, version: str) -> str:
    return f"{product}:{version}" if version else product
