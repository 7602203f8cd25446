"""Colours, markers and line styles of charts: Okabe and Ito's palette, which colour-blind readers can tell apart.

Charts are readable without colours: each variant has a different marker and line style. A page replaces each colour by
a CSS variable (``variables``), so one drawing fits light, dark and print.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType

INK, SOFT, GRID, PAPER = "#1c2126", "#5f6b76", "#dfe4e8", "#fefefe"  # text, minor text, grid lines, background
BLUE, ORANGE, PURPLE, SKY = "#0072b2", "#e69f00", "#cc79a7", "#56b4e9"
BROWN, VIOLET = "#783000", "#4b2fd6"  # not of that palette: its other colours are those of verdicts
HOLDS, REFUTED, OPEN = "#009e73", "#d55e00", "#7a7f9a"  # of verdicts: bluish green, vermillion, grey
MARGIN = "#e9c46b"  # the ratios that a margin allows
PUBLISHED = "#9a4f8a"


@dataclasses.dataclass(frozen=True)
class Style:
    """How a variant is drawn."""

    colour: str
    """Its colour, as ``#rrggbb``."""

    marker: str
    """A marker of matplotlib."""

    line: str | tuple[int, tuple[int, ...]]
    """A line style of matplotlib."""


SERIES = (
    Style(BLUE, "o", "-"),
    Style(ORANGE, "s", "--"),
    Style(PURPLE, "^", "-."),
    Style(SKY, "D", ":"),
    Style(INK, "v", (0, (6, 1, 1, 1, 1, 1))),
    Style(BROWN, "P", (0, (9, 2))),
    Style(VIOLET, "X", (0, (2, 1))),
)
# Colour of a drawing -> its CSS variable, and the colour of the variable in the dark theme.
THEMES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        INK: ("--ink", "#e8ebee"),
        SOFT: ("--soft", "#9aa5b1"),
        GRID: ("--grid", "#353c45"),
        PAPER: ("--paper", "#16191d"),
        BLUE: ("--blue", "#3a8fd0"),
        ORANGE: ("--orange", "#f5c04a"),
        PURPLE: ("--purple", "#d585b4"),
        SKY: ("--sky", "#7cc6f0"),
        BROWN: ("--brown", "#906030"),
        VIOLET: ("--violet", "#7848f0"),
        HOLDS: ("--holds", "#2fc597"),
        REFUTED: ("--refuted", "#f0803c"),
        OPEN: ("--open", "#9aa0bd"),
        MARGIN: ("--margin", "#7d6a35"),
        PUBLISHED: ("--published", "#d08fc2"),
    }
)


def style(number: int) -> Style:
    """The style of the variant with this number, 0-based; styles repeat from the eighth on."""
    return SERIES[number % len(SERIES)]


def apply_theme(svg: str) -> str:
    """The drawing with CSS variables instead of its colours; a viewer without these variables shows the colours."""
    for colour, (variable, _) in THEMES.items():
        svg = svg.replace(colour, f"var({variable}, {colour})")
    return svg


def variables(*, dark: bool) -> str:
    """The declarations of the CSS variables, for one theme."""
    return " ".join(f"{name}: {night if dark else day};" for day, (name, night) in THEMES.items())
