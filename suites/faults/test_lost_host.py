"""What does a lost host cost, in seconds and in acknowledged orders? Galera, a group, a promoted replica, and DRBD.

The first four clusters are alike: the nodes are 20 ms apart, and the load has 16 terminals.
"""

import pytest

from fixtures.clusters import ASYNC_3, DRBD_PAIR, FAR_RTT, GALERA, GROUP, SEMISYNC_3, apart, with_sync_binlog
from fixtures.loads import tpcc
from pytest_dbcluster.events import FailOver, Isolate, LoseHost, Promote

pytestmark = pytest.mark.expected_seconds(400)

TERMINALS, MANY = 8, 16
TIMES = 7


@pytest.mark.releases("mariadb:10.11")
def test_galera_loses_no_order_with_a_host(measure, db_profile):
    """The others have certified each acknowledged order. They go on after the suspect timeout of 5 s.

    HAProxy leaves a host that does not answer after 7 s. So the stall is 6 s, and sometimes 10 s.
    """
    lost = measure.event(tpcc(db_profile, MANY), LoseHost("writer"), on=apart(GALERA, FAR_RTT), times=TIMES)

    assert lost.below("stall", 15)
    assert lost.loses_nothing()


@pytest.mark.releases("mysql:9.7")
def test_a_group_loses_no_order_with_a_host(measure, db_profile):
    """A majority has each acknowledged order."""
    lost = measure.event(tpcc(db_profile, MANY), LoseHost("writer"), on=apart(GROUP, FAR_RTT), times=TIMES)

    assert lost.below("stall", 40)
    assert lost.loses_nothing()


@pytest.mark.releases("mariadb:10.11")
def test_semisync_loses_no_order_with_the_host_of_the_primary(measure, db_profile):
    """A replica has each acknowledged order. Asynchronous replication beside it shows what may be lost."""
    event = LoseHost("writer", then=Promote("most_advanced"))
    on = [apart(SEMISYNC_3, FAR_RTT), apart(ASYNC_3, FAR_RTT)]
    semisync, asynchronous = measure.event(tpcc(db_profile, MANY), event, on=on, across_durability=True)

    semisync.against(asynchronous, "stall")
    assert semisync.loses_nothing()
    asynchronous.loses_nothing().show()  # shown, not asserted


@pytest.mark.releases("mariadb:10.11")
def test_an_isolated_writer_loses_no_order(measure, db_profile):
    """It is cut off from its peers for 10 s, and clients still reach it. Without a majority it commits nothing."""
    cut = measure.event(tpcc(db_profile, TERMINALS), Isolate("writer", 10), on=apart(GALERA))

    assert cut.below("stall", 12)
    assert cut.loses_nothing()


@pytest.mark.provisioner("vm")
@pytest.mark.releases("mariadb:10.11")
@pytest.mark.parametrize("sync_binlog", [0, 1])
def test_a_standby_of_drbd_has_what_was_flushed(measure, db_profile, sync_binlog):
    """With sync_binlog=0, the default, recovery rolls back orders that the binlog lacks: shown, not asserted."""
    on = with_sync_binlog(DRBD_PAIR, sync_binlog).named(f"sync_binlog_{sync_binlog}")
    lost = measure.event(tpcc(db_profile, TERMINALS), FailOver(), on=on)
    answer = lost.loses_nothing()

    assert lost.below("stall", 15)
    if sync_binlog:
        assert answer
    answer.show()
