"""Made-up rounds that measure capacities."""

from __future__ import annotations

import dataclasses
import math
import random

from pytest_dbcluster.measuring.capacity.capacity_series import capacity_series_of
from pytest_dbcluster.measuring.drawing.rules import Rules
from pytest_dbcluster.measuring.event_series import plan
from pytest_dbcluster.measuring.measurement import Measurement
from pytest_dbcluster.rounds.capacity.capacity_curve import CapacityCurve, RatePoint
from pytest_dbcluster.rounds.capacity.objective import Objective
from pytest_dbcluster.rounds.histogram import Histogram
from pytest_dbcluster.rounds.ledger import Ledger, LedgerEntry
from pytest_dbcluster.rounds.round import Round, RunResult
from tests.support.fakes import FakeSource, noisy
from tests.support.measurements import measurement

OBJECTIVE = Objective("p95", 0.02)
RATES = (400.0, 560.0, 784.0, 1100.0, 1540.0)


def curve(capacity, rates=RATES, objective=OBJECTIVE):
    """A percentile that meets the objective at exactly this rate, and rises with the fourth power of the rate."""
    points = [RatePoint(rate, objective.seconds * (rate / capacity) ** 4, rate > 1.3 * capacity) for rate in rates]
    return CapacityCurve.of(objective, points)


@dataclasses.dataclass
class CapacitySource(FakeSource):
    """Rounds of five rates; ``capacities`` has that of each variant, with noise."""

    capacities: tuple[float, ...] = (600.0, 1000.0)
    sd: float = 0.05
    metric: str = "capacity"
    load: str = "fake load, capacity at a p95 of 20 ms"
    warm = True

    def __post_init__(self):
        self._coin = random.Random(3)

    def round(self, variant: int, *, block: int, position: int) -> Round:
        """One made-up round."""
        capacity = self.capacities[variant] * self._coin.lognormvariate(0, self.sd)
        done = super().round(variant, block=block, position=position)
        return dataclasses.replace(done, capacity=curve(capacity))


def source(*capacities, **fields):
    """A source of variants with these capacities: ``slow``, ``fast``, and so on."""
    names = ("slow", "fast", "faster")[: len(capacities)]
    return CapacitySource(names, noisy(*[1.0] * len(names)), capacities=capacities, **fields)


@dataclasses.dataclass
class RateSource(FakeSource):
    """Open loops of one variant at one arrival rate, with these latencies in seconds, one after the other."""

    latencies: tuple[float, ...] = (0.01,)
    early: tuple[int, ...] = ()
    rate: float = 2000.0

    def round(self, variant: int, *, block: int, position: int) -> Round:
        """One made-up round, all of whose operations take equally long."""
        number = len(self.rounds)
        done = super().round(variant, block=block, position=position)
        latency = self.latencies[number % len(self.latencies)]
        ledger = Ledger({"x": LedgerEntry({1: 400}, committed=400, latencies=Histogram.of([latency] * 400))})
        outcome = RunResult(1.0, 400, 400, good=400, ledger=ledger, rate=self.rate, offered=400)
        return dataclasses.replace(
            done, outcome=dataclasses.replace(outcome, ended_early=number in self.early), wall=1.5
        )


def series(*capacities, objective=OBJECTIVE, rates=None, **fields):
    """The series of variants with these capacities. rates: fields of the source that ``meets`` asks."""
    made = measurement(source(*capacities, **fields))

    def ask(at):
        name = made.source.names[at.variant]
        own = RateSource(
            (name,), lambda variant: 1.0, load=f"fake load at {at.rate:g}/s", rate=at.rate, **(rates or {})
        )
        return Measurement(own, Rules(seed=7, cap=at.times, budget=math.inf), plan=plan(1, at.times))

    return capacity_series_of(made, objective, ask)
