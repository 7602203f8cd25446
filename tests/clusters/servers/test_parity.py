"""Tests of pytest_dbcluster.clusters.servers.parity."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_dbcluster.clusters.servers import parity
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.releases.release import Release
from pytest_dbcluster.spec import ClusterSpec, ReleaseName
from pytest_dbcluster.testbed.pool import Pool
from pytest_dbcluster.testbed.resolution import Resolution

MARIADB = Release("mariadb:10.11", "mariadb", "10.11.19", Path("/nonexistent"))
PXC = Release("pxc:8.4", "pxc", "8.4.6", Path("/nonexistent"))
MYSQL = Release("mysql:9.7", "mysql", "9.7.4", Path("/nonexistent"))


def test_vendor_leaves_every_default_alone():
    """The profile vendor sets no option."""
    assert parity.options("vendor", MARIADB, "galera") == {}


def test_normalised_servers_have_the_same_durability():
    """Binlog, its flushing and the log's flushing have the same names and values on both vendors."""
    one, other = (parity.options("normalised", release, "async_replication") for release in (MARIADB, MYSQL))

    for name in ("log_bin", "sync_binlog", "innodb_flush_log_at_trx_commit", "transaction_isolation"):
        assert one[name] == other[name]


def test_normalised_servers_have_as_many_appliers():
    """The number of appliers has each vendor's option name, and Galera's."""
    assert parity.options("normalised", MARIADB, "standalone")["slave_parallel_threads"] == parity.APPLIERS
    assert parity.options("normalised", MYSQL, "standalone")["replica_parallel_workers"] == parity.APPLIERS
    assert parity.options("normalised", MARIADB, "galera")["wsrep_slave_threads"] == parity.APPLIERS
    assert parity.options("normalised", PXC, "galera")["wsrep_applier_threads"] == parity.APPLIERS


@pytest.mark.parametrize(("release", "name"), [(MARIADB, "log_slave_updates"), (PXC, "log_replica_updates")])
def test_normalised_nodes_of_galera_write_transactions_of_others_to_their_binlog(release, name):
    """The option has each vendor's name, and other topologies set it themselves."""
    assert parity.options("normalised", release, "galera")[name] == "ON"
    assert name not in parity.options("normalised", release, "standalone")


def test_an_unknown_parity_lists_the_known_ones():
    """An unknown profile is an error."""
    with pytest.raises(ConfigError, match=r"unknown parity 'normal'; known: vendor, normalised"):
        parity.options("normal", MARIADB, "galera")


def test_normalised_servers_run_with_the_same_values(provisioner, tmp_path):
    """Whatever vendor and version preset, two running servers say the same; a spec's own option still wins."""
    pool = Pool(
        Resolution(provisioner, fragments=tmp_path, below={}, progress=lambda _: None, parity_profile="normalised")
    )
    one = ClusterSpec("standalone", release=ReleaseName.parse("mariadb:10.11"))
    other = ClusterSpec("standalone", release=ReleaseName.parse("mysql:9.7"))
    try:
        said = [
            running.cluster.nodes[0].variables()
            for running in pool.running([pool.resolution.resolve(one), pool.resolution.resolve(other)])
        ]
        assert pool.resolution.resolve(one.with_parity("vendor")).options == {}
        assert pool.resolution.resolve(other.with_options(sync_binlog=0)).options["sync_binlog"] == "0"
    finally:
        pool.close()

    for name in ("log_bin", "innodb_flush_log_at_trx_commit", "character_set_server", "collation_server"):
        assert said[0][name] == said[1][name]
    assert said[0]["tx_isolation"] == said[1]["transaction_isolation"] == "REPEATABLE-READ"
    assert (said[0]["sync_binlog"], said[1]["sync_binlog"]) == ("1", "1")
