"""The vendors' words of replication: statements, statuses, options. Data, which flavour.py hands out by version."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping


@dataclasses.dataclass(frozen=True)
class Replication:
    """How servers of one vendor follow a primary by GTID.

    Statements hold ``{executed}``, the primary's position as ``executed`` says it, and ``{primary}``, its server_id.

    every: options of every node, whatever its version presets. preset: those that a user may set otherwise.
    read_only: the variables that keep everybody but the appliers from writing: ON on replicas, OFF on a primary.
    follow: points a replica at ``{host}``, ``{port}`` with ``{user}``, ``{password}``; a lost primary is tried again
    every second, without an end.
    status: one row of the columns named below; no row on a server that follows nobody.
    executed: the position up to which a primary has committed.
    lacking: what a replica has still to apply of ``{executed}``; empty for nothing.
    errant: transactions of a replica that its primary has not; empty for none.
    health: pairs: whether the server is ``read_only``, and whether it is ``replicating``.
    worker_errors: the errors of parallel appliers, where the status row does not hold the cause.
    workers: the variable that says how many transactions a replica applies in parallel.
    read_at_start: variables that a running replica refuses, or takes and does not follow until it is started again.
    """

    every: Mapping[str, str]
    preset: Mapping[str, str]
    read_only: tuple[str, ...]
    follow: str
    start: str
    status: str
    reading: str
    applying: str
    reading_error: tuple[str, str]
    applying_error: tuple[str, str]
    seconds_behind: str
    executed: str
    lacking: str
    errant: str
    health: str
    worker_errors: str
    workers: str
    read_at_start: frozenset[str]


@dataclasses.dataclass(frozen=True)
class SemiSync:
    """Semi-synchronous replication in the words of one vendor.

    plugins: libraries that hold it; none where it is built in. primary, replica: the variables that turn it on.
    status, clients, unacknowledged: statuses of a primary: on, replicas that acknowledge, commits without one.
    wait_point: the variable that says when a commit waits. wanted: the one that says for how many replicas it does,
    empty where that is always one.
    """

    plugins: tuple[str, ...]
    primary: str
    replica: str
    status: str
    clients: str
    unacknowledged: str
    wait_point: str
    wanted: str


MARIADB = Replication(
    every={"gtid_strict_mode": "ON"},
    preset={"log_bin": "binlog", "log_slave_updates": "ON", "relay_log": "relay", "relay_log_recovery": "ON"},
    read_only=("read_only",),
    # From 11.4 on replicas ask for TLS, and our servers have none: see flavour.py.
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
    lacking="SELECT IF(MASTER_GTID_WAIT('{executed}', 0) = 0, '', CONCAT('{executed}, is at ', "
    "IF(@@global.gtid_slave_pos = '', 'none', @@global.gtid_slave_pos)))",
    # One GTID, domain-server-sequence, for each server that wrote.
    errant="SELECT TRIM(BOTH ',' FROM REGEXP_REPLACE(CONCAT(',', @@global.gtid_binlog_state), "
    "',[0-9]+-{primary}-[0-9]+', ''))",
    health="SELECT 'read_only', IF(@@global.read_only, 'ON', 'OFF') UNION ALL SELECT 'replicating', variable_value "
    "FROM information_schema.global_status WHERE variable_name = 'SLAVE_RUNNING'",
    worker_errors="",
    workers="slave_parallel_threads",
    read_at_start=frozenset(
        {"slave_domain_parallel_threads", "slave_net_timeout", "slave_parallel_mode", "slave_parallel_threads"}
        | {"slave_parallel_workers", "rpl_semi_sync_slave_enabled"}
    ),
)

MYSQL = Replication(
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
    lacking="SELECT GTID_SUBTRACT('{executed}', @@global.gtid_executed)",
    errant="SELECT GTID_SUBTRACT(@@global.gtid_executed, '{executed}')",
    health="SELECT 'read_only', IF(@@global.super_read_only, 'ON', 'OFF') UNION ALL SELECT 'replicating', "
    "IF(EXISTS (SELECT * FROM performance_schema.replication_connection_status WHERE service_state = 'ON') "
    "AND EXISTS (SELECT * FROM performance_schema.replication_applier_status WHERE service_state = 'ON'), 'ON', 'OFF')",
    worker_errors="SELECT DISTINCT last_error_message FROM performance_schema.replication_applier_status_by_worker "
    "WHERE last_error_number <> 0",
    workers="replica_parallel_workers",
    read_at_start=frozenset(
        {"replica_checkpoint_group", "replica_checkpoint_period", "replica_max_allowed_packet", "replica_net_timeout"}
        | {"replica_parallel_type", "replica_parallel_workers", "replica_pending_jobs_size_max"}
        | {"replica_preserve_commit_order", "rpl_semi_sync_replica_enabled"}
        | {"slave_parallel_type", "slave_parallel_workers", "slave_preserve_commit_order"}
    ),
)

MARIADB_SEMISYNC = SemiSync(
    plugins=(),
    primary="rpl_semi_sync_master_enabled",
    replica="rpl_semi_sync_slave_enabled",
    status="rpl_semi_sync_master_status",
    clients="rpl_semi_sync_master_clients",
    unacknowledged="rpl_semi_sync_master_no_tx",
    wait_point="rpl_semi_sync_master_wait_point",
    wanted="",
)

MYSQL_SEMISYNC = SemiSync(
    plugins=("semisync_source.so", "semisync_replica.so"),
    primary="rpl_semi_sync_source_enabled",
    replica="rpl_semi_sync_replica_enabled",
    status="rpl_semi_sync_source_status",
    clients="rpl_semi_sync_source_clients",
    unacknowledged="rpl_semi_sync_source_no_tx",
    wait_point="rpl_semi_sync_source_wait_point",
    wanted="rpl_semi_sync_source_wait_for_replica_count",
)
