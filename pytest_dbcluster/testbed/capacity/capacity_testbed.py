"""``CapacityTestbed``: the round source of ``measure.capacity``. Each of its rounds runs several arrival rates."""

from __future__ import annotations

import dataclasses
import functools
import math
import random
import time
from collections.abc import Sequence
from typing import Any

from pytest_dbcluster.claims import block_order
from pytest_dbcluster.claims.cluster_difference import ASSUMED, ClusterDifference
from pytest_dbcluster.errors import SeriesVoid
from pytest_dbcluster.formatting import amount, duration
from pytest_dbcluster.measuring.drawing import reach
from pytest_dbcluster.rounds import metrics, open_loop
from pytest_dbcluster.rounds.capacity import rates
from pytest_dbcluster.rounds.capacity.capacity_curve import CapacityCurve, RatePoint
from pytest_dbcluster.rounds.round import Round
from pytest_dbcluster.testbed import comparability, round_runner
from pytest_dbcluster.testbed.capacity.objective_testbed import UNMEASURED, ObjectiveTestbed, check_rate_free
from pytest_dbcluster.testbed.pool import Running
from pytest_dbcluster.workloads.workload import Workload

CLOSED = (2, 2)  # blocks of the closed loop that count, after those that warm up
OF_SPEED = ASSUMED + " as for the speed: {}"  # the source of a difference of equal clusters
USUAL_CLOSED = 4  # blocks of a closed loop, for the expected time
USUAL_SEARCH = 3  # rates that find a capacity, for the expected time


class CapacityTestbed(ObjectiveTestbed):
    """One workload on several variants, with rounds that run several arrival rates one after the other.

    Before the first round it searches the capacity of each variant, and chooses the same rates for all. seed: of the
    order of the rates. Raises ConfigError for a workload without an open loop, or with an arrival rate.
    """

    __test__ = False
    warm = True

    def __init__(self, workload: Workload, *arguments: Any, seed: int, **keywords: Any) -> None:
        """arguments, keywords: those of ``ObjectiveTestbed`` after the workload."""
        check_rate_free(workload)
        super().__init__(workload, *arguments, **keywords)
        self._seed, self._speed = seed, self.metric
        self._window = rates.window(self.objective, self.round_seconds)
        self.load, self.metric = self.objective.name_of(self.load), metrics.CAPACITY
        self.round_seconds, self.free_length = rates.RATES * self._window, False
        self._rates: tuple[float, ...] = ()
        self._plan: tuple[float | None, ...] = ()  # the rates of the next round; None is a closed loop

    def choose_rates(self) -> None:
        """Search the capacities, unless that is done. ``round_seconds`` are then those of the rates that all meet."""
        self._begin(0)

    def _begin(self, variant: int) -> None:
        """Before the first round, print the expected time, search the capacities, and choose the rates."""
        if not self._rates:
            self._progress(f"{self.load}: {self._time_text()}")
        super()._begin(variant)
        if not self._rates:
            self._choose_rates()

    def _time_text(self) -> str:
        several, look = len(self.names), reach.earliest_look()
        search = several * (USUAL_CLOSED + USUAL_SEARCH) * (self._window + UNMEASURED)
        rounds = rates.expected_seconds(several, self._window + UNMEASURED, look)
        return (
            f"a search of about {duration(search)}, then rounds of {rates.RATES} rates of {self._window:g} s; the "
            f"first {look} pairs take at most about {duration(rounds)}"
        )

    def _choose_rates(self) -> None:
        speeds = self._closed_loop_speeds()
        found = [
            rates.search(self.objective, speeds[name], functools.partial(self._search_point, number))
            for number, name in enumerate(self.names)
        ]
        chosen = rates.choose(self.objective, found)
        self._window = rates.long_enough(self._window, chosen[0], self.operations, self.objective.percentile)
        self._rates = self._plan = chosen
        met = [rate for rate in chosen if rate <= min(one.value for one in found)]
        self.round_seconds = math.fsum(rates.enough(self._window, rate, self.operations) for rate in met)
        shown = ", ".join(map(amount, chosen))
        least = ", ".join(f"{name} about {amount(one.value)}/s" for name, one in zip(self.names, found, strict=True))
        self._progress(f"{self.load}: rates of {shown}/s, {self._window:g} s each ({least})")

    def _closed_loop_speeds(self) -> dict[str, float]:
        """The good operations a second of each variant in a closed loop."""
        self._plan = (None,)
        orders = block_order.block_orders(len(self.names), 0)
        draw = functools.partial(self._draw, began=time.monotonic())
        return open_loop.capacities(self.names, orders, draw, CLOSED)

    def _search_point(self, variant: int, rate: float) -> RatePoint:
        """One open loop of the search. Raises SeriesVoid if it is void too often."""
        self._plan = (rate,)
        for _ in range(open_loop.MAX_VOID + 1):
            done = self._draw(variant, -1, 0, time.monotonic())
            if not done.void:
                return self._point(done, rate)
        raise SeriesVoid(f"the capacity of {self.names[variant]} could not be measured: {done.void}")

    def _point(self, done: Round, rate: float) -> RatePoint:
        latency = metrics.display_value(done, self.objective.percentile, self.load) / 1e3
        return RatePoint(rate, latency, done.outcome.ended_early)

    def _on_path(self, running: Running, variant: int, block: int, position: int, began: float) -> Round:
        """The rates of a round in random order; a single one is a round of the search."""
        before, parts = self._workloads, list[tuple[float | None, Round]]()
        coin = random.Random(block_order.seed_of(self._seed, "rates", block, position))
        for rate in coin.sample(self._plan, len(self._plan)):
            try:
                self._workloads = [self._at(workload, rate) for workload in before]
                done = super()._on_path(running, variant, block, position, began)
            finally:
                self._workloads = before
            if done.void or len(self._plan) == 1:
                return done
            parts.append((rate, done))
        return dataclasses.replace(self._compose(parts), wall=time.monotonic() - began)

    def _at(self, workload: Workload, rate: float | None) -> Workload:
        """The workload at a rate of a round, so long that the percentile has its operations.

        None is a closed loop.
        """
        seconds = self._window if rate is None else rates.enough(self._window, rate, self.operations)
        return comparability.with_seconds(comparability.at_rate(workload, rate), seconds)

    def _compose(self, parts: Sequence[tuple[float | None, Round]]) -> Round:
        """The rates of a round as one round."""
        points = [self._point(done, rate) for rate, done in parts if rate is not None]
        curve = CapacityCurve.of(self.objective, points)
        done = round_runner.merge([part for _, part in parts])
        outcome = dataclasses.replace(done.outcome, rate=None, offered=None, delay=None)
        limited = next((one.limited for rate, one in parts if one.limited and rate and rate <= curve.upper), "")
        return dataclasses.replace(done, outcome=outcome, capacity=curve, behind=False, limited=limited)

    def cluster_difference(self, *numbers: int, metric: str) -> ClusterDifference | None:
        """That of the workload's speed in a closed loop, as an assumption: no calibration measures capacities."""
        found = super().cluster_difference(*numbers, metric=self._speed)
        return found and dataclasses.replace(found, source=OF_SPEED.format(found.source))

    def learn(self, rounds: Sequence[Sequence[Round]]) -> None:
        """Nothing: we chose the speed of these rounds."""
