"""A release: "mariadb:10.11" and where its programs are on disk."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from pytest_dbcluster.errors import ConfigError, DBClusterError, ProvisionError
from pytest_dbcluster.spec import TOOLS, ReleaseName


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
    source: where it was found, for people ("bookworm from the system's apt sources", "/opt/mariadb-11.4").
    """

    name: str
    product: str
    version: str
    bin: Path
    server_options: Mapping[str, str] = dataclasses.field(default_factory=dict)
    client_options: Mapping[str, str] = dataclasses.field(default_factory=dict)
    environment: Mapping[str, str] = dataclasses.field(default_factory=dict)
    wsrep_provider: Path | None = None
    source: str = ""

    def program(self, name: str) -> Path:
        """The path of one program of this release. Raises ConfigError with what the release does have."""
        path = self.bin / name
        if not path.exists():
            have = ", ".join(sorted(entry.name for entry in self.bin.iterdir())[:40])
            raise ConfigError(
                f"{self.name} ({self.source}) has no program {name!r} in {self.bin}; it has: {have}"
            )
        return path


def find(
    name: ReleaseName | str, *, progress: Callable[[str], None] | None = None, mirror: str | None = None
) -> Release:
    """The release of this name, fetched when it has to be; ``name`` is a server's, "sysbench" or "haproxy".

    Sources in this order: the directory that the name gives, PATH (``mariadb:path``), the cache, the host's own apt
    suites, further suites of its mirrors or of ``mirror`` (environment: DBCLUSTER_MIRROR).
    Raises ConfigError for a version that nobody has, ProvisionError with the ways out when none can be had here.
    """
    from pytest_dbcluster.releases import cached, catalogue, sources

    tell = progress or (lambda line: None)
    if isinstance(name, str):
        name = ReleaseName(name, "") if name in TOOLS else ReleaseName.parse(name)
    found = cached.lookup(name.product, name.version)
    if found:
        return found
    offer = catalogue.offer(name.product, name.version)
    if offer is None:
        known = ", ".join(each.name for each in catalogue.OFFERS)
        raise ConfigError(f"unknown release {name}; known: {known}")
    places = sources.candidates(offer, sources.host_entries(), mirror or os.environ.get("DBCLUSTER_MIRROR"))
    try:
        return cached.fetch(offer, places, tell)
    except DBClusterError as error:
        raise ProvisionError(f"{offer.name} cannot be fetched: {error}") from error
