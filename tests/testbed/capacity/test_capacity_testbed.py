"""Capacities of a real server, whose transactions sleep for a time that a variable sets."""

from __future__ import annotations

import pytest

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.measuring.drawing.rules import Rules
from pytest_dbcluster.measuring.measurement import Measurement
from pytest_dbcluster.measuring.series import series_of
from pytest_dbcluster.rounds.capacity import rates
from pytest_dbcluster.rounds.capacity.objective import Objective
from pytest_dbcluster.testbed.capacity.capacity_testbed import CapacityTestbed
from pytest_dbcluster.workloads.mysqlslap import MySQLSlap
from pytest_dbcluster.workloads.sysbench import SysBench
from tests.support.facts import missing
from tests.support.naps import naps
from tests.support.testbeds import ONE

# A transaction sleeps 5 ms on one variant and 15 ms on the other, so capacities do not depend on this machine.
QUICK, SLOW = (ONE.with_options(lock_wait_timeout=5 * times).named(name) for name, times in (("quick", 1), ("slow", 3)))
MEDIAN = Objective("p50", 0.05)


def source(pool, load, *specs, objective=MEDIAN, progress=lambda line: None):
    """The round source of these specs."""
    variants = [pool.resolution.resolve(spec) for spec in specs]
    return CapacityTestbed(load, objective, variants, pool, "quick", progress, seed=5)


def test_a_server_that_takes_three_times_as_long_has_a_third_of_the_capacity(shared, tmp_path, monkeypatch):
    """The same rates for both, in random order; a rate that must miss ends early, and the next one finds no queue."""
    monkeypatch.setattr(rates, "RATES", 2)
    said = []
    load = naps(tmp_path, "@@GLOBAL.lock_wait_timeout", seconds=0.3)
    made = source(shared, load, SLOW, QUICK, progress=said.append)
    slow, quick = series_of(Measurement(made, Rules(1)))
    answer = quick.no_slower_than(slow, by=0.1)
    curves = [done.capacity for series in (slow, quick) for done in series.rounds]

    assert answer
    assert 1.5 < answer.verdict.ratio < 6
    assert {tuple(point.rate for point in curve.points) for curve in curves} == {made._rates}
    assert len(made._rates) == 2
    early = [point for curve in curves for point in curve.points if point.ended_early]
    assert early
    assert all(point.latency > MEDIAN.seconds for point in early)
    assert missing("\n".join(said), "a search of about", "the first 8 pairs take at most", "rates of") == []


@pytest.mark.parametrize(
    ("load", "facts"),
    [
        (MySQLSlap("write"), ("has no open loop", "SysBench")),
        (SysBench(rate=500), ("rate=500", "leave it out")),
        (SysBench(pause=0.1), ("pause=0.1",)),
    ],
)
def test_a_workload_without_free_arrival_rates_is_refused(shared, load, facts):
    """Before anything starts."""
    with pytest.raises(ConfigError) as caught:
        source(shared, load, ONE)
    assert missing(str(caught.value), *facts) == []


def test_counters_of_a_capacity_are_refused(shared):
    """The rates that they depend on are ours."""
    made = source(shared, SysBench(), QUICK, SLOW)
    quick, slow = series_of(Measurement(made, Rules(1)))
    with pytest.raises(ConfigError, match="depend on the arrival rates"):
        quick.lower("fsyncs", than=slow)


def test_capacities_of_separate_clusters_differ_by_an_assumption(shared):
    """No calibration measures them, so the claim does not count as one whose error is known."""
    other = ONE.with_options(innodb_buffer_pool_size="64M").named("other")
    made = source(shared, SysBench(), ONE, other)

    assert made.cluster_difference(0, 1, metric="capacity").source.startswith("assumed as for the speed: ")
    assert source(shared, SysBench(), QUICK, SLOW).cluster_difference(0, 1, metric="capacity") is None
