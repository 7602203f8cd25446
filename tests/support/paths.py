"""Paths of tests: a fake one whose round trips are what a test wants, and what the real ones of this machine need."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_dbcluster.hosts.host import Host
from pytest_dbcluster.hosts.network import local_paths
from pytest_dbcluster.hosts.network.guest_router import GuestRouter
from pytest_dbcluster.hosts.network.path import NetworkPath, RoundTrips
from pytest_dbcluster.hosts.network.traffic import Burst, Pings
from pytest_dbcluster.hosts.provisioners.fake import FakeHost
from pytest_dbcluster.network import REST, NetworkNeeds, Pair
from tests.support import guests


class FakePath(NetworkPath):
    """Takes ``own`` seconds at rest, and ``adds`` seconds more than asked for any delay.

    shaped: all that was asked, in order. disturbed: seconds on top of each measurement, in turn. loses: the share of
    the pings that each call of ``pings`` loses, in turn; pinged: how many calls there were. gone: what ``lost`` says.
    """

    def __init__(
        self, ends: Sequence[str], *, own: float = 0.0001, adds: float = 0.0, disturbed: Sequence[float] = ()
    ) -> None:
        super().__init__()
        self.ends = tuple(ends)
        self.shaped: list[NetworkNeeds] = []
        self.gone = ""
        self.loses: list[float] = []
        self.pinged = 0
        self._own, self._adds, self._disturbed = own, adds, list(disturbed)

    def shape(self, needs: NetworkNeeds) -> None:
        """Note it."""
        self.shaped.append(needs)

    def host(self, end: str) -> Host:
        """A host of this name."""
        return FakeHost(end)

    def round_trips(self, pair: Pair, samples: int) -> RoundTrips:
        """As asked, and what the test adds."""
        now = self.shaped[-1] if self.shaped else REST
        asked = now.between(*pair).rtt
        seconds = (
            self._own + asked + (self._adds if asked else 0.0) + (self._disturbed.pop(0) if self._disturbed else 0.0)
        )
        return RoundTrips(seconds, seconds)

    def pings(self, pair: Pair, count: int, interval: float) -> Pings:
        """All come back, but for the share that the test says for this call."""
        self.pinged += 1
        missing = self.loses.pop(0) if self.loses else 0.0
        return Pings(count, (0.01,) * int(count * (1 - missing)))

    def burst(self, pair: Pair, rate: float) -> Burst:
        """As asked, or faster without a rate."""
        bits, asked = rate / 1000, self.shaped[-1].between(*pair)
        each = bits / (asked.rate or 2 * rate) / (1 - asked.loss)  # seconds; others take as long, and are lost
        return Burst(bits, [(0.0, asked.rtt + (number + 2) * each) for number in range(100)])

    def lost(self) -> str:
        """What the test says."""
        return self.gone


def missing() -> str:
    """Why no path can be made on this machine; empty where it can."""
    return local_paths.why_not() or ("" if local_paths.kernel_delays() else guests.missing())


def router_pid(path: NetworkPath) -> int | None:
    """The process of a path's router; None where the kernel is the router."""
    router = path._router
    return router._guest.pid if isinstance(router, GuestRouter) else None
