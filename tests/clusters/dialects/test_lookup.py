"""Tests of pytest_dbcluster.clusters.dialects.lookup."""

from __future__ import annotations

import pytest

from pytest_dbcluster.clusters.dialects.lookup import dialect, numbers
from pytest_dbcluster.errors import Unsupported


def test_an_unknown_vendor_lists_the_known_ones():
    """Words are written down for two vendors."""
    with pytest.raises(Unsupported, match=r"^unknown server postgres; known: mariadb, mysql$"):
        dialect("postgres")


@pytest.mark.parametrize(("vendor", "version"), [("mysql", "5.7.44"), ("mysql", "8.0.28"), ("mariadb", "10.4.34")])
def test_a_version_that_is_too_old_says_from_when_on(vendor, version):
    """Statements and statuses had other names then."""
    oldest = r"the oldest versions are mariadb 10\.5 and mysql 8\.0\.29$"
    with pytest.raises(Unsupported, match=rf"^{vendor} {version} is too old to be measured: {oldest}"):
        dialect(vendor, version)


def test_percona_has_the_words_of_mysql():
    """Its servers are built from MySQL of the same version."""
    assert dialect("percona", "8.4.6") == dialect("mysql", "8.4.6")
    with pytest.raises(Unsupported, match=r"^percona 8\.0\.28 is too old to be measured"):
        dialect("percona", "8.0.28")


def test_a_series_is_not_older_than_its_first_known_release():
    """8.0 names no patch level, so it is the newest one; that of 8.0.29 has no statuses of its redo log."""
    assert dialect("mysql", "8.0").server == "mysqld"
    assert [dialect("mysql", version).log_flushed != "" for version in ("8.0.29", "8.0.30", "8.0", "8")] == [
        False,
        True,
        True,
        True,
    ]


def test_older_versions_have_words_of_their_own():
    """MySQL 8.4 has no performance_schema.variables_metadata, 9.7 has."""
    assert "variables_info" in dialect("mysql", "8.0.43").variables
    assert "variables_info" in dialect("mysql", "8.4.3").variables
    assert "variables_metadata" in dialect("mysql", "9.7.4").variables
    assert "variables_metadata" in dialect("mysql").variables


def test_the_control_connection_to_mysql_is_encrypted():
    """caching_sha2_password sends the password itself when the server has not seen it yet."""
    assert dialect("mysql").control_tls
    assert not dialect("mariadb").control_tls


def test_a_version_is_numbers():
    """Whatever stands between them."""
    assert numbers("10.11.19") == (10, 11, 19)
    assert numbers("") == ()


@pytest.mark.parametrize("vendor", ["mariadb", "mysql"])
def test_what_replication_needs_leaves_durability_alone(vendor):
    """How often binlog and relay log are flushed is the vendor's default, which the durability label tells."""
    words = dialect(vendor).replication

    assert [name for name in (*words.every, *words.preset) if "sync" in name or "flush" in name] == []


@pytest.mark.parametrize(
    ("vendor", "reading", "on"),
    [
        ("mariadb", "slave_io_running", "rpl_semi_sync_master_enabled"),
        ("mysql", "replica_io_running", "rpl_semi_sync_source_enabled"),
    ],
)
def test_each_vendor_replicates_in_words_of_its_own(vendor, reading, on):
    """MariaDB keeps the old names in what it answers; MySQL has had the new ones since 8.0.26."""
    assert dialect(vendor).replication.reading == reading
    assert dialect(vendor).semisync.primary == on


def test_the_number_of_appliers_is_read_when_a_replica_starts():
    """A running one refuses it, or takes it and goes on with as many as it has."""
    for vendor in ("mariadb", "mysql"):
        words = dialect(vendor, "").replication
        assert words.workers in words.read_at_start
