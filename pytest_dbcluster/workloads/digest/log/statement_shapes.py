"""The shape of a statement: its text without literals, so that statements which differ in values only are one.

``split`` separates the literals from the rest, and loses no character. ``Shapes`` keeps each shape once.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence

# What is no literal, then a literal. Possessive groups keep the time linear.
PIECES = re.compile(
    r"""
    ((?:
        [^\w'"`/\#$@.-]++
        |(?!NULL\b)[A-Za-z_@$][\w$@]*+
        |(?<=IS[ ])NULL|(?<=NOT[ ])NULL
        |`[^`]*+`
        |(?!0[xX][0-9a-fA-F]|\d+[eE][+-]?\d)\d++[A-Za-z_$][\w$]*+
        |/\*[\s\S]*?(?:\*/|\Z)
        |--(?=\s|\Z)[^\n]*+
        |\#[^\n]*+
        |[/$@]|\.(?!\d)|-(?!\d)|(?<![=(,])(?<![=(,][ ])-
        |(?<=[\w`])\.
    )*+)
    (
        '(?:[^'\\]++|\\.|'')*+'
        |"(?:[^"\\]++|\\.|"")*+"
        |-?0[xX][0-9a-fA-F]++(?![\w$])
        |-?(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][+-]?\d++)?
        |NULL
        |['"`][\s\S]*+
        |[\s\S]
        |\Z
    )
    """,
    re.VERBOSE | re.ASCII | re.DOTALL,
)
# A quoted name, or a comment or spaces. Comments that servers read (/*! /*M! /*+) are neither.
SPACE = re.compile(r"(`[^`]*`)|/\*(?!!|\+|M!)[\s\S]*?(?:\*/|\Z)|--(?=\s|\Z)[^\n]*|\#[^\n]*|\s+")
LIST = re.compile(r"\bIN ?\( ?\?(?: ?, ?\?)* ?\)", re.IGNORECASE)
MOST_FORMS = 50_000  # forms of statements that are kept; they begin anew above
MOST_SHAPES = 50_000  # shapes; statements of further ones are OTHER
MOST_TEXT = 50_000_000  # characters of all forms, and of all shapes
OTHER = "OTHER"
Literals = tuple["str | tuple[str, ...]", ...]


def split(text: str) -> tuple[list[str], list[str]]:
    """The parts of a statement that are no literals, and its literals between them.

    There is one part more than literals. Put together in turns they are the statement.
    """
    parts, literals = [], []
    for part, literal in PIECES.findall(text):
        parts.append(part)
        literals.append(literal)
    while literals and not literals[-1]:
        literals.pop()
    del parts[len(literals) + 1 :]
    if len(parts) == len(literals):
        parts.append("")
    return parts, literals


@dataclasses.dataclass(frozen=True)
class StatementShape:
    """Statements that differ in literals only."""

    number: int
    """0-based, in the order of first use."""

    text: str
    """The statement with ``?`` for each literal; a list of literals in ``IN (...)`` is one ``?``."""

    verb: str
    """Its first word, in upper case."""


@dataclasses.dataclass(frozen=True)
class Form:
    """A shape with the places of its literals in one form of the statement."""

    shape: StatementShape
    """The shape."""

    groups: tuple[tuple[int, int, bool], ...] | None
    """For each parameter: its first literal, the one after its last, and whether it is a list. None if each literal is
    a parameter.
    """

    def bind(self, literals: Sequence[str]) -> Literals:
        """The values of the parameters; those of a list are a tuple."""
        if self.groups is None:
            return tuple(literals)
        return tuple(
            tuple(literals[first:after]) if listed else literals[first] for first, after, listed in self.groups
        )


class Shapes:
    """All shapes of a log, in constant memory."""

    def __init__(self) -> None:
        self._forms: dict[str, Form] = {}
        self._shapes: dict[str, StatementShape] = {}
        self._form_text = self._shape_text = 0  # characters

    def __len__(self) -> int:
        return len(self._shapes)

    def of(self, text: str) -> tuple[StatementShape, Literals]:
        """The shape of a statement, and the values of its parameters."""
        pairs = PIECES.findall(text)
        key = "\0".join([part for part, _ in pairs])
        form = self._forms.get(key)
        if form is None:
            if len(self._forms) >= MOST_FORMS or self._form_text >= MOST_TEXT:
                self._forms.clear()
                self._form_text = 0
            form = self._forms[key] = self._form(text)
            self._form_text += len(key)
        if form.groups is None:
            return form.shape, tuple([literal for _, literal in pairs if literal])
        return form.shape, form.bind([literal for _, literal in pairs if literal])

    def texts(self) -> dict[int, str]:
        """The text of each shape, by its number."""
        return {shape.number: text for text, shape in self._shapes.items()}

    def shape_of(self, text: str) -> StatementShape:
        """The shape with this text; OTHER if there are too many shapes."""
        found = self._shapes.get(text)
        if found is None:
            if len(self._shapes) >= MOST_SHAPES or self._shape_text >= MOST_TEXT:
                text = OTHER
                if other := self._shapes.get(OTHER):
                    return other
            self._shape_text += len(text)
            words = re.match(r"[(\s]*(\w*)", text)
            assert words
            found = self._shapes[text] = StatementShape(len(self._shapes), text, words[1].upper())
        return found

    def _form(self, text: str) -> Form:
        parts, literals = split(text)
        pieces = [_plain(part) for part in parts]
        joined = re.sub(r" +", " ", "?".join(pieces)).strip()
        lists = [match.span() for match in LIST.finditer(joined)]
        if not lists:
            return Form(self.shape_of(joined), None)
        groups, shown, at, number = [], "", 0, 0
        for begin, end in [*lists, (len(joined), len(joined))]:
            before = joined[at:begin].count("?")
            groups += [(number + one, number + one + 1, False) for one in range(before)]
            shown += joined[at:begin]
            number += before
            count = joined[begin:end].count("?")
            if count:
                groups.append((number, number + count, True))
                shown += joined[begin : joined.index("?", begin)] + "?)"
            number += count
            at = end
        if number != len(literals):  # a "?" in backquotes
            return Form(self.shape_of(joined), None)
        return Form(self.shape_of(shown), tuple(groups))


def _plain(part: str) -> str:
    """A part without comments, and with one space for each run of spaces."""
    return SPACE.sub(lambda found: found[1] or " ", part)
