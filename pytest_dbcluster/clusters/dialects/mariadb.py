"""MariaDB's dialect: programs, options, statuses and statements. Data only."""

from __future__ import annotations

from pytest_dbcluster.clusters.dialects.dialect import Dialect, GaleraDialect, ReplicationDialect, SemiSyncDialect

# A dump of the buffer pool at shutdown and its load at start would warm the caches of only some variants.
PINNED = {
    "bind_address": "127.0.0.1",
    "skip_name_resolve": "ON",
    "default_storage_engine": "InnoDB",
    "binlog_format": "ROW",
    "innodb_buffer_pool_dump_at_shutdown": "OFF",
    "innodb_buffer_pool_load_at_startup": "OFF",
}
# The workload account must not have administrator rights: they would let it write where read_only is ON.
_LOAD_RIGHTS = (
    "SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, INDEX, ALTER, REFERENCES, RELOAD, PROCESS, EXECUTE, "
    "CREATE TEMPORARY TABLES, LOCK TABLES, CREATE VIEW, SHOW VIEW, CREATE ROUTINE, ALTER ROUTINE, TRIGGER"
)
# Tables keep their character set; servers sample statistics while a data set is populated.
SHAPING = (
    "character_set_server",
    "collation_server",
    "default_storage_engine",
    "innodb_default_row_format",
    "innodb_file_per_table",
    "innodb_fill_factor",
    "innodb_stats_persistent",
    "innodb_stats_persistent_sample_pages",
)
# A populating server does not flush; the clean shutdown at the end makes the data set durable.
POPULATING = {
    "innodb_flush_log_at_trx_commit": "0",
    "innodb_doublewrite": "OFF",
    "innodb_io_capacity": "20000",
    "innodb_io_capacity_max": "40000",
}
_ACCOUNTS = (
    "CREATE USER '{user}'@'%' IDENTIFIED BY '{password}'",
    "GRANT ALL PRIVILEGES ON *.* TO '{user}'@'%' WITH GRANT OPTION",
    "CREATE USER '{user}'@'localhost' IDENTIFIED BY '{password}'",
    "GRANT ALL PRIVILEGES ON *.* TO '{user}'@'localhost' WITH GRANT OPTION",
    "CREATE USER '{load}'@'%' IDENTIFIED BY '{password}'",
    f"GRANT {_LOAD_RIGHTS} ON *.* TO '{{load}}'@'%'",
)

_OF_APPLIERS = frozenset(
    {"slave_domain_parallel_threads", "slave_parallel_mode", "slave_parallel_threads", "slave_parallel_workers"}
)

_REPLICATION = ReplicationDialect(
    every={"gtid_strict_mode": "ON"},
    preset={"log_bin": "binlog", "log_slave_updates": "ON", "relay_log": "relay", "relay_log_recovery": "ON"},
    read_only=("read_only",),
    # From 11.4 on replicas ask for TLS, but our servers have TLS off: see `pinned` below.
    follow="CHANGE MASTER TO MASTER_HOST='{host}', MASTER_PORT={port}, MASTER_USER='{user}', "
    "MASTER_PASSWORD='{password}', MASTER_USE_GTID=slave_pos, MASTER_CONNECT_RETRY=1, MASTER_SSL=0, "
    "MASTER_SSL_VERIFY_SERVER_CERT=0",
    start="START REPLICA",
    status="SHOW REPLICA STATUS",
    reading="slave_io_running",
    applying="slave_sql_running",
    reading_error=("last_io_errno", "last_io_error"),
    applying_error=("last_sql_errno", "last_sql_error"),
    seconds_behind="seconds_behind_master",
    executed="SELECT @@global.gtid_binlog_pos",
    received="gtid_io_pos",
    lacking="SELECT IF(MASTER_GTID_WAIT('{executed}', 0) = 0, '', CONCAT('{executed}, is at ', "
    "IF(@@global.gtid_slave_pos = '', 'none', @@global.gtid_slave_pos)))",
    history="SELECT @@global.gtid_binlog_state",
    # A primary does not count its own transactions in gtid_slave_pos. MASTER_DEMOTE_TO_SLAVE needs 10.10.
    demote="SET GLOBAL gtid_slave_pos = @@global.gtid_binlog_pos",
    # From 12.0 on read_only is a text: https://jira.mariadb.org/browse/MDEV-36425
    health="SELECT 'read_only', IF(CAST(@@global.read_only AS CHAR) IN ('0', 'OFF'), 'OFF', 'ON') UNION ALL "
    "SELECT 'replicating', variable_value FROM information_schema.global_status WHERE variable_name = 'SLAVE_RUNNING'",
    worker_errors="",
    workers="slave_parallel_threads",
    read_at_start=frozenset({"slave_net_timeout", "rpl_semi_sync_slave_enabled"} | _OF_APPLIERS),
    read_by_appliers=_OF_APPLIERS,
)

_SEMISYNC = SemiSyncDialect(
    plugins=(),
    primary="rpl_semi_sync_master_enabled",
    replica="rpl_semi_sync_slave_enabled",
    status="rpl_semi_sync_master_status",
    clients="rpl_semi_sync_master_clients",
    unacknowledged="rpl_semi_sync_master_no_tx",
    wait_point="rpl_semi_sync_master_wait_point",
    wanted="",
)

# A table's file is named after its schema; those of the system and of the undo log have no schema.
TABLE_BYTES = (
    "SELECT COALESCE(SUM(file_size), 0) FROM information_schema.{view} WHERE name LIKE '%/%' "
    "AND SUBSTRING_INDEX(name, '/', 1) NOT IN ('mysql', 'sys', 'dbcluster_control')"
)

MARIADB = Dialect(
    vendor="mariadb",
    server="mariadbd",
    slap="mariadb-slap",
    install=(
        "mariadb-install-db",
        "--no-defaults",
        "--datadir={data}",
        "--tmpdir={directory}",
        "--auth-root-authentication-method=normal",
        "--skip-test-db",
    ),
    upgrade=("mariadb-upgrade", "--skip-write-binlog"),
    # From 11.4 on servers make their own certificate and clients ask for TLS; earlier versions do not.
    pinned={**PINNED, "ssl": "OFF"},
    implied={},
    initial=(
        "innodb_checksum_algorithm",
        "innodb_data_file_path",
        "innodb_page_size",
        "innodb_undo_tablespaces",
        "lower_case_table_names",
    ),
    single_server_options={},
    shaping=(
        *SHAPING,
        "innodb_compression_algorithm",
        "innodb_compression_default",
        "innodb_compression_level",
        "innodb_default_encryption_key_id",
        "innodb_encrypt_tables",
    ),
    populating=POPULATING,
    roomy={"innodb_log_file_size": "1G"},  # 2 million rows, busy machine: 18 and 29 s, without it 37 and 47 s
    plugins=(),
    flush="FLUSH NO_WRITE_TO_BINLOG ENGINE LOGS",
    variables_table="information_schema.global_variables",
    lazy_flush="innodb_flush_log_at_trx_commit",
    log_current="innodb_lsn_current",
    log_flushed="innodb_lsn_flushed",
    create_accounts=_ACCOUNTS,
    drop_others="SELECT CONCAT(QUOTE(user), '@', QUOTE(host)) FROM mysql.global_priv "
    "WHERE user NOT IN ('{user}', '{load}', 'mariadb.sys')",
    variables="SELECT LOWER(variable_name), COALESCE(global_value, default_value, ''), read_only = 'YES', "
    "variable_type, COALESCE(numeric_min_value, ''), COALESCE(numeric_max_value, ''), "
    "COALESCE(enum_value_list, ''), variable_scope FROM information_schema.system_variables ORDER BY 1",
    table_bytes=TABLE_BYTES.format(view="innodb_sys_tablespaces"),
    probed=False,
    control_tls=False,
    memory=400 * 2**20,
    show_defaults=(),
    validate=(),
    plain=("--skip-ssl",),
    replication=_REPLICATION,
    semisync=_SEMISYNC,
    galera=GaleraDialect(
        every={"wsrep_on": "ON"},
        preset={},
        transfer="mariabackup",  # rsync, the default, cannot read a private directory if root started the server
        has_account=True,
        appliers=("wsrep_slave_threads",),
        position=(),
        alone=(),
        not_probed=frozenset(),
        keyless={},
    ),
)
