"""A network of guests: a network namespace with bridges, and a port of a bridge for each interface of a guest.

There are two bridges. One connects the guests with each other and with this machine. The other one is for interfaces
that carry only replication: it has a separate subnet, in which this machine has no address.

A sleeping process holds the namespace. When it ends with the run, the kernel removes the namespace with everything in
it. It also removes our end of its pair of interfaces. Without root there is no such pair. Then programs of this machine
that guests connect to run in the namespace. Our process gets its sockets from there.
"""

from __future__ import annotations

import contextlib
import ipaddress
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from pytest_dbcluster.errors import CommandFailed, ProvisionError, Unsupported
from pytest_dbcluster.hosts.guests import user_namespace
from pytest_dbcluster.hosts.guests.user_namespace import UserNamespace
from pytest_dbcluster.hosts.host import Connects
from pytest_dbcluster.hosts.local_run import LocalRun
from pytest_dbcluster.hosts.subnets import NO_IPV6, free_subnet
from pytest_dbcluster.releases.release import Release

BEGIN_SECONDS = 10.0
DIRECTORY = "network"
LOG = "network.log"
BRIDGE, REPLICATION_BRIDGE = "bridge0", "bridge1"
UPLINK = "uplink"
MAC = "02:00:00:00:00:01"  # locally administered


class Network:
    """The network of the guests of one run. This machine has its first address, ``gateway``.

    ``tools``: the release ``vm``, which has the program ip. Raises Unsupported and ProvisionError.
    """

    enter: list[str]
    """The beginning of a command line that runs a command in the namespace."""

    connects: Connects | None = None
    """As of a host (``Host.connects``)."""

    def __init__(self, run: LocalRun, tools: Release) -> None:
        if reason := why_not():
            raise Unsupported(reason)
        self._ip = str(tools.program("ip"))
        self._host = run.host("network", run.directory / DIRECTORY)
        self._numbering = threading.Lock()
        self._ports = 0
        self.subnet, self.replication_subnet = free_subnet().subnets()
        self._free = {subnet: list(subnet.hosts()) for subnet in (self.subnet, self.replication_subnet)}
        self.gateway = self._address(self.subnet)
        self._ours = f"dbc{run.run_id}"
        self._namespace: UserNamespace | None = None
        if user_namespace.root():
            self._begin()
        else:
            self._begin_without_root()

    def _begin(self) -> None:
        """Make the namespace, and connect this machine."""
        self._holder = self._host.spawn(
            [*user_namespace.AS_ROOT, "sleep", "infinity"],
            log=f"{self._host.directory}/{LOG}",
            directory=self._host.directory,
        )
        self._wait_held()
        self.enter = ["nsenter", "--target", str(self._holder.pid), "--net"]
        self._bridge()
        self._connect()

    def _begin_without_root(self) -> None:
        """Make the namespace; the address of this machine is in it."""
        self._namespace = namespace = UserNamespace(self._host, DIRECTORY)
        self.enter, self.connects = namespace.command_inside(), namespace.connect
        self._bridge()
        # Without a fixed address, a bridge takes that of one of its ports, and changes it when that port disappears.
        self._batch(self.enter, f"link set {BRIDGE} address {MAC}", f"addr add {self.gateway} dev {BRIDGE}")

    def _wait_held(self) -> None:
        """Wait until the holder is in a new namespace."""
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

    def _bridge(self) -> None:
        self._batch(
            self.enter,
            "link set lo up",
            *(
                f"link {does.format(bridge)}"
                for bridge in (BRIDGE, REPLICATION_BRIDGE)
                for does in ("add {} type bridge", f"set {{}} {NO_IPV6} up")
            ),
        )

    def _connect(self) -> None:
        """Make a pair of interfaces between the bridge and this machine."""
        self._batch(
            [],
            f"link add {self._ours} type veth peer name {UPLINK} netns {self._holder.pid}",
            f"link set {self._ours} {NO_IPV6} up",
            f"addr add {self.gateway} dev {self._ours}",
        )
        self._batch(self.enter, f"link set {UPLINK} master {BRIDGE} {NO_IPV6} up")

    def attach(self, *, replication: bool = False) -> tuple[str, ipaddress.IPv4Interface]:
        """A new port: the interface for a guest, and the guest's address. Raises ProvisionError.

        replication: whether the port is on the bridge for replication.
        """
        bridge, subnet = (REPLICATION_BRIDGE, self.replication_subnet) if replication else (BRIDGE, self.subnet)
        with self._numbering:
            self._ports += 1
            number, address = self._ports, self._address(subnet)
        # The kernel of this machine must not answer for a guest: without ARP it accepts no packet of the interface.
        self._batch(
            self.enter,
            f"link add {_port(number)} type veth peer name {_guest(number)}",
            f"link set {_guest(number)} arp off {NO_IPV6} up",
            f"link set {_port(number)} master {bridge} {NO_IPV6} up",
        )
        return _guest(number), address

    def detach(self, interface: str, address: ipaddress.IPv4Interface) -> None:
        """Remove a port. A missing port is not an error."""
        with contextlib.suppress(ProvisionError):
            self._batch(self.enter, f"link delete {interface}")
        with self._numbering:
            self._free[address.network].append(address.ip)

    def cut(self, interfaces: Sequence[str]) -> None:
        """Disconnect these interfaces of a guest. Raises ProvisionError."""
        self._batch(self.enter, *(f"link set {_peer(interface)} down" for interface in interfaces))

    def join(self, interfaces: Sequence[str]) -> None:
        """Connect these interfaces again. Raises ProvisionError."""
        self._batch(self.enter, *(f"link set {_peer(interface)} up" for interface in interfaces))

    def close(self, *, keep: bool = False) -> None:
        """Disconnect this machine. The kernel would do it later, when no process is in the namespace any more.

        keep: disconnect only our process.
        """
        if self._namespace:
            self._namespace.detach()
        elif not keep:
            with contextlib.suppress(ProvisionError):
                self._batch([], f"link delete {self._ours}")

    def _address(self, subnet: ipaddress.IPv4Network) -> ipaddress.IPv4Interface:
        return ipaddress.IPv4Interface(f"{self._free[subnet].pop(0)}/{subnet.prefixlen}")

    def _batch(self, enter: Sequence[str], *lines: str) -> None:
        """Run commands of the program ip. Raises ProvisionError."""
        try:
            self._host.run([*enter, self._ip, "-batch", "-"], text="\n".join(lines) + "\n")
        except CommandFailed as error:
            raise ProvisionError(f"cannot make the network of guests ({'; '.join(lines)}): {error}") from error


def why_not() -> str:
    """Why guests cannot have a network here; empty if they can."""
    reason = user_namespace.why_not()
    return f"guests need a network namespace: {reason}" if reason else ""


def _port(number: int) -> str:
    return f"port{number}"


def _guest(number: int) -> str:
    return f"guest{number}"


def _peer(interface: str) -> str:
    return interface.replace("guest", "port")
