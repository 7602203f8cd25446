"""The other vendor's server on a pair: it comes up, says what a commit is worth, and is taken over."""

from __future__ import annotations

import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.testbed.evidence.durability import Durability
from tests.support.guests import servers_in

pytestmark = pytest.mark.guests


def test_mysql_fails_over_with_all_that_it_has_confirmed(guest):
    """Its binlog is on by default, lies on the replicated disk too, and is flushed at each commit."""
    pair = guest("drbd", 2, "mysql:9.7")
    old, new = pair.members
    variables = {**old.variables(), **pair.topology.facts()}
    assert str(Durability.of(pair.topology, variables, 2)) == (
        f"flush=1, sync_binlog=1, on the disks of both hosts, DRBD {variables['drbd_version']} protocol C"
    )
    old.query("CREATE TABLE mysql.kept (id INT PRIMARY KEY)")
    for number in range(20):
        old.query(f"INSERT INTO mysql.kept VALUES ({number})")
    (log,) = old.query("SHOW BINARY LOG STATUS")

    pair.topology.fail_over(pair.members)

    assert pair.nodes == [new]
    assert [number for (number,) in new.query("SELECT id FROM mysql.kept ORDER BY id")] == list(range(20))
    assert log[0] in {name for name, *_ in new.query("SHOW BINARY LOGS")}
    pair.topology.rejoin(old, pair.members)
    wait.until(pair.problems, "the pair with the old host", seconds=300)
    assert [servers_in(host) for host in pair.hosts] == [0, 1]
    pair.topology.fail_over(pair.members)

    assert pair.nodes == [old]
    assert old.query("SELECT COUNT(*) FROM mysql.kept") == [(20,)]
