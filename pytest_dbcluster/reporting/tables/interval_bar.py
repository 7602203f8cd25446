"""The bar of an interval: a ratio, its interval and the bounds of its claim in one line of text.

``1/2       ┼────●─────   4``: the line is the interval, the dot the ratio, the crosses are the bounds, on a logarithmic
axis between the two labels. A bound lies on the line exactly if the interval contains it: if the cells of the text are
too coarse for that, the marks move apart.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Sequence

WIDTH = 25  # of every bar, labels included
SCALES = ((-1, 2), (-4, 4), (-10, 10))  # the ends of the axis as powers of 2; the first that has all marks is taken
BELOW, ABOVE = "<", ">"  # the interval goes on beyond the axis


@dataclasses.dataclass(frozen=True)
class Letters:
    """The characters of a bar."""

    line: str
    """A part of the interval."""

    dot: str
    """The ratio."""

    hollow: str
    """A ratio without an interval."""

    bound: str
    """The bound of the claim."""


LINES = Letters("─", "●", "○", "┼")
ASCII = Letters("-", "*", "o", "+")


def bar(ratio: float, low: float, high: float, bounds: Sequence[float] = (), *, letters: Letters = LINES) -> str:
    """The bar of a ratio and its interval, WIDTH characters wide; empty without a ratio.

    low, high: the ends of the interval; 0 and infinity if there is none yet. bounds: the bounds of the claim as ratios;
    those beyond the widest axis are left out.
    """
    if math.isnan(ratio):
        return ""
    first, last = _scale([ratio, *bounds])
    left, right = _label(first), _label(last)
    cells = WIDTH - len(left) - len(right) - 2
    none = math.isnan(low) or math.isnan(high) or (low == 0 and math.isinf(high))
    marks = [("ratio", ratio), *([] if none else [("low", low), ("high", high)])]
    drawn = {bound for bound in bounds if first < math.log2(bound) < last}
    at = _places([value for _, value in marks], sorted(drawn), (first, last), cells)
    row = [" "] * cells
    if not none:
        row[at[low] : at[high] + 1] = letters.line * (at[high] + 1 - at[low])
    for bound in drawn:
        row[at[bound]] = letters.bound
    row[at[ratio]] = letters.hollow if none else letters.dot
    for cell, beyond, inside, letter in (
        (0, low < 2.0**first and not none, ratio >= 2.0**first, BELOW),
        (cells - 1, high > 2.0**last and not none, ratio <= 2.0**last, ABOVE),
    ):
        if beyond and not (inside and at[ratio] == cell):
            row[cell] = letter
    return f"{left} {''.join(row)} {right}"


def _scale(values: Sequence[float]) -> tuple[int, int]:
    """The first scale that has these values, or the last one."""
    for first, last in SCALES:
        if all(2.0**first < value < 2.0**last for value in values):
            return first, last
    return SCALES[-1]


def _label(power: int) -> str:
    return str(2**power) if power >= 0 else f"1/{2**-power}"


def _places(values: Sequence[float], bounds: Sequence[float], scale: tuple[int, int], cells: int) -> dict[float, int]:
    """The cell of each value and bound, 0-based, in their order; a bound shares its cell only with equal values."""
    first, last = scale
    order = sorted({*values, *bounds})
    places: dict[float, int] = {}
    for value in order:
        power = math.log2(value) if value > 0 else -math.inf
        share = min(1.0, max(0.0, (power - first) / (last - first)))
        places[value] = round(share * (cells - 1))
    apart = [one in bounds or other in bounds for one, other in itertools.pairwise(order)]
    for number, step in enumerate(apart):
        places[order[number + 1]] = max(places[order[number + 1]], places[order[number]] + step)
    places[order[-1]] = min(places[order[-1]], cells - 1)
    for number in range(len(order) - 2, -1, -1):
        places[order[number]] = min(places[order[number]], places[order[number + 1]] - apart[number])
    return places
