"""The units of a transaction file: what a retry repeats."""

from __future__ import annotations

import pytest

from pytest_dbcluster.workloads.sql.language import flow, scripts
from pytest_dbcluster.workloads.sql.language.scripts import all_statements

ORDER = """\
\\set customer 5
SELECT id FROM customers WHERE id = :customer \\gset
BEGIN;
INSERT INTO orders VALUES (:id);
UPDATE stock SET n = n - 1;
COMMIT;
"""


def steps(text):
    """The texts of the statements of each step, and the steps that follow it."""
    found = flow.steps_of(scripts.parse("a", "shop/a.sql", text), [])
    return [
        (
            [statement.with_marks() for statement in all_statements(tuple(step.commands))],
            [following for _, following in step.branches] or step.following,
        )
        for step in found
    ]


def test_a_unit_is_a_transaction_or_one_statement():
    """What is computed before a statement belongs to its unit."""
    assert steps(ORDER) == [
        (["SELECT id FROM customers WHERE id = ?"], 2),
        (["BEGIN", "INSERT INTO orders VALUES (?)", "UPDATE stock SET n = n - 1", "COMMIT"], 0),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT 1; SELECT 2", [(["SELECT 1"], 2), (["SELECT 2"], 0)]),
        ("SELECT 1;\n\\set a 1", [(["SELECT 1"], 2), ([], 0)]),
        ("BEGIN; SELECT 1;\n\\if true\nROLLBACK;\n\\else\nCOMMIT;\n\\endif\nSELECT 2",
         [(["BEGIN", "SELECT 1", "ROLLBACK", "COMMIT"], 2), (["SELECT 2"], 0)]),
        ("\\if true\n\\set a 1\n\\else\n\\set a 2\n\\endif\nSELECT :a", [(["SELECT ?"], 0)]),
        ("\\if true\nSELECT 1;\n\\endif", [([], [2, 4]), (["SELECT 1"], 3), ([], 0), ([], 0)]),
        ("\\if true\nBEGIN; SELECT 1; COMMIT;\n\\elif false\nSELECT 2;\n\\endif\nSELECT 3",
         [([], [2, 4, 6]), (["BEGIN", "SELECT 1", "COMMIT"], 3), ([], 7), (["SELECT 2"], 5), ([], 7), ([], 7),
          (["SELECT 3"], 0)]),
    ],
)  # fmt: skip
def test_branches_choose_the_next_unit(text, expected):
    """A branch inside of a transaction is a part of its unit."""
    assert steps(text) == expected


def test_nested_branches_meet_again():
    """Every path ends at the statement behind all of them."""
    text = "\\if true\n\\if false\nSELECT 1;\n\\else\nSELECT 2;\n\\endif\n\\endif\nSELECT 3"
    found = steps(text)
    last = len(found)

    def ends(number):
        _, following = found[number - 1]
        nexts = following if isinstance(following, list) else [following]
        return {number} if nexts == [0] else {end for each in nexts for end in ends(each)}

    assert found[-1] == (["SELECT 3"], 0)
    assert ends(1) == {last}
