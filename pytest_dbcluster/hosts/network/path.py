"""NetworkPath: the network between the hosts of one cluster. It can delay packets, and measures its delays."""

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

SAMPLES = 5  # pings, and exchanges over TCP, per measurement
REST_SAMPLES = 25  # of the path at rest: if the rest seems too long, every delay seems too short
TRIES = 5  # measurements of a link that seems wrong: other programs of the machine only add time
MORE_TRIES = 40  # the same if other programs may have priority over us
REASONS = "a busy machine delays packets, and so does a router that cannot keep up"
PING_BITS = 8 * 98  # size of a ping on the link
OFF_SHARE, OFF_SECONDS = 0.1, 0.0002  # a round trip is wrong if its error exceeds both


@dataclasses.dataclass(frozen=True)
class MeasuredLink:
    """The requested and the measured round trips between two ends."""

    pair: Pair
    """The two ends."""

    asked: float
    """The requested round trip, in seconds."""

    measured: RoundTrips
    """The measured round trips minus those of the path at rest."""

    kernel_settings: KernelSettings | None = None
    """The link's other requested properties, as set in the kernel; None if there are none."""

    @property
    def short(self) -> bool:
        """Whether the measured delay is shorter than the request."""
        return any(one is not None and one < self.asked for one in (self.measured.ping, self.measured.exchange))

    def wrong(self, more: float = 0.0) -> str:
        """How the measurement differs from the request, as a clause; or empty. more: additional accepted seconds."""
        allowed = max(OFF_SHARE * self.asked, OFF_SECONDS) + more
        for name, seconds in (("pings", self.measured.ping), ("exchanges over TCP", self.measured.exchange)):
            if seconds is not None and abs(seconds - self.asked) > allowed:
                return (
                    f"the round trip between {' and '.join(self.pair)} is {milliseconds(seconds)} instead of "
                    f"{milliseconds(self.asked)} (shortest of the {name})"
                )
        return ""


@runtime_checkable
class OnPath(Protocol):
    """An optional protocol of a host: it is on a path."""

    path: NetworkPath | None
    """The path of the host's cluster; None if its network cannot be delayed."""


def path_of(hosts: Sequence[Host]) -> NetworkPath | None:
    """The path between the hosts of a cluster; None if their network cannot be delayed."""
    return next((host.path for host in hosts[:1] if isinstance(host, OnPath)), None)


class NetworkPath(abc.ABC):
    """The network between the ends of one cluster. At first it delays nothing."""

    ends: Sequence[str] = ()
    """The nodes, then ``client`` and ``proxy`` if their packets take the path too."""

    rests = 1
    """Number of measurements of the path at rest."""

    tries = TRIES
    """Maximum number of measurements of a link that seems wrong."""

    needs: NetworkNeeds = network.REST
    """The current delays."""

    def __init__(self) -> None:
        self._rest: dict[Pair, RoundTrips] = {}

    @abc.abstractmethod
    def shape(self, needs: NetworkNeeds) -> None:
        """Delay packets from now on as ``needs`` ask, without restarts. Raises ProvisionError."""

    def has_host(self, end: str) -> bool:
        """Whether an end other than a node has a host here: its packets take the path, or no other host is near."""
        return end in self.ends

    @abc.abstractmethod
    def host(self, end: str) -> Host:
        """The host of an end other than a node. Raises ProvisionError."""

    @abc.abstractmethod
    def round_trips(self, pair: Pair, samples: int) -> RoundTrips:
        """The shortest of several round trips between two ends, now. Raises ProvisionError."""

    @abc.abstractmethod
    def settings(self) -> Ways:
        """The settings in the kernel, by source and target end of the packets so far. Raises ProvisionError."""

    def why_lost(self) -> str:
        """Why packets cannot take this path any more, as a clause for a message; empty while they can."""
        return ""

    def cut(self, end: str, *, here: bool = False) -> None:  # noqa: B027 (a host may be cut off elsewhere)
        """Block all packets of an end on this path; ``here``: also those to this machine. Raises ProvisionError."""

    def join(self, end: str, *, here: bool = False) -> None:  # noqa: B027
        """Unblock the packets of an end; ``here`` as in ``cut``. Raises ProvisionError."""

    def begin_again(self, end: str) -> None:  # noqa: B027 (the queues of others outlive a host)
        """Delay the packets of an end again after its host lost power. Raises ProvisionError."""

    def measure(self, needs: NetworkNeeds) -> list[MeasuredLink]:
        """Shape the path, measure the round trips between all pairs of ends, and read the kernel's other settings.

        The path stays shaped. Raises ProvisionError for a lost path, and for a link off by more than 10 % and 0.2 ms.
        It raises it too if the kernel's settings of a link differ from the request.
        """
        links = network.pairs(self.ends)
        if len(self._rest) < len(links):
            for _ in range(self.rests):
                self._measure_rest(links)
        self.shape(needs)
        found = [self._measure_link(pair, needs) for pair in links]
        ways = self.settings()
        return [dataclasses.replace(link, kernel_settings=_settings(link.pair, needs, ways)) for link in found]

    def _measure_rest(self, links: Sequence[Pair]) -> None:
        self.shape(network.REST)
        for pair in links:
            now = self.round_trips(pair, REST_SAMPLES)
            self._rest[pair] = now.minimum(self._rest.get(pair, now))

    def _measure_link(self, pair: Pair, needs: NetworkNeeds) -> MeasuredLink:
        shape = needs.between(*pair)
        more = shape.jitter + _ping_seconds(shape)
        now = self.round_trips(pair, SAMPLES)
        for _ in range(self.tries):
            link = MeasuredLink(pair, shape.rtt, now.added_delay(self._rest[pair]))
            wrong = link.wrong(more)
            if not wrong:
                return link
            if link.short:  # the measurement of the path at rest was disturbed
                self._measure_rest([pair])
                self.shape(needs)
            now = now.minimum(self.round_trips(pair, SAMPLES))
        raise _otherwise(needs, f"{wrong}, without that of the path at rest; {REASONS}")


def _ping_seconds(shape: LinkShape) -> float:
    """The round trip of a ping that the rate causes, in seconds."""
    return 2 * PING_BITS / shape.rate if shape.rate else 0.0


def _settings(pair: Pair, needs: NetworkNeeds, ways: Ways) -> KernelSettings | None:
    """The kernel's settings of a link; None if none were requested. Raises ProvisionError for wrong settings."""
    shape = needs.between(*pair)
    if wrong := kernel_settings.wrong(pair, shape, ways):
        raise _otherwise(needs, wrong)
    return ways[pair] if shape.loss or shape.jitter or shape.rate else None


def _otherwise(needs: NetworkNeeds, wrong: str) -> ProvisionError:
    return ProvisionError(f"the network between the nodes differs from the cluster's request ({needs}): {wrong}")
