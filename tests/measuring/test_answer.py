"""Answers: their truth, their text, and that nobody can mistake one for another."""

from __future__ import annotations

import dataclasses
import operator
import statistics

import pytest

from pytest_dbcluster.errors import ClaimFailed, Inconclusive
from pytest_dbcluster.measuring.drawing.rules import Rules
from pytest_dbcluster.measuring.measurement import Measurement
from pytest_dbcluster.measuring.series import ordered, series_of
from tests.support.fakes import FakeSource, noisy


def series(*means, names=("default", "flush_2"), sd=0.05, source=None, **rules):
    """The two series of a measurement that takes about these seconds."""
    made = source or FakeSource(names, noisy(*means, sd=sd))
    return series_of(Measurement(made, Rules(**{"seed": 3, **rules})))


def test_a_claim_that_holds_is_true():
    """Reading it is what assert does."""
    default, flush_2 = series(1.0, 0.5)
    answer = flush_2.beats(default)

    assert answer.read is False
    assert bool(answer) is True
    assert answer.read is True


def test_a_claim_that_fails_raises_its_whole_message():
    """An AssertionError, whose text pytest does not cut as it cuts a False."""
    default, flush_2 = series(0.5, 1.0)
    answer = flush_2.beats(default)

    with pytest.raises(ClaimFailed) as caught:
        bool(answer)
    assert isinstance(caught.value, AssertionError)
    assert str(caught.value) == answer.message
    assert str(caught.value).startswith("REFUTED: flush_2 is not faster than default; measured ")


def test_a_claim_that_is_open_raises_undecided():
    """It is neither a pass nor a failure."""
    default, flush_2 = series(1.0, 1.0, sd=0.3, cap=12)

    with pytest.raises(Inconclusive, match=r"^INCONCLUSIVE: whether flush_2 is faster than default; measured "):
        bool(flush_2.beats(default))


def test_the_opposite_of_a_failed_claim_is_no_pass():
    """``assert not a.beats(b)`` raises as ``assert a.beats(b)`` does."""
    default, flush_2 = series(0.5, 1.0)

    with pytest.raises(ClaimFailed):
        _ = not flush_2.beats(default)


def test_an_answer_equals_its_truth():
    """``== True`` is the claim itself: it holds, fails or is inconclusive as without it, and counts as read."""
    default, flush_2 = series(1.0, 0.5)
    answer = flush_2.beats(default)
    assert answer == True  # noqa: E712
    assert answer != False  # noqa: E712
    assert answer.read

    default, flush_2 = series(0.5, 1.0)
    for compare in (operator.eq, operator.ne):
        for truth in (True, False):
            with pytest.raises(ClaimFailed):
                compare(flush_2.beats(default), truth)

    default, flush_2 = series(1.0, 1.0, sd=0.3, cap=12)
    with pytest.raises(Inconclusive):
        assert flush_2.beats(default) == True  # noqa: E712


def test_answers_are_otherwise_themselves():
    """Two answers are never equal, and comparing them reads neither."""
    default, flush_2 = series(1.0, 0.5)
    one, other = flush_2.beats(default), flush_2.beats(default)

    assert one == one
    assert one != other
    assert len({one, other}) == 2
    assert [one.read, other.read] == [False, False]


def test_a_comparison_beside_is_always_true_and_draws_few_pairs():
    """It claims nothing, so nobody has to read it."""
    default, flush_2 = series(1.0, 1.0, sd=0.3)
    answer = flush_2.against(default)

    assert answer
    assert answer.text == "flush_2 against default"
    assert answer.verdict.pairs <= 20


def test_a_comparison_beside_counts_all_pairs_that_are_there():
    """Otherwise it would show other figures than the claim that drew them."""
    default, flush_2 = series(1.0, 1.0, sd=0.3, cap=44, budget=1000.0)
    claimed = flush_2.beats(default)

    assert claimed.verdict.pairs > 20
    assert flush_2.against(default).verdict.pairs == claimed.verdict.pairs


def test_a_shown_answer_is_not_read():
    """A repr in a log is not an assert."""
    default, flush_2 = series(1.0, 0.5)
    answer = flush_2.beats(default)

    assert repr(answer) == "<flush_2.beats(default): holds>"
    assert answer.read is False


@pytest.mark.parametrize(
    ("claim", "text"),
    [
        (lambda a, b: a.beats(b), "flush_2.beats(default)"),
        (lambda a, b: a.beats(b, by=0.2), "flush_2.beats(default, by=0.2)"),
        (lambda a, b: a.no_slower_than(b, by=0.05), "flush_2.no_slower_than(default, by=0.05)"),
        (lambda a, b: a.same_as(b, within=0.1), "flush_2.same_as(default, within=0.1)"),
        (lambda a, b: a.scales(b, at_least=1.5), "flush_2.scales(default, at_least=1.5)"),
        (lambda a, b: a.lower("fsyncs", than=b), 'flush_2.lower("fsyncs", than=default)'),
    ],
)
def test_the_text_is_the_claim_as_a_test_writes_it(claim, text):
    """So that a message can be searched for."""
    source = FakeSource(("default", "flush_2"), noisy(1.0, 0.5), counters=lambda _: {"fsyncs": 5.0})
    default, flush_2 = series(source=source)

    assert claim(flush_2, default).text == text


def test_the_message_ends_with_the_sources_notes():
    """Durability and effective differences belong to each verdict."""
    default, flush_2 = series(1.0, 0.5)

    assert flush_2.beats(default).message.splitlines()[-1].strip() == "a note on flush_2 and default"


def test_a_blind_source_answers_nothing_about_speed():
    """However clear the rounds are: the verdict is inconclusive and says what this machine cannot show."""
    source = FakeSource(("default", "flush_2"), noisy(1.0, 0.2), why_blind="an fsync takes 3 us in /dev/shm")
    default, flush_2 = series(source=source)

    with pytest.raises(Inconclusive, match="an fsync takes 3 us in /dev/shm"):
        bool(flush_2.beats(default))


def test_a_blind_source_still_counts():
    """A counter is not measured with the clock."""
    source = FakeSource(
        ("default", "flush_2"),
        noisy(1.0, 0.2),
        counters=lambda variant: {"fsyncs": (50.0, 5.0)[variant]},
        why_blind="an fsync takes 3 us in /dev/shm",
    )
    default, flush_2 = series(source=source)

    assert flush_2.lower("fsyncs", than=default)


def test_it_makes_no_difference_which_claim_is_asked_first():
    """A claim that finds its pairs drawn answers at the look at which it would have answered alone."""
    default, flush_2 = series(1.0, 0.8, sd=0.1)
    alone = flush_2.beats(default)
    default, flush_2 = series(1.0, 0.8, sd=0.1)
    flush_2.same_as(default, within=0.17)
    second = flush_2.beats(default)

    assert second.verdict == alone.verdict
    assert flush_2.measurement.pairs > alone.verdict.pairs


def test_an_order_that_is_asked_again_answers_as_before():
    """Its blocks are drawn already; a claim of two of its variants has drawn more of them in between."""
    slow, middle, fast = series(1.0, 0.8, 0.6, names=("slow", "middle", "fast"), sd=0.1)
    first = ordered(slow, middle, fast)
    middle.same_as(slow, within=0.17)
    again = ordered(slow, middle, fast)

    assert again.verdict == first.verdict
    assert slow.measurement.pairs > first.verdict.pairs


def test_an_order_of_two_gives_each_name_its_own_median():
    """The message names the slowest first, and so stand the medians."""
    slow, fast = series(1.0, 0.5, names=("slow", "fast"))
    answer = ordered(slow, fast)
    pairs = answer.verdict.pairs
    medians = [statistics.median(one.values("throughput")[:pairs]) for one in (slow, fast)]

    assert f"medians slow {medians[0]:.4g}, fast {medians[1]:.4g}" in answer.message


class Lingering(FakeSource):
    """Rounds take a tenth longer after the second variant."""

    def round(self, variant, *, block, position):
        """A round, a tenth longer where the one before was of the second variant."""
        before = self.rounds[-1][0] if self.rounds else None
        done = super().round(variant, block=block, position=position)
        seconds = done.seconds * (1.1 if before == 1 else 1.0)
        return dataclasses.replace(done, outcome=dataclasses.replace(done.outcome, seconds=seconds))


def test_a_message_warns_of_a_variant_that_slows_what_follows_it():
    """The warning names it; a claim about a counter has no such line."""
    default, flush_2 = series(source=Lingering(("default", "flush_2"), noisy(1.0, 0.8, sd=0.02)))
    answer = flush_2.beats(default)

    assert answer.contrast_carry_over.warned
    assert answer.contrast_carry_over.slower == pytest.approx(0.1, abs=0.03)
    assert "\n  warning: carry-over: rounds after flush_2 take " in answer.message

    counted = FakeSource(("default", "flush_2"), noisy(1.0, 0.8), lambda number: {"fsyncs_per_commit": 3.0 - number})
    default, flush_2 = series(source=counted)
    assert "carry-over" in flush_2.beats(default).message
    assert "carry-over" not in flush_2.lower("fsyncs_per_commit", than=default).message
