"""How long does a lost primary of Group Replication stop the clients, and is an order lost?"""

import dataclasses

import pytest

from fixtures.clusters import GROUP, apart
from fixtures.loads import tpcc
from pytest_dbcluster.events import Isolate, Kill

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


@pytest.mark.parametrize("seconds", [0, 5])
def test_an_isolated_primary_loses_no_order(measure, db_profile, seconds):
    """Without a majority it commits nothing, whether it waits for the others or leaves (unreachable_majority_timeout).

    It is cut off from its peers for 30 s. HAProxy and clients still reach it.
    """
    leaves = {"group_replication_unreachable_majority_timeout": seconds}
    on = apart(GROUP).with_options(leaves).named(f"leaves_after_{seconds}_s" if seconds else "waits")
    cut = measure.event(tpcc(db_profile, TERMINALS), Isolate("writer", 30), on=on, times=6)

    assert cut.below("stall", 40)
    assert cut.loses_nothing()
