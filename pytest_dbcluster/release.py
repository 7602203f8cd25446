"""A release: "mariadb:10.11" and where its programs are on disk."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

from pytest_dbcluster.errors import ConfigError


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
            raise ConfigError(f"{self.name} ({self.source}) has no program {name!r} in {self.bin}; it has: {have}")
        return path
