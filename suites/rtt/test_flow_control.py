"""What does flow control do where nodes are 20 ms apart?"""

import pytest

from fixtures.clusters import GALERA_DIRECT, MULTI_PRIMARY_DIRECT
from fixtures.loads import tpcc

pytestmark = pytest.mark.expected_seconds(150)

FAR = GALERA_DIRECT.with_needs(rtt=0.02).named("far")
FAR_1000 = FAR.with_options(wsrep_provider_options="gcs.fc_limit=1000;gcs.fc_factor=0.9").named("far_limit_1000")
GROUP_FAR = MULTI_PRIMARY_DIRECT.with_needs(rtt=0.02).named("group_far")
UNCONTROLLED = GROUP_FAR.with_options(group_replication_flow_control_mode="DISABLED").named("group_far_uncontrolled")


@pytest.mark.releases("mariadb:10.11")
def test_a_longer_queue_is_no_slower_over_distance(measure, db_profile):
    """A pause lasts at least until the word that ends it has arrived; a longer queue pauses less often."""
    default, longer = measure(tpcc(db_profile, to="all"), on=[FAR, FAR_1000], instances=2)

    assert longer.no_slower_than(default, by=0.1)


@pytest.mark.releases("mysql:9.7")
def test_a_group_without_flow_control_is_no_slower_over_distance(measure, db_profile):
    """Flow control of Group Replication acts on queues of 25000, which distance alone does not fill."""
    default, uncontrolled = measure(tpcc(db_profile, to="all"), on=[GROUP_FAR, UNCONTROLLED])

    assert uncontrolled.no_slower_than(default, by=0.1)
