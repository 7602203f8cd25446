"""Claims about one variant at an arrival rate."""

from __future__ import annotations

import math

import pytest

from pytest_dbcluster.claims.claim import Outcome
from pytest_dbcluster.errors import ClaimFailed, ConfigError, Inconclusive
from tests.support import golden
from tests.support.capacities import series
from tests.support.facts import missing

NEAR = (0.012, 0.028)  # seconds, one after the other


def asked(latencies, **fields):
    """A series whose rounds at a rate have these latencies."""
    return series(600.0, 1000.0, rates={"latencies": latencies, **fields})[0]


def test_a_variant_meets_an_objective_if_its_median_round_does():
    """Twenty rounds at the rate, none of another variant, and none of other rates."""
    slow = asked((0.012, 0.013, 0.011))
    answer = slow.meets(p95=0.02, at=2000)

    assert answer
    assert answer.text == "slow.meets(p95=0.02, at=2000)"
    assert (answer.verdict.pairs, answer.verdict.alpha) == (20, 0.0005)
    assert 11 < answer.verdict.ratio < 13
    assert slow.measurement.source.rounds == []
    assert [variant.name for variant in answer.variants] == ["slow"]


def test_a_variant_that_misses_it_fails():
    """The message has every round."""
    with pytest.raises(ClaimFailed) as caught:
        bool(asked((0.03,)).meets(p95=0.02, at=2000))
    assert missing(str(caught.value), "REFUTED: slow does not meet a p95 of 20 ms at 2000/s", "p95 in ms of slow") == []


def test_rounds_on_both_sides_are_inconclusive():
    """The message says that more rounds help."""
    with pytest.raises(Inconclusive) as caught:
        bool(asked(NEAR).meets(p95=0.02, at=2000))
    assert missing(str(caught.value), "the interval of 20 rounds contains the bound", "more rounds, such as") == []


def test_the_assumption_is_said():
    """The claim compares no order, so it rests on independent rounds."""
    assert "1 time in 2000, if rounds are independent" in asked((0.012,)).meets(p95=0.02, at=2000).message


def test_a_stall_or_two_do_not_decide():
    """The median round does."""
    latencies = (0.5, *[0.012] * 19)

    assert asked(latencies).meets(p95=0.02, at=2000)


def test_a_round_that_ended_early_never_counts_as_met():
    """Its percentile is a lower bound."""
    slow = asked((0.012,), early=tuple(range(12)))
    answer = slow.meets(p95=0.02, at=2000)

    assert answer.verdict.outcome is Outcome.INCONCLUSIVE
    assert math.isinf(answer.verdict.high)
    assert missing(answer.message, "12 values of slow ended early, because they must miss the objective") == []
    assert missing(answer.message, " ms or more)") == []
    assert "inf" not in answer.message


def test_the_objective_is_that_of_the_measurement_by_default():
    """Another percentile may be asked too."""
    assert asked((0.012,)).meets(at=2000).text == "slow.meets(p95=0.02, at=2000)"
    assert asked((0.012,)).meets(p99=0.1, at=500).text == "slow.meets(p99=0.1, at=500)"


def test_a_busy_load_generator_refutes_nothing():
    """It may be what exceeds the objective; an objective that it meets is met."""
    busy = {"limited": lambda variant: "a thread of the load generator was on a CPU for 98 % of the time"}

    missed = asked((0.03,), **busy).meets(p95=0.02, at=2000)
    assert missed.verdict.outcome is Outcome.INCONCLUSIVE
    assert "the load generator is the bottleneck" in missed.verdict.reason
    assert asked((0.012,), **busy).meets(p95=0.02, at=2000)


WRONG = {
    "no rate": (lambda one: one.meets(p95=0.02), ("'at'", "usage: galera.meets(p95=0.02, at=2000)")),
    "a rate of 0": (lambda one: one.meets(p95=0.02, at=0), ("at=0", "above 0")),
    "a negative rate": (lambda one: one.meets(p95=0.02, at=-5), ("at=-5", "above 0")),
    "a rate in words": (lambda one: one.meets(p95=0.02, at="70 %"), ("at='70 %'", "operations a second")),
    "an unknown percentile": (lambda one: one.meets(p90=0.02, at=5), ("unknown percentile 'p90'", "p95")),
    "an objective in milliseconds": (lambda one: one.meets(p95=20, at=5), ("p95=20 must be seconds",)),
    "too few rounds": (lambda one: one.meets(at=5, times=5), ("times=5 decides nothing", "times=6", "times=11")),
    "part of a round": (lambda one: one.meets(at=5, times=7.5), ("times=7.5",)),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_call_is_refused(name):
    """Before anything starts."""
    call, facts = WRONG[name]
    one = asked((0.012,))
    with pytest.raises(ConfigError) as caught:
        call(one)
    assert missing(str(caught.value), *facts) == []
    assert one.measurement.source.rounds == []


def test_golden_messages():
    """They are those of the golden file."""
    slow, fast = series(600.0, 1000.0)
    answers = {
        "met": asked((0.012, 0.013)).meets(p95=0.02, at=2000),
        "missed": asked((0.03,)).meets(p95=0.02, at=2000),
        "open": asked(NEAR).meets(p95=0.02, at=2000),
        "two capacities": fast.beats(slow, by=0.3),
    }
    golden.compare("capacity", {name: answer.message for name, answer in answers.items()})
