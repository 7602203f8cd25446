"""What the runner of an event asks the servers while the load runs."""

from __future__ import annotations

import contextlib
import itertools
import random
import threading
import time
from types import SimpleNamespace

import pytest

from pytest_dbcluster.clusters.events.event import Event
from pytest_dbcluster.clusters.events.nothing import Nothing
from pytest_dbcluster.clusters.servers.connection import NoAnswer
from pytest_dbcluster.errors import ProvisionError, WorkloadError
from pytest_dbcluster.rounds.outages.load_times import LoadTimes
from pytest_dbcluster.rounds.outages.outage import Books
from pytest_dbcluster.rounds.round import RunResult
from pytest_dbcluster.testbed import timeline
from pytest_dbcluster.testbed.events import event_runner
from pytest_dbcluster.workloads.until_stopped import StoppedLoad

NAMES = ("innodb_rows_inserted", "innodb_rows_updated")


class Server:
    """A server whose count of rows grows by ``step`` with each question."""

    def __init__(self, step):
        self.asked = 0
        self._counts = itertools.count(7, step)

    def pairs(self, statement, seconds):
        """The next count in both statuses."""
        self.asked += 1
        return dict.fromkeys(NAMES, str(next(self._counts)))


def looking_at(*servers):
    """The look at a cluster of these servers."""
    nodes = [SimpleNamespace(name=f"node{n}", running=True, sql=sql) for n, sql in enumerate(servers, 1)]
    return contextlib.closing(event_runner._Work(SimpleNamespace(nodes=nodes), writes=True))


@pytest.mark.parametrize(("steps", "goes_on"), [((1, 0), True), ((0, 1), True), ((0, 0), False)])
def test_a_load_goes_on_if_a_server_writes_rows(steps, goes_on):
    """The first look has nothing to compare with."""
    with looking_at(*map(Server, steps)) as work:
        assert work.went_on() is False
        assert work.went_on() is goes_on


def test_a_silent_server_keeps_no_look_waiting(monkeypatch):
    """The others show that the load goes on; a server that answers again is compared with its last count."""
    monkeypatch.setattr(timeline, "PATIENCE", 0.3)
    silent, answer = threading.Event(), threading.Event()

    class Silent(Server):
        def pairs(self, statement, seconds):
            if silent.is_set():
                assert answer.wait(60)
                raise ProvisionError("it was stopped")
            return super().pairs(statement, seconds)

    other = Server(1)
    with looking_at(Silent(0), other) as work:
        work.went_on()
        silent.set()
        assert [work.went_on() for _ in range(4)] == [True] * 4
        assert other.asked == 5
        silent.clear()
        answer.set()


def test_lines_that_an_event_causes_are_no_fault_afterwards():
    """The repetition has all lines; later ones count only if the event does not cause them."""

    class Cuts(Event):
        errors = ("connection to peer .* is lost",)

    cluster = SimpleNamespace(
        new_errors=lambda: ["node1 logged: [ERROR] connection to peer 2 is lost"], expected_errors=set()
    )

    assert event_runner._error_lines(Cuts, cluster) == ("node1 logged: [ERROR] connection to peer 2 is lost",)
    assert cluster.expected_errors == {"connection to peer .* is lost"}


class Client:
    """A load host whose command ends only when it is killed, or when ``let_go`` is set."""

    def __init__(self):
        self.let_go, self.killed = threading.Event(), False

    def end_commands(self):
        """Kill it."""
        self.killed = True
        self.let_go.set()


class Blocked:
    """A load whose statement has no answer until ``client`` lets it go."""

    keeps_books, writes = True, True

    def __init__(self, client):
        self.client = client
        self.balanced = False
        self.violated, self.own = [], None

    def run_until_stopped(self, setting, until):
        """Wait, and return commits until now."""
        began = time.time()
        assert self.client.let_go.wait(60)
        if self.client.killed:
            raise WorkloadError("it was killed")
        seconds = time.time() - began
        moments = {"order": list(range(0, round(1000 * seconds), 10))}
        result = RunResult(seconds, 10, commits=10)
        return StoppedLoad(result, LoadTimes(began, seconds, moments), 0, self.balance, self.own)

    def violations(self, cluster):
        """Those that a test sets."""
        return self.violated

    def balance(self):
        """Note that the books were asked for."""
        self.balanced = True
        return Books(10, 1, 0, 0, 0)


@pytest.fixture
def quick(monkeypatch):
    """Short times of a repetition."""
    for name, seconds in {"BASELINE_SECONDS": 0.3, "JITTER_SECONDS": 0.1, "END_SECONDS": 0.3, "POLL": 0.01}.items():
        monkeypatch.setattr(event_runner, name, seconds)


def setting_of(client):
    """A healthy cluster of one writing server, and this load host."""
    node = SimpleNamespace(name="node1", running=True, sql=Server(1))
    topology = SimpleNamespace(violations=lambda nodes: [], has_primary=lambda options: False)
    cluster = SimpleNamespace(
        spec=SimpleNamespace(options=(), release="mariadb"), nodes=[node], members=[], writers=[node], proxy=None,
        topology=topology, problems=list, backlog=list, new_errors=list, expected_errors=set(), events=0,
    )  # fmt: skip
    return SimpleNamespace(cluster=cluster, clients=[client])


class Frees(Nothing):
    """An event after which the blocked load goes on when the cluster is made whole. void: why it does not count."""

    client, void = None, ""

    def act(self, cluster):
        """Say why it does not count."""
        happened = super().act(cluster)
        happened.void = self.void
        return happened

    def restore(self, cluster, happened):
        """Let the load go on."""
        self.client.let_go.set()


def repetition(client, event, load):
    """One repetition of the event."""
    return event_runner.repeat(load, setting_of(client), event, random.Random(1), variant="a", block=0, position=0)


def freeing(client, void=""):
    """The event that frees the load of this host."""
    return type("FreesThis", (Frees,), {"client": client, "void": void})()


def test_a_load_that_the_event_blocks_goes_on_when_the_cluster_is_whole(quick):
    """The cluster is made whole before the load's result is read, which would otherwise never come."""
    client = Client()
    done = repetition(client, freeing(client), Blocked(client))

    assert not client.killed
    assert done.void == ""
    assert done.outage.books.lost == 1


def test_a_load_that_never_ends_is_killed(quick, monkeypatch):
    """The repetition says so, and its cluster serves no other one."""
    monkeypatch.setattr(event_runner, "BLOCKED_SECONDS", 0.3)
    client = Client()
    with pytest.raises(event_runner.NotWhole, match="was told to stop and did not end"):
        repetition(client, Nothing(), Blocked(client))

    assert client.killed


def test_an_interrupt_kills_the_load_at_once(quick, monkeypatch):
    """It may be in a statement that has no answer."""

    class Interrupts(Nothing):
        def act(self, cluster):
            raise KeyboardInterrupt

    monkeypatch.setattr(event_runner, "END_SECONDS", 60)
    client, began = Client(), time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        repetition(client, Interrupts(), Blocked(client))

    assert client.killed
    assert time.monotonic() - began < 30


def test_what_a_void_repetition_loses_stays_in_the_books_of_the_cluster(quick):
    """The check after the rounds finds it, because no claim sees the repetition."""
    client = Client()
    load = Blocked(client)
    done = repetition(client, freeing(client, "node1 ended by itself"), load)

    assert done.void == "the event is not proven: node1 ended by itself"
    assert not load.balanced
    assert done.outage.books is None


def test_a_repetition_names_the_conditions_of_its_load_that_do_not_hold(quick):
    """They are asked when the cluster is whole, and the repetition still has all its figures."""
    client = Client()
    load = Blocked(client)
    load.violated = ["condition 1 on node1: warehouse 1: 5 and 6"]
    done = repetition(client, freeing(client), load)

    assert done.outage.violations == ("condition 1 on node1: warehouse 1: 5 and 6",)
    assert done.outage.books.lost == 1


def test_a_load_may_have_its_own_conditions(quick):
    """Those without its books, which are compared by repetition anyway."""
    client = Client()
    load = Blocked(client)
    load.violated = ["1 of 10 acknowledged orders is lost"]
    load.own = lambda: ["condition 3 on node2: 1 and 2"]
    done = repetition(client, freeing(client), load)

    assert done.outage.violations == ("condition 3 on node2: 1 and 2",)


SILENT = [ProvisionError("node2 does not answer"), NoAnswer("node2", "SELECT 1", 3024, 1.0)]


@pytest.mark.parametrize("error", SILENT, ids=["host", "server"])
def test_a_node_that_does_not_say_its_conditions_is_not_whole(quick, error):
    """The repetition is void, and its cluster serves no other one."""
    client = Client()
    load = Blocked(client)

    def ask():
        raise error

    load.own = ask
    with pytest.raises(event_runner.NotWhole, match=r"did not become whole: .*node2"):
        repetition(client, freeing(client), load)


@pytest.mark.parametrize("error", SILENT, ids=["host", "server"])
def test_an_error_after_the_proof_of_an_event_is_not_whole(quick, error):
    """Such as peers that still count a killed node. Another repetition must not take its place in silence."""
    client = Client()

    def act(self, cluster):
        raise error

    event = type("FailsLate", (Frees,), {"client": client, "act": act})()
    with pytest.raises(event_runner.NotWhole, match=r"did not become whole: .*node2"):
        repetition(client, event, Blocked(client))


def test_a_cluster_that_breaks_a_promise_of_its_topology_is_not_whole(quick):
    """Such as a replica with a transaction that its primary lacks. The repetition is void, so no claim holds."""
    client = Client()
    setting = setting_of(client)
    setting.cluster.topology.violations = lambda nodes: ["node2 has errant transactions"]
    event = freeing(client)

    with pytest.raises(event_runner.NotWhole, match="did not become whole: node2 has errant transactions"):
        event_runner.repeat(Blocked(client), setting, event, random.Random(1), variant="a", block=0, position=0)
