"""Statistics of the tables for the optimizer: those of all rows, and equal on all nodes.

Servers sample a few pages at random, some seconds after many rows have changed. Two nodes with equal rows would then
choose different plans. So each node analyzes its tables after loading, and reads up to WHOLE_PAGES pages of an index.
Clusters that start from a copy have the statistics of the copy.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pytest_dbcluster import wait
from pytest_dbcluster.clusters.servers.node import Node, of_each
from pytest_dbcluster.errors import DBClusterError

if TYPE_CHECKING:
    from pytest_dbcluster.clusters.cluster import Cluster

PAGES, RECALCULATION = "innodb_stats_persistent_sample_pages", "innodb_stats_auto_recalc"
USUAL_PAGES = 20  # the default of all releases; another number is the user's choice
WHOLE_PAGES = 20_000


@contextlib.contextmanager
def without_recalculation(nodes: Sequence[Node]) -> Iterator[None]:
    """While the context lasts, no change of rows makes a node sample a table later."""
    before = of_each(nodes, lambda node: node.query(f"SELECT @@GLOBAL.{RECALCULATION}")[0][0])
    of_each(nodes, lambda node: node.query(f"SET GLOBAL {RECALCULATION} = 0"))
    try:
        yield
    finally:
        with contextlib.suppress(DBClusterError):  # an error of the context is the one to report
            for node, value in zip(nodes, before, strict=True):
                node.query(f"SET GLOBAL {RECALCULATION} = {value}")


def analyze(cluster: Cluster, database: str, tables: Sequence[str]) -> None:
    """Each node analyzes these tables, once it has applied all changes.

    Nodes that are read-only may accept this from replication only, so it is replicated to them.
    """
    if not tables:
        return
    names = ", ".join(f"`{database}`.`{table}`" for table in tables)
    cluster.settle(wait.SLOW_SECONDS)
    with _whole_samples(cluster.nodes):
        if len(cluster.writers) == len(cluster.nodes):
            of_each(cluster.nodes, lambda node: node.query(f"ANALYZE LOCAL TABLE {names}", wait.SLOW_SECONDS))
        else:
            cluster.writers[0].query(f"ANALYZE TABLE {names}", wait.SLOW_SECONDS)
            cluster.settle(wait.SLOW_SECONDS)


@contextlib.contextmanager
def _whole_samples(nodes: Sequence[Node]) -> Iterator[None]:
    """While the context lasts, nodes read up to WHOLE_PAGES pages of an index, unless the user has chosen a number."""
    before = of_each(nodes, lambda node: node.query(f"SELECT @@GLOBAL.{PAGES}")[0][0])
    usual = [node for node, pages in zip(nodes, before, strict=True) if pages == USUAL_PAGES]
    of_each(usual, lambda node: node.query(f"SET GLOBAL {PAGES} = {WHOLE_PAGES}"))
    try:
        yield
    finally:
        with contextlib.suppress(DBClusterError):  # an error of the context is the one to report
            of_each(usual, lambda node: node.query(f"SET GLOBAL {PAGES} = {USUAL_PAGES}"))
