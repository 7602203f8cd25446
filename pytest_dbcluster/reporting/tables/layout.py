"""Tables as text: aligned and wrapped for a terminal, or as Markdown."""

from __future__ import annotations

import dataclasses
import itertools
import re
import sys
import textwrap
from collections.abc import Sequence

GAP = "  "
INDENT = "    "
# Columns that may be wrapped, and how narrow each becomes where its words allow that; the first gives way first.
FLEXIBLE = (("claim", 24), ("load", 12), ("release", 12), ("claim", 16))
PIECE = re.compile(r"[^\s(]*[\s(]+|[^\s(]+")

Line = tuple[str, str]
NUMBERS = ("published", "pairs", "seconds")


@dataclasses.dataclass(frozen=True)
class Row:
    """One row, such as a claim. ``remark`` stands below its cells."""

    cells: tuple[str, ...]
    colour: str = ""
    remark: str = ""


@dataclasses.dataclass(frozen=True)
class Block:
    """Claims of one kind under one heading. Its columns named in NUMBERS are set flush right."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]


def text(block: Block, width: int) -> list[Line]:
    """The lines of a block, each with its colour; as wide as the screen where its words allow that."""
    widths = _widths(block, width)
    lines = [(line, "") for line in _cells(block, block.columns, widths)]
    for row in block.rows:
        lines += [(line, row.colour) for line in _cells(block, row.cells, widths)]
        lines += [(f"{INDENT}{line}", "") for line in textwrap.wrap(row.remark, width - len(INDENT))]
    return lines


def plain(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Rows under the names of their columns as one text; columns as wide as their widest cell, nothing wrapped."""
    block = Block("", tuple(columns), tuple(Row(tuple(cells)) for cells in rows))
    return "\n".join(line for line, _ in text(block, sys.maxsize))


def _widths(block: Block, width: int) -> list[int]:
    columns = list(zip(block.columns, *(row.cells for row in block.rows), strict=True))
    widths = [max(map(len, column)) for column in columns]
    for name, least in FLEXIBLE:
        excess = sum(widths) + len(GAP) * (len(widths) - 1) - width
        if excess > 0 and name in block.columns:
            at = block.columns.index(name)
            pieces = [len(piece.rstrip()) + 2 for cell in columns[at] for piece in PIECE.findall(cell)]
            widths[at] = max(min(widths[at], max(least, *pieces)), widths[at] - excess)
    return widths


def _cells(block: Block, cells: Sequence[str], widths: Sequence[int]) -> list[str]:
    """One row: as many lines as its longest cell."""
    wrapped = [wrap(cell, width) for cell, width in zip(cells, widths, strict=True)]
    lines = []
    for parts in itertools.zip_longest(*wrapped, fillvalue=""):
        placed = [
            part.rjust(width) if name in NUMBERS else part.ljust(width)
            for part, width, name in zip(parts, widths, block.columns, strict=True)
        ]
        lines.append(GAP.join(placed).rstrip())
    return lines


def wrap(words: str, width: int) -> list[str]:
    """The words in lines of at most ``width``, broken after spaces and opening brackets; never inside a name."""
    lines = [""]
    for piece in PIECE.findall(words):
        indent = "  " if lines[0] else ""
        if lines[-1].strip() and len(lines[-1]) + len(piece.rstrip()) > width:
            lines.append(indent)
        lines[-1] += piece
    return [line.rstrip() for line in lines]


def markdown(block: Block) -> str:
    """The block as a Markdown table, remarks below it."""
    ruler = ["---:" if name in NUMBERS else "---" for name in block.columns]
    lines = [f"## {block.title}", "", _bar(block.columns), _bar(ruler)]
    lines += [_bar([_code(row.cells[0]), *row.cells[1:]]) for row in block.rows]
    remarks = [f"- {_code(row.cells[0])} ({row.cells[1]}): {row.remark}" for row in block.rows if row.remark]
    return "\n".join([*lines, "", *remarks, *([""] if remarks else [])])


def _bar(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _code(cell: str) -> str:
    return f"`{cell}`"
