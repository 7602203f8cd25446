"""The real testbed: a round on a running cluster holds everything, and one that ends early is not used again."""

from __future__ import annotations

import csv
import dataclasses
import io
import itertools
import threading
import time
import types
from pathlib import Path

import psutil
import pytest

from pytest_dbcluster.clusters.dialects.mariadb import MARIADB
from pytest_dbcluster.clusters.servers.node import Node
from pytest_dbcluster.clusters.topologies.standalone import Standalone
from pytest_dbcluster.errors import NodeDied, NotReady, SeriesVoid, WorkloadError
from pytest_dbcluster.hosts.kept_logs import KeptLogs
from pytest_dbcluster.rounds.round import RunResult
from pytest_dbcluster.spec import ClusterSpec, ReleaseName
from pytest_dbcluster.testbed.names import unique_names
from tests.support.clusters import variant_of
from tests.support.facts import missing
from tests.support.fakes import Failing, Idle
from tests.support.testbeds import MYSQL, ONE, OTHER, TWO, WRITE, differing, evidence, source


class Naps(Idle):
    """A load that takes some seconds."""

    def __init__(self, seconds):
        self.seconds = seconds

    def run(self, setting):
        """Nothing is done meanwhile."""
        time.sleep(self.seconds)
        return RunResult(self.seconds, 100, 100)


def test_a_round_holds_what_was_measured(shared):
    """Time of the load, counters, OS metrics, and how long the whole of it took."""
    made = source(shared, WRITE, ONE, OTHER)
    done = made.round(1, block=3, position=1)

    assert (done.variant, done.block, done.position, done.void) == ("other", 3, 1, "")
    assert 0 < done.seconds < done.wall
    assert done.throughput == 20 / done.seconds
    assert done.settled is True
    assert done.counters["fsyncs_per_commit"] > 0
    assert {"drain_seconds", "log_bytes"} <= set(done.counters)
    assert {"cpu_node1", "cpu_client", "steal"} <= set(done.samples)
    made.check()


def test_a_round_begins_with_the_same_switch_after_either_variant(shared, monkeypatch):
    """Also where it follows a round of its own variant: each variable is set, to the value that it may have already."""
    made, sets, ask = source(shared, WRITE, ONE, OTHER), [], Node.batch
    made.round(0, block=0, position=0)

    def batch(node, statements, *seconds):
        found = [text for text in statements if text.startswith("SET GLOBAL lock_wait_timeout")]
        sets.extend(text.rpartition(" ")[2] for text in found)
        return ask(node, statements, *seconds)

    monkeypatch.setattr(Node, "batch", batch)
    for position, variant in enumerate((0, 1, 1, 0, 0), 1):
        made.round(variant, block=0, position=position)
    default = sets[0]

    assert sets == [default, "40", "40", default, default]
    assert default != "40"


def test_a_measurement_is_sampled_every_second(shared):
    """From the first round on, also between rounds, until the clusters are checked or the test ends."""
    before = set(threading.enumerate())
    made = source(shared, Naps(1.2), ONE, OTHER, sampled=True)
    first = made.round(0, block=3, position=0)
    second = made.round(1, block=3, position=1)
    made.end()
    rows = list(csv.DictReader(io.StringIO(made.timeline([first, second]))))

    assert {row["variant"] for row in rows} >= {first.variant, "other"}
    assert {"cpu_node1", "cpu_client", "cpu_all", "steal", "disk_writes", "network_bytes"} <= set(rows[0])
    times = [float(row["time"]) for row in rows]
    assert all(later - earlier > 0.5 for earlier, later in itertools.pairwise(times))
    assert not any(thread.name == "dbcluster-timeline" for thread in set(threading.enumerate()) - before)
    assert made.timeline([]) == ""


def test_later_rounds_run_their_work_as_often_as_they_are_told(shared):
    """The operations of all repetitions count, and the round after it begins with the same tables."""
    made = source(shared, WRITE, ONE, OTHER)
    made.set_repeat(3)
    several = [made.round(variant, block=0, position=variant) for variant in (0, 1)]

    assert [done.outcome.operations for done in several] == [60, 60]
    assert [done.outcome.resolution for done in several] == [0.001, 0.001]
    made.check()


def test_blocks_go_to_the_instances_in_turn(pool):
    """Each variant has as many fresh clusters as asked for, and both variants of a block are on the same one."""
    made = source(pool, WRITE, ONE, OTHER, instances=2)
    for block in range(2):
        made.round(0, block=block, position=0)
        made.round(1, block=block, position=1)
    counts = [cluster.nodes[0].status("com_insert")["com_insert"] for cluster in pool.clusters]

    assert made.instances_in_turn() == 2
    assert len(pool.clusters) == 2
    assert len(set(counts)) == 1
    made.check()


def test_clusters_that_take_turns_have_one_instance(shared):
    """Each turn starts afresh, so there are no two to use in turn."""
    made = source(shared, WRITE, ONE, OTHER, instances=2)
    made.__dict__["one_at_a_time"] = True

    assert made.instances_in_turn() == 1


def test_what_differs_in_more_than_options_has_two_instances(shared):
    """A version could be taken for the place where one server of it lies; settings of one server could not."""
    assert source(shared, WRITE, ONE, ONE.with_options(lock_wait_timeout=40)).instances == 1
    assert source(shared, WRITE, ONE, MYSQL, across_durability=True).instances == 2
    assert source(shared, WRITE, ONE, MYSQL, across_durability=True, instances=1).instances == 1


def test_a_replicas_backlog_is_counted(shared):
    """Asynchronous and certified commits, on purpose: the labels of both, and a drain that is waited for."""
    replicas = ClusterSpec("async_replication", nodes=2, release=ReleaseName("mariadb", "10.11"), name="async")
    made = source(shared, WRITE, replicas, TWO, across_durability=True, instances=1)
    done = made.round(0, block=0, position=0)
    made.check()

    assert 0 < done.counters["drain_seconds"] < 30
    assert evidence(made, 1, 0).durability["async"] == "flush=1, sync_binlog=0, one server, replicas later"
    assert differing(made, 1, 0)["log_bin"] == ("ON", "OFF")


def test_options_of_the_provider_are_among_the_differences(shared):
    """A limit of flow control that was tuned is what tells the two apart; their ports are not."""
    tuned = TWO.with_options(wsrep_provider_options="gcs.fc_limit=1000").named("tuned")
    made = source(shared, WRITE, TWO, tuned)

    assert differing(made, 1, 0) == {"gcs.fc_limit": ("16", "1000")}
    assert "variables that differ (galera2 -> tuned): gcs.fc_limit: 16 -> 1000" in evidence(made, 1, 0).notes


def test_a_load_has_conditions_of_its_own(shared):
    """One that does not hold makes the series void, and the cluster is not used again. The check has a line."""

    class Unbalanced(Failing):
        """A load whose books do not balance."""

        def violations(self, cluster):
            """One sentence for each node."""
            return [f"{node.name}: the books do not balance" for node in cluster.nodes]

        def __str__(self):
            return "bank"

    said = []
    made = source(shared, Unbalanced("", None, writes=False), ONE, progress=said.append)
    made.round(0, block=0, position=0)

    with pytest.raises(SeriesVoid) as caught:
        made.check()
    assert said[-1] == "bank: checking the tables of 1 cluster"
    cluster = shared.clusters[-1]
    violation = f": {cluster.nodes[0].name}: the books do not balance"
    assert missing(caught.value, "bank on standalone1: ", "check failed", violation) == []
    assert cluster.dirty
    cluster.dirty = ""  # the load has left nothing there


def test_clusters_are_checked_at_the_same_time(shared):
    """Each of them, also where another one fails: both are dropped here."""
    both = threading.Barrier(2)

    class Unbalanced(Failing):
        """A load whose check of one cluster waits for that of the other."""

        def violations(self, cluster):
            """A sentence."""
            both.wait(60)
            return ["the books do not balance"]

    made = source(shared, Unbalanced("", None, writes=False), ONE, instances=2)
    for block in range(2):
        made.round(0, block=block, position=0)

    with pytest.raises(SeriesVoid, match="the books do not balance"):
        made.check()
    used = shared.clusters[-2:]
    assert [bool(cluster.dirty) for cluster in used] == [True, True]
    for cluster in used:
        cluster.dirty = ""  # the load has left nothing there


def test_a_round_waits_until_the_cluster_is_fit_again(shared, monkeypatch):
    """What made a round void may still go on; when it never ends the problem is said, and the cluster is dropped."""
    made = source(shared, WRITE, ONE)
    made.round(0, block=0, position=0)
    cluster = shared.clusters[-1]
    seen = ["semi-sync is off", "semi-sync is off", ""]
    monkeypatch.setattr(cluster, "problems", lambda: [one for one in [seen.pop(0)] if one] if seen else [])

    assert made.round(0, block=1, position=0).void == ""
    assert seen == []
    monkeypatch.setattr(cluster, "problems", lambda: ["semi-sync is off"])
    monkeypatch.setattr("pytest_dbcluster.testbed.testbed.FIT_SECONDS", 0.05)
    with pytest.raises(NotReady, match=r"^cluster standalone1 for the next round not ready .*: semi-sync is off$"):
        made.round(0, block=2, position=0)
    assert cluster.dirty
    cluster.dirty = ""  # it is fit


class Slow(Standalone):
    """A topology with a replica that still applies what was written, for so many readings of its backlog."""

    behind = 0
    replicates = True

    def backlog(self, nodes):
        """One line, until it has caught up."""
        self.behind -= 1
        return ["node2 is behind"] if self.behind >= 0 else []


def test_a_reset_that_does_not_drain_makes_its_round_void(shared, monkeypatch):
    """Its backlog would be charged to the round, so nothing is run; what is drained in time is no part of one."""
    ran = []

    class Counted(Failing):
        """A load that writes down when it runs: how far the replica is behind."""

        def run(self, setting):
            """The backlog, and no work."""
            ran.append(setting.cluster.topology.behind > 0)
            return super().run(setting)

    made = source(shared, Counted("", None), ONE)
    made.check()
    cluster = shared.clusters[-1]
    monkeypatch.setattr(cluster, "topology", Slow())
    voids = []
    for behind, limit in ((2, 60.0), (10**9, 0.05), (0, 60.0)):
        monkeypatch.setattr("pytest_dbcluster.testbed.round_runner.DRAIN_SECONDS", limit)
        cluster.topology.behind = behind
        voids.append(made.round(0, block=1, position=0).void)

    first, void, last = voids
    assert (first, last) == ("", "")
    assert missing(void, "after its reset", "not drained after 0.05 s: node2 is behind") == []
    assert ran == [False, False]


class Stumbles(Failing):
    """A load that never fails, but in one of its runs, counted from 1, the first server logs an error."""

    def __init__(self, at):
        super().__init__("", None, writes=False)
        object.__setattr__(self, "left", [at])

    def run(self, setting):
        """A line in the log when its time has come."""
        self.left[0] -= 1
        if self.left[0] == 0:
            with Path(setting.cluster.nodes[0].log).open("a") as log:
                log.write("2026-11-21 [ERROR] it stumbled\n")
        return super().run(setting)


class Alert(Standalone):
    """A topology that finds the second round of each two void."""

    count = 0

    def watch(self, nodes):
        """Another number each time."""
        self.count += 1
        return {"count": str(self.count)}

    def void(self, before, after):
        """Every second round."""
        return "" if int(after["count"]) % 4 else "the primary changed"


def test_what_is_logged_in_a_void_round_is_its_own(shared, monkeypatch):
    """The line stands with the reason, and neither the next round nor the check holds it against the cluster."""
    made = source(shared, Stumbles(at=3), ONE)
    made.round(0, block=0, position=0)
    cluster = shared.clusters[-1]
    monkeypatch.setattr(cluster, "topology", Alert())
    voids = [made.round(0, block=block, position=0).void for block in (1, 2, 3)]
    made.check()

    first, void, last = voids
    assert (first, last) == ("", "")
    assert void.startswith("the primary changed; ")
    assert missing(void, "1 [ERROR] line", ": node1 logged: 2026-11-21 [ERROR] it stumbled") == []


def test_what_is_logged_in_a_round_that_counts_ends_the_series(shared):
    """At the next round at the latest."""
    made = source(shared, Stumbles(at=1), ONE)
    made.round(0, block=0, position=0)

    with pytest.raises(SeriesVoid) as caught:
        made.round(0, block=1, position=0)
    line = ": node1 logged: 2026-11-21 [ERROR] it stumbled"
    shared.clusters[-1].dirty = ""  # its log is read
    assert missing(caught.value, "cluster standalone1 failed", "before a round", line) == []


def test_clusters_take_turns_where_memory_holds_one(pool, monkeypatch):
    """Each turn is a start with several rounds that count as one; the other cluster does not run meanwhile."""
    own = ONE.with_options(innodb_buffer_pool_size="64M").named("own")
    made = source(pool, WRITE, ONE, own)
    room = lambda: types.SimpleNamespace(total=2**34, available=int((1.5 - len(pool.clusters)) * MARIADB.memory))  # noqa: E731
    monkeypatch.setattr(psutil, "virtual_memory", room)

    turns = [made.round(number, block=0, position=number) for number in (0, 1)]
    made.check()

    assert made.one_at_a_time is True
    assert [turn.outcome.operations for turn in turns] == [3 * 20, 3 * 20]
    assert [cluster.spec.short_name for cluster in pool.clusters] == ["own"]
    assert differing(made, 1, 0)["innodb_buffer_pool_size"] == (str(128 * 2**20), str(64 * 2**20))


def test_each_turn_is_a_fresh_cluster_where_memory_holds_two_of_four(pool, monkeypatch):
    """Otherwise all turns would compare the same two clusters, and equal clusters differ."""
    own = ONE.with_options(innodb_buffer_pool_size="64M").named("own")
    made = source(pool, WRITE, ONE, own, instances=2)
    room = lambda: types.SimpleNamespace(total=2**34, available=int((2.5 - len(pool.clusters)) * MARIADB.memory))  # noqa: E731
    monkeypatch.setattr(psutil, "virtual_memory", room)
    processes = []
    for block, variants in enumerate(((0, 1), (1, 0))):
        for position, number in enumerate(variants):
            made.round(number, block=block, position=position)
            processes.append(made._used.nodes[0].process.pid)

    assert made.one_at_a_time is True
    assert len(set(processes)) == 4
    assert made.cluster_difference(0, 1, metric="goodput") is None


def test_clusters_run_side_by_side_where_memory_holds_them(shared):
    """Then a turn is one round, and both stay."""
    made = source(shared, WRITE, ONE, ONE.with_options(innodb_buffer_pool_size="64M").named("own"))

    assert made.round(0, block=0, position=0).outcome.operations == 20
    assert made.one_at_a_time is False
    assert [cluster.spec.short_name for cluster in shared.clusters[-2:]] == ["standalone1", "own"]


@pytest.mark.parametrize("step", ["prepare", "reset", "run"])
@pytest.mark.parametrize("error", [WorkloadError("it ended"), KeyboardInterrupt()], ids=["error", "ctrl-c"])
def test_a_round_that_ends_early_marks_its_cluster(shared, step, error):
    """Whatever it left in the tables is not measured by the next test: the cluster is not reused."""
    made = source(shared, Failing(step, error), ONE)

    with pytest.raises(type(error)):
        made.round(0, block=0, position=0)
    last_used = shared.clusters[-1]
    assert last_used.dirty == f"a round ended early: {type(error).__name__}"
    last_used.dirty = ""  # the load has left nothing there


@dataclasses.dataclass(frozen=True)
class Deadly(Idle):
    """A load under which the server dies, or one whose tables are wrong afterwards."""

    dies: bool = True

    def run(self, setting):
        """Kills the server, if it is told to."""
        if self.dies:
            setting.cluster.nodes[0].process.signal(9)
            setting.cluster.nodes[0].raise_if_dead()
        return super().run(setting)

    def violations(self, cluster):
        """One."""
        return ["a row is missing"]


@pytest.mark.parametrize("dies", [True, False], ids=["a dead node", "a failed check"])
def test_the_logs_of_a_cluster_that_failed_stay(pool, tmp_path, monkeypatch, dies):
    """The error names the copies, which are there when the cluster has ended."""
    monkeypatch.setattr(pool.provisioner, "logs", KeptLogs(tmp_path / "logs", "test_it"))
    made = source(pool, Deadly(dies), ONE)
    if dies:
        with pytest.raises(NodeDied) as caught:
            made.round(0, block=0, position=0)
    else:
        made.round(0, block=0, position=0)
        with pytest.raises(SeriesVoid) as caught:
            made.check()
    pool.close()

    [kept] = (tmp_path / "logs" / "test_it").iterdir()
    assert str(kept) in str(caught.value)
    assert "ready for connections" in (kept / "node1" / "error.log").read_text()


def test_equal_names_get_their_release(mariadb):
    """Two versions of one spec are two columns; other names stay short."""
    old = dataclasses.replace(mariadb, name="mariadb:10.5")
    variants = [variant_of(ONE, mariadb, (), ()), variant_of(ONE, old, (), ()), variant_of(ONE.named("x"), old, (), ())]

    assert unique_names(variants) == ["standalone1@mariadb:10.11", "standalone1@mariadb:10.5", "x"]
