"""What is semi-synchronous replication's own: waiting for replicas, falling back, coming back, its plugins."""

from __future__ import annotations

import dataclasses

import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.clusters.servers.node import Node
from pytest_dbcluster.clusters.switch import Switch
from pytest_dbcluster.clusters.topologies.async_replication import RECONNECT
from pytest_dbcluster.clusters.topologies.semisync import SemiSync
from pytest_dbcluster.errors import ConfigError, Unsupported
from pytest_dbcluster.hosts.provisioners.fake import FakeHost
from pytest_dbcluster.releases import find
from pytest_dbcluster.testbed.resolution import check_release

# MySQL in a shorter form is in contracts/test_topologies.py.
RELEASES = ("mariadb:10.11", pytest.param("mysql:9.7", marks=pytest.mark.thorough))
FIRST_WORD = {"mariadb": "rpl_semi_sync_master", "mysql": "rpl_semi_sync_source"}


@pytest.fixture(scope="module", params=RELEASES)
def cluster(bring, request):
    """A primary that waits 3 s for one of two replicas; tests leave it on and settled."""
    release = find.find(request.param)
    made = bring("semisync", 3, release, **{f"{FIRST_WORD[release.product]}_timeout": "3000"})
    made.nodes[0].query("CREATE DATABASE kept")
    made.nodes[0].query("CREATE TABLE kept.t (id INT AUTO_INCREMENT PRIMARY KEY)")
    made.settle(10)
    yield made
    made.close()


def watched(cluster):
    """What is read before and after a round."""
    return cluster.topology.watch(cluster.nodes)


def void(cluster, before):
    """Why what happened since then does not count."""
    return cluster.topology.void(before, watched(cluster))


def write(cluster):
    """One commit on the primary."""
    cluster.nodes[0].query("INSERT INTO kept.t VALUES ()")


def number(cluster, name):
    """One status of the primary, such as ``yes_tx``."""
    return int(cluster.nodes[0].status("rpl_semi_sync%")[f"{FIRST_WORD[cluster.nodes[0].dialect.vendor]}_{name}"])


def test_ready_means_that_every_replica_acknowledges(cluster):
    """It is on, both replicas are known, and a commit is counted as acknowledged."""
    acknowledged = number(cluster, "yes_tx")
    before = watched(cluster)
    assert list(before.values()) == ["ON", "2", "0", "ON"]

    write(cluster)
    assert number(cluster, "yes_tx") == acknowledged + 1
    assert void(cluster, before) == ""
    cluster.check(["kept.t"])


def test_falling_back_voids_the_round_and_is_waited_out(cluster):
    """Nobody acknowledges in time: the commit returns, the round says so, and none begins before it is on again."""
    primary, *replicas = cluster.nodes
    words = primary.dialect.semisync
    before = watched(cluster)
    for replica in replicas:
        replica.query("STOP REPLICA")
    write(cluster)

    assert f"semi-sync fell back to asynchronous: {words.status} is OFF after the round" in void(cluster, before)
    assert f"{words.unacknowledged} changed from 0 to 1" in void(cluster, before)
    assert not cluster.settle(0.2)
    for replica in replicas:
        replica.query("START REPLICA")
    wait.until(cluster.problems, "the cluster", seconds=60)
    assert cluster.settle(60), cluster.backlog()

    again = watched(cluster)
    write(cluster)
    assert void(cluster, again) == ""
    assert "fell back" not in void(cluster, before)
    assert "changed from 0 to 1" in void(cluster, before)
    cluster.new_errors()  # that the replicas went
    cluster.check(["kept.t"])


def test_a_fallback_is_a_backlog_although_everything_has_arrived(cluster):
    """The replicas have all transactions and acknowledge none: the next round would not be semi-synchronous."""
    primary, *replicas = cluster.nodes
    words = primary.dialect.semisync
    cluster.new_errors()

    def acknowledge(value):
        """Let the replicas acknowledge, or not, from their next connection on."""
        for replica in replicas:
            for statement in (f"SET GLOBAL {words.replica} = {value}", *RECONNECT):
                replica.query(statement)

    acknowledge("OFF")
    write(cluster)
    said = f"node1: semi-sync is off, {words.status} is 'OFF'"
    wait.until(lambda: [one for one in cluster.backlog() if one != said], "only semi-sync", seconds=60)
    assert cluster.backlog() == [said]
    assert said in cluster.problems()

    acknowledge("ON")
    write(cluster)  # its acknowledgement ends the fallback
    wait.until(cluster.problems, "the cluster", seconds=60)
    assert cluster.settle(60), cluster.backlog()
    cluster.new_errors()  # that the replicas went


def test_a_switch_turns_the_waiting_off_and_on_again(cluster):
    """Off, the servers replicate asynchronously and no round waits for it; on again, commits are acknowledged."""
    primary = cluster.nodes[0]
    words = primary.dialect.semisync
    switch = Switch(cluster)
    waiting, acknowledged = watched(cluster), number(cluster, "yes_tx")

    switch.to({words.primary: "OFF"}, among=[words.primary])
    assert void(cluster, waiting) == f"{words.primary} changed from ON to OFF"
    off = watched(cluster)
    write(cluster)
    assert cluster.settle(60), cluster.backlog()
    assert cluster.problems() == []
    assert void(cluster, off) == ""
    assert number(cluster, "yes_tx") == acknowledged
    assert cluster.topology.acknowledgement(primary.variables(), 3) == "one server, replicas later"

    switch.to({}, among=[words.primary])
    assert cluster.settle(60), cluster.backlog()
    assert cluster.problems() == []
    again = watched(cluster)
    write(cluster)
    assert number(cluster, "yes_tx") == acknowledged + 1
    assert void(cluster, again) == ""


def test_a_replica_that_goes_voids_the_round(cluster):
    """The other one still acknowledges each commit, but there is one less to be the first."""
    words = cluster.nodes[0].dialect.semisync
    replica = cluster.nodes[2]
    before = watched(cluster)
    replica.query("STOP REPLICA")

    def unnoticed():
        """MySQL's primary notices when it has something to send."""
        write(cluster)
        return [] if void(cluster, before) else ["still two"]

    wait.until(unnoticed, "the primary to notice", seconds=60)
    assert void(cluster, before).endswith(f": {words.clients} changed from 2 to 1")
    assert cluster.problems() != []

    replica.query("START REPLICA")
    wait.until(cluster.problems, "the cluster", seconds=60)
    assert void(cluster, before) == ""


@pytest.mark.parametrize("victim", [0, 1])
def test_a_killed_node_comes_back_and_acknowledges(cluster, victim):
    """The primary is found again by its replicas, a replica catches up, and no commit is lost or errant."""
    node = cluster.nodes[victim]
    write(cluster)
    node.kill()
    cluster.topology.rejoin(node, cluster.nodes)

    wait.until(cluster.problems, "the cluster", seconds=30)
    write(cluster)
    assert cluster.settle(60), cluster.backlog()
    assert cluster.topology.violations(cluster.nodes) == []
    assert len({node.query("CHECKSUM TABLE kept.t")[0][1] for node in cluster.nodes}) == 1


def acknowledgement(cluster):
    """The label of a commit, and what a commit of a healthy cluster adds to those that nobody has acknowledged."""
    primary = cluster.nodes[0]
    unacknowledged = number(cluster, "no_tx")
    primary.query("CREATE DATABASE labelled")
    added = number(cluster, "no_tx") - unacknowledged
    primary.query("DROP DATABASE labelled")
    assert cluster.settle(60), cluster.backlog()
    assert cluster.topology.consistency(primary.variables()) == ""
    return cluster.topology.acknowledgement(primary.variables(), len(cluster.nodes)), added


LABELS = {"mariadb": "received by 1 replica (AFTER_COMMIT)", "mysql": "received by 1 replica (AFTER_SYNC)"}


def test_the_label_says_who_has_a_commit(cluster):
    """The defaults of number and wait point are the vendor's."""
    assert acknowledgement(cluster) == (LABELS[cluster.nodes[0].dialect.vendor], 0)


def test_a_wait_point_is_an_option(cluster):
    """The label names that of the server."""
    option = f"{FIRST_WORD[cluster.nodes[0].dialect.vendor]}_wait_point"
    usual = cluster.nodes[0].variables()[option]
    other = {"AFTER_COMMIT": "AFTER_SYNC", "AFTER_SYNC": "AFTER_COMMIT"}[usual]
    Switch(cluster).to({option: other}, among=[option])
    assert acknowledgement(cluster) == (f"received by 1 replica ({other})", 0)

    Switch(cluster).to({option: usual}, among=[option])
    assert acknowledgement(cluster) == (f"received by 1 replica ({usual})", 0)


def test_every_commit_that_two_have_to_acknowledge_waits_for_both(bring):
    """The label has their number. If one of them is gone, the round falls back."""
    cluster = bring(
        "semisync",
        3,
        find.find("mysql:9.7"),
        rpl_semi_sync_source_wait_for_replica_count="2",
        rpl_semi_sync_source_wait_point="AFTER_COMMIT",
        rpl_semi_sync_source_timeout="3000",
    )
    assert acknowledgement(cluster) == ("received by 2 replicas (AFTER_COMMIT)", 0)
    before = watched(cluster)
    cluster.nodes[2].query("STOP REPLICA")
    cluster.nodes[0].query("CREATE DATABASE kept")

    assert "fell back to asynchronous" in void(cluster, before)
    cluster.close()


@pytest.fixture
def idle(mysql):
    """Three nodes on hosts that do nothing."""
    return [Node(f"node{n}", FakeHost(f"node{n}", directory=f"/fake/{n}"), mysql, 3306, "secret") for n in (1, 2, 3)]


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        (2, "=2 with 1 replica: .* nodes=3 or more"),
        (3, "=3 with 2 replicas: .* nodes=4 or more"),
    ],
)
def test_more_acknowledgements_than_replicas_are_refused(idle, nodes, words):
    """More required replicas than there are is an error: every commit would wait for its timeout."""
    form, some = SemiSync(), idle[:nodes]
    for node in some:
        node.configure({**form.options(node, some), "rpl_semi_sync_source_wait_for_replica_count": str(nodes)})

    with pytest.raises(ConfigError, match=f"^option rpl_semi_sync_source_wait_for_replica_count{words}$"):
        form.form(some)
    assert idle[0].host.spawned == []


def test_replicas_that_do_not_acknowledge_are_refused(idle):
    """Commits would wait for the timeout; what may be turned off is the waiting of the primary."""
    form, option = SemiSync(), "rpl_semi_sync_replica_enabled"
    for node in idle:
        node.configure({**form.options(node, idle), option: "OFF"})

    with pytest.raises(
        ConfigError, match=f"^option {option}=OFF contradicts semisync: its replica node2 needs {option}=ON;"
    ):
        form.form(idle)


@pytest.mark.parametrize("release", RELEASES)
def test_a_cluster_may_start_without_waiting(bring, release):
    """It is ready, and replicates asynchronously."""
    found = find.find(release)
    cluster = bring("semisync", 2, found, **{f"{FIRST_WORD[found.product]}_enabled": "OFF"})

    cluster.nodes[0].query("CREATE DATABASE kept")
    assert cluster.settle(60), cluster.backlog()
    assert number(cluster, "yes_tx") == 0
    assert cluster.topology.acknowledgement(cluster.nodes[0].variables(), 2) == "one server, replicas later"
    cluster.close()


def test_a_release_without_the_plugins_cannot_do_it(mysql, tmp_path):
    """The error names the release, where it is from, what is missing, and where it was looked for."""
    (tmp_path / "semisync_source.so").touch()
    bare = dataclasses.replace(mysql, source="/opt/x", server_options={"plugin-dir": str(tmp_path)})
    lacking = f"mysql:9.7 (/opt/x) has no semisync_replica.so in {tmp_path}"
    assert SemiSync().lacks(bare) == lacking
    with pytest.raises(Unsupported) as caught:
        check_release(bare, SemiSync(), None)
    assert str(caught.value) == lacking

    (tmp_path / "semisync_source.so").unlink()
    assert "no semisync_source.so and no semisync_replica.so in" in SemiSync().lacks(bare)


def test_mariadb_has_it_built_in(mariadb, mysql):
    """No file is looked for; MySQL's own releases have both."""
    assert SemiSync().lacks(dataclasses.replace(mariadb, server_options={"plugin-dir": "/nowhere"})) == ""
    assert SemiSync().lacks(mysql) == ""
