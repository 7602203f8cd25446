"""The tables that a script's prepare made: their names, and copies from which a reset restores them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_dbcluster import wait
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
        node.query(f"CREATE TABLE `{copies}`.`{name}` LIKE `{database}`.`{name}`")
        node.query(f"INSERT INTO `{copies}`.`{name}` SELECT * FROM `{database}`.`{name}`", wait.SLOW_SECONDS)


def restore(node: Node, database: str) -> None:
    """Restore each table that differs from its copy."""
    copies = COPIES.format(database)
    node.query("SET SESSION foreign_key_checks = 0")
    try:
        for name in tables(node, copies):
            names = f"`{database}`.`{name}`, `{copies}`.`{name}`"
            (_, now), (_, loaded) = node.query(f"CHECKSUM TABLE {names}", wait.SLOW_SECONDS)
            if now != loaded:
                node.query(f"TRUNCATE TABLE `{database}`.`{name}`", wait.SLOW_SECONDS)
                node.query(f"INSERT INTO `{database}`.`{name}` SELECT * FROM `{copies}`.`{name}`", wait.SLOW_SECONDS)
    finally:
        node.query("SET SESSION foreign_key_checks = 1")
