"""TPC-C as it runs: its parameters, a round on each vendor, and what ends a round."""

from __future__ import annotations

import dataclasses
import threading

import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.clusters.servers.connection import Connection
from pytest_dbcluster.errors import ConfigError, WorkloadError
from pytest_dbcluster.rounds.histogram import Histogram
from pytest_dbcluster.rounds.ledger import Ledger, LedgerEntry
from pytest_dbcluster.workloads.schema_mark import TABLE
from pytest_dbcluster.workloads.tpcc import orders
from pytest_dbcluster.workloads.tpcc.conditions import violations
from pytest_dbcluster.workloads.tpcc.workload import SCHEMA, TABLES, TPCC, tpm_c
from tests.support.facts import missing
from tests.support.query_log import logging_queries

VENDORS = ["mariadb", pytest.param("mysql", marks=pytest.mark.thorough)]


@pytest.mark.parametrize(
    ("wrong", "facts"),
    [
        ({"warehouses": 0}, ("tpcc warehouses=0: ", "1 or more")),
        ({"threads": 0}, ("tpcc threads=0: ", "1 or more")),
        ({"attempts": 0}, ("tpcc attempts=0: ", "1 or more")),
        ({"seconds": 0}, ("tpcc seconds=0: ", "a finite number of seconds", "above 0")),
        ({"warehouses": "2"}, ("tpcc warehouses='2': ", "a whole number", "1 or more")),
        ({"warehouses": True}, ("tpcc warehouses=True: ", "a whole number", "1 or more")),
        ({"warehouses": 1.5}, ("tpcc warehouses=1.5: ", "a whole number", "1 or more")),
        ({"threads": 2.5}, ("tpcc threads=2.5: ", "a whole number", "1 or more")),
        ({"attempts": None}, ("tpcc attempts=None: ", "a whole number", "1 or more")),
        ({"seed": "1"}, ("tpcc seed='1': ", "a whole number", "0 or more")),
        ({"seconds": "2"}, ("tpcc seconds='2': ", "a number of seconds", "above 0")),
        (
            {"isolation": "SNAPSHOT"},
            ("unknown tpcc isolation 'SNAPSHOT'", "known: READ COMMITTED, REPEATABLE READ, SERIALIZABLE"),
        ),
        ({"to": "writers"}, ("unknown tpcc to 'writers'", "known: writer, reader, all;", "did you mean writer?")),
        ({"terminals_on": "item"}, ("unknown tpcc terminals_on 'item'", "known: warehouse, district")),
        ({"thinking": True, "rate": 100}, ("tpcc thinking=True and rate=100: ", "the arrival rate", "one of them")),
        ({"partitioned": True}, ("tpcc partitioned=True and to='writer': ", "use to='all'")),
    ],
)
def test_wrong_parameters_are_refused_when_they_are_written(wrong, facts):
    """Before anything is started; closed vocabularies list themselves."""
    with pytest.raises(ConfigError) as caught:
        TPCC(**wrong)

    assert missing(caught.value, *facts) == []


def test_equal_loads_share_their_tables():
    """The name tells loads apart; rate and terminals make no difference to what is stored."""
    load = TPCC(warehouses=2, threads=16)

    assert str(load) == "tpcc w2 t16"
    assert (
        str(dataclasses.replace(load, to="all", partitioned=True, rate=300))
        == "tpcc w2 t16 at 300/s to all partitioned"
    )
    assert str(TPCC(terminals_on="district")) == "tpcc w1 t4 on one district"
    assert load.data_set == dataclasses.replace(load, threads=1, rate="70 %").data_set == "tpcc v2 2 warehouses"
    assert load.data_set != TPCC(warehouses=2, foreign_keys=True).data_set
    assert load.data_text == "2 warehouses, about 191 MiB"
    assert TPCC(foreign_keys=True).data_scale == "1 warehouse with foreign keys"
    assert load.data_set_bytes == 2 * TPCC().data_set_bytes > 0
    assert dataclasses.replace(load, rate="70 %").at_rate(None) == load
    assert load.tables == tuple(f"dbcluster_tpcc.{table}" for table in TABLES)


def test_new_orders_a_minute_count_what_ended_as_asked():
    """A rollback by design is a New-Order too; what failed or may have failed is not."""
    ledger = Ledger({"new_order": LedgerEntry({1: 6}, 3, 1, 1, 1, 0.0, Histogram()), "payment": LedgerEntry({1: 9}, 9)})

    assert tpm_c(ledger, 2.0) == 120
    assert tpm_c(Ledger(), 2.0) == 0


def rounds(load, setting, enough):
    """The outcomes of as many rounds as it takes until ``enough(ledger)``, each with inputs of its own."""
    outcomes, ledger = [], Ledger()
    for seed in range(1, 30):
        outcomes.append(dataclasses.replace(load, seed=seed).run(setting))
        ledger += outcomes[-1].ledger
        if enough(ledger):
            return outcomes, ledger
    raise AssertionError(f"not enough in {len(outcomes)} rounds: {ledger}")


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_round_leaves_every_condition_true(loaded, vendor):
    """All five transactions commit, in the shares of the mix; each changes what it is to change, and no more."""
    setting, load = loaded(vendor), TPCC(seconds=1.0)
    load.prepare(setting)
    load.reset(setting)
    outcomes, ledger = rounds(load, setting, lambda sofar: sofar.total.good >= 500)
    entries, node = ledger.entries, setting.cluster.nodes[0]
    everything = sum(ledger.total.attempts.values())

    assert load.violations(setting.cluster) == []
    assert sorted(entries) == ["delivery", "new_order", "order_status", "payment", "stock_level"]
    assert min(entry.committed for entry in entries.values()) > 0
    for kind, share in {"new_order": 0.45, "payment": 0.43, "delivery": 0.04}.items():
        assert sum(entries[kind].attempts.values()) / everything == pytest.approx(share, abs=0.05)
    assert {kind for kind, entry in entries.items() if entry.rolled_back} <= {"new_order"}
    assert ledger.total.unknown == ledger.total.failed == 0
    assert sum(one.commits for one in outcomes) == sum(
        entries[kind].committed for kind in ("new_order", "payment", "delivery")
    )
    counts = {table: node.query(f"SELECT COUNT(*) FROM {SCHEMA}.{table}")[0][0] for table in ("orders", "history")}
    assert counts == {
        "orders": 30_000 + entries["new_order"].committed,
        "history": 30_000 + entries["payment"].committed,
    }
    assert node.query(f"SELECT SUM(s_order_cnt) FROM {SCHEMA}.stock") == node.query(
        f"SELECT COUNT(*) FROM {SCHEMA}.order_line WHERE ol_o_id > 3000"
    )
    assert node.query(f"SELECT SUM(c_delivery_cnt) <= 10 * {entries['delivery'].committed} FROM {SCHEMA}.customer") == [
        (1,)
    ]
    assert min(one.client_seconds for one in outcomes) > 0


@pytest.mark.parametrize(
    ("vendor", "several"),
    [
        ("mariadb", [{"reconnect": True, "idle": 10}, {"pause": 0.01}]),
        pytest.param("mysql", [{"tls": True, "idle": 3}], marks=pytest.mark.thorough),
    ],
)
def test_every_order_is_kept_with_the_connections_of_applications(loaded, vendor, several):
    """Each transaction is counted once, on whatever connection; the checks of the specification pass."""
    setting = loaded(vendor)
    node = setting.cluster.nodes[0]
    for load in (TPCC(threads=3, seconds=0.5, **fields) for fields in several):
        load.prepare(setting)
        before = int(node.status("Connections")["connections"])
        done = load.run(setting)
        made = int(node.status("Connections")["connections"]) - before
        total = done.ledger.total

        assert done.good > 5
        assert total.failed == total.unknown == 0
        own = done.good if load.reconnect else load.threads
        assert own + load.idle <= made <= own + load.idle + load.threads
    assert TPCC().violations(setting.cluster) == []


@pytest.mark.parametrize("vendor", VENDORS)
def test_the_server_computes_the_digests_of_the_terminals(loaded, vendor):
    """Each column that a New-Order chose is part of it; values that nobody could have chosen are no error."""
    setting = loaded(vendor)
    node, load = setting.cluster.nodes[0], TPCC(seconds=0.5)
    _, reports = load.observe(setting)
    committed = orders.from_reports(reports, "committed")
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

    assert committed.missing_on(node) == []
    keys = {
        "orders": f"o_w_id = {warehouse} AND o_d_id = {district} AND o_id = {number}",
        "order_line": f"ol_w_id = {warehouse} AND ol_d_id = {district} AND ol_o_id = {number}",
    }
    for table, wrong in ((table, wrong) for table, wrongs in changes.items() for wrong in wrongs):
        node.query("BEGIN")
        node.query(f"UPDATE {SCHEMA}.{table} SET {wrong} WHERE {keys[table]}")
        (lost,) = committed.missing_on(node)
        node.query("ROLLBACK")
        assert lost.order == order, wrong


def test_new_orders_that_roll_back_leave_nothing(loaded):
    """About one of a hundred asks for an item that does not exist; its order number is given to the next one."""
    setting = loaded("mariadb")
    node = setting.cluster.nodes[0]
    before = node.query(f"SELECT SUM(d_next_o_id) FROM {SCHEMA}.district")[0][0]
    load = TPCC(threads=2, seconds=0.5)
    _, ledger = rounds(
        load, setting, lambda sofar: sofar.total.rolled_back and sofar.entries["new_order"].committed >= 200
    )
    entry = ledger.entries["new_order"]
    after = node.query(f"SELECT SUM(d_next_o_id) FROM {SCHEMA}.district")[0][0]

    assert 0 < entry.rolled_back < entry.committed / 20
    assert entry.rolled_back == ledger.total.rolled_back
    assert after - before == entry.committed
    assert load.violations(setting.cluster) == []


def test_a_retry_has_the_same_input(loaded):
    """Somebody holds all stock for a while: the New-Order that waited in vain asks for the same items again."""
    setting = loaded("mariadb")
    node = setting.cluster.nodes[0]
    asked = "SELECT argument FROM mysql.general_log WHERE argument LIKE 'BEGIN;SELECT d_next_o_id%FOR UPDATE%'"
    node.query("SET GLOBAL innodb_lock_wait_timeout = 1")
    holder, watcher = (Connection(name, node.endpoint) for name in ("holder", "watcher"))
    holder.run(["SET autocommit = 0", f"SELECT COUNT(*) FROM {SCHEMA}.stock FOR UPDATE"])

    def release_at_the_second_try():
        wait.until(lambda: [] if len(watcher.query(asked)) > 1 else ["no second try"], "a retry", seconds=30)
        holder.close()
        watcher.close()

    thread = threading.Thread(target=release_at_the_second_try)
    try:
        with logging_queries(node):
            thread.start()
            outcome = TPCC(threads=1, seconds=2.0).run(setting)
            thread.join()
    finally:
        node.query("SET GLOBAL innodb_lock_wait_timeout = DEFAULT")
    rows = node.query(asked)

    assert outcome.ledger.errors == {(1205, "node1"): 1}
    assert outcome.ledger.entries["new_order"].attempts[2] == 1
    assert outcome.ledger.total.aborted_seconds > 0.9
    assert rows[0] == rows[1] != rows[2]
    assert violations(setting.cluster.nodes) == []


def test_a_paced_round_counts_from_the_intended_start(loaded):
    """The rate is offered over all terminals; a share of something that was not measured is refused."""
    setting = loaded("mariadb")
    outcome = TPCC(rate=50, seconds=0.5).run(setting)

    assert outcome.rate == 50
    assert outcome.ledger.total.good == outcome.offered
    with pytest.raises(ConfigError, match="measure the capacity of the variants first"):
        TPCC(rate="70 %").run(setting)


def test_terminals_that_think_do_not_outstay_the_round(loaded):
    """Keying takes two seconds at least, so nothing happens in a short round; it ends in time."""
    outcome = TPCC(thinking=True, seconds=0.3).run(loaded("mariadb"))

    assert outcome.operations == 0
    assert outcome.seconds < 2


def test_more_terminals_than_connections_are_refused(loaded):
    """With the load's name and what to set."""
    with pytest.raises(
        ConfigError, match=r"^tpcc w1 t400: 400 threads are 400 connections to node1, which accepts 151"
    ):
        TPCC(threads=400).run(loaded("mariadb"))


@pytest.mark.parametrize(
    ("change", "back", "words"),
    [
        ("version = 0", "version = 2", "has tables of version 0, and this workload needs version 2: run DROP DATABASE"),
        (
            "scale = '7 warehouses'",
            "scale = '1 warehouse'",
            "tpcc w1 t4: schema dbcluster_tpcc on node1 has 7 warehouses, and this workload needs 1 warehouse: ",
        ),
    ],
)
def test_tables_of_another_version_or_scale_are_refused(loaded, change, back, words):
    """They are not dropped without being asked: loading a hundred warehouses takes a while."""
    setting = loaded("mariadb")
    node = setting.cluster.nodes[0]
    node.query(f"UPDATE {SCHEMA}.{TABLE} SET {change}")
    try:
        with pytest.raises(WorkloadError) as caught:
            TPCC().prepare(setting)
    finally:
        node.query(f"UPDATE {SCHEMA}.{TABLE} SET {back}")

    assert words in str(caught.value)
    TPCC().prepare(setting)


def test_a_table_that_vanished_is_named(loaded):
    """By prepare, and by a round in the server's words."""
    setting = loaded("mariadb")
    node = setting.cluster.nodes[0]
    node.query(f"RENAME TABLE {SCHEMA}.item TO {SCHEMA}.away")
    try:
        with pytest.raises(
            WorkloadError, match="schema dbcluster_tpcc on node1 has lost item since it was loaded: run DROP"
        ):
            TPCC().prepare(setting)
        with pytest.raises(
            WorkloadError,
            match=r"^tpcc w1 t4 ended early on standalone1: error 1146 on node1 at .*'dbcluster_tpcc.item' d",
        ):
            TPCC().run(setting)
    finally:
        node.query(f"RENAME TABLE {SCHEMA}.away TO {SCHEMA}.item")
