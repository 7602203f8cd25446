"""What a message says of its rounds: the drain after them, and those that did not count."""

from __future__ import annotations

import dataclasses
import math

import pytest

from pytest_dbcluster.measuring import remarks
from pytest_dbcluster.rounds.round import Round, RunResult


def rounds(variant, seconds, drains, *, commits=100, voids=()):
    """Rounds of 100 operations in these seconds, which took so long to drain."""
    return [
        Round(
            variant,
            number,
            0,
            RunResult(took, 100, commits),
            0.0,
            float(number),
            counters={"drain_seconds": drained},
            void=voids[number] if voids else "",
        )
        for number, (took, drained) in enumerate(zip(seconds, drains, strict=True))
    ]


ASYNC = rounds("async", [0.4] * 3, [0.6] * 3)
GALERA = rounds("galera3", [1.0] * 3, [0.0] * 3)


def test_the_drain_is_part_of_a_throughput():
    """Operations by the seconds until every node had them, beside those until the load had returned."""
    assert (ASYNC[1].throughput, ASYNC[1].drained_throughput) == (250.0, 100.0)
    assert (GALERA[0].throughput, GALERA[0].drained_throughput) == (100.0, 100.0)


def test_a_backlog_is_not_free():
    """Two and a half times as fast, and with the drain included no faster at all: both ratios are in the message."""
    claimed = {"async": ASYNC, "galera3": GALERA}

    assert remarks.speed_ratio(ASYNC, GALERA, "throughput") == pytest.approx(2.5)
    assert remarks.drained_ratio(claimed) == 1.0
    assert remarks.drain_line(claimed, "throughput") == [
        "drain until all nodes are equal (medians): async 0.600 s, galera3 0.000 s; "
        "with it included async / galera3 +0.0 %"
    ]


def test_a_claim_with_the_drain_says_what_it_is_without():
    """The other ratio is always the one that stands beside."""
    [line] = remarks.drain_line({"async": ASYNC, "galera3": GALERA}, "drained_throughput")

    assert line.endswith("; with it left out async / galera3 x2.5")


def test_a_claim_about_a_counter_has_no_other_ratio():
    """The medians alone."""
    assert remarks.drain_line({"async": ASYNC, "galera3": GALERA}, "fsyncs") == [
        "drain until all nodes are equal (medians): async 0.600 s, galera3 0.000 s"
    ]
    assert remarks.drained_ratio({"async": ASYNC, "galera3": GALERA}, "fsyncs") is None
    assert remarks.drained_ratio({"async": ASYNC, "galera3": GALERA}, "p95") is None


def test_what_drains_after_all_repetitions_has_no_ratio():
    """One repetition is measured, but all repetitions and the rows that populated their tables drain."""
    rest = [dataclasses.replace(one, outcome=dataclasses.replace(one.outcome, span=5.6)) for one in ASYNC]
    claimed = {"async": rest, "galera3": GALERA}

    assert math.isnan(rest[0].drained_throughput)
    assert remarks.drained_ratio(claimed) is None
    assert remarks.drain_line(claimed, "throughput") == [
        "drain until all nodes are equal (medians): async 0.600 s, galera3 0.000 s; "
        "includes all repetitions and the rows that populated their tables, so no ratio includes it"
    ]


def test_an_order_has_a_ratio_for_each_step():
    """Between neighbours, fastest first."""
    slow = rounds("slow", [3.0] * 3, [0.0] * 3)
    [line] = remarks.drain_line({"async": ASYNC, "galera3": GALERA, "slow": slow}, "throughput")

    assert line.endswith("with it included async / galera3 +0.0 %, galera3 / slow x3")


def test_what_does_not_drain_has_no_line():
    """One server alone, and loads that commit nothing."""
    reads = rounds("reads", [1.0], [0.003], commits=None)
    alone = rounds("alone", [1.0], [0.0])

    assert remarks.drain_line({"reads": reads}, "throughput") == []
    assert remarks.drain_line({"alone": alone}, "throughput") == []
    assert remarks.drained_ratio({"alone": alone}) is None


def test_the_median_drain_is_shown():
    """One long drain among short ones moves it little."""
    assert remarks.drains({"a": rounds("a", [1.0] * 3, [0.1, 0.2, 9.0])}) == {"a": 0.2}


def test_void_blocks_are_counted_with_their_reasons():
    """How many of all that were drawn, whose round it was, and why; equal reasons once."""
    fell, moved = "semi-sync fell back", "the primary changed"
    blocks = [[*rounds("a", [1], [0]), *rounds("b", [1], [0], voids=[why])] for why in (fell, moved, fell)]

    assert remarks.void_line(blocks, 12) == [
        "3 of 15 blocks void, drawn again: b: semi-sync fell back; b: the primary changed"
    ]
    assert remarks.void_line([], 12) == []


def test_many_reasons_are_cut():
    """Three of them, and how many more."""
    blocks = [rounds("a", [1], [0], voids=[f"reason {number}"]) for number in range(5)]

    assert remarks.void_line(blocks, 50)[0].endswith("a: reason 0; a: reason 1; a: reason 2; and 2 more")


def test_a_void_round_takes_its_block_along():
    """The other rounds of the block say whose fault it was."""
    block = [*rounds("a", [1], [0]), *rounds("b", [1], [0], voids=["the primary changed"])]

    assert [one.void for one in remarks.as_void(block)] == ["with b: the primary changed", "the primary changed"]
