"""What the watch sees of a cluster."""

from __future__ import annotations

import contextlib
import threading
import time
from types import SimpleNamespace

import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.clusters.servers.connection import SQLError
from pytest_dbcluster.clusters.servers.health import Health
from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.rounds.outages.states import StateChange
from pytest_dbcluster.testbed.events import watch

HEALTH = Health("SHOW STATUS", {"member": "ON"}, {"member": "ON", "role": "PRIMARY"})


class Node:
    """A node with these values; None for a server that does not answer."""

    def __init__(self, name, **values):
        self.name = name
        self.values, self.running, self.closed = values, True, 0
        self.host, self.process = SimpleNamespace(patience=1), object()

    def pairs(self, statement, seconds):
        """The values now."""
        if self.values is None:
            raise SQLError(self.name, statement, 2013, "no answer")
        return self.values

    def close(self):
        """Count it."""
        self.closed += 1


@pytest.fixture
def looking(monkeypatch):
    """Starts the watch of these nodes, whose threads have ended afterwards."""
    monkeypatch.setattr(watch, "LOOK", 0.005)
    monkeypatch.setattr(watch, "_connect", lambda node: node)
    with contextlib.ExitStack() as ends:

        def begin(*nodes, proxy=None):
            topology = SimpleNamespace(health=lambda node, members: HEALTH)
            cluster = SimpleNamespace(members=nodes, topology=topology, proxy=proxy)
            return ends.enter_context(contextlib.closing(watch.Watch(cluster)))

        yield begin
    assert not [thread for thread in threading.enumerate() if thread.name == "dbcluster-watch"]


def wait_for(states, found):
    """Wait until these are the states that were seen."""
    wait.until(lambda: [] if [one.to for one in found()] == states else [f"{found()}"], "states", seconds=30)


def test_each_change_of_a_node_is_seen_once(looking):
    """From a primary to a server that does not run, and back as a replica."""
    node, began = Node("node1", member="ON", role="PRIMARY"), time.time()
    seen = looking(node)
    steps = [
        ("writes", {}),
        ("no answer", {"values": None}),
        ("down", {"running": False}),
        ("not ready", {"running": True, "values": {"member": "RECOVERING"}}),
        ("reads", {"values": {"member": "ON", "role": "SECONDARY"}}),
    ]
    for number, (_, change) in enumerate(steps, 1):
        vars(node).update(change)
        wait_for([state for state, _ in steps[:number]], lambda: seen.nodes(began)["node1"])
    moments = [change.seconds for change in seen.nodes(began)["node1"]]

    assert moments == sorted(moments)
    assert 0 <= moments[0] <= moments[-1] <= time.time() - began
    seen.close()
    assert node.closed >= 2  # while it was down, and at the end


def test_a_connection_to_a_server_that_ends_is_closed(looking):
    """Also if the server ends while it is asked."""
    node = Node("node1", member="ON", role="PRIMARY")

    def ends(statement, seconds):
        node.running = False
        raise SQLError("node1", statement, 2013, "lost")

    seen = looking(node)
    wait_for(["writes"], lambda: seen.nodes(0.0)["node1"])
    node.pairs = ends
    wait_for(["writes", "down"], lambda: seen.nodes(0.0)["node1"])

    assert node.closed >= 1


def test_a_server_that_was_replaced_between_two_looks_was_down(looking):
    """A service manager starts it again within milliseconds."""
    node = Node("node1", member="ON", role="PRIMARY")
    seen = looking(node)
    wait_for(["writes"], lambda: seen.nodes(0.0)["node1"])
    node.process = object()
    wait_for(["writes", "down", "writes"], lambda: seen.nodes(0.0)["node1"])


def test_an_error_while_it_starts_leaves_no_thread(looking, monkeypatch):
    """Such as Ctrl-C while the first look has no answer."""
    answer, silent, usual = threading.Event(), Node("node1"), time.monotonic
    silent.pairs = lambda statement, seconds: answer.wait(60) and {}

    def interrupted():
        monkeypatch.setattr(time, "monotonic", usual)  # Ctrl-C comes once, and only the watch may see it
        answer.set()
        raise KeyboardInterrupt

    monkeypatch.setattr(time, "monotonic", interrupted)
    with pytest.raises(KeyboardInterrupt):
        looking(silent)


def test_the_route_of_the_writes_is_seen(looking):
    """While the proxy gives no answer, it leads nowhere."""
    answers = iter(["node1", "node1", OSError("refused"), ProvisionError("it ended"), AssertionError(), "node2"])

    def writes_to():
        answer = next(answers, "node2")
        if isinstance(answer, Exception):
            raise answer
        return answer

    seen = looking(proxy=SimpleNamespace(writes_to=writes_to))
    wait_for(["node1", "", "node2"], lambda: seen.routes(0.0))


def test_a_proxy_that_does_not_say_it_has_no_route(looking):
    """Its thread ends at once."""
    seen = looking(Node("node1", member="ON"), proxy=SimpleNamespace(writes_to=lambda: None))
    wait_for(["reads"], lambda: seen.nodes(0.0)["node1"])

    assert seen.routes(0.0) == ()


def test_a_silent_host_keeps_no_end_waiting(looking, monkeypatch):
    """The threads of the others have ended, and what they saw stays."""
    monkeypatch.setattr(watch, "END_SECONDS", 0.1)
    answer, silent, other = threading.Event(), Node("node1"), Node("node2", member="ON")
    silent.pairs = lambda statement, seconds: answer.wait(60) and {}
    monkeypatch.setattr(watch, "FIRST_SECONDS", 0.1)
    seen = looking(silent, other)
    wait_for(["reads"], lambda: seen.nodes(0.0)["node2"])
    seen.close()

    assert seen.nodes(0.0)["node1"] == ()
    assert [change.to for change in seen.nodes(0.0)["node2"]] == ["reads"]
    assert isinstance(seen.nodes(0.0)["node2"][0], StateChange)
    answer.set()
