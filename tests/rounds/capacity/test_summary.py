"""The lines of a message about capacities."""

from __future__ import annotations

from pytest_dbcluster.rounds.capacity import summary
from tests.support.capacities import curve
from tests.support.facts import missing


def test_a_message_has_the_latency_at_each_rate():
    """A star marks a rate that ended early in a round."""
    slow, fast = summary.lines({"slow": [curve(500.0)], "fast": [curve(1000.0), curve(1000.0), curve(900.0)]})

    assert (
        missing(slow, "slow: median p95 in ms by rate (objective 20 ms)", "400/s 8.192, 560/s 31.47", "784/s 120.9*")
        == []
    )
    assert missing(fast, "fast: ", "400/s 0.512, ", "1540/s 112.5*") == []


def test_a_message_says_what_counts_only_by_its_order():
    """Rounds whose capacity lies beyond all rates."""
    lines = summary.lines({"slow": [curve(300.0), curve(500.0)], "fast": [curve(2000.0)]})

    assert missing(lines[-2], "slow is below the lowest rate in 1 of 2 rounds", "counts only by its order") == []
    assert missing(lines[-1], "fast is above the highest rate in 1 of 1 rounds", "for neither variant") == []


def test_a_line_has_the_capacity_of_each_variant():
    """The median of its rounds."""
    [line] = summary.medians({"fast": [curve(900.0), curve(1000.0), curve(950.0)], "slow": [curve(500.0)]})

    assert line.startswith("capacity at a p95 of 20 ms: fast 95")
    assert line.endswith("/s, slow 500/s")


def test_rounds_without_capacities_add_no_line():
    """They are those of other measurements."""
    assert summary.medians({"slow": []}) == []
    assert summary.lines({"slow": [], "fast": []}) == []
    assert summary.lines({}) == []
