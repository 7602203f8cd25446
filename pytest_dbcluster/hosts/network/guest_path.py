"""A path between guests of this machine: each guest delays its packets to its peers on its link.

If nodes have a link for replication, only that link is delayed.
"""

from __future__ import annotations

import concurrent.futures
import itertools
import re
from collections.abc import Mapping, Sequence

from pytest_dbcluster.errors import CommandFailed, ProvisionError
from pytest_dbcluster.hosts.host import Host, replication_address
from pytest_dbcluster.hosts.network import kernel_settings, router
from pytest_dbcluster.hosts.network.kernel_settings import Ways
from pytest_dbcluster.hosts.network.path import MORE_TRIES, NetworkPath, OnPath
from pytest_dbcluster.hosts.network.router import BANDS
from pytest_dbcluster.network import BESIDE_NODES, KernelSettings, NetworkNeeds, Pair, RoundTrips

LINK, REPLICATION_LINK = "vec0", "vec1"  # the links of a guest
LOAD = """
for name in sch_prio sch_netem cls_u32; do
    test -e /sys/module/$name || insmod /usr/lib/uml/modules/$name.ko || exit
done
"""
LEAST = re.compile(r"^(?:rtt|round-trip) min/avg/max\S* = ([0-9.]+)/", re.MULTILINE)
SECONDS = 60.0
WAIT = 10  # seconds until a ping counts as lost
PINGS_SECONDS = 300.0  # timeout of a command that pings, on a busy machine


class GuestPath(NetworkPath):
    """Queues in the kernels of guests, one for each peer. Other packets are not delayed.

    hosts: end -> its guest. It does not measure TCP, because a guest has no program that exchanges bytes.
    """

    tries = MORE_TRIES  # guests have no priority over other programs of this machine

    def __init__(self, hosts: Mapping[str, Host]) -> None:
        super().__init__()
        self._hosts = dict(hosts)
        self.ends = tuple(hosts)
        for end in hosts:
            self.begin_again(end)

    def begin_again(self, end: str) -> None:
        """Set the current queues in the kernel of a guest. Raises ProvisionError."""
        self._hosts[end].run(["/bin/sh", "-c", LOAD], seconds=SECONDS)
        last = " ".join([str(BANDS - 1)] * 16)
        ways = {peer: self._way(end, peer) for _, peer in self._bands(end)}
        lines = [
            f"qdisc replace dev {link} root handle 1: prio bands {BANDS} priomap {last}"
            for link in sorted({link for link, _ in ways.values()})
        ]
        lines += self._queues("add", end, self.needs)
        lines += [
            f"filter add dev {ways[peer][0]} parent 1: protocol ip prio 1 u32 match ip dst {ways[peer][1]}/32 "
            f"flowid 1:{band:x}"
            for band, peer in self._bands(end)
        ]
        self._tc(end, lines)

    def _way(self, end: str, peer: str) -> tuple[str, str]:
        """The delayed link of an end to a peer, and the address of the peer on it."""
        near, far = self._hosts[end], self._hosts[peer]
        own = all(replication_address(host) != host.address for host in (near, far))
        return (REPLICATION_LINK, replication_address(far)) if own else (LINK, far.address)

    def _bands(self, end: str) -> list[tuple[int, str]]:
        return list(enumerate((peer for peer in self.ends if peer != end), start=1))

    def _queues(self, does: str, end: str, needs: NetworkNeeds) -> list[str]:
        return [
            f"qdisc {does} dev {self._way(end, peer)[0]} parent 1:{band:x} handle {band + 0x10:x}: "
            f"{router.netem(needs.between(end, peer), router.GUEST_LATE)}"
            for band, peer in self._bands(end)
        ]

    def _tc(self, end: str, lines: Sequence[str]) -> None:
        self._hosts[end].run(["/sbin/tc", "-batch", "-"], text="\n".join(lines) + "\n", seconds=SECONDS)

    def shape(self, needs: NetworkNeeds) -> None:
        """Set the queues of every guest."""
        self.needs = needs
        with concurrent.futures.ThreadPoolExecutor(len(self.ends)) as threads:
            list(threads.map(lambda end: self._tc(end, self._queues("change", end, needs)), self.ends))

    def host(self, end: str) -> Host:
        """The guest of an end."""
        return self._hosts[end]

    def round_trips(self, pair: Pair, samples: int) -> RoundTrips:
        """The shortest of several pings from the first end. Raises ProvisionError if all are lost."""
        one, other = pair
        options = ["-n", "-q", "-c", str(samples), "-i", "0.01", "-W", str(WAIT), self._way(one, other)[1]]
        try:
            said = self._hosts[one].run(["/bin/ping", *options], seconds=PINGS_SECONDS).stdout
        except CommandFailed as error:
            raise ProvisionError(f"no answer to pings from {one} to {other}: {error}") from None
        if not (found := LEAST.search(said)):
            raise ProvisionError(f"ping from {one} to {other} printed no round trips: {said.strip()[-200:]}")
        return RoundTrips(float(found[1]) / 1000, None)

    def settings(self) -> Ways:
        """The settings in the kernels of all guests."""
        with concurrent.futures.ThreadPoolExecutor(len(self.ends)) as threads:
            return dict(itertools.chain.from_iterable(threads.map(self._settings, self.ends)))

    def _settings(self, end: str) -> list[tuple[tuple[str, str], KernelSettings]]:
        """The settings in the kernel of one guest, for packets to each peer."""
        shown = self._hosts[end].run(["/sbin/tc", *kernel_settings.SHOW], seconds=SECONDS).stdout
        found = kernel_settings.read(shown)
        ways = [(peer, (self._way(end, peer)[0], f"1:{band:x}")) for band, peer in self._bands(end)]
        return [((end, peer), found[way]) for peer, way in ways if way in found]

    def why_lost(self) -> str:
        """Why an end is gone; empty while all ends exist."""
        return next(filter(None, (host.why_lost() for host in self._hosts.values())), "")


def others(hosts: Sequence[Host]) -> list[Host]:
    """The guests of the other ends, if the nodes of a cluster are released: nobody uses them any more."""
    paths = dict.fromkeys(host.path for host in hosts if isinstance(host, OnPath))
    known = [path for path in paths if isinstance(path, GuestPath)]
    given = [path for path in known if any(host.name == path.ends[0] for host in hosts)]
    return [path.host(end) for path in given for end in path.ends if end in BESIDE_NODES]
