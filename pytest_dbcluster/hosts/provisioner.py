"""Provisioner: makes hosts and describes their powers."""

from __future__ import annotations

import abc
import concurrent.futures
import dataclasses
import importlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar, runtime_checkable

from pytest_dbcluster import registry
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.formatting import Report
from pytest_dbcluster.hosts.host import Host
from pytest_dbcluster.hosts.kept_logs import KeptLogs
from pytest_dbcluster.spec import ClusterSpec, ReleaseName

if TYPE_CHECKING:
    from pytest_dbcluster.releases.release import Release

Made = TypeVar("Made", bound=Host)
Place = TypeVar("Place")
PLANNED: Sequence[str] = ()
NO_DISKS = "only virtual machines have separate disks; use --db-provisioner vm"


@dataclasses.dataclass(frozen=True)
class Memory:
    """The memory that all hosts of a provisioner share."""

    total: int
    """The whole memory, in bytes."""

    available: int
    """The free memory, in bytes."""


@dataclasses.dataclass(frozen=True)
class Stay:
    """Where a run that outlives its process stays, and how to end it."""

    command: str
    """The shell command that ends the run."""

    place: str = ""
    """Where its hosts are: empty for this machine, otherwise the provisioner and what it needs to find them, such as
    ``ec2 eu-central-1``.
    """

    ends: float | None = None
    """When the hosts end themselves, in seconds since the epoch; None for never."""


class Provisioner(abc.ABC):
    """Makes hosts for clusters, and ends them."""

    run_id: str = "-"
    """The id of the hosts' run, "-" without a run."""

    logs: KeptLogs | None = None
    """Keeps the logs of failed clusters; None keeps no logs."""

    progress: Report = staticmethod(lambda _: None)
    """Prints lines about slow steps."""

    over: Callable[[], str] = staticmethod(lambda: "")
    """Returns why the run must stop waiting, such as its used time; empty while it may wait."""

    brings_programs: bool = False
    """Whether each host comes with the programs of one release; if so, each release needs its own client host."""

    has_own_system: bool = False
    """Whether hosts do not see the libraries of this machine; a user's programs then come as a copy with libraries."""

    @property
    @abc.abstractmethod
    def offers(self) -> frozenset[str]:
        """The powers of the hosts.

        They are ``shared-cores`` (the nodes compete for the CPUs of this machine), ``root``, ``netem`` and
        ``block-devices``. There are also the limits that each host can have: ``cores``, ``memory``, ``iops``. With
        ``block-devices`` each host is a ``BlockDevice``.
        """

    def host_type(self, spec: ClusterSpec) -> type[Host]:
        """The class of a cluster's hosts: it has their powers, such as ``Partitions``. The default has none."""
        return Host

    @property
    def missing(self) -> Mapping[str, str]:
        """Why some powers are not offered on this machine: power, as in ``offers`` -> a clause with the reason."""
        return {}

    def expect(self, specs: Sequence[ClusterSpec]) -> None:  # noqa: B027  (most provisioners make hosts one by one)
        """Announce the next clusters, so that a later call can make their hosts together."""

    def note_test(self, test: str) -> None:  # noqa: B027  (other commands need not see the test)
        """Note the node id of the test that the run measures from now on; empty for none."""

    @abc.abstractmethod
    def acquire(self, spec: ClusterSpec) -> Sequence[Host]:
        """New hosts, one for each node, in the order of the nodes. Raises ProvisionError or Unsupported."""

    def _make_all(self, make: Callable[[Place], Made], places: Sequence[Place]) -> list[Made]:
        """Make a host for each place, concurrently. Raises the first error, and then leaves no host."""
        with concurrent.futures.ThreadPoolExecutor(len(places)) as threads:
            futures = [threads.submit(make, place) for place in places]
        hosts = [future.result() for future in futures if not future.exception()]
        if failure := next((error for future in futures if (error := future.exception())), None):
            self.give_back(hosts)
            raise failure
        return hosts

    def client(self, spec: ClusterSpec) -> Host:
        """A new host for the load generator; release it with ``give_back``. Raises ProvisionError or Unsupported."""
        return self.acquire(spec)[0]

    def clients(self, spec: ClusterSpec) -> Sequence[Host]:
        """New hosts that share a workload; the default is the one host of ``client``.

        Release them with ``give_back``. Raises ProvisionError or Unsupported.
        """
        return [self.client(spec)]

    def workshop(self, spec: ClusterSpec) -> Host:
        """A new host to prepare servers' data that other hosts copy; release it with ``give_back``.

        Raises ProvisionError or Unsupported.
        """
        return self.acquire(spec)[0]

    @abc.abstractmethod
    def give_back(self, hosts: Sequence[Host]) -> None:
        """End every program on these hosts and remove our files. Never raises for hosts that are gone."""

    def at_hand(self, name: ReleaseName) -> bool:
        """Whether ``supply`` fetches and starts nothing. Raises ConfigError for a release that is not available."""
        from pytest_dbcluster.releases import find

        return find.is_local(name)

    def supply(self, name: ReleaseName, progress: Report) -> Release:
        """The release with this name, as on the hosts. The default finds or fetches programs on this machine.

        Raises ProvisionError, Unsupported or ConfigError.
        """
        from pytest_dbcluster.releases.find import find

        return find(name, progress=progress, portable=self.has_own_system)

    @property
    def environment(self) -> Mapping[str, str]:
        """Properties of the hosts that affect figures, for the fingerprint: name -> text.

        Hosts on other machines have ``cpu``, ``memory`` and ``kernel`` here, which replace those of this machine.
        """
        return {}

    @property
    def remarks(self) -> Sequence[str]:
        """Lines about the hosts for every message of a claim; by default there are none."""
        return ()

    def notice(self) -> str:
        """Why the hosts will soon be gone; empty while they stay. It is called after every block of rounds."""
        return ""

    @property
    def disk(self) -> str:
        """The kind of disk with the servers' data; servers choose options by it. Empty if it is unknown."""
        return ""

    def memory(self) -> Memory:
        """The memory of the machine that the hosts run on; the default is this machine's."""
        import psutil  # not needed to collect tests

        memory = psutil.virtual_memory()
        return Memory(memory.total, memory.available)

    def node_memory(self, spec: ClusterSpec, machine: int) -> int:
        """The memory that one node may use ``80 %`` of, in bytes. ``machine``: the memory of the machine, in bytes."""
        return memory_share(spec, machine)

    def most_memory(self, spec: ClusterSpec, machine: int) -> int:
        """The maximum memory for the caches of one node, in bytes. ``machine``: as in ``node_memory``."""
        return self.node_memory(spec, machine)

    def beside(self, host: Host) -> Host:
        """A host for our Python programs that ``host`` can connect to: ``host`` itself, unless it may lack Python."""
        return host

    def unmet(self, spec: ClusterSpec) -> str:
        """A message with the needs of a spec that the hosts do not meet, and why; otherwise empty."""
        powers = spec.needs.powers
        lacks = [power for power in powers if power not in self.offers] if powers else []
        if not lacks:
            return ""
        asked = ", ".join(powers[power] for power in lacks)
        missing = self.missing
        reasons = "; ".join(dict.fromkeys(missing[power] for power in lacks if power in missing))
        storage = f"storage {spec.needs.storage}, " if spec.needs.storage and "iops" in lacks else ""
        return f"cluster {spec} needs {storage}{asked} of its hosts, which this provisioner does not offer here" + (
            f": {reasons}" if reasons else ""
        )

    def describe_stay(self) -> Stay:
        """Where the run stays after ``leave``; called before it. Raises ProvisionError."""
        return Stay(f"dbcluster down {self.run_id}")

    def close(self) -> None:  # noqa: B027  (most provisioners hold nothing beyond their hosts)
        """End the rest of the run, unless ``leave`` was called. A second call does nothing."""


@runtime_checkable
class Keeps(Protocol):
    """An optional protocol: a run made with ``keep=True`` can outlive this process; later commands end it by its id."""

    run_id: str
    """The id of the run."""

    directory: Path
    """The directory of the run on this machine."""

    def describe_stay(self) -> Stay:
        """Where the run stays."""

    def leave(self) -> None:
        """Leave the run alive when this process ends. Raises ProvisionError for a run made without ``keep``."""


def memory_share(spec: ClusterSpec, machine: int) -> int:
    """The memory that one node may use ``80 %`` of, in bytes: the limit of its host, or an equal share of the machine.

    ``machine``: the memory of the machine, in bytes.
    """
    return spec.needs.memory or machine // spec.nodes


def own_cores(offers: frozenset[str], spec: ClusterSpec, usable: float) -> bool:
    """Whether each node of a cluster has its own CPUs.

    True on separate machines (no ``shared-cores`` in ``offers``). On one machine with ``usable`` CPUs three things make
    it true. The spec limits each host (``cores=``), the provisioner enforces that limit, and the CPUs suffice for all
    nodes.
    """
    if "shared-cores" not in offers:
        return True
    cores = spec.needs.cores
    return "cores" in offers and cores is not None and cores * spec.nodes <= usable


def module_of(name: str) -> str:
    """The name of the module of ``--db-provisioner NAME``. Raises ConfigError with the known names."""
    return registry.find("provisioner", name, planned=PLANNED)


def provisioner_class(name: str) -> Callable[..., Provisioner]:
    """The class of ``--db-provisioner NAME``. Raises ConfigError with the known names."""
    provisioner: Callable[..., Provisioner] = importlib.import_module(module_of(name)).PROVISIONER
    return provisioner


def name_of(provisioner: Provisioner) -> str:
    """The value of ``--db-provisioner`` for this provisioner; for one from another package, the name of its module."""
    _, _, name = type(provisioner).__module__.partition(".provisioners.")
    return name.partition(".")[0] or type(provisioner).__module__


def parse_images(given: Sequence[str], provisioner: str) -> Mapping[str, str]:
    """The images of ``--db-image``: name of the release -> image. Raises ConfigError."""
    if given and provisioner != "container":
        raise ConfigError(
            f"an image was given ({given[0]}), but the provisioner {provisioner} uses no images; "
            "use --db-provisioner container"
        )
    images = {}
    for text in given:
        name, _, image = text.partition("=")
        if not image:
            raise ConfigError(
                f"--db-image {text!r}: it accepts NAME:VERSION=IMAGE, such as mariadb:11.8=mariadb:11.8.6"
            )
        images[str(ReleaseName.parse(name))] = image
    return images
