"""Drawing rounds: opening blocks and later blocks, warm-up, void rounds, what a claim draws and what it finds drawn."""

from __future__ import annotations

import contextlib
import math

import pytest

from pytest_dbcluster.errors import ConfigError, SeriesVoid
from pytest_dbcluster.measuring.measurement import Measurement, Rules
from pytest_dbcluster.measuring.series import ordered, series_of
from tests.support.fakes import FakeSource, noisy
from tests.support.measurements import measured, measurement, two


def steady(variant):
    """Seconds without noise."""
    return (1.0, 0.5)[variant]


def test_nothing_is_drawn_before_a_claim():
    """A series is lazy: neither making it nor showing it runs a round."""
    source = two()
    slow, fast = series_of(measurement(source))

    assert (repr(slow), repr(fast)) == ("<slow: 0 rounds>", "<fast: 0 rounds>")
    assert source.rounds == []


def test_rounds_are_alone_where_the_source_can_be():
    """As many in a turn as there are variants, warm-ups too, so that others get the machine inside an opening block."""
    source, turns = two(), []

    @contextlib.contextmanager
    def alone():
        before = len(source.rounds)
        yield
        turns.append(source.rounds[before:])

    source.alone = alone
    slow, fast = series_of(measurement(source))
    assert fast.beats(slow)

    assert [len(turn) for turn in turns] == [2] * (len(source.rounds) // 2)


def test_the_first_blocks_are_opening_blocks():
    """Four rounds of each variant in a drawn arrangement; a block is never cut short."""
    source = two()
    slow, fast = series_of(measurement(source))
    assert fast.beats(slow)

    rounds = measured(source)
    assert [block for _, block, _ in rounds] == [0] * 8 + [1] * 8 + [2] * 8
    assert [position for _, _, position in rounds] == [*range(8)] * 3
    for opening in (rounds[:8], rounds[8:16], rounds[16:]):
        assert sorted(number for number, _, _ in opening) == [0] * 4 + [1] * 4


def test_blocks_after_three_opening_blocks_hold_each_variant_once():
    """In an order drawn for each."""
    source = two(seconds=noisy(1.0, 1.0, sd=0.3))
    asked = measurement(source)
    for _ in range(20):
        asked.draw([0, 1])

    rounds = measured(source)[24:]
    assert [(block, position) for _, block, position in rounds] == [(3 + n // 2, n % 2) for n in range(34)]
    assert all({rounds[n][0], rounds[n + 1][0]} == {0, 1} for n in range(0, 34, 2))
    assert {rounds[n][0] for n in range(0, 34, 2)} == {0, 1}
    assert asked.pairs == 12 + 17


def test_the_rounds_of_an_opening_block_are_matched_at_random():
    """The n-th rounds of both variants are a pair; who ran first is in the pairs, in the order of the match."""
    source = FakeSource(("slow", "fast"), lambda variant: float(len(source.rounds)))
    asked = measurement(source)
    asked.draw([0, 1])
    first, second = ([done.position for done in series] for series in asked.rounds)

    assert sorted(first + second) == [*range(8)]
    assert first != sorted(first) or second != sorted(second)
    pairs = asked.pairs_of(1, 0, "throughput")
    assert list(pairs.baseline_first) == [a < b for a, b in zip(first, second, strict=True)]
    assert pairs.ratios == pytest.approx(
        [math.log(a.seconds / b.seconds) for a, b in zip(asked.rounds[0], asked.rounds[1], strict=True)]
    )
    assert (pairs.openings, pairs.instances) == (3, 1)


def test_several_instances_have_as_many_opening_blocks_each():
    """Two instances have four opening blocks in turn, and no look before both have one, nor after three."""
    source = two(seconds=noisy(1.0, 0.97, sd=0.002))
    source.alternating = lambda: 2
    asked = measurement(source)
    slow, fast = series_of(asked)
    assert fast.same_as(slow, within=0.1).verdict.pairs == 8
    while asked.pairs < 18:
        asked.draw([0, 1])

    assert [block for _, block, position in measured(source) if not position] == [0, 1, 2, 3, 4, 5]
    assert [len(block.order) for block in asked.blocks] == [8, 8, 8, 8, 2, 2]
    assert asked.pairs_of(1, 0, "throughput").instances == 2


@pytest.mark.parametrize(("cap", "drawn"), [(1, 1), (3, 3), (4, 4), (7, 4), (8, 8), (13, 12), (16, 14)])
def test_no_more_pairs_are_drawn_than_the_cap(cap, drawn):
    """An opening block that would exceed it is not begun; below one opening block the pairs are drawn one by one."""
    asked = measurement(two(seconds=noisy(1.0, 1.0, sd=0.3)), cap=cap)
    slow, fast = series_of(asked)

    assert fast.beats(slow, by=0.01).verdict.reason == f"cap of {cap} pairs"
    assert asked.pairs == drawn


def test_measurements_of_a_run_have_orders_of_their_own():
    """Test, workload, variants and number of a measurement are mixed into the seed of the run."""
    orders = []
    for test, names, number in (("a", "xy", 0), ("b", "xy", 0), ("a", "xz", 0), ("a", "xy", 1), ("a", "xy", 0)):
        source = FakeSource(tuple(names), noisy(1.0, 1.0))
        asked = Measurement(source, Rules(seed=7), test=test, number=number)
        for _ in range(5):
            asked.draw([0, 1])
        orders.append(tuple(variant for variant, *_ in source.rounds))

    assert len(set(orders)) == 4
    assert orders[0] == orders[4]


def test_a_chosen_seed_says_what_it_does_not_promise():
    """The last line of the message; the seed of a run that drew it has no such line."""
    slow, fast = series_of(measurement(two(), fixed_seed=True))
    assert fast.beats(slow).message.splitlines()[-1].strip() == (
        "the order of the rounds was fixed by --db-seed 7, to repeat a run: the promised error is that of a random "
        "order, and says nothing about a seed that was chosen after its result was seen"
    )
    slow, fast = series_of(measurement(two()))
    assert "--db-seed" not in fast.beats(slow).message


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


def test_a_void_round_of_an_opening_block_is_repeated_in_its_place():
    """The other rounds of the opening block stay, and so does its arrangement."""
    plain, source = two(seconds=steady), two(voids=("",) * 5 + ("the primary changed",), seconds=steady)
    measurement(plain).draw([0, 1])
    asked = measurement(source)
    asked.draw([0, 1])

    rounds = measured(source)
    assert rounds[1] == rounds[2]
    assert [*rounds[:1], *rounds[2:]] == measured(plain)
    assert [[(done.position, done.void) for done in void] for void in asked.void] == [[(1, "the primary changed")]]
    assert [len(series) for series in asked.rounds] == [4, 4]


def test_a_later_void_block_is_drawn_again_in_the_same_order():
    """A round that does not count takes its whole block with it."""
    source = two(voids=("",) * (4 + 24 + 1) + ("the primary changed",), seconds=steady)
    asked = measurement(source)
    for _ in range(4):
        asked.draw([0, 1])

    rounds = measured(source)[24:]
    assert len(rounds) == 4
    assert rounds[:2] == rounds[2:]
    assert [len(block) for block in asked.void] == [2]
    assert asked.pairs == 13


def test_void_rounds_are_in_the_message():
    """How many of each variant were drawn again, and why; they are no rounds of a series."""
    source = two(voids=("",) * 5 + ("the primary changed",), seconds=steady)
    asked = measurement(source)
    slow, fast = series_of(asked)
    answer = fast.beats(slow)
    variant = source.names[source.rounds[5][0]]

    line = f"\n  void rounds, drawn again: {variant} 1: {variant}: the primary changed"
    assert answer.message.endswith(line)
    assert [len(block) for block in asked.void_blocks(8)] == [1]
    assert not any(one.void for one in (*slow.rounds, *fast.rounds))


def test_void_rounds_of_one_variant_put_a_claim_off():
    """However clear it is: a single one until 14 pairs, more until they are 3 % of the rounds of a variant at most."""
    source = two(voids=("",) * 5 + ("the primary changed",), seconds=noisy(1.0, 0.5))
    slow, fast = series_of(measurement(source))
    assert fast.beats(slow).verdict.pairs == 17

    source = two(voids=("",) * 5 + ("the primary changed",), seconds=noisy(1.0, 0.5))
    slow, fast = series_of(measurement(source, cap=12))
    reason = fast.beats(slow).verdict.reason
    assert reason.startswith("cap of 12 pairs; of 13 rounds, ")
    assert "it is not known whether that depends on the variant" in reason


def test_a_claim_counts_the_void_rounds_among_its_own():
    """One that was void after the pairs of a claim is no matter of it."""
    source = two(voids=("",) * (4 + 24) + ("the primary changed",), seconds=steady)
    asked = measurement(source)
    slow, fast = series_of(asked)
    assert fast.beats(slow)
    asked.draw([0, 1])

    assert (len(asked.void), asked.void_blocks(12), len(asked.void_blocks(13))) == (1, [], 1)
    assert fast.beats(slow).verdict.void == (0, 0)


def test_too_many_void_rounds_are_an_error():
    """More than a tenth of the pairs, and more than one: the error counts them and says why the last one was void."""
    source = two(voids=("",) * 4 + ("semi-sync fell back",) * 100, seconds=lambda variant: 1.0)
    slow, fast = series_of(measurement(source))

    with pytest.raises(SeriesVoid) as caught:
        fast.beats(slow)
    variant = source.names[source.rounds[4][0]]
    assert str(caught.value) == (
        f"2 times a round of fake load was void in the first 4 pairs: {variant}: semi-sync fell back"
    )


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
    assert {one.ratio for one in told if one.pair <= 4} == {None}
    counted = [one.pair for one in told if not one.warm_up]
    assert counted == [n // 2 + 1 for n in range(len(counted))]
    assert [one.last for one in told] == [n % 2 == 1 for n in range(len(told))]


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
