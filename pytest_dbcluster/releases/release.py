"""A release: "mariadb:10.11" and where its programs are on disk."""

from __future__ import annotations

import dataclasses
import difflib
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from pytest_dbcluster.errors import ConfigError, ProvisionError, Unsupported
from pytest_dbcluster.hosts.host import Host
from pytest_dbcluster.spec import TOOLS, VENDORS, ReleaseName
from pytest_dbcluster.system import cache

# Where programs are in an image, those of its maker's own first.
IMAGE_PATH = ("/usr/local/mysql/bin", "/usr/local/bin", "/usr/local/sbin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")


@dataclasses.dataclass(frozen=True)
class Release:
    """Programs on disk that run as they are: every path in it exists.

    name: as asked for ("mariadb:10.11", "sysbench"). version: exact, as the program says ("10.11.19").
    bin: the one directory that goes first in PATH; it holds every program, as a file, a link or a shim.
    server_options: options that this server always needs because it does not lie where it was built for
    (basedir, plugin-dir, lc-messages-dir, character-sets-dir, ...), empty for an installed one.
    client_options: the same for its clients (plugin-dir).
    environment: variables that the programs need (LUA_PATH for sysbench), PATH not among them.
    wsrep_provider: the Galera library, None when the release has none.
    scripts: the directory of a tool's own scripts (oltp_read_write.lua and others of sysbench), None without any.
    source: where it was found, for people ("bookworm from the system's apt sources", "/opt/mariadb-11.4").
    image: the id of the container image that has the programs, empty where they are on this machine's disk.
    files: of an image, every program, plugin and library that matters; None where this machine's disk says it.
    """

    name: str
    product: str
    version: str
    bin: Path
    server_options: Mapping[str, str] = dataclasses.field(default_factory=dict)
    client_options: Mapping[str, str] = dataclasses.field(default_factory=dict)
    environment: Mapping[str, str] = dataclasses.field(default_factory=dict)
    wsrep_provider: Path | None = None
    scripts: Path | None = None
    source: str = ""
    image: str = ""
    files: frozenset[str] | None = None

    @property
    def asked(self) -> ReleaseName:
        """The name that it was asked for by, without the place of its programs."""
        return ReleaseName(self.product, self.name.partition(":")[2])

    @property
    def key(self) -> str:
        """What tells its programs from all others: their place."""
        return f"{self.image}:{self.bin}" if self.image else str(self.bin)

    def has(self, path: Path) -> bool:
        """Whether a file of the release exists, where its programs are."""
        return path.exists() if self.files is None else str(path) in self.files

    def beside(self, name: str) -> Path | None:
        """The path of one program of this release, None when it has none of this name."""
        places = (self.bin,) if self.files is None else tuple(map(Path, IMAGE_PATH))
        return next((place / name for place in places if self.has(place / name)), None)

    def program(self, name: str) -> Path:
        """The path of one program of this release. Raises ConfigError with what the release does have."""
        path = self.beside(name)
        if path is None:
            near = difflib.get_close_matches(name, self._programs(), n=40, cutoff=0.3)
            have = ", ".join(near or sorted(self._programs())[:40])
            where = f"in {self.bin}; it has" if self.files is None else "on its path; it has"
            raise ConfigError(f"{self.name} ({self.source}) has no program {name!r} {where}: {have}")
        return path

    def _programs(self) -> list[str]:
        if self.files is None:
            return [entry.name for entry in self.bin.iterdir()]
        return [Path(file).name for file in self.files if str(Path(file).parent) in IMAGE_PATH]


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


def find(
    name: ReleaseName | str, *, progress: Callable[[str], None] | None = None, mirror: str | None = None
) -> Release:
    """The release of this name, fetched when it has to be; ``name`` is a server's, "sysbench" or "haproxy".

    Sources in this order: the directory that the name gives, PATH (``mariadb:path``), the cache, the host's own apt
    suites, further suites of its mirrors or of ``mirror`` (environment: DBCLUSTER_MIRROR).
    Raises ConfigError for a version that nobody has; ProvisionError, or Unsupported on a host without apt, with the
    ways out when there is none to be had.
    """
    from pytest_dbcluster.releases import directory, path
    from pytest_dbcluster.releases import fetched as cached

    if isinstance(name, str):
        name = ReleaseName(name, "") if name in TOOLS else ReleaseName.parse(name)
    if name.directory:
        return directory.find(name)
    if name.version == "path":
        return path.find(name)
    return cached.lookup(name.product, name.version) or _fetched(name, progress or (lambda line: None), mirror)


def of_image(name: ReleaseName, tag: str, image: str, host: Host) -> Release:
    """The release in the container image that ``host`` was made of; ``image`` is its id, ``tag`` its name for people.

    Raises ProvisionError for an image in which nothing can be run, ConfigError for one with another server.
    """
    from pytest_dbcluster.hosts.provisioners.container import image_release as images

    return images.find(name, tag, image, host)


def _fetched(name: ReleaseName, progress: Callable[[str], None], mirror: str | None) -> Release:
    from pytest_dbcluster.releases import catalogue, path, sources
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
        tool = path.tool(offer.product, str(error)) if offer.product in TOOLS else None
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
    from pytest_dbcluster.releases import catalogue, path, sources

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
        program = path.server(product)
        rows[f"{product}:path"] = Known(
            f"{product}:path", "on PATH" if program else "not found", source=str(program or "")
        )
    return list(rows.values())


def elsewhere(program: str, product: str) -> Path | None:
    """A program that may come from anywhere: on PATH, or else of a cached release of this product; None without any."""
    from pytest_dbcluster.releases import path

    installed = shutil.which(program, path=os.pathsep.join(map(str, path.directories())))
    if installed:
        return Path(installed)
    newest_first = [row.name for row in reversed(cached()) if row.name.startswith(f"{product}:")]
    found = (find(name).bin / program for name in newest_first)
    return next((each for each in found if each.exists()), None)


def _name(product: str, version: str) -> str:
    return f"{product}:{version}" if version else product
