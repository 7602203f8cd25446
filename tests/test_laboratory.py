"""The real laboratory: a round on a running cluster holds everything, and one that ends early is not used again."""

from __future__ import annotations

import dataclasses
import types
from pathlib import Path

import psutil
import pytest

from pytest_dbcluster import doctor
from pytest_dbcluster.errors import ConfigError, NotReady, SeriesVoid, WorkloadError
from pytest_dbcluster.flavour import MARIADB
from pytest_dbcluster.laboratory import ClusterLaboratory, unique_names
from pytest_dbcluster.pool import Pool
from pytest_dbcluster.spec import ClusterSpec, ReleaseName
from pytest_dbcluster.topologies.standalone import Standalone
from pytest_dbcluster.variants import Variant
from pytest_dbcluster.workload import Outcome
from pytest_dbcluster.workloads.mysqlslap import MySQLSlap

ONE = ClusterSpec("standalone", release=ReleaseName("mariadb", "10.11"))
TWO = ClusterSpec("galera", nodes=2, release=ReleaseName("mariadb", "10.11"))
MYSQL = ClusterSpec("standalone", release=ReleaseName("mysql", "9.7"), name="mysql")
WRITE = MySQLSlap("write", concurrency=2, queries=20, rows=100)


@dataclasses.dataclass(frozen=True)
class Failing:
    """A load that fails at one of its steps, or is interrupted there."""

    step: str
    error: BaseException
    writes: bool = True
    tables: tuple[str, ...] = ()

    def _at(self, step):
        if step == self.step:
            raise self.error

    def prepare(self, setting):
        """Fails, or makes nothing."""
        self._at("prepare")

    def reset(self, setting):
        """Fails, or does nothing."""
        self._at("reset")

    def run(self, setting):
        """Fails, or takes no time."""
        self._at("run")
        return Outcome(0.001, 1, 1)


@pytest.fixture
def pool(provisioner, tmp_path):
    """A pool of real servers."""
    made = Pool(provisioner, fragments=tmp_path, below={}, progress=lambda line: None)
    yield made
    made.close()


def laboratory(pool, load, *specs, **permits):
    """A laboratory of these specs."""
    variants = [pool.variant(spec) for spec in specs]
    return ClusterLaboratory(load, variants, pool, "quick", lambda line: None, **permits)


def test_a_round_holds_what_was_measured(pool):
    """Time of the load, counters, OS metrics, and how long the whole of it took."""
    made = laboratory(pool, WRITE, ONE, ONE.with_options(lock_wait_timeout=40).named("other"))
    done = made.round(1, block=3, position=1)

    assert (done.variant, done.block, done.position, done.void) == ("other", 3, 1, "")
    assert 0 < done.seconds < done.wall
    assert done.throughput == 20 / done.seconds
    assert done.settled is True
    assert done.counters["fsyncs_per_commit"] > 0
    assert {"drain_seconds", "log_bytes"} <= set(done.counters)
    assert {"cpu_node1", "cpu_client", "steal"} <= set(done.samples)
    made.check()


def test_blocks_go_to_the_instances_in_turn(pool):
    """Each variant has as many fresh clusters as asked for, and both variants of a block are on the same one."""
    made = laboratory(pool, WRITE, ONE, ONE.with_options(lock_wait_timeout=40).named("other"), instances=2)
    for block in range(2):
        made.round(0, block=block, position=0)
        made.round(1, block=block, position=1)
    counts = [cluster.nodes[0].status("com_insert")["com_insert"] for cluster in pool.clusters]

    assert len(pool.clusters) == 2
    assert len(set(counts)) == 1
    made.check()


def test_what_differs_in_more_than_options_has_two_instances(pool):
    """A version could be taken for the place where one server of it lies; settings of one server could not."""
    assert laboratory(pool, WRITE, ONE, ONE.with_options(lock_wait_timeout=40)).instances == 1
    assert laboratory(pool, WRITE, ONE, MYSQL, across_durability=True).instances == 2
    assert laboratory(pool, WRITE, ONE, MYSQL, across_durability=True, instances=1).instances == 1


def test_the_message_says_what_was_durable_and_what_differed(pool):
    """As the servers have it, not as it was asked for."""
    made = laboratory(pool, WRITE, ONE, ONE.with_options(lock_wait_timeout=40).named("other"))

    assert made.notes(1, 0)[:2] == [
        "durability: other flush=1, binlog off, one server; standalone1 flush=1, binlog off, one server",
        "variables that differ (standalone1 -> other): lock_wait_timeout: 86400 -> 40",
    ]


def test_many_variables_that_differ_are_cut(pool, monkeypatch):
    """Those of two vendors are hundreds: the message has the first ones and their number."""
    made = laboratory(pool, WRITE, ONE, ONE.with_options(lock_wait_timeout=40).named("other"))
    monkeypatch.setattr(made, "differences", lambda *numbers: {f"v{n:02}": ("1", "2") for n in range(30)})

    assert made.notes(1, 0)[1].endswith("v18: 1 -> 2, v19: 1 -> 2, and 10 more")


def test_topologies_that_promise_differently_are_refused_before_anything_starts(pool):
    """One server, or all of them: the test has to say that it knows."""
    with pytest.raises(ConfigError) as caught:
        laboratory(pool, WRITE, ONE, TWO)

    assert str(caught.value) == (
        "a commit of standalone1 is not worth the same as one of galera2, and the test did not set that itself: "
        "acknowledged (from the topologies standalone and galera) differs [standalone1: one server; galera2: certified "
        "on all nodes]. Who promises less is faster for that alone: measure(..., across_durability=True) compares them "
        "all the same"
    )
    assert pool.clusters == []


def test_async_against_galera_is_refused(pool):
    """Replicas get a commit later, nodes have certified it before it returns."""
    replicas = ClusterSpec("async_replication", nodes=2, release=ReleaseName("mariadb", "10.11"), name="async")

    with pytest.raises(ConfigError, match=r"\[async: one server, replicas later; galera2: certified on all nodes\]"):
        laboratory(pool, WRITE, replicas, TWO)
    assert pool.clusters == []


def test_a_replicas_backlog_is_counted(pool):
    """Asynchronous and certified commits, on purpose: the labels of both, and a drain that is waited for."""
    replicas = ClusterSpec("async_replication", nodes=2, release=ReleaseName("mariadb", "10.11"), name="async")
    made = laboratory(pool, WRITE, replicas, TWO, across_durability=True, instances=1)
    done = made.round(0, block=0, position=0)
    made.check()

    assert 0 < done.counters["drain_seconds"] < 30
    assert made.durability(0) == "flush=1, sync_binlog=0, one server, replicas later"
    assert made.differences(1, 0)["log_bin"] == ("ON", "OFF")


def test_a_test_that_says_so_compares_across_durability(pool):
    """Then both are measured, and the labels stand in the message."""
    made = laboratory(pool, WRITE, ONE, TWO, across_durability=True, instances=1)
    done = made.round(1, block=0, position=0)

    assert done.void == ""
    assert done.drained_throughput < done.throughput
    assert made.notes(1, 0)[0] == (
        "durability: galera2 flush=1, binlog off, certified on all nodes, wsrep_sync_wait=0; "
        "standalone1 flush=1, binlog off, one server"
    )


def test_vendors_whose_defaults_differ_are_refused_before_a_round(pool):
    """MySQL flushes its binlog at each commit, MariaDB has none: seen as the servers run, before the load's tables."""
    made = laboratory(pool, Failing("prepare", AssertionError("prepared")), ONE, MYSQL, instances=1)

    with pytest.raises(ConfigError, match=r"binlog \(from the defaults of mariadb and mysql\) differs"):
        made.round(0, block=0, position=0)
    assert not any(cluster.dirty for cluster in pool.clusters)


def test_parity_makes_vendors_comparable_with_one_client(pool):
    """Normalised servers promise the same; the first variant's client runs the load on both, and is named."""
    made = laboratory(pool, WRITE, ONE.with_parity("normalised"), MYSQL.with_parity("normalised"), instances=1)
    done = [made.round(number, block=0, position=number) for number in (0, 1)]
    made.check()
    label, _, client = made.notes(1, 0)

    assert [one.outcome.operations for one in done] == [20, 20]
    assert label.count("flush=1, sync_binlog=1, one server") == 2
    assert client.startswith("client of all variants: that of mariadb:10.11 10.11.")


def test_clusters_that_take_turns_are_compared_as_they_start(pool, monkeypatch):
    """The second one is refused before it has run a round, and the first one does not run beside it."""
    made = laboratory(pool, WRITE, ONE, MYSQL)
    monkeypatch.setitem(made.__dict__, "in_turns", True)

    assert made.round(0, block=0, position=0).outcome.operations == 3 * 20
    with pytest.raises(ConfigError, match=r"binlog \(from the defaults of mariadb and mysql\) differs"):
        made.round(1, block=0, position=1)


def test_the_flush_that_a_test_sets_is_compared(pool):
    """Its own option explains the difference, so nothing has to be permitted."""
    made = laboratory(pool, WRITE, ONE, ONE.with_options(innodb_flush_log_at_trx_commit=2).named("flush_2"))
    made.round(1, block=0, position=0)

    assert made.notes(1, 0)[0] == (
        "durability: flush_2 flush=2, binlog off, one server; standalone1 flush=1, binlog off, one server"
    )


def test_a_load_has_conditions_of_its_own(pool):
    """One that does not hold makes the series void, and the cluster is not used again."""

    class Unbalanced(Failing):
        """A load whose books do not balance."""

        def violations(self, cluster):
            """One sentence for each node."""
            return [f"{node.name}: the books do not balance" for node in cluster.nodes]

        def __str__(self):
            return "bank"

    made = laboratory(pool, Unbalanced("", None, writes=False), ONE)
    made.round(0, block=0, position=0)

    with pytest.raises(SeriesVoid) as caught:
        made.check()
    (cluster,) = pool.clusters
    assert str(caught.value) == (
        f"bank on standalone1: its own check failed: {cluster.nodes[0].name}: the books do not balance"
    )
    assert cluster.dirty


def test_a_round_waits_until_the_cluster_is_fit_again(pool, monkeypatch):
    """What made a round void may still go on; when it never ends the problem is said, and the cluster is dropped."""
    made = laboratory(pool, WRITE, ONE)
    made.round(0, block=0, position=0)
    (cluster,) = pool.clusters
    seen = ["semi-sync is off", "semi-sync is off", ""]
    monkeypatch.setattr(cluster, "problems", lambda: [one for one in [seen.pop(0)] if one] if seen else [])

    assert made.round(0, block=1, position=0).void == ""
    assert seen == []
    monkeypatch.setattr(cluster, "problems", lambda: ["semi-sync is off"])
    monkeypatch.setattr("pytest_dbcluster.laboratory.FIT_SECONDS", 0.05)
    with pytest.raises(NotReady, match=r"^cluster standalone1 for the next round not ready .*: semi-sync is off$"):
        made.round(0, block=2, position=0)
    assert cluster.dirty


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


def test_what_is_logged_in_a_void_round_is_its_own(pool):
    """The line stands with the reason, and neither the next round nor the check holds it against the cluster."""
    made = laboratory(pool, Stumbles(at=3), ONE)
    made.round(0, block=0, position=0)
    (cluster,) = pool.clusters
    cluster.topology = Alert()
    voids = [made.round(0, block=block, position=0).void for block in (1, 2, 3)]
    made.check()

    assert voids == [
        "",
        "the primary changed; 1 [ERROR] lines, the first: node1 logged: 2026-11-21 [ERROR] it stumbled",
        "",
    ]


def test_what_is_logged_in_a_round_that_counts_ends_the_series(pool):
    """At the next round at the latest."""
    made = laboratory(pool, Stumbles(at=1), ONE)
    made.round(0, block=0, position=0)

    with pytest.raises(SeriesVoid) as caught:
        made.round(0, block=1, position=0)
    assert str(caught.value) == (
        "cluster standalone1 failed before a round: node1 logged: 2026-11-21 [ERROR] it stumbled"
    )


def test_clusters_take_turns_where_memory_holds_one(pool, monkeypatch):
    """Each turn is a start with several rounds that count as one; the other cluster does not run meanwhile."""
    own = ONE.with_options(innodb_buffer_pool_size="64M").named("own")
    made = laboratory(pool, WRITE, ONE, own)
    room = lambda: types.SimpleNamespace(total=2**34, available=int((1.5 - len(pool.clusters)) * MARIADB.memory))  # noqa: E731
    monkeypatch.setattr(psutil, "virtual_memory", room)

    turns = [made.round(number, block=0, position=number) for number in (0, 1)]
    made.check()

    assert made.in_turns is True
    assert [turn.outcome.operations for turn in turns] == [3 * 20, 3 * 20]
    assert [cluster.spec.short_name for cluster in pool.clusters] == ["own"]
    assert made.differences(1, 0)["innodb_buffer_pool_size"] == (str(128 * 2**20), str(64 * 2**20))


def test_clusters_run_side_by_side_where_memory_holds_them(pool):
    """Then a turn is one round, and both stay."""
    made = laboratory(pool, WRITE, ONE, ONE.with_options(innodb_buffer_pool_size="64M").named("own"))

    assert made.round(0, block=0, position=0).outcome.operations == 20
    assert made.in_turns is False
    assert len(pool.clusters) == 2


@pytest.mark.parametrize("step", ["prepare", "reset", "run"])
@pytest.mark.parametrize("error", [WorkloadError("it ended"), KeyboardInterrupt()], ids=["error", "ctrl-c"])
def test_a_round_that_ends_early_marks_its_cluster(pool, step, error):
    """Whatever it left in the tables is not measured by the next test: the cluster is not reused."""
    made = laboratory(pool, Failing(step, error), ONE)

    with pytest.raises(type(error)):
        made.round(0, block=0, position=0)
    (cluster,) = pool.clusters
    assert cluster.dirty == f"a round ended early: {type(error).__name__}"


def test_flushing_is_not_judged_where_it_costs_nothing(pool, monkeypatch):
    """On a disk whose fsync is no fsync the claim stays open, and says why; other options are judged."""
    made = laboratory(
        pool, WRITE, ONE, ONE.with_options(innodb_flush_log_at_trx_commit=2), ONE.with_options(back_log=90)
    )
    monkeypatch.setattr(doctor, "fsync_seconds", lambda directory: 3e-6)

    assert made.blind("beats", 1, 0).startswith("an fsync takes 3 us in ")
    assert made.blind("beats", 1, 0).endswith(": this disk cannot show what flushing costs")
    assert made.blind("beats", 2, 0) == ""
    monkeypatch.setattr(doctor, "fsync_seconds", lambda directory: 1e-3)
    assert made.blind("beats", 1, 0) == ""


def test_scaling_is_not_judged_where_nodes_share_cores(pool):
    """Nothing has to be started to know it; the hosts of another provisioner may be separate."""
    one = dataclasses.replace(TWO, nodes=1)
    made = laboratory(pool, WRITE, TWO, one)

    assert "(galera2 has 2 nodes, galera1 1 node)" in made.blind("scales", 0, 1)
    assert pool.clusters == []


def test_equal_names_get_their_release(mariadb):
    """Two versions of one spec are two columns; other names stay short."""
    old = dataclasses.replace(mariadb, name="mariadb:10.5")
    variants = [Variant(ONE, mariadb, (), ()), Variant(ONE, old, (), ()), Variant(ONE.named("x"), old, (), ())]

    assert unique_names(variants) == ["standalone1@mariadb:10.11", "standalone1@mariadb:10.5", "x"]
