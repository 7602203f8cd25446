"""A path between guests of this machine: each guest delays, on its own link, what it sends to its peers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pytest_dbcluster.errors import CommandFailed, ProvisionError
from pytest_dbcluster.hosts.host import Host
from pytest_dbcluster.hosts.network import router
from pytest_dbcluster.hosts.network.path import NetworkPath, OnPath, RoundTrips
from pytest_dbcluster.hosts.network.router import BANDS
from pytest_dbcluster.network import BESIDE_NODES, REST, NetworkNeeds, Pair

LINK = "vec0"  # the link of a guest
LOAD = """
for name in sch_prio sch_netem cls_u32; do
    test -e /sys/module/$name || insmod /usr/lib/uml/modules/$name.ko || exit
done
"""
LEAST = re.compile(r"^(?:rtt|round-trip) min/avg/max\S* = ([0-9.]+)/", re.MULTILINE)
SECONDS = 60.0
WAIT = 10  # seconds until a ping counts as lost


class GuestPath(NetworkPath):
    """Queues in the kernels of guests, one for each peer. Packets from elsewhere wait nowhere.

    hosts: the guests of all ends, by end. TCP is not measured: a guest has no program that exchanges bytes.
    """

    def __init__(self, hosts: Mapping[str, Host]) -> None:
        super().__init__()
        self._hosts = dict(hosts)
        self.ends = tuple(hosts)
        for end, host in hosts.items():
            host.run(["/bin/sh", "-c", LOAD], seconds=SECONDS)
            last = " ".join([str(BANDS - 1)] * 16)
            lines = [f"qdisc replace dev {LINK} root handle 1: prio bands {BANDS} priomap {last}"]
            lines += self._queues("add", end, REST)
            lines += [
                f"filter add dev {LINK} parent 1: protocol ip prio 1 u32 match ip dst {hosts[peer].address}/32 "
                f"flowid 1:{band:x}"
                for band, peer in self._bands(end)
            ]
            self._tc(end, lines)

    def _bands(self, end: str) -> list[tuple[int, str]]:
        return list(enumerate((peer for peer in self.ends if peer != end), start=1))

    def _queues(self, does: str, end: str, needs: NetworkNeeds) -> list[str]:
        return [
            f"qdisc {does} dev {LINK} parent 1:{band:x} handle {band + 0x10:x}: "
            f"{router.netem(needs.between(end, peer), router.GUEST_LATE)}"
            for band, peer in self._bands(end)
        ]

    def _tc(self, end: str, lines: Sequence[str]) -> None:
        self._hosts[end].run(["/sbin/tc", "-batch", "-"], text="\n".join(lines) + "\n", seconds=SECONDS)

    def shape(self, needs: NetworkNeeds) -> None:
        """Tell every guest, whatever its queues are now."""
        for end in self.ends:
            self._tc(end, self._queues("change", end, needs))

    def host(self, end: str) -> Host:
        """The guest of an end."""
        return self._hosts[end]

    def round_trips(self, pair: Pair, samples: int) -> RoundTrips:
        """The shortest of so many pings from the first end."""
        address = self._hosts[pair[1]].address
        command = ["/bin/ping", "-n", "-q", "-c", str(samples), "-i", "0.01", "-W", str(WAIT), address]
        try:
            said = self._hosts[pair[0]].run(command, seconds=SECONDS + samples * WAIT).stdout
        except CommandFailed as error:
            raise ProvisionError(f"no answer to pings from {pair[0]} to {pair[1]}: {error}") from None
        if not (found := LEAST.search(said)):
            raise ProvisionError(f"ping from {pair[0]} to {pair[1]} printed no round trips: {said.strip()[-200:]}")
        return RoundTrips(float(found[1]) / 1000, None)

    def lost(self) -> str:
        """Why an end has gone; empty while all are there."""
        return next(filter(None, (host.lost() for host in self._hosts.values())), "")


def others(hosts: Sequence[Host]) -> list[Host]:
    """The guests of the ends beside the nodes, where the nodes of a cluster are given back; nobody uses them then."""
    paths = dict.fromkeys(host.path for host in hosts if isinstance(host, OnPath))
    known = [path for path in paths if isinstance(path, GuestPath)]
    given = [path for path in known if any(host.name == path.ends[0] for host in hosts)]
    return [path.host(end) for path in given for end in path.ends if end in BESIDE_NODES]
