"""Digests of the rows of tables, on a server of each vendor."""

from __future__ import annotations

import pytest

from pytest_dbcluster.clusters import table_rows
from pytest_dbcluster.clusters.servers.node import Node

COLUMNS = (
    "id INT PRIMARY KEY, n DOUBLE, a BLOB, b VARCHAR(9) CHARACTER SET latin1, c BIT(3), d POINT, e JSON, f DATE, "
    "made TIMESTAMP DEFAULT CURRENT_TIMESTAMP, `o'b` INT, `v``w` DOUBLE AS (n * 2) VIRTUAL, kept DOUBLE AS (n) STORED"
)
VALUES = "(1, .1, 0xff00, 'ü', b'11', POINT(1, 2), '[1]', NULL), (2, 1e300, NULL, '', NULL, NULL, NULL, '2024-02-29')"


@pytest.fixture(params=["mariadb", "mysql"])
def node(request, briefly):
    """A server with ``digested.t``, which has columns of many types, and an equal ``digested.copy``."""
    release = request.getfixturevalue(request.param)
    node = briefly("standalone", 1, release).nodes[0]
    node.query("CREATE DATABASE `digested`")
    node.query(f"CREATE TABLE `digested`.t ({COLUMNS})")
    node.query(f"INSERT INTO `digested`.t (id, n, a, b, c, d, e, f) VALUES {VALUES}")
    node.query("CREATE TABLE `digested`.copy LIKE `digested`.t")
    node.query(table_rows.copy_statement(node, "`digested`.t", "`digested`.copy"))
    return node


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


def test_computed_columns_are_not_written(node):
    """A column with a default is."""
    assert table_rows.written_columns(node, "`digested`.t") == ["id", "n", "a", "b", "c", "d", "e", "f", "made", "o'b"]
