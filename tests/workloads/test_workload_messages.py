"""Messages on workloads that cannot run, as users read them."""

from __future__ import annotations

import dataclasses
import types
from pathlib import Path

from pytest_dbcluster.hosts.provisioners.fake import FakeHost
from pytest_dbcluster.releases import find
from pytest_dbcluster.releases.release import Release
from pytest_dbcluster.workloads import load_hosts, schema_mark
from pytest_dbcluster.workloads.mysqlslap import MySQLSlap
from pytest_dbcluster.workloads.sysbench import SysBench
from pytest_dbcluster.workloads.tpcc.workload import TPCC
from tests.support import golden

WRONG = {
    "a number is a text": lambda: TPCC(threads="4"),
    "a number is too small": lambda: SysBench(table_count=0),
    "a time is a text": lambda: TPCC(seconds="2"),
    "a time is infinite": lambda: SysBench(seconds=float("inf")),
    "a truth value is a text": lambda: TPCC(partitioned="no"),
    "a name is unknown": lambda: MySQLSlap("wriet"),
    "two parameters contradict": lambda: TPCC(thinking=True, rate=100),
    "two parameters do not fit": lambda: TPCC(partitioned=True),
    "clients have no query": lambda: MySQLSlap("key", concurrency=50, queries=40),
    "a script has one table": lambda: SysBench("select_random_points", table_count=2),
    "tables have another version": lambda: schema_mark.SchemaMark("dbcluster_tpcc", 2, "1 warehouse").stands(Old()),
    "a clock is too far away": lambda: load_hosts.clock(share("node1")),
}


class Old:
    """A node with tables of an old version."""

    name = "node1"

    def query(self, statement):
        """The version of its tables, and that all of them are there."""
        return [(1, "1 warehouse")]


def share(name):
    """A share of one terminal on a host."""
    return load_hosts.Share(FakeHost(name), 0, 1, 2)


def test_messages_on_workloads_that_cannot_run(monkeypatch):
    """They say what was tried, what was seen and what to do next."""
    now = iter(range(10**6))
    monkeypatch.setattr(load_hosts, "time", types.SimpleNamespace(time=lambda: next(now) * 0.2))
    monkeypatch.setattr(FakeHost, "run", lambda *_, **__: types.SimpleNamespace(stdout="0.5\n"))
    seen = {title: golden.message_of(call) for title, call in WRONG.items()}
    seen["a load host began late"] = load_hosts.late_start([share("a"), share("b")], [0.001, 1.2], 2.0)
    programs = Release("mysql:8.4", "mysql", "8.4.3", Path("/opt"), files=frozenset())
    seen["a release has no mysqlslap"] = MySQLSlap("key").lacks(programs)
    monkeypatch.setattr(find, "newest_with", lambda program, product: None)
    seen["an image has no mysqlslap"] = MySQLSlap("key").lacks(dataclasses.replace(programs, image="sha256:1"))

    golden.compare("workload_refusals", seen)
