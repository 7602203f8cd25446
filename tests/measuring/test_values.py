"""What the rounds of a measurement say, by metric."""

from __future__ import annotations

import pytest

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.measuring.series import ordered, series_of
from tests.support.fakes import noisy
from tests.support.measurements import measurement, two


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


def test_values_are_computed_anew_after_the_rounds_were_dropped():
    """Those of dropped rounds are gone."""
    source = two()
    asked = measurement(source)
    asked.drawing.draw([0, 1])
    before = asked.values.to_compare(0, "throughput")
    asked.drawing.blocks.begin_again()
    assert asked.values.to_compare(0, "throughput") == []
    asked.drawing.draw([0, 1])

    after = asked.values.to_compare(0, "throughput")
    assert len(before) == len(after) == 4
    assert set(before).isdisjoint(after)


def test_rounds_that_were_taken_over_are_shown_until_some_are_drawn():
    """They are in no comparison."""
    earlier, asked = measurement(two()), measurement(two(seconds=noisy(4.0, 4.0)))
    earlier.drawing.draw([0, 1])
    asked.values.taken_over[0] = earlier.rounds[0]

    assert asked.values.to_print(0, "throughput") == earlier.values.to_print(0, "throughput")
    assert (asked.values.to_compare(0, "throughput"), asked.values.rounds(1)) == ([], ())
    asked.drawing.draw([0, 1])
    assert asked.values.rounds(0) == asked.rounds[0]
    assert max(asked.values.to_print(0, "throughput")) < 50
