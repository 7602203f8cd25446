"""What does each setting of durability gain in speed, and what does it lose when the power fails?

The price list: innodb_flush_log_at_trx_commit of 0, 1 and 2, and sync_binlog of 0 and 1. Virtual machines lose their
power, so that the kernel loses what it had not flushed. Published advice says that a cluster needs no flush at commit,
because its other nodes have each order.
"""

import pytest

from fixtures.clusters import DURABLE_GALERA, ONE_DURABLE_SERVER, with_flush, with_sync_binlog
from fixtures.loads import tpcc
from pytest_dbcluster.events import PowerCut

pytestmark = [
    pytest.mark.provisioner("vm"),
    pytest.mark.releases("mariadb:10.11"),
    pytest.mark.expected_seconds(900),
]

TERMINALS = 8
TIMES = 6


@pytest.mark.parametrize("flush", [0, 2])
@pytest.mark.parametrize("spec", [ONE_DURABLE_SERVER, DURABLE_GALERA], ids=["server", "cluster"])
def test_a_lazy_flush_is_faster(measure, db_profile, spec, flush):
    """No commit waits for the disk."""
    on = [with_flush(spec, number) for number in (flush, 1)]
    lazy, safe = measure(tpcc(db_profile, TERMINALS), on=on, across_durability=True)

    assert lazy.beats(safe)


def test_a_binlog_without_a_flush_is_faster(measure, db_profile):
    """One flush less in each group of commits."""
    on = [with_sync_binlog(ONE_DURABLE_SERVER, number).named(f"sync_binlog_{number}") for number in (0, 1)]
    lazy, safe = measure(tpcc(db_profile, TERMINALS), on=on, across_durability=True)

    assert lazy.beats(safe)


@pytest.fixture
def losses(measure, db_profile):
    """Cuts the power of a cluster TIMES times, and returns the claim that nothing is lost."""

    def cut(event, spec):
        done = measure.event(tpcc(db_profile, TERMINALS), event, on=spec, times=TIMES)
        done.below("stall", 120).show()  # it draws all repetitions; the other claim would end with the first loss
        return done.loses_nothing()

    return cut


@pytest.mark.parametrize("flush", [0, 1, 2])
def test_what_one_server_loses(losses, flush):
    """With a flush at each commit nothing is lost. The other two are shown, not asserted."""
    answer = losses(PowerCut(), with_flush(ONE_DURABLE_SERVER, flush))

    if flush == 1:
        assert answer
    answer.show()


def test_what_an_unflushed_binlog_loses(losses):
    """Recovery rolls back what the binlog lacks, so a flush of InnoDB's log alone may not do."""
    losses(PowerCut(), with_sync_binlog(with_flush(ONE_DURABLE_SERVER, 1), 0).named("sync_binlog_0")).show()


@pytest.mark.parametrize("flush", [0, 2])
def test_a_cluster_without_flushes_keeps_orders_when_one_host_fails(losses, flush):
    """The other nodes have each acknowledged order."""
    assert losses(PowerCut("writer"), with_flush(DURABLE_GALERA, flush))


@pytest.mark.parametrize("flush", [0, 1, 2])
def test_what_a_cluster_loses_when_all_hosts_fail(losses, flush):
    """The advice holds for one host. With a flush at each commit nothing is lost; the other two are shown."""
    answer = losses(PowerCut("all"), with_flush(DURABLE_GALERA, flush))

    if flush == 1:
        assert answer
    answer.show()
