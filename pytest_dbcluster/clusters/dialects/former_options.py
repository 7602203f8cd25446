"""Former options: options of older or other servers that a version does not have, with an explanation. Data only.

The table only explains; the server decides whether it has an option.
"""

from __future__ import annotations

from pytest_dbcluster.clusters.dialects.implied_options import Version

_GONE = "removed"
# (vendor, first version without it, names, explanation); () is every version, for options of the other vendor.
_ROWS: tuple[tuple[str, Version, str, str], ...] = (
    ("mysql", (8,), "query_cache_type query_cache_size query_cache_limit query_cache_min_res_unit "
     "query_cache_wlock_invalidate query_cache_strip_comments", "there is no query cache"),
    ("mysql", (8,), "innodb_file_format innodb_file_format_check innodb_file_format_max innodb_large_prefix",
     "every table has the newest format, with long index prefixes"),
    ("mysql", (8,), "innodb_support_xa", "InnoDB always takes part in two-phase commit"),
    ("mysql", (8,), "sync_frm", "there are no .frm files"),
    ("mysql", (8,), "log_warnings", "renamed to log_error_verbosity (1 to 3)"),
    ("mysql", (8,), "tx_isolation", "renamed to transaction_isolation"),
    ("mysql", (8,), "tx_read_only", "renamed to transaction_read_only"),
    ("mysql", (8,), "innodb_checksums", "renamed to innodb_checksum_algorithm"),
    ("mysql", (8,), "innodb_locks_unsafe_for_binlog", "transaction_isolation=READ-COMMITTED locks as it did"),
    ("mysql", (8,), "innodb_undo_logs", "renamed to innodb_rollback_segments"),
    ("mysql", (8,), "innodb_stats_sample_pages", "renamed to innodb_stats_transient_sample_pages"),
    ("mysql", (8,), "internal_tmp_disk_storage_engine", "temporary tables on disk are always InnoDB"),
    ("mysql", (8,), "old_passwords secure_auth ignore_db_dirs ignore_builtin_innodb max_tmp_tables multi_range_count "
     "metadata_locks_cache_size metadata_locks_hash_instances date_format datetime_format time_format "
     "show_compatibility_56 log_syslog log_syslog_facility log_syslog_include_pid log_syslog_tag "
     "log_builtin_as_identified_by_password skip_innodb partition bootstrap", _GONE),
    ("mysql", (8,), "table_cache", "renamed to table_open_cache"),
    ("mysql", (8,), "storage_engine", "renamed to default_storage_engine"),
    ("mysql", (8,), "language", "renamed to lc_messages"),
    ("mysql", (8, 4), "expire_logs_days", "renamed to binlog_expire_logs_seconds (seconds, not days)"),
    ("mysql", (8, 4), "default_authentication_plugin", "renamed to authentication_policy"),
    ("mysql", (8, 4), "old new avoid_temporal_upgrade character_set_client_handshake have_openssl have_ssl "
     "skip_host_cache slave_rows_search_algorithms", _GONE),
    ("mysql", (8, 4), "relay_log_info_file master_info_file", "replication always keeps its positions in tables"),
    ("mysql", (9,), "innodb_log_file_size", "renamed to innodb_redo_log_capacity (the size of all files together)"),
    ("mysql", (9,), "innodb_log_files_in_group", "innodb_redo_log_capacity sets the size of all files together"),
    ("mysql", (9,), "innodb_undo_tablespaces", "there are always two; CREATE UNDO TABLESPACE adds more"),
    ("mysql", (9,), "temptable_use_mmap", "temptable_max_mmap=0 turns it off"),
    ("mysql", (), "thread_pool_size thread_pool_max_threads thread_pool_idle_timeout innodb_encrypt_tables "
     "slave_parallel_threads tmp_memory_table_size innodb_lru_flush_size use_stat_tables join_cache_level "
     "optimizer_use_condition_selectivity",
     "an option of MariaDB servers"),
    ("mariadb", (10,), "thread_concurrency innodb_additional_mem_pool_size innodb_use_sys_malloc "
     "innodb_mirrored_log_groups innodb_support_xa innodb_checksums engine_condition_pushdown timed_mutexes "
     "max_long_data_size skip_bdb innodb_buffer_pool_populate innodb_use_fallocate innodb_use_trim "
     "innodb_cleaner_lsn_age_factor multi_range_count", _GONE),
    ("mariadb", (10,), "innodb_locks_unsafe_for_binlog", "transaction_isolation=READ-COMMITTED locks as it did"),
    ("mariadb", (10,), "innodb_stats_sample_pages", "renamed to innodb_stats_transient_sample_pages"),
    ("mariadb", (), "tx_isolation", "as an option it is called transaction_isolation"),
    ("mariadb", (), "tx_read_only", "as an option it is called transaction_read_only"),
    ("mariadb", (10, 6), "innodb_file_format innodb_file_format_check innodb_file_format_max innodb_large_prefix",
     "every table has the newest format, with long index prefixes"),
    ("mariadb", (10, 6), "innodb_undo_logs innodb_rollback_segments", "there are always 128 rollback segments"),
    ("mariadb", (10, 6), "innodb_adaptive_max_sleep_delay innodb_concurrency_tickets innodb_thread_sleep_delay "
     "innodb_replication_delay innodb_background_scrub_data_interval innodb_background_scrub_data_check_interval "
     "innodb_background_scrub_data_compressed innodb_background_scrub_data_uncompressed innodb_scrub_log "
     "innodb_scrub_log_speed innodb_log_optimize_ddl innodb_force_load_corrupted innodb_version "
     "wsrep_replicate_myisam innodb_idle_flush_pct", _GONE),
    ("mariadb", (11,), "innodb_change_buffer_max_size innodb_defragment innodb_defragment_fill_factor "
     "innodb_defragment_fill_factor_n_recs innodb_defragment_frequency innodb_defragment_n_pages "
     "innodb_defragment_stats_accuracy max_tmp_tables date_format datetime_format time_format debug_no_thread_alarm",
     _GONE),
    ("mariadb", (11,), "wsrep_causal_reads", "renamed to wsrep_sync_wait"),
    ("mariadb", (), "innodb_dedicated_server", "an option of MySQL servers; set innodb_buffer_pool_size and "
     "innodb_log_file_size instead"),
    ("mariadb", (), "innodb_redo_log_capacity", "an option of MySQL servers; set innodb_log_file_size instead"),
    ("mariadb", (), "default_authentication_plugin authentication_policy internal_tmp_mem_storage_engine "
     "log_error_verbosity log_timestamps replica_parallel_workers replica_parallel_type mysqlx "
     "binlog_transaction_dependency_tracking temptable_max_ram temptable_max_mmap", "an option of MySQL servers"),
    ("mariadb", (10, 5), "replica_preserve_commit_order slave_preserve_commit_order slave_parallel_type",
     "an option of MySQL servers; slave_parallel_mode and slave_parallel_threads are MariaDB's"),
)  # fmt: skip
# Options that both vendors removed long ago.
_LONG_AGO = {
    "set_variable": "removed; write the variable as an option: name = value",
    "key_buffer": "renamed to key_buffer_size", "sort_buffer": "renamed to sort_buffer_size",
    "record_buffer": "renamed to read_buffer_size", "thread_cache": "renamed to thread_cache_size",
    "table_cache": "renamed to table_open_cache", "myisam_recover": "renamed to myisam_recover_options",
    "log": "renamed to general_log and general_log_file", "log_update": "the binlog replaces it: log_bin",
    "log_slow_queries": "renamed to slow_query_log and slow_query_log_file",
    "skip_locking": "renamed to skip_external_locking", "enable_locking": "renamed to external_locking",
    "default_table_type": "renamed to default_storage_engine", "table_type": "renamed to default_storage_engine",
    "default_character_set": "renamed to character_set_server", "default_collation": "renamed to collation_server",
    "innodb_file_io_threads": "renamed to innodb_read_io_threads and innodb_write_io_threads",
    "thread_concurrency": "removed", "innodb_additional_mem_pool_size": "removed", "innodb_use_sys_malloc": "removed",
    "innodb_mirrored_log_groups": "removed", "engine_condition_pushdown": "removed", "timed_mutexes": "removed",
    "max_long_data_size": "removed; max_allowed_packet limits it", "skip_bdb": "removed: there is no such engine",
    "skip_thread_priority": "removed", "bdb_cache_size": "removed: there is no such engine",
    "innodb_log_arch_dir": "removed", "innodb_log_archive": "removed",
}  # fmt: skip
# Prefixes of the other vendor's options.
_OTHERS = {
    "mysql": ("MariaDB", ("aria_", "wsrep_", "thread_pool_", "server_audit_", "feedback", "gtid_domain_id")),
    "mariadb": (
        "MySQL",
        ("group_replication_", "mysqlx", "innodb_redo_log_", "innodb_log_spin_", "clone_", "keyring_"),
    ),
}


def explanation(vendor: str, version: Version, name: str) -> str:
    """Return the explanation of an option that a version of this vendor does not have; empty if unknown.

    ``version`` () is the newest version. ``name`` is the option's normal name.
    """
    rows = [row for row in _ROWS if row[0] == vendor and name in row[2].split()]
    for _, since, _, fate in rows:
        if not version or since <= version:
            return fate if not since else f"{fate} (in {vendor} {'.'.join(map(str, since))} or before)"
    if name in _LONG_AGO:
        return _LONG_AGO[name]
    if name.startswith("pxc_"):
        return "an option of Percona XtraDB Cluster"
    other, prefixes = _OTHERS.get(vendor, ("", ()))
    return f"an option of {other} servers" if name.startswith(prefixes) else ""
