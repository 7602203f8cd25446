"""Clients that servers turn away: counted by the servers, or said by a workload that failed."""

from __future__ import annotations

import pytest

from pytest_dbcluster.rounds import turned_away
from pytest_dbcluster.rounds.turned_away import ConnectionLimits
from tests.support import golden

TEN, MANY = ConnectionLimits("node1", 10), ConnectionLimits("node2", 151)
USER = ConnectionLimits("node1", 151, 10)


def readings(*full, aborted=()):
    """A reading of zeros, and one after so many refusals of each node."""
    names = (turned_away.FULL, turned_away.ABORTED)
    aborted = aborted or full
    after = [dict(zip(names, map(float, values), strict=True)) for values in zip(full, aborted, strict=True)]
    return [dict.fromkeys(names, 0.0) for _ in full], after


def test_nobody_was_turned_away():
    """The same counts before and after say nothing, however high they are."""
    before, after = readings(0, 0)

    assert turned_away.reason(before, after, [TEN, MANY], 50) == ""
    assert turned_away.reason(after, after, [TEN, MANY], 50) == ""


def test_the_reason_says_how_many_where_and_what_to_do():
    """Part of the clients is enough, on one of the nodes."""
    one = turned_away.reason(*readings(53, 0), [TEN, MANY], 50)
    two = turned_away.reason(*readings(1, 2), [TEN, MANY], 0)

    assert [fact for fact in ("53 by node1", "max_connections=10", "max_connections=60") if fact not in one] == []
    assert [fact for fact in ("1 by node1", "2 by node2", "larger max_connections") if fact not in two] == []


def test_golden_reasons():
    """They are those of the golden file."""
    golden.compare(
        "turned_away",
        {
            "counted by a server": turned_away.reason(*readings(53, 0), [TEN, MANY], 50),
            "counted by two servers": turned_away.reason(*readings(1, 2), [TEN, MANY], 0),
            "a limit for users": turned_away.reason(*readings(0, aborted=[7]), [USER], 50),
            "said by the workload": turned_away.reason(*readings(0), [TEN], 50, "1040 Too many connections"),
        },
    )


def test_a_failed_connect_counts_where_users_have_a_limit():
    """The server counts such refusals among other failed connects, which alone say nothing."""
    before, after = readings(0, aborted=[7])

    assert turned_away.reason(before, after, [TEN], 50) == ""
    assert turned_away.reason(before, after, [USER], 50).startswith(
        "7 connections turned away (7 by node1: max_connections=151, max_user_connections=10); the workload has 50"
    )


@pytest.mark.parametrize(
    "said",
    [
        "mysqlslap: Error when connecting to server: 1040 Too many connections",
        "connect: 1226 User 'load' has exceeded the 'max_user_connections' resource (current value: 10)",
    ],
)
def test_a_workload_that_failed_may_say_it(said):
    """Its own message stands in the reason where the servers counted nothing."""
    before, after = readings(0)

    text = turned_away.reason(before, after, [TEN], 50, f"mysqlslap ended with 1:\n{said}\nmore")
    assert text.startswith(f"clients were turned away ({said}); the workload has 50 clients: set max_connections=60")
    assert turned_away.reason(before, after, [TEN], 50, "Lost connection to server") == ""


def test_a_server_without_the_status_turns_nobody_away():
    """An old release may lack one of them."""
    assert turned_away.counts([{}], [{}]) == [0]
    assert turned_away.reason([{}], [{}], [USER], 50) == ""
