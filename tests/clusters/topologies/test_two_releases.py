"""Clusters whose nodes have two releases of MariaDB, on real servers: they form, and rows reach every node."""

from __future__ import annotations

import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.clusters import kept
from pytest_dbcluster.clusters.startup import bring_up
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.testbed.evidence import specs
from pytest_dbcluster.testbed.resolution import Resolution

OLD, NEW = "mariadb:10.11", "mariadb:11.8"


@pytest.fixture(scope="module")
def resolution(provisioner, tmp_path_factory):
    """Specs are resolved for this machine."""
    return Resolution(provisioner, fragments=tmp_path_factory.mktemp("none"), below=None, progress=print)


@pytest.fixture(scope="module")
def bring(resolution, provisioner):
    """The variant of a spec, and its cluster, which ends with the module."""
    made = []

    def bring(spec):
        variant = resolution.resolve(spec)
        made.append(bring_up(variant.to_start(), provisioner))
        return variant, made[-1]

    yield bring
    for cluster in made:
        cluster.close()
        provisioner.give_back(cluster.hosts)


@pytest.fixture(scope="module", params=["async_replication", pytest.param("semisync", marks=pytest.mark.thorough)])
def replicas(request, bring):
    """The variant and the cluster of a newer replica among older servers."""
    spec = ClusterSpec(request.param, nodes=3, release=(OLD, NEW, OLD))
    return bring(spec.with_options(innodb_snapshot_isolation="OFF"))


@pytest.fixture(scope="module")
def pair(bring):
    """An older and a newer Galera node."""
    return bring(ClusterSpec("galera", nodes=2, release=(OLD, NEW)))[1]


@pytest.fixture(scope="module")
def three(bring):
    """A newer Galera node, which is the first one, and two older ones."""
    return bring(ClusterSpec("galera", nodes=3, release=(NEW, OLD, OLD)))[1]


def series_of(cluster):
    """The series that each server says."""
    versions = [node.query("SELECT @@version")[0][0] for node in cluster.nodes]
    return [".".join(version.split(".")[:2]) for version in versions]


def write(node, row):
    """One row of a table that the first write makes."""
    node.query("CREATE DATABASE IF NOT EXISTS d")
    node.query("CREATE TABLE IF NOT EXISTS d.t (id INT PRIMARY KEY, word VARCHAR(20) DEFAULT 'word')")
    node.query(f"REPLACE INTO d.t (id) VALUES ({row})")


def equal_everywhere(cluster, rows):
    """Every node has these rows, no error was logged, and all checks of a run pass."""
    wait.until(lambda: cluster.topology.backlog(cluster.nodes), "the rows on every node", seconds=60)
    found = [node.query("SELECT id, word FROM d.t ORDER BY id") for node in cluster.nodes]
    assert found == [[(row, "word") for row in rows]] * len(cluster.nodes)
    cluster.check(["d.t"])
    assert cluster.dirty == ""


def test_a_newer_replica_follows_an_older_source(replicas):
    """Its data is an upgraded copy of the older release's."""
    variant, cluster = replicas
    write(cluster.nodes[0], 1)

    assert series_of(cluster) == ["10.11", "11.8", "10.11"]
    equal_everywhere(cluster, [1])
    assert (variant.release_name, variant.release.name) == ("mariadb:10.11+11.8+10.11", OLD)
    newer = cluster.nodes[1]
    assert newer.host.pull(f"{newer.data}/mariadb_upgrade_info").startswith(b"11.8.")


def test_a_cluster_that_stays_says_both_releases(replicas, provisioner, monkeypatch):
    """With their exact versions, in the order of the nodes."""
    monkeypatch.setattr(provisioner, "leave", lambda: None)
    _, cluster = replicas
    text = kept.describe(kept.write(cluster, provisioner, name="mixed"))
    (provisioner.directory / kept.FILE).unlink()

    assert "3 x mariadb:10.11+11.8+10.11 10.11." in text


@pytest.mark.parametrize(
    ("name", "series"),
    [
        ("three", ["11.8", "10.11", "10.11"]),
        pytest.param("pair", ["10.11", "11.8"], marks=pytest.mark.thorough),
    ],
)
def test_galera_nodes_of_two_releases_form_one_cluster(name, series, resolution, request):
    """Each writes what the others apply. The vendor's words about such a cluster are a line of the run."""
    cluster = request.getfixturevalue(name)
    for number, node in enumerate(cluster.nodes, 1):
        write(node, number)

    assert series_of(cluster) == series
    equal_everywhere(cluster, range(1, len(series) + 1))
    assert any("neighbouring series only, and 11.4 lies between" in line for line in resolution.overridden)


def test_a_newer_node_comes_back_to_older_ones(three):
    """By what it lacks."""
    newest, older, _ = three.nodes
    write(older, 11)
    newest.kill()
    write(older, 12)
    three.topology.rejoin(newest, three.nodes)

    wait.until(three.problems, "the newer node in the cluster", seconds=90, poll=0.2)
    newest.new_errors()
    assert newest.query("SELECT id FROM d.t WHERE id > 10 ORDER BY id") == [(11,), (12,)]
    equal_everywhere(three, [row for (row,) in older.query("SELECT id FROM d.t ORDER BY id")])


@pytest.mark.thorough
def test_a_newer_node_without_data_gets_that_of_an_older_one(pair):
    """By a full state transfer. The reverse fails: an older server cannot read a newer one's data."""
    older, newer = pair.nodes
    write(older, 1)
    newer.kill()
    newer.host.run(["sh", "-c", f"rm -rf {newer.data}/*"])
    pair.topology.rejoin(newer, pair.nodes)

    wait.until(pair.problems, "the newer node in the cluster", seconds=90, poll=0.2)
    assert (1,) in newer.query("SELECT id FROM d.t")


def test_an_option_that_one_release_lacks_is_checked_on_both(resolution):
    """A name that only the newer one has is an error before anything starts."""
    spec = ClusterSpec("async_replication", nodes=2, release=(OLD, NEW)).with_options(binlog_large_commit_threshold=1)

    with pytest.raises(ConfigError, match=r"unknown option 'binlog_large_commit_threshold' of mariadb:10\.11"):
        resolution.resolve(spec)


def test_an_older_replica_is_refused_with_exact_versions(resolution):
    """Before anything starts."""
    spec = ClusterSpec("semisync", nodes=2, release=(NEW, OLD))

    with pytest.raises(ConfigError, match=r"node2 \(mariadb 10\.11\.\d+\) is older than its source node1 \(mariadb 11"):
        resolution.resolve(spec)


def test_records_have_the_version_of_each_node(resolution):
    """As one text, which names the cluster everywhere. Variants of other releases are other clusters."""
    spec = ClusterSpec("async_replication", nodes=2, release=(OLD, NEW))
    mixed, one = resolution.resolve(spec), resolution.resolve(ClusterSpec("async_replication", nodes=2, release=OLD))
    document = specs.resolved_spec(mixed, "vendor").document

    assert document.release == "mariadb:10.11+11.8"
    assert [version.rpartition(".")[0] for version in document.version.split("+")] == ["10.11", "11.8"]
    assert mixed.cluster_key != one.cluster_key
    assert mixed.dynamic == ()
