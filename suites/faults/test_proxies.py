"""How long does a fault stop the clients behind each proxy, and what does HAProxy's fail-back cost?"""

import dataclasses

import pytest

from fixtures.clusters import GALERA, GROUP
from fixtures.loads import oltp, tpcc
from pytest_dbcluster.events import Kill, Pause

pytestmark = pytest.mark.expected_seconds(300)

THREADS = 8
STAYS = GALERA.with_proxy_options(fail_back=False).named("stays")


@pytest.mark.expected_seconds(980)
@pytest.mark.releases("mariadb:10.11")
def test_connections_that_stay_lose_less_time(measure, db_profile):
    """When a paused writer is back, HAProxy does not cut the connections to the node that took its place."""
    usual, stays = measure.event(tpcc(db_profile, THREADS), Pause("writer", 12), on=[GALERA, STAYS], times=14)

    assert stays.shorter("without_commit", than=usual)


@pytest.mark.releases("mysql:9.7")
@pytest.mark.parametrize("proxy", ["haproxy", "mysql_router"])
def test_readers_leave_a_killed_node_within_2_s(measure, db_profile, proxy):
    """Connections to the node break at once, and new ones lead to another node."""
    on = dataclasses.replace(GROUP, proxy=proxy, name=proxy)
    killed = measure.event(oltp("read_only", db_profile, THREADS, to="reader"), Kill("other"), on=on, times=6)

    assert killed.below("read_stall", 2)
