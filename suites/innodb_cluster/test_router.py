"""Published: reads pay for the router, key about 24 % and read about 13 %."""

import dataclasses

import pytest

from fixtures.clusters import GROUP
from fixtures.loads import READING, cluster_slap

# Published are a group behind its router and a server that replicates asynchronously without one.
COLUMNS = {"direct": "async", "routed": "single_primary"}
pytestmark = [pytest.mark.published("innodb-cluster-2022", columns=COLUMNS), pytest.mark.releases("mysql:9.7")]
DIRECT = dataclasses.replace(GROUP, proxy=None, name="direct")
ROUTED = GROUP.named("routed")


@pytest.mark.parametrize("mode", READING)
def test_reads_pay_for_the_router(measure, mode):
    """Every statement and every row passes through one more process; both ways lead to the primary."""
    load = dataclasses.replace(cluster_slap(mode), to="writer")
    direct, routed = measure(load, on=[DIRECT, ROUTED])

    assert direct.beats(routed)
