"""What is Group Replication's own: one group per cluster, roles, rounds that do not count, joining and leaving."""

from __future__ import annotations

import dataclasses
import socket
import time
import uuid

import pytest

from pytest_dbcluster import group, options, wait
from pytest_dbcluster.cluster import ready_template
from pytest_dbcluster.errors import ConfigError, NodeDied, ProvisionError, SeriesVoid, Unsupported
from pytest_dbcluster.node import Node
from pytest_dbcluster.provisioners.fake import FakeHost
from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.sql import Connection, SQLError
from pytest_dbcluster.topologies.group_replication import PLUGIN, GroupReplication

MULTI = {"group_replication_single_primary_mode": "OFF"}
QUICK = {"group_replication_member_expel_timeout": "0"}  # a killed member is gone after 5 s, by default after 10 to 25
SEEN = {"primary": "node1", "view_id": "7:3", "node1": "ONLINE", "node2": "ONLINE", "node3": "ONLINE"}
EXPELLED_SECONDS = 60


@pytest.fixture
def nodes(mysql):
    """Three nodes on hosts that do nothing."""
    made = []
    for n in (1, 2, 3):
        host = FakeHost(f"node{n}", directory=f"/fake/node{n}")
        host.next_port += 10 * n
        made.append(Node(f"node{n}", host, mysql, 3305 + n, "secret"))
    return made


@pytest.fixture(scope="module")
def group3(bring, mysql):
    """Three members, one of them primary; tests leave all of them online."""
    made = bring("group_replication", 3, mysql, **QUICK)
    yield made
    made.close()


@pytest.fixture(scope="module")
def multi2(bring, mysql):
    """Two members that both take writes."""
    made = bring("group_replication", 2, mysql, **MULTI)
    yield made
    made.close()


def primary_and_rest(cluster):
    """The primary of now, and the other nodes."""
    (primary,) = cluster.topology.writers(cluster.nodes)
    return primary, [node for node in cluster.nodes if node is not primary]


def written(node, name):
    """Three rows of a new table, written on one node."""
    node.query("CREATE DATABASE IF NOT EXISTS kept")
    node.query(f"CREATE TABLE kept.{name} (id INT PRIMARY KEY)")
    node.query(f"INSERT INTO kept.{name} VALUES (1), (2), (3)")
    return f"kept.{name}"


def as_load(node):
    """A connection with the account that loads use."""
    return Connection(node.name, dataclasses.replace(node.endpoint, user="dbcluster_load"))


# --- without a server


def test_a_vendor_without_it_is_named(mariadb):
    """MariaDB has no such thing; the reason says so, and where the release is from."""
    assert GroupReplication().lacks(mariadb) == (
        f"mariadb:10.11 ({mariadb.source}): mariadb servers have no Group Replication"
    )


def test_a_release_without_the_plugin_cannot_do_it(nodes, mysql, tmp_path):
    """The error names the file that is missing and where it should be."""
    bare = dataclasses.replace(mysql, server_options={"plugin-dir": str(tmp_path)}, source="/opt/x")
    nodes[0].release = bare

    with pytest.raises(Unsupported) as caught:
        GroupReplication().options(nodes[0], nodes)
    assert str(caught.value) == f"mysql:9.7 (/opt/x) has no {PLUGIN} in {tmp_path}"


def test_a_group_of_mariadb_is_refused_before_it_starts(bring, mariadb):
    """Asked for by name it is an error with the same words."""
    with pytest.raises(Unsupported, match=r"^mariadb:10.11 \(.*\): mariadb servers have no Group Replication$"):
        bring("group_replication", 3, mariadb)


def test_two_clusters_are_two_groups(nodes):
    """Their names are random UUIDs; in one group all members have the same."""
    one, other = GroupReplication(), GroupReplication()
    names = [one.options(node, nodes)["group_replication_group_name"] for node in nodes]

    assert len(set(names)) == 1
    assert names[0] == str(uuid.UUID(names[0]))
    assert names[0] != other.options(nodes[0], nodes)["group_replication_group_name"]


@pytest.mark.parametrize("name", ["group_name", "group_seeds", "local_address", "bootstrap_group"])
def test_the_group_cannot_be_told_to_be_another(mysql, name):
    """So it never meets a running group of the same name."""
    with pytest.raises(ConfigError, match=f"option 'group_replication_{name}' is set by pytest-dbcluster itself"):
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
    """Before any server is started."""
    nodes[1].options = {"gtid_mode": "OFF"}

    with pytest.raises(ConfigError) as caught:
        GroupReplication().form(nodes)
    assert str(caught.value) == (
        "option gtid_mode=OFF contradicts group_replication: it needs gtid_mode=ON on every node; leave it out of "
        "options and my.cnf"
    )
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

    assert GroupReplication().acknowledged(variables, nodes) == acknowledged
    assert GroupReplication().consistency(variables) == f"group_replication_consistency={level}"


@pytest.mark.parametrize(
    ("after", "reason"),
    [
        ({}, ""),
        ({"primary": "node2"}, "the primary changed from node1 to node2"),
        ({"primary": ""}, "the primary changed from node1 to none"),
        ({"node3": "UNREACHABLE"}, "member node3 was ONLINE before the round and is UNREACHABLE after it"),
        ({"node3": None}, "member node3 was ONLINE before the round and is no member after it"),
        ({"node4": "RECOVERING"}, "member node4 was no member before the round and is RECOVERING after it"),
        ({"view_id": "7:5"}, "a member left the group and came back: view 7:3 became 7:5"),
    ],
)
def test_a_round_counts_only_in_one_group(after, reason):
    """A primary that changed, a member that left or came, and one that did both, void it in words."""
    reading = {name: value for name, value in {**SEEN, **after}.items() if value is not None}

    assert GroupReplication().void(SEEN, reading) == reason


def test_a_group_that_is_gone_voids_with_what_each_node_says():
    """The second reading holds nothing but the reason."""
    gone = {"primary": "", "view_id": "no node is in the majority of its group: node1 does not run"}

    assert GroupReplication().void(SEEN, gone) == (
        "the group is gone: no node is in the majority of its group: node1 does not run"
    )


def test_several_primaries_are_not_a_change_of_the_primary():
    """In a multi-primary group a member that leaves is named once."""
    before = {**SEEN, "primary": "node1, node2, node3"}
    after = {**SEEN, "primary": "node1, node2", "node3": "ERROR"}

    assert GroupReplication().void(before, after) == "member node3 was ONLINE before the round and is ERROR after it"


# --- one member


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
    options.check(asked, made.variables, made.words, mysql.name)
    cluster = bring("group_replication", 1, mysql, **asked)
    (node,) = cluster.nodes
    running = node.variables()

    assert {name: running[name] for name in asked} == asked
    leader = "SELECT write_consensus_single_leader_capable FROM performance_schema."
    assert node.query(f"{leader}replication_group_communication_information") == [(1,)]
    assert cluster.problems() == []
    assert cluster.settle(10)
    assert cluster.topology.writers(cluster.nodes) == cluster.topology.readers(cluster.nodes) == [node]
    cluster.close()


def test_a_taken_port_is_said_so_that_others_are_tried(provisioner, mysql):
    """The server only logs it and tries for a minute; the error has the words after which a cluster is started anew."""
    made = ready_template(mysql, provisioner, {}, print)
    (host,) = provisioner.acquire(ClusterSpec("group_replication", nodes=1))
    node = Node(host.name, host, mysql, host.port(), made.password)
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
        provisioner.release([host])


# --- three members, one primary


def test_ready_means_online_for_everybody(group3):
    """Each node sees all three online and the same primary, which alone takes writes."""
    primary, rest = primary_and_rest(group3)
    for node in group3.nodes:
        seen = group.view(node, group3.nodes)
        assert seen.states == dict.fromkeys(["node1", "node2", "node3"], "ONLINE")
        assert seen.primaries == [primary.name]
        assert node.query("SELECT @@global.super_read_only") == [(int(node is not primary),)]
        assert node.query("SELECT @@global.group_replication_bootstrap_group") == [(0,)]
    assert group3.topology.readers(group3.nodes) == rest
    assert group3.topology.void(watched := group3.topology.watch(group3.nodes), watched) == ""


def test_nothing_is_logged_before_the_group_writes(group3):
    """Neither a start nor a join leaves a transaction that is a member's own."""
    assert group3.topology.violations(group3.nodes) == []
    for node in group3.nodes:
        executed = node.query("SELECT @@global.gtid_executed, @@global.group_replication_group_name")[0]
        assert group.divided(executed[0], [executed[1]])[1] == ""


def test_a_write_arrives_on_every_member(group3):
    """Settled means that queues are empty and all have executed the same."""
    primary, _ = primary_and_rest(group3)
    table = written(primary, "everywhere")

    assert group3.settle(10), group3.backlog()
    assert [node.query(f"SELECT COUNT(*) FROM {table}") for node in group3.nodes] == [[(3,)]] * 3
    group3.check([table])


def test_a_backlog_names_who_is_behind(group3):
    """A member whose applier waits has not executed what the others have."""
    primary, (late, _) = primary_and_rest(group3)
    table = written(primary, "late")
    assert group3.settle(10)
    late.query(f"LOCK TABLES {table} READ")
    try:
        primary.query(f"INSERT INTO {table} VALUES (4)")
        found = group3.topology.backlog(group3.nodes)
        assert any(line.startswith(f"{late.name} has still to apply ") for line in found)
    finally:
        late.query("UNLOCK TABLES")
    assert group3.settle(10), group3.backlog()


def test_a_secondary_refuses_a_load(group3):
    """With 1290, the server's read-only error; so do all secondaries, and the primary does not."""
    primary, rest = primary_and_rest(group3)
    table = written(primary, "refused")
    assert group3.settle(10)
    for node in rest:
        with pytest.raises(SQLError) as caught:
            as_load(node).query(f"INSERT INTO {table} VALUES (10)")
        assert caught.value.number == 1290
    as_load(primary).query(f"INSERT INTO {table} VALUES (10)")


def test_health_divides_the_nodes(group3):
    """The primary is well for writes, the others for reads."""
    primary, _ = primary_and_rest(group3)
    for node in group3.nodes:
        health = group3.topology.health(node, group3.nodes)
        said = node.pairs(health.statement)
        well = {
            role: all(said[name] == value for name, value in wanted.items())
            for role, wanted in (("reader", health.reader), ("writer", health.writer))
        }
        assert well == {"reader": node is not primary, "writer": node is primary}


def test_a_member_that_left_voids_the_round_and_comes_back(group3):
    """Its server still runs; it is named, and ready again after it has joined anew."""
    _, (_, left) = primary_and_rest(group3)
    before = group3.topology.watch(group3.nodes)
    left.query("STOP GROUP_REPLICATION")
    wait.until(
        lambda: [] if left.name not in group3.topology.watch(group3.nodes) else ["still there"], "leaving", seconds=20
    )

    void = f"member {left.name} was ONLINE before the round and is no member after it"
    assert group3.topology.void(before, group3.topology.watch(group3.nodes)) == void
    assert any(f"sees {left.name} as no member, wanted ONLINE" in line for line in group3.problems())
    group3.topology.rejoin(left, group3.nodes)
    wait.until(group3.problems, "the group", seconds=60)
    assert group3.topology.void(before, group3.topology.watch(group3.nodes)).startswith(
        "a member left the group and came back: view "
    )


def test_a_killed_primary_is_replaced_and_comes_back(group3):
    """The others elect a new one; the round is void at once, and the old one joins as a secondary."""
    form, nodes = group3.topology, group3.nodes
    killed, rest = primary_and_rest(group3)
    table = written(killed, "before_the_kill")
    assert group3.settle(10)
    before = form.watch(nodes)
    killed.kill()

    assert f"member {killed.name} was ONLINE before the round and is not running" in form.void(
        before, form.watch(nodes)
    )
    with pytest.raises(NodeDied):
        group3.problems()
    with pytest.raises(ProvisionError, match=r"^no node takes writes: the group has elected no primary"):
        form.writers(nodes)
    limit = time.monotonic() + EXPELLED_SECONDS
    while killed.name in group.common_view(nodes).states and time.monotonic() < limit:
        time.sleep(0.1)
    (elected,) = form.writers(nodes)
    assert elected in rest
    assert f"the primary changed from {killed.name} to {elected.name}" in form.void(before, form.watch(nodes))

    elected.query(f"INSERT INTO {table} VALUES (4)")
    form.rejoin(killed, nodes)
    wait.until(group3.problems, "the group", seconds=60)
    assert group3.settle(10), group3.backlog()
    assert form.writers(nodes) == [elected]
    assert killed.query(f"SELECT COUNT(*) FROM {table}") == [(4,)]


def test_a_member_that_cannot_apply_says_why(group3):
    """Somebody else removed a row there: the applier's own words end the wait for a member that never catches up."""
    primary, (stopped, _) = primary_and_rest(group3)
    table = written(primary, "gone")
    assert group3.settle(10)
    before = group3.topology.watch(group3.nodes)
    alone = ["SET SESSION sql_log_bin = 0", "SET GLOBAL super_read_only = 0"]
    stopped.sql.run([*alone, f"DELETE FROM {table} WHERE id = 1", "SET GLOBAL super_read_only = 1"])
    primary.query(f"UPDATE {table} SET id = 7 WHERE id = 1")

    why = f"(?s)^member {stopped.name} has stopped applying and left its group: .*Can't find record in 'gone'"
    with pytest.raises(ProvisionError, match=why):
        wait.until(lambda: [*group3.backlog(), "no error yet"], "the error", seconds=30)
    with pytest.raises(ProvisionError, match=why):
        group3.problems()
    wait.until(
        lambda: [] if stopped.name not in group3.topology.watch(group3.nodes) else ["still there"],
        "leaving",
        seconds=20,
    )
    void = f"member {stopped.name} was ONLINE before the round and is no member after it"
    assert group3.topology.void(before, group3.topology.watch(group3.nodes)) == void

    stopped.sql.run([alone[1], f"INSERT INTO {table} VALUES (1)", "SET SESSION sql_log_bin = 1"])
    group3.topology.rejoin(stopped, group3.nodes)
    wait.until(group3.problems, "the group", seconds=60)
    assert group3.settle(10), group3.backlog()
    for node in group3.nodes:
        node.new_errors()


def test_a_transaction_under_a_foreign_name_is_errant(group3):
    """It went through the group, but no member can have given it that name by itself."""
    primary, _ = primary_and_rest(group3)
    foreign = str(uuid.uuid4())
    primary.query(f"SET SESSION gtid_next = '{foreign}:1'")
    primary.query("CREATE DATABASE foreign_name")
    primary.query("SET SESSION gtid_next = 'AUTOMATIC'")
    assert group3.settle(10), group3.backlog()

    words = f"has errant transactions, which did not come through the group: {foreign}:1"
    assert group3.topology.violations(group3.nodes) == [f"{node.name} {words}" for node in group3.nodes]
    with pytest.raises(SeriesVoid, match=words):
        group3.check()


def test_a_member_with_transactions_of_its_own_is_refused(group3):
    """What it wrote while it was outside makes it errant: it is told apart by name, and the group does not take it."""
    _, (errant, _) = primary_and_rest(group3)
    errant.query("STOP GROUP_REPLICATION")
    errant.query("SET GLOBAL super_read_only = OFF")
    errant.query("CREATE DATABASE mine")
    own = errant.query("SELECT @@server_uuid")[0][0]

    found = group3.topology.violations(group3.nodes)
    assert any(line.startswith(f"{errant.name} has errant transactions") and f"{own}:1" in line for line in found)
    assert sum(f"lacks {own}:1, which other members have" in line for line in found) == 2
    group3.topology.rejoin(errant, group3.nodes)
    with pytest.raises(
        ProvisionError, match=f"(?s)^node {errant.name} could not join its group: .*more executed trans"
    ):
        wait.until(group3.problems, "the group", seconds=60)


# --- two members, both primaries


def test_every_member_of_a_multi_primary_group_takes_writes(multi2):
    """Writers and readers are all nodes, each for loads too, and each write is on both."""
    form, nodes = multi2.topology, multi2.nodes

    assert form.writers(nodes) == form.readers(nodes) == nodes
    for node in nodes:
        table = written(node, f"from_{node.name}")
        as_load(node).query(f"INSERT INTO {table} VALUES (4)")
        assert multi2.settle(10), multi2.backlog()
        multi2.check([table])
        health = form.health(node, nodes)
        assert health.reader.items() <= health.writer.items() <= node.pairs(health.statement).items()
    assert form.void(watched := form.watch(nodes), watched) == ""
    assert watched["primary"] == "node1, node2"


def test_a_majority_that_is_lost_is_given_back(multi2):
    """One of two is no majority: who brings the other one back says that it was dead, and both go on."""
    form, (survivor, killed) = multi2.topology, multi2.nodes
    killed.kill()
    form.rejoin(killed, multi2.nodes)

    wait.until(multi2.problems, "the group", seconds=60)
    assert any("not able to reach a majority" in line for line in survivor.new_errors())
    table = written(killed, "after_the_kill")
    assert multi2.settle(10), multi2.backlog()
    multi2.check([table])
