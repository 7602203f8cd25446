"""Conditions in WHERE and ON: those on one column, those that OR joins, joins, and what is none of them."""

from __future__ import annotations

import pytest

from pytest_dbcluster.workloads.digest.schema.schema_tables import read_schema
from pytest_dbcluster.workloads.digest.schema.statement_roles import roles_of
from tests.workloads.digest.logs import SCHEMA, write


@pytest.fixture
def read(tmp_path):
    """``read(text)``: the conditions of a statement."""
    schema, _ = read_schema(write(tmp_path / "schema.sql", SCHEMA))
    return lambda text: roles_of(text, schema).conditions


def shown(condition):
    """A condition as text."""
    return f"{condition.table}.{condition.column} {condition.operator} {condition.parameter}"


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("id = ?", "id = 0"),
        ("(`orders`.`status` = ? AND (created >= ? AND customer_id != ?)) ORDER BY ?",
         "status = 0, created >= 1, customer_id <> 2"),
        ("status LIKE BINARY ? AND id IN (?) AND created IS NULL LIMIT ?",
         "status LIKE 0, id IN 1, created IS NULL -1"),
        ("status IS NOT NULL AND id BETWEEN ? AND ? AND status = ? FOR UPDATE",
         "status IS NOT NULL -1, id BETWEEN 0, status = 2"),
    ],
)  # fmt: skip
def test_conditions_on_one_column_have_the_number_of_their_parameter(read, where, expected):
    """AND joins them, with parentheses or without."""
    found = read(f"SELECT id FROM orders WHERE {where}")

    assert ", ".join(map(shown, found.simple)) == ", ".join(f"orders.{one}" for one in expected.split(", "))
    assert (found.either, found.joins, found.unread) == ((), (), "")


def test_conditions_that_or_joins_are_one_group(read):
    """Each group is one of the parts that AND joins."""
    found = read(
        "SELECT id FROM orders WHERE customer_id = ? AND (status = ? OR (status LIKE ?) OR created BETWEEN ? AND ?) "
        "AND (id < ? OR id IS NULL)"
    )

    assert [shown(one) for one in found.simple] == ["orders.customer_id = 0"]
    assert [[shown(one) for one in group] for group in found.either] == [
        ["orders.status = 1", "orders.status LIKE 2", "orders.created BETWEEN 3"],
        ["orders.id < 5", "orders.id IS NULL -1"],
    ]
    assert found.unread == ""


@pytest.mark.parametrize(
    "text",
    [
        "SELECT o.id FROM orders o JOIN customers c ON c.id = o.customer_id AND c.country = ? WHERE o.status = ?",
        "SELECT o.id FROM orders AS o INNER JOIN customers c ON (c.id = o.customer_id) WHERE (c.country = ?) "
        "AND o.status = ? ORDER BY o.id LIMIT ?",
        "SELECT o.id FROM orders o, customers c WHERE c.id = o.customer_id AND c.country = ? AND o.status = ?",
    ],
)
def test_conditions_in_joins_are_those_of_their_tables(read, text):
    """Whether they stand in ON or in WHERE; equal columns of two tables are a join."""
    found = read(text)

    assert [shown(one) for one in found.simple] == ["customers.country = 0", "orders.status = 1"]
    assert found.joins == ((("customers", "id"), ("orders", "customer_id")),)
    assert (found.either, found.unread) == ((), "")


@pytest.mark.parametrize(
    ("text", "unread"),
    [
        ("SELECT id FROM orders WHERE id = ? AND NOT (status = ?)", "NOT ( status = ? )"),
        ("SELECT id FROM orders WHERE LOWER(status) = ? OR id = ?", "LOWER ( status ) = ? OR id = ?"),
        ("SELECT id FROM orders WHERE (id = ? AND status = ?) OR id = ?", "( id = ? AND status = ? ) OR id = ?"),
        ("SELECT id FROM orders WHERE status = (SELECT MAX(status) FROM orders)", "a subquery"),
        ("SELECT status FROM orders WHERE id > ? GROUP BY status HAVING COUNT(*) > ?", "HAVING"),
        ("SELECT o.id FROM orders o LEFT JOIN customers c ON c.id = o.customer_id WHERE o.status = ?",
         "an outer join"),
        ("SELECT a.id FROM orders a JOIN orders b ON a.id = b.customer_id", "a table that is joined with itself"),
        ("SELECT o.id FROM orders o JOIN items i USING (order_id)", "USING"),
        ("UPDATE orders o JOIN customers c ON c.id = o.customer_id SET o.status = ? WHERE c.email = ?",
         "UPDATE of several tables"),
        ("SELECT id FROM orders WHERE LEFT(status, ?) = ?", "LEFT ( status , ? ) = ?"),
        ("SELECT id FROM orders o JOIN items i ON i.order_id = o.id WHERE id > line", "id > line"),
    ],
)  # fmt: skip
def test_what_has_another_form_is_named(read, text, unread):
    """The first condition, or the word, because of which the others do not decide alone what is found."""
    assert read(text).unread == unread


def test_an_insert_has_no_conditions(read):
    """Also if it selects rows."""
    assert read("INSERT INTO orders (status) SELECT country FROM customers WHERE id = ?") == type(read("SELECT 1"))()
