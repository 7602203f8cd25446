"""ClusterSpec: the cluster that a test asks for, with ReleaseName and HostNeeds.

A spec is a frozen value. Equal specs share one running cluster. Specs that differ only in options are variants; they
share a cluster when its servers can switch between their options.
"""

from __future__ import annotations

import dataclasses
import math
import re
import types
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_dbcluster import calls, formatting, network, registry
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.network import Links, NetworkNeeds

VENDORS = ("mariadb", "mysql", "percona", "pxc")  # pxc is Percona XtraDB Cluster
TOOLS = ("haproxy", "pt-online-schema-change", "stand-in", "sysbench", "vm")
DEFAULT_RELEASE = "mariadb:10.11"
PROFILES = ("quick", "paper")
PARITIES = ("vendor", "normalised")
SIZES = ("memory", "disk")  # needs in bytes


@dataclasses.dataclass(frozen=True, slots=True)
class Profile:
    """A storage profile: the write limit of the disk of a published measurement, to limit a faster local disk.

    A volume of Amazon EBS limits operations (docs.aws.amazon.com/ebs/latest/userguide/general-purpose.html):

    - gp2: 3 operations/s for each GiB, at least 100/s and at most 16 000/s. A volume under 1000 GiB bursts to 3000/s
      from a bucket of 5.4 million credits. The bucket is full at the start and lasts for half an hour at full rate. So
      a fresh volume of 33 GiB or less is ``gp2-3000`` for that time, and ``gp2-100`` after it.
    - gp3: 3000 operations/s for any size; more for a higher price.

    A profile limits only the rate of writes. Reads, bytes/s and latency are those of the local disk. The kernel counts
    the flush of a disk cache (``write back`` in queue/write_cache) as a write. An fsync of a growing file writes more
    than its data. On such a disk an fsync took 2.2 to 3.4 operations, so 3000 operations/s were 800 to 1300 fsyncs/s.
    """

    name: str
    """Name for ``--db-storage``."""

    iops: int | None
    """Maximum write operations/s of a node's device; None for no limit."""

    what: str
    """The volume that it stands for."""


STORAGE_PROFILES = types.MappingProxyType(
    {
        profile.name: profile
        for profile in (
            Profile("gp2-100", 100, "gp2 of 33 GiB or less whose burst credits are used up"),
            Profile("gp2-3000", 3000, "gp2 under 1000 GiB that still bursts, or gp2 of 1000 GiB"),
            Profile("gp3", 3000, "gp3 with its default limit"),
            Profile("nvme", None, "this machine's own disk, without a limit"),
        )
    }
)


def storage_profile(name: str) -> Profile:
    """The profile of this name. Raises ConfigError that lists the known names."""
    if name not in STORAGE_PROFILES:
        raise registry.unknown("storage profile", name, list(STORAGE_PROFILES))
    return STORAGE_PROFILES[name]


@dataclasses.dataclass(frozen=True, slots=True)
class ReleaseName:
    """A server release: ``mariadb:10.11``, ``mysql:8.4=/opt/mysql-8.4``, or ``mariadb:path`` for programs on PATH.

    A directory may also be a tarball: ``mysql:8.4=mysql-8.4.8-linux-glibc2.17-x86_64.tar.xz``.
    """

    product: str
    """The product: mariadb, mysql, percona or pxc, or a tool."""

    version: str
    """The version as the user names it, or ``path``."""

    directory: str = ""
    """The directory or the tarball of the programs; empty if the user names none."""

    def __post_init__(self) -> None:
        if self.product not in (*VENDORS, *TOOLS):
            raise ConfigError(f"unknown server {self.product!r} in a release; known: {', '.join(VENDORS)}")

    @classmethod
    def parse(cls, text: str) -> ReleaseName:
        """Parse NAME:VERSION or NAME:VERSION=DIRECTORY. Raises ConfigError."""
        match = re.fullmatch(r"([a-z]+):([0-9][0-9A-Za-z.]*|path)(?:=(.+))?", str(text).strip())
        if not match:
            raise ConfigError(
                f"a release is written NAME:VERSION or NAME:VERSION=DIRECTORY, such as mariadb:10.11 or "
                f"mariadb:11.4=/opt/mariadb-11.4; got {text!r}"
            )
        product, version, directory = match.groups()
        if product not in VENDORS:
            raise ConfigError(
                f"unknown server {product!r} in release {text!r}; known: {', '.join(VENDORS)}; "
                "`dbcluster releases` lists their versions and sources"
            )
        return cls(product, version, directory or "")

    @property
    def series(self) -> tuple[int, ...]:
        """The version as numbers: (10, 11) for mariadb:10.11, () for mariadb:path."""
        return tuple(int(part) for part in self.version.split(".") if part.isdigit())

    def __str__(self) -> str:
        """The name without the directory, for test ids and tables."""
        return f"{self.product}:{self.version}"


# The release of all nodes of a cluster, or of each node.
Releases = ReleaseName | tuple[ReleaseName, ...]


def parse_releases(text: str) -> Releases:
    """The release of all nodes, or of each node: ``mariadb:10.11+11.8+11.8``, as results name them. Raises ConfigError.

    A part without a product has that of the first one. The last part may have a directory.
    """
    names, equals, directory = str(text).strip().partition("=")
    first, *others = names.split("+")
    product = first.partition(":")[0]
    parts = [first, *(name if ":" in name else f"{product}:{name}" for name in others)]
    *before, last = parts
    releases = [*map(ReleaseName.parse, before), ReleaseName.parse(f"{last}{equals}{directory}")]
    return releases[0] if len(releases) == 1 else tuple(releases)


def join_releases(names: Sequence[str]) -> str:
    """The text for the releases, or exact versions, of all nodes: ``mariadb:10.11+11.8``; one name if all are equal."""
    first, *others = dict.fromkeys(names) if len(set(names)) == 1 else names
    product = f"{first.partition(':')[0]}:"
    return "+".join([first, *(name.removeprefix(product) for name in others)])


@calls.check_arguments("HostNeeds(cores=1, memory=2**29, iops=200)")
@dataclasses.dataclass(frozen=True, slots=True)
class HostNeeds:
    """The limits of each node's host; None for no limit.

    Raises ConfigError for values out of range, for an unknown end of a link, and for an unknown storage profile.
    """

    cores: float | None = None
    """Number of CPUs."""

    memory: int | None = None
    """Memory in bytes."""

    iops: int | None = None
    """Write operations/s of the data device."""

    rtt: float | None = None
    """Round trip between two nodes, in seconds; 0 is the same path without a delay."""

    storage: str = ""
    """The storage profile that gives ``iops``; empty for none."""

    loss: float | None = None
    """Share of lost packets, as in ``network.NetworkNeeds``."""

    jitter: float | None = None
    """Variation of a round trip in seconds, as in ``network.NetworkNeeds``."""

    rate: float | None = None
    """Bits a second, each way."""

    links: Links = ()
    """Round trips of single pairs, as in ``network.NetworkNeeds`` or as a mapping."""

    disk: int | None = None
    """Bytes of a separate disk for the host, a block device."""

    replication_link: bool = False
    """Whether the nodes have a second network, only for replication. The topology sets this, not the user."""

    def __post_init__(self) -> None:
        for name, kind in (("cores", "a number of CPUs"), ("rate", "bits a second")):
            _check(name, getattr(self, name), kind, int | float)
        size = "whole bytes, or a text such as 512M"
        for name, kind in (("memory", size), ("disk", size), ("iops", "whole operations a second")):
            _check(name, getattr(self, name), kind, int)
        for name, check in (("rtt", network.seconds), ("jitter", network.seconds), ("loss", network.share)):
            if (value := getattr(self, name)) is not None:
                check(name, value)
        object.__setattr__(self, "links", network.links(self.links))
        if self.storage:
            storage_profile(self.storage)

    @property
    def network(self) -> NetworkNeeds | None:
        """The requirements on the network; None for none: then the provisioner decides how near nodes are."""
        given = (self.rtt, self.loss, self.jitter, self.rate)
        if not self.links and all(value is None for value in given):
            return None
        return NetworkNeeds(self.rtt or 0.0, self.loss or 0.0, self.jitter or 0.0, self.rate, self.links)

    @property
    def without_network(self) -> HostNeeds:
        """The same limits without requirements on the network."""
        return dataclasses.replace(self, rtt=None, loss=None, jitter=None, rate=None, links=())

    def at_rest(self, ends: Iterable[str]) -> HostNeeds:
        """The same limits on a network path without delays, with these ends beside the nodes."""
        near = tuple((network.pair_of(end, "node1"), 0.0) for end in sorted(ends))
        return dataclasses.replace(self.without_network, rtt=0.0, links=near)

    @property
    def powers(self) -> dict[str, str]:
        """The powers that a provisioner must have -> the limit as text: ``{"iops": "iops=3000"}``."""
        named = {"cores": "cores", "memory": "memory", "iops": "iops", "disk": "block-devices"}
        powers = {power: text for name, power in named.items() if (text := self._text(name))}
        asked = network.texts(self.rtt, self.loss, self.jitter, self.rate, self.links)
        return {**powers, "netem": ", ".join(asked)} if asked else powers

    def _text(self, name: str) -> str:
        value = getattr(self, name)
        if value is None:
            return ""
        return f"{name}={formatting.memory_text(value) if name in SIZES else f'{value:g}' if name != 'iops' else value}"

    def __str__(self) -> str:
        profile = [f"storage {self.storage}"] if self.storage else []
        return ", ".join([*profile, *self.powers.values()])


def _check(name: str, value: object, kind: str, numbers: type | types.UnionType) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, numbers) or not 0 < float(str(value)) < math.inf:
        raise ConfigError(f"{name}={value!r} of a cluster's hosts: it accepts {kind}, above 0")


NO_LIMITS = HostNeeds()


@calls.check_arguments(
    'ClusterSpec("galera", nodes=3, options={"innodb_io_capacity": 2000})', instead={"version": "release"}
)
@dataclasses.dataclass(frozen=True, slots=True, init=False)
class ClusterSpec:
    """A cluster as a frozen, hashable value. Raises ConfigError for a wrong argument."""

    topology: str
    """Name of the topology."""

    nodes: int
    """Number of servers, from 1."""

    release: Releases | None
    """The release, such as ``"mariadb:11.8"``; None for the release of the run (``--db-release``).

    A tuple has the release of each node: ``("mariadb:10.11", "mariadb:11.8")``. Equal ones become one release.
    """

    options: tuple[tuple[str, str], ...]
    """My.cnf options of the servers, as a mapping; kept as pairs, sorted by normal name. A spec with a mapping and
    without a name gets the short name that ``with_options`` gives.
    """

    cnf: tuple[str, ...]
    """My.cnf files, as paths or as names in ``fixtures/mycnf``. Later files override earlier ones, and ``options``
    override all files. They are read when the cluster starts.
    """

    proxy: str | None
    """Name of the proxy; None for no proxy."""

    proxy_options: tuple[tuple[str, str], ...]
    """Options of the proxy, as a mapping; kept as pairs, sorted by name. Each proxy lists its own."""

    needs: HostNeeds
    """Limits of the hosts."""

    parity: str | None
    """Parity profile; None for that of the run (``--db-parity``)."""

    instance: int
    """Number that separates equal clusters; each instance starts fresh with separate data."""

    name: str = dataclasses.field(compare=False)
    """Short name, not part of the comparison of specs."""

    def __init__(
        self,
        topology: str,
        nodes: int = 1,
        release: ReleaseName | str | Sequence[ReleaseName | str] | None = None,
        options: Mapping[str, object] | Iterable[tuple[str, object]] = (),
        cnf: Iterable[str] = (),
        proxy: str | None = None,
        needs: HostNeeds = NO_LIMITS,
        parity: str | None = None,
        instance: int = 0,
        name: str = "",
        proxy_options: Mapping[str, object] | Iterable[tuple[str, object]] = (),
    ) -> None:
        if not isinstance(cnf, Iterable):
            raise ConfigError(f"cnf={cnf!r} of a {topology} cluster: it accepts names of my.cnf fragments")
        pairs, of_proxy = formatting.option_pairs(options), _proxy_pairs(proxy_options)
        given = [found for found, named in ((pairs, options), (of_proxy, proxy_options)) if isinstance(named, Mapping)]
        name = name or "_".join(filter(None, map(formatting.option_label, given)))
        values = {
            "topology": topology,
            "nodes": nodes,
            "release": _releases(release, nodes, topology),
            "options": tuple(sorted(pairs.items())),
            "cnf": (cnf,) if isinstance(cnf, str) else tuple(cnf),
            "proxy": proxy,
            "proxy_options": tuple(sorted(of_proxy.items())),
            "needs": needs,
            "parity": parity,
            "instance": instance,
            "name": name,
        }
        for field, value in values.items():
            object.__setattr__(self, field, value)
        self._check_values()

    def _check_values(self) -> None:
        """Raise ConfigError for values of a wrong type, and for names and numbers that no cluster can have."""
        if isinstance(self.nodes, bool) or not isinstance(self.nodes, int) or self.nodes < 1:
            raise ConfigError(f"nodes={self.nodes!r} of a {self.topology} cluster: a cluster has 1 node or more")
        for field, kind, example in (
            ("topology", str, "the name of a topology, such as galera"),
            ("release", ReleaseName | tuple | None, 'a release such as "mariadb:11.8", or one for each node'),
            ("proxy", str | None, "the name of a proxy, such as haproxy, or None"),
            ("needs", HostNeeds, "HostNeeds(...), such as HostNeeds(cores=1)"),
            ("name", str, "a short text"),
        ):
            if not isinstance(value := getattr(self, field), kind):
                raise ConfigError(f"{field}={value!r} of a {self.topology} cluster: it accepts {example}")
        if self.proxy_options and self.proxy is None:
            raise ConfigError(f"proxy_options of a {self.topology} cluster without a proxy: set proxy= too")
        asked = self.needs.network
        if asked and (missing := asked.unknown_end(self.nodes, proxy=self.proxy is not None)):
            raise ConfigError(f"links of a {self.topology} cluster: {missing}")
        if self.parity is not None and self.parity not in PARITIES:
            raise registry.unknown("parity", self.parity, PARITIES)
        if not self.name.isprintable() or (self.name and not self.name.strip()):
            raise ConfigError(f"name={self.name!r} of a {self.topology} cluster: a name is one line of printable text")

    def with_options(self, options: Mapping[str, object] | None = None, /, **more: object) -> ClusterSpec:
        """The same cluster with these server options, which override existing ones; True becomes ON, False OFF."""
        given = {**formatting.option_pairs(options or {}), **formatting.option_pairs(more)}
        return dataclasses.replace(
            self, options=tuple({**dict(self.options), **given}.items()), name=formatting.option_label(given)
        )

    def with_proxy_options(self, options: Mapping[str, object] | None = None, /, **more: object) -> ClusterSpec:
        """The same cluster with these options of its proxy, which override existing ones; ``fail_back=False``."""
        given = {**_proxy_pairs(options or {}), **_proxy_pairs(more)}
        every = tuple({**dict(self.proxy_options), **given}.items())
        return dataclasses.replace(self, proxy_options=every, name=formatting.option_label(given))

    def with_cnf(self, name: str | Path) -> ClusterSpec:
        """The same cluster with one more my.cnf; its short name is the file's name without ``.cnf``.

        A Path, or a text with a ``/`` or with ``.cnf`` at its end, is relative to the current directory. Any other text
        is the fragment ``fixtures/mycnf/NAME.cnf``. The file is read when the cluster is resolved.
        """
        if isinstance(name, Path) or "/" in name or name.endswith(".cnf"):
            path = Path(name).absolute()
            return dataclasses.replace(self, cnf=(*self.cnf, str(path)), name=re.sub(r"[^\w.]+", "_", path.stem))
        return dataclasses.replace(self, cnf=(*self.cnf, name), name=name)

    def with_parity(self, parity: str) -> ClusterSpec:
        """The same cluster with the vendor's defaults (``vendor``) or with comparable options (``normalised``)."""
        return dataclasses.replace(self, parity=parity, name=f"{self.short_name}_{parity}")

    @calls.check_arguments('spec.with_needs(cores=1, memory="512M", iops=200, rtt=0.005)')
    def with_needs(
        self,
        *,
        cores: float | None = None,
        memory: int | str | None = None,
        iops: int | None = None,
        disk: int | str | None = None,
        rtt: float | None = None,
        loss: float | None = None,
        jitter: float | None = None,
        rate: float | None = None,
        links: Mapping[tuple[str, str], float] | None = None,
    ) -> ClusterSpec:
        """The same cluster with these limits for each host; the limits become part of the short name.

        - cores: CPUs, ``0.5`` is half a CPU.
        - memory: bytes, or a text such as ``"512M"``.
        - iops: write operations/s of the data device.
        - disk: bytes of a separate disk for each host, or a text such as ``"4G"``.
        - rtt: round trip between two nodes in seconds, from 0 to 10; 0 is the same path without a delay.
        - loss: share of lost packets between nodes, each way.
        - jitter: seconds by which a round trip varies.
        - rate: bits/s between nodes, each way.
        - links: the round trips of single pairs, ``{("node1", "node3"): 0.02}``. Ends are nodes, ``client`` (the load
          generator) and ``proxy``. Client and proxy are near unless a link names them.

        Variants that differ only in their network share a cluster. Raises ConfigError for a wrong value, and without
        any limit.
        """
        arguments: dict[str, object] = {"cores": cores, "memory": memory, "iops": iops, "disk": disk, "rtt": rtt}
        arguments |= {"loss": loss, "jitter": jitter, "rate": rate, "links": links}
        given: dict[str, Any] = {name: value for name, value in arguments.items() if value is not None and value != {}}
        if not given:
            raise ConfigError(f"with_needs() of cluster {self} has no limit; known: {', '.join(arguments)}")
        given |= {name: formatting.memory_bytes(given[name], name) for name in SIZES if name in given}
        added = "_".join(HostNeeds(**given).powers.values())
        profile = "" if iops is not None else self.needs.storage
        return self._needing(dataclasses.replace(self.needs, **given, storage=profile), added)

    def with_storage(self, profile: str) -> ClusterSpec:
        """The same cluster on volumes of a storage profile, such as ``gp2-100``. Raises ConfigError if unknown."""
        iops = storage_profile(profile).iops
        return self._needing(dataclasses.replace(self.needs, iops=iops, storage=profile), profile)

    def _needing(self, needs: HostNeeds, added: str) -> ClusterSpec:
        return dataclasses.replace(self, needs=needs, name=f"{self.short_name}_{re.sub(r'[^a-zA-Z0-9.]+', '_', added)}")

    def on_storage(self, profile: str) -> ClusterSpec:
        """The same cluster on the run's storage profile; a cluster that has storage or iops keeps it."""
        if not profile or self.needs.storage or self.needs.iops is not None:
            return self
        needs = dataclasses.replace(self.needs, iops=storage_profile(profile).iops, storage=profile)
        return dataclasses.replace(self, needs=needs)

    def named(self, name: str) -> ClusterSpec:
        """The same cluster with another short name."""
        return dataclasses.replace(self, name=name)

    def on_release(self, release: ReleaseName) -> ClusterSpec:
        """The same cluster on this release; a cluster that names a release keeps it."""
        return self if self.release else dataclasses.replace(self, release=release)

    @property
    def releases(self) -> tuple[ReleaseName, ...]:
        """The release of each node, in order; empty if the spec names none."""
        if self.release is None:
            return ()
        return self.release if isinstance(self.release, tuple) else (self.release,) * self.nodes

    @property
    def release_text(self) -> str:
        """The release, or those of all nodes, as text: ``mariadb:10.11+11.8``; empty if the spec names none."""
        return join_releases(list(map(str, self.releases))) if self.release else ""

    @property
    def short_name(self) -> str:
        """The name in test ids and tables: ``galera3``, ``flush_2``."""
        return self.name or f"{self.topology}{self.nodes}"

    def __str__(self) -> str:
        return self.short_name


def _proxy_pairs(options: object) -> dict[str, str]:
    return formatting.option_pairs(options, "proxy_options", '"fail_back": False')


def _releases(release: object, nodes: int, topology: str) -> object:
    """The value of ``ClusterSpec.release``; other types stay as they are. Raises ConfigError for a wrong number."""
    parsed = parse_releases(release) if isinstance(release, str) else release
    if not isinstance(parsed, list | tuple):
        return parsed
    found = tuple(ReleaseName.parse(one) if isinstance(one, str) else one for one in parsed)
    if wrong := [one for one in found if not isinstance(one, ReleaseName)]:
        raise ConfigError(f"release={release!r} of a {topology} cluster: {wrong[0]!r} is no release")
    if len(found) != nodes:
        raise ConfigError(
            f"release={release!r} of a {topology} cluster with nodes={nodes}: name one release for all nodes, or one "
            f"for each, not {len(found)}"
        )
    return found[0] if len(set(found)) == 1 else found
