"""Distance of the replication alone, and of the client alone: each delays what goes over its link, and nothing else."""

from __future__ import annotations

import pytest

from pytest_dbcluster.testbed.pool import Pool
from pytest_dbcluster.testbed.resolution import Resolution
from pytest_dbcluster.workloads.sysbench import SysBench
from tests.support.drbd_pairs import FAR, NEAR
from tests.support.testbeds import source

pytestmark = pytest.mark.guests

SELECTS = SysBench("oltp_point_select", size=500, threads=1, seconds=1.0)
COMMITS = SysBench("oltp_update_index", size=500, threads=1, seconds=3.0)
LINKED = NEAR.with_needs(links={("node1", "node2"): 0.1}).named("linked")
CLIENT = NEAR.with_needs(links={("client", "node1"): 0.1}).named("client_far")


@pytest.fixture(scope="module")
def pool(guests, tmp_path_factory):
    """A pool of guests."""
    made = Pool(Resolution(guests, fragments=tmp_path_factory.mktemp("cnf"), below={}, progress=lambda line: None))
    yield made
    made.close()


def test_a_distant_standby_delays_commits_and_no_select(pool):
    """Its link is that of the two nodes, however it was asked for; the client's own link to the server is another."""
    shortest = {}
    for load in (SELECTS, COMMITS):
        testbed = source(pool, load, NEAR, FAR, LINKED, CLIENT)
        for number, name in enumerate(testbed.names):
            done = testbed.round(number, block=0, position=number)
            assert done.void == ""
            shortest[load.script, name] = done.outcome.ledger.total.latencies.percentile(0.1)
        testbed.check()

    assert len(pool.clusters) == 1
    slow = {key for key, seconds in shortest.items() if seconds > 0.09}
    assert slow == {
        (COMMITS.script, "far"),
        (COMMITS.script, "linked"),
        (COMMITS.script, "client_far"),
        (SELECTS.script, "client_far"),
    }
