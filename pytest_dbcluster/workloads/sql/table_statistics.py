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


def without_recalculation(nodes: Sequence[Node]) -> contextlib.AbstractContextManager[None]:
    """While the context lasts, no change of rows makes a node sample a table later."""
    return _with_value(nodes, RECALCULATION, 0)


@contextlib.contextmanager
def _with_value(nodes: Sequence[Node], variable: str, value: int, only: int | None = None) -> Iterator[None]:
    """While the context lasts, nodes have this value of a variable. only: those with this one before; None for all."""
    before = of_each(nodes, lambda node: node.query(f"SELECT @@GLOBAL.{variable}")[0][0])
    changed = {node: usual for node, usual in zip(nodes, before, strict=True) if only in (None, usual)}
    of_each(list(changed), lambda node: node.query(f"SET GLOBAL {variable} = {value}"))
    try:
        yield
    finally:
        with contextlib.suppress(DBClusterError):  # an error of the context is the one to report
            of_each(list(changed), lambda node: node.query(f"SET GLOBAL {variable} = {changed[node]}"))


def analyze(cluster: Cluster, database: str, tables: Sequence[str]) -> None:
    """Each node analyzes these tables, once it has applied all changes.

    Nodes that are read-only may accept this from replication only, so it is replicated to them.
    """
    if not tables:
        return
    names = ", ".join(f"`{database}`.`{table}`" for table in tables)
    cluster.settle(wait.SLOW_SECONDS)
    with _with_value(cluster.nodes, PAGES, WHOLE_PAGES, only=USUAL_PAGES):
        if len(cluster.writers) == len(cluster.nodes):
            of_each(cluster.nodes, lambda node: node.query(f"ANALYZE LOCAL TABLE {names}", wait.SLOW_SECONDS))
        else:
            cluster.writers[0].query(f"ANALYZE TABLE {names}", wait.SLOW_SECONDS)
            cluster.settle(wait.SLOW_SECONDS)
