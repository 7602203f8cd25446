"""A path of network namespaces around a router, for programs of this machine.

Each end has one address and two routes to it. Packets from other ends go through the router, which delays them. Packets
from this machine go directly over a pair of interfaces: our connections, and those of a load generator that is not an
end. A program listens on the address of its end, so only in its namespace.
"""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from pytest_dbcluster import wait
from pytest_dbcluster.errors import ProvisionError, Unsupported
from pytest_dbcluster.hosts.guests.user_namespace import UserNamespace
from pytest_dbcluster.hosts.host import Host
from pytest_dbcluster.hosts.network import probes, router
from pytest_dbcluster.hosts.network.kernel_settings import Ways
from pytest_dbcluster.hosts.network.namespace_host import MakesHost
from pytest_dbcluster.hosts.network.namespaces import Namespace, Spawns, ahead, come_first, in_new_thread
from pytest_dbcluster.hosts.network.path import MORE_TRIES, NetworkPath, OnPath
from pytest_dbcluster.hosts.network.router import MTU, Port, Router
from pytest_dbcluster.hosts.subnets import NO_IPV6, free_subnet
from pytest_dbcluster.network import BESIDE_NODES, NetworkNeeds, Pair, RoundTrips

OURS, GATEWAY = 254, 253  # the last numbers of two addresses: this machine's and the router ports'
PEERS, CONTROL = "peers", "control"  # the interfaces of an end: to the router, and to this machine
RESTS = 10  # measurements of the path at rest if other programs may have priority over us
NONE: Mapping[str, tuple[int, Host]] = MappingProxyType({})
# How often the kernel retries to close a killed program's connection to a peer that is gone. The namespace stays as
# long: with the kernel's default of 8, for 100 s.
ORPHAN_RETRIES = "3"
RUNNING = ("UP", "UNKNOWN")  # states of a link, by RFC 2863; UNKNOWN is one that does not say
RUNNING_SECONDS, POLL = 10.0, 0.02  # until the links of a host run, and between two looks
FIRST_MAC = 0x020000000000  # locally administered


class RoutedPath(NetworkPath):
    """Namespaces of this machine, one for each end, and one for the ports of the router.

    run_id, number: of the run and of the cluster in it, for the names of interfaces. directory: of the cluster. spawns:
    starts the processes that hold the namespaces. makes_host: makes a host from a name and a directory. user: the user
    namespace that contains everything, with the near hosts of proxy and load generator.
    """

    def __init__(
        self,
        run_id: str,
        number: int,
        directory: Path,
        spawns: Spawns,
        makes_host: MakesHost,
        user: UserNamespace | None = None,
    ) -> None:
        super().__init__()
        self._user = user
        if not ahead():
            self.rests, self.tries = RESTS, MORE_TRIES
        self.gateway = ""
        self._prefix = f"d{run_id}{number % 256:02x}"
        self._directory = directory
        self._spawns = spawns
        self._makes_host = makes_host
        self._hosts: dict[str, Host] = {}
        self._namespaces: dict[str, Namespace] = {}
        self._router: Router | None = None
        self.ports: list[Port] = []
        self.hub: Namespace | None = None

    def make(self, ends: Sequence[str], given: Mapping[str, tuple[int, Host]] = NONE) -> None:
        """Make the namespaces of these ends, and the ports of a router. Raises ProvisionError or Unsupported.

        given: ends that already have a namespace and a route to this machine -> a process in it, and the host.
        """
        if len(ends) > router.MOST_ENDS:
            raise Unsupported(
                f"a network that can be delayed has at most {router.MOST_ENDS} ends, and the cluster has {len(ends)}: "
                f"{', '.join(ends)}"
            )
        self.ends = tuple(ends)
        hosts = list(itertools.islice(free_subnet().hosts(), OURS))
        self._ours, self.gateway = str(hosts[OURS - 1]), str(hosts[GATEWAY - 1])
        self._hosts |= {end: host for end, (_, host) in given.items()}
        self.hub = Namespace(self._spawns, "router", user=self._user)
        if self._user:
            self.hub.batch_here("ip", ["link set dev lo up"])
        for number, end in enumerate(ends, start=1):
            macs = [_mac(FIRST_MAC + (kind << 8) + number) for kind in (1, 2)]
            address = given[end][1].address if end in given else str(hosts[number - 1])
            self.ports.append(Port(number, end, address, *macs))
            self._namespaces[end] = Namespace(self._spawns, end, given[end][0] if end in given else None, self._user)
        for port in self.ports:
            self._connect(port)
            if port.end not in given:
                self._connect_here(port)
            self.join(port.end)

    def _connect(self, port: Port) -> None:
        """Connect an end with the router. It makes both ends of the pair of interfaces in their final namespaces."""
        assert self.hub
        namespace = self._namespaces[port.end]
        self.hub.batch("ip", [
            f"link add {port.outside} mtu {MTU} address {port.router_mac} type veth "
            f"peer name {PEERS} mtu {MTU} address {port.mac} netns {namespace.pid}",
            f"link set dev {port.outside} arp off {NO_IPV6} up",
        ])  # fmt: skip
        self.hub.without_offloads([port.outside])
        namespace.without_offloads([PEERS])

    def _connect_here(self, port: Port) -> None:
        """Set the address of an end, and connect it with this machine."""
        namespace, ours = self._namespaces[port.end], f"{self._prefix}{port.number:02x}"
        namespace.batch("ip", [
            "link set dev lo up",
            f"link add {CONTROL} type veth peer name {ours} netns {namespace.outside}",
            f"address add {port.address}/32 dev {PEERS}",
            *self._lines_here(port),
        ])  # fmt: skip
        namespace.set("ipv4/tcp_orphan_retries", ORPHAN_RETRIES)
        lines = [f"address add {self._ours} peer {port.address} dev {ours}", f"link set dev {ours} {NO_IPV6} up"]
        namespace.batch_here("ip", lines)

    def join(self, end: str, *, here: bool = False) -> None:
        """Route an end's packets for other ends to the router, for the first time or after ``cut``.

        here: also those for this machine. Then the end's host is complete, so this waits until its links run.
        """
        port = self._port(end)
        if here:
            self._namespaces[end].batch("ip", self._lines_here(port))
        self._namespaces[end].batch("ip", [
            f"link set dev {PEERS} {NO_IPV6} up",
            f"neighbour replace {self.gateway} lladdr {port.router_mac} dev {PEERS} nud permanent",
            *(
                f"route replace {other.address}/32 via {self.gateway} dev {PEERS} onlink src {port.address}"
                for other in self.ports
                if other is not port
            ),
        ])  # fmt: skip
        if here:
            wait.until(lambda: self._link_problems(end), f"the links of {end}", seconds=RUNNING_SECONDS, poll=POLL)

    def _link_problems(self, end: str) -> list[str]:
        """The links of an end that do not run yet: the kernel notes it up to a second after a link is up.

        Group Replication looks for its address among links that run: IFF_RUNNING of netdevice(7).
        """
        found = json.loads(self._namespaces[end].output("ip", ["-j", "link", "show"]))
        states = {link["ifname"]: link["operstate"] for link in found if link["ifname"] in (PEERS, CONTROL)}
        return [f"{name} is {state}" for name, state in states.items() if state not in RUNNING]

    def _lines_here(self, port: Port) -> list[str]:
        """The lines for ``ip`` that route an end's packets for this machine, as after each time it was down."""
        return [
            f"link set dev {CONTROL} {NO_IPV6} up",
            f"route replace {self._ours}/32 dev {CONTROL} src {port.address}",
        ]

    def cut(self, end: str, *, here: bool = False) -> None:
        """Block all packets of an end to the router; ``here``: also those to this machine."""
        self._namespaces[end].batch("ip", [f"link set dev {name} down" for name in (PEERS, CONTROL)[: 1 + here]])

    def _port(self, end: str) -> Port:
        return next(port for port in self.ports if port.end == end)

    def namespace(self, end: str) -> Namespace:
        """The namespace of an end."""
        return self._namespaces[end]

    def begin(self, made: Router) -> None:
        """Make this router forward between the ends, without delay. Raises ProvisionError."""
        self._router = made
        made.start(self.ports)

    def has_host(self, end: str) -> bool:
        """Whether an end other than a node has a host here; in a user namespace every end has one."""
        return self._user is not None or super().has_host(end)

    def host(self, end: str) -> Host:
        """A host in the namespace of an end, with a separate directory."""
        known = self._hosts.get(end)
        if known and Path(known.directory).is_dir():
            return known
        host = self._makes_host(end, self._directory / end)
        self._hosts[end] = host
        if self._user and end not in self._namespaces:
            host.enter(self._user, self._ours)
        else:
            host.enter(self._namespaces[end], self._port(end).address)
        host.path = self
        return host

    def shape(self, needs: NetworkNeeds) -> None:
        """Shape the router even if nothing changes, so that every round begins the same way."""
        assert self._router
        try:
            self._router.shape(needs)
        except ProvisionError:
            self._require("cannot change its delays")
            raise
        self.needs = needs

    def round_trips(self, pair: Pair, samples: int) -> RoundTrips:
        """Ping, and exchange bytes over TCP, from the namespace of the first end."""
        one, other = (self._namespaces[end] for end in pair)
        address = self._port(pair[1]).address
        asked = self.needs.between(*pair).rtt

        def measure() -> RoundTrips:
            come_first()  # so that waiting for a CPU does not count as network delay
            return RoundTrips(
                probes.ping(one, address, samples, asked), probes.exchange(one, other, address, samples, asked)
            )

        self._require("cannot measure a round trip")
        try:
            return in_new_thread(measure)
        except ProvisionError:
            self._require("cannot measure a round trip")
            raise

    def settings(self) -> Ways:
        """The settings of the router."""
        assert self._router
        try:
            return self._router.settings()
        except ProvisionError:
            self._require("cannot read its queues")
            raise

    def _require(self, so: str) -> None:
        """Raise ProvisionError if the path is lost."""
        if lost := self.why_lost():
            raise ProvisionError(f"{lost}; so we {so}")

    def others(self) -> list[Host]:
        """The existing hosts of the ends other than nodes."""
        return [host for end, host in self._hosts.items() if end in BESIDE_NODES]

    def why_lost(self) -> str:
        """Why the router does not forward any more, or an end cannot be reached; otherwise empty."""
        router = self._router.why_lost() if self._router else ""
        return router or next(filter(None, (namespace.why_lost() for namespace in self._namespaces.values())), "")

    def close(self) -> None:
        """End the router and the namespaces, and with them their interfaces."""
        if self._router:
            with contextlib.suppress(ProvisionError):
                self._router.close()
        for namespace in (*self._namespaces.values(), self.hub):
            with contextlib.suppress(ProvisionError):
                if namespace:
                    namespace.close()
        if self._user:
            self._user.close()


def _mac(number: int) -> str:
    return ":".join(f"{byte:02x}" for byte in number.to_bytes(6, "big"))


def close_all(hosts: Sequence[Host]) -> list[Host]:
    """End the paths of these hosts if they are the nodes of a cluster, not only its other ends.

    Returns the hosts of the other ends, which nobody uses any more.
    """
    others: list[Host] = []
    for path in dict.fromkeys(host.path for host in hosts if isinstance(host, OnPath)):
        if isinstance(path, RoutedPath) and any(host.name == path.ends[0] for host in hosts):
            path.close()
            others += path.others()
    return others
