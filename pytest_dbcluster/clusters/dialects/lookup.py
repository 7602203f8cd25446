"""How the vendors name the same thing: programs, variables, statuses, SQL. Data, not branches in the code."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

from pytest_dbcluster.clusters.dialects import replication as vocabulary
from pytest_dbcluster.clusters.dialects.implied_options import Always, always
from pytest_dbcluster.clusters.dialects.replication import Replication, SemiSync
from pytest_dbcluster.errors import Unsupported


@dataclasses.dataclass(frozen=True)
class Flavour:
    """The words of one vendor's servers of one version.

    Programs: ``server``; ``slap``, its mysqlslap; ``install`` makes a data directory, ``{data}`` is its place.
    pinned: options every server of ours starts with, because a measurement must not depend on the host.
    always: options that this version does not have because it always behaves so.
    initial: options that are fixed when a data directory is made; they select another template.
    alone: options of the server that makes a template, whose commits must leave no trace for replication.
    shaping: options that decide how a table that is made lies on disk, or how it is read; others work on any tables.
    filling: options of a server on which tables are made, and which is shut down in good order or thrown away.
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
    always: Mapping[str, Always]
    initial: tuple[str, ...]
    alone: Mapping[str, str]
    shaping: tuple[str, ...]
    filling: Mapping[str, str]
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
    replication: Replication
    semisync: SemiSync

    @property
    def preset(self) -> dict[str, str]:
        """The pinned options that this version has."""
        return {name: value for name, value in self.pinned.items() if name not in self.always}


# A dump of the buffer pool at shutdown and its load at start would warm one variant and not another.
_PINNED = {
    "bind_address": "127.0.0.1",
    "skip_name_resolve": "ON",
    "default_storage_engine": "InnoDB",
    "binlog_format": "ROW",
    "innodb_buffer_pool_dump_at_shutdown": "OFF",
    "innodb_buffer_pool_load_at_startup": "OFF",
}
# The load's account may not do what only an administrator may, above all not write where read_only is ON.
_LOAD_RIGHTS = (
    "SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, INDEX, ALTER, REFERENCES, RELOAD, PROCESS, EXECUTE, "
    "CREATE TEMPORARY TABLES, LOCK TABLES, CREATE VIEW, SHOW VIEW, CREATE ROUTINE, ALTER ROUTINE, TRIGGER"
)
# Character sets are written into tables; statistics are sampled when they are made.
_SHAPING = (
    "character_set_server",
    "collation_server",
    "default_storage_engine",
    "innodb_default_row_format",
    "innodb_file_per_table",
    "innodb_fill_factor",
    "innodb_stats_persistent",
    "innodb_stats_persistent_sample_pages",
)
# Nothing is made durable before the end.
_FILLING = {
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

MARIADB = Flavour(
    vendor="mariadb",
    server="mariadbd",
    slap="mariadb-slap",
    install=(
        "mariadb-install-db",
        "--no-defaults",
        "--datadir={data}",
        "--auth-root-authentication-method=normal",
        "--skip-test-db",
    ),
    # From 11.4 on servers make a certificate of their own and clients ask for TLS, earlier ones do not.
    pinned={**_PINNED, "ssl": "OFF"},
    always={},
    initial=(
        "innodb_checksum_algorithm",
        "innodb_data_file_path",
        "innodb_page_size",
        "innodb_undo_tablespaces",
        "lower_case_table_names",
    ),
    alone={},
    shaping=(
        *_SHAPING,
        "innodb_compression_algorithm",
        "innodb_compression_default",
        "innodb_compression_level",
        "innodb_default_encryption_key_id",
        "innodb_encrypt_tables",
    ),
    filling=_FILLING,
    roomy={"innodb_log_file_size": "1G"},  # 18 and 29 v 37 and 47 s for 2 million rows, on a busy machine
    plugins=(),
    flush="FLUSH NO_WRITE_TO_BINLOG ENGINE LOGS",
    lazy_flush="innodb_flush_log_at_trx_commit",
    log_current="innodb_lsn_current",
    log_flushed="innodb_lsn_flushed",
    create_accounts=_ACCOUNTS,
    drop_others="SELECT CONCAT(QUOTE(user), '@', QUOTE(host)) FROM mysql.global_priv "
    "WHERE user NOT IN ('{user}', '{load}', 'mariadb.sys')",
    variables="SELECT LOWER(variable_name), COALESCE(global_value, default_value, ''), read_only = 'YES', "
    "variable_type, COALESCE(numeric_min_value, ''), COALESCE(numeric_max_value, ''), "
    "COALESCE(enum_value_list, ''), variable_scope FROM information_schema.system_variables ORDER BY 1",
    probed=False,
    control_tls=False,
    memory=400 * 2**20,
    plain=("--skip-ssl",),
    replication=vocabulary.MARIADB,
    semisync=vocabulary.MARIADB_SEMISYNC,
)

MYSQL = dataclasses.replace(
    MARIADB,
    vendor="mysql",
    server="mysqld",
    slap="mysqlslap",
    install=("mysqld", "--no-defaults", "--initialize-insecure", "--datadir={data}"),
    # secure_file_priv: the directory that is built in need not exist. mysqlx: a second port that nobody uses.
    pinned={**_PINNED, "secure_file_priv": "NULL", "mysqlx": "OFF"},
    always={},
    initial=("innodb_data_file_path", "innodb_page_size", "lower_case_table_names"),
    alone={"skip_log_bin": ""},
    shaping=(*_SHAPING, "default_table_encryption", "sql_generate_invisible_primary_key"),
    filling={**_FILLING, "performance_schema": "OFF"},
    roomy={},  # a larger log saved nothing: 24 v 21 s for 4 million rows
    plugins=("group_replication.so", "semisync_source.so", "semisync_replica.so", "mysql_clone.so"),
    log_current="innodb_redo_log_current_lsn",
    log_flushed="innodb_redo_log_flushed_to_disk_lsn",
    drop_others="SELECT CONCAT(QUOTE(user), '@', QUOTE(host)) FROM mysql.user "
    "WHERE user NOT IN ('{user}', '{load}', 'mysql.sys', 'mysql.session', 'mysql.infoschema')",
    variables="SELECT LOWER(v.variable_name), v.variable_value, 0, UPPER(COALESCE(m.data_type, '')), "
    "COALESCE(m.min_value, ''), COALESCE(m.max_value, ''), '', COALESCE(m.variable_scope, 'GLOBAL') "
    "FROM performance_schema.global_variables v LEFT JOIN performance_schema.variables_metadata m "
    "USING (variable_name) ORDER BY 1",
    probed=True,
    control_tls=True,
    memory=1024 * 2**20,  # a group member reached 1060 MB in ten minutes, its message cache included
    # Without TLS the password is encrypted with the server's key, which the client has to ask for.
    plain=("--ssl-mode=DISABLED", "--get-server-public-key"),
    replication=vocabulary.MYSQL,
    semisync=vocabulary.MYSQL_SEMISYNC,
)

_FLAVOURS = {"mariadb": MARIADB, "mysql": MYSQL}
_OLDEST = {"mariadb": (10, 5), "mysql": (8, 0, 30)}
# vendor, first and first-not version, what is other there than above
_VERSIONS: tuple[tuple[str, tuple[int, ...], tuple[int, ...], dict[str, Any]], ...] = (
    (
        "mysql",
        (8, 0, 30),
        (9,),  # performance_schema.variables_metadata came with 9.0
        {
            "variables": "SELECT LOWER(v.variable_name), v.variable_value, 0, '', COALESCE(i.min_value, ''), "
            "COALESCE(i.max_value, ''), '', 'GLOBAL' FROM performance_schema.global_variables v "
            "LEFT JOIN performance_schema.variables_info i USING (variable_name) ORDER BY 1"
        },
    ),
)


def flavour(vendor: str, version: str = "") -> Flavour:
    """The words of a vendor's servers of one version, without one of its newest.

    Raises Unsupported for a vendor or a version whose words are not written down.
    """
    if vendor not in _FLAVOURS:
        raise Unsupported(f"{vendor} servers are not known; known: {', '.join(_FLAVOURS)}")
    series = numbers(version)
    words = dataclasses.replace(_FLAVOURS[vendor], always=always(vendor, series))
    if series and series < _OLDEST[vendor][: len(series)]:
        oldest = ".".join(map(str, _OLDEST[vendor]))
        raise Unsupported(f"{vendor} {version} is too old: statements and statuses are known from {oldest} on")
    for name, first, end, changes in _VERSIONS:
        if name == vendor and series and first[: len(series)] <= series < end:
            words = dataclasses.replace(words, **changes)
    return words


def numbers(version: str) -> tuple[int, ...]:
    """A version as numbers, (10, 11, 19) for 10.11.19; empty for none."""
    return tuple(int(part) for part in re.findall(r"\d+", version))
