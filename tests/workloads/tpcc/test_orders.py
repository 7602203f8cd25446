"""Acknowledged orders: what terminals report, what is looked up, and how a server that lacks some is told."""

from __future__ import annotations

import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.workloads.tpcc import books, digests
from pytest_dbcluster.workloads.tpcc.orders import PRIME, WrongOrder
from pytest_dbcluster.workloads.tpcc.workload import SCHEMA, TABLES, TPCC
from pytest_dbcluster.workloads.workload import Setting
from tests.support.clusters import bring_up
from tests.workloads.tpcc.order_server import DISTRICT, OrderServer, those

ALL = {number: (number * 7919 + 13) % PRIME for number in (*range(3001, 5502), 6000, 6002)}


def test_orders_that_are_there_are_asked_for_a_thousand_at_a_time():
    """Numbers that follow each other are one sum; where one is missing, another sum begins."""
    server, made = OrderServer(ALL), those(dict(reversed(ALL.items())))

    assert made.missing_on(server) == []
    assert server.asked == [2 * 5]
    assert len(made) == len(ALL)
    assert list(made) == [(*DISTRICT, number) for number in sorted(ALL)]


@pytest.mark.parametrize("number", [3001, 4000, 4001, 5501, 6000])
def test_an_order_that_is_not_there_is_named(number):
    """Also the first and the last one of a sum."""
    there = {key: digest for key, digest in ALL.items() if key != number}

    assert those(ALL).missing_on(OrderServer(there)) == [WrongOrder((*DISTRICT, number))]


def test_other_orders_are_named_with_what_is_there():
    """Two that are exchanged too, though their sum is the same."""
    changed = ALL | {3002: ALL[3003], 3003: ALL[3002], 6002: 1}

    assert [str(lost) for lost in those(ALL).missing_on(OrderServer(changed))] == [
        f"warehouse 3, district 4, order {number} (the node has another one: customer 7, lines: 7)"
        for number in (3002, 3003, 6002)
    ]


def test_a_number_that_was_acknowledged_twice_is_a_lost_order():
    """Whatever the server has: its two orders cannot both be there."""
    made = those(ALL)
    made.add(*DISTRICT, [3005, ALL[3005]])

    assert made.missing_on(OrderServer(ALL)) == [
        WrongOrder((*DISTRICT, 3005), "two acknowledged orders have its number")
    ]


def test_orders_that_are_known_to_be_lost_are_looked_up_no_more():
    """After a failover that may lose some, their numbers are those of other orders."""
    made = those(ALL)
    lost = [(*DISTRICT, 3005), ALL[3005]], [(*DISTRICT, 9999), 5], [(1, 1, 3001), 5], [(*DISTRICT, 3006), 5]
    made.discard(WrongOrder(order, digest=digest) for order, digest in lost)
    changed = ALL | {3005: 1}

    assert len(made) == len(ALL) - 1
    assert made.missing_on(OrderServer(changed)) == []
    made.add(*DISTRICT, [3005, 1])
    assert made.missing_on(OrderServer(changed)) == []


# The columns with the number of a warehouse; the session of a loaded payment is the number of its warehouse.
OF_WAREHOUSE = {
    *("w_id", "d_w_id", "c_w_id", "h_w_id", "h_c_w_id", "h_session", "o_w_id", "no_w_id", "s_w_id"),
    *("ol_w_id", "ol_supply_w_id"),
}


def copied(name):
    """What a column has in the copy of a warehouse."""
    if name in OF_WAREHOUSE:
        return "2"
    if name == "o_ol_cnt":
        return "1"
    return f"REVERSE({name})" if name.startswith("s_dist_") else name


@pytest.fixture
def two_warehouses(provisioner, mariadb, tpcc_templates):
    """A server with two warehouses: copying the only one takes less time than loading another.

    Their contents are equal but for what the lines of orders have from their stock; an order of the copy has one line.
    """
    spec = ClusterSpec("standalone")
    cluster = bring_up(spec, mariadb, provisioner, options={}, start=tpcc_templates("mariadb"))
    client = provisioner.acquire(spec.named("client"))[0]
    node = cluster.nodes[0]
    for table in sorted({*TABLES} - {"item"}):
        columns = [row[0] for row in node.query(f"SHOW COLUMNS FROM {SCHEMA}.{table}")]
        values, some = ", ".join(copied(name) for name in columns), "WHERE ol_number = 1" * (table == "order_line")
        node.query(f"INSERT INTO {SCHEMA}.{table} SELECT {values} FROM {SCHEMA}.{table} {some}", wait.SLOW_SECONDS)
    digests.keep(node, SCHEMA)
    yield Setting(cluster, client, mariadb, "quick", lambda line: None)
    cluster.close()
    provisioner.give_back([*cluster.hosts, client])


def test_lines_of_another_warehouse_are_compared_too(two_warehouses):
    """About one of a hundred; their stock counts them as remote, and a change of their warehouse is another order."""
    cluster, load = two_warehouses.cluster, TPCC(warehouses=2, seconds=1.0)
    node = cluster.nodes[0]
    done = load.run(two_warehouses)
    (remote,) = node.query(f"SELECT SUM(s_remote_cnt) FROM {SCHEMA}.stock")[0]
    assert remote > 0
    assert len(books.book_of(cluster).acknowledged) == done.ledger.entries["new_order"].committed
    assert load.violations(cluster) == []
    node.query(f"UPDATE {SCHEMA}.order_line SET ol_supply_w_id = ol_w_id WHERE ol_supply_w_id <> ol_w_id")
    found = load.violations(cluster)
    assert [line.split(" ")[1] for line in found[:2]] == ["13", "16"]
    assert "acknowledged orders are lost on node1" in found[2]
    load.clean(two_warehouses)
    assert cluster.acknowledged == {}
    assert node.query(f"SHOW DATABASES LIKE '{SCHEMA}'") == []
    load.clean(two_warehouses)
