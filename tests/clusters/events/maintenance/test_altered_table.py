"""The table of a schema change: the parts of a statement, and how a node describes the table."""

from __future__ import annotations

import threading

import pytest

from pytest_dbcluster.clusters.events.maintenance import altered_table
from pytest_dbcluster.errors import ConfigError


@pytest.mark.parametrize(
    ("statement", "parts"),
    [
        ("ALTER TABLE stock ADD INDEX q (s_quantity)", ("", "stock", "ADD INDEX q (s_quantity)")),
        ("alter table tpcc.stock\n  add column n INT;", ("tpcc", "stock", "add column n INT")),
        ("ALTER TABLE `a b`.`c` FORCE ; ", ("a b", "c", "FORCE")),
    ],
)
def test_a_statement_has_three_parts(statement, parts):
    """Schema, table and change."""
    found = altered_table.parse(statement, "Alter(statement)")

    assert (found.schema, found.table, found.change) == parts


@pytest.mark.parametrize("statement", ["DROP TABLE stock", "ALTER TABLE stock", "ALTER DATABASE a CHARACTER SET b", 3])
def test_another_statement_is_refused(statement):
    """The message shows it."""
    with pytest.raises(ConfigError) as caught:
        altered_table.parse(statement, "Alter(statement)")

    assert f"Alter(statement)={statement!r}: it accepts a statement ALTER TABLE name ..." in str(caught.value)


@pytest.mark.parametrize(
    ("change", "inverse"),
    [
        ("ADD INDEX q (a, b)", "DROP INDEX q"),
        ("add unique key `q r` (a(10), b)", "DROP INDEX `q r`"),
        ("ADD COLUMN n INT NOT NULL DEFAULT 0 COMMENT 'a, b'", "DROP COLUMN n"),
        ("ADD COLUMN n DECIMAL(10, 2)", "DROP COLUMN n"),
        ("ADD INDEX q (a), ADD INDEX r (b)", ""),
        ("ADD INDEX (a)", ""),
        ("DROP COLUMN n", ""),
        ("FORCE", ""),
    ],
)
def test_only_one_addition_has_an_inverse(change, inverse):
    """An index or a column with a name."""
    assert altered_table.parse(f"ALTER TABLE t {change}", "x").inverse == inverse


def test_a_state_ignores_the_rows_of_the_load(standalone):
    """An insert moves the counter, but leaves the state. A copy of the table changes its id."""
    [node] = standalone.nodes
    node.query("CREATE DATABASE altered_state")
    try:
        node.query("CREATE TABLE altered_state.one (id INT PRIMARY KEY AUTO_INCREMENT, n INT)")
        before = altered_table.state(node, "altered_state", "one")
        node.query("INSERT INTO altered_state.one (n) VALUES (1), (2)")
        filled = altered_table.state(node, "altered_state", "one")
        node.query("ALTER TABLE altered_state.one FORCE")
        copied = altered_table.state(node, "altered_state", "one")

        assert before == filled
        assert before.definition == copied.definition
        assert before.table_id != copied.table_id != ""
        assert altered_table.find_schema(node, altered_table.AlterTable("", "one", "FORCE")) == "altered_state"
        with pytest.raises(ConfigError, match=r"no such table; the tables are altered_state\.one"):
            altered_table.find_schema(node, altered_table.AlterTable("mysql2", "one", "FORCE"))
    finally:
        node.query("DROP DATABASE altered_state")


def test_a_table_is_described_while_changes_arrive(galera2):
    """Each change ends the statements of its table on the other node, so they run again."""
    writer, other = galera2.nodes
    writer.query("CREATE DATABASE altered_often")
    over = threading.Event()

    def change():
        with writer.separate() as connection:
            while not over.is_set():
                connection.query("ALTER TABLE altered_often.one ADD INDEX by_n (n)")
                connection.query("ALTER TABLE altered_often.one DROP INDEX by_n")

    changing = threading.Thread(target=change)
    try:
        writer.query("CREATE TABLE altered_often.one (id INT PRIMARY KEY, n INT)")
        other.query("SET SESSION wsrep_sync_wait = 1")
        other.query("SELECT 1 FROM altered_often.one")
        other.query("SET SESSION wsrep_sync_wait = DEFAULT")
        changing.start()
        found = {altered_table.state(other, "altered_often", "one").definition for _ in range(300)}
    finally:
        over.set()
        if changing.ident:
            changing.join()
        writer.query("DROP DATABASE altered_often")
    assert sorted("by_n" in definition for definition in found) == [False, True]
