"""Scales of charts: the range and the ticks of an axis of ratios. Pure functions.

Ratios up to 64 are shown in powers of two, as 1/4, 1/2, 1, 2, 4. Larger ones, which counters have, in powers of ten.
Ticks never overlap: there are at most MOST of them.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable

MOST = 9  # ticks of an axis
OCTAVES = math.log(64)  # a wider range is shown in decades
NARROW = math.log(1.9)  # a narrower range has ticks in per cent
WIDE = math.log(8)  # up to here equal distances are readable too
APART = 0.1  # of the axis: two ticks that are nearer may overlap
CROWDED = 0.075  # of the axis: the same for labels of one height
NAMED = ("0", "∞")
FEWEST = 3  # powers of two that make an axis readable
TINY = 1e-100  # a smaller ratio is 0: a pair with a single 0 has a log ratio of -700
STEPS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)
ROUND = (0.1, 0.15, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 7.0, 10.0)


@dataclasses.dataclass(frozen=True)
class Scale:
    """The axis of ratios."""

    low: float
    """The lower end."""

    high: float
    """The upper end."""

    ticks: tuple[tuple[float, str], ...]
    """The ticks as (ratio, label), rising."""


def zero(values: Iterable[float]) -> float:
    """The place of a ratio of 0, which the axis does not have: a tenth of the smallest other ratio, or of 1."""
    return min(value for value in (1.0, *values) if TINY < value < math.inf) / 10


def infinity(values: Iterable[float]) -> float:
    """The place of an infinite ratio: ten times the largest other one, or 10."""
    return max(value for value in (1.0, *values) if TINY < value < math.inf) * 10


def ratios(values: Iterable[float], *, least: float = 1.0, ends: tuple[float, float] = (0.0, math.inf)) -> Scale:
    """The scale that shows these ratios and 1.

    Values that are not finite, or not above 0, are left out. ``least``: the scale reaches at least so many times below
    and above 1. ``ends``: the places of a ratio of 0 and of an infinite one (``zero``, ``infinity``), which their
    ticks name.
    """
    shown = [value for value in values if 0 < value < math.inf]
    logs = [math.log(value) for value in shown]
    low, high = min([*logs, -math.log(least)]), max([*logs, math.log(least)])
    room = max(0.06 * (high - low), 0.01)
    low, high = low - room, high + room
    marks = [mark for mark in zip(ends, NAMED, strict=True) if mark[0] in shown]
    near = APART * (high - low)
    plain = [(at, said) for at, said in _ticks(low, high) if at == 1 or _log_distance(at, marks) > near]
    return Scale(math.exp(low), math.exp(high), tuple(sorted([*plain, *marks])))


def _log_distance(value: float, marks: Iterable[tuple[float, str]]) -> float:
    """The distance of a value from the nearest of these marks, in natural logs; infinite without marks."""
    return min((abs(math.log(value / at)) for at, _ in marks), default=math.inf)


def _ticks(low: float, high: float) -> list[tuple[float, str]]:
    if high - low < NARROW:
        return _equal_ticks(math.exp(low), math.exp(high))
    base = 2 if high - low <= 2 * OCTAVES and max(abs(low), abs(high)) <= OCTAVES else 10
    first, last = math.ceil(low / math.log(base) - 1e-9), math.floor(high / math.log(base) + 1e-9)
    every = max(1, math.ceil((last - first + 1) / MOST))
    powers = [power for power in range(first, last + 1) if power % every == 0]
    if len(powers) < FEWEST and high - low < WIDE:
        return _equal_ticks(math.exp(low), math.exp(high))
    return [(float(base) ** power, _power(base, power)) for power in powers]


def _equal_ticks(low: float, high: float) -> list[tuple[float, str]]:
    """Ticks at equal distances, for a narrow range."""
    near = CROWDED * math.log(high / low)
    for step in STEPS:
        digits = 3 if step < 0.01 else 2 if step < 0.1 else 1
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        if last - first < MOST and (last == first or math.log(last / max(last - 1, 0.5)) > near):
            return [(number * step, f"{number * step:.{digits}f}") for number in range(first, last + 1) if number]
    return [(number, f"{number:g}") for number in ROUND if low <= number <= high]


def _power(base: int, power: int) -> str:
    """The label of a power: ``1/4``, ``1``, ``8``, ``1/1000``, ``10^6``."""
    if base == 10 and abs(power) > 4:
        return f"10^{power}"
    return f"1/{base**-power}" if power < 0 else f"{base**power}"
