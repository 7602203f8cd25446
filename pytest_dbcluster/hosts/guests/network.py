"""A network of guests: a network namespace with a bridge, and a port of the bridge for each guest.

A process that sleeps holds the namespace. When it ends with the run, the kernel removes the namespace and everything in
it, and the end of the pair of interfaces that is in this machine's own namespace.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import shutil
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from pytest_dbcluster.errors import CommandFailed, ProvisionError, Unsupported
from pytest_dbcluster.hosts.local_run import LocalRun
from pytest_dbcluster.hosts.subnets import free_subnet
from pytest_dbcluster.releases.release import Release

BEGIN_SECONDS = 10.0
DIRECTORY = "network"
LOG = "network.log"
BRIDGE = "bridge0"
UPLINK = "uplink"


class Network:
    """The network of the guests of one run. This machine has its first address, ``gateway``.

    ``tools``: the release ``vm``, which has the program ip. Needs root. Raises Unsupported and ProvisionError.
    """

    def __init__(self, run: LocalRun, tools: Release) -> None:
        if reason := missing():
            raise Unsupported(reason)
        self._ip = str(tools.program("ip"))
        self._host = run.host("network", run.directory / DIRECTORY)
        self._numbering = threading.Lock()
        self._ports = 0
        self.subnet = free_subnet()
        self._free = list(self.subnet.hosts())
        self.gateway = self._address()
        self._holder = self._host.spawn(
            ["unshare", "--net", "sleep", "infinity"],
            log=f"{self._host.directory}/{LOG}",
            directory=self._host.directory,
        )
        self._wait_held()
        self._ours = f"dbc{run.run_id}"
        self._connect()

    @property
    def enter(self) -> list[str]:
        """The words of a command that runs another command in the namespace."""
        return ["nsenter", "--target", str(self._holder.pid), "--net"]

    def _wait_held(self) -> None:
        """Wait until the holder is in a namespace of its own."""
        limit = time.monotonic() + BEGIN_SECONDS
        ours = Path("/proc/self/ns/net").readlink()
        while time.monotonic() < limit:
            with contextlib.suppress(OSError):
                if Path(f"/proc/{self._holder.pid}/ns/net").readlink() != ours:
                    return
            if self._holder.status() is not None:
                break
            time.sleep(0.005)
        said = self._host.pull(f"{self._host.directory}/{LOG}").decode("utf-8", "replace").strip()
        raise ProvisionError(f"cannot make a network namespace for guests: {said or 'unshare --net does not answer'}")

    def _connect(self) -> None:
        """Make the bridge, and a pair of interfaces between it and this machine."""
        self._batch(
            self.enter,
            "link set lo up",
            f"link add {BRIDGE} type bridge",
            f"link set {BRIDGE} addrgenmode none up",
        )
        self._batch(
            [],
            f"link add {self._ours} type veth peer name {UPLINK} netns {self._holder.pid}",
            f"link set {self._ours} addrgenmode none up",
            f"addr add {self.gateway} dev {self._ours}",
        )
        self._batch(self.enter, f"link set {UPLINK} master {BRIDGE} addrgenmode none up")

    def attach(self) -> tuple[str, ipaddress.IPv4Interface]:
        """A new port: the interface that a guest takes, and the guest's address. Raises ProvisionError."""
        with self._numbering:
            self._ports += 1
            number, address = self._ports, self._address()
        # The kernel of this machine must not answer for a guest: without ARP it takes no packet of the interface.
        self._batch(
            self.enter,
            f"link add {_port(number)} type veth peer name {_guest(number)}",
            f"link set {_guest(number)} arp off addrgenmode none up",
            f"link set {_port(number)} master {BRIDGE} addrgenmode none up",
        )
        return _guest(number), address

    def detach(self, interface: str, address: ipaddress.IPv4Interface) -> None:
        """Remove a port. One that is gone already is no error."""
        with contextlib.suppress(ProvisionError):
            self._batch(self.enter, f"link delete {interface}")
        with self._numbering:
            self._free.append(address.ip)

    def cut(self, interface: str) -> None:
        """Cut a guest off from all others and from this machine. Raises ProvisionError."""
        self._batch(self.enter, f"link set {_peer(interface)} down")

    def join(self, interface: str) -> None:
        """Connect a guest again. Raises ProvisionError."""
        self._batch(self.enter, f"link set {_peer(interface)} up")

    def close(self) -> None:
        """Disconnect this machine. The kernel does it, a little later, when nobody is in the namespace any more."""
        with contextlib.suppress(ProvisionError):
            self._batch([], f"link delete {self._ours}")

    def _address(self) -> ipaddress.IPv4Interface:
        return ipaddress.IPv4Interface(f"{self._free.pop(0)}/{self.subnet.prefixlen}")

    def _batch(self, enter: Sequence[str], *lines: str) -> None:
        """Run commands of the program ip. Raises ProvisionError."""
        try:
            self._host.run([*enter, self._ip, "-batch", "-"], text="\n".join(lines) + "\n")
        except CommandFailed as error:
            raise ProvisionError(f"cannot make the network of guests ({'; '.join(lines)}): {error}") from error


def missing() -> str:
    """Why guests cannot have a network here; empty when they can."""
    if os.geteuid() != 0:
        return "guests need root on this machine: their network is a namespace that this machine is connected to"
    if absent := [program for program in ("unshare", "nsenter") if not shutil.which(program)]:
        return f"guests need the program {' and '.join(absent)} (package util-linux)"
    return ""


def _port(number: int) -> str:
    return f"port{number}"


def _guest(number: int) -> str:
    return f"guest{number}"


def _peer(interface: str) -> str:
    return interface.replace("guest", "port")
