"""SQL files and users' scripts on a primary with a replica, and on a group: what holds for them on any topology."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import pytest

from pytest_dbcluster.clusters.servers.connection import SQLError
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.workloads.sql import SQLFiles
from pytest_dbcluster.workloads.workload import Setting
from tests.contracts import test_workloads as contract
from tests.support import dumps
from tests.workloads.sql.directories import directory

SHOP = Path(__file__).parents[2] / "suites" / "own" / "shop"
SHAPES = {"async_replication": (2, "mariadb"), "group_replication": (2, "mysql")}
LOADS = [*contract.LOADS["sqlfiles"], *contract.LOADS["luascript"]]
GROUP = pytest.mark.parametrize("cluster", ["group_replication"], indirect=True)
NOT_ACCEPTED = 3098  # a plugin does not accept the table
BROWSE = {"workload.toml": None, "browse.sql": "SELECT COUNT(*) FROM names;\n"}
KEYED = "CREATE TABLE names (id INT PRIMARY KEY, name VARCHAR(9));\n"

test_a_reset_brings_every_node_back_to_the_preload = contract.test_a_reset_brings_every_node_back_to_the_preload


@pytest.fixture(scope="module", params=SHAPES)
def cluster(request, bring):
    """The servers of a topology, which end before those of the next one start."""
    nodes, vendor = SHAPES[request.param]
    made = bring(request.param, nodes, request.getfixturevalue(vendor))
    yield made
    made.close()


@pytest.fixture(scope="module")
def setting(cluster, provisioner):
    """The cluster with a client of its own."""
    client = provisioner.acquire(dataclasses.replace(cluster.spec, nodes=1, name="client"))[0]
    yield Setting(cluster, client, cluster.nodes[0].release, "quick", lambda line: None)
    provisioner.give_back([client])


@pytest.fixture(params=LOADS, ids=str)
def load(request, setting):
    """Each workload, prepared, and cleaned up afterwards."""
    request.param.prepare(setting)
    yield request.param
    request.param.clean(setting)


REST = (
    contract.test_a_run_says_how_long_it_took,
    contract.test_a_second_prepare_changes_nothing,
    contract.test_clean_leaves_nothing,
)


@pytest.mark.thorough
@pytest.mark.parametrize("check", REST, ids=lambda check: check.__name__)
def test_the_rest_of_the_contract_holds(setting, load, check):
    """What test_workloads shows of these loads on nodes of Galera."""
    check(setting, load)


@pytest.fixture
def shop(tmp_path, setting):
    """``shop({"schema.sql": ...})``: a workload of these files, without its tables."""
    made = []

    def shop(files):
        made.append(SQLFiles(directory(tmp_path / f"{len(made)}" / "shop", {**BROWSE, **files}), threads=1))
        return made[-1]

    yield shop
    for each in made:
        each.clean(setting)


def rows(node, workload, table):
    """The number of rows of a table."""
    return node.query(f"SELECT COUNT(*) FROM {workload.database}.{table}")[0][0]


@pytest.fixture(scope="module")
def small_shop(tmp_path_factory):
    """The suite's shop with a twentieth of its rows."""
    made = tmp_path_factory.mktemp("small") / "shop"
    shutil.copytree(SHOP, made)
    text = (made / "workload.toml").read_text()
    (made / "workload.toml").write_text(text.replace("20000", "1000").replace("40000", "2000"))
    return made


def test_orders_of_a_shop_are_equal_on_all_nodes(setting, small_shop):
    """Readers and writers go to their nodes, and every acknowledged order is there with its items."""
    workload = SQLFiles(small_shop, threads=4, seconds=1.0)  # one transaction in ten is an order
    workload.prepare(setting)
    try:
        committed = workload.run(setting).ledger.entries["order"].committed
        reads = dataclasses.replace(workload, transactions=["browse.sql", "history.sql"], to="reader").run(setting)
        assert setting.cluster.settle(60), setting.cluster.backlog()
        setting.cluster.check(workload.tables)

        assert committed > 0
        assert reads.good > 0
        for node in setting.cluster.nodes:
            assert rows(node, workload, "orders") == 1000 + committed
            assert rows(node, workload, "order_items") == 2000 + 2 * committed
    finally:
        workload.clean(setting)


@GROUP
@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ("CREATE TABLE names (id INT, name VARCHAR(9));", "table names has no primary key, and group_replication ref"),
        ("CREATE TABLE names (id INT NOT NULL) ENGINE=MEMORY;", "table names has engine MEMORY, and group_replication"),
        (
            KEYED + "CREATE TABLE o LIKE names;\nALTER TABLE o DROP PRIMARY KEY;",
            "table o has no primary key, and group",
        ),
        ("CREATE TABLE names (id INT, UNIQUE (id));", "table names has no primary key, and group_replication refuses"),
    ],
)
def test_a_group_refuses_tables_before_their_rows(setting, shop, schema, words):
    """Also those of which only the server knows the key; no row is sent."""
    workload = shop({"schema.sql": schema, "data/names.csv": "1,a\n"})
    with pytest.raises(ConfigError, match=words):
        workload.prepare(setting)

    assert rows(setting.cluster.writers[0], workload, "names") == 0


@GROUP
def test_a_group_takes_rows_only_with_a_key(setting, shop):
    """A unique key without NULL serves as a primary key. So the refusal is right, and no stricter than the server."""
    node = setting.cluster.writers[0]
    workload = shop({"schema.sql": "CREATE TABLE names (id INT NOT NULL, name VARCHAR(9), UNIQUE (id));\n"})
    workload.prepare(setting)
    node.query(f"INSERT INTO {workload.database}.names VALUES (1, 'a')")
    node.query(f"CREATE TABLE {workload.database}.plain (id INT)")

    with pytest.raises(SQLError) as caught:
        node.query(f"INSERT INTO {workload.database}.plain VALUES (1)")
    assert caught.value.number == NOT_ACCEPTED
    (line,) = setting.cluster.new_errors()
    assert "Table plain does not have any PRIMARY KEY" in line


@GROUP
def test_a_dump_of_a_group_loads_on_a_group(setting, shop):
    """It switches the binary log off, and sets the transactions of its server; neither reaches the group."""
    node = setting.cluster.writers[0]
    node.query("CREATE DATABASE origin")
    node.query(KEYED.replace("names", "origin.names").strip(";\n"))
    node.query("INSERT INTO origin.names VALUES (1, 'a'), (2, 'b;')")
    text = dumps.dumped(node, "origin")
    node.query("DROP DATABASE origin")
    assert b"SQL_LOG_BIN= 0" in text
    assert b"GTID_PURGED" in text
    workload = shop({"schema.sql": None, "dump.sql": text})
    workload.prepare(setting)
    assert setting.cluster.settle(60), setting.cluster.backlog()
    setting.cluster.check(workload.tables)

    for one in setting.cluster.nodes:
        assert one.query(f"SELECT id, name FROM {workload.database}.names") == [(1, "a"), (2, "b;")]
