"""Pairs that go wrong: both hosts have written, the standby is out of date or dies, and disks that are too small."""

from __future__ import annotations

import re

import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.cli import main
from pytest_dbcluster.cli.up import leave_running
from pytest_dbcluster.clusters.topologies.drbd.resource import DEVICE
from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.releases import find
from pytest_dbcluster.spec import ClusterSpec
from tests.support.clusters import bring_up

pytestmark = pytest.mark.guests

APART = {"drbd_connected": "OFF"}


@pytest.fixture
def pair(guest):
    """A pair of its own, since these tests leave it broken."""
    return guest("drbd", 2, "mariadb:10.11")


def test_a_standby_that_is_out_of_date_is_not_promoted(pair):
    """It was disconnected, and the server went on: its data lacks acknowledged commits."""
    pair.topology.apply(APART, pair.nodes)
    pair.nodes[0].query("CREATE TABLE mysql.kept (id INT PRIMARY KEY)")

    with pytest.raises(ProvisionError) as caught:
        pair.topology.fail_over(pair.members)

    assert str(caught.value).startswith("DRBD does not let node2 write (StandAlone, Secondary/Unknown, Outdated/")
    assert str(caught.value).endswith("; its data is out of date, so connect it to the other host first")


def test_a_split_brain_is_named_and_left_alone(pair):
    """Somebody has forced the standby: each host has what the other one lacks, and keeps it."""
    second = pair.hosts[1]
    run = pair.topology._resource.run
    pair.topology.apply(APART, pair.nodes)
    pair.nodes[0].query("CREATE TABLE mysql.here (id INT PRIMARY KEY)")
    run(second, "primary", "--force")
    second.mount(DEVICE)
    second.run(["/bin/sh", "-c", f"echo words >{second.directory}/data/there; sync"])

    with pytest.raises(ProvisionError, match=r"^split brain of DRBD, seen on node[12]: both hosts have written since"):
        pair.topology.apply({}, pair.nodes)

    assert pair.nodes[0].query("SHOW TABLES FROM mysql LIKE 'here'")
    assert second.pull(f"{second.directory}/data/there") == b"words\n"


def test_a_standby_that_dies_voids_the_round_and_comes_back(pair):
    """The server goes on without it; the standby gets what it lacks when it is started again."""
    topology, standby = pair.topology, pair.members[1]
    before = topology.watch(pair.nodes)

    standby.host.kill()
    pair.nodes[0].query("CREATE TABLE mysql.kept (id INT PRIMARY KEY)")

    assert "node2 changed from 'Connected, Secondary/Primary" in topology.void(before, topology.watch(pair.nodes))
    assert "node2: DRBD has no resource r0, because the host has restarted" in pair.problems()
    topology.rejoin(standby, pair.members)
    wait.until(pair.problems, "the pair", seconds=300)
    assert pair.settle(60), pair.backlog()


def test_a_server_whose_host_lost_its_power_starts_on_its_disk_again(pair):
    """Nobody has taken over meanwhile."""
    node = pair.nodes[0]
    node.query("CREATE TABLE mysql.kept (id INT PRIMARY KEY)")
    node.sql.close()
    node.host.kill()

    pair.topology.rejoin(node, pair.members)

    wait.until(pair.problems, "the pair", seconds=300)
    assert node.query("SHOW TABLES FROM mysql LIKE 'kept'") == [("kept",)]


def test_a_disk_too_small_is_said(guests):
    """Before a server starts, with what to ask for."""
    spec = ClusterSpec("drbd", nodes=2).with_needs(disk="16M", memory="64M")

    with pytest.raises(ProvisionError, match=r"(?s)^cannot copy .* of data to the disk of node1, .*with disk=$"):
        bring_up(spec, find.find("mariadb:10.11"), guests, options={})


def test_a_pair_that_is_left_running_has_one_server(guests):
    """``dbcluster up`` counts servers and not hosts."""
    told = []
    text = leave_running(ClusterSpec("drbd", nodes=2, release="mariadb:10.11"), None, where="vm", progress=told.append)
    run = re.search(r"\(run (\w+)\)", text)[1]
    try:
        assert any(re.fullmatch(r"starting 1 x mariadb:10\.11 \S+ as drbd", line) for line in told)
        assert f"(run {run}): 1 x mariadb:10.11 " in text
    finally:
        assert main.main(["down", run]) == 0
