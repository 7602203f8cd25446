"""Options that belong to the host of a my.cnf: recognised in every spelling."""

from __future__ import annotations

import pytest

from pytest_dbcluster.clusters.servers.host_options import of_host


@pytest.mark.parametrize(
    "name",
    """
    datadir port socket user pid_file bind_address server_id tmpdir plugin_dir log_error wsrep_cluster_name
    wsrep_cluster_address wsrep_node_address wsrep_sst_auth wsrep_sst_method skip_networking require_secure_transport
    read_only super_read_only skip_grant_tables report_host loose_mysqlx_port skip_ssl ssl_ca
    skip_slave_start extra_port hashicorp_key_management_token loose_aws_key_management_region
    """.split(),  # noqa: SIM905
)
def test_what_concerns_the_host_is_known(name):
    """Addresses, names, files, accounts, and who may write."""
    assert of_host(name)


@pytest.mark.parametrize(
    "name",
    """
    innodb_buffer_pool_size sync_binlog log_bin general_log_file slow_query_log skip_name_resolve max_connections
    skip_innodb_doublewrite wsrep_slave_threads wsrep_provider_options innodb_data_file_path event_scheduler sql_mode
    open_files_limit character_set_server group_replication_consistency binlog_format expire_logs_days
    """.split(),  # noqa: SIM905
)
def test_what_concerns_speed_is_kept(name):
    """Sizes, flushing, logs, limits, replication's own settings."""
    assert not of_host(name)
