"""Router: forwards packets between the ends of a path, and delays them. It is configured with ``ip`` and ``tc``.

Each port is connected to one end. A port has a queue for each other end, because netem delays all packets of a queue.
Packets from node1 to node3 wait in the queue for node1 at the port of node3. Each direction delays by half of a round
trip.
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Sequence

from pytest_dbcluster.hosts.network import kernel_settings
from pytest_dbcluster.network import REST, KernelSettings, LinkShape, NetworkNeeds

MTU = 9000  # bytes; large packets reduce the router's CPU time
LIMIT = 100_000  # packets in a queue; netem's default of 1000 is too small for a high rate and a long delay
BANDS = 16  # queues of the kernel's prio; the last one is for other packets
MOST_ENDS = BANDS
GUEST_LATE = 70e-6  # delay of a guest's timer; measured round trips: 1.14 ms for 1 ms, 20.4 ms for 20 ms


@dataclasses.dataclass(frozen=True)
class Port:
    """One port of a router, and the end that is connected to it."""

    number: int
    """Number of the port, 1-based."""

    end: str
    """The name of the end, such as ``node1``."""

    address: str
    """The network address of the end."""

    mac: str
    """Hardware address of the end."""

    router_mac: str
    """Hardware address of the port."""

    @property
    def outside(self) -> str:
        """The name of the port's interface in the namespace that holds all ports."""
        return f"r{self.number}"


class Router(abc.ABC):
    """Forwards packets between ports after ``start``. It delays nothing until ``shape``."""

    ports: Sequence[Port]
    """The ports that the router forwards between."""

    late: float = 0.0
    """Seconds by which its timer sends packets too late; we shorten each delay by as much."""

    @staticmethod
    @abc.abstractmethod
    def interface(port: Port) -> str:
        """The name of a port in the router."""

    @abc.abstractmethod
    def start(self, ports: Sequence[Port]) -> None:
        """Make the router forward between these ports. Raises ProvisionError or Unsupported."""

    @abc.abstractmethod
    def tc(self, lines: Sequence[str]) -> None:
        """Run these lines with ``tc`` in the router. Raises ProvisionError."""

    @abc.abstractmethod
    def show_queues(self) -> str:
        """The output of ``tc`` on the router's queues. Raises ProvisionError."""

    @abc.abstractmethod
    def why_lost(self) -> str:
        """Why the router does not forward any more, as a clause for a message; empty while it does."""

    @abc.abstractmethod
    def close(self) -> None:
        """End the router."""

    def shape(self, needs: NetworkNeeds) -> None:
        """Delay packets between all pairs of ends from now on as ``needs`` ask. Raises ProvisionError."""
        self.tc(self.shaping("change", needs))

    def settings(self) -> dict[tuple[str, str], KernelSettings]:
        """The settings, by source and target end of the packets. Raises ProvisionError."""
        found = kernel_settings.read(self.show_queues())
        return {
            (source.end, port.end): found[way]
            for port in self.ports
            for band, source in self._bands(port)
            if (way := (self.interface(port), f"1:{band:x}")) in found
        }

    def forwarding(self) -> list[str]:
        """The lines for ``ip`` that configure the end at each port, so that the router needs no ARP."""
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
        """The lines for ``tc`` that make a queue for each other end at each port, without delay."""
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
        """The lines for ``tc`` that add or change the queues of all pairs of ends."""
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
    """The arguments of a queue for packets one way. All are given, because a change keeps omitted ones.

    late: as in ``Router``.
    """
    half, varies = max(0.0, shape.rtt / 2 - late) * 1e6, shape.jitter / 2 * 1e6
    lost, rate = f"{shape.loss * 100:.9g}%", f"{shape.rate or 0:.0f}bit"
    return f"netem limit {LIMIT} delay {half:.0f}us {varies:.0f}us loss {lost} rate {rate}"
