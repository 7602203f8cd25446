"""A release: "mariadb:10.11" and where its programs are on disk."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Mapping
from pathlib import Path

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.spec import ReleaseName

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
