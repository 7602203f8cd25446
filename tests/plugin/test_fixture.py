"""The fixture measure: calls that are written wrongly, refused before anything is looked up or started."""

from __future__ import annotations

import dataclasses
import re

import pytest

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.events import Kill
from pytest_dbcluster.plugin.fixture import Measure
from pytest_dbcluster.plugin.session import DBSession
from pytest_dbcluster.plugin.settings import Settings
from pytest_dbcluster.spec import ClusterSpec, ReleaseName
from pytest_dbcluster.workloads.mysqlslap import MySQLSlap
from pytest_dbcluster.workloads.sysbench import SysBench
from pytest_dbcluster.workloads.tpcc import TPCC
from tests.support import golden
from tests.support.facts import missing

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
    "two positions": (lambda measure: measure(WRITE, [ONE, OTHER]), ("usage: default, other = measure(",)),
    "no clusters": (lambda measure: measure(WRITE), ("'on'", "usage: default, other = measure(")),
    "misspelt": (
        lambda measure: measure(WRITE, on=[ONE, OTHER], accross_durability=True),
        ("accross_durability=", "write across_durability="),
    ),
    "a word": (lambda measure: measure(WRITE, on=[ONE, OTHER], across_durability="no"), ("='no'", "True or False")),
    "one cluster": (
        lambda measure: measure(WRITE, on=[ONE]),
        ("on=[standalone1]", "measure(workload, on=[standalone1, other_spec])", "other_name: other_workload"),
    ),
    "a spec": (lambda measure: measure(WRITE, on=ONE), ("list of ClusterSpec", "got ClusterSpec(")),
    "nothing": (lambda measure: measure(WRITE, on=[]), ("list of ClusterSpec", "got []")),
    "None": (lambda measure: measure(WRITE, on=None), ("list of ClusterSpec", "got None")),
    "a generator": (
        lambda measure: measure(WRITE, on=(spec for spec in (ONE, OTHER))),
        ("list of ClusterSpec", "got <generator"),
    ),
    "names of clusters": (
        lambda measure: measure(WRITE, on=["galera", "standalone"]),
        ("list of ClusterSpec", "got ['galera', "),
    ),
    "a name": (lambda measure: measure("write", on=[ONE, OTHER]), ('MySQLSlap("write")', "got 'write'")),
    "a class": (lambda measure: measure(MySQLSlap, on=[ONE, OTHER]), ('MySQLSlap("write")', "got <class ")),
    "names of workloads": (
        lambda measure: measure({"a": "write", "b": "read"}, on=[ONE]),
        ('MySQLSlap("write")', "got 'write'"),
    ),
    "a fraction": (lambda measure: measure(SysBench(rate=0.7), on=[ONE, OTHER]), ("rate=0.7", 'rate="70 %"')),
    "rounds too long for any claim": (
        lambda measure: measure(TPCC(seconds=10.0), on=[ONE, OTHER]),
        ("tpcc w1 t4", "8 x 2 rounds of 10 s take 160 s", "120 s"),
    ),
    "a capacity without an open loop": (
        lambda measure: measure.capacity(WRITE, on=[ONE, OTHER], p95=0.02),
        ("mysqlslap write", "has no open loop", "SysBench"),
    ),
    "a capacity without an objective": (
        lambda measure: measure.capacity(SysBench(), on=[ONE, OTHER]),
        ("one objective, such as p95=0.02",),
    ),
    "an objective in milliseconds": (
        lambda measure: measure.capacity(SysBench(), on=[ONE, OTHER], p95=20),
        ("p95=20 must be seconds", "20 ms is p95=0.02"),
    ),
    "an unknown percentile": (
        lambda measure: measure.capacity(SysBench(), on=[ONE, OTHER], p90=0.02),
        ("unknown percentile 'p90'", "p95"),
    ),
    "a capacity at a rate": (
        lambda measure: measure.capacity(SysBench(rate=500), on=[ONE, OTHER], p95=0.02),
        ("rate=500", "measure.capacity chooses the rates"),
    ),
    "a capacity of several workloads": (
        lambda measure: measure.capacity({"a": SysBench(), "b": TPCC()}, on=[ONE], p95=0.02),
        ("accepts one workload",),
    ),
    "a sweep of a name": (
        lambda measure: measure.sweep("write", on=[ONE, OTHER], threads=(1, 2)),
        ("measure.sweep(", "SysBench()", "got 'write'"),
    ),
    "a sweep in positions": (
        lambda measure: measure.sweep(WRITE, [ONE, OTHER], threads=(1, 2)),
        ("usage: curve = measure.sweep(workload, on=",),
    ),
    "a curve over one release": (
        lambda measure: measure.sweep(WRITE, on=[ONE], release=("mariadb:10.11",)),
        ("two or more releases of one product", "got mariadb:10.11"),
    ),
    "a curve over two products": (
        lambda measure: measure.sweep(WRITE, on=[ONE], release=("mariadb:10.11", "mysql:9.7")),
        ("two or more releases of one product", "got mariadb:10.11, mysql:9.7"),
    ),
    "a curve over one release twice": (
        lambda measure: measure.sweep(WRITE, on=[ONE], release=("mariadb:10.11", "mariadb:10.11=/opt")),
        ("mariadb:10.11 is there twice",),
    ),
    "a curve over a text": (
        lambda measure: measure.sweep(WRITE, on=[ONE], release="mariadb:10.11"),
        ("a list of releases and no other field", "got release='mariadb:10.11'"),
    ),
    "a curve over releases and threads": (
        lambda measure: measure.sweep(WRITE, on=[ONE], release=("mariadb:10.11", "mariadb:11.8"), threads=(1, 2)),
        ("no other field", "threads=(1, 2)"),
    ),
    "a curve over a product": (
        lambda measure: measure.sweep(WRITE, on=[ONE], release=("mariadb", "mysql")),
        ("a release is written NAME:VERSION", "got 'mariadb'"),
    ),
    "a curve over releases of a cluster with a release": (
        lambda measure: measure.sweep(
            WRITE, on=[ONE.on_release(ReleaseName("mariadb", "10.5"))], release=("mariadb:10.11", "mariadb:11.8")
        ),
        ("standalone1 names a release", "mariadb:10.5"),
    ),
    "a curve over releases of equal names": (
        lambda measure: measure.sweep(WRITE, on=[ONE, ONE], release=("mariadb:10.11", "mariadb:11.8")),
        ("different names", "standalone1, standalone1"),
    ),
    "a curve over releases of a name": (
        lambda measure: measure.sweep(WRITE, on="galera", release=("mariadb:10.11", "mariadb:11.8")),
        ("list of ClusterSpec", "got 'galera'"),
    ),
    "an event by its name": (
        lambda measure: measure.event(TPCC(), "kill", on=ONE),
        ('Kill("other")', "Nothing()", "got 'kill'"),
    ),
    "no events": (lambda measure: measure.event(TPCC(), {}, on=ONE), ("by name", "got {}")),
    "an event on nothing": (lambda measure: measure.event(TPCC(), Kill(), on=[]), ("ClusterSpec or a list", "got []")),
    "an event in positions": (lambda measure: measure.event(TPCC(), Kill(), ONE), ("usage: done = measure.event(",)),
    "an event never": (lambda measure: measure.event(TPCC(), Kill(), on=ONE, times=0), ("times=0", "from 1")),
    "a part of a block": (
        lambda measure: measure.event(TPCC(), Kill(), on=[ONE, OTHER], times=6),
        ("times=6", "blocks of 7", "times=7, 14 or 21"),
    ),
    "an event under mysqlslap": (
        lambda measure: measure.event(WRITE, Kill(), on=ONE),
        ("outlives an event", "TPCC", "got MySQLSlap("),
    ),
    "two events under two workloads": (
        lambda measure: measure.event({"a": TPCC(), "b": TPCC()}, {"kill": Kill()}, on=ONE),
        ("several workloads or several events, not both",),
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_call_is_refused(made, name):
    """The message names the wrong value and the right call; nothing is looked up."""
    call, facts = WRONG[name]
    with pytest.raises(ConfigError) as caught:
        call(made)

    assert missing(caught.value, *facts) == []


def test_golden_messages_about_wrong_calls(made):
    """They are those of the golden file."""
    messages = {name: golden.message_of(call, made) for name, (call, _) in WRONG.items()}
    messages["a generator"] = re.sub(r"0x[0-9a-f]+", "ADDRESS", messages["a generator"])
    golden.compare("measure", messages)


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

    def measurement(call):
        asked.append((call.workload.concurrency, list(call.on)))
        raise ConfigError("far enough")

    monkeypatch.setattr(made._session, "measurement", measurement)
    with pytest.raises(ConfigError, match=r"^far enough$"):
        made.sweep(dataclasses.replace(WRITE), on=[ONE], threads=(1, 2))
    assert asked == [(1, [ONE])]
