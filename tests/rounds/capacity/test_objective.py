"""Objectives: what a call accepts, and how many operations may take longer."""

from __future__ import annotations

import math

import pytest

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.rounds.capacity.objective import Objective
from tests.support.facts import missing


def test_an_objective_is_one_percentile_with_its_seconds():
    """Its text has milliseconds, its keyword is that of the call."""
    found = Objective.of("measure.capacity", {"p95": 0.02})

    assert (found.percentile, found.seconds, found.share) == ("p95", 0.02, 0.95)
    assert (str(found), found.keyword) == ("p95 of 20 ms", "p95=0.02")


@pytest.mark.parametrize(
    ("given", "facts"),
    [
        ({}, ("p95=0.02", "got none")),
        ({"p95": 0.02, "p99": 0.1}, ("one objective", "p95=0.02, p99=0.1")),
        ({"p96": 0.02}, ("unknown percentile 'p96'", "p50, p95, p99, p999")),
        ({"p95": 0}, ("p95=0 must be seconds", "0 < p95 <= 1")),
        ({"p95": 20}, ("p95=20 must be seconds", "20 ms is p95=0.02")),
        ({"p95": "20ms"}, ("p95='20ms' must be seconds",)),
        ({"p95": True}, ("p95=True",)),
        ({"p95": math.nan}, ("p95=nan",)),
    ],
)
def test_another_objective_is_refused(given, facts):
    """The message says what is accepted."""
    with pytest.raises(ConfigError) as caught:
        Objective.of("measure.capacity", given)
    assert missing(str(caught.value), *facts) == []


@pytest.mark.parametrize(("percentile", "operations", "most"), [("p95", 1000, 54), ("p50", 100, 65), ("p999", 1000, 1)])
def test_the_operations_that_may_take_longer_allow_for_chance(percentile, operations, most):
    """The number of arrivals may be larger by three standard deviations, so a rate that ends early certainly misses."""
    assert Objective(percentile, 0.02).allowance(operations) == most
