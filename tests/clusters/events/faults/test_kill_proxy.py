"""``KillProxy``: the proxy ends at once, and starts again."""

from __future__ import annotations

import pytest

from pytest_dbcluster.clusters.proxy import query_through
from pytest_dbcluster.clusters.topology import topology
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.events import KillProxy
from pytest_dbcluster.spec import ClusterSpec
from tests.support.clusters import bring_up

PROXIED = ClusterSpec("standalone", proxy="haproxy")


@pytest.fixture
def cluster(mariadb, provisioner):
    """A server behind haproxy."""
    made = bring_up(PROXIED, mariadb, provisioner, options={})
    yield made
    made.close()
    provisioner.give_back(made.hosts)


def test_a_killed_proxy_starts_again_at_the_same_port(cluster):
    """Its exit status is the signal's. Only its main program ends; one that ended before makes the event void."""
    proxy = cluster.proxy
    before, endpoint = dict(proxy.processes), cluster.writer()
    happened = KillProxy().act(cluster)

    assert (happened.void, happened.node) == ("", "")
    assert before["haproxy"].status() == -9
    assert before["status_port"].status() is None
    assert 0 < happened.marks["ended"] < happened.marks["whole"]
    assert cluster.writer() == endpoint
    assert query_through("test", endpoint, "SELECT 1") == [(1,)]
    assert KillProxy().restore(cluster, happened) is None

    proxy.end()
    assert KillProxy().act(cluster).void == "the proxy did not run before the event"


def test_a_cluster_without_a_proxy_is_refused():
    """Before anything starts."""
    KillProxy().check(PROXIED, topology("standalone"))
    with pytest.raises(ConfigError, match=r'has no proxy; use ClusterSpec\(\.\.\., proxy="haproxy"\)$'):
        KillProxy().check(ClusterSpec("galera", nodes=3), topology("galera"))
