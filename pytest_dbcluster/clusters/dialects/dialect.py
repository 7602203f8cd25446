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

    reading, applying: columns: whether the receiver, or the applier, runs.
    reading_error, applying_error: columns: number and text of the receiver's, or the applier's, last error.
    """

    every: Mapping[str, str]
    """Options that every node needs; a user may not contradict them."""

    preset: Mapping[str, str]
    """Options of every node that a user may override."""

    read_only: tuple[str, ...]
    """The variables that allow writes only to the appliers: ON on replicas, OFF on a primary."""

    follow: str
    """The statement that points a replica at ``{host}`` and ``{port}``, with ``{user}`` and ``{password}``. The replica
    retries a lost primary every second, forever.
    """

    start: str
    """The statement that starts replication."""

    status: str
    """The statement that returns one row with the columns below; no row on a server that is no replica."""

    reading: str
    applying: str
    reading_error: tuple[str, str]
    applying_error: tuple[str, str]
    seconds_behind: str
    """The column with the replication lag in seconds."""

    executed: str
    """The statement that returns the GTID position up to which a primary has committed."""

    lacking: str
    """The statement that returns what a replica must still apply of ``{executed}``; empty for nothing."""

    errant: str
    """The statement that returns a replica's transactions that its primary does not have; empty for none."""

    health: str
    """The statement that returns the pairs ``read_only`` and ``replicating``, each ON or OFF."""

    worker_errors: str
    """The statement that returns the errors of parallel appliers; empty when the status row has the cause."""

    workers: str
    """The variable with the number of parallel appliers."""

    read_at_start: frozenset[str]
    """Variables that a running replica refuses, or that take effect only after replication restarts."""


@dataclasses.dataclass(frozen=True)
class SemiSyncDialect:
    """One vendor's names for semi-synchronous replication.

    primary, replica: the variables that turn it on, on a primary and on a replica.
    """

    plugins: tuple[str, ...]
    """The plugin libraries; empty when it is built in."""

    primary: str
    replica: str
    status: str
    """The status of a primary that is ON while commits wait for replicas."""

    clients: str
    """The status with the number of replicas that acknowledge."""

    unacknowledged: str
    """The status that counts commits without an acknowledgement."""

    wait_point: str
    """The variable that says at which point a commit waits."""

    wanted: str
    """The variable with the number of replicas that must acknowledge; empty when it is always one."""


@dataclasses.dataclass(frozen=True)
class Dialect:
    """One vendor's programs, options, statuses and statements, for one version.

    server, slap: the names of the server program and of its mysqlslap.
    log_current, log_flushed: the statuses with the positions up to which InnoDB's log is written, and flushed.
    replication, semisync: the names for replication, and for semi-synchronous replication.
    """

    vendor: str
    """``mariadb`` or ``mysql``."""

    server: str
    slap: str
    install: tuple[str, ...]
    """The command line that makes a data directory; ``{data}`` is its path, ``{directory}`` that of the host."""

    pinned: Mapping[str, str]
    """Options of every server, because a measurement must not depend on the host's defaults."""

    implied: Mapping[str, ImpliedOption]
    """Options that this version does not have because its behaviour is fixed, by name."""

    initial: tuple[str, ...]
    """Options that are fixed when a data directory is made; each combination has its own template."""

    single_server_options: Mapping[str, str]
    """Options of the server that makes a template. Its commits must not appear in replication."""

    shaping: tuple[str, ...]
    """Options that change how tables are written to disk or read. A data set is valid only for the same values."""

    populating: Mapping[str, str]
    """Options of a server that populates a data set. It ends with a clean shutdown or is thrown away."""

    roomy: Mapping[str, str]
    """More options for populating, for a disk with room for a large redo log."""

    plugins: tuple[str, ...]
    """The libraries to load into the template's server, so that its list has their variables."""

    flush: str
    """The statement that flushes InnoDB's log on this node only; requires flushing at each commit."""

    lazy_flush: str
    """The variable that must be 1, or ``flush`` writes the log without flushing it."""

    log_current: str
    log_flushed: str
    create_accounts: tuple[str, ...]
    """The statements that create the accounts ``{user}`` (control) and ``{load}`` (workloads)."""

    drop_others: str
    """The statement that lists all other accounts, to be dropped."""

    variables: str
    """The statement that lists the server's variables."""

    table_bytes: str
    """The statement that returns the bytes of the files of all tables that are not the server's own."""

    probed: bool
    """Whether ``variables`` does not say which are read-only; the template's server then sets each to itself."""

    control_tls: bool
    """Whether the control connection needs TLS, because the password may not travel in the clear."""

    memory: int
    """The memory of a server with warm caches, data on disk and the default buffer pool, in bytes."""

    show_defaults: tuple[str, ...]
    """Options of my_print_defaults with which it hides no value."""

    validate: tuple[str, ...]
    """Options with which the server checks its options and ends; empty when --help checks them too."""

    plain: tuple[str, ...]
    """Options of the vendor's clients for no TLS, because connecting is inside the measured time."""

    replication: ReplicationDialect
    semisync: SemiSyncDialect

    @property
    def preset(self) -> dict[str, str]:
        """The pinned options that this version has."""
        return {name: value for name, value in self.pinned.items() if name not in self.implied}
