"""What a test asks for: ClusterSpec, and the names that everything else uses.

A spec is a frozen value. Two equal specs are one running cluster; two specs that differ in options alone
are two variants, which share a cluster when the servers can switch between them.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from pathlib import Path

from pytest_dbcluster.errors import ConfigError

VENDORS = ("mariadb", "mysql")
TOOLS = ("haproxy", "sysbench")
DEFAULT_RELEASE = "mariadb:10.11"
PROFILES = ("quick", "paper")
PARITIES = ("vendor", "normalised")


@dataclasses.dataclass(frozen=True, slots=True)
class ReleaseName:
    """``mariadb:10.11``, ``mariadb:path``, ``mysql:8.4=/opt/mysql-8.4``: which server, and where when given.

    ``directory`` is set only when the user names the place of the programs.
    """

    product: str
    version: str
    directory: str = ""

    @classmethod
    def parse(cls, text: str) -> ReleaseName:
        """The name written as NAME:VERSION or NAME:VERSION=DIRECTORY. Raises ConfigError."""
        match = re.fullmatch(r"([a-z]+):([0-9][0-9A-Za-z.]*|path)(?:=(.+))?", text.strip())
        if not match:
            raise ConfigError(
                f"a release is written NAME:VERSION or NAME:VERSION=DIRECTORY, such as mariadb:10.11 or "
                f"mariadb:11.4=/opt/mariadb-11.4; got {text!r}"
            )
        product, version, directory = match.groups()
        if product not in VENDORS:
            raise ConfigError(f"unknown server {product!r} in release {text!r}; known: {', '.join(VENDORS)}")
        return cls(product, version, directory or "")

    @property
    def series(self) -> tuple[int, ...]:
        """The version as numbers, (10, 11) for mariadb:10.11; empty for mariadb:path."""
        return tuple(int(part) for part in self.version.split(".") if part.isdigit())

    def __str__(self) -> str:
        """The short name, without the directory: it goes into test ids and tables."""
        return f"{self.product}:{self.version}"


def normal_option(name: str) -> str:
    """The one spelling of an option's name: lower case, underscores, no leading dashes."""
    return name.strip().lstrip("-").replace("-", "_").lower()


@dataclasses.dataclass(frozen=True, slots=True)
class HostNeeds:
    """What each node's host has to be or to have; None and False ask for nothing.

    cores: CPUs; memory: bytes; iops: write operations a second of the data device; rtt: seconds to a peer.
    """

    cores: float | None = None
    memory: int | None = None
    iops: int | None = None
    rtt: float | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class ClusterSpec:
    """A cluster as a value: topology, number of nodes, options, proxy, needs. Frozen and hashable.

    ``options`` are my.cnf options of the server, sorted by their normal name. ``cnf`` names the fragments of
    ``fixtures/mycnf`` that are laid under them in order; they are read when the cluster is made, by
    ``pytest_dbcluster.options``. ``release`` None is the release of the run (``--db-release``), ``parity`` None the
    run's parity profile (``--db-parity``). ``instance`` tells clusters apart that are alike otherwise: each of them is
    started afresh, with data of its own.
    """

    topology: str
    nodes: int = 1
    release: ReleaseName | None = None
    options: tuple[tuple[str, str], ...] = ()
    cnf: tuple[str, ...] = ()
    proxy: str | None = None
    needs: HostNeeds = HostNeeds()
    parity: str | None = None
    instance: int = 0
    name: str = dataclasses.field(default="", compare=False)

    def __post_init__(self) -> None:
        if isinstance(self.nodes, bool) or not isinstance(self.nodes, int) or self.nodes < 1:
            raise ConfigError(f"nodes={self.nodes!r} of a {self.topology} cluster: a cluster has 1 node or more")

    def with_options(self, options: Mapping[str, object] | None = None, /, **more: object) -> ClusterSpec:
        """The same cluster with these server options laid over its own; True and False become ON and OFF."""
        merged = dict(self.options)
        given = {**(options or {}), **more}
        merged.update({normal_option(name): option_text(value) for name, value in given.items()})
        label = "_".join(f"{normal_option(name)}_{option_text(value)}" for name, value in given.items())
        return dataclasses.replace(
            self, options=tuple(sorted(merged.items())), name=re.sub(r"[^\w.]+", "_", label)[:60]
        )

    def with_cnf(self, name: str) -> ClusterSpec:
        """The same cluster with the fragment ``fixtures/mycnf/NAME.cnf`` laid over it; its short name is NAME."""
        return dataclasses.replace(self, cnf=(*self.cnf, name), name=name)

    def with_parity(self, parity: str) -> ClusterSpec:
        """The same cluster with the vendor's defaults (``vendor``) or with comparable ones (``normalised``)."""
        return dataclasses.replace(self, parity=parity, name=f"{self.short_name}_{parity}")

    def named(self, name: str) -> ClusterSpec:
        """The same cluster with another short name, which is its test id."""
        return dataclasses.replace(self, name=name)

    def on_release(self, release: ReleaseName) -> ClusterSpec:
        """The same cluster on this release; one that names its own release keeps it."""
        return self if self.release else dataclasses.replace(self, release=release)

    @property
    def short_name(self) -> str:
        """The test id and the column of a table: ``galera3``, ``flush_2``."""
        return self.name or f"{self.topology}{self.nodes}"

    def __str__(self) -> str:
        return self.short_name


def option_text(value: object) -> str:
    """An option's value as my.cnf has it."""
    if isinstance(value, bool):
        return "ON" if value else "OFF"
    return str(value)


@dataclasses.dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a client connects. The password is never part of a repr."""

    host: str
    port: int
    user: str
    password: str = dataclasses.field(repr=False)
    nodes: tuple[str, ...] = ()
    directory: Path | None = None
    tls: bool = False
