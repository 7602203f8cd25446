"""NetworkNeeds: round-trip times, loss and rate between the ends of a cluster. ``Delay``: their measured values.

An *end* is a node (``node1``), the ``proxy`` or the ``client``, where the load generator runs. Nodes are peers: a
spec's network holds between each two of them. Proxy and client are near unless a link names them.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.formatting import milliseconds, quantity

CLIENT, PROXY = "client", "proxy"
BESIDE_NODES = (CLIENT, PROXY)  # the ends that are not nodes
NODE = re.compile(r"node[1-9][0-9]*")
MOST_SECONDS = 10.0  # longest round trip: servers give up on a peer that answers later

Pair = tuple[str, str]  # two ends, sorted
Links = tuple[tuple[Pair, float], ...]


def node_names(nodes: int) -> list[str]:
    """The names of the nodes of a cluster, in order."""
    return [f"node{number}" for number in range(1, nodes + 1)]


@dataclasses.dataclass(frozen=True, slots=True)
class LinkShape:
    """The network between two ends."""

    rtt: float = 0.0
    """Round trip, in seconds."""

    loss: float = 0.0
    """Share of the packets that the network loses, each way."""

    jitter: float = 0.0
    """Seconds by which a round trip becomes longer or shorter."""

    rate: float | None = None
    """Bits a second, each way; None for no limit."""


NEAR = LinkShape()


@dataclasses.dataclass(frozen=True, slots=True)
class NetworkNeeds:
    """The network that a spec requires between its ends."""

    rtt: float = 0.0
    """Round trip between two nodes, in seconds."""

    loss: float = 0.0
    """Share of the packets that the network loses, each way."""

    jitter: float = 0.0
    """Seconds by which a round trip becomes longer or shorter."""

    rate: float | None = None
    """Bits a second, each way."""

    links: Links = ()
    """Round trips of single pairs, in seconds, which override ``rtt``; sorted."""

    blocked: tuple[Pair, ...] = ()
    """Pairs of ends between which all packets are lost."""

    @property
    def ends(self) -> tuple[str, ...]:
        """Proxy and client, if the links name them; sorted."""
        return tuple(sorted({end for pair, _ in self.links for end in pair} & set(BESIDE_NODES)))

    def between(self, one: str, other: str) -> LinkShape:
        """The network between two ends."""
        pair = pair_of(one, other)
        peers = all(map(NODE.fullmatch, pair))
        rtt = dict(self.links).get(pair, self.rtt if peers else 0.0)
        if pair in self.blocked:
            return LinkShape(rtt, 1.0)
        return LinkShape(rtt, self.loss, self.jitter, self.rate) if peers else LinkShape(rtt)

    def unknown_end(self, nodes: int, *, proxy: bool) -> str:
        """Which end of a link a cluster with this number of nodes lacks, as a sentence; empty for none."""
        known = [*node_names(nodes), *([PROXY] if proxy else []), CLIENT]
        for pair, _ in self.links:
            if lacking := next((end for end in pair if end not in known), ""):
                what = "has no proxy" if lacking == PROXY else f"has {quantity(nodes, 'node')}"
                return f"a link between {' and '.join(pair)}, but the cluster {what}; its ends: {', '.join(known)}"
        return ""

    def __str__(self) -> str:
        return ", ".join(texts(self.rtt, self.loss or None, self.jitter or None, self.rate, self.links))


REST = NetworkNeeds()


def pair_of(one: str, other: str) -> Pair:
    """The two ends of a link, sorted: node2 before node10."""
    first, second = sorted((one, other), key=_order)
    return first, second


def _order(end: str) -> tuple[str, int]:
    return (end[:4], int(end[4:])) if NODE.fullmatch(end) else (end, 0)


def pairs(ends: Collection[str]) -> list[Pair]:
    """All pairs of these ends."""
    return [pair_of(*two) for two in itertools.combinations(ends, 2)]


def links(given: object) -> Links:
    """The sorted links of a mapping ``{("node1", "node3"): 0.02}``. Raises ConfigError for a wrong one."""
    usage = 'it accepts a mapping such as {("node1", "node3"): 0.02}, in seconds'
    items: Iterable[object] = given.items() if isinstance(given, Mapping) else given if isinstance(given, tuple) else ()
    if not isinstance(given, Mapping | tuple) or not all(map(_is_link, items)):
        raise ConfigError(f"links={given!r} of a cluster's hosts: {usage}")
    found: dict[Pair, float] = {}
    for (one, other), rtt in given.items() if isinstance(given, Mapping) else given:
        for end in (one, other):
            if end not in BESIDE_NODES and not NODE.fullmatch(end):
                known = ", ".join(("node1, node2, ...", *BESIDE_NODES))
                raise ConfigError(f"unknown end {end!r} of a link between {one} and {other}; known: {known}")
        pair = pair_of(one, other)
        if one == other:
            raise ConfigError(f"links={given!r} of a cluster's hosts: {one} is linked with itself")
        if found.setdefault(pair, rtt) != rtt:
            raise ConfigError(f"links={given!r} of a cluster's hosts: two round trips between {one} and {other}")
        seconds(f"link between {' and '.join(pair)}", rtt)
    return tuple(sorted(found.items(), key=lambda link: tuple(map(_order, link[0]))))


def _is_link(item: object) -> bool:
    """Whether an item of a mapping is a pair of names and a value."""
    if not (isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], tuple) and len(item[0]) == 2):
        return False
    return all(isinstance(end, str) for end in item[0])


def seconds(name: str, value: object) -> None:
    """Raise ConfigError for a value that is not a number of seconds from 0 to ``MOST_SECONDS``."""
    if not _is_number(value) or not 0 <= float(str(value)) <= MOST_SECONDS:
        raise ConfigError(f"{name}={value!r} of a cluster's hosts: it accepts seconds, from 0 to {MOST_SECONDS:g}")


def share(name: str, value: object) -> None:
    """Raise ConfigError for a value that is not a share of packets below 1."""
    if not _is_number(value) or not 0 <= float(str(value)) < 1:
        raise ConfigError(
            f"{name}={value!r} of a cluster's hosts: it accepts a share of the packets, from 0 to below 1"
        )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def texts(
    rtt: float | None, loss: float | None, jitter: float | None, rate: float | None, linked: Links
) -> Sequence[str]:
    """The requirements on a network as texts, without those that are None: ``rtt=0.01``, ``node1-node3=0.02``."""
    values = {"rtt": rtt, "loss": loss, "jitter": jitter, "rate": rate}
    given = [f"{name}={value:.9g}" for name, value in values.items() if value is not None]
    return [*given, *(f"{'-'.join(pair)}={value:g}" for pair, value in linked)]


@dataclasses.dataclass(frozen=True)
class RoundTrips:
    """The shortest round trips between two ends, in seconds."""

    ping: float
    """Round trip of a ping."""

    exchange: float | None
    """Exchange of one byte over TCP; None if an end has no program that exchanges bytes."""

    def minimum(self, other: RoundTrips) -> RoundTrips:
        """The shorter round trips of both measurements."""
        both = None if self.exchange is None or other.exchange is None else min(self.exchange, other.exchange)
        return RoundTrips(min(self.ping, other.ping), both)

    def added_delay(self, rest: RoundTrips) -> RoundTrips:
        """The time that a delay adds to the round trips of the same path at rest."""
        both = None if self.exchange is None or rest.exchange is None else self.exchange - rest.exchange
        return RoundTrips(self.ping - rest.ping, both)


@dataclasses.dataclass(frozen=True)
class KernelSettings:
    """The kernel's settings for a link besides the delay; they are read, not measured."""

    loss: float = 0.0
    """Share of the packets that the kernel drops, each way."""

    jitter: float = 0.0
    """Seconds by which a round trip becomes longer or shorter."""

    rate: float | None = None
    """Bits a second, each way; None without a limit."""

    def __str__(self) -> str:
        return ", ".join(f"{name} {setting(name, value)}" for name, value in vars(self).items() if value)


def setting(name: str, value: float | None) -> str:
    """A value of ``KernelSettings`` as text, such as ``10 ms`` for jitter; ``no limit`` for None."""
    if value is None:
        return "no limit"
    factor, unit = {"loss": (100, "%"), "jitter": (1e3, "ms"), "rate": (1e-6, "Mbit/s")}[name]
    return f"{value * factor:.6g} {unit}"


@dataclasses.dataclass(frozen=True)
class Delay:
    """The required and the measured round trips between two ends."""

    pair: Pair
    """The two ends."""

    asked: float
    """Required round trip, in seconds."""

    before: RoundTrips
    """Measurement before the rounds."""

    after: RoundTrips | None
    """Measurement after the rounds; None until then."""

    kernel_settings: KernelSettings | None = None
    """Required loss, jitter and rate, as the kernel has them; None if the spec requires no such thing."""

    def __str__(self) -> str:
        trips = [self.before, *([self.after] if self.after else [])]
        pings = " and ".join(milliseconds(measured.ping) for measured in trips)
        exchanges = [milliseconds(measured.exchange) for measured in trips if measured.exchange is not None]
        over_tcp = f", {' and '.join(exchanges)} over TCP" if exchanges else ""
        more = f", set in the kernel: {self.kernel_settings}" if self.kernel_settings else ""
        return f"{'-'.join(self.pair)} {milliseconds(self.asked)} required, {pings} by ping{over_tcp}{more}"
