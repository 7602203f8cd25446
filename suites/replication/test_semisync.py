"""Published: asynchronous replication is faster than semi-synchronous."""

import pytest

from fixtures.clusters import SEMISYNC, without_waiting
from fixtures.loads import WRITING, cluster_slap

pytestmark = [
    pytest.mark.budget(180),  # mysql:9.7 needs up to 160 pairs, of a second each
    pytest.mark.published("innodb-cluster-2022"),
    pytest.mark.releases("mariadb:10.11", "mariadb:11.8", "mysql:9.7"),
]


@pytest.mark.parametrize("mode", WRITING)
def test_async_beats_semisync(measure, db_release, mode):
    """A commit that waits for a replica's acknowledgement is slower than a commit that does not wait."""
    # The acknowledgement guarantees differ on purpose: the claim is about their cost.
    clusters = [SEMISYNC, without_waiting(SEMISYNC, db_release)]
    semisync, async_ = measure(cluster_slap(mode), on=clusters, across_durability=True)

    assert async_.beats(semisync)
