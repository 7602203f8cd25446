"""Does a replica with parallel appliers keep up better?"""

import pytest

from fixtures.clusters import ASYNC, with_appliers
from fixtures.loads import cluster_slap

pytestmark = pytest.mark.releases("mariadb:10.11", "mariadb:11.8", "mysql:9.7")


@pytest.mark.parametrize("mode", ["write", "update"])
def test_4_appliers_drain_faster_than_1(measure, db_profile, db_release, mode):
    """Four applier threads drain the backlog of a round faster than one."""
    if db_profile == "paper":
        pytest.skip("with --db-profile paper the backlog also holds the repetitions and their table population")
    one, four = measure(
        cluster_slap(mode), on=[with_appliers(ASYNC, db_release, 1), with_appliers(ASYNC, db_release, 4)]
    )

    assert four.lower("drain_seconds", than=one)
