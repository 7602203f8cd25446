"""Dialect: how one vendor's servers of one version name programs, options, statuses and statements."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from pytest_dbcluster.clusters.dialects.implied_options import ImpliedOption


@dataclasses.dataclass(frozen=True)
class ReplicationDialect:
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
class SemiSyncDialect:
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


@dataclasses.dataclass(frozen=True)
class Dialect:
    """The words of one vendor's servers of one version.

    Programs: ``server``; ``slap``, its mysqlslap; ``install`` makes a data directory, ``{data}`` is its path.
    pinned: options every server of ours starts with, because a measurement must not depend on the host.
    implied: options that this version does not have because it always behaves so.
    initial: options that are fixed when a data directory is made; they select another template.
    alone: options of the server that makes a template, whose commits must leave no trace for replication.
    shaping: options that decide how a table that is made lies on disk, or how it is read; others work on any tables.
    populating: options of a server on which a data set is made, and which is shut down in good order or thrown away.
    roomy: more of them, where the disk has room for a log that is rarely full.
    plugins: libraries whose variables belong to the list that options are checked against.
    flush: makes InnoDB's log durable on this node alone, where it is flushed at each commit.
    lazy_flush: the variable that, when it is not 1, makes ``flush`` write the log without flushing it.
    log_current, log_flushed: the statuses that say how far InnoDB's log is written and flushed.
    variables: lists the server's variables; without information on what is read-only, ``probed`` is True and each
    variable is set to itself on a server that nobody uses.
    control_tls: whether the control connection needs TLS, because the password may not travel in the clear.
    memory: bytes of a server with its caches warm and its data on disk, with the buffer pool that is preset.
    plain: options of the vendor's clients for a connection without TLS: connecting is inside the measured time.
    replication, semisync: the words of following a primary, and of waiting for replicas at commit.
    """

    vendor: str
    server: str
    slap: str
    install: tuple[str, ...]
    pinned: Mapping[str, str]
    implied: Mapping[str, ImpliedOption]
    initial: tuple[str, ...]
    alone: Mapping[str, str]
    shaping: tuple[str, ...]
    populating: Mapping[str, str]
    roomy: Mapping[str, str]
    plugins: tuple[str, ...]
    flush: str
    lazy_flush: str
    log_current: str
    log_flushed: str
    create_accounts: tuple[str, ...]
    drop_others: str
    variables: str
    probed: bool
    control_tls: bool
    memory: int
    plain: tuple[str, ...]
    replication: ReplicationDialect
    semisync: SemiSyncDialect

    @property
    def preset(self) -> dict[str, str]:
        """The pinned options that this version has."""
        return {name: value for name, value in self.pinned.items() if name not in self.implied}
