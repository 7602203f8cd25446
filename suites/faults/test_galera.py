"""How long does a fault of one Galera node stop the clients, and does the cluster lose an acknowledged order?"""

import pytest

from fixtures.clusters import GALERA
from fixtures.loads import tpcc
from pytest_dbcluster.events import Kill, Nothing, Pause

pytestmark = [pytest.mark.releases("mariadb:10.11"), pytest.mark.expected_seconds(300)]

TERMINALS = 8
# A node refuses to start unless its keepalive is shorter than a third of the time-out.
SHORT_TIMERS = "evs.keepalive_period=PT0.5S;evs.suspect_timeout=PT2S"
SUSPECTS_AFTER_2_S = GALERA.with_options(wsrep_provider_options=SHORT_TIMERS).named("suspect_2_s")


@pytest.mark.parametrize("node", ["writer", "other"])
def test_a_killed_node_stalls_writes_for_less_than_8_s(measure, db_profile, node):
    """The others wait 5 s (evs.suspect_timeout) for a node that ended, whichever it is. Then they go on without it."""
    killed = measure.event(tpcc(db_profile, TERMINALS), Kill(node), on=GALERA)

    assert killed.below("stall", 8)
    assert killed.loses_nothing()


def test_a_shorter_suspect_timeout_saves_2_s(measure, db_profile):
    """The timer makes most of the stall, so 3 s less of it save at least 2 s."""
    usual, quick = measure.event(tpcc(db_profile, TERMINALS), Kill("other"), on=[GALERA, SUSPECTS_AFTER_2_S])

    assert quick.shorter("stall", than=usual, seconds=2)


def test_a_paused_node_stops_all_for_longer_than_nothing(measure, db_profile):
    """A process that is stopped for 3 s keeps its connections, and the others wait for its answers."""
    events = {"none": Nothing(), "pause": Pause("other", 3)}
    none, pause = measure.event(tpcc(db_profile, TERMINALS), events, on=GALERA)

    assert none.shorter("stall", than=pause, seconds=1)


def test_a_node_that_is_paused_for_12_s_is_left_behind(measure, db_profile):
    """After 5 s the others suspect it, and clients wait less than 9 s for the event of 12 s."""
    paused = measure.event(tpcc(db_profile, TERMINALS), Pause("other", 12), on=GALERA)

    assert paused.below("stall", 9)
    assert paused.loses_nothing()
