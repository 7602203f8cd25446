"""Terminals whose run is disturbed: lost connections, a node that dies, and what ends a run early."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import signal
import time

import pytest

from pytest_dbcluster.clusters.servers.connection import Connection, SQLError
from pytest_dbcluster.clusters.servers.node import LOAD
from pytest_dbcluster.errors import NodeDied, WorkloadError
from pytest_dbcluster.workloads import sysbench_driver
from pytest_dbcluster.workloads.workload import LoadEnded
from tests.workloads.sysbench_driver.calls import ROWS, SCHEMA, call, in_the_middle


def kill_connections(node, times=8):
    """End every connection of the load, again and again, while it runs; return the thread.

    It connects before the load begins. On a busy machine a short load may end before it is connected.
    """
    own = Connection("killer", node.endpoint)
    own.query("SELECT 1")

    def kill():
        with contextlib.closing(own):
            for _ in range(times):
                time.sleep(0.03)
                for (number,) in own.query(f"SELECT id FROM information_schema.processlist WHERE user = '{LOAD}'"):
                    with contextlib.suppress(SQLError):  # it has ended by itself
                        own.query(f"KILL {number}")

    return in_the_middle(kill, node)


def drop_table(node):
    """Drop the table of the load, over a connection of our own."""
    with contextlib.closing(Connection("dropper", node.endpoint)) as own:
        own.query(f"DROP TABLE {SCHEMA}.sbtest1")


@pytest.mark.parametrize("event", ["oltp_update_index", "oltp_read_only"])
def test_a_lost_connection_ends_no_run(standalone, filled, event):
    """Its thread connects again; only what may have been committed is unknown, everything else is tried again."""
    setting, node = filled(standalone), standalone.nodes[0]
    killer = kill_connections(node)
    outcome, _ = sysbench_driver.run(call(setting, event), setting, seconds=3)  # a busy machine may stand for a second
    killer.join()
    total, lost = outcome.ledger.total, sum(outcome.ledger.errors.values())

    assert {number for number, _ in outcome.ledger.errors} <= {1317, 1927, 2006, 2013}
    assert lost > 0
    assert total.unknown == (lost if event == "oltp_update_index" else 0)
    assert total.tried - total.good == lost
    assert sum(total.attempts.values()) == total.good + total.unknown + total.failed


def lock_out(node, seconds):
    """The load's account has another name for a while, and its connections are gone."""
    with contextlib.closing(Connection("locker", node.endpoint)) as own:
        ((host,),) = own.query(f"SELECT host FROM mysql.user WHERE user = '{LOAD}'")
        own.query(f"RENAME USER '{LOAD}'@'{host}' TO 'renamed'@'{host}'")
        try:
            for (number,) in own.query(f"SELECT id FROM information_schema.processlist WHERE user = '{LOAD}'"):
                own.query(f"KILL {number}")
            time.sleep(seconds)
        finally:
            own.query(f"RENAME USER 'renamed'@'{host}' TO '{LOAD}'@'{host}'")


@pytest.mark.parametrize("event", ["oltp_read_only", "oltp_update_index"])
def test_the_time_until_there_is_a_connection_again_is_lost(standalone, filled, event):
    """Whose attempt lost its connection waits for the next one; a statement that may have been committed does too."""
    setting = filled(standalone)
    node = standalone.nodes[0]
    locked = in_the_middle(lambda: lock_out(node, 0.5), node)
    outcome, _ = sysbench_driver.run(call(setting, event, threads=1), setting, seconds=4)
    locked.join()
    total = outcome.ledger.total

    assert total.tried - total.good == 1
    assert total.unknown == (event == "oltp_update_index")
    assert total.aborted_seconds > 0.4


def test_what_was_acknowledged_is_there_after_a_loss(standalone, filled):
    """Every insert that the load counts as committed is in the table, and no more besides than the unknown ones."""
    setting, node = filled(standalone), standalone.nodes[0]
    killer = kill_connections(node)
    outcome, _ = sysbench_driver.run(call(setting, "oltp_insert"), setting, seconds=3)
    killer.join()
    more = node.query(f"SELECT COUNT(*) FROM {SCHEMA}.sbtest1")[0][0] - ROWS
    total = outcome.ledger.total

    assert total.unknown > 0
    assert total.committed <= more <= total.committed + total.unknown


def test_a_run_can_outlive_a_node(bring, filled):
    """Its reports are there although nobody answers any more; without being asked to, it says which node has died."""
    cluster = bring("standalone")
    setting = filled(cluster)
    node = cluster.nodes[0]
    killer = in_the_middle(lambda: os.kill(node.process.pid, signal.SIGKILL), node)
    outcome, reports = sysbench_driver.run(call(setting, "oltp_update_index"), setting, seconds=3, outlive=True)
    killer.join()

    assert len(reports) == 4
    assert outcome.good > 0
    assert outcome.ledger.total.unknown <= 4
    with pytest.raises(NodeDied, match="node node1 was ended by SIGKILL"):
        sysbench_driver.run(call(setting, "oltp_update_index"), setting, seconds=0.1)


def test_what_no_retry_cures_ends_the_run_in_the_servers_words(galera2, filled):
    """A table that vanishes: the error with its number, the node by its name, and the variant that ran."""
    setting = dataclasses.replace(filled(galera2), variant="small_buffer")
    dropped = in_the_middle(lambda: drop_table(galera2.nodes[0]), galera2.nodes[0])
    with pytest.raises(WorkloadError) as caught:
        sysbench_driver.run(call(setting, "oltp_point_select"), setting, seconds=60)
    dropped.join()

    first, *rest = str(caught.value).splitlines()
    assert first.startswith("oltp_point_select ended early on small_buffer: error 1146 on node")
    assert re.search(rf"error 1146 on node[12] at .*: Table '{SCHEMA}.sbtest1' doesn't exist", first)
    assert len(rest) < 10
    with pytest.raises(WorkloadError, match=rf"1146 \"Table '{SCHEMA}.sbtest1' doesn't exist\"") as caught:
        sysbench_driver.run(call(setting, "oltp_point_select"), setting, seconds=1)
    assert not isinstance(caught.value, LoadEnded)


def fill_up(node):
    """Let the table take a few more rows."""
    node.query("SET SESSION max_heap_table_size = 1000000")
    node.query(f"ALTER TABLE {SCHEMA}.sbtest1 ENGINE=MEMORY")


def use_an_id(node):
    """A row that the load will insert: the 25th of its third terminal."""
    node.query(f"INSERT INTO {SCHEMA}.sbtest1 (id, k, c, pad) VALUES ({ROWS + 25 * 4 + 2}, 1, '', '')")


@pytest.mark.parametrize(
    ("spoil", "number", "words"),
    [
        (fill_up, 1114, "The table 'sbtest1' is full"),
        (use_an_id, 1062, f"Duplicate entry '{ROWS + 25 * 4 + 2}' for key"),
    ],
)
def test_an_error_that_no_list_has_ends_a_load_with_what_it_has_done(standalone, filled, spoil, number, words):
    """The node, the statement, the error, and the transactions until then: all of them are in the table."""
    setting, node, heard = filled(standalone), standalone.nodes[0], []
    spoil(node)
    ((before,),) = node.query(f"SELECT COUNT(*) FROM {SCHEMA}.sbtest1")
    began = time.monotonic()
    with pytest.raises(LoadEnded) as caught:
        sysbench_driver.run(call(setting, "oltp_insert"), setting, seconds=60, heard=heard.extend)
    result, text = caught.value.result, str(caught.value)
    total = result.ledger.total

    assert time.monotonic() - began < 50
    assert f"ended early on standalone1: error {number} on node1 at INSERT (while committing) of oltp_insert: " in text
    assert words in text
    assert f"{total.committed} committed ({total.committed} oltp_insert)" in text
    assert f"errors: {number} on node1 x " in text
    assert total.committed > 0
    assert result.ledger.errors.keys() == {(number, "node1")}
    # An error at a commit says nothing, so nobody claims that these rows are not there.
    assert total.unknown == sum(result.ledger.errors.values())
    assert node.query(f"SELECT COUNT(*) FROM {SCHEMA}.sbtest1") == [(before + total.committed,)]
    assert len(heard) == 4
    assert sum(report["kinds"]["oltp_insert"]["committed"] for report in heard) == total.committed


@pytest.mark.parametrize("number", [1180, 3100])
def test_an_error_at_a_commit_that_may_have_been_made_is_never_tried_again(standalone, filled, number):
    """A server that is cut from its peers gives it although they have the rows; a retry would write them twice."""
    setting, node = filled(standalone), standalone.nodes[0]
    node.query(
        f"CREATE TRIGGER {SCHEMA}.refuse BEFORE INSERT ON {SCHEMA}.sbtest1 FOR EACH ROW "
        f"BEGIN IF NEW.id % 7 = 0 THEN SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = {number}; END IF; END"
    )
    outcome, _ = sysbench_driver.run(call(setting, "oltp_insert"), setting, seconds=0.3)
    total = outcome.ledger.total

    assert total.unknown == outcome.ledger.errors[number, "node1"] > 0
    assert total.attempts.keys() == {1}
    assert node.query(f"SELECT COUNT(*) FROM {SCHEMA}.sbtest1") == [(ROWS + total.committed,)]


VICTIM = "1180, MESSAGE_TEXT = 'Got error 149 - ''Lock deadlock; Retry transaction'' during COMMIT'"


@pytest.mark.parametrize(
    ("number", "signal", "event"),
    [(1180, "1180", "oltp_write_only"), (3100, "3100", "oltp_write_only"), (1180, VICTIM, "oltp_insert")],
)
def test_what_is_certainly_not_there_is_tried_again(standalone, filled, number, signal, event):
    """The same errors before COMMIT, and at COMMIT that of InnoDB's own victims."""
    setting, node = filled(standalone), standalone.nodes[0]
    node.query(f"CREATE TABLE {SCHEMA}.calls (n INT AUTO_INCREMENT PRIMARY KEY) ENGINE=MyISAM")
    node.query(
        f"CREATE TRIGGER {SCHEMA}.refuse BEFORE INSERT ON {SCHEMA}.sbtest1 FOR EACH ROW "
        f"BEGIN INSERT INTO {SCHEMA}.calls VALUES (NULL); IF LAST_INSERT_ID() % 3 = 0 "
        f"THEN SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = {signal}; END IF; END"
    )
    outcome, _ = sysbench_driver.run(call(setting, event), setting, seconds=0.3)
    total = outcome.ledger.total

    assert outcome.ledger.errors[number, "node1"] > 0
    assert total.unknown == 0
    assert max(total.attempts) > 1


def test_a_preparation_that_lost_a_thread_has_failed(standalone, filled):
    """The tool ends with 0 then, and half of the tables are there."""
    setting = filled(standalone)
    again = call(setting, "oltp_read_write", script="oltp_read_write.lua", tables=2)

    with pytest.raises(
        WorkloadError, match=r"^oltp_read_write prepare lost threads on (.|\n)*Table 'sbtest1' already exists"
    ):
        sysbench_driver.command(again, setting, "prepare", seconds=60)


def test_a_report_of_an_earlier_run_is_not_taken(standalone, filled, tmp_path):
    """Each report says of which run it is."""
    setting = filled(standalone)
    sysbench_driver.run(call(setting, "oltp_point_select"), setting, seconds=0.05)

    with pytest.raises(WorkloadError, match=r"report-0\.json is of an earlier run"):
        sysbench_driver._report(
            call(setting, "x"), setting.client, f"{setting.client.directory}/reports/report-0.json", "other"
        )
    with pytest.raises(WorkloadError, match="ended without a report of one of its threads"):
        sysbench_driver._report(
            call(setting, "x"), setting.client, f"{setting.client.directory}/reports/report-9.json", "other"
        )
