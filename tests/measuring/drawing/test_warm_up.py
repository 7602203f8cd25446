"""The blocks before the first that counts."""

from __future__ import annotations

import pytest

from pytest_dbcluster.errors import SeriesVoid
from pytest_dbcluster.measuring.series import series_of
from pytest_dbcluster.rounds.round import RunResult
from tests.support.facts import missing
from tests.support.measurements import measured, measurement, two


def test_warm_up_ends_when_rounds_stop_getting_faster():
    """Blocks before that count for nothing; here the first ones are slower and slower, three times."""
    times = iter([4.0, 4.0, 2.0, 2.0, 1.0, 1.0, 1.0, 1.0])
    source = two(seconds=lambda variant: next(times, (1.0, 0.5)[variant]))
    slow, fast = series_of(measurement(source))
    assert fast.beats(slow)

    assert len(source.rounds) - len(measured(source)) == 8
    assert max(slow.values("throughput")) == 100


def test_used_clusters_have_one_block():
    """Other rounds have warmed them, so the first block is not compared with a second one."""
    source = two()
    source.is_used = True
    slow, fast = series_of(measurement(source))
    assert fast.beats(slow)

    assert len(source.rounds) - len(measured(source)) == 2


def test_each_instance_has_a_block():
    """A block uses one instance of each variant, so four instances take four blocks, whether they were used or not."""
    for used in (False, True):
        source = two()
        source.is_used, source.instances_in_turn = used, lambda: 4
        slow, fast = series_of(measurement(source))
        assert fast.beats(slow)

        assert {block % 4 for _, block, _ in source.rounds if block < 0} == {0, 1, 2, 3}


def test_used_clusters_have_more_blocks_where_the_length_takes_them():
    """Two rounds with two batches each say too little of the noise within a round; three rounds say enough."""
    for names, blocks in ((("slow", "fast"), 2), (("slow", "fast", "third"), 1)):
        source = two(
            outcome=lambda variant, seconds: RunResult(seconds, 100, 100, by_tenth=(11,) * 9), seconds=lambda _: 0.9
        )
        source.names, source.is_used, source.free_length = names, True, True
        slow, fast, *_ = series_of(measurement(source))
        fast.against(slow)

        assert len({block for _, block, _ in source.rounds if block < 0}) == blocks


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


def test_a_warm_up_without_a_round_that_counts_is_an_error():
    """Two blocks are enough to know: the claim ends with the reason and does not warm up for ever."""
    source = two(voids=("53 connections turned away",) * 100)
    slow, fast = series_of(measurement(source))

    with pytest.raises(SeriesVoid) as caught:
        fast.beats(slow)
    first = source.names[source.rounds[2][0]]
    blocks = ("2 of 2 blocks", "warm-up of fake load", "void")
    assert missing(caught.value, *blocks, f": {first}: 53 connections turned away") == []
    assert len(source.rounds) == 4
