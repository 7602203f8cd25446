"""Messages of topologies, as users read them: wrong clusters, contradicting options, void rounds, failures."""

from __future__ import annotations

import pytest

from pytest_dbcluster.clusters.servers.node import Node
from pytest_dbcluster.clusters.topologies.async_replication import AsyncReplication, status
from pytest_dbcluster.clusters.topologies.drbd.resource import Resource
from pytest_dbcluster.clusters.topologies.drbd.topology import Drbd
from pytest_dbcluster.clusters.topologies.group_replication import members
from pytest_dbcluster.clusters.topologies.group_replication.topology import GroupReplication
from pytest_dbcluster.clusters.topologies.semisync import SemiSync
from pytest_dbcluster.clusters.topologies.standalone import Standalone
from pytest_dbcluster.errors import CommandFailed
from pytest_dbcluster.hosts.host import BlockDevice
from pytest_dbcluster.hosts.provisioners.fake import FakeHost
from tests.support import golden

ALONE = " 0: cs:StandAlone ro:{}/Unknown ds:{}/DUnknown   r-----\n pe:0 ua:0 oos:16\n"
SPLIT = ALONE.format("Primary", "UpToDate") + "[    9.5] block drbd0: Split-Brain detected but unresolved, dropping!\n"
GROUP = {"primary": "node1", "view_id": "7:3", "node1": "ONLINE", "node2": "ONLINE"}
WAITING = {
    "rpl_semi_sync_source_enabled": "ON",
    "rpl_semi_sync_source_status": "ON",
    "rpl_semi_sync_source_clients": "2",
    "rpl_semi_sync_source_no_tx": "0",
}


class Disk(FakeHost, BlockDevice):
    """A host with a disk."""

    device = "/dev/vdb"


class Replica:
    """A replica with this status, or a member with these errors of its applier."""

    log = "/fake/error.log"

    def __init__(self, name, dialect, status):
        self.name, self.dialect, self._status = name, dialect, status

    def records(self, statement):
        """The status."""
        return [self._status]

    def query(self, statement):
        """The errors of parallel appliers."""
        return [("Duplicate entry '1' for key 't.PRIMARY'",)]


@pytest.fixture
def nodes(mysql):
    """Two nodes on hosts that do nothing."""
    return [Node(f"node{n}", FakeHost(f"node{n}", directory=f"/fake/{n}"), mysql, 3306, "secret") for n in (1, 2)]


def contradiction(form, nodes, **options):
    """The error about these options of all nodes."""
    for node in nodes:
        node.configure({**form.options(node, nodes), **options})
    return golden.message_of(form.form, nodes)


def of_a_device():
    """Messages about DRBD's device."""
    hosts = [Disk(f"node{n}", answers={"*/proc/drbd*": SPLIT}) for n in (1, 2)]
    device = Resource(hosts)
    device._configuration = {host.name: f"/{host.name}/drbd.conf" for host in hosts}
    split = golden.message_of(device.problems, connected=True)
    hosts[0].answers = {
        "*/proc/drbd*": ALONE.format("Secondary", "Outdated"),
        "drbdadm*primary*": CommandFailed(["drbdadm"], 17, stderr="0: State change failed\n"),
    }
    return {
        "a split brain": split,
        "an outdated standby": golden.message_of(device.promote, hosts[0]),
        "another version of DRBD": golden.message_of(Resource([Disk("node1", answers={"*": "version: 9.2.8\n"})]).make),
        "a host without a disk": golden.message_of(
            Resource([FakeHost("node1", answers={"*": "version: 8.4.11"})]).make
        ),
    }


def test_messages_of_topologies(nodes):
    """They have the node, the option or state, what is wrong and what to do."""
    replica = Replica(
        "node2",
        nodes[0].dialect,
        {"replica_sql_running": "No", "last_sql_errno": "1062", "last_sql_error": "Worker 1 failed"},
    )
    seen = {
        "one node with replicas": AsyncReplication().wrong_size(1),
        "a pair of three": Drbd().wrong_size(3),
        "two standalone nodes": Standalone().wrong_size(2),
        "a read-only primary": contradiction(AsyncReplication(), nodes, read_only="ON"),
        "a group without GTID": contradiction(GroupReplication(), nodes, gtid_mode="OFF"),
        "too few replicas": contradiction(SemiSync(), nodes, rpl_semi_sync_source_wait_for_replica_count="2"),
        "a replica has stopped": golden.message_of(status, replica, nodes[0]),
        "a member has stopped": golden.message_of(members.check_applier, replica, "ERROR"),
        "a group without a node": golden.message_of(members.common_view, nodes),
        **of_a_device(),
        "void: another primary": GroupReplication().void(GROUP, {**GROUP, "primary": "node2"}),
        "void: a member left": GroupReplication().void(GROUP, {name: GROUP[name] for name in GROUP if name != "node2"}),
        "void: a member rejoined": GroupReplication().void(GROUP, {**GROUP, "view_id": "7:5"}),
        "void: no group": GroupReplication().void(GROUP, {"primary": "", "view_id": "node1 does not run"}),
        "void: semi-sync fell back": SemiSync().void(
            WAITING,
            {**WAITING, "rpl_semi_sync_source_status": "OFF", "rpl_semi_sync_source_no_tx": "3"},
        ),
        "void: a replica left": SemiSync().void(WAITING, {**WAITING, "rpl_semi_sync_source_clients": "1"}),
        "void: DRBD": Drbd().void({"DRBD on node1": "Connected"}, {"DRBD on node1": "StandAlone"}),
    }

    golden.compare("topologies", seen)
