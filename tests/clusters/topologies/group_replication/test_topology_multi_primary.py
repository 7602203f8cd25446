"""The members of a real group whose members all take writes: conflicts, a lost majority, who bootstraps it."""

from __future__ import annotations

import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.clusters.servers.connection import SQLError
from pytest_dbcluster.rounds import counters
from pytest_dbcluster.testbed import sampler
from tests.support.clusters import as_load, written

ROLLED_BACK = 3101  # "Plugin instructed the server to rollback the current transaction."


@pytest.fixture(scope="module")
def multi2(bring, mysql):
    """Two members that both take writes."""
    made = bring("group_replication", 2, mysql, group_replication_single_primary_mode="OFF")
    yield made
    made.close()


def test_every_member_of_a_multi_primary_group_takes_writes(multi2):
    """Writers and readers are all nodes, each for loads too, and each write is on both."""
    form, nodes = multi2.topology, multi2.nodes

    assert form.writers(nodes) == form.readers(nodes) == nodes
    assert multi2.writer() == multi2.reader()
    for node in nodes:
        table = written(node, f"from_{node.name}")
        as_load(node).query(f"INSERT INTO {table} VALUES (4)")
        assert multi2.settle(60), multi2.backlog()
        multi2.check([table])
        health = form.health(node, nodes)
        assert health.reader.items() <= health.writer.items() <= node.pairs(health.statement).items()
    assert form.void(watched := form.watch(nodes), watched) == ""
    assert watched["primary"] == "node1, node2"


def test_a_conflict_of_two_members_is_one(multi2):
    """Both members certify and count it. The second transaction fails, and is rolled back."""
    first, second = multi2.nodes
    table = written(first, "both_want")
    assert multi2.settle(60), multi2.backlog()
    before = sampler.read_counters(multi2.nodes)
    late = as_load(second)
    late.query(f"LOCK TABLES {table} WRITE")  # what the first one writes is certified there, and cannot be applied
    first.query(f"UPDATE {table} SET id = 4 WHERE id = 1")
    with pytest.raises(SQLError) as caught:
        late.query(f"UPDATE {table} SET id = 5 WHERE id = 1")
    late.query("UNLOCK TABLES")
    assert multi2.settle(60), multi2.backlog()
    found = counters.deltas(before, sampler.read_counters(multi2.nodes), seconds=1.0, commits=1)

    assert caught.value.number == ROLLED_BACK
    assert (found["certified"], found["conflicts"], found["conflicts_per_commit"]) == (2, 1, 1.0)
    assert found["rolled_back"] == 1
    multi2.check([table])


def test_a_majority_that_is_lost_is_given_back(multi2):
    """One of two is no majority: who brings the other one back says that it was dead, and both go on."""
    form, (survivor, killed) = multi2.topology, multi2.nodes
    killed.kill()
    form.rejoin(killed, multi2.nodes)

    wait.until(multi2.problems, "the group", seconds=60, poll=0.2)
    assert any("not able to reach a majority" in line for line in survivor.new_errors())
    table = written(killed, "after_the_kill")
    assert multi2.settle(60), multi2.backlog()
    multi2.check([table])
    # It has a new port, because others try its old one again only after seconds; and everybody is as patient as before.
    addresses = [node.query("SELECT @@global.group_replication_local_address")[0][0] for node in multi2.nodes]
    for node in multi2.nodes:
        assert node.query("SELECT @@global.group_replication_group_seeds") == [(",".join(addresses),)]
        assert node.query("SELECT @@global.group_replication_member_expel_timeout") == [(5,)]


def test_the_most_advanced_member_bootstraps_the_group(multi2):
    """After all servers have ended, the one that is asked first joins the one with more transactions."""
    form, (ahead, behind) = multi2.topology, multi2.nodes
    behind.query("STOP GROUP_REPLICATION")
    table = written(ahead, "ahead")
    behind.kill()
    ahead.kill()
    form.rejoin(behind, multi2.nodes)

    wait.until(multi2.problems, "the group", seconds=60, poll=0.2)
    assert multi2.settle(60), multi2.backlog()
    assert behind.query(f"SELECT COUNT(*) FROM {table}") == [(3,)]
    multi2.check([table])
