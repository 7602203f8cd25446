"""The real testbed on a network that can be delayed: round trips differ between rounds on one cluster."""

from __future__ import annotations

import os
import signal
import statistics

import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.hosts.network import local_paths
from pytest_dbcluster.rounds.round import RunResult
from pytest_dbcluster.spec import ClusterSpec, ReleaseName
from pytest_dbcluster.workloads.sysbench import SysBench
from tests.support import paths
from tests.support.testbeds import evidence, source

NEAR = ClusterSpec("galera", nodes=2, release=ReleaseName("mariadb", "10.11"), name="near")
FAR = NEAR.with_needs(rtt=0.05).named("far")
AWAY = NEAR.with_needs(links={("client", "node1"): 0.05, ("client", "node2"): 0.05}).named("away")
LOAD = SysBench("oltp_update_index", size=100, threads=1, seconds=0.3)


@pytest.fixture(autouse=True)
def possible():
    """Only where this machine can delay packets."""
    if reason := paths.missing():
        pytest.skip(reason)


def test_round_trips_change_between_rounds_on_one_cluster(shared):
    """A commit of Galera waits for the other node, or a load for its answer, and the message says what was measured."""
    made = source(shared, LOAD, NEAR, FAR, AWAY)
    rounds = [made.round(number, block=0, position=position) for position, number in enumerate((0, 1, 2, 1, 0))]
    made.check()
    typical = {
        name: statistics.median(done.seconds / done.outcome.good for done in rounds if done.variant == name)
        for name in ("near", "far", "away")
    }

    assert [done.void for done in rounds] == [""] * 5
    assert len(shared.clusters) == 1
    assert min(typical["far"], typical["away"]) > 0.045
    assert typical["near"] < min(typical["far"], typical["away"])
    notes = evidence(made, 0, 1, 2).notes
    (near,) = [line for line in notes if line.startswith("network of near: rtt=0; ")]
    (far,) = [line for line in notes if line.startswith("network of far: rtt=0.05; ")]
    assert near.startswith("network of near: rtt=0; node1-node2 0.00 ms required, ")
    assert far.startswith("network of far: rtt=0.05; node1-node2 50.0 ms required, ")
    assert far.endswith(" over TCP")
    (away,) = [line for line in notes if line.startswith("network of away: rtt=0, client-node1=0.05, ")]
    assert "; client-node1 50.0 ms required, " in away
    assert "; client-node2 50.0 ms required, " in away


class Ending(SysBench):
    """A load that ends the router of its cluster. Its tables are those of the other load, so it uses its cluster."""

    def run(self, setting):
        """End it, and wait until it is missed."""
        path = setting.cluster.path
        os.kill(paths.router_pid(path), signal.SIGKILL)
        wait.until(lambda: [] if path.why_lost() else ["the router is not missed"], "the loss", seconds=20)
        return RunResult(0.001, 1)


def test_a_round_whose_router_ends_is_void(shared):
    """It says so, and no later round uses the cluster."""
    if local_paths.kernel_delays():
        pytest.skip("the router is the kernel of this machine, which does not end")
    void = source(shared, Ending(LOAD.script, size=LOAD.size), NEAR, FAR, AWAY).round(0, block=0, position=0)
    cluster = shared.clusters[-1]

    assert void.void.startswith("the router between the nodes is gone (a guest; ")
    assert cluster.dirty == void.void
