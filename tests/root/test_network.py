"""What a spec asks of the network between its ends: round trips of all nodes, and of single links."""

from __future__ import annotations

import pytest

from pytest_dbcluster import network
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.network import LinkShape, NetworkNeeds
from pytest_dbcluster.spec import ClusterSpec, HostNeeds

GALERA = ClusterSpec("galera", nodes=3)


def test_a_spec_asks_for_round_trips():
    """Zero is one too: the same path without a delay, which is another cluster than one without a path."""
    near = GALERA.with_needs(rtt=0)

    assert near.needs.network == network.REST
    assert near != GALERA
    assert GALERA.needs.network is None
    assert (str(near), str(near.needs)) == ("galera3_rtt_0", "rtt=0")
    assert GALERA.with_needs(rtt=0.005, loss=0.01, jitter=0.001, rate=1e8).needs.network == NetworkNeeds(
        rtt=0.005, loss=0.01, jitter=0.001, rate=1e8
    )


def test_links_are_sorted_so_that_equal_specs_are_equal():
    """Whichever end is named first; node2 comes before node10."""
    many = ClusterSpec("galera", nodes=10, proxy="haproxy")
    one = many.with_needs(links={("node10", "node2"): 0.02, ("proxy", "client"): 0.001})
    other = many.with_needs(links={("client", "proxy"): 0.001, ("node2", "node10"): 0.02})

    assert one == other
    assert hash(one) == hash(other)
    assert one.needs.links == ((("client", "proxy"), 0.001), (("node2", "node10"), 0.02))
    assert str(one.needs) == "client-proxy=0.001, node2-node10=0.02"
    assert HostNeeds(links=one.needs.links) == one.needs


def test_a_link_overrides_the_round_trip_of_all_nodes():
    """Loss, jitter and rate are between nodes; proxy and client are near where no link names them."""
    asked = GALERA.with_needs(rtt=0.005, loss=0.1, rate=1e6, links={("node1", "node3"): 0.02}).needs.network

    assert asked.between("node3", "node1") == LinkShape(0.02, loss=0.1, rate=1e6)
    assert asked.between("node1", "node2") == LinkShape(0.005, loss=0.1, rate=1e6)
    assert asked.between("client", "node1") == network.NEAR


def test_the_ends_beside_the_nodes_are_those_that_links_name():
    """The load takes the path only where the test asks for it."""
    assert GALERA.with_needs(rtt=0.005).needs.network.ends == ()
    assert GALERA.with_needs(links={("node2", "client"): 0.01}).needs.network.ends == ("client",)


def test_a_cluster_starts_on_a_path_that_delays_nothing():
    """It keeps its other limits and its ends."""
    asked = GALERA.with_needs(cores=1, rtt=0.01, loss=0.1, links={("node1", "node2"): 0.5}).needs
    rest = asked.at_rest(["client"])

    assert rest.network.between("node1", "node2") == network.NEAR
    assert (rest.network.ends, rest.cores) == (("client",), 1)
    assert asked.without_network == HostNeeds(cores=1)


WRONG = {
    "below zero": ({"rtt": -1}, "rtt=-1 of a cluster's hosts: it takes seconds, from 0 to 10"),
    "above ten": ({"rtt": 10.1}, "rtt=10.1 of a cluster's hosts: it takes seconds, from 0 to 10"),
    "no number": ({"jitter": "1 ms"}, "jitter='1 ms' of a cluster's hosts: it takes seconds, from 0 to 10"),
    "nothing left": ({"loss": 1}, "loss=1 of a cluster's hosts: it takes a share of the packets, from 0 to below 1"),
    "no rate": ({"rate": 0}, "rate=0 of a cluster's hosts: it takes bits a second, above 0"),
    "a node too many": (
        {"links": {("node4", "node1"): 0.1}},
        "links of a galera cluster: a link between node1 and node4, and the cluster has 3 nodes; its ends: node1, "
        "node2, node3, client",
    ),
    "no proxy": (
        {"links": {("node1", "proxy"): 0.1}},
        "links of a galera cluster: a link between node1 and proxy, and the cluster has no proxy; its ends: node1, "
        "node2, node3, client",
    ),
    "unknown": (
        {"links": {("node1", "db2"): 0.1}},
        "unknown end 'db2' of a link between node1 and db2; known: node1, node2, ..., client, proxy",
    ),
    "itself": (
        {"links": {("node1", "node1"): 0.1}},
        "links={('node1', 'node1'): 0.1} of a cluster's hosts: node1 is linked with itself",
    ),
    "two ways": (
        {"links": {("node1", "node2"): 0.1, ("node2", "node1"): 0.2}},
        "links={('node1', 'node2'): 0.1, ('node2', 'node1'): 0.2} of a cluster's hosts: two round trips between node2 "
        "and node1",
    ),
    "a link too long": (
        {"links": {("node1", "node2"): 11}},
        "link between node1 and node2=11 of a cluster's hosts: it takes seconds, from 0 to 10",
    ),
    "a name": (
        {"links": {"node1": 0.1}},
        "links={'node1': 0.1} of a cluster's hosts: it takes a mapping such as "
        '{("node1", "node3"): 0.02}, in seconds',
    ),
    "a list": (
        {"links": [1]},
        'links=[1] of a cluster\'s hosts: it takes a mapping such as {("node1", "node3"): 0.02}, in seconds',
    ),
}


@pytest.mark.parametrize(("needs", "words"), WRONG.values(), ids=WRONG)
def test_a_network_that_cannot_be_is_refused_when_the_spec_is_written(needs, words):
    """The words say what it takes."""
    with pytest.raises(ConfigError) as caught:
        GALERA.with_needs(**needs)
    assert str(caught.value) == words


def test_each_two_ends_are_a_pair_once():
    """In the order in which links are kept."""
    assert network.pairs(["node1", "node2", "client"]) == [
        ("node1", "node2"), ("client", "node1"), ("client", "node2"),
    ]  # fmt: skip
