"""What holds for every topology, on real servers: ready means ready, a write arrives, a killed node comes back.

A topology is run from the moment its file exists, on every release that can be it.
"""

from __future__ import annotations

import dataclasses
import os
import shutil
from pathlib import Path

import psutil
import pytest

from pytest_dbcluster import registry, wait
from pytest_dbcluster.clusters.servers.cnf_file import read
from pytest_dbcluster.clusters.servers.cnf_judge import judge_file
from pytest_dbcluster.clusters.servers.connection import Connection, SQLError
from pytest_dbcluster.clusters.servers.node import LOAD
from pytest_dbcluster.clusters.topology import PLANNED, topology, usual_nodes
from pytest_dbcluster.errors import ConfigError, NodeDied
from pytest_dbcluster.hosts.provisioners.ssh.host import SshHost
from pytest_dbcluster.hosts.provisioners.vm.host import GuestHost
from pytest_dbcluster.hosts.runs import Run
from pytest_dbcluster.releases import find
from pytest_dbcluster.testbed import timeline
from pytest_dbcluster.testbed.evidence.durability import Durability
from tests.support.facts import missing
from tests.support.guests import servers_in
from tests.support.hostile import contents, hostile_cnf, open_for_writing
from tests.support.sockets import beyond_this_machine, open_ports, open_ports_elsewhere

NAMES = sorted(registry.names("topology"))
ONE_NODE = {"standalone"}
STANDS_BY = {"drbd"}  # two nodes, one of which has no server, on hosts with disks: guests
ONLY = {"galera": "mariadb", "group_replication": "mysql"}  # what else has its own test that it is refused
RELEASES = ("mariadb:10.11", "mariadb:11.8", "mysql:9.7")  # three nodes on the first one that can be it, else two
IN_CONTAINERS = {"group_replication": "mysql:9.7", "semisync": "mysql:9.7"}  # the rest on mariadb:10.11
QUICK = {"standalone"}  # in guests and on machines elsewhere the others take their time: make guests, make remote
# Other cases show the topology and the release of these, which run by make thorough. Usual tests of a server where
# hosts are guests, machines elsewhere, or a group of containers: hosts/provisioners/vm/test_durability.py,
# contracts/test_remote_workloads.py and contracts/test_contained_vendors.py.
REPEATED = {
    "local": {
        ("async_replication", "mariadb:11.8"),
        ("async_replication", "mysql:9.7"),
        ("galera", "mariadb:11.8"),
        ("semisync", "mariadb:10.11"),
        ("semisync", "mariadb:11.8"),
        ("standalone", "mysql:9.7"),
    },
    "container": {
        ("async_replication", "mariadb:10.11"),
        ("group_replication", "mysql:9.7"),
        ("semisync", "mysql:9.7"),
        ("standalone", "mariadb:10.11"),
    },
    "vm": {("standalone", "mariadb:10.11")},
    "ssh": {("standalone", "mariadb:10.11")},
}


def cases():
    """Each topology on each release of its vendors, with one, two and three nodes; each wherever else hosts can be."""
    for name in NAMES:
        if name in STANDS_BY:
            continue
        first, *others = [release for release in RELEASES if release.startswith(ONLY.get(name, ""))]
        yield marked((name, 1 if name in ONE_NODE else 3, first, "local"))
        for release in others:
            yield marked((name, 1 if name in ONE_NODE else 2, release, "local"))
        if name not in ONE_NODE and topology(name).minimum_nodes == 1:
            yield name, 1, first, "local"
    for name in NAMES:
        if name not in STANDS_BY:
            release = IN_CONTAINERS.get(name, "mariadb:10.11")
            yield marked((name, 1 if name in ONE_NODE else 3, release, "container"))
    for name in NAMES:
        nodes = 1 if name in ONE_NODE else 2 if name in STANDS_BY else 3
        case = name, nodes, IN_CONTAINERS.get(name, "mariadb:10.11"), "vm"
        yield marked(case) if name in QUICK else pytest.param(case, marks=pytest.mark.guests)
    for name in NAMES:
        case = name, 1 if name in ONE_NODE else 3, IN_CONTAINERS.get(name, "mariadb:10.11"), "ssh"
        if name not in STANDS_BY:  # refused: tests/clusters/topologies/drbd/test_topology.py
            yield marked(case) if name in QUICK else pytest.param(case, marks=pytest.mark.remote)


def marked(case):
    """The case, with the mark of those that ``REPEATED`` has."""
    name, _, release, where = case
    return pytest.param(case, marks=pytest.mark.thorough) if (name, release) in REPEATED[where] else case


def label(case):
    """The id of a case."""
    name, nodes, release, where = case
    return f"{name}{nodes}-{release}" + (f"-{where}" if where != "local" else "")


class Victims(dict):
    """The my.cnf of each vendor that leads to files which are not ours; ``changed`` says what happened to them."""

    def __init__(self):
        self._before = {}

    def plant(self, directory, stand_in=None):
        """Remember the files of a directory; on a stand-in host, of a copy that its root may write."""
        if stand_in:
            copied = stand_in.root / str(directory).lstrip("/")
            shutil.copytree(directory, copied)
            for path in (copied, *copied.rglob("*")):
                os.chown(path, stand_in.first_id, stand_in.first_id)
            directory = copied
        self._before[directory] = contents(directory)

    def changed(self):
        """The directories whose files are not those that they were."""
        return [str(directory) for directory, before in self._before.items() if contents(directory) != before]


@pytest.fixture(scope="module")
def victims(tmp_path_factory):
    """Files that are not ours, and a my.cnf for each vendor whose paths lead to them."""
    found = Victims()
    for vendor in ("mariadb", "mysql"):
        found[vendor] = hostile_cnf(tmp_path_factory.mktemp(vendor), vendor)
        found.plant(found[vendor].parent)
    return found


@pytest.fixture(scope="module")
def victims_elsewhere(victims, elsewhere):
    """The same files on machines elsewhere, under the same paths."""
    for host in elsewhere:
        for cnf in victims.values():
            victims.plant(cnf.parent, host)


@pytest.fixture(scope="module", params=cases(), ids=label)
def cluster(request, bring, provisioner, victims):
    """One of them, under a my.cnf of another host whose paths lead to the files of ``victims``."""
    name, nodes, release, where = request.param
    cnf = read(victims[release.partition(":")[0]])
    if where == "container":
        contain, imaged = request.getfixturevalue("contain"), request.getfixturevalue("imaged")
        options = judge_file(cnf, imaged(release), request.getfixturevalue("containers")).options
        made = contain(name, nodes, release, **options)
    elif where == "vm":
        options = judge_file(cnf, find.find(release), request.getfixturevalue("guests")).options
        made = request.getfixturevalue("guest")(name, nodes, release, **options)
    elif where == "ssh":
        request.getfixturevalue("victims_elsewhere")
        options = judge_file(cnf, find.find(release), request.getfixturevalue("machines")).options
        made = request.getfixturevalue("remote")(name, nodes, release, **options)
    else:
        found = find.find(release)
        made = bring(name, nodes, found, **judge_file(cnf, found, provisioner).options)
    yield made
    made.close()


def servers(cluster):
    """How many of its nodes have a server."""
    return cluster.topology.servers(cluster.spec.nodes)


def value_everywhere(cluster):
    """The rows of the table that the tests write, as each node with a server has them."""
    return [node.query("SELECT id, word FROM contract.words ORDER BY id") for node in cluster.nodes]


def written(cluster, node, word):
    """Write one row on one node and wait until it is settled everywhere."""
    node.query("CREATE DATABASE IF NOT EXISTS contract")
    node.query("CREATE TABLE IF NOT EXISTS contract.words (id INT PRIMARY KEY, word VARCHAR(20))")
    node.query(f"REPLACE INTO contract.words VALUES (1, '{word}')")
    assert cluster.settle(60), cluster.backlog()


def test_ready_means_that_nothing_is_missing(cluster):
    """A cluster that was handed out has no problem, it settles, and every node answers for itself."""
    assert cluster.problems() == []
    assert cluster.settle(60), cluster.backlog()
    assert [node.query("SELECT @@port")[0][0] for node in cluster.nodes] == [node.port for node in cluster.nodes]
    assert (len(cluster.nodes), len(cluster.members)) == (servers(cluster), cluster.spec.nodes)
    assert set(cluster.nodes) <= set(cluster.members)


def test_a_node_answers_more_with_its_backlog(cluster):
    """The answers are of each node with a server; where servers are not asked for the backlog, there are none."""
    assert cluster.settle(60), cluster.backlog()

    lines, answers = cluster.backlog_with(lambda node: ["SELECT @@port", *node.flush_statements])

    assert lines == []
    asked = cluster.topology.replicates and cluster.spec.topology != "drbd"
    assert (answers is not None) == asked
    assert [rows[0] for rows in answers or []] == [[(node.port,)] for node in cluster.nodes if asked]

    def unflushed():
        _, answers = cluster.backlog_with(lambda node: node.flush_statements)
        return [
            line for node, rows in zip(cluster.nodes, answers, strict=True) for line in node.flush_backlog(rows[-1])
        ]

    if asked:  # a server may write a little for itself after its flush
        wait.until(unflushed, "flushed logs", seconds=60)


def test_nodes_listen_on_one_address_alone(cluster):
    """No port of any process of the run is open to other machines, except XCom's, which lets the members in alone.

    Containers and machines elsewhere have a network of their own; their servers listen on their own address there.
    """
    listens = {node.name: node.query("SELECT @@bind_address")[0][0] for node in cluster.nodes}
    assert listens == {node.name: node.host.address for node in cluster.nodes}
    xcom = set()
    if cluster.spec.topology == "group_replication":
        members = ",".join(dict.fromkeys(listens.values()))
        assert {node.query("SELECT @@group_replication_ip_allowlist")[0][0] for node in cluster.nodes} == {members}
        addresses = [node.query("SELECT @@group_replication_local_address")[0][0] for node in cluster.nodes]
        xcom = {int(address.rpartition(":")[2]) for address in addresses}
    if all(isinstance(node.host, SshHost) for node in cluster.nodes):
        for node in cluster.nodes:
            seen = open_ports_elsewhere(node.host)
            assert (node.host.address, node.port) in {(port.address, port.number) for port in seen}
            assert {port.number for port in seen if port.address not in (node.host.address, "127.0.0.1")} <= xcom
    if set(listens.values()) == {"127.0.0.1"}:
        seen = open_ports(cluster.hosts)
        assert {node.port for node in cluster.nodes} <= {port.number for port in seen}
        assert {port.number for port in beyond_this_machine(seen)} == xcom


def test_no_server_writes_outside_of_its_node(cluster, victims):
    """Every file that is open for writing lies below the node, whatever its my.cnf asked; no other file has changed."""
    for node in cluster.nodes:
        files = open_for_writing(node)
        assert {path for path in files if not path.startswith(f"{node.host.directory}/")} == set()
        names = {Path(path).name.partition(" ")[0] for path in files}
        assert {"general.log", "slow.log"} <= names  # what the my.cnf asked for was not just left out
        assert any(name.startswith("old-bin.0") for name in names)
    assert victims.changed() == []


def test_a_start_needs_no_state_transfer(cluster):
    """All nodes start from one template, so none has to be sent the data of another."""
    for node in cluster.nodes:
        log = node.host.pull(node.log).decode()
        assert "Running: 'wsrep_sst_" not in log
        assert "Receiving IST" not in log


def test_a_write_on_any_writer_arrives_on_all(cluster):
    """What one node has committed is on every node once the cluster is settled."""
    assert set(cluster.writers) <= set(cluster.nodes)
    for node in cluster.writers:
        written(cluster, node, node.name)

        assert value_everywhere(cluster) == [[(1, node.name)]] * servers(cluster)


def test_a_check_of_equal_tables_passes(cluster):
    """Nodes that are ready and hold the same rows fail no check."""
    written(cluster, cluster.writers[0], "equal")

    cluster.check(["contract.words"])

    assert cluster.dirty == ""


def test_who_takes_no_writes_refuses_a_load(cluster):
    """The account of loads can write on writers alone; servers say of themselves who takes writes, and who reads."""
    written(cluster, cluster.writers[0], "role")
    reading = cluster.topology.readers(cluster.nodes)
    for node in cluster.nodes:
        asked = cluster.topology.health(node, cluster.nodes)
        seen = node.pairs(asked.statement)
        writes = all(seen.get(name) == value for name, value in asked.writer.items())
        assert writes == (node in cluster.writers)
        assert (node in reading) == all(seen.get(name) == value for name, value in asked.reader.items())
        connection = Connection(node.name, dataclasses.replace(node.endpoint, user=LOAD))
        if not writes:
            with pytest.raises(SQLError, match="read-only"):
                connection.query("REPLACE INTO contract.words VALUES (2, 'refused')")
        else:
            connection.query("REPLACE INTO contract.words VALUES (1, 'role')")
        connection.close()
    assert cluster.settle(60), cluster.backlog()
    assert value_everywhere(cluster) == [[(1, "role")]] * servers(cluster)


def test_a_quiet_round_counts(cluster):
    """Nothing voids a round in which a commit arrived everywhere, and a commit is worth something."""
    before = cluster.topology.watch(cluster.nodes)
    written(cluster, cluster.writers[0], "quiet")

    assert cluster.topology.void(before, cluster.topology.watch(cluster.nodes)) == ""
    assert Durability.of(cluster.topology, cluster.writers[0].variables(), cluster.spec.nodes).acknowledged


PULSES = {
    "galera": {"flow_control_paused", "receive_queue"},
    "group_replication": {"receive_queue", "certification_queue", "flow_control_held"},
    "async_replication": {"replica_lag"},
    "semisync": {"replica_lag"},
}


def test_every_second_of_a_round_says_what_the_topology_knows(cluster):
    """Of each node; a primary has no lag, and one server nothing to wait for."""
    wanted = PULSES.get(cluster.spec.topology, set())
    nodes = [node.name for node in cluster.nodes]
    with_role = nodes[1:] if "replica_lag" in wanted else nodes
    expected = {f"{name}_{node}" for name in wanted for node in with_role}
    values = timeline.of_servers(cluster, timeline.Askers())

    assert set(values) == expected
    assert all(value >= 0 for value in values.values())


def test_a_killed_node_is_named_and_comes_back(cluster):
    """Its death is told from slowness; started again it is ready with all that was committed, not sent it whole."""
    written(cluster, cluster.writers[0], "before")
    victim = cluster.nodes[-1]
    victim.kill()
    with pytest.raises(NodeDied, match=rf"^node {victim.name} was ended by SIGKILL; the last lines of its error log"):
        cluster.problems()

    offset = len(victim.host.pull(victim.log))
    cluster.topology.rejoin(victim, cluster.nodes)

    wait.until(cluster.problems, "the cluster", seconds=60, poll=0.2)
    written(cluster, victim if victim in cluster.writers else cluster.writers[0], "back")
    assert value_everywhere(cluster) == [[(1, "back")]] * servers(cluster)
    assert "xtrabackup_sst" not in victim.host.pull(victim.log, offset=offset).decode()


def test_no_file_elsewhere_has_changed(cluster, victims):
    """After all the writes and a restart, the files that the my.cnf named are what they were, with no new one."""
    assert victims.changed() == []


def test_close_leaves_no_process(cluster):
    """After close none of the servers exists, and nobody's other servers were touched."""
    if isinstance(cluster.nodes[0].host, (GuestHost, SshHost)):
        assert [servers_in(node.host) for node in cluster.nodes] == [1] * len(cluster.nodes)
        cluster.close()
        assert [servers_in(node.host) for node in cluster.nodes] == [0] * len(cluster.nodes)
        return
    run = Run(Path(cluster.nodes[0].host.directory).parents[1], 0, 0.0, kept=False)
    pids = {node.process.pid for node in cluster.nodes}
    assert all(map(psutil.pid_exists, pids))
    others = {process.pid for process in run.processes() if process.name() in ("mariadbd", "mysqld")} - pids
    cluster.close()

    assert {process.pid for process in run.processes()} & pids == set()
    assert all(psutil.pid_exists(pid) for pid in others)


@pytest.mark.parametrize("name", NAMES)
def test_the_usual_number_of_nodes_is_a_possible_one(name):
    """Users who name none get a cluster: three nodes where there can be three."""
    nodes = usual_nodes(name)

    assert topology(name).wrong_size(nodes) == ""
    assert nodes == 3 or topology(name).wrong_size(3)


def test_an_unknown_topology_lists_the_known_ones():
    """A misspelt name is answered with all names, and with the one that was probably meant."""
    with pytest.raises(ConfigError) as caught:
        topology("galara")

    known = ", ".join(sorted({*NAMES, *PLANNED}))
    assert missing(caught.value, "unknown topology 'galara'", f"known: {known};", "did you mean galera?") == []
