"""What a spec asks of the network between its ends: round trips of all nodes, and of single links."""

from __future__ import annotations

import pytest

from pytest_dbcluster import network
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.network import LinkShape, NetworkNeeds
from pytest_dbcluster.spec import ClusterSpec, HostNeeds
from tests.support import golden
from tests.support.facts import missing

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


def test_a_blocked_pair_loses_all_packets():
    """Both ways, and no other pair does."""
    needs = NetworkNeeds(rtt=0.01, blocked=(("node1", "node2"),))

    assert needs.between("node2", "node1") == needs.between("node1", "node2") == LinkShape(0.01, 1.0)
    assert needs.between("node1", "node3") == LinkShape(0.01)


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
    "below zero": ({"rtt": -1}, ("rtt=-1", "from 0 to 10")),
    "above ten": ({"rtt": 10.1}, ("rtt=10.1", "from 0 to 10")),
    "not a number": ({"jitter": "1 ms"}, ("jitter='1 ms'", "seconds")),
    "nothing left": ({"loss": 1}, ("loss=1", "from 0 to below 1")),
    "no rate": ({"rate": 0}, ("rate=0", "bits a second, above 0")),
    "a node too many": ({"links": {("node4", "node1"): 0.1}}, ("node1 and node4", "3 nodes", "node3, client")),
    "no proxy": ({"links": {("node1", "proxy"): 0.1}}, ("node1 and proxy", "has no proxy", "node3, client")),
    "unknown": ({"links": {("node1", "db2"): 0.1}}, ("'db2'", "node1, node2, ..., client, proxy")),
    "itself": ({"links": {("node1", "node1"): 0.1}}, ("node1 is linked with itself",)),
    "two values": (
        {"links": {("node1", "node2"): 0.1, ("node2", "node1"): 0.2}},
        ("two round trips between node2 and node1",),
    ),
    "a link too long": ({"links": {("node1", "node2"): 11}}, ("node1 and node2=11", "from 0 to 10")),
    "a name": ({"links": {"node1": 0.1}}, ("{'node1': 0.1}", '{("node1", "node3"): 0.02}')),
    "a list": ({"links": [1]}, ("links=[1]", '{("node1", "node3"): 0.02}')),
}


@pytest.mark.parametrize(("needs", "facts"), WRONG.values(), ids=WRONG)
def test_an_impossible_network_is_refused_when_the_spec_is_written(needs, facts):
    """The message names the value and the accepted ones."""
    with pytest.raises(ConfigError) as caught:
        GALERA.with_needs(**needs)

    assert missing(caught.value, *facts) == []


def test_golden_messages_about_networks():
    """They are those of the golden file."""
    golden.compare(
        "network", {title: golden.message_of(GALERA.with_needs, **needs) for title, (needs, _) in WRONG.items()}
    )


def test_each_two_ends_are_a_pair_once():
    """In the order in which links are kept."""
    assert network.pairs(["node1", "node2", "client"]) == [
        ("node1", "node2"), ("client", "node1"), ("client", "node2"),
    ]  # fmt: skip
