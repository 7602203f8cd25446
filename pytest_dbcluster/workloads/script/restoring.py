"""The tables that a script's prepare made: their names, and copies from which a reset restores them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_dbcluster import wait
from pytest_dbcluster.clusters import table_rows
from pytest_dbcluster.errors import ConfigError

if TYPE_CHECKING:
    from pytest_dbcluster.clusters.cluster import Cluster
    from pytest_dbcluster.clusters.servers.node import Node

COPIES = "{}_loaded"  # the database of the copies
TRANSACTIONAL = ("INNODB", "ROCKSDB")
TABLES = """\
SELECT table_name, engine FROM information_schema.tables WHERE table_schema = '{}' AND table_type = 'BASE TABLE'
AND table_name NOT LIKE 'dbcluster\\_%' ORDER BY table_name"""


def tables(node: Node, database: str) -> list[str]:
    """The tables of the script."""
    return [str(name) for name, _ in node.query(TABLES.format(database))]


def refuse_unreplicated(cluster: Cluster, database: str) -> None:
    """Raise ConfigError for a table that the topology of the cluster does not replicate."""
    if cluster.spec.topology not in ("galera", "group_replication"):
        return
    for name, engine in cluster.writers[0].query(TABLES.format(database)):
        if str(engine).upper() not in TRANSACTIONAL:
            raise ConfigError(
                f"table {name} has engine {engine}, and {cluster.spec.topology} replicates InnoDB tables only: use "
                "ENGINE=InnoDB in prepare"
            )


def copy_tables(node: Node, database: str) -> None:
    """Copy each table into the database of the copies."""
    copies = COPIES.format(database)
    node.query(f"DROP DATABASE IF EXISTS `{copies}`", wait.SLOW_SECONDS)
    node.query(f"CREATE DATABASE `{copies}`")
    for name in tables(node, database):
        place, copy = f"`{database}`.`{name}`", f"`{copies}`.`{name}`"
        node.query(f"CREATE TABLE {copy} LIKE {place}")
        node.query(table_rows.copy_statement(node, place, copy), wait.SLOW_SECONDS)


def restore(node: Node, database: str) -> list[str]:
    """Restore each table that differs from its copy, and return these tables."""
    copies = COPIES.format(database)
    pairs = {f"`{database}`.`{name}`": f"`{copies}`.`{name}`" for name in tables(node, copies)}
    changed = table_rows.changed_tables(node, pairs)
    node.query("SET SESSION foreign_key_checks = 0")
    try:
        for place in changed:
            node.query(f"TRUNCATE TABLE {place}", wait.SLOW_SECONDS)
            node.query(table_rows.copy_statement(node, pairs[place], place), wait.SLOW_SECONDS)
    finally:
        node.query("SET SESSION foreign_key_checks = 1")
    return changed
