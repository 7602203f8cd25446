"""Entries of generated pages, as text of MyST."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*[a-z0-9]")


def entry(kind: str, name: str, *paragraphs: str) -> str:
    """An entry with an anchor: ``kind`` is a directive of ``reference_pages`` or of Sphinx."""
    body = "\n\n".join(filter(None, paragraphs))
    return f"````{{{kind}}} {name}\n{body}\n````\n"


def page(parts: Iterable[str]) -> str:
    """The parts, one below the other."""
    return "\n".join(parts)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; a bar in a cell is escaped."""
    lines = [head, ["---"] * len(head), *rows]
    return (
        "\n".join(
            "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in row) + " |" for row in lines
        )
        + "\n"
    )


def code(text: str) -> str:
    """The text as code in a line."""
    fence = "``" if "`" in text else "`"
    return f"{fence}{text}{fence}"


def example(text: str) -> str:
    """The paragraph with an example."""
    return f"Example: {code(text)}"


def codes(texts: Iterable[str]) -> str:
    """Several codes, with commas."""
    return ", ".join(map(code, texts))


def markdown(docstring: str | None) -> str:
    """The first paragraph of a docstring: double backticks become single ones."""
    first = (docstring or "").strip().split("\n\n")[0]
    return re.sub(r"``(.+?)``", r"`\1`", " ".join(first.split()))


def items(docstring: str | None) -> str:
    """The first paragraph of a docstring, as ``markdown``. A list keeps one line for each item."""
    first = (docstring or "").strip().split("\n\n")[0]
    return "\n".join(markdown(line) for line in re.split(r"\n\s*(?=- )", first))


def prose(text: str) -> str:
    """A text of the code as prose: options of pytest become links, other options and code become code."""
    parts = re.split(r"(`[^`]*`)", text)  # every other part is code already
    return "".join(part if number % 2 else OPTION.sub(_option, part) for number, part in enumerate(parts))


def _option(found: re.Match[str]) -> str:
    name = found[0]
    return f"{{option}}`{name} <pytest {name}>`" if name.startswith("--db-") else code(name)


def after_colon(text: str) -> str:
    """The part of a sentence after its first colon, as a sentence: ``Galera: every node`` is ``Every node``."""
    told = text.partition(": ")[2] or text
    return told[0].upper() + told[1:]


def write(directory: Path, texts: Mapping[str, str]) -> None:
    """Write generated files; those that did not change stay as they are, so Sphinx does not read their pages again."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        path = directory / name
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
