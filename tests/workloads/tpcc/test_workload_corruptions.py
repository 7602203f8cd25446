"""What a run sees itself: changes of the tables that were made on all nodes, so that no node differs from another."""

from __future__ import annotations

import itertools
import re

import pytest

from pytest_dbcluster.clusters.servers.connection import Connection
from pytest_dbcluster.errors import SeriesVoid
from pytest_dbcluster.testbed import pool as pools
from pytest_dbcluster.testbed.pool import Pool
from pytest_dbcluster.testbed.resolution import Resolution
from pytest_dbcluster.workloads.tpcc import books
from pytest_dbcluster.workloads.tpcc.conditions import S_DIST
from pytest_dbcluster.workloads.tpcc.workload import SCHEMA, TPCC
from tests.support.facts import missing
from tests.support.testbeds import TWO, source

SAVED = f"{SCHEMA}_saved"
# The last order of a district, which is undelivered, its first line whose item the order has once, and another item
# that no order has; a payment; a customer with bad credit who has paid; two customers of a district, of whom one got a
# delivery. Each number is another district.
CHOSEN = (
    "SELECT no_d_id, MAX(no_o_id) INTO @d, @o FROM new_order WHERE no_o_id > 3000 GROUP BY no_d_id LIMIT {number}, 1",
    "SELECT MIN(ol_number), ol_i_id, ol_quantity INTO @line, @item, @quantity FROM order_line "
    "WHERE ol_w_id = 1 AND ol_d_id = @d AND ol_o_id = @o GROUP BY ol_i_id, ol_quantity HAVING COUNT(*) = 1 LIMIT 1",
    "SELECT MIN(s_i_id) INTO @other FROM stock WHERE s_order_cnt = 0",
    "SELECT h_session, h_number INTO @session, @number FROM history WHERE h_session > 10 LIMIT 1",
    "SELECT c_d_id, c_id INTO @bad_d, @bad FROM customer WHERE c_credit = 'BC' AND c_payment_cnt > 1 LIMIT 1",
    "SELECT c_d_id, c_id INTO @got_d, @got FROM customer WHERE c_delivery_cnt = 1 LIMIT 1",
    "SELECT c_id INTO @none FROM customer WHERE c_w_id = 1 AND c_d_id = @got_d AND c_delivery_cnt = 0 LIMIT 1",
)
ORDER = {"orders": "o_w_id = 1 AND o_d_id = @d AND o_id = @o"}
LINES = {"order_line": "ol_w_id = 1 AND ol_d_id = @d AND ol_o_id = @o"}
LINE = {"order_line": "ol_w_id = 1 AND ol_d_id = @d AND ol_o_id = @o AND ol_number = @line"}
BUYER = (
    "c_w_id = 1 AND c_d_id = @d AND c_id = (SELECT o_c_id FROM orders WHERE o_w_id = 1 AND o_d_id = @d AND o_id = @o)"
)
# As if a line had never been, or had been: s_quantity stays within its 91 values.
UNDONE = (
    "UPDATE stock SET s_ytd = s_ytd - {quantity}, s_order_cnt = s_order_cnt - {times}, "
    "s_quantity = 10 + MOD(s_quantity + {quantity} - 10, 91)"
)
DONE = (
    "UPDATE stock SET s_ytd = s_ytd + @quantity, s_order_cnt = s_order_cnt + 1, "
    "s_quantity = 10 + MOD(s_quantity + 91 - @quantity - 10, 91) WHERE s_w_id = 1 AND s_i_id = @other"
)
OF_ITEM = "FROM order_line WHERE ol_w_id = 1 AND ol_d_id = @d AND ol_o_id = @o AND ol_i_id = s_i_id"
BOUGHT = "s_w_id = 1 AND s_i_id IN (SELECT ol_i_id FROM order_line WHERE ol_w_id = 1 AND ol_d_id = @d AND ol_o_id = @o)"

# Name: rows that it changes, statements, the condition that finds it, and others that it may break.
BROKEN = {
    "payments of a warehouse": (
        {"warehouse": "w_id = 1"},
        ["UPDATE warehouse SET w_ytd = w_ytd + 1 WHERE w_id = 1"],
        (1, 8),
    ),
    "payments moved between districts": (
        {"district": "1"},
        ["UPDATE district SET d_ytd = d_ytd + 5 - 10 * (d_id = 2) WHERE d_id < 3"],
        (9,),
    ),
    "the next order number": (
        {"district": "d_w_id = 1 AND d_id = @d"},
        ["UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = 1 AND d_id = @d"],
        (2,),
    ),
    "a balance": (
        {"customer": BUYER},
        [f"UPDATE customer SET c_balance = c_balance + 1 WHERE {BUYER}"],
        (10, 12),
    ),
    "a payment count": (
        {"customer": BUYER},
        [f"UPDATE customer SET c_payment_cnt = c_payment_cnt + 1 WHERE {BUYER}"],
        (14, 19),
    ),
    "a delivery counted for another customer": (
        {"customer": "c_w_id = 1 AND c_d_id = @got_d AND c_id IN (@got, @none)"},
        [
            "UPDATE customer SET c_delivery_cnt = 1 - c_delivery_cnt "
            "WHERE c_w_id = 1 AND c_d_id = @got_d AND c_id IN (@got, @none)"
        ],
        (17,),
    ),
    "the notes of bad credit": (
        {"customer": "c_w_id = 1 AND c_d_id = @bad_d AND c_id = @bad"},
        [
            "UPDATE customer SET c_data = SUBSTR(c_data, 1 + LOCATE('|', c_data)) "
            "WHERE c_w_id = 1 AND c_d_id = @bad_d AND c_id = @bad"
        ],
        (19,),
    ),
    "a payment of another customer": (
        {"history": "h_session = @session AND h_number = @number"},
        ["UPDATE history SET h_c_id = MOD(h_c_id, 3000) + 1 WHERE h_session = @session AND h_number = @number"],
        (14, 10),
    ),
    "a delivery without its lines": (
        {**ORDER, "new_order": "no_w_id = 1 AND no_d_id = @d AND no_o_id = @o"},
        [
            "UPDATE orders SET o_carrier_id = 1 WHERE o_w_id = 1 AND o_d_id = @d AND o_id = @o",
            "DELETE FROM new_order WHERE no_w_id = 1 AND no_d_id = @d AND no_o_id = @o",
        ],
        (7, 2, 11, 17),
    ),
    "an undelivered amount": (
        LINE,
        [
            "UPDATE order_line SET ol_amount = ol_amount + 1 "
            "WHERE ol_w_id = 1 AND ol_d_id = @d AND ol_o_id = @o AND ol_number = @line"
        ],
        (15,),
    ),
    "an undelivered amount of the load": (
        {"order_line": "ol_w_id = 1 AND ol_d_id = 1 AND ol_o_id = 3000"},
        ["UPDATE order_line SET ol_amount = ol_amount + 1 WHERE ol_w_id = 1 AND ol_d_id = 1 AND ol_o_id = 3000"],
        (20,),
    ),
    "a stock quantity": (
        {"stock": "s_w_id = 1 AND s_i_id = @item"},
        ["UPDATE stock SET s_quantity = IF(s_quantity = 50, 51, 50) WHERE s_w_id = 1 AND s_i_id = @item"],
        (20,),
    ),
    "the orders of an item": (
        {"stock": "s_w_id = 1 AND s_i_id = @item"},
        ["UPDATE stock SET s_order_cnt = s_order_cnt - 1 WHERE s_w_id = 1 AND s_i_id = @item"],
        (13,),
    ),
}
# No corruption of a group breaks a condition that finds another one of it.
TOGETHER = (
    (
        "payments of a warehouse",
        "payments moved between districts",
        "the next order number",
        "a balance",
        "a delivery counted for another customer",
        "the notes of bad credit",
        "an undelivered amount",
        "an undelivered amount of the load",
        "the orders of an item",
    ),
    ("a payment count", "a delivery without its lines", "a stock quantity"),
    ("a payment of another customer",),
)
# Name: rows that it changes, and statements.
REWRITTEN = {
    "an order's customer": (
        ORDER,
        ["UPDATE orders SET o_c_id = MOD(o_c_id, 3000) + 1 WHERE o_w_id = 1 AND o_d_id = @d AND o_id = @o"],
    ),
    "an order replaced by another of equal length": (
        {**LINE, "stock": "s_w_id = 1 AND s_i_id IN (@item, @other)"},
        [
            UNDONE.format(quantity="@quantity", times=1) + " WHERE s_w_id = 1 AND s_i_id = @item",
            "UPDATE order_line JOIN item ON i_id = @other JOIN stock ON s_w_id = 1 AND s_i_id = @other "
            f"SET ol_i_id = @other, ol_amount = ol_quantity * i_price, ol_dist_info = {S_DIST} "
            "WHERE ol_w_id = 1 AND ol_d_id = @d AND ol_o_id = @o AND ol_number = @line",
            DONE,
        ],
    ),
    "an order lost with all that it changed": (
        {
            "stock": BOUGHT,
            **LINES,
            **ORDER,
            "new_order": "no_w_id = 1 AND no_d_id = @d AND no_o_id = @o",
            "district": "d_w_id = 1 AND d_id = @d",
        },
        [
            UNDONE.format(quantity=f"(SELECT SUM(ol_quantity) {OF_ITEM})", times=f"(SELECT COUNT(*) {OF_ITEM})")
            + f" WHERE {BOUGHT}",
            "DELETE FROM order_line WHERE ol_w_id = 1 AND ol_d_id = @d AND ol_o_id = @o",
            "DELETE FROM orders WHERE o_w_id = 1 AND o_d_id = @d AND o_id = @o",
            "DELETE FROM new_order WHERE no_w_id = 1 AND no_d_id = @d AND no_o_id = @o",
            "UPDATE district SET d_next_o_id = @o WHERE d_w_id = 1 AND d_id = @d",
        ],
    ),
    "an order written twice with all that it changes": (
        {
            "stock": BOUGHT,
            "order_line": "ol_w_id = 1 AND ol_d_id = @d AND ol_o_id IN (@o, @o + 1)",
            "orders": "o_w_id = 1 AND o_d_id = @d AND o_id IN (@o, @o + 1)",
            "new_order": "no_w_id = 1 AND no_d_id = @d AND no_o_id IN (@o, @o + 1)",
            "district": "d_w_id = 1 AND d_id = @d",
        },
        [
            UNDONE.format(
                quantity=f"-(SELECT SUM(ol_quantity) {OF_ITEM})", times=f"-(SELECT COUNT(*) {OF_ITEM})"
            ).replace("MOD(s_quantity", "MOD(s_quantity + 182")
            + f" WHERE {BOUGHT}",
            "INSERT INTO order_line SELECT ol_o_id + 1, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, "
            "ol_delivery_d, ol_quantity, ol_amount, ol_dist_info "
            "FROM order_line WHERE ol_w_id = 1 AND ol_d_id = @d AND ol_o_id = @o",
            "INSERT INTO orders SELECT o_id + 1, o_d_id, o_w_id, o_c_id, o_entry_d, o_carrier_id, o_ol_cnt, "
            "o_all_local FROM orders WHERE o_w_id = 1 AND o_d_id = @d AND o_id = @o",
            "INSERT INTO new_order VALUES (@o + 1, @d, 1)",
            "UPDATE district SET d_next_o_id = @o + 2 WHERE d_w_id = 1 AND d_id = @d",
        ],
    ),
}


def of_district(number, *statements):
    """Statements with the variables of a district, by its number."""
    return [re.sub(r"@\w+", rf"\g<0>_{number}", one.format(number=number)) for one in statements]


@pytest.fixture(scope="module")
def ran(provisioner, tpcc_templates, tmp_path_factory):
    """A testbed of two Galera nodes that has run a round of TPC-C on all nodes, and a connection to one of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pools, "dataset_template", lambda *_: tpcc_templates("mariadb"))
        nothing = tmp_path_factory.mktemp("fragments")
        pool = Pool(Resolution(provisioner, fragments=nothing, below={}, progress=lambda line: None))
        try:
            made = source(pool, TPCC(threads=4, to="all", seconds=1.5), TWO)
            made.round(0, block=0, position=0)
            made.check()
            editor = Connection("editor", pool.clusters[0].nodes[0].endpoint)
            chosen = [one for number in range(len(REWRITTEN)) for one in of_district(number, *CHOSEN)]
            editor.run([f"CREATE DATABASE {SAVED}", f"USE {SCHEMA}", *chosen])
            yield made, pool.clusters[0], editor
            editor.close()
        finally:
            pool.close()


def found_after(ran, corruptions):
    """What the check says of these rows and statements of districts; afterwards everything is as it was."""
    made, cluster, editor = ran
    touched = [
        (table, of_district(number, where)[0]) for number, rows, _ in corruptions for table, where in rows.items()
    ]
    saved = [f"{SAVED}.{table}_{number}" for number, (table, _) in enumerate(touched)]
    for place, (table, rows) in zip(saved, touched, strict=True):
        editor.run([f"CREATE TABLE {place} LIKE {table}", f"INSERT INTO {place} SELECT * FROM {table} WHERE {rows}"])
    try:
        for number, _, deeds in corruptions:
            editor.run(of_district(number, *deeds))
        with pytest.raises(SeriesVoid) as caught:
            made.check()
    finally:
        for place, (table, rows) in zip(saved, touched, strict=True):
            back = f"REPLACE INTO {table} SELECT * FROM {place}"
            editor.run([f"DELETE FROM {table} WHERE {rows}", back, f"DROP TABLE {place}"])
        cluster.dirty = ""
    return str(caught.value).partition(" the workload's check failed: ")[2]


@pytest.mark.parametrize("names", TOGETHER, ids=["several", "others", "a payment"])
def test_a_run_sees_rows_that_were_changed_on_all_nodes(ran, names):
    """The check at the end of its rounds finds each change by its condition, and makes the series void.

    The nodes are equal.
    """
    broken = {name: conditions for name, (_, _, conditions) in BROKEN.items() if name in names}
    others = [number for conditions in broken.values() for number in conditions[1:]]
    wanted = [conditions[0] for conditions in broken.values()]
    seen = found_after(ran, [(0, *BROKEN[name][:2]) for name in names])

    found = [int(number) for number in re.findall(r"condition (\d+) \(.*?\) on node[12]: ", seen)]
    assert len({*wanted, *others}) == len(wanted) + len({*others})
    assert {*wanted} <= {*found} <= {*wanted, *others}, seen
    assert sorted(itertools.chain(*TOGETHER)) == sorted(BROKEN)


def test_a_run_sees_orders_that_were_changed_on_all_nodes(ran):
    """It compares those of its terminals with those of each node, and no condition finds these changes."""
    seen = found_after(ran, [(number, *each) for number, each in enumerate(REWRITTEN.values())])
    ends = [ran[2].query(f"SELECT @d_{number}, @o_{number} + {number // 3}")[0] for number in range(len(REWRITTEN))]
    customer, item, lost, more = (f"warehouse 1, district {district}, order {order}" for district, order in ends)
    found = re.match(
        r"3 of \d+ acknowledged orders are lost on (node[12]): (.+?); 3 orders on \1 that no terminal wrote, or wrote "
        r"twice: (.+?); the orders of \1: \d+ acknowledged, 3 lost, 3 invented, ",
        seen,
    )

    assert found, seen
    another = " (the node has another one: customer "
    assert missing(found[2], customer + another, item + another, lost) == []
    assert lost + another not in found[2]
    assert missing(found[3], more + " (customer ") == []


def test_a_run_that_nobody_disturbed_is_whole(ran):
    """Everything was put back; the orders of all rounds of the cluster are compared."""
    made, cluster, _ = ran
    before = len(books.book_of(cluster).acknowledged)
    made.round(0, block=1, position=0)

    made.check()
    assert len(books.book_of(cluster).acknowledged) > before > 0
