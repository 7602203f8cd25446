"""Container provisioner: every node, every proxy and every load is a container, all of them on a network of the run's.

A container is a host: the image has the programs, its own entry point is not used. Data lie in directories of this
machine, on its own file system, which containers share under the same names; tools that no image has (sysbench,
haproxy) come from the cache, which they share for reading. Containers end when the process that made them does.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import ipaddress
import os
import random
import shutil
import sys
import threading
from collections.abc import Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

from pytest_dbcluster import registry
from pytest_dbcluster.errors import ConfigError, ProvisionError, Unsupported
from pytest_dbcluster.formatting import Report
from pytest_dbcluster.hosts.host import Host
from pytest_dbcluster.hosts.local_host import LocalHost
from pytest_dbcluster.hosts.local_run import LocalRun
from pytest_dbcluster.hosts.provisioner import Provisioner
from pytest_dbcluster.hosts.provisioners.container import agent, engine, image_release, images
from pytest_dbcluster.hosts.provisioners.container.engine import Engine, Wanted
from pytest_dbcluster.hosts.provisioners.container.host import ContainerHost, Way
from pytest_dbcluster.hosts.supervisor import RUN_VARIABLE
from pytest_dbcluster.releases.release import Release
from pytest_dbcluster.spec import ClusterSpec, ReleaseName
from pytest_dbcluster.system import block_devices, cache

SUBNETS = ipaddress.IPv4Network("10.128.0.0/9")
SUBNET_BITS = 20  # 4094 addresses: as many containers in one run
TRIES = 20
TAKEN = ("overlap", "already used")  # what Docker and Podman say of a subnet that is another network's


class ContainerProvisioner(Provisioner):
    """Hosts that are containers of one run. With ``keep`` the run may be left running.

    ``chosen`` are the images of releases that are not to come from those made here: "mariadb:11.8" -> "name:tag".
    """

    brings_programs = True
    # Whether packets can be delayed is known when it is tried: acquire() says what is missing.
    offers = frozenset(
        {"shared-cores", "cores", "memory", "iops", "netem"} | ({"root"} if os.geteuid() == 0 else set())
    )

    def __init__(self, *, keep: bool = False, chosen: dict[str, str] | None = None) -> None:
        self._run = LocalRun(keep=keep)
        self.run_id, self.directory = self._run.run_id, self._run.directory
        self._chosen = dict(chosen or {})
        self._making = threading.Lock()
        self._engine: Engine | None = None
        self._network: Any = None
        self._addresses: list[str] = []
        self._gateway = ""
        self._images: dict[str, str] = {}
        self._releases: dict[ReleaseName, Release] = {}
        self._hosts: set[ContainerHost] = set()

    def supply(self, name: ReleaseName, progress: Report) -> Release:
        """The release in its image, looked into once a run. Raises ProvisionError, Unsupported or ConfigError."""
        if name.directory or name.version == "path":
            raise ConfigError(
                f"{name}={name.directory}: containers take their programs from images: --db-image NAME=IMAGE"
            )
        if name not in self._releases:
            hosts = self.acquire(ClusterSpec("standalone", release=name, name="look"))
            try:
                tag = self._tag(name)
                self._releases[name] = image_release.find(name, tag, self._image(tag), hosts[0])
            finally:
                self.give_back(hosts)
        return self._releases[name]

    def acquire(self, spec: ClusterSpec) -> Sequence[ContainerHost]:
        """One container for each node; the first call makes the network. Raises ProvisionError or Unsupported."""
        if spec.release is None:
            raise ConfigError(f"cluster {spec} names no release, and so no image")
        with self._making:
            made = self._engine or self._begin()
        tag = self._tag(spec.release)
        self._image(tag)
        place = self._run.place(spec)
        names = [f"node{number}" for number in range(1, spec.nodes + 1)]
        with concurrent.futures.ThreadPoolExecutor(len(names)) as threads:
            begun = [threads.submit(self._host, made, spec, tag, place, name) for name in names]
            concurrent.futures.wait(begun)
        hosts = [one.result() for one in begun if not one.exception()]
        if failed := next((error for one in begun if (error := one.exception())), None):
            self.give_back(hosts)
            raise failed
        return hosts

    def _host(self, made: Engine, spec: ClusterSpec, tag: str, place: Path, name: str) -> ContainerHost:
        files = self._run.host(name, place / name)
        with self._making:
            address = self._addresses.pop(0)
        wanted = Wanted(
            image=self._image(tag),  # the tag may be given to another image while the run goes on
            name=f"dbcluster-{self.run_id}-{place.name}-{name}",
            hostname=name,
            alias=f"{name}.{place.name}",
            address=address,
            run=self.directory,
            entrypoint=["/bin/sh", "-c", agent.PROGRAM + (agent.STAYS if self._run.keep else "")],
            environment={RUN_VARIABLE: self.run_id},
            read_only=[str(cache.releases()), str(Path(registry.__file__).parent)],
            writable=[files.directory],
            user=f"{os.getuid()}:{os.getgid()}",
            keep=self._run.keep,
            needs=_limits(spec, files.directory, made.unlimited),
        )
        container = engine.start(made, self._network, wanted)
        try:
            way = Way(self._network, address, wanted.alias, spec.needs.rtt)
            way.delay(container)
            host = ContainerHost(name, way, files, made, container)
            self._hosts.add(host)
            return host
        except BaseException:
            with contextlib.suppress(Exception):
                container.remove(force=True)
            raise

    def beside(self, host: Host) -> LocalHost:
        """A host of this machine, at the address that containers reach it by."""
        ours = self._run.host(host.name, Path(host.directory))
        ours.address = self._gateway
        return ours

    def give_back(self, hosts: Sequence[Host]) -> None:
        """End these containers and remove their directories."""
        with concurrent.futures.ThreadPoolExecutor(max(1, len(hosts))) as threads:
            list(threads.map(self._released, hosts))

    def _released(self, host: Host) -> None:
        if isinstance(host, ContainerHost):
            host.close()
            self._hosts.discard(host)
            self._addresses.append(host.address)
        shutil.rmtree(host.directory, ignore_errors=True)

    def leave(self) -> None:
        """From now on the end of this process ends nothing; until then a run with ``keep`` dies as any other does."""
        self._run.leave()

    def close(self) -> None:
        """End every container of the run and remove its network and its directory, unless it was left."""
        for host in self._hosts:
            host.detach()  # which ends it, unless it is to be kept
        self._hosts.clear()
        self._run.close()
        if self._engine:
            self._engine.close()
            self._engine = None

    def _tag(self, name: ReleaseName) -> str:
        return self._chosen.get(str(name)) or images.tag(name)

    def _image(self, tag: str) -> str:
        """The id of an image that is there, or can be pulled. Raises ProvisionError that says how to get one."""
        assert self._engine
        with self._making:
            if tag not in self._images:
                self._images[tag] = engine.image(self._engine, tag, pull=tag in self._chosen.values())
            return self._images[tag]

    def _begin(self) -> Engine:
        """Make the network; the run's supervisor removes it, with what is left, when this process is gone."""
        made = engine.connect()
        engine.reap(made)
        # Containers share it; an engine would make a directory that is missing, and it would be root's.
        cache.releases().mkdir(parents=True, exist_ok=True)
        cleaning = [sys.executable, "-P", engine.__file__, "clean", self.run_id]
        package = str(Path(registry.__file__).parents[1])
        self._run.clean_up_by(cleaning, {"DOCKER_HOST": made.url, "PYTHONPATH": package})
        for attempt in range(TRIES):
            subnet = _subnet()
            try:
                self._network = engine.network(made, self.directory, str(subnet))
                break
            except ProvisionError as error:
                if not any(word in str(error) for word in TAKEN) or attempt == TRIES - 1:
                    raise
        hosts = [str(address) for address in subnet.hosts()]
        self._gateway, self._addresses = hosts[0], hosts[1:]
        self._engine = made
        return made


def _subnet() -> ipaddress.IPv4Network:
    """A network of private addresses to which no route of this machine leads."""
    taken = []
    for line in Path("/proc/net/route").read_text().splitlines()[1:]:
        target, mask = (
            ipaddress.IPv4Address(int(word, 16).to_bytes(4, "little")) for word in itemgetter(1, 7)(line.split())
        )
        if int(mask):
            taken.append(ipaddress.IPv4Network(f"{target}/{mask}"))
    choice = list(SUBNETS.subnets(new_prefix=SUBNET_BITS))
    random.SystemRandom().shuffle(choice)
    return next(each for each in choice if not any(each.overlaps(other) for other in taken))


def _limits(spec: ClusterSpec, directory: str, unlimited: frozenset[str]) -> dict[str, Any]:
    """What a spec needs of its hosts, as arguments of the engine. Raises Unsupported for what it would drop."""
    needs = spec.needs
    if dropped := sorted(unlimited & needs.powers.keys()):
        raise Unsupported(
            f"cluster {spec} needs limits of {' and '.join(dropped)}, which the kernel or the engine of this machine "
            "cannot hold for a container: `docker info` says what it lacks"
        )
    found: dict[str, Any] = {}
    if needs.cores:
        found["nano_cpus"] = int(needs.cores * 1e9)
    if needs.memory:
        # Without a limit of its own a container may swap as much again.
        found |= {"mem_limit": needs.memory, "memswap_limit": needs.memory}
    if needs.iops:
        found["device_write_iops"] = [{"Path": block_devices.node(Path(directory)), "Rate": needs.iops}]
    return found
