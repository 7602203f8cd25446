"""MySQL Router that an InnoDB Cluster knows: made once, and then it finds the roles of the members by itself."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.clusters.proxies.haproxy.proxy import HAProxy
from pytest_dbcluster.clusters.proxies.mysql_router import innodb_cluster
from pytest_dbcluster.clusters.proxies.mysql_router import proxy as mysql_router
from pytest_dbcluster.clusters.proxies.mysql_router.proxy import LIMITS, MySQLRouter
from pytest_dbcluster.clusters.proxy import query_through
from pytest_dbcluster.clusters.servers.node import Node
from pytest_dbcluster.clusters.topology import topology
from pytest_dbcluster.errors import CommandFailed, ProvisionError
from pytest_dbcluster.hosts.provisioners.fake import FakeHost
from pytest_dbcluster.releases import find
from pytest_dbcluster.spec import ClusterSpec
from tests.support.clusters import bring_up
from tests.support.facts import missing
from tests.support.roles import OneHost, Roles
from tests.support.sockets import beyond_this_machine, open_ports

SHELL = Path("/opt/mysqlsh")


@pytest.fixture
def host():
    """Where the router would run."""
    return FakeHost("router", directory="/fake/router", answers={"* --help": " ".join(innodb_cluster.LEFT_OUT)})


@pytest.fixture
def router(host, mysql, monkeypatch):
    """A router before three members that are never asked anything, with MySQL Shell at hand."""
    monkeypatch.setattr(innodb_cluster, "shell", lambda release: SHELL)
    nodes = [Node(f"node{n}", FakeHost(f"node{n}"), mysql, 3300 + n, "secret") for n in (1, 2, 3)]
    made = MySQLRouter(OneHost(host), Roles(), nodes)
    made.start()
    return made


def test_the_cluster_is_adopted_before_the_router_is_made_and_started(router, host, mysql):
    """All metadata is written before any round: the shell, then the router's bootstrap, then the router."""
    router.follow()
    program = str(mysql.bin / "mysqlrouter")

    assert [command[:2] for command in host.commands] == [
        [str(SHELL), "--py"],
        [program, "--help"],
        [program, "--bootstrap"],
    ]
    assert host.spawned == [[program, "-c", "/fake/router/router/mysqlrouter.conf"]]


def test_both_listeners_have_ports_of_ours_and_the_limits_of_static_routes(router, host, mysql):
    """What a round meets in a router does not depend on how its routes were made."""
    router.follow()
    said = {word.removeprefix("--conf-set-option=") for word in host.commands[-1] if word.startswith("--conf-set")}

    for section, port in {"bootstrap_rw": router.writer().port, "bootstrap_ro": router.reader().port}.items():
        assert {f"routing:{section}.{name}={value}" for name, value in {**LIMITS, "bind_port": port}.items()} <= said
    assert "DEFAULT.max_total_connections=3000" in said
    assert f"DEFAULT.plugin_folder={mysql_router.plugins(mysql.bin / 'mysqlrouter')}" in said


def test_a_new_primary_starts_nothing(router, host):
    """The router asks the members itself; only the names behind its endpoints change."""
    router.follow()
    process, before = router.processes["mysql_router"], (router.writer().nodes, router.reader().nodes)
    router.topology.primaries = ("node3",)
    router.follow()

    assert before == (("node1",), ("node2", "node3"))
    assert (router.writer().nodes, router.reader().nodes) == (("node3",), ("node1", "node2"))
    assert (router.processes["mysql_router"], process.signals, len(host.spawned)) == (process, [], 1)


def test_among_several_writers_the_router_chooses(router, monkeypatch):
    """Which one it is stands first from then on, so that the endpoint is named after the member that it leads to."""
    router.topology.primaries = ("node1", "node2", "node3")
    router.follow()
    monkeypatch.setattr(Node, "query", lambda node, statement: [(node.name,)])
    monkeypatch.setattr(
        mysql_router, "query_through", lambda listener, *_: [("node3" if "writer" in listener else "node1",)]
    )
    found = router.problems()

    assert router.writer().nodes == ("node3",)
    assert [problem for problem in found if "writer" in problem] == []


def test_a_router_on_another_machine_has_its_programs_brought(mysql, host, monkeypatch):
    """Those of the release, and MySQL Shell only from the cache: what is on PATH is not there."""
    host.machine = "elsewhere"
    monkeypatch.setattr(innodb_cluster, "shell", lambda release: SHELL)
    made = MySQLRouter(OneHost(host), Roles(), [Node("node1", FakeHost("node1"), mysql, 3301, "secret")])
    made.start()

    assert host.brought == [mysql.bin.parent]
    assert made._router == mysql.bin / "mysqlrouter"
    assert made._shell is None


def test_a_router_that_cannot_be_brought_is_said_with_the_way_out(mariadb, host, monkeypatch):
    """Neither MariaDB nor the cache has one."""
    host.machine = "elsewhere"
    monkeypatch.setattr(find, "newest_with", lambda program, product: None)
    made = MySQLRouter(OneHost(host), Roles(), [Node("node1", FakeHost("node1"), mariadb, 3301, "secret")])
    made.start()

    with pytest.raises(ProvisionError, match=r"^no mysqlrouter for host router on elsewhere: .*fetch mysql:9\.7"):
        made.follow()


@pytest.mark.parametrize(
    ("step", "says"), [("*mysqlsh*", "InnoDB Cluster"), ("*--bootstrap*", "could not bootstrap a router from")]
)
def test_a_step_that_fails_starts_no_router(router, host, step, says):
    """The error names the failed step, and the router is not reported as ready."""
    host.answers = {step: CommandFailed(["tool"], 1, stderr="its own words", host="router"), **host.answers}

    with pytest.raises(ProvisionError, match=f"{says}.*its own words"):
        router.follow()
    assert host.spawned == []
    assert router.problems() == ["mysqlrouter does not run yet"]


def test_the_kind_of_router_is_said_with_its_reason(mysql, monkeypatch):
    """Only of clusters where there is a choice."""
    forms = [topology("group_replication"), topology("async_replication")]
    monkeypatch.setattr(innodb_cluster, "shell", lambda release: None)
    without = [MySQLRouter.remark(form, mysql) for form in forms]
    monkeypatch.setattr(innodb_cluster, "shell", lambda release: SHELL)
    beside = [MySQLRouter.remark(form, mysql) for form in forms]

    static, no_choice = without
    shell, no_choice_either = beside
    assert (no_choice, no_choice_either) == ("", "")
    reason = ("no mysqlsh", f"its programs ({mysql.bin})", "on PATH")
    assert missing(static, "mysqlrouter before mysql:9.7: static routes, because", *reason) == []
    assert missing(shell, "mysqlrouter before mysql:9.7: bootstrapped", "InnoDB Cluster", "by /opt/mysqlsh") == []
    assert HAProxy.remark(forms[0], mysql) == ""


def landed(cluster, endpoint, number):
    """How many of new connections reach which node."""
    names = {node.port: node.name for node in cluster.nodes}
    return Counter(names[query_through("test", endpoint, "SELECT @@port")[0][0]] for _ in range(number))


def test_a_router_of_an_innodb_cluster_follows_the_primary(provisioner, mysql):
    """The same process leads to the new primary, and the metadata breaks no check; needs MySQL Shell."""
    if not innodb_cluster.shell(mysql):
        pytest.skip(f"no mysqlsh among the programs of {mysql.name} ({mysql.bin}) or on PATH")
    group = bring_up(ClusterSpec("group_replication", nodes=3, proxy="mysql_router"), mysql, provisioner, options={})
    try:
        process = group.proxy.processes["mysql_router"]
        before = landed(group, group.proxy.writer(), 3), landed(group, group.proxy.reader(), 4)
        group.check()
        xcom = {int(node.query("SELECT @@group_replication_local_address")[0][0][10:]) for node in group.nodes}
        seen = open_ports([*group.hosts, group.proxy.host])
        assert {port.number for port in beyond_this_machine(seen)} == xcom
        member = group.nodes[2].query("SELECT @@server_uuid")[0][0]
        group.nodes[0].query(f"SELECT group_replication_set_as_primary('{member}')")
        wait.until(group.problems, "the group", seconds=30)

        assert before == ({"node1": 3}, {"node2": 2, "node3": 2})
        assert landed(group, group.proxy.writer(), 3) == {"node3": 3}
        assert landed(group, group.proxy.reader(), 4) == {"node1": 2, "node2": 2}
        assert group.proxy.processes["mysql_router"] is process
        group.check()
    finally:
        group.close()
        provisioner.give_back(group.hosts)
