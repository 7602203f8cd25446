"""Find a release by its name: in a directory, on PATH, in the cache, or on a Debian mirror."""

from __future__ import annotations

import dataclasses
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_dbcluster.errors import ConfigError, ProvisionError, Unsupported
from pytest_dbcluster.formatting import Report
from pytest_dbcluster.releases.release import Release
from pytest_dbcluster.spec import TOOLS, VENDORS, ReleaseName
from pytest_dbcluster.system import cache

if TYPE_CHECKING:
    from pytest_dbcluster.releases.catalogue import Offer
    from pytest_dbcluster.releases.sources import Candidate

_ON_PATH = ("mariadb", "mysql")  # a server on PATH has one of these names; `percona:path` also works
# The states of a release on this machine. Those that can be fetched say whether we have fetched and started them.
CACHED, ON_PATH, TRIED, UNTRIED, NOT_FOUND = STATES = ("cached", "on PATH", "tried here", "untried", "not found")


@dataclasses.dataclass(frozen=True)
class Known:
    """One row of ``dbcluster releases``."""

    name: str
    """The name as users write it."""

    state: str
    """One of ``STATES``."""

    version: str = ""
    """The exact version, empty if unknown."""

    size: int = 0
    """Bytes on disk, 0 if unknown."""

    source: str = ""
    """The place of the release, or where we would fetch it from."""

    supplier: str = ""
    """Who supplies it: Debian, Ubuntu, or a vendor's repository or archive; empty for programs on PATH."""


def find(
    name: ReleaseName | str, *, progress: Report | None = None, mirror: str | None = None, portable: bool = False
) -> Release:
    """The release with this name, fetched if needed. ``name``: a server ("mariadb:10.11"), "sysbench" or "haproxy".

    The sources, in this order:

    - the directory or tarball in the name, or PATH (``mariadb:path``)
    - the cache
    - the apt suites of this machine
    - other suites of its mirrors or of ``mirror`` (in the environment DBCLUSTER_MIRROR)
    - the vendor's repository
    - a directory of ``make servers``

    ``portable``: copy a release in a directory or tarball together with its libraries. Hosts that do not see this
    machine's system can run the copy.

    Raises ConfigError for an unknown version. If no source has the release, raises ProvisionError, or Unsupported on a
    machine without apt. Raises ProvisionError also for a cache that other users can write. The message lists what the
    user can do.
    """
    from pytest_dbcluster.releases import fetched as cached
    from pytest_dbcluster.releases import local_programs

    if isinstance(name, str):
        name = ReleaseName(name, "") if name in TOOLS else ReleaseName.parse(name)
    cache.require_trusted(cache.releases())
    if name.directory:
        return local_programs.in_directory(name, progress or (lambda _: None), portable=portable)
    check_age(name)
    if name.version == "path":
        return local_programs.on_path(name)
    report = progress or (lambda _: None)
    return cached.lookup(name.product, name.version, report) or _fetch(name, report, mirror)


def check_age(name: ReleaseName) -> None:
    """Raise ConfigError for a server that is older than the oldest one that can be measured."""
    from pytest_dbcluster.releases import catalogue

    if name.product in VENDORS and (old := catalogue.too_old(name.product, name.version, name.series)):
        raise ConfigError(old)


def unknown_release(name: ReleaseName) -> ConfigError:
    """The error for a release that cannot be fetched and that names no directory."""
    from pytest_dbcluster.releases import apt, catalogue
    from pytest_dbcluster.releases.vendors.repository import ARCHIVES
    from pytest_dbcluster.releases.vendors.tarball_archive import TARBALLS

    if apt.missing_program():
        return ConfigError(
            f"unknown release {name}; this system fetches no packages: {apt.without_packages(str(name))}"
        )
    known = [
        f"{offer.name} ({' or '.join(offer.suppliers)})" for offer in catalogue.OFFERS if offer.product == name.product
    ]
    archive = ARCHIVES.get(name.product) or TARBALLS.get(name.product)
    known += [f"{name.product}:X.Y.Z ({archive.title})"] if archive else []
    others = ", ".join(product for product in VENDORS if product != name.product)
    return ConfigError(
        f"unknown release {name}; known: {', '.join(known)}; others as {name}=DIRECTORY or {name}=TARBALL; "
        f"`dbcluster releases` also lists {others}"
    )


def check(name: ReleaseName) -> None:
    """Raise ConfigError for a release that is too old, unknown, or whose directory is missing.

    Does not download or start anything.
    """
    from pytest_dbcluster.releases import catalogue, tarballs

    check_age(name)
    if name.directory:
        tarballs.check(f"{name}={name.directory}")
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

    offer = catalogue.offer(name.product, name.version)
    if offer is None:
        raise unknown_release(name)
    mirror = mirror or os.environ.get("DBCLUSTER_MIRROR")
    candidates = sources.candidates(offer, sources.host_entries(), mirror)
    try:
        return _from_any_source(offer, candidates, progress)
    except (ProvisionError, Unsupported) as error:
        is_tool = _installable(offer.product)
        other = local_programs.tool_on_path(offer.product, str(error)) if is_tool else local_programs.in_tools(name)
        if other:
            progress(f"{offer.name}: using {other.source}" + ("" if is_tool else f", because {error}"))
            return other
        kind = Unsupported if isinstance(error, Unsupported) else ProvisionError
        ways_out = _alternatives(offer.name, has_apt=kind is ProvisionError, mirrors=_mirrors(offer, candidates, error))
        raise kind(f"{offer.name} cannot be fetched: {error}. {ways_out}") from error


def _mirrors(offer: Offer, candidates: Sequence[Candidate], error: Exception) -> list[str]:
    """How to name another mirror of what an error is about. Debian's mirror is no way out for a vendor's host."""
    entries = [entry for one in candidates for entry in (*one.entries, *one.optional) if entry.place in str(error)]
    vendors = [entry.repository for entry in entries if entry.repository]
    ways = [
        f"add a mirror of {title} to the apt sources of this system"
        for title in dict.fromkeys(one.title for one in vendors if not one.is_archive)
    ]
    if offer.origins and (not entries or len(vendors) < len(entries)):
        ways.append("name another Debian mirror with DBCLUSTER_MIRROR=URL")
    return ways


def _from_any_source(offer: Offer, candidates: Sequence[Candidate], progress: Report) -> Release:
    """The release from apt; if apt does not have it, an exact version from the vendor's archive of tarballs."""
    from pytest_dbcluster.releases import catalogue, fetched
    from pytest_dbcluster.releases.vendors.tarball_archive import TARBALLS

    archive = TARBALLS.get(offer.product) if catalogue.is_exact(offer.version) else None
    if archive is None:
        return fetched.fetch(offer, candidates, progress)
    reason = ""
    if offer.origins:
        try:
            return fetched.fetch(offer, candidates, progress)
        except (ProvisionError, Unsupported) as error:
            reason = f"{error}; "
            progress(f"{offer.name}: {error}; looking in {archive.title}")
    try:
        return fetched.fetch_tarball(offer, archive, progress)
    except ProvisionError as error:
        raise ProvisionError(f"{reason}{error}") from error


def _installable(product: str) -> bool:
    """Whether a tool may come from PATH. The systems of guests and stand-in hosts are root directories, not tools."""
    from pytest_dbcluster.releases.catalogue import GUEST_SYSTEM, STAND_IN_SYSTEM

    return product in TOOLS and product not in (GUEST_SYSTEM, STAND_IN_SYSTEM)


def _alternatives(name: str, *, has_apt: bool, mirrors: Sequence[str]) -> str:
    product = name.partition(":")[0]
    ways = []
    if _installable(product):
        ways.append(f"install {product}")
    elif product not in TOOLS:
        ways += [
            f"use the vendor's tarball or an unpacked release with --db-release {name}=TARBALL or {name}=DIRECTORY, or "
            f"the installed one with {product}:path",
            f"use an image with --db-provisioner container --db-image {name}=IMAGE",
        ]
    ways += mirrors if has_apt else []
    where = "a machine with network access" if has_apt else "a Debian or Ubuntu machine"
    ways.append(f"run `dbcluster fetch {name}` on {where}, and copy its {cache.root()} to this machine")
    return f"What you can do: {'; '.join(ways)}"


def cached_releases() -> list[Known]:
    """The releases in the cache, sorted by name."""
    return sorted(map(_cached_row, cache.entries()), key=lambda row: row.name)


def _cached_row(pair: tuple[Path, cache.Manifest]) -> Known:
    from pytest_dbcluster.releases import sources

    entry, manifest = pair
    name = f"{manifest.product}:{manifest.version}" if manifest.version else manifest.product
    supplier = manifest.supplier or sources.family(manifest.suite)
    return Known(name, CACHED, manifest.exact, manifest.size, str(entry), supplier)


def list_releases(mirror: str | None = None) -> list[Known]:
    """Every known release and tool with its state on this machine, a row for each source. Does not fetch anything."""
    from pytest_dbcluster.releases import apt, catalogue, sources
    from pytest_dbcluster.releases.vendors.repository import ARCHIVES
    from pytest_dbcluster.releases.vendors.tarball_archive import TARBALLS

    fetched = {(row.name, row.supplier): row for row in cached_releases()}
    entries = sources.host_entries()
    rows: list[Known] = []
    can_fetch = not apt.missing_program()
    for offer in catalogue.OFFERS:
        instead = "use a tarball or an image" if offer.version else "install it"
        missing = "no apt source of this system has it" if can_fetch else f"no packages here; {instead}"
        candidates = sources.candidates(offer, entries, mirror or os.environ.get("DBCLUSTER_MIRROR"))
        for supplier in offer.suppliers:
            first = next((one for one in candidates if one.origin.supplier == supplier), None)
            row = Known(offer.name, NOT_FOUND, source=missing, supplier=supplier)
            if first and can_fetch:
                state = TRIED if first.origin.is_tried else UNTRIED
                where = f"{first.origin.suite} of {first.entries[0].uri}" if first.title else first.where
                row = Known(offer.name, state, source=where, supplier=supplier)
            rows.append(fetched.pop((offer.name, supplier), row))
    exact = {product: archive.title for product, archive in ARCHIVES.items() if can_fetch}
    exact |= {product: archive.title for product, archive in TARBALLS.items()}
    rows += [
        Known(f"{product}:X.Y.Z", UNTRIED, source="any exact version", supplier=title)
        for product, title in exact.items()
    ]
    return [*rows, *fetched.values(), *map(_path_row, _ON_PATH)]


def _path_row(product: str) -> Known:
    from pytest_dbcluster.releases import local_programs

    program = local_programs.server_on_path(product)
    return Known(f"{product}:path", ON_PATH if program else NOT_FOUND, source=str(program or ""))


def program_on_path(program: str) -> Path | None:
    """The path of a program on PATH or in a directory for servers; None if it is not there."""
    from pytest_dbcluster.releases import local_programs

    installed = shutil.which(program, path=os.pathsep.join(map(str, local_programs.path_directories())))
    return Path(installed) if installed else None


def find_program(program: str, product: str, *, on_path: bool = True) -> Path | None:
    """The path of a program on PATH, otherwise in the newest cached release of this product with it; or None.

    ``on_path``: False for hosts that do not see the programs of this machine's system.
    """
    if on_path and (installed := program_on_path(program)):
        return installed
    release = newest_with(program, product)
    return release.bin / program if release else None


def newest_with(program: str, product: str) -> Release | None:
    """The newest cached release of this product that has a program; None if no release has it."""
    newest_first = [row.name for row in reversed(cached_releases()) if row.name.startswith(f"{product}:")]
    releases = (find(name) for name in newest_first)
    return next((release for release in releases if (release.bin / program).exists()), None)
