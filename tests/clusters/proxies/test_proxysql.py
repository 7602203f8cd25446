"""The configuration of ProxySQL. No test runs ProxySQL, because no registry of ours has it."""

from __future__ import annotations

from pathlib import Path

from pytest_dbcluster.clusters.proxies.proxysql import ProxySQL
from pytest_dbcluster.clusters.servers.node import Node
from pytest_dbcluster.hosts.provisioners.fake import FakeHost
from tests.support.facts import missing
from tests.support.roles import OneHost, Roles


def test_each_port_leads_to_the_servers_of_its_role(mariadb):
    """A rule for each listener, and both accounts, because ProxySQL logs clients in itself."""
    nodes = [Node(f"node{n}", FakeHost(f"node{n}"), mariadb, 3300 + n, "secret") for n in (1, 2, 3)]
    made = ProxySQL(OneHost(FakeHost("proxy")), Roles(), nodes)

    text = made.settings("10.0.0.9", "/fake/proxy", made.roles())

    facts = (
        'datadir = "/fake/proxy"', 'interfaces = "10.0.0.9:6033;10.0.0.9:6034"', 'mysql_ifaces = "10.0.0.9:6032"',
        "port = 3301 hostgroup = 0", "port = 3302 hostgroup = 1", "port = 3303 hostgroup = 1",
        'username = "dbcluster" password = "secret"', 'username = "dbcluster_load" password = "secret"',
        "proxy_port = 6033 destination_hostgroup = 0", "proxy_port = 6034 destination_hostgroup = 1",
        'admin_credentials = "proxysql-admin:secret"',
    )  # fmt: skip
    assert missing(text, *facts) == []
    assert "port = 3301 hostgroup = 1" not in text
    assert made.command(Path("/x/proxysql"), "/d") == ["/x/proxysql", "--initial", "-f", "-D", "/d", "-c"]
