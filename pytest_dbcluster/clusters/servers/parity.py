"""Parity: the options that make servers of two vendors, or two versions, comparable.

``vendor`` leaves every default alone: what a user gets who installs the server. ``normalised`` gives each server the
same durability, the same binlog, as many appliers, the same isolation and the same character set, which vendors and
versions preset differently, so that what is left of a difference is the servers' own.
"""

from __future__ import annotations

from collections.abc import Mapping

from pytest_dbcluster import registry
from pytest_dbcluster.releases.release import Release
from pytest_dbcluster.spec import PARITIES

APPLIERS = "4"

_SAME = {
    "log_bin": "",  # on, under a name of the server's own
    "binlog_row_image": "FULL",
    "sync_binlog": "1",
    "innodb_flush_log_at_trx_commit": "1",
    "transaction_isolation": "REPEATABLE-READ",
    "character_set_server": "utf8mb4",
    "collation_server": "utf8mb4_general_ci",
}
# By vendor, and under "galera" for what its nodes apply with.
_OWN: Mapping[str, Mapping[str, str]] = {
    "mariadb": {
        "slave_parallel_threads": APPLIERS,
        "slave_parallel_mode": "optimistic",
        # ON from 11.6.2 on: https://jira.mariadb.org/browse/MDEV-35124
        "innodb_snapshot_isolation": "OFF",
    },
    "mysql": {"replica_parallel_workers": APPLIERS},
    "galera": {"wsrep_slave_threads": APPLIERS, "log_slave_updates": "ON"},
}


def options(parity: str, release: Release, topology: str) -> dict[str, str]:
    """The server options of a parity profile, which lie under every other one. Raises ConfigError."""
    if parity not in PARITIES:
        raise registry.unknown("parity", parity, PARITIES)
    if parity == "vendor":
        return {}
    return {**_SAME, **_OWN[release.product], **_OWN.get(topology, {})}
