"""Terminals at work: what becomes of transactions under conflicts and a pace, and what their ledgers say."""

from __future__ import annotations

import dataclasses
import os
import signal
import time

import pytest

from pytest_dbcluster.clusters.servers.connection import Connection
from pytest_dbcluster.clusters.servers.node import LOAD
from pytest_dbcluster.workloads import sysbench_driver
from pytest_dbcluster.workloads.sysbench_driver import Call
from tests.support.query_log import logging_queries
from tests.workloads.sysbench_driver.calls import ROWS, SCHEMA, call, in_the_middle, when


def test_threads_go_round_the_nodes(galera2, filled):
    """The first to the first node, the second to the next one, in every run alike."""
    setting = filled(galera2)
    for _ in range(2):
        _, reports = sysbench_driver.run(call(setting, "oltp_point_select", threads=5), setting, seconds=0.05)

        assert [one["nodes"] for one in reports] == [["node1"], ["node2"], ["node1"], ["node2"], ["node1"]]


AHEAD = """
local ffi = require("ffi")
local terminal = require("terminal")
terminal.load {
   kinds = {"nothing"},
   -- as if another thread had looked at the clock 5 ms later, and had been the first to say when the run begins
   start = function() ffi.C.terminal_start = math.floor((terminal.now() + 0.005) * 1e4) % 2147483648 end,
   draw = function() return 1 end,
   execute = function(t) t.con:query("DO 0") end,
}
"""


def test_all_threads_have_one_start_whoever_looks_at_the_clock_first(standalone, filled, tmp_path):
    """No round begins days before it began."""
    setting = filled(standalone)
    (tmp_path / "ahead.lua").write_text(AHEAD)
    ahead = Call(
        "ahead", str(tmp_path / "ahead.lua"), 4, SCHEMA, sysbench_driver.endpoints(standalone, "all", writes=True)
    )
    began = time.monotonic()
    done, reports = sysbench_driver.run(ahead, setting, seconds=0.02)
    starts = [one["begun"] for one in reports]

    assert began < min(starts) <= max(starts) < time.monotonic()
    assert max(starts) - min(starts) < 1e-3
    assert done.seconds < time.monotonic() - began


# A transaction whose first try ends as by a deadlock.
UNENDED = """
local batch, terminal = require("batch"), require("terminal")
terminal.load {
   kinds = {"conflict"}, rolls_back = %s,
   connect = function(t) batch.take(t.con) end,
   draw = function() return 1, {} end,
   execute = function(t, _, input)
      if t.unended then batch.first("ROLLBACK") end
      t.unended = false
      batch.clear()
      local asked = batch.statement("SELECT 7")
      batch.send()
      assert(batch.integer(batch.row(asked)[0]) == 7)
      if input.tried then return end
      input.tried = true
      t.con:query("SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213, MESSAGE_TEXT = 'as a deadlock'")
   end,
}
"""


@pytest.mark.parametrize(("own", "attempts"), [(True, 9), (False, 9), (True, 1)])
def test_a_deadlock_needs_no_round_trip_of_its_own(standalone, filled, tmp_path, own, attempts):
    """The ROLLBACK goes with the next attempt, if the workload can; without another attempt it goes alone."""
    setting, [node] = filled(standalone), standalone.nodes
    (tmp_path / "unended.lua").write_text(UNENDED % str(own).lower())
    ends = sysbench_driver.endpoints(standalone, "all", writes=True)
    once = Call("unended", str(tmp_path / "unended.lua"), 2, SCHEMA, ends, {"attempts": attempts})
    with logging_queries(node):
        done, _ = sysbench_driver.run(once, setting, seconds=0.5)
        rows = node.query("SELECT argument FROM mysql.general_log WHERE argument LIKE 'ROLLBACK%'")
    total, conflicts = done.ledger.total, done.ledger.errors[1213, "node1"]
    with_next, alone = (rows.count((text,)) for text in ("ROLLBACK;SELECT 7", "ROLLBACK"))

    assert total.tried - total.good == conflicts > 0
    assert (total.failed <= 2) == (attempts > 1)  # the end of the run may come between two attempts
    assert (with_next, alone) == ((conflicts - total.failed, total.failed) if own else (0, conflicts))


@pytest.mark.parametrize("prepared", [True, False])
def test_conflicts_end_no_run_and_the_ledger_adds_up(galera2, filled, prepared):
    """Both nodes write the same twenty rows: errors by number and node, each attempt counted once."""
    setting = filled(galera2)
    writing = dataclasses.replace(call(setting, "oltp_write_only", threads=8, size=20), prepared=prepared)
    outcome, _ = sysbench_driver.run(writing, setting, seconds=0.4)
    ledger, total = outcome.ledger, outcome.ledger.total

    assert {number for number, _ in ledger.errors} <= {1020, 1180, 1205, 1213, 1317}
    assert {node for _, node in ledger.errors} <= {"node1", "node2"}
    assert sum(total.attempts.values()) == total.good + total.failed
    assert total.tried - total.good == sum(ledger.errors.values()) > 0
    assert max(total.attempts) > 1
    assert total.aborted_seconds > 0
    assert outcome.good == total.committed == total.latencies.total == sum(outcome.by_second) > 0
    assert sum(outcome.by_tenth[:10]) == outcome.by_second[0]
    assert outcome.operations == total.tried
    galera2.check([f"{SCHEMA}.sbtest1"])
    assert galera2.nodes[0].query(f"SELECT COUNT(*) FROM {SCHEMA}.sbtest1") == [(ROWS,)]


def executed(asked):
    """What threads of loads have executed, as the server's log has it."""
    rows = asked.query(
        f"SELECT argument FROM mysql.general_log WHERE user_host LIKE '{LOAD}%' AND command_type = 'Execute'"
    )
    return [argument for (argument,) in rows]


def sent(node, deed):
    """What the load's threads execute while something is done, as the server's log has it."""
    with logging_queries(node):
        deed()
    return executed(node)


def test_a_retry_sends_the_same_statements(standalone, filled):
    """A transaction that waited for a row in vain starts again with the row that it was to change."""
    setting, node = filled(standalone), standalone.nodes[0]
    node.query("SET GLOBAL innodb_lock_wait_timeout = 1")
    other = Connection("other", node.endpoint)
    other.run(["SET autocommit = 0", f"SELECT COUNT(*) FROM {SCHEMA}.sbtest1 FOR UPDATE"])
    watcher = Connection("watcher", node.endpoint)

    def no_retry():
        return [] if len(executed(watcher)) >= 4 else ["no second attempt"]

    outcomes = []
    writing = call(setting, "oltp_write_only", threads=1)
    node.query("TRUNCATE mysql.general_log")
    unlock = when(no_retry, "a retry", other.close)
    try:
        said = sent(node, lambda: outcomes.append(sysbench_driver.run(writing, setting, seconds=3)[0]))
    finally:
        unlock.join()
        watcher.close()
        node.query("SET GLOBAL innodb_lock_wait_timeout = DEFAULT")

    assert outcomes[0].ledger.errors == {(1205, "node1"): 1}
    assert outcomes[0].ledger.total.attempts[2] == 1
    assert outcomes[0].ledger.total.latencies.percentile(1) > 0.98  # it waited 1 s; a percentile is exact to 1.1 %
    assert said[0] == said[2] == "BEGIN"
    assert said[1] == said[3]
    assert said[1].startswith("UPDATE")


def test_a_seed_makes_the_same_transactions(standalone, filled):
    """Two runs with one seed send the same statements in the same order, at any pace."""
    setting, node = filled(standalone), standalone.nodes[0]
    writing = call(setting, "oltp_write_only", threads=1)
    one, other = (
        sent(node, lambda rate=rate: sysbench_driver.run(writing, setting, seconds=1, rate=rate, seed=7))
        for rate in (None, 300)
    )
    shorter = min(len(one), len(other))

    assert shorter > 20
    assert len(set(one[:shorter])) > shorter / 3
    assert one[:shorter] == other[:shorter]


def test_each_block_has_inputs_of_its_own(standalone, filled):
    """All variants of a block get the same ones; no draw of arrivals and rows is measured over and over."""
    setting, node = filled(standalone), standalone.nodes[0]
    writing = call(setting, "oltp_write_only", threads=1)
    third, again, fourth = (
        sent(
            node,
            lambda number=number: sysbench_driver.run(writing, dataclasses.replace(setting, block=number), seconds=0.5),
        )
        for number in (3, 3, 4)
    )
    shorter = min(len(third), len(again), len(fourth))

    assert shorter > 10
    assert third[:shorter] == again[:shorter] != fourth[:shorter]


def test_an_open_loop_counts_from_the_intended_start(standalone, filled):
    """A server that stands still makes every transaction slow that was to start meanwhile, not one a thread."""
    setting, pid = filled(standalone), standalone.nodes[0].process.pid

    def stall():
        os.kill(pid, signal.SIGSTOP)
        time.sleep(1.2)
        os.kill(pid, signal.SIGCONT)

    stalled = in_the_middle(stall, standalone.nodes[0])
    outcome, _ = sysbench_driver.run(call(setting, "oltp_point_select", threads=2), setting, seconds=3, rate=100)
    stalled.join()
    latencies = outcome.ledger.total.latencies

    assert outcome.rate == 100
    assert outcome.good == outcome.offered == latencies.total
    assert latencies.percentile(1) > 0.9
    assert latencies.percentile(0.9) > 0.3  # the stall is 40 % of the time


def test_an_open_loop_that_cannot_be_kept_ends(standalone, filled):
    """Starts that are due take place for as long again as the run lasts, the rest do not."""
    setting = filled(standalone)
    outcome, _ = sysbench_driver.run(call(setting, "oltp_read_write", threads=2), setting, seconds=0.3, rate=20_000)

    assert outcome.good < outcome.offered
    assert outcome.offered == pytest.approx(6000, rel=0.1)
    assert outcome.seconds < 5


def report(number, begun, ended, **fields):
    """What a thread leaves, one type of transaction."""
    entry = {"attempts": [[1, 5], [3, 1]], "committed": 5, "rolled_back": 0, "failed": 1, "unknown": 0}
    entry |= {"aborted_seconds": 0.5, "latencies": [[640, 5]]}
    own = {"id": number, "begun": begun, "ended": ended, "cpu": 0.5, "process_cpu": 1.5 + number, "lost": 0}
    own |= {"offered": 6, "by_second": [4, 1], "by_tenth": [3, 1, 1]}
    return {**own, "errors": [(1213, "node1", 3)], "kinds": {"pay": entry}, **fields}


def test_reports_of_threads_add_up():
    """Time runs from the first start to the last end; the busiest thread is told, and the CPU of the whole process."""
    other = report(1, 10.5, 12.5, cpu=1.0, by_second=[5], by_tenth=[5])
    outcome = sysbench_driver.outcome([report(0, 10.0, 12.0), other], 4.0)

    assert outcome.seconds == 2.5
    assert (outcome.operations, outcome.good, outcome.commits, outcome.offered) == (16, 10, 10, 12)
    assert (outcome.by_second, outcome.by_tenth) == ((9, 1), (8, 1, 1))
    assert outcome.ledger.errors == {(1213, "node1"): 6}
    assert outcome.ledger.entries["pay"].attempts == {1: 10, 3: 2}
    assert outcome.ledger.entries["pay"].latencies.counts == {640: 10}
    assert outcome.ledger.entries["pay"].aborted_seconds == 1.0
    assert (outcome.client_seconds, outcome.busiest, outcome.rate) == (1.5, 0.5, 4.0)
