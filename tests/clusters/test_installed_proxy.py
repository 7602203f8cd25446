"""Proxies that we cannot fetch: their program has to be on PATH, and their routes follow the roles by a restart."""

from __future__ import annotations

import pytest

from pytest_dbcluster.cli import main
from pytest_dbcluster.clusters.proxy import proxy_class
from pytest_dbcluster.clusters.servers.node import Node
from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.hosts.provisioners.fake import FakeHost, FakeProcess
from tests.support.facts import missing
from tests.support.roles import OneHost, Roles

NAMES = ("maxscale", "proxysql")


@pytest.fixture
def on_path(tmp_path, monkeypatch):
    """A PATH with both programs; nothing runs them."""
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in NAMES:
        (tmp_path / name).touch(mode=0o755)
    return tmp_path


@pytest.fixture(params=NAMES)
def proxy(request, on_path, mariadb):
    """One of them before a primary and two replicas."""
    nodes = [Node(f"node{n}", FakeHost(f"node{n}"), mariadb, 3300 + n, "secret") for n in (1, 2, 3)]
    made = proxy_class(request.param)(OneHost(FakeHost("proxy", directory="/fake/proxy")), Roles(), nodes)
    made.start()
    return made


@pytest.mark.parametrize("name", NAMES)
def test_without_its_program_it_is_refused_before_anything_starts(data, tmp_path, monkeypatch, capsys, name):
    """The message says that nobody has run it, and that we cannot fetch it."""
    monkeypatch.setenv("PATH", str(tmp_path))

    assert main.main(["up", "standalone", "--proxy", name]) == 1
    facts = (f"no {name} on PATH ({tmp_path})", "install it", "we cannot fetch it", "we have never run it")
    assert missing(capsys.readouterr().err, *facts) == []
    assert list(data.glob("*/*")) == []


@pytest.mark.parametrize("name", NAMES)
def test_with_its_program_it_is_untried(on_path, mariadb, name):
    """The run says so."""
    found = proxy_class(name)

    assert found.lacks(mariadb) == ""
    assert found.untried
    assert missing(found.remark(Roles(), mariadb), f"{name} before mariadb:10.11", "untried", "static routes") == []


def test_it_starts_again_with_other_routes_after_a_change_of_roles(proxy):
    """Equal roles leave it alone."""
    host = proxy.host
    proxy.follow()
    proxy.follow()
    first = host.files[f"/fake/proxy/{proxy.name}.cfg"]
    before = proxy.writer().nodes, proxy.reader().nodes
    host.next_process = FakeProcess(2)
    proxy.topology.primaries = ("node3",)
    proxy.follow()

    assert before == (("node1",), ("node2", "node3"))
    assert (proxy.writer().nodes, proxy.reader().nodes) == (("node3",), ("node1", "node2"))
    assert len(host.spawned) == 2
    assert host.spawned[0][-1] == f"/fake/proxy/{proxy.name}.cfg"
    assert host.files[f"/fake/proxy/{proxy.name}.cfg"] != first


def test_a_program_that_ends_is_said_with_its_log(proxy):
    """Not that no listener answers."""
    assert proxy.problems() == [f"{proxy.name} does not run yet"]
    proxy.follow()
    proxy.host.files[f"/fake/proxy/{proxy.name}.log"] = b"a wrong line in the configuration"
    proxy.processes[proxy.name].ends = 1

    with pytest.raises(ProvisionError, match=f"^{proxy.name} in front of 3 nodes ended with 1; .*a wrong line"):
        proxy.problems()


def test_a_host_on_another_machine_is_refused(on_path, mariadb):
    """The program is on this machine."""
    host = FakeHost("proxy")
    host.machine = "10.0.0.7"
    made = proxy_class("proxysql")(OneHost(host), Roles(), [Node("node1", FakeHost(), mariadb, 3306, "secret")])

    with pytest.raises(ProvisionError, match=r"installed on this machine, and its host is on 10\.0\.0\.7$"):
        made.start()
