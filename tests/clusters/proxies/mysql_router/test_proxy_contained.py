"""MySQL Router before a group where servers and router are containers."""

from __future__ import annotations

from collections import Counter

import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.clusters.proxy import query_through
from pytest_dbcluster.spec import ClusterSpec
from tests.support.clusters import bring_up


@pytest.fixture(scope="module")
def group(containers, imaged):
    """Two members with one primary, behind a router."""
    spec = ClusterSpec("group_replication", nodes=2, proxy="mysql_router")
    made = bring_up(spec, imaged("mysql:9.7"), containers, options={})
    yield made
    made.close()
    containers.give_back(made.hosts)


def landed(endpoint):
    """The nodes that four new connections reached, by the names of their hosts."""
    return Counter(query_through("test", endpoint, "SELECT @@hostname")[0][0] for _ in range(4))


def test_the_router_is_a_host_of_its_own(group):
    """It listens on its usual ports, at an address that is no server's."""
    writer, reader = group.writer(), group.reader()

    assert (writer.port, reader.port) == (6446, 6447)
    assert writer.host == reader.host == group.proxy.host.address
    assert writer.host not in {host.address for host in group.hosts}


def test_routes_follow_the_primary(group):
    """The writer leads to the primary and the reader to the other one, before an election and after it."""
    before = landed(group.proxy.writer()), landed(group.proxy.reader())
    member = group.nodes[1].query("SELECT @@server_uuid")[0][0]
    group.nodes[0].query(f"SELECT group_replication_set_as_primary('{member}')")
    wait.until(group.problems, "the group", seconds=30)
    after = landed(group.proxy.writer()), landed(group.proxy.reader())

    assert before == ({"node1": 4}, {"node2": 4})
    assert after == ({"node2": 4}, {"node1": 4})
