"""An objective at one arrival rate, on a real server whose transactions sleep for 5 ms."""

from __future__ import annotations

import pytest

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.rounds.capacity.objective import Objective
from pytest_dbcluster.testbed.capacity.rate_testbed import RateTestbed
from pytest_dbcluster.workloads.mysqlslap import MySQLSlap
from pytest_dbcluster.workloads.sysbench import SysBench
from tests.support.facts import missing
from tests.support.naps import naps
from tests.support.testbeds import ONE

MEDIAN = Objective("p50", 0.1)


def source(pool, load, rate, progress=lambda line: None):
    """The round source of a server at this rate."""
    return RateTestbed(load, MEDIAN, rate, 20, pool.resolution.resolve(ONE), pool, "quick", progress)


@pytest.mark.parametrize(("rate", "early"), [(100.0, False), (3000.0, True)])
def test_a_rate_that_must_miss_ends_early(shared, tmp_path, rate, early):
    """Four connections do 800 operations a second; beyond that the queue grows, and its operations count as missed."""
    said = []
    made = source(shared, naps(tmp_path, milliseconds=5), rate, progress=said.append)
    done = made.round(0, block=0, position=0)

    assert (done.void, done.outcome.ended_early) == ("", early)
    assert (done.seconds < 0.5) is early
    assert done.outcome.rate == rate
    assert missing("\n".join(said), f"at {rate:g}/s: 20 rounds of 0.6 s, about") == []


@pytest.mark.parametrize(
    ("load", "rate", "facts"),
    [
        (MySQLSlap("write"), 100.0, ("has no open loop",)),
        (SysBench(threads=4), 100_000.0, ("4 connections", "threads=5")),
        (SysBench(threads=4), 1.0, ("p50 needs 20 operations", "more than 10 s")),
    ],
)
def test_a_rate_that_cannot_be_is_refused(shared, load, rate, facts):
    """Before anything starts."""
    with pytest.raises(ConfigError) as caught:
        source(shared, load, rate)
    assert missing(str(caught.value), *facts) == []
