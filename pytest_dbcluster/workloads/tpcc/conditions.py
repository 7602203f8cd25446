"""The consistency conditions of TPC-C (specification 5.11, clause 3.3.2), and the check for lost orders.

Each side of a condition is aggregated over all rows before the sides are compared, so that every table is read once.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_dbcluster.clusters.servers.node import Node

SCHEMA = "dbcluster_tpcc"
CHUNK = 500  # orders that one statement looks up
KINDS = ("committed", "unknown")
Order = tuple[int, int, int]  # warehouse, district, order number; all from 1


@dataclasses.dataclass(frozen=True)
class Condition:
    """One condition. sql: selects the first row that violates it: key, left value, right value."""

    number: int
    sentence: str
    sql: str


def _sides(keys: str, *sides: str) -> str:
    """The SQL of a condition: sums columns a and b of several queries by keys, and selects where the sums differ.

    ``{s}`` stands for the schema.
    """
    names = keys.split()
    key = "', ', ".join(f"'{name} ', {name}, " for name in names).rstrip(", ")
    union = " UNION ALL ".join(sides)
    group = ", ".join(names)
    return f"SELECT CONCAT({key}), SUM(a), SUM(b) FROM ({union}) sides GROUP BY {group} HAVING SUM(a) <> SUM(b) LIMIT 1"


WAREHOUSE, DISTRICT, ORDER = "warehouse", "warehouse district", "warehouse district order_number"
CUSTOMER = "CONCAT('warehouse ', c_w_id, ', district ', c_d_id, ', customer ', c_id)"
# The amount delivered to each customer. Delivered lines of the initial population have the amount 0, and are skipped.
DELIVERED = (
    "LEFT JOIN (SELECT o_w_id, o_d_id, o_c_id, SUM(ol_amount) delivered FROM {s}.order_line STRAIGHT_JOIN {s}.orders "
    "ON o_w_id = ol_w_id AND o_d_id = ol_d_id AND o_id = ol_o_id "
    "WHERE ol_delivery_d IS NOT NULL AND ol_amount <> 0 GROUP BY o_w_id, o_d_id, o_c_id) deliveries "
    "ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id"
)
PAID = (
    "LEFT JOIN (SELECT h_c_w_id, h_c_d_id, h_c_id, SUM(h_amount) paid FROM {s}.history "
    "GROUP BY h_c_w_id, h_c_d_id, h_c_id) payments ON h_c_w_id = c_w_id AND h_c_d_id = c_d_id AND h_c_id = c_id"
)

CONDITIONS = (
    Condition(
        1,
        "W_YTD = sum(D_YTD)",
        _sides(
            WAREHOUSE,
            "SELECT w_id warehouse, w_ytd a, 0 b FROM {s}.warehouse",
            "SELECT d_w_id, 0, SUM(d_ytd) FROM {s}.district GROUP BY d_w_id",
        ),
    ),
    Condition(
        2,
        "D_NEXT_O_ID - 1 = max(O_ID) = max(NO_O_ID)",
        "SELECT CONCAT('warehouse ', d_w_id, ', district ', d_id), d_next_o_id - 1, "
        "IF(last_order <=> d_next_o_id - 1, CONCAT(last_new, ' in NEW-ORDER'), last_order) FROM {s}.district "
        "LEFT JOIN (SELECT o_w_id, o_d_id, MAX(o_id) last_order FROM {s}.orders GROUP BY o_w_id, o_d_id) o "
        "ON o_w_id = d_w_id AND o_d_id = d_id "
        "LEFT JOIN (SELECT no_w_id, no_d_id, MAX(no_o_id) last_new FROM {s}.new_order GROUP BY no_w_id, no_d_id) n "
        "ON no_w_id = d_w_id AND no_d_id = d_id "
        "WHERE NOT (last_order <=> d_next_o_id - 1) OR last_new <> d_next_o_id - 1 LIMIT 1",
    ),
    Condition(
        3,
        "max(NO_O_ID) - min(NO_O_ID) + 1 = rows of NEW-ORDER",
        "SELECT CONCAT('warehouse ', no_w_id, ', district ', no_d_id), MAX(no_o_id) - MIN(no_o_id) + 1, COUNT(*) "
        "FROM {s}.new_order GROUP BY no_w_id, no_d_id HAVING MAX(no_o_id) - MIN(no_o_id) + 1 <> COUNT(*) LIMIT 1",
    ),
    Condition(
        4,
        "sum(O_OL_CNT) = rows of ORDER-LINE",
        _sides(
            DISTRICT,
            "SELECT o_w_id warehouse, o_d_id district, SUM(o_ol_cnt) a, 0 b FROM {s}.orders GROUP BY o_w_id, o_d_id",
            "SELECT ol_w_id, ol_d_id, 0, COUNT(*) FROM {s}.order_line GROUP BY ol_w_id, ol_d_id",
        ),
    ),
    Condition(
        5,
        "O_CARRIER_ID is null if and only if the order is in NEW-ORDER",
        _sides(
            ORDER,
            "SELECT o_w_id warehouse, o_d_id district, o_id order_number, 1 a, 0 b FROM {s}.orders "
            "WHERE o_carrier_id IS NULL",
            "SELECT no_w_id, no_d_id, no_o_id, 0, 1 FROM {s}.new_order",
        ),
    ),
    Condition(
        6,
        "O_OL_CNT = rows of ORDER-LINE of the order",
        "SELECT CONCAT('warehouse ', o_w_id, ', district ', o_d_id, ', order ', o_id), o_ol_cnt, IFNULL(there, 0) "
        "FROM {s}.orders LEFT JOIN (SELECT ol_w_id, ol_d_id, ol_o_id, COUNT(*) there FROM {s}.order_line "
        "GROUP BY ol_w_id, ol_d_id, ol_o_id) l ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id "
        "WHERE NOT (o_ol_cnt <=> there) LIMIT 1",
    ),
    Condition(
        7,
        "OL_DELIVERY_D is null if and only if O_CARRIER_ID of its order is",
        "SELECT CONCAT('warehouse ', ol_w_id, ', district ', ol_d_id, ', order ', ol_o_id, ', line ', ol_number), "
        "IFNULL(ol_delivery_d, 'no delivery'), IFNULL(o_carrier_id, 'no carrier') "
        "FROM {s}.order_line STRAIGHT_JOIN {s}.orders ON o_w_id = ol_w_id AND o_d_id = ol_d_id AND o_id = ol_o_id "
        "WHERE (ol_delivery_d IS NULL) <> (o_carrier_id IS NULL) LIMIT 1",
    ),
    Condition(
        8,
        "W_YTD = sum(H_AMOUNT)",
        _sides(
            WAREHOUSE,
            "SELECT w_id warehouse, w_ytd a, 0 b FROM {s}.warehouse",
            "SELECT h_w_id, 0, SUM(h_amount) FROM {s}.history GROUP BY h_w_id",
        ),
    ),
    Condition(
        9,
        "D_YTD = sum(H_AMOUNT)",
        _sides(
            DISTRICT,
            "SELECT d_w_id warehouse, d_id district, d_ytd a, 0 b FROM {s}.district",
            "SELECT h_w_id, h_d_id, 0, SUM(h_amount) FROM {s}.history GROUP BY h_w_id, h_d_id",
        ),
    ),
    Condition(
        10,
        "C_BALANCE = sum(OL_AMOUNT) of delivered lines - sum(H_AMOUNT)",
        f"SELECT {CUSTOMER}, c_balance, IFNULL(delivered, 0) - IFNULL(paid, 0) FROM {{s}}.customer {PAID} {DELIVERED} "
        "WHERE c_balance <> IFNULL(delivered, 0) - IFNULL(paid, 0) LIMIT 1",
    ),
    Condition(
        11,
        # The clause as written holds only before the first delivery: each delivery removes one row from NEW-ORDER.
        "rows of ORDER - rows of NEW-ORDER = 2100 + sum(C_DELIVERY_CNT)",
        _sides(
            DISTRICT,
            "SELECT o_w_id warehouse, o_d_id district, COUNT(*) a, 0 b FROM {s}.orders GROUP BY o_w_id, o_d_id",
            "SELECT no_w_id, no_d_id, -COUNT(*), 0 FROM {s}.new_order GROUP BY no_w_id, no_d_id",
            "SELECT c_w_id, c_d_id, 0, 2100 + SUM(c_delivery_cnt) FROM {s}.customer GROUP BY c_w_id, c_d_id",
        ),
    ),
    Condition(
        12,
        "C_BALANCE + C_YTD_PAYMENT = sum(OL_AMOUNT) of delivered lines",
        f"SELECT {CUSTOMER}, c_balance + c_ytd_payment, IFNULL(delivered, 0.00) FROM {{s}}.customer {DELIVERED} "
        "WHERE c_balance + c_ytd_payment <> IFNULL(delivered, 0) LIMIT 1",
    ),
)


def violations(nodes: Sequence[Node], conditions: Sequence[Condition] = CONDITIONS) -> list[str]:
    """One line for each condition that does not hold on a node: number, sentence, first key and both values."""

    def violated(node: Node) -> list[str]:
        return [
            f"condition {condition.number} ({condition.sentence}) on {node.name}: {key}: {left} and {right}"
            for condition in conditions
            for key, left, right in node.query(condition.sql.replace("{s}", SCHEMA))
        ]

    with concurrent.futures.ThreadPoolExecutor(len(nodes)) as asking:
        return [line for lines in asking.map(violated, nodes) for line in lines]


def acknowledged(reports: Iterable[Mapping[str, Any]]) -> dict[str, set[Order]]:
    """The New-Orders of all threads' reports: those ``committed``, and those whose commit is ``unknown``."""
    orders: dict[str, set[Order]] = {kind: set() for kind in KINDS}
    for report in reports:
        for kind in KINDS:
            orders[kind].update(tuple(order) for order in report["orders"][kind])
    return orders


def missing(node: Node, orders: Iterable[Order]) -> list[Order]:
    """The orders that a node lacks, or has without some of their lines, sorted."""
    wanted = sorted(orders)
    present: set[Order] = set()
    for first in range(0, len(wanted), CHUNK):
        keys = " OR ".join(
            f"(o_w_id = {w} AND o_d_id = {d} AND o_id = {o})" for w, d, o in wanted[first : first + CHUNK]
        )
        rows = node.query(
            f"SELECT o_w_id, o_d_id, o_id FROM {SCHEMA}.orders JOIN {SCHEMA}.order_line "
            f"ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id WHERE {keys} "
            "GROUP BY o_w_id, o_d_id, o_id, o_ol_cnt HAVING COUNT(*) = o_ol_cnt"
        )
        present.update((w, d, o) for w, d, o in rows)
    return [order for order in wanted if order not in present]
