"""Implied options: options that a version lacks because its behaviour is fixed. Data only, by version."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

Version = tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class ImpliedOption:
    """An option that a version lacks because its behaviour is fixed."""

    value: str
    """The value that corresponds to the behaviour."""

    because: str
    """The explanation in messages."""


# Version ranges without the option: (first version without it, first version that has it again); () for no limit.
_UNTIL_SNAPSHOT_ISOLATION: tuple[tuple[Version, Version], ...] = (
    ((), (10, 6, 18)), ((10, 7), (10, 11, 8)), ((11,), (11, 0, 6)), ((11, 1), (11, 1, 5)), ((11, 2), (11, 2, 4)),
    ((11, 3), (11, 4, 2)),
)  # fmt: skip
_ALL: tuple[tuple[Version, Version], ...] = (((), ()),)

_READS = "a transaction may change a row that another one has changed since its snapshot"
_CLOCK = "replicas always apply by logical clock"
_TABLES = "replication always keeps its positions in tables"
_ROWS: tuple[tuple[str, tuple[tuple[Version, Version], ...], str, str, str], ...] = (
    ("mariadb", _UNTIL_SNAPSHOT_ISOLATION, "innodb_snapshot_isolation", "OFF", _READS),
    ("mariadb", (((10, 6), ()),), "innodb_buffer_pool_instances", "1", "there is always one buffer pool"),
    ("mariadb", (((10, 6), ()),), "innodb_commit_concurrency", "0", "InnoDB never limits the threads that commit"),
    ("mariadb", (((10, 6), ()),), "innodb_log_checksums", "ON", "the redo log always has checksums"),
    ("mariadb", (((10, 6), ()),), "innodb_log_files_in_group", "1", "there is always one file of the redo log"),
    ("mariadb", (((10, 6), ()),), "innodb_page_cleaners", "1", "there is always one page cleaner"),
    ("mariadb", (((10, 6), ()),), "innodb_thread_concurrency", "0", "InnoDB never limits the threads inside of it"),
    ("mariadb", (((11,), ()),), "innodb_change_buffering", "none", "there is no change buffer"),
    ("mysql", _ALL, "innodb_snapshot_isolation", "OFF", _READS),
    ("mysql", _ALL, "query_cache_size", "0", "there is no query cache"),
    ("mysql", _ALL, "query_cache_type", "OFF", "there is no query cache"),
    ("mysql", (((8, 3), ()),), "log_bin_use_v1_row_events", "OFF", "row events are always of version 2"),
    ("mysql", (((8, 3), ()),), "master_info_repository", "TABLE", _TABLES),
    ("mysql", (((8, 3), ()),), "relay_log_info_repository", "TABLE", _TABLES),
    ("mysql", (((8, 3), ()),), "transaction_write_set_extraction", "XXHASH64", "writesets are always XXHASH64"),
    (
        "mysql", (((8, 4), ()),), "binlog_transaction_dependency_tracking", "WRITESET",
        "the binlog always tracks dependencies by writeset",
    ),
    ("mysql", (((9,), ()),), "replica_parallel_type", "LOGICAL_CLOCK", _CLOCK),
    ("mysql", (((9,), ()),), "slave_parallel_type", "LOGICAL_CLOCK", _CLOCK),
)  # fmt: skip


def implied_options(vendor: str, version: Version) -> Mapping[str, ImpliedOption]:
    """Return the implied options of a vendor's version, by option name; () is the newest version."""
    return {
        option: ImpliedOption(value, because)
        for known, spans, option, value, because in _ROWS
        if known == vendor and any(_within(version, first, end) for first, end in spans)
    }


def _within(version: Version, first: Version, end: Version) -> bool:
    if not version:
        return not end
    return first[: len(version)] <= version and (not end or version < end)
