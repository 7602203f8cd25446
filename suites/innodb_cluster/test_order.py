"""Published: asynchronous replication is fastest, then semi-synchronous, then InnoDB Cluster."""

import pytest

from fixtures.clusters import GROUP, SEMISYNC, without_waiting
from fixtures.loads import WRITING, cluster_slap
from pytest_dbcluster import ordered

pytestmark = [pytest.mark.published("innodb-cluster-2022"), pytest.mark.releases("mysql:9.7")]


@pytest.mark.budget(360)  # asynchronous over semi-synchronous was open after 120 s: 1.10x to 1.17x, pairs of 16 to 26 %
@pytest.mark.parametrize("mode", WRITING)
def test_more_acknowledgements_cost_throughput(measure, db_release, mode):
    """Waiting for a majority is slower than waiting for one replica; waiting for no replica is fastest."""
    # The acknowledgement guarantees differ on purpose: the claim is about their cost.
    clusters = [GROUP, SEMISYNC, without_waiting(SEMISYNC, db_release)]
    group, semisync, async_ = measure(cluster_slap(mode), on=clusters, across_durability=True)

    assert ordered(group, semisync, async_)
