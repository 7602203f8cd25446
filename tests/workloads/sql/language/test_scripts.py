"""A transaction file as frozen values."""

from __future__ import annotations

import pytest

from pytest_dbcluster.workloads.sql.language import scripts
from pytest_dbcluster.workloads.sql.language.scripts import Assignment, Branching, Sleep, all_statements
from pytest_dbcluster.workloads.sql.language.statements import Statement


def statements(text):
    """The statements of a file."""
    return all_statements(scripts.parse("a", "shop/a.sql", text).block)


@pytest.mark.parametrize(
    ("text", "writes", "role"),
    [
        ("SELECT 1", False, ""),
        ("select 1 for update", False, ""),
        ("(SELECT 1) UNION (SELECT 2)", False, ""),
        ("INSERT INTO a VALUES (1)", True, ""),
        ("replace a set b = 1", True, ""),
        ("UPDATE a SET b = 1", True, ""),
        ("DELETE FROM a", True, ""),
        ("CALL p(1)", True, ""),
        ("WITH x AS (SELECT 1) SELECT * FROM x", False, ""),
        ("WITH x AS (SELECT 1) DELETE FROM a", True, ""),
        ("BEGIN", False, "begin"),
        ("BEGIN WORK", False, "begin"),
        ("START TRANSACTION READ ONLY", False, "begin"),
        ("COMMIT", False, "commit"),
        ("ROLLBACK", False, "rollback"),
        ("ROLLBACK TO SAVEPOINT a", False, ""),
        ("SAVEPOINT a", False, ""),
        ("SET @a = 1", False, ""),
    ],
)
def test_a_statement_says_what_it_does(text, writes, role):
    """Whether it changes rows, and whether it begins or ends a transaction."""
    (statement,) = statements(text)

    assert (statement.writes, statement.role) == (writes, role)


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("-- a comment\nSELECT 1; ", "SELECT 1"),
        ("SELECT\n    1,   2;", "SELECT 1, 2"),
        ("SELECT 1 -- one\n, 2;", "SELECT 1 , 2"),
        ("SELECT /*+ MAX_EXECUTION_TIME(5) */ 1;", "SELECT /*+ MAX_EXECUTION_TIME(5) */ 1"),
        ("/* first */ SELECT '  a\n b';", "SELECT '  a\n b'"),
        ("SELECT 1", "SELECT 1"),
        ("SELECT :a + :b", "SELECT ? + ?"),
    ],
)
def test_a_statement_is_sent_without_spaces_it_does_not_need(text, sent):
    """What is in quotes stays as it is, and hints stay too."""
    assert [one.with_marks() for one in statements(text)] == [sent]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("SELECT id, country FROM a \\gset", ["id", "country"]),
        ("SELECT a.id, b.`name` FROM a JOIN b \\gset x_", ["x_id", "x_name"]),
        ("SELECT MAX(id) AS most, COUNT(*) total FROM a\n\\gset", ["most", "total"]),
        ("SELECT DISTINCT id FROM a LIMIT 1 \\gset", ["id"]),
        ("SELECT (SELECT MAX(id) FROM b) AS b FROM a \\gset", ["b"]),
        ("WITH x AS (SELECT 1 AS y) SELECT y FROM x \\gset", ["y"]),
        ("INSERT INTO a (b) VALUES (1) RETURNING id \\gset", ["id"]),
        ("SELECT CASE WHEN a THEN 1 ELSE 2 END AS a FROM x \\gset", ["a"]),
    ],
)
def test_gset_names_its_variables_by_the_columns(text, names):
    """An alias wins, and a prefix comes first."""
    (statement,) = statements(text)

    assert list(statement.reads_into) == names


def test_insert_id_belongs_to_the_insert_before_it():
    """The table of the insert is known too."""
    (statement,) = statements("INSERT IGNORE INTO `a b` (c) VALUES (1);\n\\insert_id made")

    assert (statement.insert_id, statement.target) == ("made", "a b")


def test_commands_are_in_order_and_nested():
    """Branches have their own blocks."""
    text = (
        "\\set a 1\n\\sleep 5 ms\n\\if :a = 1\nSELECT 1;\n\\elif :a = 2\n\\else\nSELECT 2; SELECT 3;\n\\endif\nSELECT 4"
    )
    first, wait, branching, last = scripts.parse("a", "shop/a.sql", text).block

    assert (type(first), type(wait), wait.unit, type(branching)) == (Assignment, Sleep, 0.001, Branching)
    assert [len(block) for _, block in branching.branches] == [1, 0]
    assert [one.with_marks() for one in branching.otherwise] == ["SELECT 2", "SELECT 3"]
    assert isinstance(last, Statement)
    assert str(last.place) == "shop/a.sql:9:1"


def test_equal_texts_are_equal_values():
    """So that workloads can be compared and hashed."""
    text = "\\set a random(1, 5)\nSELECT :a"

    assert scripts.parse("a", "shop/a.sql", text) == scripts.parse("a", "shop/a.sql", text)
    assert hash(scripts.parse("a", "shop/a.sql", text))
