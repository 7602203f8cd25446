"""Guest provisioner: every node is a guest of user-mode Linux, a virtual machine that needs no hypervisor.

A guest is a process of this machine with its own kernel, one CPU, memory and a network interface. If the topology asks
for it, a second interface carries only replication. Its programs are those of the cache. The data of its server are on
a separate disk, a sparse file of the run. Its other files are in a directory of this machine, which the guest sees
under the same path.
"""

from __future__ import annotations

import concurrent.futures
import functools
import itertools
import os
import shutil
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from pytest_dbcluster import registry
from pytest_dbcluster.errors import Unsupported
from pytest_dbcluster.formatting import Report
from pytest_dbcluster.hosts.guests.disk import Disk
from pytest_dbcluster.hosts.guests.guest import GuestHardware
from pytest_dbcluster.hosts.guests.network import Network
from pytest_dbcluster.hosts.host import Host
from pytest_dbcluster.hosts.local_host import LocalHost
from pytest_dbcluster.hosts.local_run import LocalRunProvisioner
from pytest_dbcluster.hosts.network import guest_path
from pytest_dbcluster.hosts.network.guest_path import GuestPath
from pytest_dbcluster.hosts.provisioners.vm.disk_images import DiskImages
from pytest_dbcluster.hosts.provisioners.vm.host import GuestHost
from pytest_dbcluster.network import BESIDE_NODES
from pytest_dbcluster.releases import fetched
from pytest_dbcluster.releases.catalogue import GUEST_SYSTEM
from pytest_dbcluster.releases.find import find
from pytest_dbcluster.releases.release import Release
from pytest_dbcluster.spec import ClusterSpec, HostNeeds, ReleaseName
from pytest_dbcluster.system import cache, cgroups

MEMORY = 2**30  # default memory of a guest; the machine allocates it page by page
CPUS = 1  # the kernel of a guest runs on one
DISK = 64 * 2**30  # default disk size of a guest; the file grows with its writes
DISK_FILE = "disk"
SPEED = "one CPU each; servers in them are 2 to 4 times slower than native ones"  # TPC-C and sysbench, 2 cores
DISKS = "ext4 on a virtio disk of each guest, a file of this machine; a flush is an fdatasync of the file"


class GuestProvisioner(LocalRunProvisioner):
    """Hosts that are guests of one run."""

    has_own_system = True

    def __init__(self, *, keep: bool = False) -> None:
        super().__init__(keep=keep)
        self._beginning = threading.Lock()
        self._system: Release | None = None
        self._network: Network | None = None
        self._hosts: set[GuestHost] = set()
        self._cores = sorted(os.sched_getaffinity(0))
        self._images = DiskImages(self.directory / "images")

    @functools.cached_property
    def offers(self) -> frozenset[str]:
        """The powers of guests; control groups of this machine limit their CPU and disk."""
        limits = cgroups.find(self.directory.parent).offers - {"memory"}
        return frozenset({"shared-cores", "root", "netem", "memory", "block-devices"} | limits)

    def host_type(self, spec: ClusterSpec) -> type[GuestHost]:
        """Guests."""
        return GuestHost

    @property
    def missing(self) -> Mapping[str, str]:
        """Why other powers are not offered: power -> a clause with the reason."""
        return cgroups.find(self.directory.parent).missing

    def at_hand(self, name: ReleaseName) -> bool:
        """Whether the release and the system of guests are available. Raises ConfigError as the base class does."""
        return super().at_hand(name) and (self._system or fetched.lookup(GUEST_SYSTEM, "")) is not None

    def supply(self, name: ReleaseName, progress: Report) -> Release:
        """The release with this name, and the system of guests, fetched if needed. Raises what ``find`` raises."""
        self._system = self._system or find(GUEST_SYSTEM, progress=progress)
        return super().supply(name, progress)

    @property
    def environment(self) -> Mapping[str, str]:
        """The exact kernel of guests, if it is fetched, their speed, and their kind of disk."""
        system = self._system or fetched.lookup(GUEST_SYSTEM, "")
        return {"guests": f"user-mode Linux {system.version}, {SPEED}", "disks": DISKS} if system else {}

    @property
    def disk(self) -> str:
        """The guest's disk, independent of this machine's."""
        return DISKS

    def node_memory(self, spec: ClusterSpec, machine: int) -> int:
        """The memory of a guest, in bytes, independent of this machine's."""
        return spec.needs.memory or MEMORY

    def unmet(self, spec: ClusterSpec) -> str:
        """A message with the needs of a spec that guests do not meet, and why; otherwise empty."""
        if spec.needs.cores and spec.needs.cores > CPUS:
            return (
                f"cluster {spec} needs cores={spec.needs.cores:g} of its hosts: a guest has one CPU, so cores= "
                f"is at most {CPUS} with --db-provisioner vm"
            )
        return super().unmet(spec)

    def acquire(self, spec: ClusterSpec) -> Sequence[GuestHost]:
        """One guest for each node. The first call makes the network. Raises ProvisionError or Unsupported.

        Node n of each cluster has the same core of this machine. So clusters of one topology are equal in this.
        """
        return self._acquire(spec, self._cores)

    def client(self, spec: ClusterSpec) -> Host:
        """A guest for the load generator, on the core that the fewest nodes have."""
        return self._acquire(spec, self._cores[::-1])[0]

    def _acquire(self, spec: ClusterSpec, cores: Sequence[int]) -> Sequence[GuestHost]:
        if reason := self.unmet(spec):
            raise Unsupported(reason)
        system, network = self._begin()
        places = self._places(spec)
        core = dict(zip(places, itertools.cycle(cores), strict=False))
        hosts = self._make_all(lambda place: self._host(system, network, spec, place, core[place]), places)
        if spec.needs.network:
            self._connect(hosts)
        return hosts[: spec.nodes]

    def _connect(self, hosts: Sequence[GuestHost]) -> None:
        """Put guests on a path that can be delayed. Raises ProvisionError, and then ends them."""
        try:
            path = GuestPath({host.name: host for host in hosts})
        except BaseException:
            self.give_back(hosts)
            raise
        for host in hosts:
            host.path = path

    def _begin(self) -> tuple[Release, Network]:
        with self._beginning:
            system = self._system = self._system or find(GUEST_SYSTEM)
            self._network = self._network or Network(self._run, system)
            return system, self._network

    def _host(self, system: Release, network: Network, spec: ClusterSpec, directory: Path, core: int) -> GuestHost:
        files = self._run.host(directory.name, directory)
        limits = HostNeeds(cores=spec.needs.cores, iops=spec.needs.iops)
        if limits.powers:
            self._run.limit(files, f"{directory.parent.name}-{directory.name}", limits)
        links = [False, True] if spec.needs.replication_link and directory.name not in BESIDE_NODES else [False]
        interfaces = [network.attach(replication=link) for link in links]
        machine = GuestHardware(
            memory=spec.needs.memory or MEMORY,
            interfaces=interfaces,
            enter=network.enter,
            read_only=[str(cache.releases()), str(Path(registry.__file__).parent)],
            writable=[files.directory],
            disks=[Disk(Path(files.directory, DISK_FILE), spec.needs.disk or DISK)],
            keep=self._run.keep,
            core=core,
        )
        try:
            host = GuestHost(directory.name, system, files, machine, network, self._images)
        except BaseException:
            for interface, address in interfaces:
                network.detach(interface, address)
            if files.group:
                files.group.remove()
            raise
        self._hosts.add(host)
        return host

    def workshop(self, spec: ClusterSpec) -> LocalHost:
        """A host of this machine: it has the same programs, and makes data three times as fast."""
        return self._run.host("node1", self._run.cluster_directory(spec) / "node1")

    def beside(self, host: Host) -> LocalHost:
        """A host of this machine, with the address at which guests reach this machine."""
        _, network = self._begin()
        local = self._run.host(host.name, Path(host.directory))
        local.address, local.connects = str(network.gateway.ip), network.connects
        local.enters = [] if network.connects is None else network.enter
        return local

    def give_back(self, hosts: Sequence[Host]) -> None:
        """End these guests and remove their directories."""
        ended = [*hosts, *(host for host in guest_path.others(hosts) if host not in hosts)]
        with concurrent.futures.ThreadPoolExecutor(max(1, len(ended))) as threads:
            list(threads.map(self._end, ended))

    def _end(self, host: Host) -> None:
        if isinstance(host, GuestHost):
            host.close()
            self._hosts.discard(host)
        shutil.rmtree(host.directory, ignore_errors=True)

    def close(self) -> None:
        """End every guest of the run, and remove its network and its directory; after ``leave`` they stay."""
        for host in self._hosts:
            host.detach()
        self._hosts.clear()
        if self._network:
            self._network.close(keep=self._run.left)
        self._network = None
        self._run.close()
