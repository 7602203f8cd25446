"""The layout of tables: aligned and wrapped text for a terminal, or Markdown."""

from __future__ import annotations

import dataclasses
import itertools
import re
import sys
import textwrap
from collections.abc import Sequence

from pytest_dbcluster.formatting import printable

GAP = "  "
INDENT = "    "
# Columns that may be wrapped, with their minimum width in characters; the first is narrowed first.
FLEXIBLE = (("claim", 24), ("load", 12), ("release", 12), ("claim", 16))
PIECE = re.compile(r"[^\s(]*[\s(]+|[^\s(]+")

Line = tuple[str, str]  # text and colour
NUMBERS = ("published", "pairs", "seconds")  # columns aligned to the right


@dataclasses.dataclass(frozen=True)
class Row:
    """One row, such as a claim."""

    cells: tuple[str, ...]
    """One text for each column."""

    colour: str = ""
    """A keyword of pytest's ``write_line``, such as ``green``; empty for none."""

    remark: str = ""
    """The text below the cells; empty for none."""


@dataclasses.dataclass(frozen=True)
class TableBlock:
    """A table with a heading, such as all claims that hold or fail."""

    title: str
    """The heading."""

    columns: tuple[str, ...]
    """The heading of each column; columns named in NUMBERS are aligned right."""

    rows: tuple[Row, ...]
    """The rows."""


def text(block: TableBlock, width: int) -> list[Line]:
    """The lines of a block with their colours, at most ``width`` characters wide unless a word is longer."""
    widths = _widths(block, width)
    lines = [(line, "") for line in _cells(block, block.columns, widths)]
    for row in block.rows:
        lines += [(line, row.colour) for line in _cells(block, row.cells, widths)]
        lines += [(f"{INDENT}{line}", "") for line in textwrap.wrap(row.remark, width - len(INDENT))]
    return lines


def plain(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The rows under the names of their columns, nothing wrapped; each column is as wide as its widest cell.

    Cells may have texts of other users and of files, so characters that control the terminal are shown as escapes.
    """
    block = TableBlock("", tuple(columns), tuple(Row(tuple(map(printable, cells))) for cells in rows))
    return "\n".join(line for line, _ in text(block, sys.maxsize))


def _widths(block: TableBlock, width: int) -> list[int]:
    """The width of each column in characters: its widest cell, narrowed as FLEXIBLE allows."""
    columns = list(zip(block.columns, *(row.cells for row in block.rows), strict=True))
    widths = [max(map(len, column)) for column in columns]
    for name, minimum in FLEXIBLE:
        excess = sum(widths) + len(GAP) * (len(widths) - 1) - width
        if excess > 0 and name in block.columns:
            at = block.columns.index(name)
            # Lines after the first have an indent of two spaces.
            split = [enumerate(PIECE.findall(cell)) for cell in columns[at]]
            pieces = [len(piece.rstrip()) + (2 if number else 0) for cell in split for number, piece in cell]
            widths[at] = max(min(widths[at], max(minimum, *pieces)), widths[at] - excess)
    return widths


def _cells(block: TableBlock, cells: Sequence[str], widths: Sequence[int]) -> list[str]:
    """The lines of one row; the cell with the most lines sets their number."""
    wrapped = [wrap(cell, width) for cell, width in zip(cells, widths, strict=True)]
    lines = []
    for parts in itertools.zip_longest(*wrapped, fillvalue=""):
        padded = [
            part.rjust(width) if name in NUMBERS else part.ljust(width)
            for part, width, name in zip(parts, widths, block.columns, strict=True)
        ]
        lines.append(GAP.join(padded).rstrip())
    return lines


def wrap(words: str, width: int) -> list[str]:
    """The words in lines of at most ``width`` characters, broken after spaces and opening brackets only.

    A longer name is not broken, so its line is longer. Lines after the first are indented by two spaces.
    """
    lines = [""]
    for piece in PIECE.findall(words):
        indent = "  " if lines[0] else ""
        if lines[-1].strip() and len(lines[-1]) + len(piece.rstrip()) > width:
            lines.append(indent)
        lines[-1] += piece
    return [line.rstrip() for line in lines]


def markdown(block: TableBlock) -> str:
    """The block as a Markdown table under its heading, with the remarks as a list below."""
    ruler = ["---:" if name in NUMBERS else "---" for name in block.columns]
    lines = [f"## {block.title}", "", _bar(block.columns), _bar(ruler)]
    lines += [_bar([_code(row.cells[0]), *row.cells[1:]]) for row in block.rows]
    remarks = [f"- {_code(row.cells[0])} ({row.cells[1]}): {row.remark}" for row in block.rows if row.remark]
    return "\n".join([*lines, "", *remarks, *([""] if remarks else [])])


def _bar(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _code(cell: str) -> str:
    return f"`{cell}`"
