"""A run as a whole: how it ends."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import subprocess
import types

import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.errors import ConfigError, Inconclusive, LockHeld, ProvisionError
from pytest_dbcluster.measuring.series import ordered
from pytest_dbcluster.plugin.calls.measure_call import MeasureCall
from pytest_dbcluster.plugin.fixture import Measure
from pytest_dbcluster.plugin.session import DBSession
from pytest_dbcluster.plugin.settings import Settings
from pytest_dbcluster.spec import ClusterSpec, ReleaseName
from pytest_dbcluster.system import machine_lock, processes
from pytest_dbcluster.system.machine_lock import BUILDING, MachineLock, Turns
from pytest_dbcluster.workloads.mysqlslap import MySQLSlap
from pytest_dbcluster.workloads.tpcc import TPCC
from tests.support.command import measuring_in
from tests.support.facts import missing


@pytest.fixture
def said():
    """What the run told."""
    return []


@pytest.fixture
def session(pytestconfig, tmp_path, said):
    """A run that has begun, on a machine of the test's own; it has started nothing."""
    made = DBSession(Settings.read(pytestconfig.option, tmp_path), pytestconfig)
    made.report = types.SimpleNamespace(line=lambda text, colour="": said.append(text))
    made.pool.turns = Turns(MachineLock(tmp_path / "machine"))
    with made.pool.turns.building():
        return made


def test_logs_of_failed_clusters_are_kept_among_the_results(session):
    """By the test that runs."""
    session.test_begins("test_a.py::test_it")

    assert session.provisioner.logs.directory == session.settings.results / "logs"
    assert session.provisioner.logs.test == "test_a.py::test_it"


def test_all_of_a_run_ends_in_a_turn(session, monkeypatch):
    """Clusters write much at their end, and so does the removal of what the provisioner has made."""
    having = []
    for owner in (session.pool, session.provisioner):
        monkeypatch.setattr(owner, "close", lambda: having.extend(session.pool.turns.machine.holders()))
    session.close()

    assert [(one.does, one.waits) for one in having] == [(BUILDING, False)] * 2


@pytest.mark.parametrize(
    ("worker", "ended", "seconds"), [(False, False, 20.0), (True, False, 5.0), (False, True, 3.0), (True, True, 3.0)]
)
def test_who_leaves_does_not_wait_for_long(session, monkeypatch, worker, ended, seconds):
    """A worker of pytest-xdist would be killed in the middle of it after 10 s; who pressed Ctrl-C waits for the end."""
    asked = []
    config = types.SimpleNamespace(workerinput={}) if worker else types.SimpleNamespace()
    monkeypatch.setattr(session, "_config", config)

    @contextlib.contextmanager
    def turn(*_, most, **__):
        asked.append(most)
        yield

    monkeypatch.setattr(session.pool.turns.machine, "turn", turn)
    session.close(ended=ended)

    assert asked == [seconds]


def test_waiting_for_the_machine_ends_with_the_runs_time(pytestconfig, tmp_path, own_machine):
    """Nothing was started, and who has the machine is named with its process id."""
    settings = dataclasses.replace(Settings.read(pytestconfig.option, tmp_path), run_budget=0.001)
    made = DBSession(settings, pytestconfig)
    with own_machine.turn(BUILDING):
        file = own_machine.directory / machine_lock.WORK
    with subprocess.Popen(["flock", file, "cat"], stdin=subprocess.PIPE) as other:
        lock = machine_lock.LockFile(own_machine.directory, machine_lock.WORK, "no lock")
        wait.until(lambda: [] if lock.lockers() else ["no lock"], "the lock", seconds=20)
        testbed = made.testbed(MySQLSlap("write"), [ClusterSpec("standalone")], ReleaseName("mariadb", "10.11"))
        with pytest.raises(Inconclusive) as caught:
            testbed.round(0, block=0, position=0)
        lock.close()
        other.stdin.close()
    made.close()

    assert "the run's budget of 0.001 s is spent (--db-run-budget)" in str(caught.value)
    assert f"pid {other.pid} ({processes.user_name(os.getuid())}) holds {file}" in str(caught.value)


WRONG = {
    "topology": (ClusterSpec("galara", nodes=3), "galara"),
    "size": (ClusterSpec("standalone", nodes=2), "standalone"),
    "release": (ClusterSpec("standalone", release="mariadb:10.99"), "mariadb:10.99"),
    "option": (ClusterSpec("standalone", options={"innodb_flash_log": 2}), "innodb_flash_log"),
    "value": (ClusterSpec("standalone", options={"max_connections": "many"}), "max_connections"),
}


@pytest.mark.parametrize(("spec", "named"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_in_a_spec_is_answered_while_others_have_the_machine(
    pytestconfig, tmp_path, mariadb, spec, named
):
    """No lock is waited for: neither for the answer, nor at the end of the run."""
    made = DBSession(Settings.read(pytestconfig.option, tmp_path), pytestconfig)
    made.pool.turns = Turns(MachineLock(tmp_path / "machine"))
    with measuring_in(tmp_path / "machine"):
        with wait.lock_limit(30.0, "--db-wait"), pytest.raises(ConfigError, match=re.escape(named)):
            made.testbed(MySQLSlap("write"), [spec], ReleaseName("mariadb", "10.11"))
        made.close()
        assert not made.pool.turns.had_turn


UNFETCHED = {
    "topology": (ClusterSpec("galara", nodes=3), "galara"),
    "ours": (ClusterSpec("standalone", options={"port": 3307}), "port"),
    "path": (ClusterSpec("standalone", options={"log_bin": "ibdata1"}), "ibdata1"),
    "missing file": (ClusterSpec("standalone").with_cnf("nowhere"), "nowhere.cnf"),
    "bad file": (ClusterSpec("standalone").with_cnf("bad"), "bad.cnf:1"),
}


@pytest.mark.parametrize(("spec", "named"), UNFETCHED.values(), ids=UNFETCHED)
def test_what_needs_no_release_is_answered_before_one_is_fetched(
    pytestconfig, tmp_path, monkeypatch, mariadb, spec, named
):
    """The cache is empty, and others have the machine: what is wrong in any release waits for neither."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    fragments = tmp_path / "fixtures" / "mycnf"
    fragments.mkdir(parents=True)
    (fragments / "bad.cnf").write_text("max_connections = 100\n[mysqld]\n")
    made = DBSession(
        dataclasses.replace(Settings.read(pytestconfig.option, tmp_path), fragments=fragments), pytestconfig
    )
    made.pool.turns = Turns(MachineLock(tmp_path / "machine"))
    with measuring_in(tmp_path / "machine"), wait.lock_limit(0.0, "--db-wait"):
        with pytest.raises((ConfigError, LockHeld), match=re.escape(named)):  # LockHeld would end this run
            made.testbed(MySQLSlap("write"), [spec], ReleaseName("mariadb", "10.11"))
        made.close()
        assert not made.pool.turns.had_turn


ONE = ClusterSpec("standalone")
POOL = ONE.with_options(innodb_buffer_pool_size="64M")
PRIMARY = ClusterSpec("async_replication", nodes=2)
WRITE = MySQLSlap("write")
REFUSED = {
    "budget": (TPCC(seconds=6.0), [ONE, POOL], lambda a, b: b.beats(a), "12 x 2 rounds of 6 s take 144 s"),
    "guard": (WRITE, [ONE, POOL], lambda a, b: b.no_slower_than(a, by=0.01), "by which equal clusters can differ"),
    "topologies": (WRITE, [ONE, PRIMARY], lambda a, b: b.same_as(a, within=0.01), "by which equal clusters can differ"),
    "steps": (WRITE, [ONE, POOL], lambda a, b: ordered(a, b, step=0.01), "by which equal clusters can differ"),
    "status": (WRITE, [ONE, POOL], lambda a, b: b.lower("recv_queue_max", than=a), "on separate clusters"),
}


@pytest.mark.parametrize(("load", "on", "claim", "named"), REFUSED.values(), ids=REFUSED)
def test_a_claim_that_cannot_be_decided_is_refused_while_others_have_the_machine(
    pytestconfig, tmp_path, mariadb, request, load, on, claim, named
):
    """A budget too small and a margin that equal clusters can differ by wait for no lock, and nothing starts."""
    made = DBSession(Settings.read(pytestconfig.option, tmp_path), pytestconfig)
    with made.pool.turns.building():  # the template, which the cache keeps
        made.testbed(load, on, ReleaseName("mariadb", "10.11"), across_durability=True)
    made.pool.turns = Turns(MachineLock(tmp_path / "machine"))
    with measuring_in(tmp_path / "machine"), wait.lock_limit(30.0, "--db-wait"):
        first, second = Measure(made, ReleaseName("mariadb", "10.11"), request.node, [])(
            load, on=on, across_durability=True
        )
        with pytest.raises((ConfigError, LockHeld), match=re.escape(named)):  # LockHeld would end this run
            claim(first, second)
        made.close()
        assert not made.pool.turns.had_turn


def test_an_end_that_fails_is_a_line(session, said, monkeypatch):
    """The tests are over, and pytest would call it an internal error; a second call does nothing."""

    def close():
        raise ProvisionError("the supervisor still ends them")

    monkeypatch.setattr(session.provisioner, "close", close)
    session.close()
    session.close()

    (line,) = said
    assert missing(line, "could not stop every server", ": the supervisor still ends them") == []


def test_loads_without_texts_for_names_are_refused_before_anything_starts(session, monkeypatch):
    """They would be drawn until decided, and their table would then be none."""
    monkeypatch.setattr(session, "testbed", lambda *_, **__: pytest.fail("started"))

    with pytest.raises(ConfigError, match=r"a name is a text, got 1, 16; write a text, such as \"threads 1\"$"):
        session.measurement(
            MeasureCall(workload={1: "a", 16: "b"}, on=[ClusterSpec("galera", nodes=3)], release=None, item=None)
        )


def test_clusters_are_not_promised_to_stay_where_they_cannot(pytestconfig, tmp_path):
    """It is said before anything is started."""
    settings = Settings.read(pytestconfig.option, tmp_path)

    with pytest.raises(ConfigError) as caught:
        DBSession(dataclasses.replace(settings, keep=True, provisioner="fake"), pytestconfig)
    assert missing(caught.value, "--db-keep: ", "provisioner fake", "cannot leave servers running") == []
