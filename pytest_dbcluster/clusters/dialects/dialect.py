"""Dialect: how one vendor's servers of one version name programs, options, statuses and statements."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from pytest_dbcluster.clusters.dialects.implied_options import ImpliedOption


@dataclasses.dataclass(frozen=True)
class ReplicationDialect:
    """How one vendor's servers replicate by GTID: options, statements and statuses.

    Statements may contain ``{executed}``, the result of the statement ``executed`` on the primary, and ``{primary}``,
    the primary's server_id.

    every: options that every node needs; a user may not contradict them.
    preset: options of every node that a user may override.
    read_only: the variables that allow writes only to the appliers: ON on replicas, OFF on a primary.
    follow: the statement that points a replica at ``{host}`` and ``{port}``, with ``{user}`` and ``{password}``. The
        replica retries a lost primary every second, forever.
    start: the statement that starts replication.
    status: the statement that returns one row with the columns below; no row on a server that is no replica.
    reading, applying: columns: whether the receiver, or the applier, runs.
    reading_error, applying_error: columns: number and text of the receiver's, or the applier's, last error.
    seconds_behind: the column with the replication lag in seconds.
    executed: the statement that returns the GTID position up to which a primary has committed.
    lacking: the statement that returns what a replica must still apply of ``{executed}``; empty for nothing.
    errant: the statement that returns a replica's transactions that its primary does not have; empty for none.
    health: the statement that returns the pairs ``read_only`` and ``replicating``, each ON or OFF.
    worker_errors: the statement that returns the errors of parallel appliers; empty when the status row has the cause.
    workers: the variable with the number of parallel appliers.
    read_at_start: variables that a running replica refuses, or that take effect only after replication restarts.
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
    """One vendor's names for semi-synchronous replication.

    plugins: the plugin libraries; empty when it is built in.
    primary, replica: the variables that turn it on, on a primary and on a replica.
    status: the status of a primary that is ON while commits wait for replicas.
    clients: the status with the number of replicas that acknowledge.
    unacknowledged: the status that counts commits without an acknowledgement.
    wait_point: the variable that says at which point a commit waits.
    wanted: the variable with the number of replicas that must acknowledge; empty when it is always one.
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
    """One vendor's programs, options, statuses and statements, for one version.

    vendor: ``mariadb`` or ``mysql``.
    server, slap: the names of the server program and of its mysqlslap.
    install: the command line that makes a data directory; ``{data}`` is its path, ``{directory}`` that of the host.
    pinned: options of every server, because a measurement must not depend on the host's defaults.
    implied: options that this version does not have because its behaviour is fixed, by name.
    initial: options that are fixed when a data directory is made; each combination has its own template.
    alone: options of the server that makes a template. Its commits must not appear in replication.
    shaping: options that change how tables are written to disk or read. A data set is valid only for the same values.
    populating: options of a server that populates a data set. It ends with a clean shutdown or is thrown away.
    roomy: more options for populating, for a disk with room for a large redo log.
    plugins: the libraries to load into the template's server, so that its list has their variables.
    flush: the statement that flushes InnoDB's log on this node only; requires flushing at each commit.
    lazy_flush: the variable that must be 1, or ``flush`` writes the log without flushing it.
    log_current, log_flushed: the statuses with the positions up to which InnoDB's log is written, and flushed.
    create_accounts: the statements that create the accounts ``{user}`` (control) and ``{load}`` (workloads).
    drop_others: the statement that lists all other accounts, to be dropped.
    variables: the statement that lists the server's variables.
    table_bytes: the statement that returns the bytes of the files of all tables that are not the server's own.
    probed: whether ``variables`` does not say which are read-only; the template's server then sets each to itself.
    control_tls: whether the control connection needs TLS, because the password may not travel in the clear.
    memory: the memory of a server with warm caches, data on disk and the default buffer pool, in bytes.
    show_defaults: options of my_print_defaults with which it hides no value.
    validate: options with which the server checks its options and ends; empty when --help checks them too.
    plain: options of the vendor's clients for no TLS, because connecting is inside the measured time.
    replication, semisync: the names for replication, and for semi-synchronous replication.
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
    table_bytes: str
    probed: bool
    control_tls: bool
    memory: int
    show_defaults: tuple[str, ...]
    validate: tuple[str, ...]
    plain: tuple[str, ...]
    replication: ReplicationDialect
    semisync: SemiSyncDialect

    @property
    def preset(self) -> dict[str, str]:
        """The pinned options that this version has."""
        return {name: value for name, value in self.pinned.items() if name not in self.implied}
