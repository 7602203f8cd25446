"""Sentences and numbers of the page."""

import dataclasses
import math

import pytest

from pytest_dbcluster.claims import kinds
from pytest_dbcluster.reporting.page import words
from tests.support.records import beside, failed, record, undecided


def test_each_outcome_has_its_word():
    """A comparison that claims nothing neither holds nor fails."""
    found = [words.state(made) for made in (record(), failed(), undecided(), beside())]

    assert found == ["holds", "refuted", "inconclusive", "compared"]
    assert set(found) < set(words.SYMBOLS)


def test_the_interval_of_a_refuted_claim_does_not_reach_its_bound():
    """0.84 .. 1.00 would contradict the verdict."""
    made = failed()
    made = dataclasses.replace(made, verdict=dataclasses.replace(made.verdict, low=0.84, high=0.9973))

    assert words.interval(made) == "0.84 .. 0.997"


def test_few_pairs_have_no_interval():
    """An interval from zero to infinity says nothing."""
    assert words.interval(record(pairs=3)) == "no interval yet"


@pytest.mark.parametrize(
    ("low", "high", "shown"),
    [(0.0, 0.5, "0 .. 0.50"), (2.0, math.inf, "2.00 .. inf"), (0.0, math.inf, "no interval yet")],
)
def test_an_interval_has_one_end_at_least(low, high, shown):
    """That of a counter may reach from 0, or to infinity."""
    made = record(kinds.lower(), metric="fsyncs_per_commit")
    found = dataclasses.replace(made.verdict, low=low, high=high)

    assert words.interval(dataclasses.replace(made, verdict=found)) == shown


def test_nothing_measured_is_a_dash():
    """Not a number is no figure for readers."""
    made = record()
    none = dataclasses.replace(made, verdict=dataclasses.replace(made.verdict, ratio=math.nan, low=math.nan))

    assert (words.ratio(none), words.interval(none), words.figure(math.nan)) == ("-", "no interval yet", "-")


def test_an_order_is_said_slowest_first():
    """As the test writes it."""
    made = record(kinds.ordered())
    made = dataclasses.replace(made, rounds={"fast": (), "middle": (), "slow": ()})

    assert words.sentence(made) == "each of slow, middle, fast is faster than the one before it"


@pytest.mark.parametrize(
    ("value", "shown"), [(1234.5, "1234"), (12.345, "12.3"), (0.004567, "0.00457"), (2.5e6, "2.5 M"), (0, "0")]
)
def test_figures_have_three_or_four_digits(value, shown):
    """More would be noise."""
    assert words.figure(value) == shown
