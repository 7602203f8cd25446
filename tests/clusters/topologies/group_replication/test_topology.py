"""What Group Replication asks of servers, which rounds count in it, and one member alone."""

from __future__ import annotations

import dataclasses
import socket
import uuid
from typing import ClassVar

import pytest

from pytest_dbcluster.clusters.servers import options
from pytest_dbcluster.clusters.servers.node import Node
from pytest_dbcluster.clusters.servers.variables import is_identity
from pytest_dbcluster.clusters.startup import ready_template
from pytest_dbcluster.clusters.topologies.group_replication.topology import PLUGIN, GroupReplication
from pytest_dbcluster.errors import ConfigError, ProvisionError, Unsupported
from pytest_dbcluster.hosts.provisioners.fake import FakeHost
from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.testbed.resolution import check_release
from tests.support.facts import missing

MULTI = {"group_replication_single_primary_mode": "OFF"}
SEEN = {"primary": "node1", "view_id": "7:3", "node1": "ONLINE", "node2": "ONLINE", "node3": "ONLINE"}


@pytest.fixture
def nodes(mysql):
    """Three nodes on hosts that do nothing."""
    made = []
    for n in (1, 2, 3):
        host = FakeHost(f"node{n}", directory=f"/fake/node{n}")
        host.next_port += 10 * n
        made.append(Node(f"node{n}", host, mysql, 3305 + n, "secret"))
    return made


def test_a_vendor_without_it_is_named(mariadb):
    """MariaDB has no such thing; the reason says so, and where the release is from."""
    reason = GroupReplication().lacks(mariadb)
    assert missing(reason, f"mariadb:10.11 ({mariadb.source}): ", "mariadb", "no Group Replication") == []


def test_a_release_without_the_plugin_cannot_do_it(mysql, tmp_path):
    """The error names the file that is missing and where it should be."""
    bare = dataclasses.replace(mysql, server_options={"plugin-dir": str(tmp_path)}, source="/opt/x")

    with pytest.raises(Unsupported) as caught:
        check_release(bare, GroupReplication(), None)
    assert missing(caught.value, "mysql:9.7 (/opt/x)", f"no {PLUGIN} in {tmp_path}") == []


def test_a_group_of_mariadb_is_refused_before_it_starts(bring, mariadb):
    """Asked for by name it is an error with the same words."""
    with pytest.raises(Unsupported, match=r"^mariadb:10.11 \(.*\): mariadb servers have no Group Replication$"):
        bring("group_replication", 3, mariadb)


def test_options_with_addresses_make_no_variant(nodes):
    """Containers have other addresses in each cluster; else every variant needed a cluster of its own there."""
    for number, node in enumerate(nodes):
        node.host.address = f"10.244.160.{number}"
    options = GroupReplication().options(nodes[0], nodes)
    addressed = {name for name, value in options.items() if "10.244.160." in value}

    assert {"report_host", "group_replication_ip_allowlist"} <= addressed
    assert [name for name in addressed if not is_identity(name)] == []


def test_two_clusters_are_two_groups(nodes):
    """Their names are random UUIDs; in one group all members have the same."""
    one, other = GroupReplication(), GroupReplication()
    names = [one.options(node, nodes)["group_replication_group_name"] for node in nodes]

    assert len(set(names)) == 1
    assert names[0] == str(uuid.UUID(names[0]))
    assert names[0] != other.options(nodes[0], nodes)["group_replication_group_name"]


@pytest.mark.parametrize("name", ["group_name", "group_seeds", "local_address", "bootstrap_group"])
def test_the_group_cannot_be_told_to_be_another(mysql, name):
    """A user cannot set the group's name, so a group never meets a running group of the same name."""
    with pytest.raises(ConfigError, match=f"option 'group_replication_{name}': pytest-dbcluster itself sets it"):
        options.check({f"group_replication_{name}": "x"}, {}, frozenset(), mysql.name)


def test_a_member_knows_all_others(nodes):
    """Each has a port of its own for the group, all know all of them, and only one begins the group."""
    form = GroupReplication()
    first, second, _ = (form.before_start(node, nodes, bootstrap=node is nodes[0]) for node in nodes)

    assert first[:3] == [
        "SET GLOBAL group_replication_local_address = '127.0.0.1:20011'",
        "SET GLOBAL group_replication_group_seeds = '127.0.0.1:20011,127.0.0.1:20021,127.0.0.1:20031'",
        "SET GLOBAL group_replication_bootstrap_group = 'ON'",
    ]
    assert second[0] == "SET GLOBAL group_replication_local_address = '127.0.0.1:20021'"
    assert second[2] == "SET GLOBAL group_replication_bootstrap_group = 'OFF'"


def test_the_servers_own_protocol_needs_no_further_port(nodes):
    """With the communication stack MYSQL members talk on the servers' ports."""
    for node in nodes:
        node.options = {"loose_group_replication_communication_stack": "mysql"}

    assert GroupReplication().before_start(nodes[0], nodes, bootstrap=True)[:2] == [
        "SET GLOBAL group_replication_local_address = '127.0.0.1:3306'",
        "SET GLOBAL group_replication_group_seeds = '127.0.0.1:3306,127.0.0.1:3307,127.0.0.1:3308'",
    ]


def test_several_primaries_refuse_what_they_cannot_certify(nodes):
    """The checks are on in a multi-primary group, unless the user has said something about them."""
    checks = "group_replication_enforce_update_everywhere_checks"
    form = GroupReplication()
    single = form.before_start(nodes[0], nodes, bootstrap=True)
    nodes[0].options = dict(MULTI)
    multi = form.before_start(nodes[0], nodes, bootstrap=True)
    nodes[0].options[checks] = "OFF"
    own = form.before_start(nodes[0], nodes, bootstrap=True)

    assert [f"SET GLOBAL {checks} = 'ON'" in said for said in (single, multi, own)] == [False, True, False]


def test_an_option_that_the_group_cannot_live_with_is_refused(nodes):
    """A contradicting option is refused before any server starts."""
    nodes[1].options = {"gtid_mode": "OFF"}

    with pytest.raises(
        ConfigError, match=r"^option gtid_mode=OFF contradicts group_replication: it needs gtid_mode=ON "
    ):
        GroupReplication().form(nodes)
    assert [node.host.spawned for node in nodes] == [[], [], []]


@pytest.mark.parametrize(
    ("level", "nodes", "acknowledged"),
    [
        ("EVENTUAL", 3, "received by a majority of the group"),
        ("BEFORE_ON_PRIMARY_FAILOVER", 2, "received by a majority of the group"),
        ("AFTER", 3, "applied by all members"),
        ("BEFORE_AND_AFTER", 3, "applied by all members"),
        ("AFTER", 1, "one server"),
    ],
)
def test_a_commit_is_worth_what_its_consistency_says(level, nodes, acknowledged):
    """Most levels wait for a majority to receive it, AFTER for all members to apply it."""
    variables = {"group_replication_consistency": level}

    assert GroupReplication().acknowledgement(variables, nodes) == acknowledged
    assert GroupReplication().consistency(variables) == f"group_replication_consistency={level}"


class Answering:
    """A member that answers every question with these rows."""

    options: ClassVar[dict[str, str]] = {}

    def __init__(self, name, rows):
        self.name, self.host = name, FakeHost(name)
        self.query = lambda statement, *limit: rows


def test_a_server_that_was_started_and_has_not_joined_is_a_backlog():
    """A member without statistics is named, and the others are still queried."""
    members = [Answering("node1", []), Answering("node2", [("ONLINE", "", "3", "1")])]

    unjoined, busy = GroupReplication().backlog(members)
    assert unjoined.startswith("node1 has no row in performance_schema.replication_group_member_stats")
    assert missing(busy, "node2: ", "3 transactions to certify", "1 to apply") == []


@pytest.mark.parametrize(
    ("after", "facts"),
    [
        ({}, ()),
        ({"primary": "node2"}, ("the primary", "from node1 to node2")),
        ({"primary": ""}, ("the primary", "from node1 to none")),
        ({"node3": "UNREACHABLE"}, ("member node3", "ONLINE before", "UNREACHABLE after")),
        ({"node3": None}, ("member node3", "ONLINE before", "not a member after")),
        ({"node4": "RECOVERING"}, ("member node4", "not a member before", "RECOVERING after")),
        ({"view_id": "7:5"}, ("a member left", "rejoined", "the view", "from 7:3 to 7:5")),
    ],
)
def test_a_round_counts_only_in_one_group(after, facts):
    """A primary that changed, a member that left or came, and one that did both, void it in words."""
    reading = {name: value for name, value in {**SEEN, **after}.items() if value is not None}

    reason = GroupReplication().void(SEEN, reading)
    assert missing(reason, *facts) == []
    assert bool(reason) is bool(facts)


def test_a_group_that_is_gone_voids_with_what_each_node_says():
    """The second reading holds nothing but the reason."""
    gone = {"primary": "", "view_id": "no node is in the majority of its group: node1 does not run"}

    assert missing(GroupReplication().void(SEEN, gone), "the group no longer exists", gone["view_id"]) == []


def test_several_primaries_are_not_a_change_of_the_primary():
    """In a multi-primary group a member that leaves is named once."""
    before = {**SEEN, "primary": "node1, node2, node3"}
    after = {**SEEN, "primary": "node1, node2", "node3": "ERROR"}

    reason = GroupReplication().void(before, after)
    assert missing(reason, "node3", "ONLINE before", "ERROR after") == []
    assert "primary" not in reason


def test_one_member_is_a_group_with_the_options_of_its_start(bring, mysql, provisioner):
    """Options that a running member would not follow are in force; the check of options knows them."""
    asked = {
        "group_replication_compression_threshold": "0",
        "group_replication_poll_spin_loops": "1000",
        "group_replication_paxos_single_leader": "ON",
        "group_replication_consistency": "BEFORE",
        "group_replication_flow_control_applier_threshold": "100",
    }
    made = ready_template(mysql, provisioner, {}, print)
    options.check(asked, made.variables, made.words, mysql)
    cluster = bring("group_replication", 1, mysql, **asked)
    (node,) = cluster.nodes
    running = node.variables()

    assert {name: running[name] for name in asked} == asked
    leader = "SELECT write_consensus_single_leader_capable FROM performance_schema."
    assert node.query(f"{leader}replication_group_communication_information") == [(1,)]
    assert cluster.problems() == []
    assert cluster.settle(60)
    assert cluster.topology.writers(cluster.nodes) == cluster.topology.readers(cluster.nodes) == [node]
    cluster.close()


def test_a_taken_port_is_said_so_that_others_are_tried(provisioner, mysql):
    """The server only logs it and tries for a minute; the error has the words after which a cluster is started anew."""
    made = ready_template(mysql, provisioner, {}, print)
    (host,) = provisioner.acquire(ClusterSpec("group_replication", nodes=1))
    node = Node(host.name, host, mysql, host.port(3306), made.password)
    host.copy_tree(str(made.data), node.data)
    form = GroupReplication()
    node.configure(form.options(node, [node]))
    (address,) = [line for line in form.before_start(node, [node], bootstrap=True) if "local_address" in line]
    try:
        with (
            socket.create_server(("", int(address.strip("'").rpartition(":")[2]))),
            pytest.raises(ProvisionError, match=r"^node node1 could not join its group \(Address already in use\)"),
        ):
            form.form([node])
    finally:
        node.kill()
        provisioner.give_back([host])
