"""Sizes, durations, counts, texts of others and file names as text, and the type of progress reports."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

# Called with one line of progress at a time; the callee shows the line to the user.
Report = Callable[[str], None]
UNITS = ((86400, "d"), (3600, "h"), (60, "min"))


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


def counted(number: int, noun: str) -> str:
    """A number with its noun: ``1 node``, ``3 nodes``, ``2 processes``."""
    plural = "es" if noun.endswith("s") else "s"
    return f"{number} {noun}{'' if number == 1 else plural}"


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
