"""Sizes that options ask for: memory for good, and files that are written at the start."""

from __future__ import annotations

from pytest_dbcluster.clusters.servers.variables import file_sizes, memory_sizes


def test_caches_are_counted_in_bytes():
    """By option; a value that is no number asks for nothing."""
    assert memory_sizes({"innodb_buffer_pool_size": "2G", "key_buffer_size": "16M", "sync_binlog": "7"}) == {
        "innodb_buffer_pool_size": 2**31,
        "key_buffer_size": 2**24,
    }
    assert memory_sizes({"innodb_buffer_pool_size": "lots"}) == {}


def test_files_are_counted_in_bytes():
    """Each log of the group, each file of a list, and Galera's cache."""
    options = {
        "innodb_log_file_size": "1G",
        "innodb_log_files_in_group": "3",
        "innodb_data_file_path": "ibdata1:12M;ibdata2:1G:autoextend",
        "wsrep_provider_options": "gcs.fc_limit=5; gcache.size = 2G",
    }
    assert file_sizes(options) == {
        "innodb_log_file_size": 3 * 2**30,
        "innodb_data_file_path": 2**30 + 12 * 2**20,
        "wsrep_provider_options": 2**31,
    }
