"""Drawing rounds: the order of blocks, warm-up, void blocks, what a claim draws and what it finds drawn."""

from __future__ import annotations

import contextlib

import pytest

from pytest_dbcluster.errors import ConfigError, SeriesVoid
from pytest_dbcluster.measuring.measurement import Measurement, Rules, ordered
from tests.support.fakes import FakeLaboratory, noisy
from tests.support.measurements import measured, measurement, two


def test_nothing_is_drawn_before_a_claim():
    """A series is lazy: neither making it nor showing it runs a round."""
    laboratory = two()
    slow, fast = measurement(laboratory).series

    assert (repr(slow), repr(fast)) == ("<slow: 0 rounds>", "<fast: 0 rounds>")
    assert laboratory.rounds == []


def test_a_block_is_alone_where_the_laboratory_can_be():
    """All rounds of a block inside one turn, warm-ups too; checks outside of it."""
    laboratory, turns = two(), []

    @contextlib.contextmanager
    def alone():
        before = len(laboratory.rounds)
        yield
        turns.append(laboratory.rounds[before:])

    laboratory.alone = alone
    slow, fast = measurement(laboratory).series
    assert fast.beats(slow)

    assert [sorted(number for number, _, _ in turn) for turn in turns] == [[0, 1]] * (len(laboratory.rounds) // 2)


def test_every_block_holds_each_variant_once():
    """Variants alternate; a block is never cut short."""
    laboratory = two()
    slow, fast = measurement(laboratory).series
    assert fast.beats(slow)

    rounds = measured(laboratory)
    assert [block for _, block, _ in rounds] == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    assert [position for _, _, position in rounds] == [0, 1] * 6
    assert all({rounds[n][0], rounds[n + 1][0]} == {0, 1} for n in range(0, 12, 2))


def test_the_first_six_pairs_are_balanced():
    """Three begin with either variant, so a drift favours none."""
    laboratory = two()
    slow, fast = measurement(laboratory).series
    assert fast.beats(slow)

    assert sorted(variant for variant, _, position in measured(laboratory) if position == 0) == [0, 0, 0, 1, 1, 1]


def test_the_same_seed_draws_the_same_order():
    """A run can be repeated round by round."""
    orders = []
    for _ in range(2):
        laboratory = two()
        slow, fast = measurement(laboratory, seed=11).series
        assert fast.beats(slow)
        orders.append(laboratory.rounds)

    assert orders[0] == orders[1]


def test_warm_up_ends_when_rounds_stop_getting_faster():
    """Blocks before that count for nothing; here the first ones are slower and slower, three times."""
    times = iter([4.0, 4.0, 2.0, 2.0, 1.0, 1.0, 1.0, 1.0])
    laboratory = two(seconds=lambda variant: next(times, (1.0, 0.5)[variant]))
    slow, fast = measurement(laboratory).series
    assert fast.beats(slow)

    assert len(laboratory.rounds) - len(measured(laboratory)) == 8
    assert max(slow.values("throughput")) == 100


def test_a_void_block_says_nothing_of_the_warm_up():
    """Its rounds may have done nothing, so that the next one would look faster than it is."""
    times = iter([1.0, 1.0, 30.0, 30.0, 1.0, 1.0])
    laboratory = two(voids=("", "", "not drained"), seconds=lambda variant: next(times, (1.0, 0.5)[variant]))
    slow, fast = measurement(laboratory).series
    assert fast.beats(slow)

    assert len(laboratory.rounds) - len(measured(laboratory)) == 6


def test_warm_up_ends_after_five_blocks_at_the_latest():
    """A load that keeps getting faster is measured all the same."""
    times = iter([2.0**-n for n in range(10) for _ in range(2)])
    laboratory = two(seconds=lambda variant: next(times, (1e-4, 5e-5)[variant]))
    slow, fast = measurement(laboratory).series
    assert fast.beats(slow)

    assert [block for _, block, position in laboratory.rounds if block < 0 and not position] == [-5, -4, -3, -2, -1]


def test_a_second_claim_uses_the_rounds_of_the_first():
    """What is decided by the rounds that are there draws nothing."""
    laboratory = two()
    slow, fast = measurement(laboratory).series
    assert fast.beats(slow)
    drawn = len(laboratory.rounds)
    assert fast.beats(slow, by=0.2)

    assert len(laboratory.rounds) == drawn


def test_a_void_block_is_drawn_again_in_the_same_order():
    """A round that does not count takes its whole block with it."""
    voids = ("",) * 5 + ("the primary changed",)  # two warm-up blocks, then the second round of the first block
    laboratory = two(voids=voids, seconds=lambda variant: (1.0, 0.5)[variant])
    slow, fast = measurement(laboratory).series
    assert fast.beats(slow)

    rounds = measured(laboratory)
    assert len(rounds) == 14
    assert rounds[:2] == rounds[2:4]
    assert (len(slow.rounds), len(fast.rounds)) == (6, 6)


def test_void_blocks_are_in_the_message():
    """How many blocks were drawn again, whose round it was, and why; they are no rounds of a series."""
    laboratory = two(voids=("",) * 5 + ("the primary changed",), seconds=lambda variant: (1.0, 0.5)[variant])
    asked = measurement(laboratory)
    slow, fast = asked.series
    answer = fast.beats(slow)
    variant = laboratory.names[laboratory.rounds[5][0]]

    assert answer.message.endswith(f"\n  1 of 7 blocks void, drawn again: {variant}: the primary changed")
    assert [len(block) for block in asked.void_blocks(6)] == [2]
    assert not any(one.void for one in (*slow.rounds, *fast.rounds))


def test_a_claim_counts_the_void_blocks_among_its_own():
    """One that was void after the pairs of a claim is no matter of it."""
    laboratory = two(voids=("",) * 4 + ("",) * 12 + ("the primary changed",), seconds=lambda variant: (1, 0.5)[variant])
    asked = measurement(laboratory)
    slow, fast = asked.series
    fast.beats(slow)
    asked.draw([0, 1])

    assert (len(asked.void), asked.void_blocks(6), len(asked.void_blocks(7))) == (1, [], 1)


def test_too_many_void_blocks_are_an_error():
    """More than a tenth, and more than one: the error counts them and says why the last one was void."""
    laboratory = two(voids=("",) * 4 + ("semi-sync fell back",) * 100, seconds=lambda variant: 1.0)
    slow, fast = measurement(laboratory).series

    with pytest.raises(SeriesVoid) as caught:
        fast.beats(slow)
    assert str(caught.value) == "2 of 2 blocks of fake load were void: slow: semi-sync fell back"


def test_the_clusters_are_checked_before_a_claim_answers():
    """Once for the rounds that were drawn; a check that fails makes the series void and nothing is answered."""
    laboratory = two()
    slow, fast = measurement(laboratory).series
    fast.beats(slow)
    fast.beats(slow, by=0.1)
    assert laboratory.checks == 1

    laboratory = two(wrong=SeriesVoid("tables differ"))
    asked = measurement(laboratory)
    slow, fast = asked.series
    with pytest.raises(SeriesVoid, match=r"^tables differ$"):
        fast.beats(slow)
    assert asked.answers == []


def test_progress_is_told_of_each_round():
    """It knows the pair, whether it counts, and after the first look the ratio so far."""
    told = []
    laboratory = two(seconds=noisy(1.0, 0.95, sd=0.05))
    asked = Measurement(laboratory, Rules(seed=7), progress=told.append)
    slow, fast = asked.series
    fast.same_as(slow, within=0.5)

    assert len(told) == len(laboratory.rounds)
    assert [one.warm_up for one in told] == [block < 0 for _, block, _ in laboratory.rounds]
    assert {one.ratio for one in told if one.pair <= 6} == {None}


def drained(variant):
    """A commit that returns early leaves work behind: with it the second variant is slower."""
    return {"drain_seconds": (0.0, 2.0)[variant]}


def test_a_claim_can_count_the_drain():
    """Faster until the load returned, slower until every node had it: two claims on the same rounds."""
    slow, fast = measurement(two(counters=drained)).series

    assert fast.beats(slow)
    assert slow.beats(fast, metric="drained_throughput")
    assert slow.beats(fast, metric="drained_throughput").text == 'slow.beats(fast, metric="drained_throughput")'
    assert fast.against(slow, metric="drained_throughput").text == "fast against slow (drained_throughput)"


def test_an_order_can_count_the_drain():
    """The same two, the other way round."""
    slow, fast = measurement(two(counters=drained)).series

    assert ordered(slow, fast)
    assert ordered(fast, slow, metric="drained_throughput")
    with pytest.raises(ConfigError, match=r"^unknown metric 'p96'"):
        ordered(slow, fast, metric="p96")


def test_the_message_says_what_the_drain_costs():
    """A claim about throughput has the medians and the ratio with the drain included."""
    slow, fast = measurement(two(counters=drained, seconds=lambda variant: (1.0, 0.5)[variant])).series

    assert (
        "\n  drain until all nodes are equal (medians): fast 2.000 s, slow 0.000 s; with it included fast / slow "
        in (fast.beats(slow).message)
    )


def test_a_message_has_the_notes_of_all_variants_of_an_order():
    """Not only those of its ends."""
    laboratory = FakeLaboratory(("a", "b", "c"), noisy(1.0, 0.5, 0.25))

    assert "\n  a note on c and b and a" in ordered(*measurement(laboratory).series).message


def test_an_order_of_three_holds_step_by_step():
    """Each block holds all three; the answer names the slowest first, as the test wrote it."""
    laboratory = FakeLaboratory(("a", "b", "c"), noisy(1.0, 0.5, 0.25))
    answer = ordered(*measurement(laboratory).series, step=0.2)

    assert answer
    assert answer.text == "ordered(a, b, c, step=0.2)"
