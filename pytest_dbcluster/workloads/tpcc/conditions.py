"""The consistency conditions of TPC-C: 1 to 12 of the specification (5.11, clause 3.3.2), and more from 13 on.

The others compare what the transactions write (clauses 2.4 to 2.7) except dates and carriers. They also compare what no
transaction changes (``digests``). We aggregate each side of a condition over all rows before we compare the sides, to
read every table once. A scan asks several conditions at once; they are asked one by one only if one does not hold.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pytest_dbcluster import wait
from pytest_dbcluster.workloads.tpcc import digests

if TYPE_CHECKING:
    from pytest_dbcluster.clusters.servers.connection import Connection
    from pytest_dbcluster.clusters.servers.node import Node

SCHEMA = "dbcluster_tpcc"


@dataclasses.dataclass(frozen=True)
class Condition:
    """A consistency condition."""

    number: int
    """The number of the condition in messages."""

    sentence: str
    """The condition as a formula or a sentence."""

    sql: str
    """The statement that selects the first row that violates it: key, left value, right value."""


@dataclasses.dataclass(frozen=True)
class Scan:
    """Several conditions that one statement asks at once."""

    numbers: frozenset[int]
    """The numbers of the conditions."""

    sql: str
    """The statement that selects a row if one of them does not hold."""


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
# The amount delivered to each customer. We skip delivered lines of the initial population: their amount is 0.
DELIVERED = (
    "LEFT JOIN (SELECT o_w_id, o_d_id, o_c_id, SUM(ol_amount) delivered FROM {s}.order_line STRAIGHT_JOIN {s}.orders "
    "ON o_w_id = ol_w_id AND o_d_id = ol_d_id AND o_id = ol_o_id "
    "WHERE ol_delivery_d IS NOT NULL AND ol_amount <> 0 GROUP BY o_w_id, o_d_id, o_c_id) deliveries "
    "ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id"
)
PAID = (
    "LEFT JOIN (SELECT h_c_w_id, h_c_d_id, h_c_id, SUM(h_amount) paid, COUNT(*) times FROM {s}.history "
    "GROUP BY h_c_w_id, h_c_d_id, h_c_id) payments ON h_c_w_id = c_w_id AND h_c_d_id = c_d_id AND h_c_id = c_id"
)
LINE = "CONCAT('warehouse ', ol_w_id, ', district ', ol_d_id, ', order ', ol_o_id, ', line ', ol_number)"
# The initial population has the orders 1 to 3000 of each district, 2100 of them delivered (clause 4.3.3.1). The session
# of its payments is the number of a warehouse. Sessions of terminals are times (tpcc.lua), and far larger.
DELIVERED_BEFORE = 2100
NEW_LINE = "ol_o_id > 3000"
NEW_PAYMENT = "h_session > 4294967295"
S_DIST = f"ELT(ol_d_id, {', '.join(f's_dist_{number:02}' for number in range(1, 11))})"

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
    # Our conditions: what the transactions write by clauses 2.4 to 2.7, and what 3.3.2 does not check.
    Condition(
        13,
        "S_YTD, S_ORDER_CNT, S_REMOTE_CNT = sum(OL_QUANTITY), rows, remote rows of new ORDER-LINE",
        "SELECT CONCAT('warehouse ', warehouse, ', item ', item), CONCAT_WS(' ', SUM(s_ytd), SUM(s_order_cnt), "
        "SUM(s_remote_cnt)), CONCAT_WS(' ', SUM(ordered), SUM(times), SUM(remote)) FROM "
        "(SELECT s_w_id warehouse, s_i_id item, s_ytd, s_order_cnt, s_remote_cnt, 0 ordered, 0 times, 0 remote "
        "FROM {s}.stock WHERE s_ytd <> 0 OR s_order_cnt <> 0 OR s_remote_cnt <> 0 UNION ALL "
        "SELECT ol_supply_w_id, ol_i_id, 0, 0, 0, SUM(ol_quantity), COUNT(*), SUM(ol_supply_w_id <> ol_w_id) "
        f"FROM {{s}}.order_line WHERE {NEW_LINE} GROUP BY ol_supply_w_id, ol_i_id) sides GROUP BY warehouse, item "
        "HAVING SUM(s_ytd) <> SUM(ordered) OR SUM(s_order_cnt) <> SUM(times) OR SUM(s_remote_cnt) <> SUM(remote) "
        "LIMIT 1",
    ),
    Condition(
        14,
        "C_PAYMENT_CNT = rows of HISTORY of the customer",
        f"SELECT {CUSTOMER}, c_payment_cnt, IFNULL(payments.times, 0) FROM {{s}}.customer {PAID} "
        "WHERE c_payment_cnt <> IFNULL(payments.times, 0) LIMIT 1",
    ),
    Condition(
        15,
        "OL_AMOUNT = OL_QUANTITY * I_PRICE of new lines",
        f"SELECT {LINE}, ol_amount, IFNULL(ol_quantity * i_price, 'no item') FROM {{s}}.order_line "
        f"LEFT JOIN {{s}}.item ON i_id = ol_i_id WHERE {NEW_LINE} "
        "AND NOT (ol_amount <=> ol_quantity * i_price) LIMIT 1",
    ),
    Condition(
        16,
        "OL_DIST_INFO = S_DIST of new lines",
        f"SELECT {LINE}, ol_dist_info, IFNULL({S_DIST}, 'no stock') FROM {{s}}.order_line "
        "LEFT JOIN {s}.stock ON s_w_id = ol_supply_w_id AND s_i_id = ol_i_id "
        f"WHERE {NEW_LINE} AND NOT (ol_dist_info <=> {S_DIST}) LIMIT 1",
    ),
    Condition(
        17,
        "C_DELIVERY_CNT = orders of the customer delivered since the load",
        _sides(
            "warehouse district customer",
            "SELECT c_w_id warehouse, c_d_id district, c_id customer, c_delivery_cnt a, 0 b FROM {s}.customer "
            "WHERE c_delivery_cnt <> 0",
            "SELECT o_w_id, o_d_id, o_c_id, 0, COUNT(*) FROM {s}.orders "
            f"WHERE o_id > {DELIVERED_BEFORE} AND o_carrier_id IS NOT NULL GROUP BY o_w_id, o_d_id, o_c_id",
        ),
    ),
    Condition(
        18,
        "H_DATA = W_NAME, four spaces and D_NAME of new payments",
        "SELECT CONCAT('session ', h_session, ', payment ', h_number), h_data, "
        "IFNULL(CONCAT(w_name, '    ', d_name), 'no district') FROM {s}.history "
        "LEFT JOIN {s}.district ON d_w_id = h_w_id AND d_id = h_d_id LEFT JOIN {s}.warehouse ON w_id = h_w_id "
        f"WHERE {NEW_PAYMENT} AND NOT (h_data <=> CONCAT(w_name, '    ', d_name)) LIMIT 1",
    ),
    Condition(
        19,
        "C_DATA of a customer with bad credit begins with a note of each new payment",
        f"SELECT {CUSTOMER}, CONCAT(c_payment_cnt - 1, ' payments'), LEFT(c_data, 40) FROM {{s}}.customer "
        "WHERE c_credit = 'BC' AND c_payment_cnt > 1 "
        "AND (c_data NOT LIKE CONCAT(c_id, ' ', c_d_id, ' ', c_w_id, ' %|%') "
        "OR LENGTH(c_data) < 500 AND LENGTH(c_data) - LENGTH(REPLACE(c_data, '|', '')) <> c_payment_cnt - 1) LIMIT 1",
    ),
    Condition(
        20,
        "what no transaction changes is as it was loaded",
        _sides("kind warehouse", digests.KEPT, *(each.sql for each in digests.DIGESTS)),
    ),
)

# Alone, the conditions of the first scan take 6.2 s with 10 warehouses, because each sums by customer again.
SCANS = (
    Scan(
        frozenset({10, 12, 14}),
        f"SELECT 1 FROM {{s}}.customer {PAID} {DELIVERED} WHERE c_balance <> IFNULL(delivered, 0) - IFNULL(paid, 0) "
        "OR c_balance + c_ytd_payment <> IFNULL(delivered, 0) OR c_payment_cnt <> IFNULL(payments.times, 0) LIMIT 1",
    ),
    Scan(
        frozenset({6, 7}),
        "SELECT 1 FROM {s}.orders LEFT JOIN (SELECT ol_w_id, ol_d_id, ol_o_id, COUNT(*) there, "
        "SUM(ol_delivery_d IS NULL) undelivered FROM {s}.order_line GROUP BY ol_w_id, ol_d_id, ol_o_id) l "
        "ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id "
        "WHERE NOT (o_ol_cnt <=> there) OR undelivered <> IF(o_carrier_id IS NULL, there, 0) LIMIT 1",
    ),
    Scan(
        frozenset({15, 16}),
        "SELECT 1 FROM {s}.order_line LEFT JOIN {s}.item ON i_id = ol_i_id "
        "LEFT JOIN {s}.stock ON s_w_id = ol_supply_w_id AND s_i_id = ol_i_id "
        f"WHERE {NEW_LINE} AND NOT (ol_amount <=> ol_quantity * i_price AND ol_dist_info <=> {S_DIST}) LIMIT 1",
    ),
)
# By default a server puts sums beyond 16 MiB on its disk. A server with a larger limit keeps its own. MySQL 9.7
# refuses GREATEST without the cast (error 1232).
_LIMIT = f"CAST(GREATEST(@@{{0}}, {64 * 2**20}) AS UNSIGNED)".format
IN_MEMORY = "SET SESSION " + ", ".join(f"{name} = {_LIMIT(name)}" for name in ("tmp_table_size", "max_heap_table_size"))
AS_BEFORE = "SET SESSION tmp_table_size = DEFAULT, max_heap_table_size = DEFAULT"


def violations(nodes: Sequence[Node], conditions: Sequence[Condition] = CONDITIONS) -> list[str]:
    """One line for each condition that does not hold on a node: number, sentence, first key and both values."""
    with wait.threads(len(nodes)) as asking:
        return [
            line for lines in asking.map(_violations_on, nodes, [_parts(conditions)] * len(nodes)) for line in lines
        ]


def violations_of_equal(nodes: Sequence[Node], conditions: Sequence[Condition] = CONDITIONS) -> list[str]:
    """As ``violations``, for nodes with equal tables: each condition is checked on one node, round-robin.

    A single node gets two connections, because a server uses one core for each statement.
    """
    parts = _parts(conditions)
    with contextlib.ExitStack() as ending:
        asked: list[Node | Connection] = [*nodes]
        if len(nodes) == 1:
            asked.append(ending.enter_context(nodes[0].separate()))
        asking = ending.enter_context(wait.threads(len(asked)))
        several = asking.map(_violations_on, asked, [parts[number :: len(asked)] for number in range(len(asked))])
        return [line for lines in several for line in lines]


Part = tuple[Scan | None, Sequence[Condition]]


def _parts(conditions: Sequence[Condition]) -> list[Part]:
    """These conditions, each alone or with those of its scan."""
    given = {condition.number for condition in conditions}
    scans = [scan for scan in SCANS if scan.numbers <= given]
    scanned = frozenset[int]().union(*(scan.numbers for scan in scans))
    alone: list[Part] = [(None, [condition]) for condition in conditions if condition.number not in scanned]
    return alone + [(scan, [one for one in conditions if one.number in scan.numbers]) for scan in scans]


def _violations_on(node: Node | Connection, parts: Sequence[Part]) -> list[str]:
    node.query(IN_MEMORY)
    try:
        asked = [condition for scan, several in parts if scan is None or _rows(node, scan.sql) for condition in several]
        return [
            f"condition {condition.number} ({condition.sentence}) on {node.name}: {key}: {left} and {right}"
            for condition in asked
            for key, left, right in _rows(node, condition.sql)
        ]
    finally:
        node.query(AS_BEFORE)


def _rows(node: Node | Connection, sql: str) -> Sequence[tuple[Any, ...]]:
    return node.query(sql.replace("{s}", SCHEMA), wait.SLOW_SECONDS)
