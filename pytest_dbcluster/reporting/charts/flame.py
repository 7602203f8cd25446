"""The flame graph of two variants: the CPU time of the servers by function, each above the function that called it.

It is drawn without matplotlib, which would take a second for a thousand boxes.
"""

from __future__ import annotations

import dataclasses
import html
from collections.abc import Sequence

from pytest_dbcluster.formatting import elide
from pytest_dbcluster.measuring.why import wording
from pytest_dbcluster.measuring.why.stacks import ComparedStack
from pytest_dbcluster.reporting.charts.colours import BLUE, GRID, INK, PAPER, REFUTED

WIDTH, ROW = 960.0, 17.0  # units of the drawing; its height follows from the deepest stack
NARROWEST = 0.6  # a narrower box is left out
LETTER, PADDING = 6.4, 3.0  # of a text: the room for one character, and that on its left
SHORTEST = 9  # characters of a cut name
FAINT, STRONG = 0.1, 0.75  # opacity of the colour for an equal time, and for a time on one variant only
WHOLE = "all servers"


@dataclasses.dataclass
class _Box:
    """A function with its callers: its time with all that it calls, on both variants."""

    baseline: float = 0.0
    candidate: float = 0.0
    called: dict[str, _Box] = dataclasses.field(default_factory=dict)

    @property
    def both(self) -> float:
        return self.baseline + self.candidate


def svg(stacks: Sequence[ComparedStack]) -> str | None:
    """The drawing; None without stacks.

    A box is as wide as the time of its function on both variants together. Its colour says on which variant it takes
    more. Its title, which a browser shows under the pointer, has both times.
    """
    root = _tree(stacks)
    if not root.both:
        return None
    boxes: list[str] = []
    depth = _draw(boxes, WHOLE, root, 0.0, 0, WIDTH / root.both)
    height = ROW * (depth + 1)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 {-height:g} {WIDTH:g} {height:g}" role="img" '
        f'aria-label="CPU time of the servers by function" font-size="11" font-family="monospace">'
        f"{''.join(boxes)}</svg>"
    )


def _tree(stacks: Sequence[ComparedStack]) -> _Box:
    root = _Box()
    for one in stacks:
        box = root
        for name in (None, *one.functions):
            box = box if name is None else box.called.setdefault(name, _Box())
            box.baseline += one.baseline
            box.candidate += one.candidate
    return root


def _draw(boxes: list[str], name: str, box: _Box, left: float, depth: int, unit: float) -> int:
    """Draw a box and those above it; return the depth of the highest one. unit: the width of a second."""
    width, deepest = unit * box.both, depth
    if width < NARROWEST:
        return depth - 1
    more = (box.candidate - box.baseline) / box.both
    colour, opacity = REFUTED if more > 0 else BLUE, FAINT + (STRONG - FAINT) * abs(more)
    title = html.escape(f"{name}: {wording.times(box.baseline, box.candidate)}")
    place = f'x="{left:.1f}" y="{-ROW * (depth + 1):g}" width="{width:.1f}" height="{ROW:g}"'
    room = int((width - 2 * PADDING) / LETTER)
    shown = elide(name, room) if room >= min(SHORTEST, len(name)) else ""
    text = f'<text x="{left + PADDING:.1f}" y="{-ROW * depth - 5:g}" fill="{INK}">{html.escape(shown)}</text>'
    boxes.append(
        f'<g><title>{title}</title><rect {place} fill="{PAPER}" stroke="{GRID}"/>'
        f'<rect {place} fill="{colour}" fill-opacity="{opacity:.2f}"/>{text if shown else ""}</g>'
    )
    for called, inner in box.called.items():
        deepest = max(deepest, _draw(boxes, called, inner, left, depth + 1, unit))
        left += unit * inner.both
    return deepest
