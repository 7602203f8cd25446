"""Paths of tests: a fake one whose round trips are what a test wants, and what the real ones of this machine need."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence

from pytest_dbcluster.hosts.host import Host
from pytest_dbcluster.hosts.network import local_paths
from pytest_dbcluster.hosts.network.guest_router import GuestRouter
from pytest_dbcluster.hosts.network.path import NetworkPath
from pytest_dbcluster.hosts.provisioners.fake import FakeHost
from pytest_dbcluster.network import REST, KernelSettings, NetworkNeeds, Pair, RoundTrips
from tests.support import guests


class FakePath(NetworkPath):
    """Takes ``own`` seconds at rest, and ``adds`` seconds more than asked for any delay.

    shaped: all that was asked, in order. disturbed: seconds on top of each measurement, in turn. sets: what the
    kernel has set instead of what was asked. gone: what ``why_lost`` returns.
    """

    def __init__(
        self, ends: Sequence[str], *, own: float = 0.0001, adds: float = 0.0, disturbed: Sequence[float] = ()
    ) -> None:
        super().__init__()
        self.ends = tuple(ends)
        self.shaped: list[NetworkNeeds] = []
        self.gone = ""
        self.sets: dict[str, float] = {}
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

    def settings(self) -> dict[tuple[str, str], KernelSettings]:
        """As asked, and what the test sets."""
        shapes = {way: self.shaped[-1].between(*way) for way in itertools.permutations(self.ends, 2)}
        asked = {way: KernelSettings(shape.loss, shape.jitter, shape.rate) for way, shape in shapes.items()}
        return {way: dataclasses.replace(one, **self.sets) for way, one in asked.items()}

    def why_lost(self) -> str:
        """What the test says."""
        return self.gone


def missing() -> str:
    """Why no path can be made on this machine; empty where it can."""
    return local_paths.why_not() or ("" if local_paths.kernel_delays() else guests.missing())


def router_pid(path: NetworkPath) -> int | None:
    """The process of a path's router; None where the kernel is the router."""
    router = path._router
    return router._guest.pid if isinstance(router, GuestRouter) else None
