"""``ObjectiveTestbed``: what round sources with an objective for a latency percentile have in common."""

from __future__ import annotations

import dataclasses
from typing import Any

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.rounds import metrics
from pytest_dbcluster.rounds.capacity.objective import Objective
from pytest_dbcluster.testbed import comparability
from pytest_dbcluster.testbed.pool import Running
from pytest_dbcluster.testbed.testbed import Testbed
from pytest_dbcluster.workloads.workload import OpenLoop, Setting, Workload

UNMEASURED = 1.0  # seconds between two open loops, for the expected time


class ObjectiveTestbed(Testbed):
    """A testbed whose open loops may end early, once they must miss an objective."""

    __test__ = False

    def __init__(self, workload: Workload, objective: Objective, *arguments: Any, **keywords: Any) -> None:
        """arguments, keywords: those of ``Testbed`` after the workload."""
        check_open_loop(workload)
        self.objective = objective
        self.operations = metrics.operations_needed(objective.percentile)
        super().__init__(workload, *arguments, sampled=True, **keywords)

    def _setting(self, running: Running) -> Setting:
        return dataclasses.replace(super()._setting(running), objective=self.objective)

    def permit(self, metric: str) -> None:
        """Raise ConfigError for any counter: it would depend on the arrival rates, which are ours."""
        if metrics.is_counter(metric):
            raise ConfigError(
                f"{self.load}: its counters depend on the arrival rates, which the measurement chooses; compare "
                "counters with measure(workload, on=[...])"
            )


def check_open_loop(workload: Workload) -> None:
    """Raise ConfigError for a workload that has no open loop."""
    comparability.check_workloads([workload])
    if not isinstance(workload, OpenLoop):
        raise ConfigError(
            f"{workload} has no open loop, so it keeps no arrival rate; a capacity needs a workload such as SysBench, "
            "TPCC, SQLFiles or LuaScript"
        )


def check_rate_free(workload: Workload) -> None:
    """Raise ConfigError for a workload that has an arrival rate, or cannot have one."""
    check_open_loop(workload)
    assert isinstance(workload, OpenLoop)
    if workload.rate is not None:
        raise ConfigError(
            f"{workload}: rate={workload.rate!r} is for measure; measure.capacity chooses the rates: leave it out"
        )
    workload.at_rate(1000.0)  # raises for a workload with pauses
