"""How much TPC-C throughput do stronger acknowledgement guarantees cost?"""

import pytest

from fixtures.clusters import GROUP, SEMISYNC, without_waiting
from fixtures.loads import tpcc

pytestmark = [pytest.mark.releases("mysql:9.7"), pytest.mark.expected_seconds(150)]


def test_a_group_that_waits_for_all_to_apply_is_slower(measure, db_profile):
    """With AFTER a commit waits until every member has applied it; with EVENTUAL until a majority has received it."""
    after, eventual = (
        GROUP.with_options(group_replication_consistency=level).named(level.lower()) for level in ("AFTER", "EVENTUAL")
    )
    after_, eventual_ = measure(tpcc(db_profile), on=[after, eventual])

    assert eventual_.beats(after_)


def test_waiting_for_a_replica_costs_throughput(measure, db_profile, db_release):
    """A semi-synchronous commit waits for one replica; an asynchronous commit waits for none."""
    # The acknowledgement guarantees differ on purpose: the claim is about their cost.
    clusters = [SEMISYNC, without_waiting(SEMISYNC, db_release)]
    semisync, async_ = measure(tpcc(db_profile), on=clusters, across_durability=True)

    assert async_.lower("semisync_wait_us_per_commit", than=semisync)
    assert async_.beats(semisync)
