"""The fixture measure: calls that are written wrongly, refused before anything is looked up or started."""

from __future__ import annotations

import dataclasses

import pytest

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.plugin.fixture import Measure
from pytest_dbcluster.plugin.session import DBSession
from pytest_dbcluster.plugin.settings import Settings
from pytest_dbcluster.spec import ClusterSpec, ReleaseName
from pytest_dbcluster.workloads.mysqlslap import MySQLSlap
from pytest_dbcluster.workloads.sysbench import SysBench
from pytest_dbcluster.workloads.tpcc import TPCC

ONE = ClusterSpec("standalone")
OTHER = ONE.with_options(innodb_io_capacity=300)
WRITE = MySQLSlap("write")


@pytest.fixture
def made(pytestconfig, tmp_path, monkeypatch, request):
    """The fixture of a run that would fail the test if it looked for a release; its own name would make this a run."""
    session = DBSession(Settings.read(pytestconfig.option, tmp_path), pytestconfig)
    monkeypatch.setattr(session.resolution, "resolve", lambda *_, **__: pytest.fail("looked for a release"))
    return Measure(session, ReleaseName("mariadb", "10.11"), request.node, [])


WRONG = {
    "two positions": (
        lambda measure: measure(WRITE, [ONE, OTHER]),
        "measure(...): too many positional arguments; usage: default, other = measure(workload, on=[spec, ",
    ),
    "no clusters": (
        lambda measure: measure(WRITE),
        "measure(...): missing a required argument: 'on'; usage: default, other = measure(workload, on=[spec, ",
    ),
    "misspelt": (
        lambda measure: measure(WRITE, on=[ONE, OTHER], accross_durability=True),
        "measure(...): there is no argument accross_durability=; write across_durability= in place of ",
    ),
    "a word": (
        lambda measure: measure(WRITE, on=[ONE, OTHER], across_durability="no"),
        "measure(..., across_durability='no'): it accepts True or False",
    ),
    "one cluster": (
        lambda measure: measure(WRITE, on=[ONE]),
        "measure(workload, on=[standalone1]) has nothing to compare standalone1 with: a claim needs two variants. "
        "Compare two clusters, default, other = measure(workload, on=[standalone1, other_spec]), or two workloads on "
        "one cluster, measure({name: workload, other_name: other_workload}, on=[standalone1])",
    ),
    "a spec": (lambda measure: measure(WRITE, on=ONE), "measure(workload, on=[...]) takes a list of ClusterSpec, got "),
    "nothing": (lambda measure: measure(WRITE, on=[]), "measure(workload, on=[...]) takes a list of ClusterSpec, got "),
    "None": (lambda measure: measure(WRITE, on=None), "measure(workload, on=[...]) takes a list of ClusterSpec, got "),
    "a generator": (
        lambda measure: measure(WRITE, on=(spec for spec in (ONE, OTHER))),
        "measure(workload, on=[...]) takes a list of ClusterSpec, got <generator",
    ),
    "names of clusters": (
        lambda measure: measure(WRITE, on=["galera", "standalone"]),
        "measure(workload, on=[...]) takes a list of ClusterSpec, got ['galera', ",
    ),
    "a name": (
        lambda measure: measure("write", on=[ONE, OTHER]),
        "measure(workload, on=[...]) takes a workload, such as MySQLSlap(\"write\"), got 'write'",
    ),
    "a class": (
        lambda measure: measure(MySQLSlap, on=[ONE, OTHER]),
        'measure(workload, on=[...]) accepts a workload, such as MySQLSlap("write"); got <class ',
    ),
    "names of workloads": (
        lambda measure: measure({"a": "write", "b": "read"}, on=[ONE]),
        "measure(workload, on=[...]) takes a workload, such as MySQLSlap(\"write\"), got 'write'",
    ),
    "a fraction": (
        lambda measure: measure(SysBench(rate=0.7), on=[ONE, OTHER]),
        'rate=0.7 is 0.7 operations a second; for 70 % of the slowest variant\'s capacity, write rate="70 %"',
    ),
    "rounds too long for any claim": (
        lambda measure: measure(TPCC(seconds=10.0), on=[ONE, OTHER]),
        "tpcc w1 t4: no claim can be decided: its first look comes after 8 pairs, and 8 x 2 rounds of 10 s take 160 s: "
        "more than its budget of 120 s",
    ),
    "a sweep of a name": (
        lambda measure: measure.sweep("write", on=[ONE, OTHER], threads=(1, 2)),
        "measure.sweep(workload, on=[...]) takes a workload, such as SysBench(), got 'write'",
    ),
    "a sweep in positions": (
        lambda measure: measure.sweep(WRITE, [ONE, OTHER], threads=(1, 2)),
        "measure.sweep(...): too many positional arguments; usage: curve = measure.sweep(workload, on=",
    ),
    "a failover of a list": (
        lambda measure: measure.failover(TPCC(), on=[ONE]),
        "measure.failover(workload, on=spec) takes one ClusterSpec, got [",
    ),
    "a failover in positions": (
        lambda measure: measure.failover(TPCC(), ONE),
        "measure.failover(...): too many positional arguments; usage: done = measure.failover(TPCC(threads=4), ",
    ),
    "a failover under another load": (
        lambda measure: measure.failover(WRITE, on=ONE),
        "measure.failover compares the orders of TPCC, and got MySQLSlap(",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_call_is_one_sentence(made, name):
    """It says how the call is written; nothing is looked up."""
    call, words = WRONG[name]
    with pytest.raises(ConfigError) as caught:
        call(made)

    assert str(caught.value).startswith(words)


def test_the_mark_of_a_test_is_the_budget_of_its_rounds(made, monkeypatch, request):
    """A larger budget permits longer rounds, a smaller one refuses rounds that the run's budget permits."""
    monkeypatch.setattr(DBSession, "measurement", lambda *_, **__: pytest.skip("far enough"))
    request.node.add_marker(pytest.mark.budget(160))
    with pytest.raises(pytest.skip.Exception, match="far enough"):
        made(TPCC(seconds=10.0), on=[ONE, OTHER])
    request.node.add_marker(pytest.mark.budget(31), append=False)
    with pytest.raises(ConfigError, match="more than its budget of 31 s"):
        made(TPCC(seconds=2.0), on=[ONE, OTHER])


def test_a_sweep_of_one_cluster_is_a_curve(made, monkeypatch):
    """It can be drawn without a claim, so it compares nothing and is no mistake."""
    asked = []

    def measurement(workload, on, *_, **__):
        asked.append((workload.concurrency, list(on)))
        raise ConfigError("far enough")

    monkeypatch.setattr(made._session, "measurement", measurement)
    with pytest.raises(ConfigError, match=r"^far enough$"):
        made.sweep(dataclasses.replace(WRITE), on=[ONE], threads=(1, 2))
    assert asked == [(1, [ONE])]
