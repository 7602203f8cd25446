"""Ratios, sizes, durations, counts, texts of others and file names as text, and the type of progress reports."""

from __future__ import annotations

import dataclasses
import math
import re
import shutil
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

# Called with one line of progress at a time; the callee shows the line to the user.
Report = Callable[[str], None]
UNITS = ((86400, "d"), (3600, "h"), (60, "min"))
TIME = re.compile(r"([0-9]{1,7}(?:\.[0-9]{1,6})?)(s|m|min|h|d|)")
SECONDS = {"": 1, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}
ELLIPSIS = "..."
NO_INTERVAL = "no interval yet"
NOTHING = "-"  # a figure that was not measured
DIGITS = 17  # significant ones that tell every two floats apart
EXACT = 1e-9  # two bounds that are as close as this are the same
PLAIN = 1e6  # from here on, numbers have an exponent
PIP, GLUE = "pip install '", "\N{NULL}"  # a command that is not broken, and what holds it together


def ratio(value: float, limits: Sequence[float] = ()) -> str:
    """A ratio: ``1.84x``, ``inf``, and a dash where there is none. It is the one form of a ratio wherever people read.

    Two decimals around 1, else three significant digits; and as many more as it takes to show the ratio on its own side
    of each of ``limits``, such as the bound of a claim. What is equal to a limit is shown as equal.
    """
    if math.isinf(value):
        return "inf"
    return NOTHING if math.isnan(value) else f"{_digits(value, limits)}x"


def bound(value: float) -> str:
    """The bound of a claim as a ratio: ``1.00x``, ``0.945x``; rounded only where six decimals are not enough."""
    exact = (text for digits in range(2, 7) if abs(float(text := f"{value:.{digits}f}") - value) < EXACT)
    return f"{next(exact, f'{value:.5g}')}x"


def interval(low: float, high: float, limits: Sequence[float] = ()) -> str:
    """The interval of a ratio: ``1.18 .. 3.08``; ``no interval yet`` where it bounds nothing. ``limits``: as in ratio.

    So the text contains a limit if the interval contains it, and excludes it if the interval excludes it.
    """
    if math.isnan(low) or math.isnan(high) or (low == 0 and math.isinf(high)):
        return NO_INTERVAL
    return f"{_digits(low, limits)} .. {_digits(high, limits)}"


def with_interval(value: float, low: float, high: float, limits: Sequence[float] = ()) -> str:
    """A ratio with its interval: ``1.84x (1.18 .. 3.08)``; ``limits``: as in ratio. A dash where there is no ratio."""
    return NOTHING if math.isnan(value) else f"{ratio(value, limits)} ({interval(low, high, limits)})"


def _digits(value: float, limits: Sequence[float]) -> str:
    """The number with the digits that ``ratio`` describes."""
    for more in range(DIGITS):
        text = _number(value, more)
        if all(_side(float(text), limit) == _side(value, limit) for limit in limits):
            return text
    return repr(value)


def _number(value: float, more: int) -> str:
    """The number with ``more`` digits than usual."""
    if 0.0995 <= value < 99.5:
        return f"{value:.{2 + more}f}"
    text = f"{value:.{3 + more}g}"
    return f"{float(text):.0f}" if "e+" in text and value < PLAIN else text


def _side(value: float, limit: float) -> int:
    return (value > limit) - (value < limit)


def amount(value: float) -> str:
    """A measured figure: ``0.0123``, ``48.66``, ``11390``. Four significant digits, more where the number is larger."""
    return f"{value:.0f}" if 1e4 <= abs(value) < math.inf else f"{value:.4g}"


def size(count: int) -> str:
    """Bytes of files and downloads in decimal units, as for disks: ``1.4 MB``, ``272 MB``, ``1.5 GB``."""
    if count >= 1e9:
        return f"{count / 1e9:.1f} GB"
    return f"{count / 1e6:.0f} MB" if count >= 1e7 else f"{round(count / 1e6, 1):g} MB"


def mebibytes(count: int) -> str:
    """Bytes of a memory limit in MiB: ``48 MiB``."""
    return f"{count / 2**20:g} MiB"


def gibibytes(count: float) -> str:
    """Bytes of a machine's memory or disk in GiB: ``64.0 GiB``."""
    return f"{count / 2**30:.1f} GiB"


def duration(seconds: float) -> str:
    """Seconds in one unit: ``42 s``, ``7 min``, ``5 h``, ``3 d``. Each unit starts at 1.5 of it, such as 90 s."""
    for length, unit in UNITS:
        if seconds >= 1.5 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"


def seconds_of(text: str) -> float | None:
    """The seconds of ``90``, ``90s``, ``30m``, ``30min``, ``2h`` or ``1d``; None for any other text."""
    found = TIME.fullmatch(text)
    return float(found[1]) * SECONDS[found[2]] if found else None


def milliseconds(seconds: float) -> str:
    """A short time in milliseconds: ``0.14 ms``, ``20.4 ms``."""
    number = seconds * 1000
    text = f"{number:.2f}" if abs(number) < 10 else f"{number:.1f}"
    return f"{text.removeprefix('-') if float(text) == 0 else text} ms"


def quantity(number: int, noun: str) -> str:
    """A number with its noun: ``1 node``, ``3 nodes``, ``2 processes``."""
    plural = "es" if noun.endswith("s") else "s"
    return f"{number} {noun}{'' if number == 1 else plural}"


def elide(text: str, width: int) -> str:
    """The text in ``width`` characters at most: of a longer one the middle is left out, ``a_long_n...me_of_it``."""
    if len(text) <= width:
        return text
    kept = max(0, width - len(ELLIPSIS))
    return f"{text[: kept - kept // 2]}{ELLIPSIS[:width]}{text[len(text) - kept // 2 :]}"


def wrap(text: str, width: int) -> list[str]:
    """The text in lines of at most ``width`` characters; a longer word, such as a path, and a pip command stay whole.

    Lines of the text stay apart. What does not fit on one goes on below it, two characters further in.
    """
    lines = []
    for line in text.split("\n"):
        indent = " " * (len(line) - len(line.lstrip()) + 2)
        glued = line.replace(PIP, PIP.replace(" ", GLUE))
        parts = textwrap.wrap(glued, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
        lines += [part.replace(GLUE, " ") for part in parts] if len(line) > width else [line]
    return lines


def fit_terminal(text: str, before: str = "") -> str:
    """The text in lines that fit the terminal (``wrapped``); others write ``before`` in front of it."""
    width = shutil.get_terminal_size().columns
    return "\n".join(wrap(f"{before}{text}", width)).removeprefix(before)


@dataclasses.dataclass(frozen=True)
class ShownMessage:
    """The message of a test as pytest shows it: among the failures alone, in lines that fit.

    It is no ``str``, because pytest repeats a plain text in its short summary, in GitHub Actions and with ``-vv`` with
    all of its lines. ``str`` of it is the text itself.
    """

    text: str

    def toterminal(self, writer: Any) -> None:
        """Write the message; ``writer``: pytest's TerminalWriter."""
        for line in wrap(self.text, writer.fullwidth):
            writer.line(line)

    def __str__(self) -> str:
        return self.text


def printable(text: str, *, lines: bool = False) -> str:
    r"""The text without characters that control a terminal: each is shown as its escape, such as ``\x1b``.

    Use it wherever a text of another user, or of a file, is shown. It escapes control characters, marks that change the
    direction of writing, and everything else that is not visible. ``lines``: newlines and tabs stay.
    """
    kept = "\n\t" if lines else ""
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() or letter in kept else letter.encode("unicode_escape").decode()
        for letter in text
    )


def file_name(text: str) -> str:
    """Text of a user as one part of a path: letters, digits, dots and underscores, 60 characters at most.

    Every path that is made of a user's name uses this. The part is never empty, hidden or ``..``, so a file or
    directory of that name lies where we make it.
    """
    return re.sub(r"[^A-Za-z0-9.]+", "_", text).strip("_.")[:60] or "unnamed"


def some(names: Sequence[str], shown: int = 3) -> str:
    """The first names and how many more there are: ``a, b, c and 2 more``. One more is shown itself."""
    listed = names if len(names) <= shown + 1 else names[:shown]
    more = len(names) - len(listed)
    return ", ".join(listed) + (f" and {more} more" if more else "")
