"""What a claim draws, what it finds drawn, and what its message says."""

from __future__ import annotations

import pytest

from pytest_dbcluster.claims.claim import Outcome
from pytest_dbcluster.errors import SeriesVoid
from pytest_dbcluster.measuring.series import ordered, series_of
from pytest_dbcluster.measuring.why.compared import ServerComparison
from tests.support.fakes import FakeSource, noisy
from tests.support.measurements import measurement, two


def test_the_clusters_are_checked_before_a_claim_answers():
    """Once for the rounds that were drawn; a check that fails makes the series void and nothing is answered."""
    source = two()
    slow, fast = series_of(measurement(source))
    fast.beats(slow)
    fast.beats(slow, by=0.1)
    assert source.checks == 1

    source = two(wrong=SeriesVoid("tables differ"))
    asked = measurement(source)
    slow, fast = series_of(asked)
    with pytest.raises(SeriesVoid, match=r"^tables differ$"):
        fast.beats(slow)
    assert asked.claims.answers == []


def test_a_message_has_the_notes_of_all_variants_of_an_order():
    """Not only those of its ends."""
    source = FakeSource(("a", "b", "c"), noisy(1.0, 0.5, 0.25))

    assert "\n  a note on c and b and a" in ordered(*series_of(measurement(source))).message


def test_an_order_of_three_holds_step_by_step():
    """Each block holds all three; the answer names the slowest first, as the test wrote it."""
    source = FakeSource(("a", "b", "c"), noisy(1.0, 0.5, 0.25))
    answer = ordered(*series_of(measurement(source)), step=0.2)

    assert answer
    assert answer.text == "ordered(a, b, c, step=0.2)"


def test_a_chosen_seed_says_what_it_does_not_promise():
    """The last line of the message; the seed of a run that drew it has no such line."""
    slow, fast = series_of(measurement(two(), fixed_seed=True))
    assert fast.beats(slow).message.splitlines()[-1].strip().startswith("--db-seed 7 fixed the order of the rounds")
    slow, fast = series_of(measurement(two()))
    assert "--db-seed" not in fast.beats(slow).message


def test_void_rounds_of_one_variant_put_a_claim_off():
    """However clear it is: a single one until 14 pairs, more until they are 3 % of the rounds of a variant at most."""
    source = two(voids=("",) * 5 + ("the primary changed",), seconds=noisy(1.0, 0.5))
    slow, fast = series_of(measurement(source))
    assert fast.beats(slow).verdict.pairs == 17

    source = two(voids=("",) * 5 + ("the primary changed",), seconds=noisy(1.0, 0.5))
    slow, fast = series_of(measurement(source, cap=12))
    reason = fast.beats(slow).verdict.reason
    assert reason.startswith("cap of 12 pairs; of 13 rounds, ")
    assert "this may depend on the variant" in reason


def test_nothing_is_drawn_before_a_claim():
    """A series is lazy: neither making it nor showing it runs a round."""
    source = two()
    slow, fast = series_of(measurement(source))

    assert (repr(slow), repr(fast)) == ("<slow: 0 rounds>", "<fast: 0 rounds>")
    assert source.rounds == []


def test_a_second_claim_uses_the_rounds_of_the_first():
    """What is decided by the rounds that are there draws nothing."""
    source = two()
    slow, fast = series_of(measurement(source))
    assert fast.beats(slow)
    drawn = len(source.rounds)
    assert fast.beats(slow, by=0.2)

    assert len(source.rounds) == drawn


def comparer(calls, does=lambda: None):
    """Compares no servers; what it is asked for is written down."""

    def compare(candidate, baseline, seconds):
        calls.append((candidate, baseline, seconds))
        does()
        return ServerComparison("slow", "fast", 3, largest=("COMMIT: 1 v 2 ms per operation (2.00x)",))

    return compare


def test_servers_are_compared_after_the_verdict():
    """The rounds of the verdict are the same as without it; its lines end the message."""
    calls, source, plain = [], two(), two()
    slow, fast = series_of(measurement(source, compare_servers=comparer(calls, lambda: source.checks == 1 or 1 / 0)))
    answer = fast.beats(slow)
    one, other = series_of(measurement(plain))

    assert answer.verdict == other.beats(one).verdict
    assert source.rounds == plain.rounds
    assert calls == [(1, 0, 0.0)]
    assert answer.servers.largest[0] in answer.message.splitlines()[-1]
    assert other.beats(one, by=0.1).servers is None


def test_an_interrupted_comparison_of_servers_leaves_the_verdict():
    """It is among the answers of its measurement, which reports those that no test reads."""

    def interrupt():
        raise KeyboardInterrupt

    slow, fast = series_of(asked := measurement(two(), compare_servers=comparer([], interrupt)))
    with pytest.raises(KeyboardInterrupt):
        fast.beats(slow)

    (answer,) = asked.claims.answers
    assert answer.verdict.outcome is Outcome.HOLDS
    assert answer.servers is None
