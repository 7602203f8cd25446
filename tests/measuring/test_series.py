"""What cannot be claimed of series, and what the refusal says."""

from __future__ import annotations

import copy
import operator

import pytest

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.measuring.drawing.rules import Rules
from pytest_dbcluster.measuring.measurement import Measurement
from pytest_dbcluster.measuring.series import fades, ordered, series_of
from pytest_dbcluster.rounds import counters
from tests.support import golden
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
    assert str(caught.value).startswith("fast and <slow: 0 rounds> were not measured together")


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
    assert str(caught.value).startswith("fast is compared with itself")


def test_an_unknown_counter_lists_the_known_ones():
    """Before a round is drawn; the nearest name is suggested."""
    source = two()
    slow, fast = series_of(measurement(source))

    with pytest.raises(ConfigError) as caught:
        fast.lower("fsyncs_per_comit", than=slow)
    assert ", ".join(counters.NAMES) in str(caught.value)
    assert str(caught.value).endswith("did you mean fsyncs_per_commit?")
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
    assert "wsrep_local_bf_aborts" in str(caught.value)


@pytest.mark.parametrize("count", [0, 1])
def test_an_order_needs_two_series(count):
    """One series has no order."""
    series = series_of(measurement(two()))[:count]

    with pytest.raises(ConfigError) as caught:
        ordered(*series)
    assert str(caught.value).startswith("ordered(...) accepts two or more series")


def test_an_order_needs_one_measurement():
    """As every other claim does."""
    with pytest.raises(ConfigError, match=r"^ordered\(\.\.\.\) accepts two or more series of one measure"):
        ordered(series_of(measurement(two()))[0], series_of(measurement(two()))[1])


def test_an_order_takes_each_series_once():
    """A variant is not faster than itself; no round is drawn to find that out."""
    source = two()
    slow, fast = series_of(measurement(source))

    for given in ((slow, slow), (slow, fast, slow)):
        with pytest.raises(ConfigError) as caught:
            ordered(*given)
        assert str(caught.value).startswith("slow is compared with itself")
    assert source.rounds == []


def test_an_order_takes_five_series_at_most():
    """More steps have no critical values; that is said before the first round."""
    source = FakeSource(tuple("abcdef"), noisy(*[1.0] * 6))

    with pytest.raises(ConfigError) as caught:
        ordered(*series_of(measurement(source)))
    assert "2 to 5 variants, not 6" in str(caught.value)
    assert source.rounds == []


WRONG = {
    "another name of the margin": (lambda slow, fast: fast.no_slower_than(slow, within=0.05), "write by= in place of"),
    "another name of a guard's margin": (lambda slow, fast: fast.same_as(slow, by=0.05), "write within= in place of"),
    "another name of a size": (lambda slow, fast: fast.scales(slow, by=2), "write at_least= in place of by="),
    "no margin": (lambda slow, fast: fast.no_slower_than(slow), "missing a required argument"),
    "a metric by place": (lambda slow, fast: fast.beats(slow, 0.1, "p95"), "too many positional arguments"),
    "another name of a step": (lambda slow, fast: ordered(slow, fast, by=0.1), "write step= in place of by="),
    "a name in an order": (lambda slow, fast: ordered(slow, "fast"), "accepts two or more series of one measure"),
    "no series in an order": (lambda slow, fast: ordered(None, None), "accepts two or more series of one measure"),
    "a pair of one": (lambda slow, fast: fades((slow,), (slow, fast)), "accepts two pairs of series"),
    "a series twice": (lambda slow, fast: fades((slow, fast), (slow, fast)), "slow is in it twice"),
    "a series as a counter": (lambda slow, fast: fast.lower(slow, than=slow), "unknown counter <slow: 0 rounds>"),
    "a number as a metric": (lambda slow, fast: fast.beats(slow, metric=95), "unknown metric 95; known: throughput"),
    "a margin in per cent": (lambda slow, fast: fast.beats(slow, by=10), "0 <= by < 2"),
    "a comparison with itself": (lambda slow, fast: fast.beats(fast), "compared with itself"),
    "a number as a baseline": (lambda slow, fast: fast.beats(1.2), "not measured together"),
    "a comparison by a sign": (lambda slow, fast: fast > slow, "assert fast.beats(slow)"),
    "values before a claim": (lambda slow, fast: fast.values("throughput"), "no round is drawn yet"),
    "a counter that the servers lack": (lambda slow, fast: fast.lower("bf_aborts", than=slow), "wsrep_local_bf_aborts"),
}


@pytest.mark.parametrize("title", [title for title in WRONG if "servers lack" not in title])
def test_a_wrong_claim_is_refused_before_a_round(title):
    """The error says how the claim is written."""
    source, (claim, words) = two(), WRONG[title]
    with pytest.raises(ConfigError) as caught:
        claim(*series_of(measurement(source)))

    assert words in str(caught.value)
    assert source.rounds == []


def test_golden_errors_of_claims():
    """They are those of the golden file."""
    messages = {title: golden.message_of(claim, *series_of(measurement(two()))) for title, (claim, _) in WRONG.items()}
    golden.compare("claim_errors", messages, {", ".join(counters.NAMES): "COUNTERS"})


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
