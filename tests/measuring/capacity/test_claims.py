"""Claims about capacities, from made-up rounds."""

from __future__ import annotations

import dataclasses

import pytest

from pytest_dbcluster.claims.claim import Outcome
from pytest_dbcluster.errors import ConfigError, Inconclusive
from pytest_dbcluster.measuring.series import ordered, series_of
from tests.support.capacities import series
from tests.support.facts import missing
from tests.support.measurements import measured, measurement, two


def test_a_claim_compares_capacities():
    """The ratio is that of the rates at which the percentile crosses the objective."""
    slow, fast = series(600.0, 1000.0)
    answer = fast.beats(slow, by=0.3)

    assert answer
    assert answer.verdict.ratio == pytest.approx(1000 / 600, rel=0.1)
    assert answer.text == "fast.beats(slow, by=0.3)"
    assert missing(answer.message, "HOLDS: fast is more than 30 % faster than slow, by capacity", "/s") == []
    assert missing(answer.message, "median p95 in ms by rate (objective 20 ms): 400/s") == []
    assert slow.values("capacity") == [done.capacity.value for done in slow.rounds]


def test_the_search_of_the_source_is_the_warm_up():
    """All rounds count."""
    slow, fast = series(600.0, 1000.0)
    fast.beats(slow)

    assert len(measured(slow.measurement.source)) == len(slow.measurement.source.rounds) == 24


def test_rounds_that_the_rates_make_too_long_are_refused_before_the_first():
    """The search shows how long they are; the message has the smallest budget."""
    slow, fast = series(6.0, 10.0)
    source = slow.measurement.source
    source.choose_rates = lambda: setattr(source, "round_seconds", 18.0)
    slow.measurement.rules = dataclasses.replace(slow.measurement.rules, budget=120.0)
    with pytest.raises(Inconclusive, match="rounds of 18 s take 432 s, more than its budget of 120 s"):
        fast.beats(slow)

    assert source.rounds == []


@pytest.mark.parametrize(("claim", "outcome"), [("no_slower_than", Outcome.HOLDS), ("same_as", Outcome.FAILS)])
def test_guards_compare_capacities_too(claim, outcome):
    """As they compare speeds."""
    slow, fast = series(600.0, 1000.0, sd=0.01)

    assert getattr(fast, claim)(slow, 0.1).verdict.outcome is outcome


def test_an_order_compares_capacities():
    """Of several variants."""
    assert ordered(*series(450.0, 700.0, 1200.0, sd=0.02))


def test_a_variant_above_all_rates_wins_by_its_order():
    """The upper end of the ratio is not known, and the message says why."""
    slow, fast = series(600.0, 9000.0)
    answer = fast.beats(slow)

    assert answer
    assert answer.verdict.high == float("inf")
    assert missing(answer.message, "the capacity of fast is above the highest rate in 12 of 12 rounds") == []


def test_two_variants_above_all_rates_are_not_compared():
    """Neither is known to have more, nor to have as much."""
    slow, fast = series(8000.0, 9000.0)

    assert fast.beats(slow).verdict.outcome is Outcome.INCONCLUSIVE
    assert fast.no_slower_than(slow, by=0.1).verdict.outcome is Outcome.INCONCLUSIVE


@pytest.mark.parametrize("metric", ["throughput", "p95"])
def test_another_metric_is_refused(metric):
    """Its rounds run several rates, so they say nothing about it."""
    slow, fast = series(600.0, 1000.0)
    with pytest.raises(ConfigError, match="compares only capacities"):
        fast.beats(slow, metric=metric)
    assert fast.measurement.source.rounds == []


def test_rounds_without_several_rates_have_no_capacity():
    """The message names the call that measures it."""
    slow, fast = series_of(measurement(two()))
    with pytest.raises(ConfigError, match="compares only capacities"):
        fast.beats(slow, metric="capacity")
