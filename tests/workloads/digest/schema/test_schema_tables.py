"""Tables of a schema file: columns, keys and references."""

from __future__ import annotations

import pytest

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.workloads.digest.schema.schema_tables import read_schema
from tests.workloads.digest.logs import SCHEMA, write

DUMP = """\
-- MariaDB dump 10.19
/*!40101 SET NAMES utf8mb4 */;
CREATE DATABASE shop;
USE shop;
DROP TABLE IF EXISTS `orders`;
CREATE TABLE `orders` (
  `id` bigint(20) unsigned NOT NULL AUTO_INCREMENT COMMENT 'one, two',
  `customer` int(11) NOT NULL,
  `note` varchar(20) DEFAULT 'a (b',
  PRIMARY KEY (`id`),
  UNIQUE KEY `note_key` (`note`(10)),
  KEY `by_customer` (`customer`, `note`),
  CONSTRAINT `c` FOREIGN KEY (`customer`) REFERENCES `customers` (`id`) ON DELETE CASCADE
) ENGINE=InnoDB AUTO_INCREMENT=4711 DEFAULT CHARSET=utf8mb4;
CREATE TABLE shop.customers (id int, email varchar(9) UNIQUE);
ALTER TABLE `customers` ADD PRIMARY KEY (`id`), MODIFY `id` int NOT NULL AUTO_INCREMENT;
CREATE UNIQUE INDEX both_ ON customers (id, email);
"""


def schema(path, text):
    """The tables of this text."""
    return read_schema(write(path / "schema.sql", text))[0]


def test_a_dump_has_columns_keys_and_references(tmp_path):
    """As mysqldump writes them, with quotes, comments and options."""
    orders = schema(tmp_path, DUMP).tables["orders"]

    assert list(orders.columns) == ["id", "customer", "note"]
    assert (orders.columns["note"].kind, orders.columns["note"].length) == ("VARCHAR", 20)
    assert orders.primary == ("id",)
    assert orders.uniques == [("id",), ("note",)]
    assert orders.references == {"customer": ("customers", "id")}
    assert orders.indexed == {"customer"}
    assert (orders.auto_increment, orders.next_id) == ("id", 4711)


def test_later_statements_add_keys(tmp_path):
    """ALTER TABLE and CREATE UNIQUE INDEX, as some dumps have them."""
    customers = schema(tmp_path, DUMP).get("CUSTOMERS")

    assert customers.primary == ("id",)
    assert set(customers.uniques) == {("email",), ("id",), ("id", "email")}
    assert customers.auto_increment == "id"


def test_a_column_counts_the_rows_of_the_table_that_it_refers_to(tmp_path):
    """A key that is unique by itself counts its own table's."""
    found = schema(tmp_path, SCHEMA)

    assert found.key_of("orders", "customer_id")[0].name == "customers"
    assert found.key_of("customers", "email")[0].name == "customers"
    assert found.key_of("orders", "status") is None
    assert found.key_of("items", "order_id") is None


def test_references_in_a_circle_end(tmp_path):
    """They count no table."""
    one = "CREATE TABLE {} (x INT, FOREIGN KEY (x) REFERENCES {} (x));"
    text = one.format("a", "b") + one.format("b", "a")

    assert schema(tmp_path, text).key_of("a", "x") is None


def test_members_of_an_enum_are_known(tmp_path):
    """They are texts of the schema, not of the log."""
    assert schema(tmp_path, SCHEMA).tables["customers"].columns["country"].members == ("AT", "DE")


def test_the_copy_leaves_statements_about_databases_out(tmp_path):
    """All tables of a workload are in its own database."""
    _, text = read_schema(write(tmp_path / "schema.sql", DUMP))

    assert "CREATE DATABASE" not in text
    assert "USE shop" not in text
    assert "CREATE TABLE `orders`" in text


def test_a_schema_without_tables_says_how_to_get_one(tmp_path):
    """A missing one gives the system's reason."""
    with pytest.raises(
        ConfigError, match=r"has no CREATE TABLE: write the schema .* with mysqldump --no-data DATABASE"
    ):
        schema(tmp_path, "SELECT 1;")
    with pytest.raises(ConfigError, match=r"cannot read the schema .*: No such file"):
        read_schema(tmp_path / "nothing.sql")
