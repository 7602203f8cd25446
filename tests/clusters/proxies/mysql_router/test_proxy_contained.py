"""MySQL Router in a container, before servers in containers."""

from __future__ import annotations

from collections import Counter

import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.clusters.proxy import query_through
from pytest_dbcluster.spec import ClusterSpec
from tests.support.clusters import bring_up


@pytest.fixture
def start(containers, imaged):
    """A cluster of MySQL behind a router, which ends with the test."""
    made = []

    def start(topology, nodes):
        spec = ClusterSpec(topology, nodes=nodes, proxy="mysql_router")
        made.append(bring_up(spec, imaged("mysql:9.7"), containers, options={}))
        return made[-1]

    yield start
    for cluster in made:
        cluster.close()
        containers.give_back(cluster.hosts)


def landed(endpoint):
    """The nodes that four new connections reached, by the names of their hosts."""
    return Counter(query_through("test", endpoint, "SELECT @@hostname")[0][0] for _ in range(4))


def test_the_router_is_a_host_of_its_own(start):
    """It listens on its usual ports, at an address that is no server's, and leads to the server."""
    alone = start("standalone", 1)
    writer, reader = alone.writer(), alone.reader()

    assert (writer.port, reader.port) == (6446, 6447)
    assert writer.host == reader.host == alone.proxy.host.address
    assert writer.host not in {host.address for host in alone.hosts}
    assert landed(alone.proxy.writer()) == landed(alone.proxy.reader()) == {"node1": 4}


@pytest.mark.thorough
def test_routes_follow_the_primary(start):
    """The writer leads to the primary and the reader to the other one, before an election and after it."""
    group = start("group_replication", 2)
    before = landed(group.proxy.writer()), landed(group.proxy.reader())
    member = group.nodes[1].query("SELECT @@server_uuid")[0][0]
    group.nodes[0].query(f"SELECT group_replication_set_as_primary('{member}')")
    wait.until(group.problems, "the group", seconds=30)
    after = landed(group.proxy.writer()), landed(group.proxy.reader())

    assert before == ({"node1": 4}, {"node2": 4})
    assert after == ({"node2": 4}, {"node1": 4})
