"""``LargeTransaction``: one transaction that writes many rows, beside the tables of the load."""

from __future__ import annotations

import dataclasses
import time
from typing import TYPE_CHECKING

from pytest_dbcluster import wait
from pytest_dbcluster.clusters.events.event import Event, Happened
from pytest_dbcluster.clusters.servers.connection import SQLError
from pytest_dbcluster.errors import ConfigError

if TYPE_CHECKING:
    from pytest_dbcluster.clusters.cluster import Cluster
    from pytest_dbcluster.clusters.topology import Topology
    from pytest_dbcluster.rounds.outages.outage import Returned
    from pytest_dbcluster.spec import ClusterSpec

SCHEMA = "dbcluster_large"
TABLE = f"{SCHEMA}.large_transaction"
ROW_BYTES = 200  # of text in each row
MOST_ROWS = 10_000_000
EVERYWHERE_SECONDS = 600.0  # until each node must have the rows
DIGITS = " UNION ALL ".join(f"SELECT {digit} AS d" for digit in range(10))


@dataclasses.dataclass(frozen=True)
class LargeTransaction(Event):
    """Insert rows into a separate table, in one transaction. After the load, the table is dropped."""

    rows: int
    """Number of rows, from 1 to 10 million. Each has a text of 200 bytes."""

    def __str__(self) -> str:
        return f"transaction of {self.rows} rows"

    def check(self, spec: ClusterSpec, topology: Topology) -> None:
        """Raise ConfigError for a wrong number of rows."""
        if not isinstance(self.rows, int) or isinstance(self.rows, bool) or not 1 <= self.rows <= MOST_ROWS:
            raise ConfigError(f"LargeTransaction(rows={self.rows!r}): it accepts whole numbers from 1 to {MOST_ROWS}")

    def moves_writes(self, topology: Topology) -> bool:
        """Return False: every node stays."""
        return False

    def prepare(self, cluster: Cluster) -> None:
        """Create the table on all nodes. Raises ProvisionError."""
        writer = cluster.writers[0]
        writer.query(f"CREATE DATABASE {SCHEMA}")
        writer.query(f"CREATE TABLE {TABLE} (id INT PRIMARY KEY, pad CHAR({ROW_BYTES}) NOT NULL)")
        wait.until(cluster.backlog, f"table {TABLE}", seconds=EVERYWHERE_SECONDS)

    def act(self, cluster: Cluster) -> Happened:
        """Insert the rows. The proof is their number on every node. Raises ProvisionError if they do not get there."""
        writer = cluster.writers[0]
        happened = Happened(time.time())
        try:
            with writer.separate() as connection:
                connection.query(self._insert, wait.SLOW_SECONDS)
        except SQLError as error:
            happened.void = f"{error}"
            return happened
        happened.mark("committed")
        wait.until(lambda: self._problems(cluster, "MAX(id) + 1"), f"{self}", seconds=EVERYWHERE_SECONDS)
        happened.mark("on all nodes")
        happened.void = "; ".join(self._problems(cluster, "COUNT(*)"))
        return happened

    def restore(self, cluster: Cluster, happened: Happened) -> Returned | None:
        """Drop the table. Raises ProvisionError."""
        cluster.writers[0].query(f"DROP DATABASE IF EXISTS {SCHEMA}", wait.SLOW_SECONDS)
        return super().restore(cluster, happened)

    @property
    def _insert(self) -> str:
        """An INSERT of all rows, whose numbers come from a product of digits, as servers of both vendors know it."""
        places = range(len(str(self.rows)))
        number = " + ".join(f"t{place}.d * {10**place}" for place in places)
        tables = " CROSS JOIN ".join(f"({DIGITS}) AS t{place}" for place in places)
        return (
            f"INSERT INTO {TABLE} SELECT {number}, REPEAT('x', {ROW_BYTES}) FROM {tables} WHERE {number} < {self.rows}"
        )

    def _problems(self, cluster: Cluster, number: str) -> list[str]:
        """The nodes on which an expression over the table has another value than the number of rows."""
        from pytest_dbcluster.clusters.servers.node import of_each

        found = of_each(cluster.nodes, lambda node: node.query(f"SELECT {number} FROM {TABLE}", wait.SLOW_SECONDS))
        counts = zip(cluster.nodes, (rows[0][0] or 0 for rows in found), strict=True)
        return [f"{node.name} has {count} of {self.rows} rows" for node, count in counts if count != self.rows]
