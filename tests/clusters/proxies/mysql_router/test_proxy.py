"""MySQL Router before real servers of both vendors, its routes, and where its program comes from."""

from __future__ import annotations

import contextlib
import dataclasses
from collections import Counter
from pathlib import Path

import psutil
import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.clusters.proxies.mysql_router import innodb_cluster
from pytest_dbcluster.clusters.proxies.mysql_router import proxy as mysql_router
from pytest_dbcluster.clusters.proxies.mysql_router.proxy import MySQLRouter
from pytest_dbcluster.clusters.proxy import proxy_class, query_through
from pytest_dbcluster.clusters.servers.connection import Connection
from pytest_dbcluster.clusters.servers.node import LOAD
from pytest_dbcluster.errors import NodeDied, ProvisionError, Unsupported
from pytest_dbcluster.releases import apt
from pytest_dbcluster.spec import ClusterSpec
from tests.support.clusters import bring_up
from tests.support.facts import missing
from tests.support.sockets import beyond_this_machine, open_ports

ONE = ClusterSpec("standalone", proxy="mysql_router")
MANY = 550  # more than the 512 that a router takes when nobody tells it otherwise


@pytest.fixture(scope="module")
def start(provisioner):
    """Clusters that end with the module."""
    made = []

    def start(spec, release, **options):
        made.append(bring_up(spec, release, provisioner, options=options))
        return made[-1]

    yield start
    for cluster in made:
        cluster.close()
        provisioner.give_back(cluster.hosts)


@pytest.fixture(scope="module")
def single(start, mysql):
    """One server of MySQL; the last test that uses it kills its router."""
    return start(ONE, mysql, max_connections=str(MANY + 50))


@pytest.fixture(scope="module")
def galera(start, mariadb):
    """Two servers of MariaDB, which both take writes; the last test that uses them kills one."""
    return start(ClusterSpec("galera", nodes=2, proxy="mysql_router"), mariadb)


def landed(cluster, endpoint, number=12):
    """How many of new connections reach which node."""
    names = {node.port: node.name for node in cluster.nodes}
    return Counter(names[query_through("test", endpoint, "SELECT @@port")[0][0]] for _ in range(number))


def elect(group, node):
    """Make a member the primary of its group."""
    member = node.query("SELECT @@server_uuid")[0][0]
    group.nodes[0].query(f"SELECT group_replication_set_as_primary('{member}')")


def test_one_server_takes_both(single):
    """With one node alone the writer and the reader lead to it."""
    assert landed(single, single.proxy.writer()) == landed(single, single.proxy.reader()) == {"node1": 12}
    assert single.writer().nodes == single.reader().nodes == ("node1",)
    assert single.writer().port != single.reader().port


def test_a_router_of_mysql_stands_before_mariadb(galera):
    """The writer stays with the first node, the reader takes both in turn."""
    assert landed(galera, galera.proxy.writer()) == {"node1": 12}
    assert landed(galera, galera.proxy.reader()) == {"node1": 6, "node2": 6}
    assert galera.reader().nodes == ("node1", "node2")


def test_it_listens_on_this_machine_alone(galera):
    """Both routes, and every port of the nodes, are open on 127.0.0.1 and on no other address."""
    seen = open_ports([*galera.hosts, galera.proxy.host])

    assert {galera.writer().port, galera.reader().port} <= {port.number for port in seen}
    assert beyond_this_machine(seen) == set()


def test_the_router_adds_no_tls(single):
    """What client and server agree on is what is used: nothing for loads, TLS for who asks for it."""
    plain = query_through(
        "test", dataclasses.replace(single.proxy.reader(), tls=False), "SHOW STATUS LIKE 'Ssl_cipher'"
    )
    secret = Connection("test", dataclasses.replace(single.proxy.reader(), tls=True))
    with contextlib.closing(secret):
        assert plain == [("Ssl_cipher", "")]
        assert secret.query("SHOW STATUS LIKE 'Ssl_cipher'")[0][1].startswith("TLS_")
    assert single.reader().tls is False


def test_loads_have_their_own_account_there_too(single):
    """The endpoints of a cluster are for loads, whether there is a router or not."""
    assert single.reader().user == single.writer().user == LOAD


def test_a_router_takes_as_many_connections_as_a_load_has(single):
    """All of them are served at the same time."""
    with contextlib.ExitStack() as stack:
        opened = [
            stack.enter_context(contextlib.closing(Connection("test", dataclasses.replace(endpoint, tls=False))))
            for endpoint in (single.proxy.writer(), single.proxy.reader())
            for _ in range(MANY // 2)
        ]
        for connection in opened:
            connection.query("SELECT 1")

        assert int(single.nodes[0].status("Threads_connected")["threads_connected"]) >= MANY


def test_routes_that_are_those_of_now_are_left_alone(single):
    """Following costs nothing while nobody's role changes: it is asked before every round."""
    process = single.proxy.processes["mysql_router"]

    single.proxy.follow()
    assert single.problems() == []
    assert single.proxy.processes["mysql_router"] is process


def test_a_router_that_has_ended_is_named_with_its_last_words(single, provisioner, monkeypatch):
    """A configuration that the router refuses is answered with what it says about it."""
    monkeypatch.setattr(mysql_router, "CONFIGURATION", mysql_router.CONFIGURATION + "galara = on\n")
    made = MySQLRouter(provisioner, single.topology, single.nodes)
    try:
        made.start()
        made.follow()
        ended = "mysql_router in front of 1 node ended with 1; the end of its log"
        with pytest.raises(ProvisionError, match=ended) as caught:
            wait.until(lambda: made.problems() or ["it runs"], "the router", seconds=60)
    finally:
        made.close()

    assert "mysql_router.log" in str(caught.value)
    assert "galara" in str(caught.value)


def test_close_ends_the_router_and_may_be_called_twice(single, provisioner):
    """Nothing is left of it, not even its directory."""
    made = MySQLRouter(provisioner, single.topology, single.nodes)
    made.start()
    assert made.problems() == ["mysqlrouter does not run yet"]
    made.follow()
    wait.until(made.problems, "the router", seconds=20)
    process, directory = psutil.Process(made.processes["mysql_router"].pid), Path(made.host.directory)
    made.close()
    made.close()

    assert not process.is_running()
    assert not directory.exists()
    assert made.problems() == ["mysqlrouter does not run yet"]


def test_reads_go_to_replicas(start, mariadb):
    """The writer leads to the primary, the reader to its replicas in turn."""
    cluster = start(ClusterSpec("async_replication", nodes=3, proxy="mysql_router"), mariadb)

    assert landed(cluster, cluster.proxy.writer()) == {"node1": 12}
    assert landed(cluster, cluster.proxy.reader()) == {"node2": 6, "node3": 6}
    assert (cluster.writer().nodes, cluster.reader().nodes) == (("node1",), ("node2", "node3"))
    cluster.close()


def test_the_routes_follow_the_primary_of_a_group(start, mysql, monkeypatch):
    """Without MySQL Shell the router is started anew with other routes, before anybody calls the cluster ready."""
    monkeypatch.setattr(innodb_cluster, "shell", lambda release: None)
    group = start(ClusterSpec("group_replication", nodes=2, proxy="mysql_router"), mysql)
    before = landed(group, group.proxy.writer(), 3), landed(group, group.proxy.reader(), 4)
    old = psutil.Process(group.proxy.processes["mysql_router"].pid)
    elect(group, group.nodes[1])
    wait.until(group.problems, "the group", seconds=30)
    after = landed(group, group.proxy.writer(), 3), landed(group, group.proxy.reader(), 4)

    assert before == ({"node1": 3}, {"node2": 4})
    assert after == ({"node2": 3}, {"node1": 4})
    assert (group.writer().nodes, group.reader().nodes) == (("node2",), ("node1",))
    assert not old.is_running()
    group.check()
    group.close()


@pytest.fixture
def nowhere(tmp_path, monkeypatch):
    """No router on PATH, and an empty cache."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("pytest_dbcluster.releases.local_programs._SBIN", ())
    (tmp_path / "bin").mkdir()
    return tmp_path / "bin"


def test_a_missing_router_is_said_before_anything_is_started(nowhere, provisioner, mariadb, monkeypatch):
    """Where it was looked for, and which release brings one; a system without apt has to install it."""
    monkeypatch.setattr(provisioner, "acquire", lambda spec: pytest.fail("a host was taken"))
    places = (f"its programs ({mariadb.bin})", f"not on PATH ({nowhere})", "no release of MySQL in the cache")

    for programs, remedy in (((), "install MySQL Router"), (apt.PROGRAMS, "`dbcluster fetch mysql:9.7`")):
        for program in programs:
            (nowhere / program).touch(mode=0o755)
        with pytest.raises(Unsupported) as caught:
            bring_up(ONE, mariadb, provisioner, options={})
        assert missing(caught.value, "no mysqlrouter for mariadb:10.11", *places, remedy) == []


def test_a_release_with_its_own_router_lacks_nothing(nowhere, mysql):
    """Its own comes first."""
    (nowhere / "mysqlrouter").write_text("#!/bin/sh\n")
    (nowhere / "mysqlrouter").chmod(0o755)

    assert proxy_class("mysql_router").lacks(mysql) == ""
    assert mysql_router.router(mysql) == mysql.bin / "mysqlrouter"


def test_a_router_on_path_comes_before_one_of_the_cache(mysql, mariadb, tmp_path, monkeypatch):
    """A user's installed one is what the user runs; the cache is the last resort."""
    monkeypatch.setenv("PATH", str(tmp_path))
    cached = mysql_router.router(mariadb)
    (tmp_path / "mysqlrouter").write_text("#!/bin/sh\n")
    (tmp_path / "mysqlrouter").chmod(0o755)

    assert cached == mysql.bin / "mysqlrouter"
    assert mysql_router.router(mariadb) == tmp_path / "mysqlrouter"


@pytest.mark.parametrize(
    "layout", ["lib/mysqlrouter/plugin", "lib64/mysqlrouter", "lib/x86_64-linux-gnu/mysqlrouter/plugin"]
)
def test_plugins_are_found_in_every_layout(tmp_path, layout):
    """Of Debian's package, of Oracle's, of a tarball; the program may be a link from elsewhere."""
    (tmp_path / "usr/bin").mkdir(parents=True)
    (tmp_path / "usr/bin/mysqlrouter").write_text("")
    (tmp_path / "usr" / layout).mkdir(parents=True)
    (tmp_path / "usr" / layout / "routing.so").write_text("")
    (tmp_path / "linked").symlink_to("usr/bin/mysqlrouter")

    assert mysql_router.plugins(tmp_path / "linked") == tmp_path / "usr" / layout


def test_a_router_without_a_known_folder_finds_its_plugins_itself(tmp_path):
    """No folder is named in its configuration then."""
    text = mysql_router.configuration(
        tmp_path / "bin/mysqlrouter", "/run", "::1", {"writer": 1, "reader": 2}, {"writer": [], "reader": []}
    )

    assert mysql_router.plugins(tmp_path / "bin/mysqlrouter") is None
    assert "plugin_folder" not in text


def test_the_writer_goes_to_the_next_node(galera):
    """With the first of two writers killed, new connections reach the second; the check says that one is dead."""
    galera.nodes[0].kill()

    assert landed(galera, galera.proxy.writer(), 3) == {"node2": 3}
    with pytest.raises(NodeDied, match="node node1 was ended by SIGKILL"):
        galera.proxy.problems()


def test_a_killed_router_is_found_by_the_check(single):
    """The signal is in the message; the servers live."""
    single.proxy.processes["mysql_router"].signal(9)

    with pytest.raises(ProvisionError, match="mysql_router in front of 1 node ended with -9; the end of its log"):
        wait.until(lambda: single.problems() or ["it runs"], "the router", seconds=60)
    assert single.topology.problems(single.nodes) == []
