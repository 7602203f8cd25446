"""MySQL's dialect: programs, options, statuses and statements. Data only."""

from __future__ import annotations

import dataclasses

from pytest_dbcluster.clusters.dialects.dialect import ReplicationDialect, SemiSyncDialect
from pytest_dbcluster.clusters.dialects.mariadb import MARIADB, PINNED, POPULATING, SHAPING, TABLE_BYTES

_OF_APPLIERS = frozenset(
    {"replica_checkpoint_group", "replica_checkpoint_period", "replica_parallel_type", "replica_parallel_workers"}
    | {"replica_pending_jobs_size_max", "replica_preserve_commit_order"}
    | {"slave_parallel_type", "slave_parallel_workers", "slave_preserve_commit_order"}
)

_REPLICATION = ReplicationDialect(
    every={"gtid_mode": "ON", "enforce_gtid_consistency": "ON"},
    preset={"log_bin": "binlog", "log_replica_updates": "ON", "relay_log": "relay", "relay_log_recovery": "ON"},
    read_only=("read_only", "super_read_only"),
    follow="CHANGE REPLICATION SOURCE TO SOURCE_HOST='{host}', SOURCE_PORT={port}, SOURCE_USER='{user}', "
    "SOURCE_PASSWORD='{password}', SOURCE_AUTO_POSITION=1, SOURCE_CONNECT_RETRY=1, SOURCE_RETRY_COUNT=0, "
    "GET_SOURCE_PUBLIC_KEY=1",
    start="START REPLICA",
    status="SHOW REPLICA STATUS",
    reading="replica_io_running",
    applying="replica_sql_running",
    reading_error=("last_io_errno", "last_io_error"),
    applying_error=("last_sql_errno", "last_sql_error"),
    seconds_behind="seconds_behind_source",
    executed="SELECT @@global.gtid_executed",
    received="retrieved_gtid_set",
    lacking="SELECT GTID_SUBTRACT('{executed}', @@global.gtid_executed)",
    history="SELECT @@global.gtid_executed",
    demote="",
    health="SELECT 'read_only', IF(@@global.super_read_only, 'ON', 'OFF') UNION ALL SELECT 'replicating', "
    "IF(EXISTS (SELECT * FROM performance_schema.replication_connection_status WHERE service_state = 'ON') "
    "AND EXISTS (SELECT * FROM performance_schema.replication_applier_status WHERE service_state = 'ON'), 'ON', 'OFF')",
    worker_errors="SELECT DISTINCT last_error_message FROM performance_schema.replication_applier_status_by_worker "
    "WHERE last_error_number <> 0",
    workers="replica_parallel_workers",
    read_at_start=frozenset(
        {"replica_max_allowed_packet", "replica_net_timeout", "rpl_semi_sync_replica_enabled"} | _OF_APPLIERS
    ),
    read_by_appliers=_OF_APPLIERS,
)

_SEMISYNC = SemiSyncDialect(
    plugins=("semisync_source.so", "semisync_replica.so"),
    primary="rpl_semi_sync_source_enabled",
    replica="rpl_semi_sync_replica_enabled",
    status="rpl_semi_sync_source_status",
    clients="rpl_semi_sync_source_clients",
    unacknowledged="rpl_semi_sync_source_no_tx",
    wait_point="rpl_semi_sync_source_wait_point",
    wanted="rpl_semi_sync_source_wait_for_replica_count",
)

DROP_OTHERS = (
    "SELECT CONCAT(QUOTE(user), '@', QUOTE(host)) FROM mysql.user "
    "WHERE user NOT IN ('{user}', '{load}', 'mysql.sys', 'mysql.session', 'mysql.infoschema'{more})"
)

MYSQL = dataclasses.replace(
    MARIADB,
    vendor="mysql",
    server="mysqld",
    slap="mysqlslap",
    install=("mysqld", "--no-defaults", "--initialize-insecure", "--datadir={data}", "--tmpdir={directory}"),
    upgrade=(),
    # secure_file_priv: the built-in default directory may not exist. mysqlx: would open a second, unused port.
    pinned={**PINNED, "secure_file_priv": "NULL", "mysqlx": "OFF"},
    implied={},
    initial=("innodb_data_file_path", "innodb_page_size", "lower_case_table_names"),
    single_server_options={"skip_log_bin": ""},
    shaping=(*SHAPING, "default_table_encryption", "sql_generate_invisible_primary_key"),
    populating={**POPULATING, "performance_schema": "OFF"},
    roomy={},  # a larger log saved nothing for 4 million rows: 24 v 21 s
    plugins=("group_replication.so", "semisync_source.so", "semisync_replica.so", "mysql_clone.so"),
    variables_table="performance_schema.global_variables",
    log_current="innodb_redo_log_current_lsn",
    log_flushed="innodb_redo_log_flushed_to_disk_lsn",
    drop_others=DROP_OTHERS.format(more="", user="{user}", load="{load}"),
    variables="SELECT LOWER(v.variable_name), v.variable_value, 0, UPPER(COALESCE(m.data_type, '')), "
    "COALESCE(m.min_value, ''), COALESCE(m.max_value, ''), '', COALESCE(m.variable_scope, 'GLOBAL') "
    "FROM performance_schema.global_variables v LEFT JOIN performance_schema.variables_metadata m "
    "USING (variable_name) ORDER BY 1",
    table_bytes=TABLE_BYTES.format(view="innodb_tablespaces"),
    probed=True,
    control_tls=True,
    memory=1024 * 2**20,  # a group member, with its message cache, reached 1060 MB in ten minutes
    show_defaults=("--show",),  # passwords are asterisks without it
    # --help ignores unknown options. secure_file_priv: the built-in default directory may not exist.
    validate=("--validate-config", "--log-error-verbosity=2", "--secure-file-priv=NULL", "--skip-log-bin"),
    # Without TLS the client encrypts the password with the server's public key, and must ask for that key.
    plain=("--ssl-mode=DISABLED", "--get-server-public-key"),
    replication=_REPLICATION,
    semisync=_SEMISYNC,
    galera=None,
)
