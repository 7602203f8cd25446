"""Published: MySQL Router slows reads down, key by about 24 % and read by about 13 %."""

import dataclasses

import pytest

from fixtures.clusters import GROUP
from fixtures.loads import READING, cluster_slap

# The published comparison: a group behind MySQL Router, and asynchronous replication without a router.
COLUMNS = {"direct": "async", "routed": "single_primary"}
pytestmark = [pytest.mark.published("innodb-cluster-2022", columns=COLUMNS), pytest.mark.releases("mysql:9.7")]
DIRECT = dataclasses.replace(GROUP, proxy=None, name="direct")
ROUTED = GROUP.named("routed")


@pytest.mark.parametrize("mode", READING)
def test_direct_reads_beat_the_router(measure, mode):
    """The router adds one process to the path of every statement and row; both variants read from the primary."""
    workload = dataclasses.replace(cluster_slap(mode), to="writer")
    direct, routed = measure(workload, on=[DIRECT, ROUTED])

    assert direct.beats(routed)
