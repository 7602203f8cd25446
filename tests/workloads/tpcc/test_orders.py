"""Acknowledged orders: what terminals report, what is looked up, and how a server that lacks some is told."""

from __future__ import annotations

import itertools
import types

import pytest

from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.workloads.tpcc import orders
from pytest_dbcluster.workloads.tpcc.orders import PRIME, Lost, Orders
from pytest_dbcluster.workloads.tpcc.workload import SCHEMA, TPCC
from pytest_dbcluster.workloads.workload import Setting

DISTRICT = (3, 4)


class Server:
    """Answers as a server that has the orders of one district, number -> digest, and as many lines as it has orders."""

    def __init__(self, has):
        self.has = has
        self.name = "node1"
        self.asked = []

    def batch(self, statements, *limit):
        """The rows of each statement; all of a digest comes from the lines."""
        self.asked.append(len(statements))
        return [self._rows(statement) for statement in statements]

    def _rows(self, statement):
        low, high = map(int, statement.partition(" BETWEEN ")[2].split(" GROUP ")[0].split(" AND "))
        there = {number: digest for number, digest in self.has.items() if low <= number <= high}
        lines = "order_line" in statement
        if statement.startswith("SELECT COUNT"):
            total = sum((number - low + 1) * digest for number, digest in there.items()) if lines else 0
            return [(len(there), total or None)]
        return [(number, 7, digest if lines else 0) for number, digest in there.items()]


def those(digests):
    """The orders with these digests, number -> digest."""
    made = Orders()
    made.add(*DISTRICT, list(itertools.chain.from_iterable(digests.items())))
    return made


ALL = {number: (number * 7919 + 13) % PRIME for number in (*range(3001, 5502), 6000, 6002)}


def test_orders_that_are_there_are_asked_for_a_thousand_at_a_time():
    """Numbers that follow each other are one sum; where one is missing, another sum begins."""
    server, made = Server(ALL), those(dict(reversed(ALL.items())))

    assert made.lost(server) == []
    assert server.asked == [2 * 5]
    assert len(made) == len(ALL)
    assert list(made) == [(*DISTRICT, number) for number in sorted(ALL)]


@pytest.mark.parametrize("number", [3001, 4000, 4001, 5501, 6000])
def test_an_order_that_is_not_there_is_named(number):
    """Also the first and the last one of a sum."""
    there = {key: digest for key, digest in ALL.items() if key != number}

    assert those(ALL).lost(Server(there)) == [Lost((*DISTRICT, number))]


def test_other_orders_are_named_with_what_is_there():
    """Two that are exchanged too, though their sum is the same."""
    changed = ALL | {3002: ALL[3003], 3003: ALL[3002], 6002: 1}

    assert [str(lost) for lost in those(ALL).lost(Server(changed))] == [
        f"warehouse 3, district 4, order {number} (another one is there: customer 7, lines: 7)"
        for number in (3002, 3003, 6002)
    ]


def test_a_number_that_was_acknowledged_twice_is_a_lost_order():
    """Whatever the server has: its two orders cannot both be there."""
    made = those(ALL)
    made.add(*DISTRICT, [3005, ALL[3005]])

    assert made.lost(Server(ALL)) == [Lost((*DISTRICT, 3005), "two acknowledged orders have its number")]


def test_orders_that_are_known_to_be_lost_are_looked_up_no_more():
    """After a failover that may lose some, their numbers are those of other orders."""
    made = those(ALL)
    made.discard([(*DISTRICT, 3005), (*DISTRICT, 9999), (1, 1, 3001)])
    changed = ALL | {3005: 1}

    assert len(made) == len(ALL) - 1
    assert made.lost(Server(changed)) == []
    made.add(*DISTRICT, [3005, 1])
    assert made.lost(Server(changed)) == []


def test_the_line_has_the_first_orders():
    """One line for each node that lacks some."""
    found = orders.violations([Server({}), Server(ALL)], those(ALL))

    assert found == [
        "2503 of 2503 acknowledged orders are lost on node1: warehouse 3, district 4, order 3001; warehouse 3, "
        "district 4, order 3002; warehouse 3, district 4, order 3003; ..."
    ]


def test_orders_of_a_cluster_are_kept_until_its_tables_are_dropped():
    """Over all rounds; other clusters have their own."""
    one, other = (types.SimpleNamespace(acknowledged={}) for _ in range(2))
    orders.reported([{"orders": {"committed": [[1, 2, [3001, 5]]]}}], "committed", into=orders.kept(one))
    orders.reported([{"orders": {"committed": [[1, 2, [3002, 6]]]}}], "committed", into=orders.kept(one))

    assert list(orders.kept(one)) == [(1, 2, 3001), (1, 2, 3002)]
    assert list(orders.kept(other)) == []
    orders.forget(one)
    assert list(orders.kept(one)) == []


@pytest.mark.parametrize("vendor", ["mariadb", "mysql"])
def test_the_server_computes_the_digests_of_the_terminals(loaded, vendor):
    """Each column that a New-Order chose is part of it; values that nobody could have chosen are no error."""
    setting = loaded(vendor)
    node, load = setting.cluster.nodes[0], TPCC(seconds=0.5)
    _, reports = load.observe(setting)
    committed = orders.reported(reports, "committed")
    warehouse, district, number = order = list(committed)[-1]
    changes = {
        "orders": [
            *["o_c_id = o_c_id - 1", "o_all_local = 1 - o_all_local", "o_ol_cnt = o_ol_cnt + 1"],
            "o_c_id = -2147483648",
        ],
        "order_line": [
            *[f"{column} = {column} + (ol_number = 2)" for column in ("ol_i_id", "ol_supply_w_id", "ol_quantity")],
            "ol_number = ol_number + 100",
            "ol_i_id = 2147483647, ol_supply_w_id = -2147483648, ol_quantity = -128",
        ],
    }

    assert committed.lost(node) == []
    keys = {
        "orders": f"o_w_id = {warehouse} AND o_d_id = {district} AND o_id = {number}",
        "order_line": f"ol_w_id = {warehouse} AND ol_d_id = {district} AND ol_o_id = {number}",
    }
    for table, wrong in ((table, wrong) for table, wrongs in changes.items() for wrong in wrongs):
        node.query("BEGIN")
        node.query(f"UPDATE {SCHEMA}.{table} SET {wrong} WHERE {keys[table]}")
        (lost,) = committed.lost(node)
        node.query("ROLLBACK")
        assert lost.order == order, wrong
    assert load.violations(setting.cluster) == []


def test_lines_of_another_warehouse_are_compared_too(standalone, provisioner, mariadb):
    """About one of a hundred; their stock counts them as remote, and a change of their warehouse is another order."""
    client = provisioner.acquire(ClusterSpec("standalone", name="client"))[0]
    setting, load = Setting(standalone, client, mariadb, "quick", lambda line: None), TPCC(warehouses=2, seconds=2.0)
    node = standalone.nodes[0]
    load.prepare(setting)
    try:
        done = load.run(setting)
        (remote,) = node.query(f"SELECT SUM(s_remote_cnt) FROM {SCHEMA}.stock")[0]
        assert remote > 0
        assert len(orders.kept(standalone)) == done.ledger.entries["new_order"].committed
        assert load.violations(standalone) == []
        node.query(f"UPDATE {SCHEMA}.order_line SET ol_supply_w_id = ol_w_id WHERE ol_supply_w_id <> ol_w_id")
        found = load.violations(standalone)
        assert [line.split(" ")[1] for line in found[:-1]] == ["13", "16"]
        assert "acknowledged orders are lost on node1" in found[-1]
    finally:
        load.clean(setting)
        provisioner.give_back([client])
    assert len(orders.kept(standalone)) == 0
