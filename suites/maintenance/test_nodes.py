"""What do a backup, a joining node, a large transaction, a rolling restart and a rolling upgrade cost the clients?"""

import pytest

from fixtures.clusters import GALERA
from fixtures.loads import tpcc
from pytest_dbcluster.events import Backup, Join, LargeTransaction, Restart, Rolling, Upgrade

pytestmark = [pytest.mark.releases("mariadb:10.11"), pytest.mark.expected_seconds(400)]

TERMINALS = 8


@pytest.mark.parametrize(
    ("event", "seconds"),
    [
        pytest.param(Backup("mariabackup", "other"), 2, id="backup"),
        pytest.param(Join("IST"), 3, id="ist"),
        pytest.param(Join("SST"), 5, id="sst"),
        pytest.param(LargeTransaction(30_000), 8, id="large_transaction"),
    ],
)
def test_galera_waits_only_for_seconds(measure, db_profile, event, seconds):
    """A backup or a copy reads one node that takes no writes; all nodes certify a large transaction as a whole."""
    done = measure.event(tpcc(db_profile, TERMINALS), event, on=GALERA)

    assert done.below("stall", seconds)
    assert done.loses_nothing()


@pytest.mark.parametrize("drain", [False, True], ids=["at_once", "drained"])
def test_a_rolling_restart_stalls_for_less_than_5_s(measure, db_profile, drain):
    """Each node leaves in order, so the others need not suspect it."""
    done = measure.event(tpcc(db_profile, TERMINALS), Rolling(Restart(), drain=drain), on=GALERA, times=6)

    assert done.below("stall", 5)
    assert done.loses_nothing()


@pytest.mark.releases("mariadb:10.5", "mariadb:10.11")
def test_a_rolling_upgrade_stalls_for_less_than_10_s(measure, db_profile, db_release):
    """From 10.5 to 10.11, and from 10.11 to 11.8, node after node."""
    newer = {"10.5": "mariadb:10.11", "10.11": "mariadb:11.8"}[db_release.version]
    done = measure.event(tpcc(db_profile, TERMINALS), Rolling(Upgrade(newer)), on=GALERA, times=6)

    assert done.below("stall", 10)
    assert done.loses_nothing()
