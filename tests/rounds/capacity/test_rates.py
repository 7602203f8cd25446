"""The choice of the rates of all rounds."""

from __future__ import annotations

import itertools

import pytest

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.rounds.capacity import rates
from pytest_dbcluster.rounds.capacity.capacity_curve import RatePoint
from pytest_dbcluster.rounds.capacity.objective import Objective
from tests.support.capacities import OBJECTIVE, curve
from tests.support.facts import missing


def server(capacity, power=4):
    """Open loops of a server with this capacity, and the rates that they ran at."""
    ran = []

    def run(rate):
        ran.append(rate)
        return RatePoint(rate, OBJECTIVE.seconds * (rate / capacity) ** power)

    return run, ran


@pytest.mark.parametrize("share", [0.2, 0.5, 0.69, 0.71, 0.95])
def test_a_search_ends_once_one_rate_meets_the_objective_and_one_misses_it(share):
    """It begins at 70 % of the speed in a closed loop, and finds the capacity in a few rates."""
    run, ran = server(share * 1000)
    found = rates.search(OBJECTIVE, 1000.0, run)

    assert ran[0] == pytest.approx(700.0)
    assert len(ran) <= rates.TRIES
    assert found.censored == 0
    assert found.value == pytest.approx(share * 1000, rel=0.1)


def test_a_search_gives_up_after_six_rates():
    """The objective is below what the server needs for a single operation."""
    found = rates.search(OBJECTIVE, 1000.0, lambda rate: RatePoint(rate, 0.05))

    assert (found.censored, len(found.points)) == (-1, 6)
    assert found.points[0].rate < 100


def test_all_variants_get_the_same_five_rates_around_their_capacities():
    """They are equally far apart on a logarithmic scale, and reach beyond both."""
    chosen = rates.choose(OBJECTIVE, [curve(600.0), curve(1200.0)])
    steps = [b / a for a, b in itertools.pairwise(chosen)]

    assert len(chosen) == rates.RATES
    assert chosen[0] < 600 / 1.2
    assert chosen[-1] > 1200 * 1.2
    assert max(steps) == pytest.approx(min(steps), rel=0.02)


def test_a_variant_that_never_meets_the_objective_adds_no_rate():
    """Its rounds are censored; the rates are those of the other one."""
    never = rates.search(OBJECTIVE, 1000.0, lambda rate: RatePoint(rate, 0.05))

    assert rates.choose(OBJECTIVE, [never, curve(900.0)]) == rates.choose(OBJECTIVE, [curve(900.0)])


def test_an_objective_that_nobody_meets_is_an_error():
    """The message has the lowest percentile."""
    never = rates.search(OBJECTIVE, 1000.0, lambda rate: RatePoint(rate, 0.05))
    with pytest.raises(ConfigError) as caught:
        rates.choose(OBJECTIVE, [never, never])
    assert missing(str(caught.value), "no variant meets a p95 of 20 ms", "the lowest p95 was 50 ms") == []


@pytest.mark.parametrize(
    ("objective", "given", "seconds"),
    [(OBJECTIVE, None, 1.0), (OBJECTIVE, 0.3, 0.3), (Objective("p95", 0.5), None, 5.0)],
)
def test_a_rate_lasts_for_several_times_the_objective(objective, given, seconds):
    """So that a growing queue shows; the test may choose another time."""
    assert rates.window(objective, given) == pytest.approx(seconds)


def test_a_rate_lasts_until_the_percentile_has_its_operations():
    """A p95 needs 200, with some room; a rate that would need more than 10 s is refused."""
    assert rates.long_enough(1.0, 1000.0, 200, "p95") == 1.0
    assert rates.long_enough(1.0, 100.0, 200, "p95") == pytest.approx(2.4)
    assert rates.enough(1.0, 1.0, 200) == rates.LONGEST
    with pytest.raises(ConfigError, match=r"p99 needs 1000 operations, which take 24 s at 50/s"):
        rates.long_enough(1.0, 50.0, 1000, "p99")


def test_a_rate_beyond_what_connections_can_start_is_refused():
    """One starts at most 20000 operations a second; without known connections nothing is refused."""
    assert rates.beyond_threads(80_000, 4) == ""
    assert missing(rates.beyond_threads(100_000, 4), "4 connections", "threads=5") == []
    assert rates.beyond_threads(100_000, 0) == ""


def test_the_expected_time_is_that_of_all_rates():
    """Eight pairs of two variants have eighty rates."""
    assert rates.expected_seconds(2, 1.5, 8) == pytest.approx(120.0)
