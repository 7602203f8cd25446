"""Container provisioner: every node, proxy and load generator runs in a container on a network of the run.

A container is a host. Its programs come from the image; we do not use the entry point and the user of the image. Data
are in directories on a file system of this machine, and containers mount these directories under the same paths. Tools
that images do not have (sysbench, haproxy, mysqlslap, MySQL Router) come from the cache, mounted read-only. A release
in a user's directory comes from there too. Containers end with our process.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import os
import shutil
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pytest_dbcluster import registry
from pytest_dbcluster.errors import ConfigError, ProvisionError, Unsupported
from pytest_dbcluster.formatting import Report
from pytest_dbcluster.hosts import agent
from pytest_dbcluster.hosts.host import Host
from pytest_dbcluster.hosts.local_host import LocalHost
from pytest_dbcluster.hosts.local_run import LocalRunProvisioner
from pytest_dbcluster.hosts.network import local_paths, routed_path
from pytest_dbcluster.hosts.provisioner import NO_DISKS
from pytest_dbcluster.hosts.provisioners.container import engine, image_release, images, system_image
from pytest_dbcluster.hosts.provisioners.container.engine import Engine, Wanted
from pytest_dbcluster.hosts.provisioners.container.host import Attachment, ContainerHost
from pytest_dbcluster.hosts.subnets import free_subnet
from pytest_dbcluster.hosts.supervisor import RUN_VARIABLE
from pytest_dbcluster.releases.release import Release
from pytest_dbcluster.spec import ClusterSpec, ReleaseName
from pytest_dbcluster.system import block_devices, cache

ATTEMPTS = 20  # to find a free subnet
NO_ROOT = "only root can enter the networks of containers; --db-provisioner local and vm do not need root for it"
TAKEN = ("overlap", "already used")  # in the errors of Docker and Podman for a subnet in use


class ContainerProvisioner(LocalRunProvisioner):
    """Hosts that are containers of one run.

    ``chosen``: the images of releases that do not use ours, "mariadb:11.8" -> "name:tag".
    """

    brings_programs = True
    has_own_system = True
    offers = frozenset(
        {"shared-cores", "cores", "memory", "iops"} | ({"root", "netem"} if os.geteuid() == 0 else set())
    )
    missing = MappingProxyType({"netem": NO_ROOT, "block-devices": NO_DISKS})

    def __init__(self, *, keep: bool = False, chosen: dict[str, str] | None = None) -> None:
        super().__init__(keep=keep)
        self._chosen = dict(chosen or {})
        self._making = threading.Lock()  # protects the engine, the addresses and the images
        self._engine: Engine | None = None
        self._network: Any = None
        self._addresses: list[str] = []
        self._gateway = ""
        self._images: dict[str, str] = {}
        self._digests: dict[str, str] = {}
        self._releases: dict[ReleaseName, Release] = {}
        self._hosts: set[ContainerHost] = set()

    def host_type(self, spec: ClusterSpec) -> type[ContainerHost]:
        """Containers."""
        return ContainerHost

    @property
    def environment(self) -> Mapping[str, str]:
        """The digests of the images that the user chose: ``image mysql:8.4`` -> ``mysql@sha256:...``."""
        return dict(self._digests)

    def at_hand(self, name: ReleaseName) -> bool:
        """Whether we have already inspected the image of a release, which needs a container."""
        return name in self._releases

    def supply(self, name: ReleaseName, progress: Report) -> Release:
        """The release in its image, inspected once per run. Raises ProvisionError, Unsupported or ConfigError."""
        if name.version == "path":
            raise ConfigError(
                f"{name}: containers do not see the installed server; use an image: --db-image NAME:VERSION=IMAGE"
            )
        if name.directory and str(name) in self._chosen:
            raise ConfigError(f"{name} has both the image {self._chosen[str(name)]} and {name.directory}; give one")
        if name not in self._releases:
            supply = self._copy_directory if name.directory else self._inspect_image
            self._releases[name] = supply(name, progress)
        return self._releases[name]

    def _copy_directory(self, name: ReleaseName, progress: Report) -> Release:
        """The release in a directory, as a copy that containers of the system image can run."""
        found = super().supply(name, progress)
        return dataclasses.replace(found, image=self._image(name, progress), directory=name.directory)

    def _inspect_image(self, name: ReleaseName, progress: Report) -> Release:
        """The release in an image, as a container of it shows."""
        image = self._image(name, progress)
        hosts = self.acquire(ClusterSpec("standalone", release=name, name="look"))
        try:
            return image_release.find(name, self._tag(name), image, hosts[0])
        finally:
            self.give_back(hosts)

    def acquire(self, spec: ClusterSpec) -> Sequence[ContainerHost]:
        """One container for each node. The first call makes the network. Raises ProvisionError or Unsupported."""
        if spec.release is None:
            raise ConfigError(f"cluster {spec} names no release, and so no image")
        releases = list(spec.releases)
        for release in dict.fromkeys(releases):
            self._image(release, self.progress)
        places = self._places(spec)
        releases += releases[:1] * (len(places) - len(releases))
        made = list(zip(releases, places, strict=True))
        hosts = self._make_all(lambda one: self._host(one[0], spec, one[1]), made)
        if spec.needs.network:
            self._connect(hosts, Path(hosts[0].directory).parent)
        return hosts[: spec.nodes]

    def _connect(self, hosts: Sequence[ContainerHost], directory: Path) -> None:
        """Put containers on a path that can be delayed. Raises ProvisionError or Unsupported, and then ends them."""
        try:
            given = {host.name: (host.first_process, host) for host in hosts}
            path = local_paths.make_path(self._run, directory, list(given), given)
            for host in hosts:
                host.path = path
        except BaseException:
            self.give_back(hosts)
            raise

    def _host(self, release: ReleaseName, spec: ClusterSpec, directory: Path) -> ContainerHost:
        name, cluster, connected = directory.name, directory.parent.name, self._connection()
        files = self._run.host(name, directory)
        with self._making:
            address = self._addresses.pop(0)
        wanted = Wanted(
            image=self._image(release, self.progress),  # another user may move the tag to another image during the run
            name=f"dbcluster-{self.run_id}-{cluster}-{name}",
            hostname=name,
            alias=f"{name}.{cluster}",
            address=address,
            run=self.directory,
            entrypoint=["/bin/sh", "-c", agent.PROGRAM + (agent.STAYS if self._run.keep else "")],
            environment={RUN_VARIABLE: self.run_id},
            read_only=[str(cache.releases()), str(Path(registry.__file__).parent)],
            writable=[files.directory],
            user=f"{os.getuid()}:{os.getgid()}",
            keep=self._run.keep,
            needs=_limits(spec, files.directory, connected.unlimited),
        )
        container = engine.start(connected, self._network, wanted)
        try:
            attachment = Attachment(self._network, address, wanted.alias)
            host = ContainerHost(name, attachment, files, connected, container)
            self._hosts.add(host)
            return host
        except BaseException:
            with contextlib.suppress(Exception):
                container.remove(force=True)
            raise

    def beside(self, host: Host) -> LocalHost:
        """A host of this machine, with the address at which containers reach this machine."""
        local = self._run.host(host.name, Path(host.directory))
        local.address = self._gateway
        return local

    def give_back(self, hosts: Sequence[Host]) -> None:
        """End these containers and remove their directories."""
        ended = [*hosts, *(host for host in routed_path.close_all(hosts) if host not in hosts)]
        with concurrent.futures.ThreadPoolExecutor(max(1, len(ended))) as threads:
            list(threads.map(self._end_host, ended))

    def _end_host(self, host: Host) -> None:
        if isinstance(host, ContainerHost):
            host.close()
            self._hosts.discard(host)
            self._addresses.append(host.address)
        shutil.rmtree(host.directory, ignore_errors=True)

    def close(self) -> None:
        """End every container of the run, remove its network and its directory; after ``leave`` they stay."""
        for host in self._hosts:
            host.detach()  # ends the container, unless the run is kept
        self._hosts.clear()
        self._run.close()
        if self._engine:
            self._engine.close()
            self._engine = None

    def _tag(self, name: ReleaseName) -> str:
        if name.directory:
            return images.tag(system_image.NAME)
        return self._chosen.get(str(name)) or images.tag(name)

    def _connection(self) -> Engine:
        """The engine; the first call connects to it and makes the network."""
        with self._making:
            return self._engine or self._begin()

    def _image(self, name: ReleaseName, progress: Report) -> str:
        """The id of a release's image. If the engine lacks it, this pulls a chosen image, or makes the system image.

        Raises ProvisionError that says how to get an image.
        """
        connected, tag = self._connection(), self._tag(name)
        with self._making:
            if tag not in self._images:
                if name.directory:
                    self._images[tag] = system_image.build(connected, progress).id
                else:
                    chosen = self._chosen.get(str(name))
                    self._images[tag] = engine.image(connected, tag, pull=progress if chosen else None)
                    self._digests |= {f"image {name}": engine.digest(connected, chosen)} if chosen else {}
            return self._images[tag]

    def _begin(self) -> Engine:
        """Connect to the engine and make the network. When we end, the supervisor removes network and containers."""
        connected = engine.connect()
        engine.reap(connected)
        # Containers mount this directory. If it were missing, the engine would create it, owned by root.
        cache.releases().mkdir(parents=True, exist_ok=True)
        cleaning = [sys.executable, "-P", engine.__file__, "clean", self.run_id]
        package = str(Path(registry.__file__).parents[1])
        self._run.clean_up_by(cleaning, {"DOCKER_HOST": connected.url, "PYTHONPATH": package})
        for attempt in range(ATTEMPTS):
            subnet = free_subnet()
            try:
                self._network = engine.network(connected, self.directory, str(subnet))
                break
            except ProvisionError as error:
                if not any(word in str(error) for word in TAKEN) or attempt == ATTEMPTS - 1:
                    raise
        hosts = [str(address) for address in subnet.hosts()]
        self._gateway, self._addresses = hosts[0], hosts[1:]
        self._engine = connected
        return connected


def _limits(spec: ClusterSpec, directory: str, unlimited: frozenset[str]) -> dict[str, Any]:
    """The limits of a spec as arguments of the engine. Raises Unsupported for limits that the engine would ignore."""
    needs = spec.needs
    if dropped := sorted(unlimited & needs.powers.keys()):
        raise Unsupported(
            f"cluster {spec} needs limits of {' and '.join(dropped)}, which the kernel or the engine of this machine "
            "cannot enforce for a container: `docker info` or `podman info` shows what it has"
        )
    limits: dict[str, Any] = {}
    if needs.cores:
        limits["nano_cpus"] = int(needs.cores * 1e9)
    if needs.memory:
        # Without a limit for swap, a container may use the same amount of swap too.
        limits |= {"mem_limit": needs.memory, "memswap_limit": needs.memory}
    if needs.iops:
        limits["device_write_iops"] = [{"Path": block_devices.node(Path(directory)), "Rate": needs.iops}]
    return limits
