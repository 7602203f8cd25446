"""Programs of transaction files, run by sysbench's Lua without a server."""

from __future__ import annotations

import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_dbcluster.workloads.sql.language import lua_code, scripts
from tests.workloads.sql.lua_runs import sent

DRAWS = """\
\\set a random(1, 1000000)
\\set text random_text(5)
SELECT :a, :text;
BEGIN;
\\set a :a + 1
\\set b random_zipfian(1, 1000000, 0.8)
\\set id unique_id()
UPDATE items SET stock = :a, id = :id WHERE id = :b;
COMMIT;
\\set a :a + 1
SELECT :a;
"""


def program(text, *, prepared, constants=None):
    """The program of one file."""
    script = scripts.parse("one", "shop/one.sql", text)
    return lua_code.compile_scripts([(script, 3)], constants or {}, prepared=prepared)


def test_a_retry_sends_the_same_statements(tmp_path):
    """With the same values, also of variables that depend on themselves and of unique ids."""
    once = sent(tmp_path / "once", DRAWS, times=3)
    twice = sent(tmp_path / "twice", DRAWS, times=3, tries=2)

    def unit(lines, *sizes):
        found, at = [], 0
        for size in sizes:
            found.append(lines[at : at + size])
            at += size
        return found

    assert unit(twice, *[1, 1, 3, 3, 1, 1] * 3) == [part for part in unit(once, *[1, 3, 1] * 3) for _ in range(2)]


def test_each_transaction_has_its_own_values(tmp_path):
    """They depend on its number, and on the step."""
    lines = sent(tmp_path, DRAWS, times=50)
    numbers = [re.search(r"SELECT (\d+), ", line)[1] for line in lines if ", '" in line]

    assert len(numbers) == 50
    assert len(set(numbers)) > 45


def test_statements_get_the_values_of_results(tmp_path):
    """Numbers stay numbers, texts are quoted, NULL is NULL."""
    text = "SELECT a, b, c, d FROM x \\gset got_\nSELECT :got_a, :got_b, :got_c, :got_d;"

    assert sent(tmp_path, text, answers='5, "it\'s", nil, 2.5')[1:] == ["SELECT 5, 'it''s', NULL, 2.5"]


def test_branches_depend_on_results(tmp_path):
    """A comparison with NULL is not true."""
    text = (
        "SELECT a, b FROM x \\gset\n\\if :a > 3\nSELECT 'large';\n\\elif :a > 1\nSELECT 'small';\n\\endif\n"
        "\\if :b = 'x'\nSELECT 'x';\n\\else\nSELECT 'other';\n\\endif"
    )

    assert sent(tmp_path / "a", text, answers='5, "x"')[1:] == ["SELECT 'large'", "SELECT 'x'"]
    assert sent(tmp_path / "b", text, answers="2, nil")[1:] == ["SELECT 'small'", "SELECT 'other'"]
    assert sent(tmp_path / "c", text, answers='nil, "y"')[1:] == ["SELECT 'other'"]


def test_lists_sleeps_and_rollbacks(tmp_path):
    """A list is text in the statement; a rollback by design is told."""
    text = (
        "\\set ids list(3, 5 + 1)\n\\set names list(2, 'it''s')\n\\sleep 20 ms\n\\sleep :wait us\nBEGIN;\n"
        "SELECT 1 FROM x WHERE id IN (:ids) OR name IN (:names);\nROLLBACK;"
    )

    assert sent(tmp_path, text, {"wait": 50}) == [
        "sleep 0.02",
        "sleep 5e-05",
        "BEGIN",
        "SELECT 1 FROM x WHERE id IN (6,6,6) OR name IN ('it''s','it''s')",
        "ROLLBACK",
        "rolled back",
    ]


def test_constants_are_part_of_the_statement(tmp_path):
    """A variable that the file sets begins with the value of workload.toml, in each transaction."""
    text = "SELECT :a, :b, :c, :d;\n\\set a :a + 1\nSELECT :a;"
    lines = sent(tmp_path, text, {"a": 5, "b": "it's", "c": 2.5, "d": True}, times=2)

    assert lines == ["SELECT 5, 'it''s', 2.5, TRUE", "SELECT 6"] * 2


def test_prepared_statements_have_the_types_of_their_values():
    """``?`` is known only in a run. Statements whose row is read, or with a list, are text."""
    text = (
        "\\set a 1\n\\set b 'x'\n\\set c 1.5\n\\set ids list(2, 1)\nSELECT x FROM y WHERE a = :a \\gset\n"
        "SELECT :a, :b, :c, :x, :k;\nSELECT 1 FROM y WHERE a IN (:ids);\nBEGIN; UPDATE y SET a = :a; COMMIT;"
    )
    made = program(text, prepared=True, constants={"k": 7})

    assert re.findall(r'\{"((?:SELECT|UPDATE)[^"]*)", "([^"]*)"', made.text) == [
        ("SELECT ?, ?, ?, ?, 7", "isd?"),
        ("UPDATE y SET a = ?", "i"),
    ]
    assert made.statements == ("one:5", "one:6", "one:7", "one:8", "one:8:8", "one:8:29")
    assert "SELECT ?" not in program(text, prepared=False, constants={"k": 7}).text


@pytest.mark.parametrize(
    ("text", "prepared"),
    [
        ("INSERT INTO a (b) VALUES (1) RETURNING b;", False),
        ("DELETE FROM a RETURNING b;", False),
        ("INSERT INTO a (b) VALUES ('RETURNING');", True),
        ("INSERT INTO a (`returning`) VALUES (1);", True),
        ("SELECT returning FROM a;", True),
    ],
)
def test_what_returns_rows_of_a_change_is_text(text, prepared):
    """The load generator reads prepared rows of SELECT only."""
    made = program(text, prepared=True)

    assert ("r.execute(1" in made.text) == prepared


@pytest.mark.parametrize(
    ("text", "committing"),
    [
        ("SELECT 1;", 0),
        ("INSERT INTO a VALUES (1);", 1),
        ("BEGIN; SELECT 1; COMMIT;", 0),
        ("BEGIN; DELETE FROM a; COMMIT;", 1),
        ("BEGIN; DELETE FROM a; ROLLBACK;", 0),
        ("BEGIN; DELETE FROM a;\n\\if :n\nROLLBACK;\n\\else\nDELETE FROM a; COMMIT;\n\\endif", 1),
        ("BEGIN; DELETE FROM a;\n\\if :n\nCOMMIT;\n\\elif :n\nDELETE FROM a; ROLLBACK;\n\\else\nCOMMIT;\n\\endif", 2),
    ],
)
def test_what_may_be_committed_is_marked(text, committing):
    """Only there a lost connection leaves an unknown outcome, and only that counts as a commit."""
    made = program(text, prepared=False, constants={"n": True})

    assert made.text.count("t.committing = true") == committing
    assert made.text.count("r.commits = r.commits + 1") == committing


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(max_size=30))
def test_any_text_comes_through_as_a_constant(tmp_path, text):
    """Whatever bytes it has."""
    expected = text.replace("\\", "\\\\").replace("'", "''").replace("\0", "\\0")

    assert sent(tmp_path, "SELECT :a;", {"a": text}) == [f"SELECT '{expected}'"]


def test_many_placeholders_make_one_statement(tmp_path):
    """More than a function of Lua has registers for."""
    marks = ", ".join([":a"] * 400)

    assert sent(tmp_path, f"\\set a 1\nSELECT {marks};") == ["SELECT " + ", ".join(["1"] * 400)]


def test_a_long_file_is_one_program(tmp_path):
    """More statements than a function of Lua has upvalues or locals for."""
    text = "".join(f"\\set v{number} {number} + 0\nSELECT :v{number};\n" for number in range(300))

    assert sent(tmp_path, text) == [f"SELECT {number}" for number in range(300)]
