"""Roles: what each parameter of a statement is compared with or written to."""

from __future__ import annotations

import pytest

from pytest_dbcluster.workloads.digest.schema.schema_tables import read_schema
from pytest_dbcluster.workloads.digest.schema.statement_roles import roles_of
from tests.workloads.digest.logs import SCHEMA, write


@pytest.fixture
def roles(tmp_path):
    """``roles(text)``: what is known of a statement."""
    schema, _ = read_schema(write(tmp_path / "schema.sql", SCHEMA))
    return lambda text: roles_of(text, schema)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT id FROM orders WHERE id = ? LIMIT ?", "equal orders.id, limit"),
        ("SELECT o.id FROM orders o JOIN customers AS c ON c.id = o.customer_id WHERE c.email LIKE ? LIMIT ?, ?",
         "like customers.email, limit, limit"),
        ("SELECT `orders`.`id` FROM `orders` WHERE (`orders`.`status` IN (?) AND `orders`.`id` NOT IN (?))",
         "list orders.status, list orders.id"),
        ("SELECT id FROM orders WHERE id BETWEEN ? AND ? AND created >= ? AND id <> ?",
         "range orders.id, range orders.id, compared orders.created, compared orders.id"),
        ("SELECT id FROM customers WHERE email = BINARY ? OR email LIKE BINARY ?",
         "equal customers.email, like customers.email"),
        ("UPDATE orders SET status = ?, customer_id = customer_id + ? WHERE id = ?",
         "assigned orders.status, delta, equal orders.id"),
        ("DELETE FROM items WHERE order_id = ? AND line = ?", "equal items.order_id, equal items.line"),
        ("INSERT INTO items VALUES (?, ?, ?), (?, LOWER(?), ?)",
         "inserted items.order_id, inserted items.line, inserted items.product, inserted items.order_id, other, "
         "inserted items.product"),
        ("INSERT INTO orders (status, customer_id) VALUES (?, ?) ON DUPLICATE KEY UPDATE status = ?",
         "inserted orders.status, inserted orders.customer_id, assigned orders.status"),
        ("SELECT ? FROM orders WHERE created > NOW() - INTERVAL ? DAY", "other, limit"),
        ("SELECT COUNT(*) FROM orders WHERE EXTRACT(YEAR FROM created) = ?", "other"),
    ],
)  # fmt: skip
def test_each_parameter_has_a_role(roles, text, expected):
    """Aliases are resolved, and columns without a table are those of the schema."""
    found = roles(text)

    assert ", ".join(f"{one.use} {one.table}.{one.column}".removesuffix(" .") for one in found.roles) == expected
    assert found.unknown == ()


def test_rows_of_an_insert_are_numbered(roles):
    """From 0."""
    assert [role.row for role in roles("INSERT INTO items VALUES (?, ?, ?), (?, ?, ?)").roles] == [0, 0, 0, 1, 1, 1]


def test_tables_that_the_schema_lacks_are_named(roles):
    """Those of a subquery too; common table expressions are no tables."""
    assert roles("SELECT 1 FROM orders, missing WHERE id IN (SELECT id FROM other)").unknown == ("missing", "other")
    assert roles("WITH x AS (SELECT id FROM orders) SELECT id FROM x").unknown == ()


def test_an_insert_that_accepts_existing_keys_is_forgiving(roles):
    """IGNORE, REPLACE and ON DUPLICATE KEY UPDATE."""
    texts = ["INSERT IGNORE INTO items VALUES (?, ?, ?)", "REPLACE INTO items VALUES (?, ?, ?)",
             "INSERT INTO items VALUES (?, ?, ?) ON DUPLICATE KEY UPDATE line = 1",
             "INSERT INTO items VALUES (?, ?, ?)"]  # fmt: skip

    assert [roles(text).forgiving for text in texts] == [True, True, True, False]
    assert {roles(text).target for text in texts} == {"items"}


def test_plain_columns_of_one_table_are_what_a_select_returns(roles):
    """Anything else returns values that a transaction cannot name."""
    assert roles("SELECT id, c.country FROM customers c WHERE email = ?").selected == (
        ("customers", "id"),
        ("customers", "country"),
    )
    assert roles("SELECT COUNT(*) FROM customers").selected == ()
    assert roles("SELECT id FROM customers, orders").selected == ()


def test_several_statements_in_one_are_known(roles):
    """A workload sends one at a time."""
    assert roles("SELECT 1; SELECT 2").several
    assert not roles("SELECT 1;").several


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("SELECT id FROM orders WHERE id = ?", "id"),
        ("SELECT id FROM orders o WHERE (o.`status` LIKE ?) LIMIT ?", "status"),
        ("DELETE FROM orders", None),
        ("SELECT id FROM orders WHERE id = ? AND status = ?", None),
        ("SELECT id FROM orders WHERE id = ? OR status = ?", None),
        ("SELECT id FROM orders WHERE id = ? AND NOT status = ?", None),
        ("SELECT o.id FROM orders o JOIN customers c ON c.id = o.customer_id WHERE c.email = ?", None),
        ("INSERT INTO orders (status) VALUES (?)", None),
    ],
)
def test_a_single_condition_decides_what_is_found(roles, text, found):
    """In a statement of one table."""
    only = roles(text).searches_by

    assert (only and only.column) == found


def test_an_aggregate_returns_one_row(roles):
    """Whatever it finds; with GROUP BY it returns others."""
    texts = {
        "SELECT COUNT(*) FROM orders WHERE id > ?": True,
        "SELECT MAX(id) AS last, MIN(id) FROM orders": True,
        "SELECT status, COUNT(*) FROM orders GROUP BY status": False,
        "SELECT id FROM orders LIMIT ?": False,
    }

    assert {text: roles(text).counts for text in texts} == texts
    assert [roles(text).limited for text in texts] == [False, False, False, True]
    assert [roles(text).grouped for text in texts] == [False, False, True, False]
    assert roles("SELECT DISTINCT status FROM orders").grouped
