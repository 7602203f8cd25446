"""Wrong releases and clusters that are known before a run: a usage error, and no test runs."""

from __future__ import annotations

import types

import pytest

from pytest_dbcluster.clusters import topology
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.plugin.collection import refusals
from pytest_dbcluster.plugin.settings import Settings
from pytest_dbcluster.spec import ClusterSpec, ReleaseName

GALERA = ClusterSpec("galera", nodes=3, proxy="haproxy")


def item(**names):
    """A test of a module with these constants."""
    module = types.SimpleNamespace(**names)
    return types.SimpleNamespace(nodeid="suites/test_a.py::test_it", module=module)


@pytest.fixture
def settings(pytestconfig, tmp_path):
    """The settings of a run without options."""
    return Settings.read(pytestconfig.option, tmp_path)


def with_release(settings, *names, provisioner="local"):
    """The settings of a run with these releases."""
    releases = tuple(map(ReleaseName.parse, names))
    fields = {**vars(settings), "releases": releases, "provisioner": provisioner}
    return Settings(**fields)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (
            ClusterSpec("async_replication"),
            "suites/test_a.py: async_replication1: async_replication needs 2 nodes or more, a primary and its "
            "replicas, not 1: use nodes=2, or the topology standalone",
        ),
        (
            ClusterSpec("drbd", nodes=3),
            "suites/test_a.py: drbd3: drbd needs 2 nodes, a server and a standby host with a",
        ),
        (ClusterSpec("standalone", nodes=2), "suites/test_a.py: standalone2: a standalone server is one node, not 2"),
        (ClusterSpec("galara"), "suites/test_a.py: galara1: unknown topology 'galara'; known: "),
        (ClusterSpec("galera", proxy="hproxy"), "suites/test_a.py: galera1: unknown proxy 'hproxy'; known: "),
        (
            GALERA.with_proxy_options(failback=False),
            "suites/test_a.py: failback_OFF: unknown option 'failback' of the proxy haproxy; known, with their "
            "defaults: fail_back (ON), ",
        ),
        (
            ClusterSpec("galera", proxy="mysql_router", proxy_options={"fall": 2}),
            "suites/test_a.py: fall_2: proxy mysql_router has no options, got proxy_options fall",
        ),
        (
            ClusterSpec("standalone", proxy="haproxy", proxy_options={"available_when_donor": True}),
            "suites/test_a.py: available_when_donor_ON: proxy_options available_when_donor=ON of haproxy: nodes of "
            "standalone are never donors",
        ),
        (
            ClusterSpec("async_replication", nodes=2, release=("mariadb:11.8", "mariadb:10.11")),
            "suites/test_a.py: async_replication2: release=mariadb:11.8+10.11 of a async_replication cluster: node2 "
            "(mariadb 10.11) is older than its source node1 (mariadb 11.8): ",
        ),
        (
            ClusterSpec("galera", nodes=2, release=("mariadb:11.8", "mysql:5.7")),
            "suites/test_a.py: galera2: mysql 5.7 is too old to be measured",
        ),
        (ClusterSpec("galera", release="mysql:5.7"), "suites/test_a.py: galera1: mysql 5.7 is too old to be measured"),
    ],
)
def test_a_cluster_that_cannot_be_is_refused(settings, spec, words):
    """Wherever it is among the constants of a module."""
    for constants in ({"X": spec}, {"X": [GALERA, spec]}, {"X": {"a": spec}}):
        with pytest.raises(ConfigError) as caught:
            refusals.check(settings, [item(GALERA=GALERA), item(**constants)])
        assert str(caught.value).startswith(words)


def test_what_is_planned_skips_its_own_test(settings, monkeypatch):
    """It is no mistake of the run."""
    monkeypatch.setattr(topology, "PLANNED", ("ring",))

    refusals.check(settings, [item(X=ClusterSpec("ring", nodes=2), GALERA=GALERA)])


@pytest.mark.parametrize(
    ("names", "provisioner", "words"),
    [
        (["mysql:5.7"], "local", "mysql 5.7 is too old to be measured: the oldest versions are mariadb 10.5 and mysql"),
        (["mysql:5.7"], "container", "mysql 5.7 is too old to be measured: "),
        (["mysql:5.7=/opt/mysql"], "local", "mysql 5.7 is too old to be measured: "),
        (["mariadb:11.9"], "local", "unknown release mariadb:11.9; known: mariadb:10.5"),
        (["mysql:8.4=/none"], "local", "mysql:8.4=/none: there is no directory /none"),
        (["mariadb:11.8", "mariadb:11.8"], "local", "--db-release mariadb:11.8 is there twice"),
    ],
)
def test_a_release_that_cannot_be_is_refused(settings, names, provisioner, words):
    """Each of those that were given."""
    with pytest.raises(ConfigError) as caught:
        refusals.check(with_release(settings, "mariadb:10.11", *names, provisioner=provisioner), [])

    assert str(caught.value).startswith(words)


def test_images_may_be_of_any_release(settings):
    """Containers take their programs from images, which this machine does not know yet."""
    refusals.check(with_release(settings, "mariadb:11.4", provisioner="container"), [])
