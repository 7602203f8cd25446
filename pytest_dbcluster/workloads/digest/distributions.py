"""How the values of a parameter are drawn again: a range, an exponent, frequencies, or a shape of text.

No text of the log is in a result. Whole numbers stay only up to ``SMALL``; ranges are rounded to two digits.
"""

from __future__ import annotations

import collections
import dataclasses
import datetime
import math
import re
from collections.abc import Mapping, Sequence

from pytest_dbcluster.workloads.digest.value_domains import FEW, SMALL

NUMBER = re.compile(r"-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
DATE = re.compile(r"'(\d{4})-(\d\d)-(\d\d)(?:[ T](\d\d):(\d\d):(\d\d)(?:\.\d+)?Z?)?'")
# Types that refuse most texts, and a drawing of texts that they take.
TYPED = {
    "DATE": "random_digits('2023-01-1#')",
    "DATETIME": "random_digits('2023-01-1# 1#:2#:3#')",
    "TIMESTAMP": "random_digits('2023-01-1# 1#:2#:3#')",
    "TIME": "random_digits('1#:2#:3#')",
    "JSON": "concat('{\"number\": ', random(1, 1000000), '}')",
    "UUID": "random_digits('########-####-4###-8###-############')",
    "INET4": "random_digits('10.0.1##.1##')",
    "INET6": "random_digits('2001:db8::1###')",
}
FIRST = "'2020-01-01'"  # generated rows have dates of four years from here
SPAN = 4 * 365 * 24 * 3600
NOW = 5  # seconds between a time and its statement that are none
MOST_AGE = 40 * 365 * 24 * 3600
LONGEST = 16000  # bytes of a text; prepared statements take 16384
COLLISIONS = 5  # pairs of equal values that an exponent needs at least
SKEWED = 1.5  # times as many equal pairs as with equal chances
SHARES = 1000  # parts of frequencies
LEAST_WEIGHT = 1


@dataclasses.dataclass(frozen=True)
class ValueDrawing:
    r"""How to draw a parameter."""

    expression: str
    r"""After ``\set name``; empty if ``inline`` has no variable."""

    inline: str = "{}"
    """The text in the statement, with ``{}`` for the variable."""

    note: str = ""
    """What a reader must know; empty without."""


def draw_weighted(counts: Mapping[str, float]) -> str:
    """``random_weighted`` over these values by their frequencies; the value itself if it is the only one."""
    total = sum(counts.values())
    if len(counts) == 1:
        return next(iter(counts))
    parts = [f"{value}, {max(LEAST_WEIGHT, round(SHARES * count / total))}" for value, count in counts.items()]
    return f"random_weighted({', '.join(parts)})"


def with_null(drawing: ValueDrawing, values: Sequence[str]) -> ValueDrawing:
    """The same drawing, with NULL as often as the values have it."""
    share = round(100 * sum(value == "NULL" for value in values) / len(values))
    if not share:
        return drawing
    inner = drawing.expression or drawing.inline
    return dataclasses.replace(
        drawing,
        expression=f"CASE WHEN random(1, 100) <= {share} THEN null ELSE {inner} END",
        inline=drawing.inline if drawing.expression else "{}",
    )


def keys(numbers: Sequence[int], rows: str, count: int) -> str:
    """An expression for keys of a table with ``count`` rows, whose variable is ``rows``."""
    exponent = zipf_exponent(numbers, count)
    if not exponent:
        return f"random(1, {rows})"
    drawn = f"random_zipfian(1, {rows}, {exponent:.2f})"
    if _low_first(numbers, count, exponent):
        return drawn
    return f"permute({drawn}, {rows}) + 1"


def number(numbers: Sequence[int]) -> ValueDrawing:
    """A drawing of whole numbers that are no keys."""
    counts = collections.Counter(numbers)
    low, high = min(counts), max(counts)
    small = all(abs(each) <= SMALL for each in counts)
    if len(counts) == 1:
        return ValueDrawing(
            "", str(low) if small else str(_round_constant(low)), "" if small else "a constant, rounded"
        )
    if small and len(counts) <= FEW and len(numbers) >= 3 * len(counts):
        return ValueDrawing(draw_weighted({str(value): count for value, count in counts.most_common()}))
    low, high = outward(low, high)
    exponent = zipf_exponent(numbers, high - low + 1)
    return ValueDrawing(f"random_zipfian({low}, {high}, {exponent:.2f})" if exponent else f"random({low}, {high})")


def decimal(values: Sequence[str]) -> ValueDrawing:
    """A drawing of numbers with a point or an exponent."""
    numbers = [max(-1e14, min(1e14, float(value))) for value in values]
    digits = max(len(f"{value:.4f}".rstrip("0").partition(".")[2]) for value in numbers)
    scaled = [round(value * 10**digits) for value in numbers]
    if not digits:
        return number(scaled)
    low, high = outward(min(scaled), max(scaled))
    return ValueDrawing(f"random({low}, {high}) / {10.0**digits}")


def text(values: Sequence[str], longest: int) -> ValueDrawing:
    """A drawing of quoted texts by their shape. longest: characters that the column takes; 0 if unknown."""
    shapes = {re.sub(r"\d", "#", value[1:-1]) for value in values}
    shape = shapes.pop() if len(shapes) == 1 else ""
    if shape.count("#") >= 2 and not re.search(r"[^\W_]|[^\x20-\x7e]|['\\]", shape):
        return ValueDrawing(f"random_digits('{shape}')")
    lengths = sorted(_length(value) for value in values)
    most = min(LONGEST, longest or LONGEST)
    low, high = min(most, max(1, lengths[len(lengths) // 50])), min(most, max(1, lengths[-1 - len(lengths) // 50]))
    empty = sum(not length for length in lengths)
    drawn = f"random_text({low})" if low == high else f"random_text({low}, {high})"
    note = f"texts up to {lengths[-1]} characters are cut to {most}" if lengths[-1] > LONGEST else ""
    if empty == len(lengths):
        return ValueDrawing("''", note=note)
    return ValueDrawing(drawn, note=note)


def of_type(kind: str) -> ValueDrawing | None:
    """A drawing of texts that a column of this type takes; None for a type that takes any text."""
    drawn = TYPED.get(kind)
    return ValueDrawing(drawn, note=f"any values of the type {kind}") if drawn else None


def member(members: Sequence[str]) -> ValueDrawing:
    """A drawing of the members of an ENUM."""
    return ValueDrawing(draw_weighted({"'" + each.replace("'", "''") + "'": 1.0 for each in members}))


def pattern(values: Sequence[str], *, nothing: bool) -> ValueDrawing:
    """A drawing of patterns of LIKE: their wildcards stay at the begin and the end.

    nothing: whether they found no row; then they have a character that no generated text has.
    """
    begins = sum(value[1:2] == "%" for value in values) * 2 > len(values)
    ends = sum(value[-2:-1] == "%" for value in values) * 2 > len(values)
    inner = [f"'{value[1:-1].strip('%')}'" for value in values]
    drawn = text(inner, 0).expression
    parts = ["'%'"] * begins + ["'~'"] * nothing + [drawn] + ["'%'"] * ends
    return ValueDrawing(f"concat({', '.join(parts)})" if len(parts) > 1 else drawn)


def dates(values: Sequence[str], times: Sequence[int], *, searched: bool) -> ValueDrawing | None:
    """A drawing of dates and times; None if a value is none. times: of the statements, in seconds since 1970."""
    found = [_seconds(value) for value in values]
    seconds = [each for each in found if each is not None]
    if len(seconds) < len(values) or not seconds:
        return None
    only = all(":" not in value for value in values)
    zone = _zone(seconds, times)
    ages = [time + zone - each for each, time in zip(seconds, times, strict=True)]
    today = "CURDATE()" if only else "NOW()"
    if all(abs(age) <= (86400 if only else NOW) for age in ages):
        return ValueDrawing("", today)
    unit, size = ("DAY", 86400) if only else ("SECOND", 1)
    if searched:
        low, high = min(seconds), max(seconds)
        share = SPAN // size
        return ValueDrawing(f"random(0, {share})" if high > low else str(share // 2), f"{FIRST} + INTERVAL {{}} {unit}")
    low, high = outward(min(ages) // size, max(ages) // size)
    if abs(low) > MOST_AGE or abs(high) > MOST_AGE:
        low, high = 0, SPAN // size
    if high < 0:
        return ValueDrawing(f"random({-high}, {-low})", f"{today} + INTERVAL {{}} {unit}")
    return ValueDrawing(f"random({low}, {high})", f"{today} - INTERVAL {{}} {unit}")


def is_now(value: str, time: int) -> bool:
    """Whether a date or time is that of its statement, on a clock of any zone. time: in seconds since 1970."""
    seconds = _seconds(value)
    if seconds is None:
        return False
    if ":" not in value:
        return abs(seconds - time) <= 86400
    return abs(seconds - time - _zone([seconds], [time])) <= NOW


def _zone(seconds: Sequence[int], times: Sequence[int]) -> int:
    """The difference of the application's clock to UTC, if most values are the time of their statement."""
    offsets = collections.Counter(round((each - time) / 900) * 900 for each, time in zip(seconds, times, strict=True))
    offset, count = offsets.most_common(1)[0]
    return offset if count * 2 > len(seconds) and abs(offset) <= 14 * 3600 else 0


def _seconds(value: str) -> int | None:
    found = DATE.fullmatch(value)
    if not found:
        return None
    try:
        parts = [int(part or 0) for part in found.groups()]
        return int(datetime.datetime(*parts, tzinfo=datetime.UTC).timestamp())  # type: ignore[arg-type, misc]
    except ValueError:
        return None


def _length(value: str) -> int:
    if value[1:2] == "\0":
        return int(value[2:])
    if value[:2] in ("0x", "0X"):
        return (len(value) - 2) // 2
    return len(re.sub(r"\\.|''", "x", value[1:-1]))


def _round_constant(value: int) -> int:
    step = int(10 ** (len(str(abs(value))) - 1))
    return round(value / step) * step


def outward(low: int, high: int) -> tuple[int, int]:
    """A range around this one, with bounds of two significant digits of the larger one."""
    if max(abs(low), abs(high)) <= SMALL:
        return low, high
    step = 10 ** max(0, len(str(max(abs(low), abs(high)))) - 2)
    return low // step * step, -(-high // step) * step


def zipf_exponent(numbers: Sequence[int], size: int) -> float:
    """The exponent of a Zipf distribution over ``size`` values that has as many equal pairs; 0 for equal chances."""
    counts = collections.Counter(numbers)
    count = len(numbers)
    pairs = sum(each * (each - 1) / 2 for each in counts.values())
    if count < 2 or size < 2 or pairs < COLLISIONS:
        return 0.0
    share = pairs / (count * (count - 1) / 2)
    if share < SKEWED / size:
        return 0.0
    low, high = 0.0, 5.0
    for _ in range(40):
        middle = (low + high) / 2
        if _harmonic(size, 2 * middle) / _harmonic(size, middle) ** 2 < share:
            low = middle
        else:
            high = middle
    return max(0.05, low)


def _harmonic(size: int, exponent: float) -> float:
    """The sum of 1 / i ** exponent for i from 1 to size; above 1000 by an integral."""
    first = min(size, 1000)
    total = float(sum(each**-exponent for each in range(1, first + 1)))
    if size > first:
        begin, end = first + 0.5, size + 0.5
        total += (
            math.log(end / begin)
            if abs(exponent - 1) < 1e-9
            else (end ** (1 - exponent) - begin ** (1 - exponent)) / (1 - exponent)
        )
    return total


def _low_first(numbers: Sequence[int], size: int, exponent: float) -> bool:
    """Whether the lowest keys are the most frequent ones."""
    tenth = max(1, size // 10)
    expected = _harmonic(tenth, exponent) / _harmonic(size, exponent)
    share = sum(each <= tenth for each in numbers) / len(numbers)
    return share > (expected + tenth / size) / 2
