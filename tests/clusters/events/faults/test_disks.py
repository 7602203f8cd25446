"""Faults of disks and of the power of hosts."""

from __future__ import annotations

import concurrent.futures

import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.events import FillDisk, LoseHost, PowerCut, SlowDisk
from pytest_dbcluster.spec import ClusterSpec
from tests.support.clusters import bring_up

SLOW = SlowDisk("writer", iops=50, seconds=1)


def test_a_limit_on_writes_is_lower_for_some_seconds(mariadb, provisioner):
    """The kernel shows it while it is in force, and the usual one afterwards."""
    if "iops" not in provisioner.offers:
        pytest.skip(provisioner.missing["iops"])
    limited = bring_up(ClusterSpec("standalone").with_needs(iops=20000), mariadb, provisioner, options={})
    host = limited.hosts[0]
    try:
        assert host.write_limit() == 20000
        with concurrent.futures.ThreadPoolExecutor(1) as threads:
            event = threads.submit(SLOW.act, limited)
            wait.until(lambda: [] if host.write_limit() == 50 else ["it is not slow"], "a slow disk", seconds=30)
            happened = event.result()
        assert (happened.void, happened.node) == ("", "node1")
        assert happened.marks["slow"] + 1 <= happened.marks["usual"]
        assert host.write_limit() == 20000
        assert SLOW.restore(limited, happened) is None
    finally:
        limited.close()
        provisioner.give_back(limited.hosts)


def test_a_host_without_a_limit_makes_a_slow_disk_void(standalone):
    """A process without a control group shares the limits of this machine, which stay as they are."""
    assert standalone.hosts[0].write_limit() is None
    assert SLOW.act(standalone).void == "the host of node1 had no limit before the event"
    with pytest.raises(ProvisionError, match="node1 has no limit on writes"):
        standalone.hosts[0].limit_writes(50)


def test_a_lost_container_comes_back(contain):
    """Every program in it ends, and nothing reaches it until it is connected again."""
    cluster = contain("standalone", 1, "mariadb:10.11")
    happened = LoseHost().act(cluster)
    void = LoseHost().act(cluster).void
    returned = LoseHost().restore(cluster, happened)

    assert (happened.void, happened.node) == ("", "node1")
    assert "node1 did not answer before the event" in void
    assert returned.seconds > 0
    assert cluster.nodes[0].query("SELECT 1") == [(1,)]
    cluster.close()


@pytest.fixture(scope="module")
def guest1(guest):
    """A server in a guest, whose log goes through the page cache of its guest."""
    return guest("standalone", 1, "mariadb:10.11", innodb_flush_log_at_trx_commit="2")


@pytest.mark.guests
def test_a_power_cut_boots_another_kernel(guest1):
    """The server starts again on what its disk has."""
    happened = PowerCut().act(guest1)

    assert (happened.void, happened.node) == ("", "")
    assert 0 < happened.marks["booted"] < happened.marks["whole"]
    assert happened.returned.seconds > 0
    assert guest1.nodes[0].query("SELECT 1") == [(1,)]


@pytest.mark.guests
@pytest.mark.parametrize("event", [PowerCut(), LoseHost()], ids=str)
def test_files_from_before_the_load_outlive_a_power_cut(guest1, event):
    """A full copy of a node has files that nobody flushes; a kernel writes them within half a minute."""
    host, path = guest1.hosts[0], f"{guest1.nodes[0].data}/copied"
    host.push(b"content", path)
    event.prepare(guest1)
    happened = event.act(guest1)
    event.restore(guest1, happened)

    assert happened.void == ""
    assert host.pull(path) == b"content"


@pytest.mark.guests
def test_a_full_disk_has_room_again(guest1):
    """All 64 GiB are taken for a second, and the server goes on or starts again."""
    event = FillDisk("writer", seconds=1)
    happened = event.act(guest1)
    event.restore(guest1, happened)

    assert (happened.void, happened.node) == ("", "node1")
    assert happened.marks["full"] + 1 <= happened.marks["emptied"]
    assert guest1.problems() == []
    guest1.nodes[0].query("CREATE TABLE mysql.room (id INT) ENGINE=InnoDB")
