"""Two load hosts that are machines elsewhere: what both did is what the servers have, and a lost one is named."""

from __future__ import annotations

import threading

import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.clusters.servers.connection import Connection
from pytest_dbcluster.errors import DBClusterError
from pytest_dbcluster.hosts.provisioners.ssh.provisioner import SshProvisioner
from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.workloads.sysbench import SysBench
from pytest_dbcluster.workloads.tpcc import orders
from pytest_dbcluster.workloads.tpcc.workload import SCHEMA, TPCC
from pytest_dbcluster.workloads.workload import Setting
from tests.support import stand_ins
from tests.support.clusters import bring_up
from tests.support.stand_ins import StandIns

pytestmark = pytest.mark.remote

ROWS = 1000


@pytest.fixture(scope="module")
def hosts():
    """Two machines for servers and two for the load."""
    if reason := stand_ins.missing():
        pytest.skip(reason)
    with StandIns(count=2, load=2) as made:
        yield made


@pytest.fixture(scope="module")
def setting(hosts, mariadb):
    """A cluster of two nodes, and a load generator of two hosts."""
    provisioner = SshProvisioner(machines=["host1", "host2"], load_machines=[*hosts.loads], config=hosts.config)
    try:
        cluster = bring_up(ClusterSpec("galera", nodes=2), mariadb, provisioner, options={})
        clients = provisioner.clients(ClusterSpec("standalone", name="client"))
        assert [host.machine for host in clients] == [*hosts.loads]
        yield Setting(cluster, clients[0], mariadb, "quick", print, others=tuple(clients[1:]))
        cluster.close()
    finally:
        provisioner.close()


def test_rows_of_sysbench_are_those_that_both_hosts_inserted(setting):
    """On each node, and each host inserted some of them; the machines are named."""
    load = SysBench("oltp_insert", size=ROWS, table_count=1, threads=5, seconds=1.0, to="all")
    load.prepare(setting)
    outcome = load.run(setting)
    assert setting.cluster.settle(60)

    assert [one.machine for one in outcome.load_hosts] == [host.machine for host in setting.clients]
    assert min(one.client_seconds for one in outcome.load_hosts) > 0
    assert outcome.void == ""
    assert 1.0 <= outcome.seconds < 3
    assert outcome.commits > 0
    for node in setting.cluster.nodes:
        assert node.query(f"SELECT COUNT(*) FROM {load.tables[0]}") == [(ROWS + outcome.commits,)]


def test_orders_of_both_hosts_are_acknowledged_once(setting):
    """Each order is on every node, none is there that nobody sent, and all conditions hold."""
    load = TPCC(threads=5, seconds=1.5)
    load.prepare(setting)
    count = f"SELECT COUNT(*) FROM {SCHEMA}.orders"
    before = setting.cluster.nodes[0].query(count)[0][0]
    outcome, reports = load.observe(setting)
    assert setting.cluster.settle(60)
    found, entry = orders.from_reports(reports, "committed"), outcome.ledger.entries["new_order"]

    assert len(outcome.load_hosts) == 2
    assert [report["id"] for report in reports] == [0, 1, 2, 3, 4]
    assert len(found) == entry.committed > 0
    for node in setting.cluster.nodes:
        assert node.query(count)[0][0] == before + entry.committed
        assert found.missing_on(node) == []
    assert load.violations(setting.cluster) == []


def test_a_load_host_that_is_lost_ends_the_round_with_its_name(hosts, setting):
    """In mid-run: the other one is ended too, long before its time."""
    load = TPCC(threads=4, seconds=60.0)
    load.prepare(setting)
    watcher = Connection("watcher", setting.cluster.nodes[0].endpoint)

    def made():
        return watcher.query(f"SELECT SUM(d_next_o_id) FROM {SCHEMA}.district")[0][0]

    before = made()

    def kill():
        wait.until(lambda: [] if made() > before + 20 else ["too few orders"], "orders", seconds=60)
        watcher.close()
        hosts[hosts.loads[1]].kill()

    killing = threading.Thread(target=kill)
    killing.start()
    with pytest.raises(DBClusterError, match=hosts.loads[1]):
        load.run(setting)
    killing.join()
