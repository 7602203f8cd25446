"""The real laboratory: a round on a running cluster holds everything, and one that ends early is not used again."""

from __future__ import annotations

import dataclasses
import types

import psutil
import pytest

from pytest_dbcluster import doctor
from pytest_dbcluster.errors import WorkloadError
from pytest_dbcluster.laboratory import ClusterLaboratory, durability_label, merged, unique_names
from pytest_dbcluster.pool import NODE_MEMORY, Pool
from pytest_dbcluster.spec import ClusterSpec, ReleaseName
from pytest_dbcluster.variants import Variant
from pytest_dbcluster.workload import Outcome, Round
from pytest_dbcluster.workloads.mysqlslap import MySQLSlap

ONE = ClusterSpec("standalone", release=ReleaseName("mariadb", "10.11"))
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


def laboratory(pool, load, *specs):
    """A laboratory of these specs."""
    return ClusterLaboratory(load, [pool.variant(spec) for spec in specs], pool, "quick", lambda line: None)


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


def test_the_message_says_what_was_durable_and_what_differed(pool):
    """As the servers have it, not as it was asked for."""
    made = laboratory(pool, WRITE, ONE, ONE.with_options(lock_wait_timeout=40).named("other"))

    assert made.notes(1, 0)[:2] == [
        "durability: other flush=1, binlog off, one server; standalone1 flush=1, binlog off, one server",
        "variables that differ (standalone1 -> other): lock_wait_timeout: 86400 -> 40",
    ]


def test_clusters_take_turns_where_memory_holds_one(pool, monkeypatch):
    """Each turn is a start with several rounds that count as one; the other cluster does not run meanwhile."""
    own = ONE.with_options(innodb_buffer_pool_size="64M").named("own")
    made = laboratory(pool, WRITE, ONE, own)
    room = lambda: types.SimpleNamespace(total=2**34, available=int((1.5 - len(pool.clusters)) * NODE_MEMORY))  # noqa: E731
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


def test_the_rounds_of_a_turn_add_up():
    """Times, operations and commits are summed, counters are means; one that was not settled is remembered."""
    one = Round("a", 0, 0, Outcome(1.0, 100, 50), 2.0, 10.0, counters={"fsyncs": 4.0}, samples={"steal": 0.0})
    two = Round("a", 0, 0, Outcome(3.0, 100, 50), 4.0, 20.0, settled=False, counters={"fsyncs": 8.0})

    both = merged([one, two])

    assert both.outcome == Outcome(4.0, 200, 100)
    assert (both.throughput, both.wall, both.started, both.settled) == (50.0, 4.0, 10.0, False)
    assert both.counters == {"fsyncs": 6.0}


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

    assert made.blind(1, 0).startswith("an fsync takes 3 us in ")
    assert made.blind(1, 0).endswith(": this disk cannot show what flushing costs")
    assert made.blind(2, 0) == ""
    monkeypatch.setattr(doctor, "fsync_seconds", lambda directory: 1e-3)
    assert made.blind(1, 0) == ""


@pytest.mark.parametrize(
    ("variables", "topology", "label"),
    [
        (
            {"innodb_flush_log_at_trx_commit": "2", "log_bin": "OFF"},
            "galera",
            "flush=2, binlog off, certified on all nodes",
        ),
        (
            {"innodb_flush_log_at_trx_commit": "1", "log_bin": "ON", "sync_binlog": "0"},
            "standalone",
            "flush=1, sync_binlog=0, one server",
        ),
        ({}, "ring", "flush=?, binlog off, ring"),
    ],
)
def test_durability_says_who_has_what(variables, topology, label):
    """On disk, in the binlog, on other nodes."""
    assert durability_label(variables, topology) == label


def test_equal_names_get_their_release(mariadb):
    """Two versions of one spec are two columns; other names stay short."""
    old = dataclasses.replace(mariadb, name="mariadb:10.5")
    variants = [Variant(ONE, mariadb, (), ()), Variant(ONE, old, (), ()), Variant(ONE.named("x"), old, (), ())]

    assert unique_names(variants) == ["standalone1@mariadb:10.11", "standalone1@mariadb:10.5", "x"]
