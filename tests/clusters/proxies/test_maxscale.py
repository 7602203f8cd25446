"""The configuration of MaxScale. No test runs MaxScale, because no registry of ours has it."""

from __future__ import annotations

import configparser
from pathlib import Path

from pytest_dbcluster.clusters.proxies.maxscale import MaxScale
from pytest_dbcluster.clusters.servers.node import Node
from pytest_dbcluster.hosts.provisioners.fake import FakeHost
from tests.support.roles import OneHost, Roles


def test_each_role_has_a_service_and_a_listener(mariadb):
    """The writer has the first node that accepts writes, the reader the nodes for reads."""
    nodes = [Node(f"node{n}", FakeHost(f"node{n}"), mariadb, 3300 + n, "secret") for n in (1, 2, 3)]
    made = MaxScale(OneHost(FakeHost("proxy")), Roles(), nodes)
    read = configparser.ConfigParser()

    read.read_string(made.settings("10.0.0.9", "/fake/proxy", made.roles()))

    assert read["maxscale"]["datadir"] == "/fake/proxy"
    assert dict(read["node2"]) == {"type": "server", "address": "127.0.0.1", "port": "3302"}
    assert (read["writer"]["servers"], read["reader"]["servers"]) == ("node1", "node2,node3")
    assert read["monitor"]["servers"] == "node1,node2,node3"
    assert read["monitor"]["user"] == "dbcluster"
    for role, port in (("writer", "4006"), ("reader", "4008")):
        assert read[role]["router_options"] == "running"
        listener = dict(read[f"{role}-listener"])
        assert listener == {"type": "listener", "service": role, "address": "10.0.0.9", "port": port}


def test_root_is_named_only_where_root_runs_it(mariadb):
    """Without the option MaxScale does not start as root."""
    host = FakeHost("proxy")
    made = MaxScale(OneHost(host), Roles(), [Node("node1", FakeHost(), mariadb, 3306, "secret")])
    made.start()
    as_user = made.command(Path("/x/maxscale"), "/d")
    host.root = True

    assert as_user == ["/x/maxscale", "--nodaemon", "--log=stdout", "--config"]
    assert "--user=root" in made.command(Path("/x/maxscale"), "/d")
