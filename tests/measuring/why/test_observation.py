"""What servers report, as values."""

from __future__ import annotations

from pytest_dbcluster.measuring.why.observation import ServerCounts, StatementCounts, statement_text


def test_a_statement_has_one_text_on_all_releases():
    """Digests of MariaDB end with a space, and MySQL prints some names in upper case."""
    mariadb = "SELECT `c` . `id` , COUNT ( * ) FROM `customers` `c` WHERE `c` . `email` = ? "
    mysql = "SELECT `c` . `id` , COUNT ( * ) FROM `customers` `c` WHERE `c` . `EMAIL` = ?"

    text = "select c.id, count (*) from customers c where c.email = ?"
    assert [statement_text(one) for one in (mariadb, mysql)] == [text, text]


def test_counts_of_a_round_are_a_growth():
    """Statements that did not run are left out, and so is a status variable that fell."""
    call = StatementCounts(1, 0.5, 0.1, 10, 1, 2, 1)
    before = ServerCounts({"a": call, "b": call}, {"lock": 1.0}, {"reads": 5.0, "pages": 9.0})
    now = ServerCounts(
        {"a": call + call, "b": call, "c": call}, {"lock": 1.5, "file": 2.0}, {"reads": 7.0, "pages": 8.0, "new": 1.0}
    )
    grown = now.since(before)

    assert grown.statements == {"a": call, "c": call}
    assert grown.waits == {"lock": 0.5, "file": 2.0}
    assert grown.status == {"reads": 2.0}


def test_counts_of_an_operation_are_a_share():
    """Of each figure."""
    assert StatementCounts(2, 4, 6, 8, 10, 12, 14).of_one(2) == StatementCounts(1, 2, 3, 4, 5, 6, 7)
