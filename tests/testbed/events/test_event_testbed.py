"""Repetitions of an event on real servers: what they cost, and that the cluster is whole afterwards."""

from __future__ import annotations

import dataclasses
import math
from types import SimpleNamespace

import pytest

from pytest_dbcluster.errors import ConfigError, SeriesVoid
from pytest_dbcluster.events import Kill, Nothing, Pause
from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.testbed.events import event_runner
from pytest_dbcluster.testbed.events.event_testbed import EventTestbed
from pytest_dbcluster.workloads.mysqlslap import MySQLSlap
from pytest_dbcluster.workloads.sysbench import SysBench
from pytest_dbcluster.workloads.tpcc import TPCC
from tests.support.facts import missing
from tests.support.testbeds import ONE, TWO

# Terminals pause between their transactions: the servers have CPU time left, and an event is seen as well.
WRITE = SysBench("oltp_write_only", size=1000, threads=4, pause=0.1)
ORDERS = TPCC(threads=4, pause=0.15)
GALERA = ClusterSpec("galera", nodes=3, release=ONE.release)


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """The load runs for two seconds before the event."""
    monkeypatch.setattr(event_runner, "BASELINE_SECONDS", 2.2)
    monkeypatch.setattr(event_runner, "JITTER_SECONDS", 0.5)


def source(pool, load, event, *specs, progress=lambda line: None):
    """The round source of these repetitions."""
    several = len(event) if isinstance(event, dict) else 1
    variants = [pool.resolution.resolve(spec) for spec in specs] * several
    return EventTestbed(load, event, variants, pool, "quick", progress, seed=5)


def test_a_killed_server_stalls_its_load_until_it_is_back(shared):
    """It starts again at once, because nobody else takes over; the next repetition finds a whole cluster."""
    made = source(shared, WRITE, Kill(), ONE)
    first, second = (made.round(0, block=block, position=0) for block in (0, 1))
    made.check()
    found = first.outage

    assert (first.void, second.void) == ("", "")
    assert (found.event, found.node, found.censored, found.books) == ("kill writer", "node1", False, None)
    assert 0.05 < found.stall < 60
    assert found.without_commit >= found.stall
    assert found.connections_lost >= 4
    assert found.returned.seconds > 0
    assert {one.number for one in found.errors} & {2002, 2003, 2006, 2013}
    assert found.usual.rate > 0
    whole = range(math.ceil(found.stall_at * 10), math.floor((found.stall_at + found.stall) * 10))
    assert [found.commits_by_tenth[tenth - found.first_tenth] for tenth in whole] == [0] * len(whole)
    assert first.started < found.event_at < first.started + first.seconds


def test_nothing_costs_less_than_a_pause(shared):
    """Two events on one cluster: the control is the noise floor. The expected time is learned from the first event."""
    lines = []
    made = source(shared, WRITE, {"pause": Pause("writer", 1.5), "none": Nothing()}, ONE, progress=lines.append)
    made.announce(14, 60.0)
    pause, none = (made.round(number, block=0, position=number) for number in (0, 1))
    made.check()

    each = "14 repetitions (7 each; pause: pause writer 1.5 s; none: nothing)"
    assert lines[0] == f"{WRITE}: {each}, about 2 min, at most 60 s (--db-event-budget)"
    [learned] = [line for line in lines if "the first repetition took" in line]
    assert "the other 13 take about" in learned
    assert made.names == ["pause", "none"]
    assert made.load == str(WRITE)
    assert pause.outage.stall >= 1.4
    assert none.outage.stall < pause.outage.stall
    assert none.outage.node == ""
    assert none.outage.without_redundancy is None
    assert none.outage.observed_seconds >= pause.outage.observed_seconds - 0.5  # a longer load has longer gaps


def test_several_workloads_are_variants_of_one_event(shared):
    """Each repetition runs under its own one, on the same cluster."""
    loads = {"one": dataclasses.replace(WRITE, threads=1), "eight": dataclasses.replace(WRITE, threads=8)}
    variants = [shared.resolution.resolve(ONE)] * 2
    made = EventTestbed(loads, Nothing(), variants, shared, "quick", lambda line: None, seed=5)
    one, eight = (made.round(number, block=0, position=number) for number in (0, 1))
    made.check()

    assert [name.rpartition(" ")[2] for name in made.names] == ["one", "eight"]
    assert made.load == f"{loads['one']} and {loads['eight']}, nothing"
    assert (one.void, eight.void) == ("", "")
    assert eight.outage.usual.rate > 3 * one.outage.usual.rate


def test_a_fresh_cluster_belongs_to_the_time_of_its_repetition(shared, monkeypatch):
    """Nobody starts it before, so its start counts for the budget of events."""
    made = source(shared, WRITE, Nothing(), ONE)
    prepared = []
    monkeypatch.setattr(made, "_prepare", lambda variant, instance: prepared.append(variant))
    with made.exclusive():
        assert prepared == [0]
    monkeypatch.setattr(Nothing, "reusable", False)
    with made.exclusive():
        assert prepared == [0]


class Corrupts(Nothing):
    """An event after which a warehouse has earned more than its districts."""

    def act(self, cluster):
        """Change one row of one table."""
        cluster.writers[0].query("UPDATE dbcluster_tpcc.warehouse SET w_ytd = w_ytd + 7 WHERE w_id = 1")
        return super().act(cluster)


def test_conditions_that_an_event_breaks_are_in_its_repetition(shared):
    """The other repetitions run on a fresh cluster, and the check after them says which event it was."""
    made = source(shared, ORDERS, {"breaks": Corrupts(), "none": Nothing()}, ONE)
    breaks, none = (made.round(number, block=0, position=number) for number in (0, 1))

    assert (breaks.void, none.void) == ("", "")
    assert [line.partition(":")[0] for line in breaks.outage.violations] == [
        "condition 1 (W_YTD = sum(D_YTD)) on node1",
        "condition 8 (W_YTD = sum(H_AMOUNT)) on node1",
    ]
    assert breaks.outage.books.lost == 0
    assert (none.outage.violations, none.outage.events_before) == ((), 0)
    with pytest.raises(SeriesVoid) as caught:
        made.check()
    assert not missing(caught.value, "tpcc w1", "check failed: after the event", "condition 1 ", "condition 8 ")


def test_a_cluster_that_runs_alone_is_checked_after_each_repetition(shared, monkeypatch):
    """No other check sees it, because the next variant ends it. A void repetition has nothing to check."""
    made, checked = source(shared, WRITE, Nothing(), ONE), []
    running = SimpleNamespace(cluster=SimpleNamespace(dirty=""), warm=False)
    voids = iter(["", "not proven", ""])
    monkeypatch.setattr(EventTestbed, "one_at_a_time", True)
    monkeypatch.setattr(made, "_prepare", lambda variant, instance: running)
    monkeypatch.setattr(made, "_round", lambda *of_round: SimpleNamespace(void=next(voids)))
    monkeypatch.setattr(made, "_check", lambda *several: checked.extend(several))
    for block in (0, 1):
        made.round(0, block=block, position=0)
    running.cluster.dirty = "its nodes have not the same orders"  # the repetition says so
    made.round(0, block=2, position=0)
    made.check()

    assert checked == [running]


def test_a_killed_node_of_galera_comes_back_and_no_order_is_lost(shared):
    """The writer waits until the others evict the dead node; the node comes back without a full copy."""
    made = source(shared, ORDERS, Kill("other"), GALERA)
    done = made.round(0, block=0, position=0)
    made.check()
    found = done.outage

    print(found.stall, found.marks, found.returned, found.books)
    assert (done.void, found.node, found.censored) == ("", "node3", False)
    assert 3 < found.stall < 30
    assert found.marks["ended"] < found.marks["evicted"]
    assert found.returned.how == "IST"
    assert found.without_redundancy == found.marks["whole"] > found.stall
    assert found.marks["evicted"] < found.marks["rejoin begun"] <= found.marks["synced"]
    states = [change.to for change in found.states["node3"] if change.to != "no answer"]  # until its end is known
    assert states[:2] == ["writes", "down"]
    assert {node: changes[-1].to for node, changes in found.states.items()} == dict.fromkeys(found.states, "writes")
    assert found.events_before in (0, 1)  # a test before may have had this cluster
    assert found.missing > 3
    assert found.below_half > 3
    assert found.books.acknowledged > 20
    assert (found.books.lost, found.books.invented) == (0, 0)


@pytest.mark.thorough  # its parts have tests of their own
def test_a_paused_node_that_was_evicted_comes_back_by_itself(shared):
    """The others go on without it, and it gets what it missed while the load still runs."""
    timers = "evs.keepalive_period=PT0.3S;evs.suspect_timeout=PT1S;evs.inactive_timeout=PT2S"
    made = source(shared, ORDERS, Pause("other", 6), GALERA.with_options(wsrep_provider_options=timers))
    done = made.round(0, block=0, position=0)
    made.check()
    found = done.outage

    print(found.stall, found.marks, found.returned)
    assert done.void == ""
    assert found.stall < 6
    assert found.returned.how == "IST"
    assert found.without_redundancy == found.marks["whole"] > 6


@pytest.mark.thorough  # the tests of HAProxy keep a session with and without fail-back
def test_without_fail_back_a_paused_writer_costs_fewer_connections(shared):
    """Clients leave a paused writer. When it goes on, fail-back cuts them a second time."""
    checks = {"check_interval": 0.2, "check_timeout": 1, "fall": 2}
    usual = dataclasses.replace(TWO, proxy="haproxy", proxy_options=checks).named("usual")
    specs = usual, usual.with_proxy_options(fail_back=False)
    made = source(shared, ORDERS, Pause("writer", 4), *specs)
    cut, kept = (made.round(number, block=0, position=number) for number in (0, 1))
    made.check()

    print([(one.outage.connections_lost, one.outage.stall, one.outage.logged) for one in (cut, kept)])
    assert made.names == ["usual", "fail_back_OFF"]
    assert (cut.void, kept.void) == ("", "")
    assert 4 <= kept.outage.connections_lost < cut.outage.connections_lost
    assert 2 < kept.outage.stall < 60


def test_a_router_that_knows_only_the_primary_is_refused(shared, monkeypatch):
    """Without MySQL Shell its routes are static: what may move the primary cannot happen behind it."""
    monkeypatch.setattr("pytest_dbcluster.clusters.proxies.mysql_router.innodb_cluster.shell", lambda release: None)
    spec = ClusterSpec("group_replication", nodes=3, release="mysql:9.7", proxy="mysql_router")
    many = spec.with_options(group_replication_single_primary_mode="OFF")
    for event in (Kill("writer"), Pause("writer", 3)):
        with pytest.raises(ConfigError) as caught:
            source(shared, TPCC(), event, spec)
        facts = (f"{event} on group_replication3", "mysql_router has static routes", "no mysqlsh", 'proxy="haproxy"')
        assert missing(caught.value, *facts) == []
        source(shared, TPCC(), event, many)
    for event in (Nothing(), Kill("other")):
        source(shared, TPCC(), event, spec)


@pytest.mark.parametrize(
    ("load", "event", "spec", "fact"),
    [
        (MySQLSlap("write"), Kill(), ONE, "needs a workload that outlives an event, such as TPCC"),
        (TPCC(), Kill("node2"), ONE, "cluster standalone1 has 1 node"),
        (TPCC(), Kill("writer"), GALERA, "the load connects only to this node"),
        (TPCC(), Kill("writer", restart=False), ONE, 'or restart="at once"'),
        (TPCC(rate="70 %"), Kill(), ONE, "needs a rate in operations a second"),
    ],
)
def test_what_cannot_be_repeated_is_refused(shared, load, event, spec, fact):
    """Before any server starts."""
    with pytest.raises(ConfigError) as caught:
        source(shared, load, event, spec)

    assert fact in str(caught.value)
