"""Shapes: statements without their literals."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_dbcluster.workloads.digest.log import statement_shapes
from pytest_dbcluster.workloads.digest.log.statement_shapes import Shapes, split

PIECES = ["SELECT ", "'", '"', "`", "\\", "''", "--", "-- ", "#", "/*", "*/", "/*!", "1", "0x1F", "1e5", "1.5",
          ".5", "-", "-5", "NULL", "IS NULL", " IN (", ", ", ")", "(", "t1", "é", "\n", "?", ":a", "@x", "=", "e",
          "\ud800", ";", "\0", "$"]  # fmt: skip


def joined(text):
    """The parts and the literals of a text, put together in turns."""
    parts, literals = split(text)
    assert len(parts) == len(literals) + 1
    return "".join(part + literal for part, literal in zip(parts, [*literals, ""], strict=True))


@settings(max_examples=1000)
@given(st.lists(st.sampled_from(PIECES)).map("".join) | st.text())
def test_no_character_is_lost(text):
    """Whatever the text is, its pieces are the text again."""
    assert joined(text) == text


@settings(max_examples=500)
@given(st.lists(st.sampled_from(PIECES)).map("".join))
def test_every_text_has_a_shape_and_as_many_values_as_places(text):
    """A statement that no server accepts too."""
    shape, values = Shapes().of(text)

    assert shape.number == 0
    assert len(values) <= len(split(text)[1])


@pytest.mark.parametrize(
    ("text", "shape", "values"),
    [
        ("SELECT c FROM t1 WHERE id=5", "SELECT c FROM t1 WHERE id=?", ("5",)),
        ("SELECT 'it''s', 'a\\'b', \"q\"", "SELECT ?, ?, ?", ("'it''s'", "'a\\'b'", '"q"')),
        ("SELECT  a\n FROM\tt", "SELECT a FROM t", ()),
        ("SELECT a -- b 5\n FROM /* 6 */ t # 7", "SELECT a FROM t", ()),
        ("/*My app: bob@x.y */ SELECT a /* bob`s? */ FROM `t` WHERE b = 5", "SELECT a FROM `t` WHERE b = ?", ("5",)),
        ("SELECT `a` /* bob`s */ FROM `t /* 1 */` -- it`s", "SELECT `a` FROM `t /* 1 */`", ()),
        ("SELECT /*M!100100 a */ b /*!50000 c */", "SELECT /*M!100100 a */ b /*!50000 c */", ()),
        ("SELECT /*+ NO_ICP(t 1) */ 2", "SELECT /*+ NO_ICP(t 1) */ ?", ("2",)),
        ("SELECT `a 1` FROM `t``2`", "SELECT `a 1` FROM `t``2`", ()),
        ("SELECT a WHERE b = -5 AND c=-1.5e3", "SELECT a WHERE b = ? AND c=?", ("-5", "-1.5e3")),
        ("UPDATE t SET a = a - 5", "UPDATE t SET a = a - ?", ("5",)),
        ("UPDATE t SET a = a-5", "UPDATE t SET a = a-?", ("5",)),
        ("SELECT 0x1F, x'ab', .5", "SELECT ?, x?, ?", ("0x1F", "'ab'", ".5")),
        ("INSERT INTO t VALUES (1, NULL, 'x')", "INSERT INTO t VALUES (?, ?, ?)", ("1", "NULL", "'x'")),
        ("SELECT a WHERE b IS NULL AND c IS NOT NULL", "SELECT a WHERE b IS NULL AND c IS NOT NULL", ()),
        ("SELECT a FROM 2fa_codes", "SELECT a FROM 2fa_codes", ()),
        ("SELECT a WHERE id IN (1, 2,3)", "SELECT a WHERE id IN (?)", (("1", "2", "3"),)),
        ("SELECT a WHERE i IN (1) AND b=2 AND j NOT IN ('x','y') LIMIT 3",
         "SELECT a WHERE i IN (?) AND b=? AND j NOT IN (?) LIMIT ?", (("1",), "2", ("'x'", "'y'"), "3")),
        ("SELECT a WHERE id IN (SELECT 1)", "SELECT a WHERE id IN (SELECT ?)", ("1",)),
        ("SELECT 'never ends", "SELECT ?", ("'never ends",)),
    ],
)  # fmt: skip
def test_literals_become_places(text, shape, values):
    """Numbers, texts and NULL are values; a list in IN is one value."""
    found, bound = Shapes().of(text)

    assert (found.text, bound) == (shape, values)


def test_equal_shapes_are_one():
    """Statements that differ in literals, spaces and the length of a list share it."""
    shapes = Shapes()
    numbers = [
        shapes.of(text)[0].number for text in ("SELECT 1 IN (2)", "SELECT 5  IN (2, 3)", "SELECT a", "SELECT 1 IN (9)")
    ]

    assert numbers == [0, 0, 1, 0]
    assert shapes.texts() == {0: "SELECT ? IN (?)", 1: "SELECT a"}


def test_forms_that_never_repeat_take_no_memory(monkeypatch):
    """The forms begin anew, and the shapes keep their numbers."""
    monkeypatch.setattr(statement_shapes, "MOST_FORMS", 3)
    shapes = Shapes()
    numbers = {shapes.of(f"SELECT 1 /* trace {number} */")[0].number for number in range(20)}

    assert numbers == {0}
    assert len(shapes._forms) <= 3
