"""What is Galera's own: options of a node, the restored primary component, joining without data, one node."""

from __future__ import annotations

import dataclasses
import uuid

import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.clusters.servers import galera_options
from pytest_dbcluster.clusters.servers.node import Node
from pytest_dbcluster.clusters.topologies.galera import Galera, component_state, recover_position
from pytest_dbcluster.errors import NodeDied, Unsupported
from pytest_dbcluster.hosts.provisioners.fake import FakeHost
from pytest_dbcluster.releases import find
from pytest_dbcluster.testbed.resolution import check_release
from tests.support.facts import missing
from tests.support.sockets import beyond_this_machine, port_watch

ZERO = "GALERA saved state\nuuid: 8bcf4a34\nseqno: -1\nsafe_to_bootstrap: 0\n"


@pytest.fixture
def nodes(mariadb):
    """Three nodes on hosts that do nothing."""
    made = []
    for n in (1, 2, 3):
        host = FakeHost(f"node{n}", directory=f"/fake/node{n}")
        host.next_port += 10 * n
        made.append(Node(f"node{n}", host, mariadb, 3306, "secret"))
    return made


def test_every_node_names_all_of_them(nodes):
    """All nodes have the same cluster address; on a shared host each has separate ports."""
    galera = Galera()
    options = [galera.options(node, nodes) for node in nodes]

    assert {one["wsrep_cluster_address"] for one in options} == {
        "gcomm://127.0.0.1:20011,127.0.0.1:20021,127.0.0.1:20031"
    }
    assert options[1]["wsrep_provider_options"] == (
        "base_port=20021;gmcast.listen_addr=tcp://127.0.0.1:20021;ist.recv_addr=127.0.0.1:20022"
    )
    assert options[1]["wsrep_sst_receive_address"] == "127.0.0.1:20023"
    assert len({one["wsrep_cluster_name"] for one in options}) == 1


def test_two_clusters_have_two_names(nodes):
    """Group names are unique, so that nodes of two runs cannot join each other."""
    one, other = (Galera().options(nodes[0], nodes)["wsrep_cluster_name"] for _ in range(2))

    assert one != other


def test_a_release_without_the_library_cannot_do_it(mariadb):
    """The error names the release, where it is from, and what is missing."""
    bare = dataclasses.replace(mariadb, wsrep_provider=None, source="/opt/x")

    with pytest.raises(Unsupported) as caught:
        check_release(bare, Galera(), None)
    assert missing(caught.value, "mariadb:10.11 (/opt/x)", "has no Galera library", "(libgalera_smm.so)") == []


def test_the_restored_component_names_its_members():
    """gvwstate.dat has this node's id and the last view with all members."""
    members = [uuid.UUID(int=n) for n in (2, 1)]

    assert component_state(members[0], members) == (
        f"my_uuid: {members[0]}\n#vwbeg\nview_id: 3 {members[1]} 1\nbootstrap: 0\n"
        f"member: {members[1]} 0\nmember: {members[0]} 0\n#vwend\n"
    )


def test_one_node_begins_a_new_group(nodes):
    """A single node is bootstrapped, because gvwstate.dat cannot restore a component of one node."""
    Galera().form(nodes[:1])

    assert nodes[0].host.spawned[0][-1] == "--wsrep-new-cluster"
    assert f"{nodes[0].data}/gvwstate.dat" not in nodes[0].host.files


def test_more_nodes_restore_one_component(nodes):
    """All nodes get the same view with their own id, and none bootstraps a group."""
    Galera().form(nodes)

    texts = [node.host.files[f"{node.data}/gvwstate.dat"].decode() for node in nodes]
    assert len({text.partition("\n")[0] for text in texts}) == 3
    assert len({text.partition("\n")[2] for text in texts}) == 1
    assert [node.host.spawned[0][-1] for node in nodes].count("--wsrep-new-cluster") == 0


def test_timers_are_short_only_while_nodes_start_together(nodes):
    """They stand in the command line alone, so that a node that is started again has the usual ones."""
    galera = Galera()
    for node in nodes:
        node.configure(galera.options(node, nodes))
    galera.form(nodes)

    given = nodes[0].host.spawned[0][-1]
    assert given.startswith("--wsrep-provider-options=base_port=")
    assert given.endswith(";evs.join_retrans_period=PT0.2S;evs.keepalive_period=PT0.2S")
    assert "evs." not in nodes[0].host.files["/fake/node1/my.cnf"].decode()


@pytest.mark.parametrize(
    "option",
    [
        {"wsrep_provider_options": "evs.keepalive_period=PT3S"},
        {"wsrep_provider_evs_keepalive_period": "PT3S"},  # the variable of MariaDB 11.8
    ],
)
def test_a_timer_that_a_user_has_set_is_left_alone(nodes, option):
    """From the start, in both ways of writing it; the other one is short."""
    galera = Galera()
    for node in nodes:
        node.configure(galera.options(node, nodes), option)
    galera.form(nodes)

    given = nodes[0].host.spawned[0][-1]
    assert given.endswith(";evs.join_retrans_period=PT0.2S")
    assert "evs.keepalive_period=PT0.2S" not in given


def test_a_suspect_timeout_without_its_keepalive_is_refused_at_the_first_start(bring):
    """By the server, as on the user's machine: a keepalive of 1 s, the default, is too long for 2 s."""
    with pytest.raises(NodeDied, match=r"evs\.keepalive_period"):
        bring("galera", 2, wsrep_provider_options="evs.suspect_timeout=PT2S")


@pytest.fixture(scope="module")
def pair(bring):
    """Two nodes of the newest series, which tests kill and bring back."""
    made = bring("galera", 2, find.find("mariadb:11.8"))
    yield made
    made.close()


@pytest.mark.parametrize("shared", ["galera2", "pair", pytest.param("mariadb:10.5", marks=pytest.mark.thorough)])
def test_a_cluster_that_is_ready_has_the_usual_timers(briefly, shared, request):
    """Those of a node that was started alone: all provider options are equal."""
    cluster = briefly("galera", 2, find.find(shared)) if ":" in shared else request.getfixturevalue(shared)
    alone = briefly("galera", 1, cluster.nodes[0].release)
    _, usual = galera_options.spread(alone.nodes[0].variables())

    for node in cluster.nodes:
        _, options = galera_options.spread(node.variables())
        assert options == usual
        assert options["evs.keepalive_period"] == options["evs.join_retrans_period"] == "PT1S"


def test_a_node_without_data_has_no_position(nodes):
    """The server is not run: with nothing to recover it would create files."""
    assert recover_position(nodes[0]) == []
    assert nodes[0].host.commands == []


def test_a_crashed_node_reads_its_position(nodes):
    """The position comes from a server run with --wsrep-recover."""
    host = nodes[0].host
    host.files[f"{nodes[0].data}/grastate.dat"] = ZERO.encode()
    host.files["/fake/node1/recover.log"] = b"0 [Note] WSREP: Recovered position: 8bcf4a34-aa:17\n"

    assert recover_position(nodes[0]) == ["--wsrep-start-position=8bcf4a34-aa:17"]


def test_the_most_advanced_node_bootstraps_the_group(pair):
    """After all servers have ended, the node that is asked first joins the one with more transactions."""
    ahead, behind = pair.nodes
    behind.stop()
    ahead.query("CREATE TABLE mysql.ahead (id INT PRIMARY KEY) ENGINE=InnoDB")
    ahead.query("INSERT INTO mysql.ahead VALUES (1)")
    ahead.kill()

    pair.topology.rejoin(behind, pair.nodes)
    wait.until(pair.problems, "the cluster", seconds=90, poll=0.2)
    running = ahead.process
    pair.topology.rejoin(ahead, pair.nodes)

    assert ahead.process is running
    assert [node.query("SELECT id FROM mysql.ahead") for node in pair.nodes] == [[(1,)], [(1,)]]


def test_of_equal_nodes_the_asked_one_bootstraps_the_group(nodes):
    """A node without a position is behind all others."""
    for node, position in zip(nodes, ("8bcf4a34-aa:16", "8bcf4a34-aa:17", "8bcf4a34-aa:17"), strict=True):
        node.host.files[f"{node.data}/grastate.dat"] = ZERO.encode()
        node.host.files[f"{node.host.directory}/recover.log"] = f"WSREP: Recovered position: {position}\n".encode()
    del nodes[0].host.files[f"{nodes[0].data}/grastate.dat"]
    Galera().rejoin(nodes[2], nodes)

    assert nodes[2].host.spawned[0][-2:] == ["--wsrep-new-cluster", "--wsrep-start-position=8bcf4a34-aa:17"]
    assert [node.host.spawned for node in nodes[:2]] == [[], []]
    assert b"safe_to_bootstrap: 1" in nodes[2].host.files[f"{nodes[2].data}/grastate.dat"]


def test_every_node_knows_the_whole_cluster(galera2):
    """Each one is Synced, in the primary component, and sees as many nodes as were asked for."""
    for node in galera2.nodes:
        status = node.status("wsrep%")
        assert status["wsrep_ready"] == "ON"
        assert status["wsrep_local_state_comment"] == "Synced"
        assert status["wsrep_cluster_status"] == "Primary"
        assert status["wsrep_cluster_size"] == "2"


RECEIVED = "[Note] WSREP: SST received: 6a1c1f0e-0000-11f1-0000-000000000000:12\n"
IST = "[Note] WSREP: Receiving IST: 3 writesets, seqnos 10-12\n"


@pytest.mark.parametrize(
    ("log", "how"),
    [
        (f"{IST}{RECEIVED}", "IST"),
        (f"[Note] WSREP: Proceeding with SST\n{RECEIVED}", "SST"),
        (f"[Note] WSREP: Proceeding with SST\n{IST}{RECEIVED}", "SST"),
        (RECEIVED, ""),
    ],
)
def test_the_log_says_how_a_node_joined(log, how):
    """MariaDB logs that an SST was received for an IST too, so the other lines decide."""
    assert Galera().how_joined(log) == how


def transfer_port(node):
    """The port at which a node receives a state transfer."""
    return int(node.query("SELECT @@wsrep_sst_receive_address")[0][0].rpartition(":")[2])


def test_a_node_without_state_is_sent_everything(pair):
    """After its data directory was emptied, mariabackup transfers all data, and the tables are equal.

    During the transfer, too, no port is open to other machines.
    """
    donor, joiner = pair.nodes
    donor.query("CREATE DATABASE kept")
    donor.query("CREATE TABLE kept.t (id INT PRIMARY KEY)")
    donor.query("INSERT INTO kept.t VALUES (1), (2), (3)")
    assert pair.settle(60)
    watch = port_watch([joiner.host], transfer_port(joiner))
    joiner.stop()
    joiner.host.run(["sh", "-c", f"rm -rf {joiner.data}/* {joiner.data}/.[!.]*"])
    offset = len(joiner.host.pull(joiner.log))
    pair.topology.rejoin(joiner, pair.nodes)

    def problems():
        watch()
        return pair.problems()

    wait.until(problems, "the cluster", seconds=90, poll=0.1)
    pair.check(["kept.t"])
    assert "socat" in {port.program for port in watch()}
    assert beyond_this_machine(watch()) == set()
    logged = joiner.log_text(offset)
    assert "mariabackup" in logged
    assert pair.topology.how_joined(logged) == "SST"


def test_a_node_that_left_and_came_back_voids_the_round(briefly):
    """Afterwards all is as before, but for the number of the view."""
    cluster = briefly("galera", 2)
    form, nodes = cluster.topology, cluster.nodes
    before = form.watch(nodes)
    assert form.void(before, form.watch(nodes)) == ""

    nodes[1].stop()
    form.rejoin(nodes[1], nodes)
    wait.until(cluster.problems, "the cluster", seconds=60)
    assert cluster.settle(60), cluster.backlog()

    void = form.void(before, form.watch(nodes))
    assert void.startswith("a member left the group and rejoined: the view changed from ")
