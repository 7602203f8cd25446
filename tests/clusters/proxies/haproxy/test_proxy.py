"""HAProxy before real servers: whom its listeners lead to, and how it ends."""

from __future__ import annotations

import json
import signal
import time
import urllib.request
from collections import Counter
from pathlib import Path

import psutil
import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.clusters.cluster import Cluster
from pytest_dbcluster.clusters.proxies.haproxy import proxy as haproxy
from pytest_dbcluster.clusters.proxies.haproxy.proxy import HAProxy
from pytest_dbcluster.clusters.proxy import query_through
from pytest_dbcluster.clusters.servers.connection import Connection, SQLError
from pytest_dbcluster.clusters.servers.node import LOAD
from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.hosts.provisioners.fake import FakeHost, FakeProcess
from pytest_dbcluster.hosts.provisioners.local import LocalProvisioner
from pytest_dbcluster.releases.find import find
from pytest_dbcluster.spec import ClusterSpec
from tests.support.clusters import bring_up
from tests.support.facts import missing
from tests.support.sockets import beyond_this_machine, open_ports


@pytest.fixture(scope="module")
def provisioner():
    """Hosts of this machine; everything on them ends with the module."""
    local = LocalProvisioner()
    yield local
    local.close()


def behind(provisioner, topology, nodes, release):
    """A cluster behind haproxy with its defaults."""
    spec = ClusterSpec(topology, nodes=nodes, proxy="haproxy")
    made = bring_up(spec, find(release), provisioner, options={})
    yield made
    made.close()
    provisioner.give_back(made.hosts)


@pytest.fixture(scope="module")
def cluster(provisioner):
    """Three Galera nodes behind haproxy with its defaults; the last test that uses them kills one."""
    yield from behind(provisioner, "galera", 3, "mariadb:10.11")


@pytest.fixture(scope="module")
def patient(cluster, provisioner):
    """The same nodes behind a haproxy that neither ends sessions when the first one is back nor takes donors out.

    It notices a paused server in half of the usual time.
    """
    options = {"fail_back": False, "available_when_donor": True, "check_timeout": 1, "check_interval": 0.2}
    spec = ClusterSpec("galera", nodes=3, proxy="haproxy", proxy_options=options)
    proxy = HAProxy(provisioner, cluster.topology, cluster.nodes)
    proxy.option_values = proxy.read_settings(spec, cluster.topology)
    try:
        proxy.start()
        made = Cluster(spec, cluster.topology, cluster.hosts, cluster.members, proxy)
        wait_ready(made)
        yield made
    finally:
        proxy.close()


def test_it_listens_on_this_machine_alone(cluster):
    """Listeners, statistics and status ports are open on 127.0.0.1, and no port of the cluster on another address."""
    seen = open_ports([*cluster.hosts, cluster.proxy.host])

    numbers = {port.number for port in seen}
    assert {cluster.writer().port, cluster.reader().port, *cluster.proxy._ports} <= numbers
    assert len([port for port in seen if "python" in port.program]) >= len(cluster.nodes)
    assert beyond_this_machine(seen) == set()


def landed(endpoint):
    """The name of the node that a new connection reaches."""
    connection = Connection("test", endpoint, seconds=10)
    try:
        return connection.query("SELECT @@wsrep_node_name")[0][0]
    finally:
        connection.close()


def arrived(names, endpoint):
    """The name of the node that a new connection reaches, by its port."""
    return names[query_through("test", endpoint, "SELECT @@port")[0][0]]


def wait_spread(reached, times, shares):
    """Wait until so many connections, one after the other, reach the nodes in these shares.

    HAProxy gives a server that has come up several in a row at first: six, in one of eight times.
    """

    def otherwise():
        seen = Counter(reached() for _ in range(times))
        return [] if seen == shares else [str(dict(seen))]

    wait.until(otherwise, "the shares of the nodes", seconds=60)


def wait_ready(cluster):
    """Wait until every node is Synced and in both listeners."""
    wait.until(cluster.problems, "cluster", seconds=60)


def out(cluster, name):
    """Problems, as long as haproxy still counts this node as up."""

    def problems():
        return [] if any(f"reader/{name} is DOWN" in line for line in cluster.proxy.problems()) else [f"{name} is in"]

    return problems


def test_the_writer_always_leads_to_the_first_node(cluster):
    """Every connection to the writer is one to node1."""
    assert {landed(cluster.writer()) for _ in range(12)} == {"node1"}
    assert cluster.proxy.writes_to() == "node1"
    assert cluster.writer().nodes == ("node1",)


def test_the_reader_takes_the_nodes_in_turn(cluster):
    """Thirty connections are ten on each node."""
    wait_spread(lambda: landed(cluster.reader()), 30, {"node1": 10, "node2": 10, "node3": 10})
    assert cluster.reader().nodes == ("node1", "node2", "node3")


def test_the_endpoints_have_the_account_of_the_nodes(cluster):
    """A load that can connect to a node can connect to the proxy, with the account that loads have."""
    node = cluster.nodes[0].endpoint

    for endpoint in (cluster.writer(), cluster.reader()):
        assert (endpoint.user, endpoint.password) == (LOAD, node.password)


def test_a_desynced_node_leaves_the_rotation_and_comes_back(cluster):
    """Traffic goes on with the other nodes, and returns to it when it is Synced again."""
    cluster.nodes[1].query("SET GLOBAL wsrep_desync = ON")
    try:
        wait.until(out(cluster, "node2"), "node2 out of the rotation", seconds=60)
        wait_spread(lambda: landed(cluster.reader()), 20, {"node1": 10, "node3": 10})
    finally:
        cluster.nodes[1].query("SET GLOBAL wsrep_desync = OFF")
    wait_ready(cluster)

    wait_spread(lambda: landed(cluster.reader()), 9, {"node1": 3, "node2": 3, "node3": 3})


def test_a_drained_node_gets_no_connection(cluster):
    """Its connections end, and new ones lead to the next node, until it is no longer drained."""
    proxy = cluster.proxy
    held = Connection("held", proxy.writer(), seconds=10)
    assert held.query("SELECT @@wsrep_node_name") == [("node1",)]
    assert any("writer/node1 is UP with 1 connections" in line for line in proxy.drain_problems("node1"))
    proxy.drain(["node1"])
    wait.until(lambda: proxy.drain_problems("node1"), "the drained node", seconds=60)

    with pytest.raises(SQLError):
        held.query("SELECT 1")
    assert landed(proxy.writer()) == proxy.writes_to() == "node2"
    proxy.drain([])
    wait_ready(cluster)
    assert landed(proxy.writer()) == "node1"


def test_a_session_is_not_left_on_the_second_node(cluster):
    """When node1 is back, a connection that went to node2 meanwhile is ended: there is one writer."""
    cluster.nodes[0].query("SET GLOBAL wsrep_desync = ON")
    connection = Connection("test", cluster.writer(), seconds=10)
    try:
        wait.until(out(cluster, "node1"), "node1 out of the rotation", seconds=60)
        assert connection.query("SELECT @@wsrep_node_name") == [("node2",)]
    finally:
        cluster.nodes[0].query("SET GLOBAL wsrep_desync = OFF")
    wait_ready(cluster)

    with pytest.raises(SQLError):
        connection.query("SELECT 1")
    connection.close()
    assert landed(cluster.writer()) == "node1"


def test_without_fail_back_a_session_stays_on_the_second_node(patient):
    """While the writer is paused, connections go to node2. Later they stay there, and new ones go to node1."""
    first, process = patient.nodes[0], patient.nodes[0].process
    connection = Connection("test", patient.writer(), seconds=10)
    first.sql.close()
    process.signal(signal.SIGSTOP)
    try:
        wait.until(out(patient, "node1"), "node1 out of the rotation", seconds=60)
        assert connection.query("SELECT @@wsrep_node_name") == [("node2",)]
    finally:
        process.signal(signal.SIGCONT)
    wait_ready(patient)

    assert connection.query("SELECT @@wsrep_node_name") == [("node2",)]
    assert landed(patient.writer()) == "node1"
    connection.close()


def test_a_donor_may_stay_in_the_rotation(patient):
    """Its state is Donor/Desynced, and its health is still good: the writer leads to it."""
    first, settings = patient.nodes[0], Path(patient.proxy.host.directory) / "status_port.cfg"
    port = json.loads(settings.read_text())["nodes"][0]["status_port"]

    def health():
        with urllib.request.urlopen(f"http://{patient.proxy.host.address}:{port}/writer", timeout=10) as answer:
            return answer.read().decode()

    first.query("SET GLOBAL wsrep_desync = ON")
    try:
        wait.until(lambda: [] if "Donor/Desynced" in health() else ["not yet"], "node1 as a donor", seconds=60)
        assert landed(patient.writer()) == "node1"
        assert patient.proxy.problems() == []
    finally:
        first.query("SET GLOBAL wsrep_desync = OFF")
    wait_ready(patient)


@pytest.fixture(scope="module", params=["mariadb:10.11", pytest.param("mysql:9.7", marks=pytest.mark.thorough)])
def replicas(request, provisioner):
    """A primary and two replicas behind haproxy."""
    yield from behind(provisioner, "async_replication", 3, request.param)


def test_replicas_take_the_reads(replicas):
    """The writer is the primary and nobody else; a replica that does not follow it any more gets no reads."""
    cluster, names = replicas, {node.port: node.name for node in replicas.nodes}
    wait_spread(lambda: arrived(names, cluster.proxy.reader()), 10, {"node2": 5, "node3": 5})
    assert {arrived(names, cluster.proxy.writer()) for _ in range(6)} == {"node1"}
    assert (cluster.writer().nodes, cluster.reader().nodes) == (("node1",), ("node2", "node3"))

    cluster.nodes[2].query("STOP REPLICA")
    wait.until(out(cluster, "node3"), "node3 out of the rotation", seconds=60)
    assert {arrived(names, cluster.proxy.reader()) for _ in range(6)} == {"node2"}

    cluster.nodes[2].query("START REPLICA")
    wait_ready(cluster)
    wait_spread(lambda: arrived(names, cluster.proxy.reader()), 10, {"node2": 5, "node3": 5})


def test_a_primary_that_takes_no_writes_is_no_writer(replicas):
    """Nothing answers at the writer, and the cluster says that its primary is read-only."""
    names = replicas.nodes[0].dialect.replication.read_only
    replicas.nodes[0].query(f"SET GLOBAL {names[-1]} = ON")
    wait.until(
        lambda: [] if any("writer/node1 is DOWN" in line for line in replicas.proxy.problems()) else ["node1 is in"],
        "the primary out of the writer",
        seconds=60,
    )

    with pytest.raises(SQLError):
        query_through("test", replicas.proxy.writer(), "SELECT 1")
    said = replicas.problems()
    assert missing("\n".join(said), *[f"{name} is 'ON', wanted 'OFF'" for name in names]) == []
    assert [line for line in said if not line.startswith("node1: ")] == []


@pytest.fixture
def group(provisioner):
    """Two members behind haproxy."""
    yield from behind(provisioner, "group_replication", 2, "mysql:9.7")


@pytest.mark.thorough
def test_the_writer_follows_the_primary_of_a_group(group):
    """An election moves the writer, and the reader to the other one, by the checks alone."""
    names = {node.port: node.name for node in group.nodes}
    processes = {name: process.pid for name, process in group.proxy.processes.items()}
    assert {arrived(names, group.proxy.writer()) for _ in range(3)} == {"node1"}
    assert {arrived(names, group.proxy.reader()) for _ in range(3)} == {"node2"}

    member = group.nodes[1].query("SELECT @@server_uuid")[0][0]
    group.nodes[0].query(f"SELECT group_replication_set_as_primary('{member}')")
    wait_ready(group)
    assert {arrived(names, group.proxy.writer()) for _ in range(3)} == {"node2"}
    assert group.proxy.writes_to() == "node2"
    assert {arrived(names, group.proxy.reader()) for _ in range(3)} == {"node1"}
    assert {name: process.pid for name, process in group.proxy.processes.items()} == processes


def test_the_checks_cost_next_to_nothing(cluster):
    """Both processes together use less than 5 % of one core while nothing happens."""
    processes = [psutil.Process(process.pid) for process in cluster.proxy.processes.values()]
    wait_ready(cluster)

    def spent():
        return sum(process.cpu_times().user + process.cpu_times().system for process in processes)

    before, start = spent(), time.monotonic()
    time.sleep(2)

    assert (spent() - before) / (time.monotonic() - start) < 0.05


def test_the_password_is_in_no_command_line_and_no_log(cluster):
    """It is in a file that only its owner reads."""
    proxy = cluster.proxy
    password = cluster.nodes[0].password
    words = [" ".join(psutil.Process(process.pid).cmdline()) for process in proxy.processes.values()]
    logs = [Path(proxy.log(name)).read_text() for name in proxy.processes]
    settings = Path(proxy.host.directory) / "status_port.cfg"

    assert password in settings.read_text()
    assert settings.stat().st_mode & 0o777 == 0o600
    assert not any(password in text for text in words + logs)


def test_a_haproxy_that_has_ended_is_named_with_its_last_words(cluster, provisioner, monkeypatch):
    """A configuration that haproxy refuses is answered with what haproxy says about it."""
    monkeypatch.setattr(haproxy, "CONFIGURATION", haproxy.CONFIGURATION + "\nfrontend x\n    galara on\n")
    proxy = HAProxy(provisioner, cluster.topology, cluster.nodes)
    try:
        proxy.start()
        with pytest.raises(ProvisionError, match="haproxy in front of 3 nodes ended with 1") as caught:
            wait.until(lambda: proxy.problems() or ["it runs"], "haproxy", seconds=60)
    finally:
        proxy.close()

    assert "haproxy.log" in str(caught.value)
    assert "unknown keyword 'galara'" in str(caught.value)


def test_close_ends_both_processes_and_may_be_called_twice(cluster, provisioner):
    """Nothing is left of a proxy that was closed, not even its directory."""
    proxy = HAProxy(provisioner, cluster.topology, cluster.nodes)
    proxy.start()
    wait.until(proxy.problems, "haproxy", seconds=20)
    processes = [psutil.Process(process.pid) for process in proxy.processes.values()]
    directory = Path(proxy.host.directory)
    proxy.close()
    proxy.close()

    assert not any(process.is_running() for process in processes)
    assert not directory.exists()
    assert proxy.problems() == ["haproxy does not run yet"]


def test_each_program_has_its_settings_and_log_where_it_runs(cluster, provisioner, monkeypatch):
    """The health server may run on another host than haproxy, and needs none of its programs."""
    own, beside = FakeHost("proxy", directory="/own"), FakeHost("beside", address="10.0.0.9", directory="/beside")
    proxy = HAProxy(provisioner, cluster.topology, cluster.nodes)
    monkeypatch.setattr(provisioner, "acquire", lambda spec: [own])
    monkeypatch.setattr(provisioner, "beside", lambda host: beside)
    proxy.start()

    assert (sorted(own.files), sorted(beside.files)) == (["/own/haproxy.cfg"], ["/beside/status_port.cfg"])
    assert (proxy.log(), proxy.log("status_port")) == ("/own/haproxy.log", "/beside/status_port.log")
    assert (own.spawned[0][-1], beside.spawned[0][-1]) == ("/own/haproxy.cfg", "/beside/status_port.cfg")
    assert own.brought == [find("haproxy").bin.parent]
    beside.files["/beside/status_port.log"] = b"no more memory"
    proxy.processes["status_port"] = FakeProcess(ends=1)
    with pytest.raises(ProvisionError, match=r"^status_port .* log \(/beside/status_port.log\): no more memory"):
        proxy.alive()


def test_a_failed_start_leaves_nothing(cluster, provisioner, monkeypatch):
    """The status port, which was started first, ends when haproxy cannot be started."""
    proxy = HAProxy(provisioner, cluster.topology, cluster.nodes)
    spawned = []

    def spawn(name, *rest):
        if name == "haproxy":
            spawned.extend(proxy.processes.values())
            raise ProvisionError("no haproxy today")
        HAProxy.spawn(proxy, name, *rest)

    monkeypatch.setattr(proxy, "spawn", spawn)
    with pytest.raises(ProvisionError, match="no haproxy today"):
        proxy.start()

    assert len(spawned) == 1
    assert spawned[0].status() is not None


def test_the_writer_fails_over(cluster):
    """With node1 killed the writer is node2 and the reader is the other two; no connection is refused."""
    wait_ready(cluster)
    cluster.nodes[0].kill()

    assert {landed(cluster.writer()) for _ in range(3)} == {"node2"}
    wait_spread(lambda: landed(cluster.reader()), 10, {"node2": 5, "node3": 5})
