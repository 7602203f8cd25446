"""Faults of hosts and of the network between them, on two nodes with a separate network."""

from __future__ import annotations

import concurrent.futures
import contextlib
import itertools
import time
from types import SimpleNamespace

import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.clusters.events import powers
from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.events import Isolate, LoseHost, Promote, Rtt
from pytest_dbcluster.network import REST
from pytest_dbcluster.spec import ClusterSpec
from tests.support import paths
from tests.support.clusters import bring_up

NEAR = ClusterSpec("galera", nodes=2).with_needs(rtt=0)


@pytest.fixture(scope="module")
def near(mariadb, provisioner):
    """Two nodes of Galera, whole at the begin of each test."""
    if reason := paths.missing():
        pytest.skip(reason)
    made = bring_up(NEAR, mariadb, provisioner, options={})
    yield made
    made.close()
    provisioner.give_back(made.hosts)


def wait_for_peers(cluster, *timeouts):
    """Set how long each node waits for silent ones before it leaves them out."""
    for node, timeout in itertools.product(cluster.nodes, timeouts):
        node.query(f"SET GLOBAL wsrep_provider_options = 'evs.{timeout}'")


@contextlib.contextmanager
def patient(cluster):
    """Nodes wait a minute for each other. On a busy machine the usual 5 s can pass, and then a commit is refused."""
    wait_for_peers(cluster, "inactive_timeout=PT2M", "suspect_timeout=PT1M")
    try:
        yield
    finally:
        wait_for_peers(cluster, "suspect_timeout=PT5S", "inactive_timeout=PT15S")


def test_a_node_without_peers_still_answers(near):
    """No packet of a peer arrives, so a commit waits. Our connections do arrive, and afterwards the node is whole."""
    first, other = near.nodes
    with concurrent.futures.ThreadPoolExecutor(1) as threads, patient(near):
        event = threads.submit(Isolate("other", 1.5).act, near)
        wait.until(lambda: [] if near.path.needs.blocked else ["not cut"], "the cut", seconds=30)
        reached = powers.answers(other)
        first.query("CREATE DATABASE while_apart")
        committed = time.time()
        happened = event.result()

    assert (happened.void, happened.node, reached) == ("", "node2", True)
    assert committed - happened.at >= happened.marks["cut"] + 1.5
    assert happened.marks["cut"] + 1.5 <= happened.marks["connected"]
    assert near.path.needs == REST
    assert Isolate("other", 1.5).restore(near, happened) is None
    assert near.problems() == []


def test_a_node_without_clients_does_not_answer(near):
    """It is cut off from peers and from this machine; the proof is our own connection."""
    _, other = near.nodes
    with concurrent.futures.ThreadPoolExecutor(1) as threads:
        event = threads.submit(Isolate("node2", 2, clients=True).act, near)
        wait.until(lambda: ["it answers"] if powers.answers(other) else [], "the cut", seconds=30)
        happened = event.result()

    assert (happened.void, happened.node) == ("", "node2")
    assert powers.answers(other)
    assert Isolate("node2", 2, clients=True).restore(near, happened) is None


def test_a_lost_host_comes_back_after_the_load(near):
    """Its peer no longer counts it. Connected and started again, it is a member as before."""
    lost = near.nodes[1].process
    happened = LoseHost("other").act(near)

    assert (happened.void, happened.node) == ("", "node2")
    assert lost.status() == -9
    assert not powers.answers(near.nodes[1])
    assert 0 < happened.marks["cut"] < happened.marks["ended"] < happened.marks["evicted"]
    returned = LoseHost("other").restore(near, happened)
    assert returned.seconds > 0
    assert near.problems() == []


def test_a_replica_takes_over_after_its_primary_has_lost_its_host(mariadb, provisioner):
    """Connected and started again, the old primary is the primary again."""
    if reason := paths.missing():
        pytest.skip(reason)
    spec = ClusterSpec("async_replication", nodes=2, proxy="haproxy").with_needs(rtt=0)
    cluster = bring_up(spec, mariadb, provisioner, options={})
    event = LoseHost("writer", then=Promote(after=0.5))
    try:
        happened = event.act(cluster)
        promoted = [node.name for node in cluster.writers]
        returned = event.restore(cluster, happened)

        assert (happened.void, happened.node, promoted) == ("", "node1", ["node2"])
        assert happened.marks["detected"] >= 0.5
        assert happened.marks["detected"] - happened.marks["cut"] < 1.9  # our own proof would take a second more
        assert happened.marks["detected"] < happened.marks["routed"] < happened.marks["ended"]
        assert returned.seconds > 0
        assert [node.name for node in cluster.writers] == ["node1"]
        assert cluster.problems() == []
    finally:
        cluster.close()
        provisioner.give_back(cluster.hosts)


@pytest.mark.parametrize(("pings", "counts"), [((0.001, 0.2, 0.001), True), ((0.001, 0.1, 0.001), False)])
@pytest.mark.parametrize("lost", [None, 0, 1, 2])
def test_a_ping_that_is_too_short_or_lost_proves_nothing(pings, counts, lost):
    """Before, during and after the event. The path has its earlier settings in any case."""
    answers = [None if number == lost else ping for number, ping in enumerate(pings)]

    def round_trips(pair, samples):
        if (ping := answers.pop(0)) is None:
            raise ProvisionError("no answer")
        return SimpleNamespace(ping=ping)

    shaped = []
    path = SimpleNamespace(ends=("node1", "node2"), needs=REST, shape=shaped.append, round_trips=round_trips)
    happened = Rtt(200, seconds=0.01).act(SimpleNamespace(path=path))

    assert (happened.void == "") == (counts and lost is None)
    assert shaped[-1] == REST
    assert answers == []


def test_nodes_are_farther_apart_for_some_seconds(near):
    """A commit waits for the longer round trip, and no longer afterwards."""
    happened = Rtt(200, seconds=1).act(near)

    assert (happened.void, happened.node) == ("", "")
    assert happened.marks["far"] < happened.marks["usual"]
    assert happened.marks["usual"] >= 1
    assert near.path.needs == REST
    assert near.path.round_trips(("node1", "node2"), 3).ping < 0.2
