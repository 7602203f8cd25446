"""Replication and storage counters of a round, from server statuses, and conflict counters from the ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pytest_dbcluster import registry
from pytest_dbcluster.errors import ConfigError

if TYPE_CHECKING:
    from pytest_dbcluster.rounds.ledger import Ledger

# Counter -> the monotonic server statuses, whose difference over a round it is. Vendors and versions use different
# names; the first name that all nodes have is used.
DELTAS: Mapping[str, tuple[str, ...]] = {
    "fsyncs": ("innodb_data_fsyncs",),  # of InnoDB: with its log, without the binlog
    "log_fsyncs": ("innodb_os_log_fsyncs",),
    "log_waits": ("innodb_log_waits",),
    "log_writes": ("innodb_log_writes",),
    "log_bytes": ("innodb_os_log_written",),
    "pages_written": ("innodb_buffer_pool_pages_flushed",),
    "pages_read": ("innodb_buffer_pool_reads",),
    "row_lock_waits": ("innodb_row_lock_waits",),
    "row_lock_time_ms": ("innodb_row_lock_time",),
    "deadlocks": ("innodb_deadlocks", "lock_deadlocks"),
    "rows_inserted": ("innodb_rows_inserted",),
    "rows_read": ("innodb_rows_read",),
    "rows_updated": ("innodb_rows_updated",),
    "binlog_fsyncs": ("binlog_fsyncs",),
    "binlog_bytes": ("binlog_bytes_written",),
    "binlog_commits": ("binlog_commits",),  # MariaDB alone counts commits to the binlog, and their groups
    "binlog_groups": ("binlog_group_commits",),
    "paused_ns": ("wsrep_flow_control_paused_ns",),
    "flow_control_sent": ("wsrep_flow_control_sent",),
    "bf_aborts": ("wsrep_local_bf_aborts",),
    "cert_failures": ("wsrep_local_cert_failures",),
    "certified": ("count_transactions_checked",),
    "conflicts": ("count_conflicts_detected",),
    "replicated": ("wsrep_replicated", "count_transactions_local_proposed"),
    "replicated_bytes": ("wsrep_replicated_bytes",),
    "received": ("wsrep_received", "count_transactions_remote_applied"),
    "rolled_back": ("count_transactions_local_rollback",),
    "local_commits": ("wsrep_local_commits",),
    "causal_reads": ("wsrep_causal_reads",),  # statements that waited for earlier commits (wsrep_sync_wait)
    "semisync_acknowledged": ("rpl_semi_sync_master_yes_tx", "rpl_semi_sync_source_yes_tx"),
    "semisync_unacknowledged": ("rpl_semi_sync_master_no_tx", "rpl_semi_sync_source_no_tx"),
    "semisync_waits": ("rpl_semi_sync_master_tx_waits", "rpl_semi_sync_source_tx_waits"),
    "semisync_wait_us": ("rpl_semi_sync_master_tx_wait_time", "rpl_semi_sync_source_tx_wait_time"),
    "connections": ("connections",),
    "turned_away": ("connection_errors_max_connections",),  # connections above max_connections
    "aborted_connects": ("aborted_connects",),
    "questions": ("questions",),
}
# Every member of a group counts every transaction of the group, so the maximum over the nodes is used, not the sum.
EVERYWHERE = ("certified", "conflicts")
# MySQL has these statuses only with the semisync plugin; a server without the plugin gives 0.
PLUGIN = "semisync_"
# Gauges, and statuses since the server's start: read after the round, the maximum over the nodes.
STATES: Mapping[str, tuple[str, ...]] = {
    "cert_deps_distance": ("wsrep_cert_deps_distance",),
    "cert_queue": ("count_transactions_in_queue",),
    "cert_rows": ("count_transactions_rows_validating",),
    "recv_queue_max": ("wsrep_local_recv_queue_max",),
    "send_queue_max": ("wsrep_local_send_queue_max",),
    "applier_queue": ("count_transactions_remote_in_applier_queue",),
    "appliers": ("wsrep_applier_thread_count",),
    "history_list": ("innodb_history_list_length", "trx_rseg_history_len"),
    "checkpoint_age": ("innodb_checkpoint_age", "redo_log_checkpoint_age"),
    "dirty_pages": ("innodb_buffer_pool_pages_dirty",),
}
_EACH = (
    "fsyncs", "binlog_fsyncs", "log_bytes", "log_writes", "pages_written", "bf_aborts", "conflicts",
    "semisync_wait_us", "causal_reads", "binlog_groups",
)  # fmt: skip
LEDGER = ("abort_share", "retries")  # from the ledger of a workload; all other counters come from the servers
PER_COMMIT = {f"{name}_per_commit": name for name in (*_EACH, "retries")}
PER_ROUND = ("drain_seconds", "paused_share", "abort_share")
NAMES = tuple(sorted({*DELTAS, *STATES, *PER_COMMIT, *PER_ROUND, *LEDGER}))

Reading = list[dict[str, float]]


def deltas(
    before: Reading, after: Reading, *, seconds: float, commits: int | None, ledger: Ledger | None = None
) -> dict[str, float]:
    """Return the counters of two readings, each with the statuses of every node.

    Differences are summed over the nodes, except ``EVERYWHERE``; ``STATES`` are the maximum over the nodes. seconds:
    time between the readings, for ``paused_share``, the mean share of time that a node paused. Counters per commit
    need ``commits`` above 0.
    """
    values: dict[str, float] = {}
    if ledger:
        values |= {"abort_share": ledger.abort_share, "retries": float(ledger.retries)}
    for name, statuses in DELTAS.items():
        if status := _common_status(statuses, (*before, *after)):
            of_nodes = [b[status] - a[status] for a, b in zip(before, after, strict=True)]
            values[name] = max(of_nodes) if name in EVERYWHERE else sum(of_nodes)
    for name, statuses in STATES.items():
        if of_nodes := [reading[status] for reading in after for status in statuses if status in reading]:
            values[name] = max(of_nodes)
    if "paused_ns" in values:
        values["paused_share"] = values["paused_ns"] / 1e9 / seconds / len(after)
    if commits:
        values.update({per: values[name] / commits for per, name in PER_COMMIT.items() if name in values})
    return values


def _common_status(statuses: Sequence[str], readings: Sequence[Mapping[str, float]]) -> str:
    """The first of the statuses that all readings have; empty for none."""
    return next((status for status in statuses if all(status in reading for reading in readings)), "")


def value(counters: Mapping[str, float], name: str, *, load: str) -> float:
    """One counter of a round. Raises ConfigError for an unknown name, or one that workload or servers do not have.

    Semisync counters of servers without the semisync plugin are 0.
    """
    if name not in NAMES:
        raise registry.unknown("counter", name, NAMES)
    if name not in counters:
        if name.startswith(PLUGIN) and PER_COMMIT.get(name, name) not in counters:
            return 0.0
        if PER_COMMIT.get(name, name) in LEDGER and PER_COMMIT.get(name, name) not in counters:
            raise ConfigError(f"counter {name!r}: {load} keeps no ledger of its transactions")
        if name in PER_COMMIT:
            raise ConfigError(f"counter {name!r}: {load} commits nothing, so there is no value per commit")
        statuses = " or ".join({**DELTAS, **STATES}.get(name, (name,)))
        raise ConfigError(f"counter {name!r}: these servers do not have {statuses}")
    return counters[name]
