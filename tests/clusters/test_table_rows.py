"""Digests of the rows of tables, on a server of each vendor and on a group."""

from __future__ import annotations

import pytest

from pytest_dbcluster.clusters import table_rows
from pytest_dbcluster.clusters.servers.node import Node
from pytest_dbcluster.errors import SeriesVoid

COLUMNS = (
    "id INT PRIMARY KEY, n DOUBLE, a BLOB, b VARCHAR(9) CHARACTER SET latin1, c BIT(3), d POINT, e JSON, f DATE, "
    "made TIMESTAMP DEFAULT CURRENT_TIMESTAMP, `o'b` INT, `v``w` DOUBLE AS (n * 2) VIRTUAL, kept DOUBLE AS (n) STORED"
)
VALUES = "(1, .1, 0xff00, 'ü', b'11', POINT(1, 2), '[1]', NULL), (2, 1e300, NULL, '', NULL, NULL, NULL, '2024-02-29')"


def make_table(node):
    """Make ``digested.t`` with two rows."""
    node.query("CREATE DATABASE `digested`")
    node.query(f"CREATE TABLE `digested`.t ({COLUMNS})")
    node.query(f"INSERT INTO `digested`.t (id, n, a, b, c, d, e, f) VALUES {VALUES}")


@pytest.fixture(scope="module", params=["mariadb", "mysql"])
def server(request, bring):
    """A server of each vendor."""
    made = bring("standalone", 1, request.getfixturevalue(request.param))
    yield made.nodes[0]
    made.close()


@pytest.fixture
def node(server):
    """The server with ``digested.t``, which has columns of many types, and an equal ``digested.copy``."""
    make_table(server)
    server.query("CREATE TABLE `digested`.copy LIKE `digested`.t")
    server.query(table_rows.copy_statement(server, "`digested`.t", "`digested`.copy"))
    yield server
    server.query("DROP DATABASE `digested`")


def test_stored_columns_decide_whether_a_copy_is_equal(node, monkeypatch):
    """CHECKSUM TABLE may differ for equal rows with a virtual column; a changed value and a lost row are found."""
    query = Node.query
    monkeypatch.setattr(  # as MariaDB answers for some tables
        Node,
        "query",
        lambda node, text, *how: (
            [("", 1), ("", 2)] if text.startswith("CHECKSUM TABLE `digested`.t,") else query(node, text, *how)
        ),
    )
    copies = {"`digested`.t": "`digested`.copy"}

    assert table_rows.changed_tables(node, copies) == []
    node.query("UPDATE `digested`.t SET a = 0xff01 WHERE id = 1")
    assert table_rows.changed_tables(node, copies) == ["`digested`.t"]
    node.query("UPDATE `digested`.t SET a = 0xff00 WHERE id = 1")
    assert table_rows.changed_tables(node, copies) == []
    node.query("DELETE FROM `digested`.t WHERE id = 2")
    assert table_rows.changed_tables(node, copies) == ["`digested`.t"]


def test_a_digest_is_that_of_the_rows(node):
    """Of a table with virtual columns and of another one; a missing table has none."""
    node.query("CREATE TABLE digested.plain (id INT PRIMARY KEY)")
    with_virtual = [table_rows.rows_digest(node, f"`digested`.{name}") for name in ("t", "copy")]
    empty = table_rows.rows_digest(node, "digested.plain")
    node.query("INSERT INTO digested.plain VALUES (1)")

    assert with_virtual[0] == with_virtual[1]
    assert with_virtual[0].startswith("2 ")
    assert table_rows.rows_digest(node, "digested.plain") != empty
    assert table_rows.rows_digest(node, "`digested`.nothing") is None


@pytest.mark.parametrize("name", ["order-items", "o'b", "a.b", "v``w", "back\\slash"])
def test_indexes_of_a_table_with_any_name_are_found(node, name):
    """Their names and that of the table are as SQL needs them."""
    table = f"`digested`.`{name}`"
    node.query(f"CREATE TABLE {table} (id INT PRIMARY KEY, n INT, KEY `by-n` (n))")

    assert sorted(table_rows.indexes(node, table)) == ["`PRIMARY`", "`by-n`"]
    assert [node.query(f"SELECT COUNT(*) FROM {table} FORCE INDEX ({one})") for one in table_rows.indexes(node, table)]


def test_computed_columns_are_not_written(node):
    """A column with a default is."""
    assert table_rows.written_columns(node, "`digested`.t") == ["id", "n", "a", "b", "c", "d", "e", "f", "made", "o'b"]


def test_a_row_that_differs_between_the_members_of_a_group_is_found(briefly, mysql):
    """In a table with virtual columns and in another one. A row that is equal again leaves the members equal."""
    group = briefly("group_replication", 2, mysql)
    writer = group.writers[0]
    make_table(writer)
    writer.query("CREATE TABLE `digested`.plain (id INT PRIMARY KEY)")
    writer.query("INSERT INTO `digested`.plain VALUES (1), (2)")
    tables = ["`digested`.t", "`digested`.plain"]
    group.check(tables)

    for table, change, undo in (
        (
            tables[0],
            f"UPDATE {tables[0]} SET a = 0xff01 WHERE id = 1",
            f"UPDATE {tables[0]} SET a = 0xff00 WHERE id = 1",
        ),
        (tables[1], f"DELETE FROM {tables[1]} WHERE id = 2", f"INSERT INTO {tables[1]} VALUES (2)"),
    ):
        writer.batch(["SET SESSION sql_log_bin = 0", change])
        with pytest.raises(SeriesVoid, match=f"table {table} differs between nodes: "):
            group.check(tables)
        writer.batch(["SET SESSION sql_log_bin = 0", undo, "SET SESSION sql_log_bin = 1"])
        group.check(tables)
