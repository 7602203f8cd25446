"""Replication and storage counters of a round, from server statuses, and conflict counters from the ledger."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from pytest_dbcluster import registry
from pytest_dbcluster.errors import ConfigError

if TYPE_CHECKING:
    from pytest_dbcluster.rounds.ledger import Ledger


class Nature(enum.Enum):
    """What a counter depends on. This decides whether separate clusters can be compared by it.

    ``WORK`` and ``TIMING`` are counted in each round. The others are read after the round, and include what happened to
    the server before it. Messages print the value of a member.
    """

    WORK = "what the statements ask of the servers"
    TIMING = "when transactions meet"
    GAUGE = "what the server has at the end of the round"
    MAXIMUM = "the largest since the server's start"
    AVERAGE = "the average since the server's start"


# Counter -> monotonic server statuses. The counter is the difference of one status over a round. Vendors and versions
# use different names; the first name that all nodes have is used.
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
    "binlog_commits": ("binlog_commits",),  # only MariaDB counts commits to the binlog, and their groups
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
NATURES: Mapping[str, Nature] = MappingProxyType(
    {
        name: nature
        for nature, names in {
            Nature.WORK: (
                "fsyncs", "fsyncs_per_commit", "log_fsyncs", "log_writes", "log_writes_per_commit", "log_bytes",
                "log_bytes_per_commit", "rows_inserted", "rows_read", "rows_updated", "binlog_fsyncs",
                "binlog_fsyncs_per_commit", "binlog_bytes", "binlog_commits", "certified", "replicated",
                "replicated_bytes", "received", "local_commits", "semisync_acknowledged", "connections",
                "questions",
            ),
            Nature.TIMING: (
                "log_waits", "pages_written", "pages_written_per_commit", "pages_read", "row_lock_waits",
                "row_lock_time_ms", "deadlocks", "binlog_groups", "binlog_groups_per_commit", "paused_ns",
                "paused_share", "flow_control_sent", "bf_aborts", "bf_aborts_per_commit", "cert_failures", "conflicts",
                "conflicts_per_commit", "rolled_back", "semisync_unacknowledged", "semisync_waits", "semisync_wait_us",
                "semisync_wait_us_per_commit", "turned_away", "aborted_connects", "drain_seconds", "abort_share",
                "retries", "retries_per_commit", "causal_reads", "causal_reads_per_commit",
            ),
            Nature.GAUGE: (
                "cert_queue", "cert_rows", "applier_queue", "appliers", "history_list", "checkpoint_age", "dirty_pages",
            ),
            Nature.MAXIMUM: ("recv_queue_max", "send_queue_max"),
            Nature.AVERAGE: ("cert_deps_distance",),
        }.items()
        for name in names
    }
)  # fmt: skip
# Counter -> its meaning in one sentence, for the reference; a counter per commit has that of its counter.
_MEANINGS: Mapping[str, str] = {
    "fsyncs": "fsyncs of InnoDB: of its log and of its data files, without the binlog.",
    "log_fsyncs": "fsyncs of InnoDB's log.",
    "log_waits": "Waits for room in InnoDB's log buffer.",
    "log_writes": "Writes to InnoDB's log file.",
    "log_bytes": "Bytes written to InnoDB's log.",
    "pages_written": "Pages that the buffer pool wrote to the data files.",
    "pages_read": "Pages that InnoDB read from disk, because the buffer pool did not have them.",
    "row_lock_waits": "Waits of a transaction for a row lock.",
    "row_lock_time_ms": "Milliseconds that transactions waited for row locks.",
    "deadlocks": "Deadlocks between transactions of one node; InnoDB rolls one of them back.",
    "rows_inserted": "Rows that InnoDB inserted.",
    "rows_read": "Rows that InnoDB read.",
    "rows_updated": "Rows that InnoDB updated.",
    "binlog_fsyncs": "fsyncs of the binlog.",
    "binlog_bytes": "Bytes written to the binlog.",
    "binlog_commits": "Transactions written to the binlog; only MariaDB counts them.",
    "binlog_groups": "Group commits of the binlog: transactions that were written together; only MariaDB counts them.",
    "paused_ns": "Nanoseconds that nodes paused replication for flow control.",
    "paused_share": "The mean share of the time that a node paused replication for flow control.",
    "flow_control_sent": "Requests of a node that the others pause, because its receive queue is full.",
    "bf_aborts": "Local transactions that a replicated transaction aborted, because both wrote the same row.",
    "cert_failures": "Transactions that failed certification.",
    "certified": "Transactions that the group certified; the maximum over the members.",
    "conflicts": "Transactions that the group's certification refused; the maximum over the members.",
    "replicated": "Transactions that nodes sent to the others.",
    "replicated_bytes": "Bytes of the transactions that nodes sent to the others.",
    "received": "Transactions of other nodes that a node received (Galera) or applied (Group Replication).",
    "rolled_back": "Local transactions that members of the group rolled back, because certification refused them.",
    "local_commits": "Transactions that clients committed on a node of Galera.",
    "causal_reads": "Statements that waited until earlier commits of other nodes were applied (wsrep_sync_wait).",
    "semisync_acknowledged": "Commits that a replica acknowledged.",
    "semisync_unacknowledged": "Commits that no replica acknowledged in time.",
    "semisync_waits": "Waits of a transaction for a replica's acknowledgement.",
    "semisync_wait_us": "Microseconds that transactions waited for a replica's acknowledgement.",
    "connections": "Attempts to connect to a server, successful or not.",
    "turned_away": "Connections refused because max_connections was reached.",
    "aborted_connects": "Attempts to connect that failed.",
    "questions": "Statements that clients sent.",
    "cert_deps_distance": "The mean distance between transactions that can be applied in parallel.",
    "cert_queue": "Transactions in the queue for certification.",
    "cert_rows": "Rows in the certification database, which later transactions are checked against.",
    "recv_queue_max": "The longest queue of received transactions that wait to be applied.",
    "send_queue_max": "The longest queue of transactions that wait to be sent.",
    "applier_queue": "Transactions of other members that wait to be applied.",
    "appliers": "Applier threads of Galera.",
    "history_list": "Old row versions that purge has not removed: the length of InnoDB's history list.",
    "checkpoint_age": "Bytes of InnoDB's log that are newer than its last checkpoint.",
    "dirty_pages": "Pages of the buffer pool that are changed and not yet written.",
    "drain_seconds": "Seconds after the workload's end until all nodes have applied all writes.",
    "abort_share": "The share of the workload's attempts that ended in an error, 0 to 1.",
    "retries": "Attempts of the workload after the first of each transaction.",
}  # fmt: skip
MEANINGS: Mapping[str, str] = MappingProxyType(
    {
        name: _MEANINGS.get(name) or f"{_MEANINGS[PER_COMMIT[name]].rstrip('.')}, per committed transaction."
        for name in NAMES
    }
)
# Counters of a round that show the same cause as a status that is read after it.
INSTEAD: Mapping[str, tuple[str, ...]] = {
    "cert_deps_distance": ("bf_aborts_per_commit", "conflicts_per_commit"),
    "cert_queue": ("conflicts_per_commit", "drain_seconds"),
    "cert_rows": ("certified", "conflicts_per_commit"),
    "recv_queue_max": ("paused_share", "drain_seconds"),
    "send_queue_max": ("paused_share", "drain_seconds"),
    "applier_queue": ("drain_seconds",),
    "checkpoint_age": ("pages_written_per_commit",),
    "dirty_pages": ("pages_written_per_commit",),
}

Reading = list[dict[str, float]]


def deltas(
    before: Reading, after: Reading, *, seconds: float, commits: int | None, ledger: Ledger | None = None
) -> dict[str, float]:
    """Return the counters of two readings, each with the statuses of every node.

    Differences are summed over the nodes, except ``EVERYWHERE``. ``STATES`` are the maximum over the nodes. ``seconds``
    is the time between the readings. ``paused_share`` is the mean share of this time that a node paused. Counters per
    commit need ``commits`` above 0.
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


def not_across(name: str) -> str:
    """Why this counter cannot be compared between separate clusters, and which can; empty for a counter of a round."""
    nature = NATURES[name]
    if nature in (Nature.WORK, Nature.TIMING):
        return ""
    instead = " or ".join(INSTEAD.get(name, ()))
    counted = f"{instead}, counted in each round, or " if instead else ""
    return (
        f"{name} is {nature.value}, so it depends on what each cluster did before, and equal clusters differ in it; "
        f"compare {counted}variants that share a cluster (options that a running server can change)"
    )


def _common_status(statuses: Sequence[str], readings: Sequence[Mapping[str, float]]) -> str:
    """The first of the statuses that all readings have; empty if no status is in all readings."""
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
