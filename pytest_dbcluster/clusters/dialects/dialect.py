"""Dialect: the programs, options, statuses and statements of one vendor's servers of one version."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from pytest_dbcluster.clusters.dialects.implied_options import ImpliedOption


@dataclasses.dataclass(frozen=True)
class ReplicationDialect:
    """Replication by GTID of one vendor's servers: options, statements and statuses.

    The statement ``lacking`` contains ``{executed}``, a GTID position.
    """

    every: Mapping[str, str]
    """Options that every node needs; a user may not contradict them."""

    preset: Mapping[str, str]
    """Options of every node that a user may override."""

    read_only: tuple[str, ...]
    """The variables that allow writes only to the appliers: ON on replicas, OFF on a primary."""

    follow: str
    """The statement that points a replica at ``{host}`` and ``{port}``, with ``{user}`` and ``{password}``. With it,
    the replica retries a lost primary every second, forever.
    """

    start: str
    """The statement that starts replication."""

    status: str
    """The statement that returns one row with the columns below; no row on a server that is not a replica."""

    reading: str
    """The column that says whether the receiver runs."""

    applying: str
    """The column that says whether the applier runs."""

    reading_error: tuple[str, str]
    """The columns with the number and text of the receiver's last error."""

    applying_error: tuple[str, str]
    """The columns with the number and text of the applier's last error."""

    seconds_behind: str
    """The column with the replication lag in seconds."""

    executed: str
    """The statement that returns the GTID position up to which a primary has committed."""

    received: str
    """The column with the GTID position up to which the receiver has received."""

    lacking: str
    """The statement that returns the part of ``{executed}`` that a replica must still apply; empty for nothing."""

    history: str
    """The statement that returns all GTIDs of a server, for ``gtid_sets.lacking``."""

    demote: str
    """The statement after which a former primary may follow another server from its own position; empty for none."""

    health: str
    """The statement that returns the pairs ``read_only`` and ``replicating``, each ON or OFF."""

    worker_errors: str
    """The statement that returns the errors of parallel appliers; empty if the status row has the cause."""

    workers: str
    """The variable with the number of parallel appliers."""

    read_at_start: frozenset[str]
    """Variables that a running replica refuses, or that take effect only after replication restarts."""

    read_by_appliers: frozenset[str]
    """Those of ``read_at_start`` for which a restart of the appliers suffices."""


@dataclasses.dataclass(frozen=True)
class SemiSyncDialect:
    """One vendor's names for semi-synchronous replication."""

    plugins: tuple[str, ...]
    """The plugin libraries; empty if it is built in."""

    primary: str
    """The variable that turns it on on a primary."""

    replica: str
    """The variable that turns it on on a replica."""

    status: str
    """The status of a primary that is ON while commits wait for replicas."""

    clients: str
    """The status with the number of replicas that acknowledge."""

    unacknowledged: str
    """The status that counts commits without an acknowledgement."""

    wait_point: str
    """The variable with the point at which a commit waits."""

    wanted: str
    """The variable with the number of replicas that must acknowledge; empty if it is always one."""


@dataclasses.dataclass(frozen=True)
class GaleraDialect:
    """Galera of one vendor's servers: options, full state transfers (SST), and names of variables."""

    every: Mapping[str, str]
    """Options that every node needs, in addition to those that the topology sets for all vendors."""

    preset: Mapping[str, str]
    """Options of every node that a user may override."""

    transfer: str
    """The method of full state transfers, ``wsrep_sst_method``."""

    has_account: bool
    """Whether a transfer needs the account of ``wsrep_sst_auth``."""

    appliers: tuple[str, ...]
    """The names of the variable with the number of applier threads; the first one is set."""

    position: tuple[str, ...]
    """Options with which ``--wsrep-recover`` writes the position to the log."""

    alone: tuple[str, ...]
    """Options of a template's first start, without Galera, which makes its accounts; empty for no such start."""

    not_probed: frozenset[str]
    """Variables that no probe may set to their own value, because this leaves or joins a cluster."""

    keyless: Mapping[str, tuple[str, ...]]
    """Variable -> its values with which a server refuses writes to tables without a primary key."""


@dataclasses.dataclass(frozen=True)
class Dialect:
    """One vendor's programs, options, statuses and statements, for one version."""

    vendor: str
    """``mariadb`` or ``mysql``."""

    server: str
    """Name of the server program."""

    slap: str
    """Name of its mysqlslap."""

    install: tuple[str, ...]
    """The command line that makes a data directory; ``{data}`` is its path, ``{directory}`` that of the host."""

    pinned: Mapping[str, str]
    """Options of every server, because a measurement must not depend on the host's defaults."""

    implied: Mapping[str, ImpliedOption]
    """Options that this version does not have because its behaviour is fixed, by name."""

    upgrade: tuple[str, ...]
    """The program that upgrades the system tables of an older version; empty if the server does it at its start."""

    initial: tuple[str, ...]
    """Options that a data directory fixes; each combination has a separate template."""

    single_server_options: Mapping[str, str]
    """Options of the server that makes a template. Its commits must not appear in replication."""

    shaping: tuple[str, ...]
    """Options that change how servers write or read tables. A data set is valid only for the same values."""

    populating: Mapping[str, str]
    """Options of a server that populates a data set. If it does not shut down cleanly, its data is discarded."""

    roomy: Mapping[str, str]
    """More options for populating, if the disk has room for a large redo log."""

    plugins: tuple[str, ...]
    """The libraries to load into the template's server, so that its list has their variables."""

    flush: str
    """The statement that flushes InnoDB's log on this node only; requires flushing at each commit."""

    variables_table: str
    """The table with the names and values of all global variables."""

    lazy_flush: str
    """The variable that must be 1; otherwise ``flush`` writes the log without flushing it."""

    log_current: str
    """The status with the position up to which InnoDB has written its log; empty if this version has none."""

    log_flushed: str
    """The status with the position up to which InnoDB has flushed its log; empty if this version has none."""

    create_accounts: tuple[str, ...]
    """The statements that create the accounts ``{user}`` (control) and ``{load}`` (workloads)."""

    drop_others: str
    """The statement that lists all other accounts, which are dropped."""

    variables: str
    """The statement that lists the server's variables."""

    table_bytes: str
    """The statement that returns the bytes of the files of all tables except system tables."""

    probed: bool
    """Whether ``variables`` does not name read-only variables, so that the template's server sets each one to
    itself.
    """

    control_tls: bool
    """Whether the control connection needs TLS to protect the password."""

    memory: int
    """The memory of a server with warm caches, data on disk and the default buffer pool, in bytes."""

    show_defaults: tuple[str, ...]
    """Options with which my_print_defaults prints all values."""

    validate: tuple[str, ...]
    """Options with which the server checks its options and ends; empty if --help checks them."""

    plain: tuple[str, ...]
    """Options of the vendor's clients for no TLS, because the measured time includes connecting."""

    replication: ReplicationDialect
    """The names for replication."""

    semisync: SemiSyncDialect
    """The names for semi-synchronous replication."""

    galera: GaleraDialect | None
    """Galera's options, transfers and names; None for servers without Galera, or if we cannot set it up."""

    @property
    def preset(self) -> dict[str, str]:
        """The pinned options that this version has."""
        return {name: value for name, value in self.pinned.items() if name not in self.implied}
