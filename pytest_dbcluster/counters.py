"""Replication and storage counters of a round, as deltas summed over the nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytest_dbcluster import registry
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.node import Node

# Monotonic server statuses: name of the counter -> status it is the delta of.
DELTAS = {
    "fsyncs": "innodb_data_fsyncs",
    "log_waits": "innodb_log_waits",
    "log_writes": "innodb_log_writes",
    "log_bytes": "innodb_os_log_written",
    "pages_written": "innodb_buffer_pool_pages_flushed",
    "pages_read": "innodb_buffer_pool_reads",
    "row_lock_waits": "innodb_row_lock_waits",
    "row_lock_time_ms": "innodb_row_lock_time",
    "deadlocks": "innodb_deadlocks",
    "rows_inserted": "innodb_rows_inserted",
    "rows_read": "innodb_rows_read",
    "rows_updated": "innodb_rows_updated",
    "paused_ns": "wsrep_flow_control_paused_ns",
    "flow_control_sent": "wsrep_flow_control_sent",
    "bf_aborts": "wsrep_local_bf_aborts",
    "cert_failures": "wsrep_local_cert_failures",
    "replicated": "wsrep_replicated",
    "replicated_bytes": "wsrep_replicated_bytes",
    "received": "wsrep_received",
    "local_commits": "wsrep_local_commits",
    "connections": "connections",
    "questions": "questions",
}
# What a server says of this moment or of its whole life: read after the round, the largest over the nodes.
STATES = {
    "cert_deps_distance": "wsrep_cert_deps_distance",
    "recv_queue_max": "wsrep_local_recv_queue_max",
    "send_queue_max": "wsrep_local_send_queue_max",
    "appliers": "wsrep_applier_thread_count",
    "history_list": "innodb_history_list_length",
    "checkpoint_age": "innodb_checkpoint_age",
    "dirty_pages": "innodb_buffer_pool_pages_dirty",
}
_EACH = ("fsyncs", "log_bytes", "log_writes", "pages_written", "bf_aborts")
PER_COMMIT = {f"{name}_per_commit": name for name in _EACH}
PER_ROUND = ("drain_seconds", "paused_share")
NAMES = tuple(sorted([*DELTAS, *STATES, *PER_COMMIT, *PER_ROUND]))
_WANTED = ", ".join(f"'{name}'" for name in sorted({*DELTAS.values(), *STATES.values()}))

Reading = list[dict[str, float]]


def read(nodes: Sequence[Node]) -> Reading:
    """The statuses of each node now; what a release lacks is missing."""
    statement = f"SHOW GLOBAL STATUS WHERE LOWER(variable_name) IN ({_WANTED})"
    return [{name: float(value) for name, value in node.pairs(statement).items()} for node in nodes]


def deltas(before: Reading, after: Reading, *, seconds: float, commits: int | None) -> dict[str, float]:
    """The counters of a round of ``seconds``; those per commit only when the load committed anything."""
    found: dict[str, float] = {}
    for name, status in DELTAS.items():
        if all(status in reading for reading in (*before, *after)):
            found[name] = sum(b[status] - a[status] for a, b in zip(before, after, strict=True))
    for name, status in STATES.items():
        values = [reading[status] for reading in after if status in reading]
        if values:
            found[name] = max(values)
    if "paused_ns" in found:
        found["paused_share"] = found["paused_ns"] / 1e9 / seconds / len(after)
    if commits:
        found.update({per: found[name] / commits for per, name in PER_COMMIT.items() if name in found})
    return found


def comparable(counters: Mapping[str, float], name: str, *, load: str, commits: int | None) -> float:
    """One counter of a round for a ratio: a count gets half an event more, so that none at all has a logarithm.

    Raises what ``value`` raises. Shares and seconds, which are no counts, get a thousandth more.
    """
    found = value(counters, name, load=load)
    if name in PER_ROUND:
        return found + 1e-3
    return found + 0.5 / (commits or 1) if name in PER_COMMIT else found + 0.5


def value(counters: Mapping[str, float], name: str, *, load: str) -> float:
    """One counter of a round. Raises ConfigError for a name that does not exist or that this load cannot have."""
    if name not in NAMES:
        raise registry.unknown("counter", name, NAMES)
    if name not in counters:
        if name in PER_COMMIT:
            raise ConfigError(f"counter {name!r}: {load} commits nothing, so there is no value per commit")
        raise ConfigError(f"counter {name!r}: these servers do not have {DELTAS.get(name, STATES.get(name, name))}")
    return counters[name]
