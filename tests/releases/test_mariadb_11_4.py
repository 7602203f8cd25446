"""MariaDB 11.4.5, which no apt source of the tests has: the vendor's build, in a directory."""

from __future__ import annotations

import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.releases import find
from pytest_dbcluster.spec import ClusterSpec, ReleaseName
from pytest_dbcluster.system import cache
from tests.support.clusters import bring_up


@pytest.fixture(scope="module")
def name():
    """The name of the release, with its directory."""
    directory = cache.root() / "tools" / "mariadb-11.4.5"
    if not directory.is_dir():
        pytest.skip("MariaDB 11.4.5 is not in the cache: make servers (149 MB)")
    return ReleaseName("mariadb", "11.4", str(directory))


@pytest.fixture(scope="module")
def found(name):
    """The release."""
    return find.find(name)


def test_it_forms_clusters(found, provisioner):
    """The statements and options of MariaDB's dialect are those of 11.4 too; a row reaches every node."""
    cluster = bring_up(ClusterSpec("semisync", nodes=2), found, provisioner, options={})
    first = cluster.nodes[0]
    first.query("CREATE DATABASE d")
    first.query("CREATE TABLE d.t (a INT PRIMARY KEY)")
    first.query("INSERT INTO d.t VALUES (1)")

    wait.until(lambda: cluster.topology.backlog(cluster.nodes), "the row on every node", seconds=60)

    assert {node.query("SELECT @@version")[0][0].partition("-")[0] for node in cluster.nodes} == {"11.4.5"}
    assert [node.query("SELECT a FROM d.t") for node in cluster.nodes] == [[(1,)]] * 2
    assert first.flush_log() == []
    cluster.close()
    provisioner.give_back(cluster.hosts)


HOSTS = [
    "containers",
    pytest.param("guests", marks=pytest.mark.guests),
    pytest.param("machines", marks=pytest.mark.remote),
]


@pytest.mark.parametrize("where", HOSTS)
def test_it_runs_where_the_directory_is_not(name, where, request):
    """Containers, guests and other machines get a copy of it with the libraries that it loads here."""
    provisioner = request.getfixturevalue(where)
    release = provisioner.supply(name, print)
    cluster = bring_up(ClusterSpec("async_replication", nodes=2, release=name), release, provisioner, options={})
    versions = {node.query("SELECT @@version")[0][0].partition("-")[0] for node in cluster.nodes}
    (charsets,) = {node.query("SELECT @@character_sets_dir")[0][0] for node in cluster.nodes}
    cluster.close()
    provisioner.give_back(cluster.hosts)

    assert versions == {"11.4.5"}
    assert "tools/mariadb-11.4.5" not in charsets


def test_it_is_the_release_that_it_says(found):
    """It is found with its own messages and character sets; this build has no Galera."""
    assert (found.version, found.product, found.wsrep_provider) == ("11.4.5", "mariadb", None)
    assert {"basedir", "lc-messages-dir", "character-sets-dir"} == set(found.server_options)
