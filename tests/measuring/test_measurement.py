"""Drawing rounds: the order of blocks, warm-up, void blocks, what a claim draws and what it finds drawn."""

from __future__ import annotations

import contextlib

import pytest

from pytest_dbcluster.errors import ConfigError, SeriesVoid
from pytest_dbcluster.measuring.measurement import Measurement, Rules
from pytest_dbcluster.measuring.series import ordered, series_of
from tests.support.fakes import FakeSource, noisy
from tests.support.measurements import measured, measurement, two


def test_nothing_is_drawn_before_a_claim():
    """A series is lazy: neither making it nor showing it runs a round."""
    source = two()
    slow, fast = series_of(measurement(source))

    assert (repr(slow), repr(fast)) == ("<slow: 0 rounds>", "<fast: 0 rounds>")
    assert source.rounds == []


def test_a_block_is_alone_where_the_source_can_be():
    """All rounds of a block inside one turn, warm-ups too; checks outside of it."""
    source, turns = two(), []

    @contextlib.contextmanager
    def alone():
        before = len(source.rounds)
        yield
        turns.append(source.rounds[before:])

    source.alone = alone
    slow, fast = series_of(measurement(source))
    assert fast.beats(slow)

    assert [sorted(number for number, _, _ in turn) for turn in turns] == [[0, 1]] * (len(source.rounds) // 2)


def test_every_block_holds_each_variant_once():
    """Variants alternate; a block is never cut short."""
    source = two()
    slow, fast = series_of(measurement(source))
    assert fast.beats(slow)

    rounds = measured(source)
    assert [block for _, block, _ in rounds] == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    assert [position for _, _, position in rounds] == [0, 1] * 6
    assert all({rounds[n][0], rounds[n + 1][0]} == {0, 1} for n in range(0, 12, 2))


def test_the_first_six_pairs_are_balanced():
    """Three begin with either variant, so a drift favours none."""
    source = two()
    slow, fast = series_of(measurement(source))
    assert fast.beats(slow)

    assert sorted(variant for variant, _, position in measured(source) if position == 0) == [0, 0, 0, 1, 1, 1]


def test_the_same_seed_draws_the_same_order():
    """A run can be repeated round by round."""
    orders = []
    for _ in range(2):
        source = two()
        slow, fast = series_of(measurement(source, seed=11))
        assert fast.beats(slow)
        orders.append(source.rounds)

    assert orders[0] == orders[1]


def test_warm_up_ends_when_rounds_stop_getting_faster():
    """Blocks before that count for nothing; here the first ones are slower and slower, three times."""
    times = iter([4.0, 4.0, 2.0, 2.0, 1.0, 1.0, 1.0, 1.0])
    source = two(seconds=lambda variant: next(times, (1.0, 0.5)[variant]))
    slow, fast = series_of(measurement(source))
    assert fast.beats(slow)

    assert len(source.rounds) - len(measured(source)) == 8
    assert max(slow.values("throughput")) == 100


def test_a_void_block_says_nothing_of_the_warm_up():
    """Its rounds may have done nothing, so that the next one would look faster than it is."""
    times = iter([1.0, 1.0, 30.0, 30.0, 1.0, 1.0])
    source = two(voids=("", "", "not drained"), seconds=lambda variant: next(times, (1.0, 0.5)[variant]))
    slow, fast = series_of(measurement(source))
    assert fast.beats(slow)

    assert len(source.rounds) - len(measured(source)) == 6


def test_warm_up_ends_after_five_blocks_at_the_latest():
    """A load that keeps getting faster is measured all the same."""
    times = iter([2.0**-n for n in range(10) for _ in range(2)])
    source = two(seconds=lambda variant: next(times, (1e-4, 5e-5)[variant]))
    slow, fast = series_of(measurement(source))
    assert fast.beats(slow)

    assert [block for _, block, position in source.rounds if block < 0 and not position] == [-5, -4, -3, -2, -1]


def test_a_second_claim_uses_the_rounds_of_the_first():
    """What is decided by the rounds that are there draws nothing."""
    source = two()
    slow, fast = series_of(measurement(source))
    assert fast.beats(slow)
    drawn = len(source.rounds)
    assert fast.beats(slow, by=0.2)

    assert len(source.rounds) == drawn


def test_a_void_block_is_drawn_again_in_the_same_order():
    """A round that does not count takes its whole block with it."""
    voids = ("",) * 5 + ("the primary changed",)  # two warm-up blocks, then the second round of the first block
    source = two(voids=voids, seconds=lambda variant: (1.0, 0.5)[variant])
    slow, fast = series_of(measurement(source))
    assert fast.beats(slow)

    rounds = measured(source)
    assert len(rounds) == 14
    assert rounds[:2] == rounds[2:4]
    assert (len(slow.rounds), len(fast.rounds)) == (6, 6)


def test_void_blocks_are_in_the_message():
    """How many blocks were drawn again, whose round it was, and why; they are no rounds of a series."""
    source = two(voids=("",) * 5 + ("the primary changed",), seconds=lambda variant: (1.0, 0.5)[variant])
    asked = measurement(source)
    slow, fast = series_of(asked)
    answer = fast.beats(slow)
    variant = source.names[source.rounds[5][0]]

    assert answer.message.endswith(f"\n  1 of 7 blocks void, drawn again: {variant}: the primary changed")
    assert [len(block) for block in asked.void_blocks(6)] == [2]
    assert not any(one.void for one in (*slow.rounds, *fast.rounds))


def test_a_claim_counts_the_void_blocks_among_its_own():
    """One that was void after the pairs of a claim is no matter of it."""
    source = two(voids=("",) * 4 + ("",) * 12 + ("the primary changed",), seconds=lambda variant: (1, 0.5)[variant])
    asked = measurement(source)
    slow, fast = series_of(asked)
    fast.beats(slow)
    asked.draw([0, 1])

    assert (len(asked.void), asked.void_blocks(6), len(asked.void_blocks(7))) == (1, [], 1)


def test_too_many_void_blocks_are_an_error():
    """More than a tenth, and more than one: the error counts them and says why the last one was void."""
    source = two(voids=("",) * 4 + ("semi-sync fell back",) * 100, seconds=lambda variant: 1.0)
    slow, fast = series_of(measurement(source))

    with pytest.raises(SeriesVoid) as caught:
        fast.beats(slow)
    assert str(caught.value) == "2 of 2 blocks of fake load were void: slow: semi-sync fell back"


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
    assert asked.answers == []


def test_progress_is_told_of_each_round():
    """It knows the pair, whether it counts, and after the first look the ratio so far."""
    told = []
    source = two(seconds=noisy(1.0, 0.95, sd=0.05))
    asked = Measurement(source, Rules(seed=7), progress=told.append)
    slow, fast = series_of(asked)
    fast.same_as(slow, within=0.5)

    assert len(told) == len(source.rounds)
    assert [one.warm_up for one in told] == [block < 0 for _, block, _ in source.rounds]
    assert {one.ratio for one in told if one.pair <= 6} == {None}


def drained(variant):
    """A commit that returns early leaves work behind: with it the second variant is slower."""
    return {"drain_seconds": (0.0, 2.0)[variant]}


def test_a_claim_can_count_the_drain():
    """Faster until the load returned, slower until every node had it: two claims on the same rounds."""
    slow, fast = series_of(measurement(two(counters=drained)))

    assert fast.beats(slow)
    assert slow.beats(fast, metric="drained_throughput")
    assert slow.beats(fast, metric="drained_throughput").text == 'slow.beats(fast, metric="drained_throughput")'
    assert fast.against(slow, metric="drained_throughput").text == "fast against slow (drained_throughput)"


def test_an_order_can_count_the_drain():
    """The same two, the other way round."""
    slow, fast = series_of(measurement(two(counters=drained)))

    assert ordered(slow, fast)
    assert ordered(fast, slow, metric="drained_throughput")
    with pytest.raises(ConfigError, match=r"^unknown metric 'p96'"):
        ordered(slow, fast, metric="p96")


def test_the_message_says_what_the_drain_costs():
    """A claim about throughput has the medians and the ratio with the drain included."""
    slow, fast = series_of(measurement(two(counters=drained, seconds=lambda variant: (1.0, 0.5)[variant])))

    assert (
        "\n  drain until all nodes are equal (medians): fast 2.000 s, slow 0.000 s; with it included fast / slow "
        in (fast.beats(slow).message)
    )


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
