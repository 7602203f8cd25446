"""Digests of the values of TPC-C that no transaction changes, computed when the tables are loaded.

A digest is the sum of the CRC-32 of all rows, for each warehouse and kind of value. All warehouses share the items;
they count for warehouse 0.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pytest_dbcluster import wait

if TYPE_CHECKING:
    from pytest_dbcluster.clusters.servers.node import Node

TABLE = "dbcluster_digests"
COLUMNS = "kind VARCHAR(20) NOT NULL, warehouse INT NOT NULL, digest BIGINT NOT NULL, PRIMARY KEY (kind, warehouse)"
ADDRESS = "{0}_street_1, {0}_street_2, {0}_city, {0}_state, {0}_zip"
DISTRICT_TEXTS = [f"s_dist_{number:02}" for number in range(1, 11)]
# A New-Order moves quantities from s_quantity to s_ytd. If less than 10 would be left, it adds 91 to s_quantity, so
# s_quantity has 91 values, 10 to 100 (clause 2.4.2.2).
STOCK = "s_quantity BETWEEN 10 AND 100, (s_quantity + s_ytd) MOD 91"


@dataclasses.dataclass(frozen=True)
class Digest:
    """One kind of value."""

    kind: str
    """The name of the kind."""

    table: str
    """The table with the values."""

    warehouse: str
    """The column with the number of the warehouse."""

    values: str
    """The expressions of its values."""

    where: str = "1"
    """The condition that selects its rows."""

    @property
    def sql(self) -> str:
        """The query for kind, warehouse, 0, and the digest; ``{s}`` stands for the schema."""
        return (
            f"SELECT '{self.kind}' kind, {self.warehouse} warehouse, 0 a, SUM(CRC32(CONCAT_WS('|', {self.values}))) b "
            f"FROM {{s}}.{self.table} WHERE {self.where} GROUP BY {self.warehouse}"
        )


DIGESTS = (
    Digest("items", "item", "i_id * 0", "i_id, i_im_id, i_name, i_price, i_data"),
    Digest("warehouse", "warehouse", "w_id", f"w_name, {ADDRESS.format('w')}, w_tax"),
    Digest("districts", "district", "d_w_id", f"d_id, d_name, {ADDRESS.format('d')}, d_tax"),
    Digest(
        "customers",
        "customer",
        "c_w_id",
        f"c_d_id, c_id, c_first, c_middle, c_last, {ADDRESS.format('c')}, c_phone, c_since, c_credit, c_credit_lim, "
        "c_discount, IF(c_credit = 'BC', '', c_data)",
    ),
    Digest("stock", "stock", "s_w_id", f"s_i_id, {STOCK}, {', '.join(DISTRICT_TEXTS)}, s_data"),
    Digest(
        "loaded orders",
        "orders",
        "o_w_id",
        "o_d_id, o_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local, IF(o_id <= 2100, IFNULL(o_carrier_id, 0), '')",
        "o_id <= 3000",
    ),
    Digest(
        "loaded lines",
        "order_line",
        "ol_w_id",
        "ol_d_id, ol_o_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_dist_info, "
        "IF(ol_o_id <= 2100, IFNULL(ol_delivery_d, ''), '')",
        "ol_o_id <= 3000",
    ),
    Digest(
        "loaded payments",
        "history",
        "h_w_id",
        "h_session, h_number, h_c_w_id, h_c_d_id, h_c_id, h_d_id, h_date, h_amount, h_data",
        "h_session <= 4294967295",
    ),
)

HALF = ("orders", "order_line", "history")  # the digests of these tables take half of the time

KEPT = f"SELECT kind, warehouse, digest a, 0 b FROM {{s}}.{TABLE}"


def keep(node: Node, schema: str) -> None:
    """Make the table of the digests in a schema with loaded tables; replace an older one."""
    halves = [[one for one in DIGESTS if (one.table in HALF) is half] for half in (False, True)]
    statements = [[one.sql.replace("{s}", schema) for one in half] for half in halves]
    found = [row for rows in _at_once(node, *statements) for row in rows]
    values = ", ".join(f"('{kind}', {warehouse}, {digest})" for kind, warehouse, _, digest in found)
    node.query(f"DROP TABLE IF EXISTS {schema}.{TABLE}")
    node.query(f"CREATE TABLE {schema}.{TABLE} ({COLUMNS})")
    node.query(f"INSERT INTO {schema}.{TABLE} VALUES {values}", wait.SLOW_SECONDS)


def _at_once(node: Node, some: Sequence[str], others: Sequence[str]) -> list[list[tuple[Any, ...]]]:
    """The rows of all statements; ``others`` run concurrently over a second connection."""
    from pytest_dbcluster.clusters.servers.connection import Connection

    with (
        contextlib.closing(Connection("digests", node.endpoint, look=node.look)) as second,
        wait.threads(1) as beside,
    ):
        waiting = beside.submit(second.batch, others, wait.SLOW_SECONDS)
        return node.batch(some, wait.SLOW_SECONDS) + waiting.result()
