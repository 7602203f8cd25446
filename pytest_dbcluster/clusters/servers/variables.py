"""Facts about variables: which need a start of the server, and which differ between servers of one my.cnf."""

from __future__ import annotations

from pytest_dbcluster.clusters.servers.data_template import Variable

# Sizes of memory and of the log change a server's state for long after a SET GLOBAL; provider options are many in one.
ALWAYS_STATIC = frozenset(
    {"innodb_buffer_pool_size", "innodb_log_file_size", "innodb_redo_log_capacity", "wsrep_provider_options"}
)
# Of Group Replication's options a running member follows these. The others it reads when it joins, takes in the
# meantime without a word, or refuses in the second after it is ready, in which its START has not returned.
GROUP = "group_replication_"
GROUP_FOLLOWED = frozenset(
    f"{GROUP}{name}"
    for name in """
    consistency exit_state_action flow_control_applier_threshold flow_control_certifier_threshold
    flow_control_hold_percent flow_control_max_quota flow_control_member_quota_percent flow_control_min_quota
    flow_control_min_recovery_quota flow_control_mode flow_control_period flow_control_release_percent
    transaction_size_limit
    """.split()  # noqa: SIM905  (a list of twelve quoted words is no easier to read)
)
# What differs between two servers with the same options, belongs to a node's role, or moves by itself.
IDENTITY = frozenset(
    """
    aria_log_dir_path auto_increment_increment auto_increment_offset bind_address datadir general_log_file
    group_replication_group_name group_replication_group_seeds group_replication_local_address
    group_replication_view_change_uuid gtid_binlog_pos gtid_binlog_state gtid_current_pos gtid_executed
    gtid_owned gtid_purged gtid_slave_pos hostname
    innodb_buffer_pool_dump_now innodb_buffer_pool_load_now log_bin_basename log_bin_index log_error pid_file port
    read_only relay_log relay_log_basename relay_log_index replica_load_tmpdir report_host report_port server_id
    server_uid server_uuid slave_load_tmpdir slow_query_log_file socket super_read_only timestamp tmpdir
    wsrep_cluster_address wsrep_cluster_name wsrep_data_home_dir wsrep_node_address wsrep_node_incoming_address
    wsrep_node_name wsrep_provider_options wsrep_sst_auth wsrep_sst_receive_address wsrep_start_position
    """.split()  # noqa: SIM905  (a list of fifty quoted words is no easier to read)
)
# MariaDB 11 shows each provider option as a variable of its own; most hold addresses and directories.
IDENTITY_PREFIX = "wsrep_provider_"


def is_identity(name: str) -> bool:
    """Whether a variable differs between servers with the same options, so that it says nothing of a variant."""
    return name in IDENTITY or name.startswith(IDENTITY_PREFIX)


def needs_start(variable: Variable) -> bool:
    """Whether a variable is set when the server starts: SET GLOBAL is refused, or comes to effect too late."""
    name = variable.name
    late = name.startswith(GROUP) and name not in GROUP_FOLLOWED
    return variable.read_only or late or name in ALWAYS_STATIC or is_identity(name)
