"""Parity profiles: options that make servers of two vendors, or two versions, comparable.

``vendor`` keeps every default, as after a plain installation. ``normalised`` gives every server the same durability,
binlog, number of appliers, isolation level and character set. The defaults for these differ between vendors and
versions. With equal values, the remaining differences come from the servers themselves.
"""

from __future__ import annotations

from collections.abc import Mapping

from pytest_dbcluster import registry
from pytest_dbcluster.clusters.dialects.lookup import dialect
from pytest_dbcluster.releases.release import Release
from pytest_dbcluster.spec import PARITIES

APPLIERS = "4"

_SAME = {
    "log_bin": "",  # on, with the server's default name
    "binlog_row_image": "FULL",
    "sync_binlog": "1",
    "innodb_flush_log_at_trx_commit": "1",
    "transaction_isolation": "REPEATABLE-READ",
    "character_set_server": "utf8mb4",
    "collation_server": "utf8mb4_general_ci",
}
_OWN: Mapping[str, Mapping[str, str]] = {
    "mariadb": {
        "slave_parallel_threads": APPLIERS,
        "slave_parallel_mode": "optimistic",
        # The default is ON since 11.6.2: https://jira.mariadb.org/browse/MDEV-35124
        "innodb_snapshot_isolation": "OFF",
    },
    "mysql": {"replica_parallel_workers": APPLIERS},
}
# For nodes of Galera, besides the number of appliers: they write the transactions of other nodes to their binlog.
_UPDATES: Mapping[str, str] = {"mariadb": "log_slave_updates", "mysql": "log_replica_updates"}


def options(parity: str, release: Release, topology: str) -> dict[str, str]:
    """Return the server options of a parity profile; all other options override them.

    Raises ConfigError for an unknown profile.
    """
    if parity not in PARITIES:
        raise registry.unknown("parity", parity, PARITIES)
    if parity == "vendor":
        return {}
    words = dialect(release.product, release.version).galera if topology == "galera" else None
    galera = {words.appliers[0]: APPLIERS, _UPDATES[release.upstream]: "ON"} if words else {}
    return {**_SAME, **_OWN[release.upstream], **galera}
