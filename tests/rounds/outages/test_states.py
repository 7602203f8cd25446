"""What the states of nodes and the routes of a proxy show of an event."""

from __future__ import annotations

from pytest_dbcluster.rounds.outages.states import DOWN, READS, SILENT, UNREADY, WRITES, StateChange, marks


def seen(*pairs):
    """The changes at these seconds."""
    return tuple(StateChange(seconds, to) for seconds, to in pairs)


REPLICAS = {
    "node1": seen((-5, WRITES), (0.1, DOWN), (9, SILENT), (11, UNREADY), (14, READS)),
    "node2": seen((-5, READS), (2, UNREADY), (3, WRITES)),
    "node3": seen((-5, READS)),
}


def test_a_lost_primary_leaves_four_steps():
    """Another node accepts writes, the proxy leads there, and the lost server runs and accepts reads again."""
    routes = seen((-5, "node1"), (0.4, ""), (3.2, "node2"), (14, "node3"))

    found = marks(REPLICAS, routes, primary="node1", lost="node1")

    assert found == {"new writer": 3, "routed": 3.2, "rejoin begun": 9, "synced": 14}


def test_an_event_without_a_node_has_no_return():
    """Nothing is known of a proxy that does not say where it leads the writes."""
    assert marks(REPLICAS, (), primary="node1") == {"new writer": 3}


def test_a_cluster_that_writes_everywhere_has_no_new_writer():
    """Its proxy has another route, though."""
    nodes = {"node1": seen((-5, WRITES), (0.1, DOWN)), "node2": seen((-5, WRITES), (1, UNREADY), (6, WRITES))}

    assert marks(nodes, seen((-5, "node1"), (0.4, "node2")), lost="node1") == {"routed": 0.4}


def test_a_node_that_was_not_down_does_not_rejoin():
    """A paused server does not answer; what was seen before the event does not count."""
    nodes = {"node1": seen((-5, DOWN), (-4, WRITES), (1, SILENT), (4, WRITES))}

    assert marks(nodes, (), lost="node1") == {}


def test_a_node_that_ended_before_the_event_rejoins_in_it():
    """An event such as ``Join`` begins with the start of a server that is already down."""
    nodes = {"node2": seen((-9, WRITES), (-3, DOWN), (0.2, SILENT), (2, UNREADY), (3, WRITES))}

    assert marks(nodes, (), lost="node2") == {"rejoin begun": 0.2, "synced": 3}


def test_a_server_that_ended_after_the_load_was_not_ended_by_the_event():
    """We end it ourselves if it does not come back."""
    nodes = {"node1": seen((-5, WRITES), (1, SILENT), (30, DOWN), (31, WRITES))}

    assert marks(nodes, (), lost="node1", until=20) == {}
    assert marks(nodes, (), lost="node1", until=30) == {"rejoin begun": 31, "synced": 31}


def test_a_proxy_without_an_answer_before_the_event_is_no_other_route():
    """The last route that was seen counts; without one nothing is known."""
    assert marks({}, seen((-5, "node1"), (-0.1, ""), (0.3, "node1"))) == {}
    assert marks({}, seen((-0.1, ""), (0.3, "node1"))) == {}
