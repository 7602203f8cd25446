"""What cannot be claimed of series, and what the refusal says."""

from __future__ import annotations

import copy
import operator

import pytest

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.measuring.drawing.rules import Rules
from pytest_dbcluster.measuring.measurement import Measurement
from pytest_dbcluster.measuring.series import ordered, series_of
from pytest_dbcluster.rounds import counters
from tests.support.fakes import FakeSource, noisy


def measurement(source, **rules):
    """A measurement with a fixed seed."""
    return Measurement(source, Rules(**{"seed": 7, **rules}))


def two(**fields):
    """A source whose second variant takes half the time."""
    return FakeSource(("slow", "fast"), **{"seconds": noisy(1.0, 0.5), **fields})


def measured(source):
    """The rounds that count, warm-up left out."""
    return [one for one in source.rounds if one[1] >= 0]


def test_series_of_two_measurements_are_not_compared():
    """Their rounds did not alternate, so the machine's mood would be part of the ratio."""
    one, other = series_of(measurement(two()))[0], series_of(measurement(two()))[1]

    with pytest.raises(ConfigError) as caught:
        other.beats(one)
    assert str(caught.value) == (
        "fast and <slow: 0 rounds> were not measured together; give both to one measure(..., on=[...])"
    )


@pytest.mark.parametrize("other", [None, 1.2, "slow"])
def test_a_series_is_compared_with_a_series(other):
    """A number or a name is no baseline."""
    fast = series_of(measurement(two()))[1]

    with pytest.raises(ConfigError, match=r"^fast and .* were not measured together; give both to one measure"):
        fast.beats(other)


def test_a_series_is_not_compared_with_itself():
    """Such a claim could never be refuted."""
    fast = series_of(measurement(two()))[1]

    with pytest.raises(ConfigError) as caught:
        fast.beats(fast)
    assert str(caught.value) == "fast is compared with itself; a claim needs two variants"


def test_an_unknown_counter_lists_the_known_ones():
    """Before a round is drawn; the nearest name is suggested."""
    source = two()
    slow, fast = series_of(measurement(source))

    with pytest.raises(ConfigError) as caught:
        fast.lower("fsyncs_per_comit", than=slow)
    known = ", ".join(counters.NAMES)
    assert str(caught.value) == (f"unknown counter 'fsyncs_per_comit'; known: {known}; did you mean fsyncs_per_commit?")
    assert source.rounds == []


def test_an_unknown_metric_lists_the_known_ones():
    """Before a round is drawn."""
    source = two()
    slow, fast = series_of(measurement(source))

    with pytest.raises(ConfigError, match=r"^unknown metric 'p96'; known: throughput"):
        fast.beats(slow, metric="p96")
    assert source.rounds == []


def test_a_counter_is_compared_by_its_own_values():
    """Lower is asked of the counter, not of the clock."""
    source = two(seconds=noisy(1.0, 1.0), counters=lambda variant: {"fsyncs": (100.0, 10.0)[variant]})
    slow, fast = series_of(measurement(source))

    assert fast.lower("fsyncs", than=slow, by=0.5)


def test_a_counter_that_the_servers_lack_is_named():
    """The error says which status of the server is missing."""
    slow, fast = series_of(measurement(two()))

    with pytest.raises(ConfigError) as caught:
        fast.lower("bf_aborts", than=slow)
    assert str(caught.value) == "counter 'bf_aborts': these servers do not have wsrep_local_bf_aborts"


@pytest.mark.parametrize("count", [0, 1])
def test_an_order_needs_two_series(count):
    """One series has no order."""
    series = series_of(measurement(two()))[:count]

    with pytest.raises(ConfigError) as caught:
        ordered(*series)
    assert str(caught.value) == "ordered(...) takes two or more series of one measure(..., on=[...]), the slowest first"


def test_an_order_needs_one_measurement():
    """As every other claim does."""
    with pytest.raises(ConfigError, match=r"^ordered\(\.\.\.\) takes two or more series of one measure"):
        ordered(series_of(measurement(two()))[0], series_of(measurement(two()))[1])


def test_an_order_takes_each_series_once():
    """A variant is not faster than itself; no round is drawn to find that out."""
    source = two()
    slow, fast = series_of(measurement(source))

    for given in ((slow, slow), (slow, fast, slow)):
        with pytest.raises(ConfigError) as caught:
            ordered(*given)
        assert str(caught.value) == "slow is compared with itself; a claim needs two variants"
    assert source.rounds == []


def test_an_order_takes_five_series_at_most():
    """More steps have no critical values; that is said before the first round."""
    source = FakeSource(tuple("abcdef"), noisy(*[1.0] * 6))

    with pytest.raises(ConfigError) as caught:
        ordered(*series_of(measurement(source)))
    assert str(caught.value) == "ordered takes 2 to 5 variants, not 6"
    assert source.rounds == []


@pytest.mark.parametrize(
    ("claim", "words"),
    [
        (
            lambda slow, fast: fast.no_slower_than(slow, within=0.05),
            "candidate.no_slower_than(...): there is no argument within=; write by= in place of "
            "within=; usage: candidate.no_slower_than(baseline, by=0.05)",
        ),
        (
            lambda slow, fast: fast.same_as(slow, by=0.05),
            "candidate.same_as(...): there is no argument by=; write within= in place of by=; usage: "
            "candidate.same_as(baseline, within=0.05)",
        ),
        (
            lambda slow, fast: fast.scales(slow, by=2),
            "four.scales(...): there is no argument by=; write at_least= in place of by=; ",
        ),
        (lambda slow, fast: fast.no_slower_than(slow), "candidate.no_slower_than(...): missing a required argument: "),
        (lambda slow, fast: fast.beats(slow, 0.1, "p95"), "fast.beats(...): too many positional arguments; "),
        (
            lambda slow, fast: ordered(slow, fast, by=0.1),
            "ordered(...): there is no argument by=; write step= in place of by=; ",
        ),
        (lambda slow, fast: ordered(slow, "fast"), "ordered(...) takes two or more series of one measure"),
        (lambda slow, fast: ordered(None, None), "ordered(...) takes two or more series of one measure"),
        (lambda slow, fast: fast.lower(slow, than=slow), "unknown counter <slow: 0 rounds>; known: "),
        (lambda slow, fast: fast.beats(slow, metric=95), "unknown metric 95; known: throughput"),
        (lambda slow, fast: fast.beats(slow, by=10), "beats(by=10): by is out of range, 0 <= by < 2; it is a fraction"),
    ],
)
def test_a_wrong_claim_is_one_sentence(claim, words):
    """It says how the claim is written, and no round is drawn."""
    source = two()
    with pytest.raises(ConfigError) as caught:
        claim(*series_of(measurement(source)))

    assert str(caught.value).startswith(words)
    assert source.rounds == []


@pytest.mark.parametrize("compare", [operator.lt, operator.le, operator.gt, operator.ge])
def test_a_series_is_no_number(compare):
    """The error writes the claim that was meant."""
    slow, fast = series_of(measurement(two()))
    with pytest.raises(ConfigError) as caught:
        assert compare(fast, slow)

    assert str(caught.value).startswith(
        "fast is compared with <, <=, > or >=, but a series is not a number: make a claim"
    )
    assert "assert fast.beats(slow)" in str(caught.value)


def test_an_unknown_claim_lists_the_known_ones():
    """And nothing that Python itself asks for is taken for a claim."""
    slow, fast = series_of(measurement(two()))
    with pytest.raises(AttributeError) as caught:
        fast.faster(slow)

    assert str(caught.value).startswith(
        "a series has no 'faster'; known: beats, no_slower_than, same_as, scales, lower"
    )
    assert not hasattr(fast, "__array__")
    assert copy.copy(fast) == fast


def test_there_are_no_values_before_the_first_claim():
    """An empty list would be taken for a result."""
    slow, fast = series_of(measurement(two()))
    with pytest.raises(ConfigError) as caught:
        fast.values("throughput")
    assert str(caught.value).startswith("fast.values('throughput'): no round is drawn yet; a claim draws them, so make")

    assert fast.beats(slow)
    assert len(fast.values("throughput")) == len(fast.rounds) > 0


def test_a_claim_chosen_by_earlier_rounds_says_its_factor():
    """The best of three, claimed after its rounds, is wrong up to three times as often; the first claim is not."""
    a, b, c = series_of(measurement(FakeSource(("a", "b", "c"), noisy(1.0, 0.8, 0.5))))
    first, second = c.beats(a), b.beats(a)

    assert "times as often" not in first.message
    assert "rounds of 3 variants were drawn before this claim" in second.message
    assert "wrong up to 3 times as often" in second.message
    slow, fast = series_of(measurement(two()))
    assert fast.beats(slow)
    assert "times as often" not in fast.beats(slow, by=0.1).message
