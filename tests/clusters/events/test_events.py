"""Events: how they are written, which clusters refuse them, and that they happen."""

from __future__ import annotations

import dataclasses
import re
import signal
import time
from types import SimpleNamespace

import pytest

from pytest_dbcluster.clusters.events import event as events
from pytest_dbcluster.clusters.events.event import Event, Happened
from pytest_dbcluster.clusters.events.faults import kill
from pytest_dbcluster.clusters.topology import topology
from pytest_dbcluster.errors import ConfigError, NotReady
from pytest_dbcluster.events import Join, Kill, KillAll, Nothing, Pause, PowerCut, Restart, Rolling
from pytest_dbcluster.spec import ClusterSpec

ONE, THREE = ClusterSpec("standalone"), ClusterSpec("galera", nodes=3)
PAIR = ClusterSpec("group_replication", nodes=2, release="mysql:9.7")


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (Kill(), "kill writer"),
        (Kill("other"), "kill other"),
        (Kill("node2", restart="at once"), "kill node2 and restart at once"),
        (Pause("writer", 3), "pause writer 3 s"),
        (Pause("node3", seconds=0.5), "pause node3 0.5 s"),
        (Nothing(), "nothing"),
    ],
)
def test_an_event_has_a_short_text(event, text):
    """Results and history have it beside the workload."""
    assert str(event) == text
    assert isinstance(event, Event)
    assert dataclasses.is_dataclass(event)
    assert hash(event) == hash(dataclasses.replace(event))


@pytest.mark.parametrize(
    ("event", "spec", "fact"),
    [
        (Kill("primary"), THREE, '"writer", "other" or a name such as "node2", not'),
        (Kill("node4"), THREE, "has 3 nodes"),
        (Kill("other"), ONE, "has 1 node"),
        (Kill(restart="yes"), ONE, '"at once", "after eviction", False or None'),
        (Kill(restart=True), ONE, "restart=True"),
        (Kill(restart=0), ONE, "restart=0"),
        (Kill(restart="at once"), PAIR, "a group of 2 members has no majority without it, so it never expels it; use"),
        (Pause("writer", 0), THREE, "seconds above 0 and up to 300"),
        (Pause("writer", "3"), THREE, "seconds above 0 and up to 300"),
        (Pause("node0", 3), THREE, "not 'node0'"),
        (Kill("writer"), ClusterSpec("drbd", nodes=2), "use FailOver()"),
    ],
)
def test_a_wrong_event_is_refused(event, spec, fact):
    """Before anything starts."""
    with pytest.raises(ConfigError) as caught:
        event.check(spec, topology(spec.topology))
    assert fact in str(caught.value)


@pytest.mark.parametrize(
    ("event", "kind", "only_writer", "leaves"),
    [
        (Kill("writer"), "galera", True, False),
        (Kill("writer"), "galera", False, True),
        (Kill("writer", restart="at once"), "galera", True, True),
        (Kill("writer", restart="after eviction"), "group_replication", True, False),
        (Kill("writer", restart="at once"), "group_replication", True, False),
        (Kill("writer", restart="at once"), "group_replication", False, True),
        (Kill("other"), "galera", True, True),
        (Kill("node1"), "galera", True, False),
        (Kill("writer"), "standalone", True, True),
        (Kill("writer", restart=False), "standalone", True, False),
        (Kill("writer"), "async_replication", False, True),
        (Kill("writer", restart=False), "async_replication", False, False),
        (Kill("other"), "async_replication", True, True),
        (Pause("writer", 3), "galera", True, True),
        (Nothing(), "galera", True, True),
    ],
)
def test_a_load_must_have_a_server(event, kind, only_writer, leaves):
    """A killed server comes back at once if no other node takes over its writes."""
    spec = ClusterSpec(kind, nodes=1 if kind == "standalone" else 3)

    assert event.leaves_load(spec, topology(kind), only_writer=only_writer) is leaves


def test_a_killed_node_without_others_leaves_no_server():
    """It starts after the load, because the topology elects its writers; no endpoint is left meanwhile."""
    lone = ClusterSpec("galera", nodes=1)

    assert not Kill("writer").leaves_load(lone, topology("galera"), only_writer=False)
    assert Kill("writer", restart="after eviction").leaves_load(lone, topology("galera"), only_writer=False)


def test_the_expected_time_depends_on_event_and_topology():
    """The members of a group evict a dead one late, and the nodes of a cluster join one by one after all have ended."""

    def seconds(event, kind="galera"):
        return event.expected_seconds(ClusterSpec(kind, nodes=3), topology(kind))

    assert [seconds(event) for event in (Nothing(), Pause("writer", 30))] == [0, 30]
    assert 0 < seconds(Kill(), "async_replication") < seconds(Kill()) < seconds(Kill(), "group_replication")
    assert seconds(KillAll(), "async_replication") < seconds(Kill()) < seconds(KillAll())
    assert seconds(PowerCut()) > seconds(KillAll()) > 30
    assert seconds(Rolling(Restart())) > seconds(Join("IST")) > seconds(Nothing())


def test_a_killed_server_starts_again(briefly):
    """The exit status is the signal's, and the server answers afterwards."""
    cluster = briefly("standalone")
    [node] = cluster.nodes
    killed = node.process
    happened = Kill().act(cluster)

    assert happened.void == ""
    assert killed.status() == -signal.SIGKILL
    assert 0 < happened.marks["ended"] < happened.marks["whole"]
    assert happened.returned.seconds > 0
    assert Kill().restore(cluster, happened) == happened.returned
    assert node.query("SELECT 1") == [(1,)]
    cluster.new_errors()


# As MariaDB 10.11 and MySQL 9.7 logged them when their source was killed.
OF_REPLICAS = [
    "[ERROR] Error reading packet from server: Lost connection to server during query (server_errno=2013)",
    "[ERROR] Slave I/O: error reconnecting to master 'dbcluster@127.0.0.1:21768' - retry-time: 1",
    "[ERROR] [MY-010557] [Repl] Error reading packet from server for channel '': Lost connection to MySQL server",
    "[ERROR] [MY-010584] [Repl] Replica I/O for channel '': Error reconnecting to source 'dbcluster@127.0.0.1:29518'.",
]


@pytest.mark.parametrize("line", OF_REPLICAS)
def test_replicas_without_their_source_are_no_fault_of_an_event(line):
    """Events declare these lines, the control declares none, and no other line is among them."""
    for event in (Kill(), Pause("writer", 3)):
        assert any(re.search(pattern, line) for pattern in event.errors)
        assert not any(re.search(pattern, "[ERROR] InnoDB: Database page corruption") for pattern in event.errors)
    assert Nothing.errors == ()


# As MySQL 9.7 logged them, without their times: a member that started at once, and one that had cloned another one.
OF_MEMBERS = [
    (Kill(), "[ERROR] [MY-011735] [Repl] '[GCS] Error connecting to all peers. Member join failed. Local port: 11430'"),
    (Kill(), "[ERROR] [MY-011735] [Repl] '[GCS] The member was unable to join the group. Local port: 11430'"),
    (
        Kill(),
        "[ERROR] [MY-011735] [Repl] '[GCS] Timeout while waiting for the group communication engine'",
    ),
    (Join("clone"), "[ERROR] [MY-013462] [Server] Clone shutting down server as RESTART failed. Please start server"),
    (Join("clone"), "[ERROR] [MY-011569] [Repl] 'Internal query: CLONE; result in error. Error number: 3707'"),
    (
        Join("clone"),
        "[ERROR] [MY-013473] [Repl] 'Due to a critical cloning error or lack of donors, distributed recovery",
    ),
]


@pytest.mark.parametrize(("event", "line"), OF_MEMBERS)
def test_members_that_come_back_are_no_fault_of_an_event(event, line):
    """Only the events that cause such lines declare them."""
    assert any(re.search(pattern, line) for pattern in event.errors)
    assert not any(re.search(pattern, line) for pattern in Pause("writer", 3).errors)


class Members:
    """A topology that counts a lost node in its first two answers, and notes what it is asked to do."""

    elects_writers = minority_evicts = True

    def __init__(self):
        self.steps = []

    def counting(self, node, living):
        """Whether the others still count the node."""
        self.steps.append("counting")
        return ["node2 still sees 2 nodes"] if self.steps.count("counting") < 3 else []

    def rejoin(self, node, nodes):
        """Start the node after its eviction."""
        self.steps.append("rejoin")

    def refuses_at_once(self, nodes):
        """Nothing: every size may have it back."""

    def suspects(self, node, living):
        """The second look says that the node does not answer."""
        return len(self.steps) == 1

    def restart_at_once(self, node, nodes):
        """Start the node while the others count it."""
        self.steps.append("restart")

    def how_joined(self, log):
        """It missed nothing."""
        return "IST"

    def errant(self):
        """It had nothing that the others lack."""
        return 0


@pytest.mark.parametrize(
    ("at_once", "steps"), [(False, ["counting", "counting", "counting", "rejoin"]), (True, ["restart"])]
)
def test_a_node_rejoins_after_the_others_have_expelled_it(at_once, steps):
    """A topology could shorten the eviction, so we wait for it first. A start at once waits for nothing."""
    nodes = [
        SimpleNamespace(name=f"node{n}", running=n > 1, log_size=lambda: 0, log_text=lambda seen: "") for n in (1, 2)
    ]
    cluster = SimpleNamespace(nodes=nodes, members=nodes, topology=Members(), problems=list, spec=THREE)

    assert events.rejoin(nodes[0], cluster, at_once=at_once).how == "IST"
    assert cluster.topology.steps == steps


def members(number, *, elects=True):
    """A cluster of so many running nodes."""
    nodes = [
        SimpleNamespace(name=f"node{n}", running=True, log_size=lambda: 0, log_text=lambda seen: "")
        for n in range(1, number + 1)
    ]
    made = SimpleNamespace(nodes=nodes, members=nodes, topology=Members(), problems=list, spec=THREE)
    made.topology.elects_writers = elects
    return made


def test_a_running_node_has_left_if_a_majority_no_longer_counts_it():
    """Two members of two have no majority without each other, and a topology without members evicts none."""
    three, two, without = members(3), members(2), members(3, elects=False)
    seen = [events.has_left(three.nodes[0], three) for _ in range(3)]

    assert seen == [False, False, True]
    assert [events.has_left(one.nodes[0], one) for one in (two, without) for _ in range(3)] == [False] * 6


@pytest.mark.parametrize(("number", "minority", "evicted"), [(3, False, True), (2, False, False), (2, True, True)])
def test_a_minority_of_a_group_evicts_nobody(number, minority, evicted):
    """Its view keeps the lost member, so the mark of an eviction would be untrue."""
    cluster, happened = members(number), Happened(time.time(), "node1")
    cluster.topology.minority_evicts = minority
    cluster.nodes[0].running = False
    events.wait_uncounted(cluster.nodes[0], cluster, happened)

    assert ("evicted" in happened.marks) == evicted
    assert happened.marks["detected"] > 0


def test_a_node_that_comes_back_by_itself_says_how_and_when():
    """The load still runs, so the seconds are those without redundancy; a node that stays out says nothing."""
    cluster, happened = members(3), Happened(time.time(), "node1")
    answers = iter([["node1 joins"], []])
    cluster.problems = lambda: next(answers)
    events.notice_return(cluster.nodes[0], cluster, happened, 0)

    assert happened.returned.how == "IST"
    assert 0 < happened.returned.seconds < happened.marks["whole"] + 1


def test_a_node_that_stays_out_is_started_after_the_load(monkeypatch):
    """Nothing is known about its return yet."""
    monkeypatch.setattr(events, "SELF_SECONDS", 0.05)
    cluster, happened = members(3), Happened(time.time(), "node1")
    cluster.problems = lambda: ["node1 is out"]
    events.notice_return(cluster.nodes[0], cluster, happened, 0)

    assert (happened.returned, happened.marks) == (None, {})
    assert 0.05 <= happened.waited < 10


def test_nobody_waits_twice_for_a_node_that_stays_out(monkeypatch):
    """After the load it has only the rest of the time, and then its server is started again."""
    monkeypatch.setattr(events, "SELF_SECONDS", 60.0)
    cluster, asked, node = members(3), [], SimpleNamespace(running=True, kill=lambda: asked.append("killed"))
    cluster.problems = lambda: ["node1 is out"]

    def until(problems, what, seconds):
        asked.append(seconds)
        raise NotReady(what, seconds, problems())

    monkeypatch.setattr(events.wait, "until", until)
    monkeypatch.setattr(events, "rejoin", lambda node, cluster: "started again")

    assert events.come_back(node, cluster, waited=45) == "started again"
    assert events.come_back(node, cluster, waited=61) == "started again"
    assert asked == [15, "killed", 1, "killed"]


class Refusing(Members):
    """A topology that leaves a lost writer with two errant transactions out until it is rebuilt."""

    def __init__(self):
        super().__init__()
        self.way = "refusal"

    def how_joined(self, log):
        """It stays out."""
        return self.way

    def errant(self):
        """Nobody else has them."""
        return 2

    def rebuild(self, node, nodes):
        """It follows again."""
        self.steps.append("rebuild")
        self.way = "rebuild"

    refuses_roles = switch_over = remember_roles = most_advanced = take_over = rebuild


def test_a_node_that_is_refused_is_rebuilt_for_the_next_repetition():
    """The result says refusal, with its errant transactions, and the rebuild follows."""
    [node] = nodes = [SimpleNamespace(name="node1", running=True, log_size=lambda: 0, log_text=lambda seen: "")]
    cluster = SimpleNamespace(nodes=nodes, members=nodes, topology=Refusing(), problems=list, spec=THREE)
    returned = events.rejoin(node, cluster)

    assert (returned.how, returned.errant) == ("refusal", 2)
    assert cluster.topology.steps[-2:] == ["rejoin", "rebuild"]


def test_a_node_of_two_may_start_at_once(briefly):
    """The other one still counts it, and has no majority without it. Its file of the last view unites both."""
    cluster = briefly("galera", 2)
    happened = Kill("other", restart="at once").act(cluster)

    assert (happened.void, happened.node) == ("", "node2")
    assert "evicted" not in happened.marks
    assert happened.marks["ended"] < happened.marks["whole"]
    assert cluster.problems() == []
    cluster.new_errors()


def test_a_paused_server_goes_on(standalone):
    """It is stopped for the seconds of the event, and answers afterwards."""
    [node] = standalone.nodes
    began = time.monotonic()
    happened = Pause("writer", 0.6).act(standalone)

    assert time.monotonic() - began >= 0.6
    assert (happened.void, happened.node) == ("", "node1")
    assert happened.marks["resumed"] >= 0.6
    assert not node.process.is_stopped()
    assert Pause("writer", 0.6).restore(standalone, happened) is None


def test_a_server_that_does_not_run_cannot_be_killed(briefly):
    """The repetition is void then."""
    cluster = briefly("standalone")
    cluster.nodes[0].kill()

    assert "did not run before the event" in Kill(restart=False).act(cluster).void
    assert "did not run before the event" in Pause("writer", 1).act(cluster).void


def test_nothing_happens(standalone):
    """The control has a time, and no node."""
    before = time.time()
    happened = Nothing().act(standalone)

    assert before <= happened.at <= time.time()
    assert (happened.node, happened.void, happened.marks) == ("", "", {})


def test_a_target_is_a_role_or_a_name(replicated):
    """The writer is the first node that accepts writes, the other one the last of the others."""
    found = [events.target(name, replicated).name for name in ("writer", "other", "node2")]

    assert found == ["node1", "node3", "node2"]


def test_peers_that_keep_counting_a_killed_node_are_an_outcome(briefly, monkeypatch):
    """It is an error, and no missing proof: another repetition would not have taken so long."""

    def counts(node, cluster, happened):
        raise NotReady("the others' view of node1", 120.0, ["node2 counts it"])

    cluster = briefly("standalone")
    monkeypatch.setattr(kill.event, "wait_uncounted", counts)
    with pytest.raises(NotReady, match="node2 counts it"):
        kill._kill(cluster.nodes[0], cluster, evicted=True)
