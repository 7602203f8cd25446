"""A path between guests of this machine: each guest delays, on its own link, what it sends to its peers.

Nodes that have a link for replication alone are apart on that link, and near on the other one.
"""

from __future__ import annotations

import concurrent.futures
import math
import re
from collections.abc import Mapping, Sequence

from pytest_dbcluster.errors import CommandFailed, ProvisionError
from pytest_dbcluster.hosts.host import Host, replication_address
from pytest_dbcluster.hosts.network import router
from pytest_dbcluster.hosts.network.path import NetworkPath, OnPath, RoundTrips
from pytest_dbcluster.hosts.network.router import BANDS
from pytest_dbcluster.hosts.network.traffic import Burst, Pings
from pytest_dbcluster.network import BESIDE_NODES, REST, NetworkNeeds, Pair

LINK, REPLICATION_LINK = "vec0", "vec1"  # the links of a guest
LOAD = """
for name in sch_prio sch_netem cls_u32; do
    test -e /sys/module/$name || insmod /usr/lib/uml/modules/$name.ko || exit
done
echo 8388608 >/proc/sys/net/core/rmem_max  # a program may ask for so many bytes of packets that wait for it
"""
# Several at once: a guest that waits for an answer wakes each 10 ms.
PINGS = """
for number in 1 2 3 4; do /bin/ping "$@" >pings.$number 2>&1 & done
wait
cat pings.1 pings.2 pings.3 pings.4
rm pings.?
"""
AT_ONCE = 4
SENT = re.compile(r"^([0-9]+) packets transmitted, .* time ([0-9]+)ms$", re.MULTILINE)
ANSWER = re.compile(r" icmp_seq=([0-9]+) .*time=([0-9.]+) ms$", re.MULTILINE)
LEAST = re.compile(r"^(?:rtt|round-trip) min/avg/max\S* = ([0-9.]+)/([0-9.]+)/", re.MULTILINE)
SHORTEST = 0.001  # seconds between two pings
LAST_SECONDS = 1  # to wait for the last answer
BURST_SECONDS = 0.4  # of a burst at the asked rate
FEWEST, MOST = 20, 2000  # pings of a burst
SMALL, LARGE, FAST = 1400, 8000, 2e7  # bytes that a ping of a burst carries; large ones from this rate on
HEADERS, PIECE = 34, 1480  # bytes of a packet on the link, beside what it carries; longer ones are sent in pieces
SECONDS = 60.0
WAIT = 10  # seconds until a ping counts as lost
PINGS_SECONDS = 300.0  # for a command that pings, on a machine that does much else


class GuestPath(NetworkPath):
    """Queues in the kernels of guests, one for each peer. Packets from elsewhere wait nowhere.

    hosts: the guests of all ends, by end. TCP is not measured: a guest has no program that exchanges bytes.
    """

    def __init__(self, hosts: Mapping[str, Host]) -> None:
        super().__init__()
        self._hosts = dict(hosts)
        self._needs = REST
        self.ends = tuple(hosts)
        for end in hosts:
            self.begin_again(end)

    def begin_again(self, end: str) -> None:
        """Give the kernel of a guest its queues, as they are now. Raises ProvisionError."""
        self._hosts[end].run(["/bin/sh", "-c", LOAD], seconds=SECONDS)
        last = " ".join([str(BANDS - 1)] * 16)
        ways = {peer: self._way(end, peer) for _, peer in self._bands(end)}
        lines = [
            f"qdisc replace dev {link} root handle 1: prio bands {BANDS} priomap {last}"
            for link in sorted({link for link, _ in ways.values()})
        ]
        lines += self._queues("add", end, self._needs)
        lines += [
            f"filter add dev {ways[peer][0]} parent 1: protocol ip prio 1 u32 match ip dst {ways[peer][1]}/32 "
            f"flowid 1:{band:x}"
            for band, peer in self._bands(end)
        ]
        self._tc(end, lines)

    def _way(self, end: str, peer: str) -> tuple[str, str]:
        """The link of an end towards a peer that is delayed, and the address of the peer there."""
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
        """Tell every guest, whatever its queues are now."""
        self._needs = needs
        with concurrent.futures.ThreadPoolExecutor(len(self.ends)) as threads:
            list(threads.map(lambda end: self._tc(end, self._queues("change", end, needs)), self.ends))

    def host(self, end: str) -> Host:
        """The guest of an end."""
        return self._hosts[end]

    def round_trips(self, pair: Pair, samples: int) -> RoundTrips:
        """The shortest of so many pings from the first end."""
        said = self._pinged(pair, "-q", "-c", str(samples), "-i", "0.01", "-W", str(WAIT))
        return RoundTrips(self._found(LEAST, said, pair)[0] / 1000, None)

    def pings(self, pair: Pair, count: int, interval: float) -> Pings:
        """Pings of one program, or of several at once."""
        several = AT_ONCE if interval < SHORTEST * AT_ONCE else 1
        options = ["-i", f"{max(SHORTEST, interval):.3f}", "-c", str(count // several), "-W", str(LAST_SECONDS)]
        said = self._pinged(pair, *options, script=PINGS if several > 1 else "")
        return Pings(
            sum(int(sent) for sent, _ in SENT.findall(said)),
            tuple(float(time) / 1000 for _, time in ANSWER.findall(said)),
        )

    def burst(self, pair: Pair, rate: float) -> Burst:
        """Send pings at once: what comes back, comes at the rate. When each was sent is not known exactly."""
        size = SMALL if rate < FAST or self._needs.between(*pair).loss else LARGE  # a loss would be that of each piece
        bits = 8 * (size + 8 + HEADERS * math.ceil((size + 8) / PIECE))
        count = min(MOST, max(FEWEST, int(rate * BURST_SECONDS / bits)))
        said = self._pinged(pair, "-c", str(count), "-l", str(count), "-s", str(size), "-W", str(LAST_SECONDS))
        sent, sending = self._found(SENT, said, pair)
        back = [(int(number) / sent * sending / 1000, float(time) / 1000) for number, time in ANSWER.findall(said)]
        return Burst(bits, [(at, at + time) for at, time in back], unsure=sending / 1000)

    def _pinged(self, pair: Pair, *options: str, script: str = "") -> str:
        """What pings from the first end print. Raises ProvisionError when none comes back."""
        arguments = ["-n", *options, self._way(*pair)[1]]
        command = ["/bin/sh", "-c", script, "ping", *arguments] if script else ["/bin/ping", *arguments]
        try:
            return self._hosts[pair[0]].run(command, seconds=PINGS_SECONDS).stdout
        except CommandFailed as error:
            raise ProvisionError(f"no answer to pings from {pair[0]} to {pair[1]}: {error}") from None

    @staticmethod
    def _found(pattern: re.Pattern[str], said: str, pair: Pair) -> tuple[float, float]:
        if not (found := pattern.search(said)):
            raise ProvisionError(f"ping from {pair[0]} to {pair[1]} printed no round trips: {said.strip()[-200:]}")
        return float(found[1]), float(found[2])

    def lost(self) -> str:
        """Why an end has gone; empty while all are there."""
        return next(filter(None, (host.lost() for host in self._hosts.values())), "")


def others(hosts: Sequence[Host]) -> list[Host]:
    """The guests of the ends beside the nodes, where the nodes of a cluster are given back; nobody uses them then."""
    paths = dict.fromkeys(host.path for host in hosts if isinstance(host, OnPath))
    known = [path for path in paths if isinstance(path, GuestPath)]
    given = [path for path in known if any(host.name == path.ends[0] for host in hosts)]
    return [path.host(end) for path in given for end in path.ends if end in BESIDE_NODES]
