"""``same_effect``: four series of one measurement, from the first round to the message."""

from __future__ import annotations

import pytest

from pytest_dbcluster.errors import ClaimFailed, ConfigError
from pytest_dbcluster.measuring.series import same_effect, series_of
from tests.support.fakes import FakeSource, noisy
from tests.support.measurements import measurement

NAMES = ("default", "threads_4", "flush_2", "both")


def four(both):
    """Four series; threads_4 alone makes the default 2 times as fast."""
    return series_of(measurement(FakeSource(NAMES, noisy(1.0, 0.5, 0.6, both)), budget=10_000.0))


def test_effects_that_multiply_are_the_same():
    """The verdict is that of a guard, on the ratio of both ratios; the first look comes after 17 pairs."""
    default, threads_4, flush_2, both = four(0.3)
    answer = same_effect((default, threads_4), (flush_2, both), within=0.1)

    assert answer
    assert answer.verdict.ratio == pytest.approx(1, rel=0.1)
    assert answer.verdict.pairs >= 17
    assert answer.text == "same_effect((default, threads_4), (flush_2, both), within=0.1)"
    assert "1 in 20" in answer.message


@pytest.mark.parametrize("both", [0.1, 0.6])
def test_an_interaction_refutes_it_in_either_direction(both):
    """The second option adds to the first, or takes its effect away."""
    default, threads_4, flush_2, both_options = four(both)

    with pytest.raises(ClaimFailed, match="REFUTED same_effect"):
        bool(same_effect((default, threads_4), (flush_2, both_options), within=0.1))


def test_a_wrong_call_names_the_claim():
    """Each series once, and a margin."""
    default, threads_4, flush_2, _ = four(0.3)

    with pytest.raises(ConfigError, match=r"^same_effect\(\.\.\.\): threads_4 is in it twice"):
        same_effect((default, threads_4), (flush_2, threads_4), within=0.1)
    with pytest.raises(ConfigError, match=r"^same_effect\(within=1\.5\): within is out of range, 0 < within < 1"):
        same_effect((default, threads_4), (flush_2, default), within=1.5)
