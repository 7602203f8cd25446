"""Does the wait point of semi-sync, before or after the engine's commit, change throughput?"""

import pytest

from fixtures.clusters import SEMISYNC, with_wait_point
from fixtures.loads import WRITING, cluster_slap

pytestmark = pytest.mark.releases("mariadb:10.11", "mariadb:11.8", "mysql:9.7")


@pytest.mark.parametrize("mode", WRITING)
def test_the_wait_point_beside(measure, db_release, mode):
    """Both wait points need the same acknowledgement. No figures are published: shown, not claimed."""
    after_sync = with_wait_point(SEMISYNC, db_release, "AFTER_SYNC")
    after_commit = with_wait_point(SEMISYNC, db_release, "AFTER_COMMIT")
    commit, sync = measure(cluster_slap(mode), on=[after_commit, after_sync])

    sync.against(commit)
