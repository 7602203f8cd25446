"""Former options agree with the servers on this machine: nothing is called gone that a release still has."""

from __future__ import annotations

import pytest

from pytest_dbcluster.clusters.dialects import former_options
from pytest_dbcluster.clusters.dialects.former_options import explanation
from pytest_dbcluster.clusters.dialects.lookup import numbers
from pytest_dbcluster.clusters.servers.data_template import help_text, option_words
from pytest_dbcluster.releases import find
from pytest_dbcluster.spec import ClusterSpec


@pytest.mark.parametrize("name", ["mariadb:10.5", "mariadb:10.11", "mariadb:11.8", "mysql:9.7"])
def test_a_release_has_none_of_the_options_that_are_called_gone(name, provisioner):
    """Each is looked up in the release's own --help."""
    release = find.find(name)
    (host,) = provisioner.acquire(ClusterSpec("standalone", release=release.release_name, name="help"))
    words = option_words(help_text(release, host, "--no-defaults").stdout)
    provisioner.give_back([host])
    version = numbers(release.version)
    rows = [row for row in former_options._ROWS if row[0] == release.product and row[1] <= version]
    gone = {option for _, _, options, _ in rows for option in options.split()}

    assert len(gone) > 10
    assert gone & words == set()


@pytest.mark.parametrize(
    ("vendor", "version", "name", "fate"),
    [
        ("mysql", (8, 0, 30), "query_cache_limit", "there is no query cache (in mysql 8 or before)"),
        ("mysql", (8, 0, 30), "innodb_log_file_size", ""),
        ("mysql", (9, 7), "innodb_log_file_size", "renamed to innodb_redo_log_capacity (the size of all files "
         "together) (in mysql 9 or before)"),
        ("mysql", (), "expire_logs_days", "renamed to binlog_expire_logs_seconds (seconds, not days) (in mysql 8.4 or "
         "before)"),
        ("mariadb", (10, 5, 23), "innodb_file_format", ""),
        ("mariadb", (10, 11, 19), "innodb_file_format", "every table has the newest format, with long index prefixes "
         "(in mariadb 10.6 or before)"),
        ("mariadb", (10, 11, 19), "set_variable", "removed; write the variable as an option: name = value"),
        ("mariadb", (10, 11, 19), "group_replication_consistency", "an option of MySQL servers"),
        ("mysql", (9, 7), "aria_pagecache_buffer_size", "an option of MariaDB servers"),
        ("mysql", (9, 7), "made_up", ""),
        ("mysql", (8, 4), "pxc_strict_mode", "an option of Percona XtraDB Cluster"),
        ("mariadb", (), "pxc_strict_mode", "an option of Percona XtraDB Cluster"),
    ],
)  # fmt: skip
def test_what_became_of_an_option_depends_on_the_version(vendor, version, name, fate):
    """No version means the newest."""
    assert explanation(vendor, version, name) == fate
