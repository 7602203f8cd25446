"""The bar of an interval."""

from __future__ import annotations

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_dbcluster.reporting.tables.interval_bar import ASCII, LINES, WIDTH, bar

ANY = st.floats(0, exclude_min=True, allow_nan=False)
NEAR = st.floats(0.9, 1.1)
BOUNDS = st.sampled_from([[], [1.0], [0.95], [0.95, 1 / 0.95], [0.999, 1 / 0.999], [2.5]])


def test_the_bar_is_to_scale():
    """A logarithmic axis from a half to 4; the interval of a claim that holds does not touch its bound."""
    assert bar(1.84, 1.18, 3.08, [1.0]) == "1/2       ┼────●─────   4"
    assert bar(1.0, 0.5, 2.0) == "1/2 ──────●──────       4"
    assert bar(0.9, 0.8, 1.2, [1.0]) == "1/2     ─●┼──           4"


def test_plain_letters_are_ascii():
    """For a terminal without UTF-8."""
    shown = bar(1.84, 1.18, 3.08, [1.0], letters=ASCII)

    assert shown == "1/2       +----*-----   4"
    assert shown.isascii()


def test_a_ratio_without_an_interval_is_hollow():
    """Before the first look nothing is bounded; without pairs nothing is drawn."""
    assert bar(2.0, 0.0, math.inf, [1.0]) == "1/2       ┼     ○       4"
    assert bar(math.nan, math.nan, math.nan, [1.0]) == ""


@pytest.mark.parametrize(
    ("ratio", "low", "high", "shown"),
    [
        (7.4, 6.0, 9.0, "1/16         ┼    ─●   16"),
        (0.03, 0.02, 0.05, "1/1024    ●  ┼       1024"),
        (3.0, 0.1, 90.0, "1/2 <─────┼─────────●─> 4"),
        (1e-6, 1e-7, 1e-5, "1/1024 <     ┼       1024"),
    ],
)
def test_the_axis_grows_with_the_ratio(ratio, low, high, shown):
    """Its labels say so, and what lies beyond it is marked; the width stays."""
    assert bar(ratio, low, high, [1.0]) == shown
    assert len(shown) == WIDTH


@given(st.lists(ANY | NEAR, min_size=3, max_size=3).map(sorted), BOUNDS)
@example([0.97, 0.99, 1.02], [0.95, 1 / 0.95])
@example([0.84, 0.92, math.nextafter(1, 0)], [1.0])
def test_a_bound_lies_on_the_line_exactly_if_the_interval_contains_it(ends, bounds):
    """Whatever is near: the drawing agrees with the verdict."""
    low, ratio, high = ends
    text = bar(ratio, low, high, bounds)
    cells = text.partition(" ")[2].rpartition(" ")[0]
    inside = [number for number, letter in enumerate(cells) if letter in (LINES.line, LINES.dot, "<", ">")]
    crosses = [number for number, letter in enumerate(cells) if letter == LINES.bound]
    hidden = sum(bound in ends for bound in bounds)  # a bound under the dot, or an end that is a bound
    on = [cross for cross in crosses if inside and inside[0] < cross < inside[-1]]

    assert len(text) == WIDTH
    assert len(crosses) + hidden >= len(bounds)
    if not math.isinf(high) and not hidden:
        assert len(on) == sum(low < bound < high for bound in bounds)
