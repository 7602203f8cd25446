"""Text forms of ratios, sizes, durations, counts, options and file names; safe forms of foreign text; progress."""

from __future__ import annotations

import dataclasses
import math
import re
import shutil
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pytest_dbcluster.errors import ConfigError

# Called with one line of progress at a time; the callee shows the line to the user.
Report = Callable[[str], None]
UNITS = ((86400, "d"), (3600, "h"), (60, "min"))
TIME = re.compile(r"([0-9]{1,7}(?:\.[0-9]{0,9})?|\.[0-9]{1,9})(ms|s|m|min|h|d|)")
SECONDS = {"": 1, "ms": 0.001, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}
BINARY = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}  # as in a my.cnf
ELLIPSIS = "..."
NO_INTERVAL = "no interval yet"
NOTHING = "-"  # a figure that was not measured
DIGITS = 17  # significant digits that distinguish every two floats
EXACT = 1e-9  # bounds with a smaller difference are equal
PLAIN = 1e6  # larger numbers have an exponent
PIP, GLUE = "pip install '", "\N{NULL}"  # a command that no line break may split, and the character that prevents it


def ratio(value: float, limits: Sequence[float] = ()) -> str:
    """A ratio as text: ``1.84x``, ``inf``, or a dash for nan. All messages use this form.

    It has two decimals around 1, otherwise three significant digits. It gets more digits if the rounded ratio would
    cross one of ``limits``, such as the bound of a claim. A ratio that equals a limit is shown as equal.
    """
    if math.isinf(value):
        return "inf"
    return NOTHING if math.isnan(value) else f"{_digits(value, limits)}x"


def bound(value: float) -> str:
    """The bound of a claim as a ratio: ``1.00x``, ``0.945x``; rounded only if six decimals are not enough."""
    exact = (text for digits in range(2, 7) if abs(float(text := f"{value:.{digits}f}") - value) < EXACT)
    return f"{next(exact, f'{value:.5g}')}x"


def change(of: float) -> str:
    """How far a ratio is from 1: ``+11 %``, ``-0.5 %``."""
    percent = 100 * (of - 1)
    return f"{percent:+.0f} %" if abs(percent) >= 10 else f"{percent:+.2g} %"


def interval(low: float, high: float, limits: Sequence[float] = ()) -> str:
    """The interval of a ratio: ``1.18 .. 3.08``; ``no interval yet`` if it bounds nothing. ``limits``: as in ratio.

    The text contains a limit if and only if the interval contains it.
    """
    if math.isnan(low) or math.isnan(high) or (low == 0 and math.isinf(high)):
        return NO_INTERVAL
    return f"{_digits(low, limits)} .. {_digits(high, limits)}"


def with_interval(value: float, low: float, high: float, limits: Sequence[float] = ()) -> str:
    """A ratio with its interval: ``1.84x (1.18 .. 3.08)``; ``limits``: as in ratio. A dash for nan."""
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
    """A measured figure: ``0.0123``, ``48.66``, ``11390``. Four significant digits, or all digits from 10000 on."""
    return f"{value:.0f}" if 9999.5 <= abs(value) < math.inf else f"{value:.4g}"


def size(count: int) -> str:
    """Bytes of files and downloads in decimal units, as for disks: ``1.4 MB``, ``272 MB``, ``1.5 GB``."""
    if count >= 1e9:
        return f"{count / 1e9:.1f} GB"
    return f"{count / 1e6:.0f} MB" if count >= 1e7 else f"{round(count / 1e6, 1):g} MB"


def mebibytes(count: int) -> str:
    """Bytes of a memory limit in MiB: ``48 MiB``."""
    return f"{count / 2**20:g} MiB"


def whole_mebibytes(count: int) -> str:
    """Bytes of data in whole MiB, rounded up: ``25 MiB``."""
    return f"{math.ceil(count / 2**20)} MiB"


def gibibytes(count: float) -> str:
    """Bytes of a machine's memory or disk in GiB: ``64.0 GiB``."""
    return f"{count / 2**30:.1f} GiB"


def duration(seconds: float) -> str:
    """Seconds in one unit: ``42 s``, ``7 min``, ``5 h``, ``3 d``. A unit starts at 1.5: 90 s are ``2 min``."""
    for length, unit in UNITS:
        if seconds >= 1.5 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"


def seconds_of(text: str) -> float | None:
    """The seconds of ``90``, ``90s``, ``5ms``, ``30m``, ``30min``, ``2h`` or ``1d``; None for any other text."""
    found = TIME.fullmatch(text)
    return float(found[1]) * SECONDS[found[2]] if found else None


def option_seconds(option: str, text: str, example: str = "90s or 30min") -> float:
    """The seconds of an option, such as ``--db-wait 90s``. Raises ConfigError for a text that is not a time.

    All options with a time accept the same forms; a number without a unit is in seconds. example: for the error.
    """
    seconds = seconds_of(text)
    if seconds is None:
        raise ConfigError(f"{option} {text!r}: it accepts a time in ms, s, min, h or d, such as {example}")
    return seconds


def milliseconds(seconds: float) -> str:
    """A short time in milliseconds: ``0.14 ms``, ``20.4 ms``."""
    number = seconds * 1000
    text = f"{number:.2f}" if abs(number) < 10 else f"{number:.1f}"
    return f"{text.removeprefix('-') if float(text) == 0 else text} ms"


def quantity(number: float, noun: str) -> str:
    """A number with its noun: ``1 node``, ``3 nodes``, ``1.5 cores``, ``2 processes``, ``2 queries``."""
    shown = f"{number:g}" if isinstance(number, float) else number
    return f"{shown} {noun if number == 1 else _plural(noun)}"


def _plural(noun: str) -> str:
    """The regular plural of a noun."""
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}es" if noun.endswith(("s", "x", "sh", "ch")) else f"{noun}s"


def elide(text: str, width: int) -> str:
    """The text in ``width`` characters at most, without the middle of a longer one: ``a_long_n...me_of_it``."""
    if len(text) <= width:
        return text
    kept = max(0, width - len(ELLIPSIS))
    return f"{text[: kept - kept // 2]}{ELLIPSIS[:width]}{text[len(text) - kept // 2 :]}"


def wrap(text: str, width: int) -> list[str]:
    """The text in lines of at most ``width`` characters. Long words, such as paths, and pip commands stay whole.

    Line breaks of the text stay. Continuation lines are indented by two more characters.
    """
    lines = []
    for line in text.split("\n"):
        indent = " " * (len(line) - len(line.lstrip()) + 2)
        glued = line.replace(PIP, PIP.replace(" ", GLUE))
        parts = textwrap.wrap(glued, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
        lines += [part.replace(GLUE, " ") for part in parts] if len(line) > width else [line]
    return lines


def fit_terminal(text: str, before: str = "") -> str:
    """The text in lines that fit the terminal (``wrap``), if the caller's text ``before`` precedes it."""
    width = shutil.get_terminal_size().columns
    return "\n".join(wrap(f"{before}{text}", width)).removeprefix(before)


@dataclasses.dataclass(frozen=True)
class ShownMessage:
    """The message of a test as pytest shows it: only among the failures, in lines that fit.

    It is not a ``str``. pytest repeats all lines of a ``str`` in its short summary, in GitHub Actions and with ``-vv``.
    ``str`` of it is the text.
    """

    text: str
    """The whole message."""

    def toterminal(self, writer: Any) -> None:
        """Write the message; ``writer``: pytest's TerminalWriter."""
        for line in wrap(self.text, writer.fullwidth):
            writer.line(line)

    def __str__(self) -> str:
        return self.text


def printable(text: str, *, lines: bool = False) -> str:
    r"""The text with an escape, such as ``\x1b``, for each character that controls a terminal.

    Use it for every text of another user or of a file. It escapes control characters, marks that change the direction
    of writing, and all other invisible characters. ``lines``: newlines and tabs stay.
    """
    kept = "\n\t" if lines else ""
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() or letter in kept else letter.encode("unicode_escape").decode()
        for letter in text
    )


def file_name(text: str) -> str:
    """A user's text as one part of a path: letters, digits, dots and underscores, 60 characters at most.

    Every path with a user's name uses this. The part is never empty, hidden or ``..``, so the file or directory stays
    in the intended directory.
    """
    return re.sub(r"[^A-Za-z0-9.]+", "_", text).strip("_.")[:60] or "unnamed"


def near(path: object, here: object) -> str:
    """The absolute path as users type it: relative to the working directory ``here`` if it is below it."""
    text, begin = str(path), f"{str(here).rstrip('/')}/"
    return "." if f"{text}/" == begin else text.removeprefix(begin)


def some(names: Sequence[str], shown: int = 3) -> str:
    """The first names and how many more there are: ``a, b, c and 2 more``. A single further name is listed too."""
    listed = names if len(names) <= shown + 1 else names[:shown]
    more = len(names) - len(listed)
    return ", ".join(listed) + (f" and {more} more" if more else "")


def memory_bytes(value: int | str, name: str = "memory") -> int:
    """A number of bytes from a number or a my.cnf text: ``512M`` is 512 times 2^20. Raises ConfigError."""
    match = re.fullmatch(r"(\d+) *([KMG]?)(?:i?B)?", value.strip(), re.IGNORECASE) if isinstance(value, str) else None
    if match:
        return int(match[1]) * BINARY[match[2].upper()]
    if isinstance(value, str):
        raise ConfigError(
            f"{name}={value!r} of a cluster's hosts: it accepts whole bytes, or a text such as 512M or 2G"
        )
    return value


def memory_text(number: int) -> str:
    """A number of bytes in the largest unit that gives a whole number: ``512M``."""
    unit = max((unit for unit, size in BINARY.items() if number % size == 0), key=BINARY.__getitem__)
    return f"{number // BINARY[unit]}{unit}"


def normal_option(name: str) -> str:
    """The normal form of an option's name: lower case, underscores, no leading dashes."""
    return name.strip().lstrip("-").replace("-", "_").lower()


def option_text(value: object) -> str:
    """The value of an option as my.cnf text."""
    if isinstance(value, bool):
        return "ON" if value else "OFF"
    return str(value)


def option_pairs(
    options: object, argument: str = "options", example: str = '"innodb_io_capacity": 2000'
) -> dict[str, str]:
    """Options as normal name -> text, from a mapping or from pairs. Raises ConfigError for anything else.

    argument, example: for the error.
    """
    try:
        given = dict(options)  # type: ignore[call-overload]
    except (TypeError, ValueError):
        raise ConfigError(f"{argument}={options!r} of a cluster: it accepts a mapping, such as {{{example}}}") from None
    for name, value in given.items():
        if not isinstance(name, str) or not isinstance(value, str | int | float):
            raise ConfigError(
                f"option {name}={value!r} of a cluster: a name is a text, and a value a text, a number, True or False"
            )
    return {normal_option(name): option_text(value) for name, value in given.items()}


def option_label(options: Mapping[str, str]) -> str:
    """The short name of a spec with these options: ``innodb_io_capacity_3000``."""
    return re.sub(r"[^\w.]+", "_", "_".join(f"{name}_{value}" for name, value in options.items()))[:60]
