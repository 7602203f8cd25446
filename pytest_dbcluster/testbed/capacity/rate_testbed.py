"""``RateTestbed``: the round source of ``meets``. Each round is an open loop of one variant at one arrival rate."""

from __future__ import annotations

import time

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.formatting import Report, duration, quantity
from pytest_dbcluster.rounds import metrics
from pytest_dbcluster.rounds.capacity import rates
from pytest_dbcluster.rounds.capacity.objective import Objective
from pytest_dbcluster.testbed import comparability
from pytest_dbcluster.testbed.capacity.objective_testbed import UNMEASURED, ObjectiveTestbed, check_open_loop
from pytest_dbcluster.testbed.pool import Pool
from pytest_dbcluster.testbed.variants import Variant
from pytest_dbcluster.workloads.workload import Workload


class RateTestbed(ObjectiveTestbed):
    """A workload on one variant at an arrival rate, in operations a second. times: the planned rounds.

    Raises ConfigError for a workload without an open loop, and for a rate that its connections cannot reach. It raises
    it too for a rate so low that a round would be too long.
    """

    __test__ = False

    def __init__(
        self,
        workload: Workload,
        objective: Objective,
        rate: float,
        times: int,
        variant: Variant,
        pool: Pool,
        profile: str,
        progress: Report,
    ) -> None:
        check_open_loop(workload)
        if why := rates.beyond_threads(rate, workload.clients):
            raise ConfigError(f"{workload}: {why}")
        given, _ = comparability.seconds([workload])
        operations = metrics.operations_needed(objective.percentile)
        seconds = rates.long_enough(rates.window(objective, given), rate, operations, objective.percentile)
        loaded = comparability.with_seconds(comparability.at_rate(workload, rate), seconds)
        self._warm, self._times = False, times
        super().__init__(loaded, objective, [variant], pool, profile, progress, instances=1)
        self.round_seconds, self.free_length = seconds, False

    def _begin(self, variant: int) -> None:
        """Before the first round, print its time and run one that does not count."""
        if not self._warm:
            assert self.round_seconds is not None
            expected = duration((self._times + 1) * (self.round_seconds + UNMEASURED))
            self._progress(
                f"{self.load}: {quantity(self._times, 'round')} of {self.round_seconds:g} s, about {expected}"
            )
        super()._begin(variant)
        if not self._warm:
            self._warm = True
            self._draw(variant, -1, 0, time.monotonic())
