"""The value ``Release``: a name such as "mariadb:10.11" and the paths of its programs."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Mapping
from pathlib import Path

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.releases import catalogue, layout
from pytest_dbcluster.spec import ReleaseName

# Directories of programs in an image. Programs that the maker of the image added come first.
IMAGE_PATH = ("/usr/local/mysql/bin", "/usr/local/bin", "/usr/local/sbin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")


@dataclasses.dataclass(frozen=True)
class Release:
    """A server version or a tool with its programs, ready to run: every path in it exists."""

    name: str
    """The name as the user wrote it ("mariadb:10.11", "sysbench")."""

    product: str
    """The product, such as mariadb, mysql, percona or sysbench."""

    version: str
    """The exact version of the program ("10.11.19")."""

    bin: Path
    """The directory with all programs, as files, links or shims; it comes first in PATH."""

    server_options: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Options that this server needs because it is not in its built-in path; empty for an installed server.

    They are basedir, plugin-dir, lc-messages-dir, character-sets-dir and the like.
    """

    client_options: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Options that its clients need for the same reason (plugin-dir)."""

    environment: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Environment variables that the programs need (LUA_PATH for sysbench), without PATH."""

    wsrep_provider: Path | None = None
    """The path of the Galera library; None if the release does not have it."""

    scripts: Path | None = None
    """The directory of a tool's scripts (for sysbench oltp_read_write.lua and others); None without scripts."""

    source: str = ""
    """Where we found it, for messages ("bookworm from the system's apt sources", "/opt/mariadb-11.4")."""

    image: str = ""
    """The id of the image of the containers that run the programs; empty without containers."""

    files: frozenset[str] | None = None
    """The paths of all programs, plugins and libraries in the image; None if they are on this machine."""

    directory: str = ""
    """The user's directory or tarball, if containers of our system image have the programs; otherwise empty."""

    transfer_tools: Path | None = None
    """The ``bin/`` of a cached release that has what the image lacks for state transfers; None if nothing has it."""

    trees: tuple[Path, ...] = ()
    """The directories with everything that the programs need. A machine with copies of them at the same paths can run
    the release. Empty if the programs are installed in the system or are in an image.
    """

    @property
    def release_name(self) -> ReleaseName:
        """The name of the release as a value, for hosts that have its programs."""
        return ReleaseName(self.product, self.name.partition(":")[2], self.directory)

    @property
    def series(self) -> str:
        """The first two numbers of the version, such as ``10.11``."""
        return ".".join(self.version.split(".")[:2])

    @property
    def upstream(self) -> str:
        """The server that the product is built from: ``mariadb`` or ``mysql``."""
        return catalogue.upstream(self.product)

    @property
    def key(self) -> str:
        """A unique key of the programs: their image and directory."""
        return f"{self.image}:{self.bin}" if self.image else str(self.bin)

    def has(self, path: Path) -> bool:
        """Whether a file exists, in the image of the release or on this machine."""
        return path.exists() if self.files is None else str(path) in self.files

    @property
    def lacks_for_transfers(self) -> list[str]:
        """The programs of Galera's full state transfers that the image of the release lacks; empty without an image."""
        programs = layout.TRANSFERS.get(self.product, ()) if self.files is not None else ()
        return [name for name in programs if not self.path_of(name)]

    def path_of(self, name: str) -> Path | None:
        """The path of a program of this release; None if the release has no such program."""
        directories = (self.bin,) if self.files is None else tuple(map(Path, IMAGE_PATH))
        return next((path for directory in directories if self.has(path := directory / name)), None)

    def program(self, name: str) -> Path:
        """The path of a program of this release. Raises ConfigError with the programs that the release has."""
        path = self.path_of(name)
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
