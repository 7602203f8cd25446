"""What a message says of its rounds: the drain after them, and those that did not count."""

from __future__ import annotations

import dataclasses
import math

import pytest

from pytest_dbcluster.claims.carry_over import CarryOver
from pytest_dbcluster.measuring import remarks
from pytest_dbcluster.measuring.round_trips import RoundTripsTaken
from pytest_dbcluster.rounds.round import Round, RunResult
from tests.support import golden
from tests.support.facts import missing


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
    [line] = remarks.drain_line(claimed, "throughput")
    assert "async 0.600 s, galera3 0.000 s" in line
    assert line.endswith("with it included async / galera3 1.00x")


def test_a_claim_with_the_drain_says_what_it_is_without():
    """The other ratio is always the one that stands beside."""
    [line] = remarks.drain_line({"async": ASYNC, "galera3": GALERA}, "drained_throughput")

    assert line.endswith("; with it left out async / galera3 2.50x")


def test_a_claim_about_a_counter_has_no_other_ratio():
    """The medians alone."""
    assert remarks.drain_line({"async": ASYNC, "galera3": GALERA}, "fsyncs")[0].endswith(
        "async 0.600 s, galera3 0.000 s"
    )
    assert remarks.drained_ratio({"async": ASYNC, "galera3": GALERA}, "fsyncs") is None
    assert remarks.drained_ratio({"async": ASYNC, "galera3": GALERA}, "p95") is None


def test_what_drains_after_all_repetitions_has_no_ratio():
    """One repetition is measured, but all repetitions and the rows that populated their tables drain."""
    rest = [dataclasses.replace(one, outcome=dataclasses.replace(one.outcome, span=5.6)) for one in ASYNC]
    claimed = {"async": rest, "galera3": GALERA}

    assert math.isnan(rest[0].drained_throughput)
    assert remarks.drained_ratio(claimed) is None
    [line] = remarks.drain_line(claimed, "throughput")
    assert "includes all repetitions" in line
    assert "1.00x" not in line


def test_an_order_has_a_ratio_for_each_step():
    """Between neighbours, fastest first."""
    slow = rounds("slow", [3.0] * 3, [0.0] * 3)
    [line] = remarks.drain_line({"async": ASYNC, "galera3": GALERA, "slow": slow}, "throughput")

    assert line.endswith("with it included async / galera3 1.00x, galera3 / slow 3.00x")


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


def test_void_rounds_are_counted_by_variant_with_their_reasons():
    """How many of each variant, and why; equal reasons once. Rounds drawn again with a void one do not count."""
    fell, moved = "semi-sync fell back", "the primary changed"
    blocks = [[*rounds("a", [1], [0]), *rounds("b", [1], [0], voids=[why])] for why in (fell, moved, fell)]
    blocks.append(rounds("a", [1], [0], voids=[fell]))

    (line,) = remarks.void_line(blocks)
    reasons = f": b: {fell}; b: {moved}; a: {fell}"
    assert missing(line, "void rounds, drawn again", "a 1, b 3", reasons) == []
    assert remarks.void_line([]) == []


def test_many_reasons_are_cut():
    """Three of them, and how many more."""
    blocks = [rounds("a", [1], [0], voids=[f"reason {number}"]) for number in range(5)]

    assert remarks.void_line(blocks)[0].endswith("a: reason 0; a: reason 1; a: reason 2; and 2 more")


def test_a_void_round_takes_its_block_along():
    """The other rounds of the block say whose fault it was."""
    block = [*rounds("a", [1], [0]), *rounds("b", [1], [0], voids=["the primary changed"])]

    assert [one.void for one in remarks.with_reasons(block)] == ["with b: the primary changed", "the primary changed"]


def test_a_carry_over_is_shown_beside_the_ratio_without_it():
    """Time of rounds after one variant against those after the other, with its interval."""
    found = CarryOver(0.004, -0.008, 0.016, 1.051)

    [line] = remarks.carry_over_lines([("flush_2", "default")], [found])
    assert "after flush_2 take 1.004x (0.99 .. 1.02) the time of rounds after default" in line
    assert line.endswith("without carry-over 1.05x")
    [unknown] = remarks.carry_over_lines([("flush_2", "default")], [None])
    assert unknown.startswith("carry-over unknown")


def test_a_carry_over_that_chance_does_not_explain_is_warned_of():
    """The variant that slows others is named, whichever of both it is, and what helps."""
    found = CarryOver(0.042, 0.021, 0.06, 1.03)
    [line] = remarks.carry_over_lines([("flush_2", "default")], [found])
    other = CarryOver(1 / 1.042 - 1, 1 / 1.06 - 1, 1 / 1.021 - 1, 1.03)
    [reverse] = remarks.carry_over_lines([("default", "flush_2")], [other])

    assert line.startswith("warning: carry-over: rounds after flush_2 take 1.04x (1.02 .. 1.06)")
    assert "the error of this claim has no bound. flush_2 leaves work behind" in line
    assert reverse == line
    assert "settle" in line
    assert "drain" in line


def test_an_order_has_a_carry_over_for_each_step():
    """One line for each two neighbours."""
    lines = remarks.carry_over_lines([("c", "b"), ("b", "a")], [None, CarryOver(0.0, -0.1, 0.1, 1.0)])

    assert [line.split(":")[0] for line in lines] == ["carry-over unknown", "carry-over"]


def test_golden_remarks():
    """All remarks below a verdict are those of the golden file."""
    both, small = {"async": ASYNC, "galera3": GALERA}, CarryOver(0.004, -0.008, 0.016, 1.051)
    warned, names = CarryOver(0.042, 0.021, 0.06, 1.03), [("flush_2", "default")]
    void = [rounds("a", [1], [0], voids=[f"reason {number}"]) for number in range(5)]
    shown = {
        "drain, left out of the claim": remarks.drain_line(both, "throughput"),
        "drain, included in the claim": remarks.drain_line(both, "drained_throughput"),
        "drain, of a counter": remarks.drain_line(both, "fsyncs"),
        "carry-over within chance": remarks.carry_over_lines(names, [small]),
        "carry-over beyond chance": remarks.carry_over_lines(names, [warned]),
        "carry-over unknown": remarks.carry_over_lines(names, [None]),
        "void rounds": remarks.void_line(void),
        "a warm-up that still got faster": remarks.warm_up_line([0.0, -0.1, -0.2, -0.3, -0.4], 5, 0.05),
        "rounds that repeat their work": remarks.repeat_line(20),
        "pairs at a rate that was lowered": remarks.dropped_line(4),
        "a chosen seed": remarks.fixed_seed_line(7),
        "a claim chosen among several": remarks.chosen_line(3),
        "a second try": remarks.try_line(2, 0.0005),
        "a twentieth try": remarks.try_line(20, 0.0001),
        "round trips": [str(RoundTripsTaken(1.934, 1.8, 2.05, 8, (0.0, 0.005, 0.01)))],
    }
    golden.compare("remarks", {title: "\n".join(lines) for title, lines in shown.items()})
