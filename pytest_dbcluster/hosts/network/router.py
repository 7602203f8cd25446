"""Router: leads packets between the ends of a path, and delays them. What it is told are lines for ``ip`` and ``tc``.

Each port leads to one end. A port has a queue for each other end, because netem delays all that passes it: packets from
node1 to node3 wait in the queue for node1 at the port of node3. Half of a round trip is waited for each way.
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Sequence

from pytest_dbcluster.hosts.network import kernel_settings
from pytest_dbcluster.network import REST, KernelSettings, LinkShape, NetworkNeeds

MTU = 9000  # bytes: fewer packets, so that the router costs less
LIMIT = 100_000  # packets that wait in a queue; netem's own 1000 would be lost at a high rate and a long delay
BANDS = 16  # queues of the kernel's prio, of which the last is for packets from elsewhere
MOST_ENDS = BANDS
GUEST_LATE = 70e-6  # of a guest's timer; measured: 1 ms was 1.14 ms there and back, 20 ms were 20.4 ms


@dataclasses.dataclass(frozen=True)
class Port:
    """One port of a router, and the end that it leads to.

    mac, router_mac: hardware addresses of the end and of the port.
    """

    number: int
    """1-based."""

    end: str
    address: str
    mac: str
    router_mac: str

    @property
    def outside(self) -> str:
        """The name of the port's interface in the namespace that holds all ports."""
        return f"r{self.number}"


class Router(abc.ABC):
    """Forwards packets between ports. ``start`` makes it ready; it delays nothing until ``shape``.

    ``late``: seconds by which its timer lets a packet go too late; a delay is shorter by as much.
    """

    ports: Sequence[Port]
    late: float = 0.0

    @staticmethod
    @abc.abstractmethod
    def interface(port: Port) -> str:
        """The name that a port has in the router."""

    @abc.abstractmethod
    def start(self, ports: Sequence[Port]) -> None:
        """Make the router forward between these ports. Raises ProvisionError or Unsupported."""

    @abc.abstractmethod
    def tc(self, lines: Sequence[str]) -> None:
        """Give these lines to ``tc`` in the router. Raises ProvisionError."""

    @abc.abstractmethod
    def show_queues(self) -> str:
        """What ``tc`` prints of the router's queues. Raises ProvisionError."""

    @abc.abstractmethod
    def lost(self) -> str:
        """Why the router forwards no more, as a clause for a message; empty while it does."""

    @abc.abstractmethod
    def close(self) -> None:
        """End the router."""

    def shape(self, needs: NetworkNeeds) -> None:
        """Delay packets between each two ends as ``needs`` say from now on. Raises ProvisionError."""
        self.tc(self.shaping("change", needs))

    def settings(self) -> dict[tuple[str, str], KernelSettings]:
        """What is set, by the ends from which and to which packets go. Raises ProvisionError."""
        found = kernel_settings.read(self.show_queues())
        return {
            (source.end, port.end): found[way]
            for port in self.ports
            for band, source in self._bands(port)
            if (way := (self.interface(port), f"1:{band:x}")) in found
        }

    def forwarding(self) -> list[str]:
        """The lines for ``ip`` with which the router knows the end at each port. It asks for no address."""
        lines = []
        for port in self.ports:
            name = self.interface(port)
            lines += [
                f"link set dev {name} up",
                f"route replace {port.address}/32 dev {name}",
                f"neighbour replace {port.address} lladdr {port.mac} dev {name} nud permanent",
            ]
        return lines

    def queues(self) -> list[str]:
        """The lines for ``tc`` with which each port gets a queue for each other end; they delay nothing."""
        last = " ".join([str(BANDS - 1)] * 16)
        names = [self.interface(port) for port in self.ports]
        lines = [f"qdisc add dev {name} root handle 1: prio bands {BANDS} priomap {last}" for name in names]
        lines += self.shaping("add", REST)
        return lines + [
            f"filter add dev {name} parent 1: protocol ip prio 1 u32 match ip src {source.address}/32 flowid 1:{band:x}"
            for name, port in zip(names, self.ports, strict=True)
            for band, source in self._bands(port)
        ]

    def shaping(self, does: str, needs: NetworkNeeds) -> list[str]:
        """The lines for ``tc`` that add or change the queue of each two ends."""
        return [
            f"qdisc {does} dev {self.interface(port)} parent 1:{band:x} handle {band + 0x10:x}: "
            f"{netem(needs.between(source.end, port.end), self.late)}"
            for port in self.ports
            for band, source in self._bands(port)
        ]

    def _bands(self, port: Port) -> list[tuple[int, Port]]:
        """The number of the queue for each other end at a port, from 1."""
        return list(enumerate((other for other in self.ports if other.number != port.number), start=1))


def netem(shape: LinkShape, late: float) -> str:
    """A queue for packets one way, with all its arguments: a change keeps what it does not name.

    late: as in ``Router``.
    """
    half, varies = max(0.0, shape.rtt / 2 - late) * 1e6, shape.jitter / 2 * 1e6
    lost, rate = f"{shape.loss * 100:.9g}%", f"{shape.rate or 0:.0f}bit"
    return f"netem limit {LIMIT} delay {half:.0f}us {varies:.0f}us loss {lost} rate {rate}"
