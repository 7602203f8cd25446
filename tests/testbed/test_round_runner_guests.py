"""A round in guests of which one is lost."""

from __future__ import annotations

import threading

import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.errors import NodeDied, ProvisionError
from pytest_dbcluster.releases import find
from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.testbed import round_runner
from pytest_dbcluster.workloads.mysqlslap import MySQLSlap
from pytest_dbcluster.workloads.workload import Setting

LOAD = MySQLSlap("write", concurrency=4, queries=200_000, rows=100)  # for minutes
PANIC = "echo 1 >/proc/sys/kernel/sysrq; echo c >/proc/sysrq-trigger; sleep 60"


@pytest.mark.guests
def test_a_guest_that_panics_in_a_round_is_named(guest, guests):
    """A guest that is gone closes no connection. The load is ended, and the console's last words are in the message."""
    cluster = guest("standalone", 1, "mariadb:10.11")
    (client,) = guests.acquire(ClusterSpec("standalone", name="client"))
    setting = Setting(cluster, client, find.find("mariadb:10.11"), "paper", print)
    (node,), (host,) = cluster.nodes, cluster.hosts

    def crash():
        busy = lambda: [] if int(node.status("com_insert")["com_insert"]) > 500 else ["no"]  # noqa: E731
        wait.until(busy, "the load", seconds=120)
        with pytest.raises(ProvisionError):
            host.run(["sh", "-c", PANIC])

    crashing = threading.Thread(target=crash)
    crashing.start()
    with pytest.raises(NodeDied) as caught:
        round_runner.run_round(LOAD, setting, variant="one", block=0, position=0)
    crashing.join()

    assert "node node1 was ended by SIGKILL: guest node1 has ended; its last output:" in str(caught.value)
    assert "Kernel panic - not syncing: sysrq triggered crash" in str(caught.value)
    assert cluster.unusable.startswith("guest node1 has ended")
    guests.give_back([client])
