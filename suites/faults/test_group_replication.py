"""How long does a killed primary of Group Replication stop the clients, and is an order lost?"""

import dataclasses

import pytest

from fixtures.clusters import GROUP
from fixtures.loads import tpcc
from pytest_dbcluster.events import Kill

pytestmark = [pytest.mark.releases("mysql:9.7"), pytest.mark.expected_seconds(600)]

TERMINALS = 8
BEHIND_HAPROXY = dataclasses.replace(GROUP, proxy="haproxy")
EXPELS_AT_ONCE = BEHIND_HAPROXY.with_options(group_replication_member_expel_timeout=0).named("expel_0_s")


def test_a_killed_primary_stalls_writes_for_less_than_30_s(measure, db_profile):
    """The group suspects the member after 5 s, waits 5 s (member_expel_timeout), and checks for dead members slowly."""
    killed = measure.event(tpcc(db_profile, TERMINALS), Kill("writer"), on=BEHIND_HAPROXY, times=6)

    assert killed.below("stall", 30)
    assert killed.loses_nothing()


def test_expelling_at_once_saves_5_s(measure, db_profile):
    """member_expel_timeout=0 spares the second wait."""
    usual, quick = measure.event(tpcc(db_profile, TERMINALS), Kill("writer"), on=[BEHIND_HAPROXY, EXPELS_AT_ONCE])

    assert quick.shorter("stall", than=usual, seconds=5)
