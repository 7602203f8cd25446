"""What holds for every workload on real servers: it runs, and gives its tables back as they were."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from pathlib import Path

import pytest

from pytest_dbcluster import workloads
from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.workloads.mysqlslap import MODES, MySQLSlap
from pytest_dbcluster.workloads.script import LuaScript
from pytest_dbcluster.workloads.sql import SQLFiles
from pytest_dbcluster.workloads.sysbench import SysBench
from pytest_dbcluster.workloads.workload import Setting, Workload

ITEMS = Path(__file__).parents[1] / "support" / "items"
SCRIPTS = Path(__file__).parents[1] / "workloads" / "script" / "scripts"
# Small enough for a test; a workload without an entry fails.
LOADS = {
    "luascript": [LuaScript(SCRIPTS / "counter.lua", threads=2, seconds=0.1, restore=True)],
    "mysqlslap": [MySQLSlap(mode, concurrency=4, queries=40, quick_queries=40, rows=300) for mode in MODES],
    "sqlfiles": [SQLFiles(ITEMS, threads=2, seconds=0.5)],  # one transaction in four writes
    "sysbench": [
        SysBench(f"oltp_{event}", table_count=2, size=300, threads=2, seconds=0.1)
        for event in ("insert", "delete", "update_index")
    ],
    "tpcc": [],  # its tables grow by design and take seconds to load: tests/workloads/tpcc/test_workload.py
}
OTHERS = [
    MySQLSlap("write", concurrency=4, queries=40, rows=300),
    SysBench("oltp_insert", size=200, threads=2, seconds=0.1),
]
# A load that leaves what it updated, and returns its tables to the rows that they had.
KEEPS_ROWS = (SQLFiles, SysBench)
ALL = [load for loads in LOADS.values() for load in loads]


# Two servers that replicate run all loads; one server repeats a load of each kind.
ONE_OF_EACH = [next(load for load in loads if load.writes) for loads in LOADS.values() if loads]
ALONE = [pytest.param(("standalone", load), marks=pytest.mark.thorough) for load in ONE_OF_EACH]
CASES = [*ALONE, *(("galera2", load) for load in ALL)]


@pytest.fixture(params=CASES, ids=lambda case: f"{case[0]}-{case[1]}")
def case(request):
    """The name of a cluster, and a load on it."""
    return request.param


@pytest.fixture(scope="module")
def client(provisioner):
    """A client for all loads."""
    (made,) = provisioner.acquire(ClusterSpec("standalone", name="client"))
    yield made
    provisioner.give_back([made])


@pytest.fixture
def setting(case, client, mariadb, request):
    """The cluster of the case, with the client."""
    return Setting(request.getfixturevalue(case[0]), client, mariadb, "quick", lambda line: None)


@pytest.fixture
def load(case, setting):
    """The load of the case, prepared, and cleaned up afterwards."""
    case[1].prepare(setting)
    yield case[1]
    case[1].clean(setting)


def sums(setting, load):
    """What each node's tables hold."""
    assert setting.cluster.settle(60), setting.cluster.backlog()
    return [[node.query(f"CHECKSUM TABLE {table}")[0][1] for table in load.tables] for node in setting.cluster.nodes]


def preload(setting, load):
    """What a reset has to bring back."""
    found = sums(setting, load)
    if not isinstance(load, KEEPS_ROWS):
        return found
    assert all(one == found[0] for one in found)  # on all nodes alike, whatever it is now
    node = setting.cluster.nodes[-1]
    return [node.query(f"SELECT COUNT(*), MIN(id), MAX(id), SUM(id) FROM {table}") for table in load.tables]


def test_every_workload_is_tested():
    """A new one needs an entry in this module."""
    modules = [
        importlib.import_module(one.name)
        for one in pkgutil.walk_packages(workloads.__path__, "pytest_dbcluster.workloads.")
    ]
    classes = {one for module in modules for one in vars(module).values() if inspect.isclass(one)}

    assert {
        one.__name__.lower() for one in classes if issubclass(one, Workload) and not inspect.isabstract(one)
    } == set(LOADS)


def test_a_run_says_how_long_it_took(setting, load):
    """In seconds of the load's own clock, with the operations that were asked for, or that its time was enough for."""
    outcome = load.run(setting)

    assert 0 < outcome.seconds < 60
    assert outcome.operations == getattr(load, "queries", outcome.ledger and outcome.ledger.total.tried) > 0
    assert (outcome.commits is not None) == load.writes


def test_a_reset_brings_every_node_back_to_the_preload(setting, load):
    """After a run that changes tables, all of their rows are again those that prepare had made, on all nodes."""
    prepared, held = preload(setting, load), sums(setting, load)
    load.run(setting)
    changed = sums(setting, load)
    load.reset(setting)

    assert (changed != held) == load.writes
    assert preload(setting, load) == prepared


def test_a_second_prepare_changes_nothing(setting, load):
    """The tables are there already."""
    prepared = sums(setting, load)
    load.prepare(setting)

    assert sums(setting, load) == prepared


def test_another_load_finds_its_own_preload(setting, load):
    """Loads that share a table do not inherit each other's rows."""
    prepared = preload(setting, load)
    for other in (one for one in OTHERS if type(one) is type(load)):
        other.prepare(setting)
        other.run(setting)
    load.prepare(setting)

    assert preload(setting, load) == prepared


def test_clean_leaves_nothing(setting, load):
    """None of its tables is there afterwards; cleaning twice is no error."""
    load.clean(setting)
    load.clean(setting)

    for table in load.tables:
        schema = table.partition(".")[0]
        assert setting.cluster.nodes[0].query(f"SHOW DATABASES LIKE '{schema}'") == []
