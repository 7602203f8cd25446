"""NetworkPath: the network between the hosts of one cluster, which can be delayed, and whose delay is measured back."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from pytest_dbcluster import network
from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.formatting import milliseconds
from pytest_dbcluster.hosts.host import Host
from pytest_dbcluster.hosts.network import kernel_settings
from pytest_dbcluster.hosts.network.kernel_settings import Ways
from pytest_dbcluster.network import KernelSettings, LinkShape, NetworkNeeds, Pair, RoundTrips

SAMPLES = 5  # pings, and exchanges over TCP, of one measurement
REST_SAMPLES = 25  # of the path at rest, which are short; a rest that seems too long makes every delay too short
TRIES = 5  # measurements of a link that seems wrong: what else runs on the machine only adds time
REASONS = "a machine that does too much else delays packets, and a router that does not keep up too"
PING_BITS = 8 * 98  # of a ping on the link
OFF_SHARE, OFF_SECONDS = 0.1, 0.0002  # a round trip is wrong where it is off by more than both


@dataclasses.dataclass(frozen=True)
class MeasuredLink:
    """The round trips between two ends: what was asked, in seconds, and what was measured above the path at rest."""

    pair: Pair
    asked: float
    measured: RoundTrips
    kernel_settings: KernelSettings | None = None
    """What else was asked of the link, as the kernel has it set; None for nothing."""

    @property
    def short(self) -> bool:
        """Whether less was measured than was asked."""
        return any(one is not None and one < self.asked for one in (self.measured.ping, self.measured.exchange))

    def wrong(self, more: float = 0.0) -> str:
        """Why this is not what was asked, as a clause; empty where it is. more: seconds that are allowed besides."""
        allowed = max(OFF_SHARE * self.asked, OFF_SECONDS) + more
        for name, seconds in (("pings", self.measured.ping), ("exchanges over TCP", self.measured.exchange)):
            if seconds is not None and abs(seconds - self.asked) > allowed:
                return (
                    f"{' and '.join(self.pair)} are {milliseconds(seconds)} apart (least of {name}), and "
                    f"{milliseconds(self.asked)} were asked"
                )
        return ""


@runtime_checkable
class OnPath(Protocol):
    """An optional power of a host: it is on a path."""

    path: NetworkPath | None


def path_of(hosts: Sequence[Host]) -> NetworkPath | None:
    """The path between the hosts of a cluster; None where they have none that can be delayed."""
    return next((host.path for host in hosts[:1] if isinstance(host, OnPath)), None)


class NetworkPath(abc.ABC):
    """The network between the ends of one cluster. It begins at rest: it delays nothing.

    ends: the nodes, then ``client`` and ``proxy`` where packets of these take the path too. rests, tries: how often the
    path at rest is measured, and at most a link that seems wrong.
    """

    ends: Sequence[str] = ()
    rests = 1
    tries = TRIES

    def __init__(self) -> None:
        self._rest: dict[Pair, RoundTrips] = {}

    @abc.abstractmethod
    def shape(self, needs: NetworkNeeds) -> None:
        """Delay packets as ``needs`` say from now on; nothing is restarted. Raises ProvisionError."""

    def has_host(self, end: str) -> bool:
        """Whether an end beside the nodes has a host here: its packets take the path, or no other host is near."""
        return end in self.ends

    @abc.abstractmethod
    def host(self, end: str) -> Host:
        """The host of an end beside the nodes. Raises ProvisionError."""

    @abc.abstractmethod
    def round_trips(self, pair: Pair, samples: int) -> RoundTrips:
        """The shortest of so many round trips between two ends, now. Raises ProvisionError."""

    @abc.abstractmethod
    def settings(self) -> Ways:
        """What the kernel has set, by the ends from which and to which packets have gone. Raises ProvisionError."""

    def lost(self) -> str:
        """Why packets take this path no more, as a clause for a message; empty while they do."""
        return ""

    def cut(self, end: str) -> None:  # noqa: B027 (a host that is cut off elsewhere is cut off here too)
        """Let no packet of an end take this path. Raises ProvisionError."""

    def join(self, end: str) -> None:  # noqa: B027
        """Let packets of an end take this path again. Raises ProvisionError."""

    def begin_again(self, end: str) -> None:  # noqa: B027 (the queues of others outlive a host)
        """Delay packets of an end as before, whose host has lost its power. Raises ProvisionError."""

    def measured(self, needs: NetworkNeeds) -> list[MeasuredLink]:
        """Shape the path, measure the round trips between each two ends, and read what else the kernel has set.

        The path stays shaped. Raises ProvisionError for a link that is off by more than 10 % and 0.2 ms, or for which
        the kernel has something else set, and for a path that is lost.
        """
        links = network.pairs(self.ends)
        if len(self._rest) < len(links):
            for _ in range(self.rests):
                self._measure_rest(links)
        self.shape(needs)
        found = [self._measured(pair, needs) for pair in links]
        ways = self.settings()
        return [dataclasses.replace(link, kernel_settings=_settings(link.pair, needs, ways)) for link in found]

    def _measure_rest(self, links: Sequence[Pair]) -> None:
        self.shape(network.REST)
        for pair in links:
            now = self.round_trips(pair, REST_SAMPLES)
            self._rest[pair] = now.minimum(self._rest.get(pair, now))

    def _measured(self, pair: Pair, needs: NetworkNeeds) -> MeasuredLink:
        shape = needs.between(*pair)
        more = shape.jitter + _ping_seconds(shape)
        now = self.round_trips(pair, SAMPLES)
        for _ in range(self.tries):
            link = MeasuredLink(pair, shape.rtt, now.added_delay(self._rest[pair]))
            wrong = link.wrong(more)
            if not wrong:
                return link
            if link.short:  # the path at rest was disturbed when it was measured
                self._measure_rest([pair])
                self.shape(needs)
            now = now.minimum(self.round_trips(pair, SAMPLES))
        raise _otherwise(needs, f"{wrong}, as a difference to the path at rest; {REASONS}")


def _ping_seconds(shape: LinkShape) -> float:
    """How long a ping is on its way because of the rate alone, there and back."""
    return 2 * PING_BITS / shape.rate if shape.rate else 0.0


def _settings(pair: Pair, needs: NetworkNeeds, ways: Ways) -> KernelSettings | None:
    """What the kernel has set for a link; None if nothing was asked. Raises ProvisionError for something else."""
    shape = needs.between(*pair)
    if wrong := kernel_settings.wrong(pair, shape, ways):
        raise _otherwise(needs, wrong)
    return ways[pair] if shape.loss or shape.jitter or shape.rate else None


def _otherwise(needs: NetworkNeeds, wrong: str) -> ProvisionError:
    return ProvisionError(f"the network between the nodes is not as the cluster asks for it ({needs}): {wrong}")
