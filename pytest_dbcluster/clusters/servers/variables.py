"""Server variables: which need a restart, which differ despite equal options, and which values are equal."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pytest_dbcluster.clusters.servers.data_template import Variable

# After SET GLOBAL of a memory or log size, the server adapts for a long time. Provider options are a list.
ALWAYS_STATIC = frozenset(
    {"innodb_buffer_pool_size", "innodb_log_file_size", "innodb_redo_log_capacity", "wsrep_provider_options"}
)
# A running member of Group Replication follows these options after SET GLOBAL. Other options take effect only when it
# joins: SET GLOBAL succeeds without effect. The member refuses some of them while START GROUP_REPLICATION still runs.
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
# Variables that differ between two servers with the same options, depend on a node's role, or change over time.
IDENTITY = frozenset(
    """
    aria_log_dir_path auto_increment_increment auto_increment_offset bind_address datadir general_log_file
    group_replication_group_name group_replication_group_seeds group_replication_ip_allowlist
    group_replication_local_address group_replication_view_change_uuid gtid_binlog_pos gtid_binlog_state
    gtid_current_pos gtid_executed gtid_owned gtid_purged gtid_slave_pos hostname
    innodb_buffer_pool_dump_now innodb_buffer_pool_load_now log_bin_basename log_bin_index log_error pid_file port
    read_only relay_log relay_log_basename relay_log_index replica_load_tmpdir report_host report_port server_id
    server_uid server_uuid slave_load_tmpdir slow_query_log_file socket super_read_only timestamp tmpdir
    wsrep_cluster_address wsrep_cluster_name wsrep_data_home_dir wsrep_node_address wsrep_node_incoming_address
    wsrep_node_name wsrep_provider_options wsrep_sst_auth wsrep_sst_receive_address wsrep_start_position
    """.split()  # noqa: SIM905  (a list of fifty quoted words is no easier to read)
)
# MariaDB 11 shows each provider option as a separate variable; most of them are addresses and directories.
IDENTITY_PREFIX = "wsrep_provider_"


# Binary suffixes of numbers in a my.cnf.
FACTORS = {suffix: 2 ** (10 * power) for power, suffix in enumerate(("", *"KMGTPE"))}
TRUTH = {"on": "1", "true": "1", "off": "0", "false": "0", "": "1"}
SIZE_SLACK = 2**27  # InnoDB rounds its buffer pool up to a chunk, 128 MiB by default


# The caches that keep their memory, and the files that a server writes in full when it starts.
MEMORY_SIZES = (
    "innodb_buffer_pool_size", "key_buffer_size", "aria_pagecache_buffer_size", "query_cache_size",
    "innodb_log_buffer_size", "rocksdb_block_cache_size",
)  # fmt: skip
FILE_SIZES = ("innodb_log_file_size", "innodb_redo_log_capacity")
FILES_OF_LOG = "innodb_log_files_in_group"
FILE_LISTS = ("innodb_data_file_path", "innodb_temp_data_file_path")  # ibdata1:12M:autoextend
PROVIDER_LIST = "wsrep_provider_options"
PROVIDER_SIZES = re.compile(r"(?:^|;)\s*gcache\.size\s*=\s*([\w.]+)")


def memory_sizes(options: Mapping[str, str]) -> dict[str, float]:
    """Return the sizes of a server's caches, in bytes by option name."""
    return {name: size for name in MEMORY_SIZES if (size := as_number(options.get(name, "")))}


def file_sizes(options: Mapping[str, str]) -> dict[str, float]:
    """Return the sizes of the files that a server writes when it starts, in bytes by option name."""
    sizes = {name: as_number(options.get(name, "")) or 0.0 for name in FILE_SIZES}
    sizes[FILE_SIZES[0]] *= as_number(options.get(FILES_OF_LOG, "")) or 1
    for name in FILE_LISTS:
        parts = [part.split(":")[1:2] for part in options.get(name, "").split(";")]
        sizes[name] = sum(as_number(size) or 0.0 for part in parts for size in part)
    if found := PROVIDER_SIZES.search(options.get(PROVIDER_LIST, "")):
        sizes[PROVIDER_LIST] = as_number(found[1]) or 0.0
    return {name: size for name, size in sizes.items() if size}


def is_identity(name: str) -> bool:
    """Return whether a variable may differ between servers with the same options."""
    return name in IDENTITY or name.startswith(IDENTITY_PREFIX)


def needs_start(variable: Variable) -> bool:
    """Return whether a variable must be set at server start: SET GLOBAL fails, or takes effect too late."""
    name = variable.name
    late = name.startswith(GROUP) and name not in GROUP_FOLLOWED
    return variable.read_only or late or name in ALWAYS_STATIC or is_identity(name)


def as_number(value: str) -> float | None:
    """Return a my.cnf value as a number; suffixes K, M, G, T, P, E are powers of 1024. None for other text."""
    match = re.fullmatch(r"(-?\d+(?:\.\d+)?)([KMGTPE]?)", value.strip(), re.IGNORECASE)
    return float(match.group(1)) * FACTORS[match.group(2).upper()] if match else None


def meaning(value: str) -> float | str:
    """A my.cnf value that is equal for equal ones: 128M and 134217728, ON and 1; other text as it is."""
    number = as_number(TRUTH.get(value.strip().lower(), value))
    return value.strip() if number is None else number


def equal(asked: str, value: str) -> bool:
    """Return whether two values are the same text in any case. ON, TRUE, 1 and an empty value are the same."""
    left, right = (TRUTH.get(text.strip().lower(), text.strip().upper()) for text in (asked, value))
    return left == right


def same(asked: str, running: str) -> bool:
    """Return whether a server with the value ``running`` has accepted the value ``asked``.

    The server may round sizes up by less than ``SIZE_SLACK``. Different text counts as accepted: the server shows utf8
    as utf8mb3, expands modes, and shows ON for log_bin=FILE. It does not start with unknown text, and adjusts only
    numbers.
    """
    left, right = (as_number(TRUTH.get(value.strip().lower(), value)) for value in (asked, running))
    if left is None or right is None:
        return True
    return left == right or (left >= 2**20 and 0 < right - left < SIZE_SLACK)
