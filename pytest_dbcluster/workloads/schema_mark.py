"""``SchemaMark``: a small table in a workload's schema with the version and the scale of its tables."""

from __future__ import annotations

import dataclasses

from pytest_dbcluster.clusters.servers.node import Node
from pytest_dbcluster.errors import WorkloadError

TABLE = "dbcluster_schema"


@dataclasses.dataclass(frozen=True)
class SchemaMark:
    """What a workload's schema contains."""

    schema: str
    version: int
    """Of its tables' layout."""

    scale: str
    """The size, as the workload names it."""

    def write(self, node: Node) -> None:
        """Mark the tables as whole. Call it after everything else is loaded."""
        node.query(f"DROP TABLE IF EXISTS {self.schema}.{TABLE}")
        node.query(f"CREATE TABLE {self.schema}.{TABLE} (version INT PRIMARY KEY, scale VARCHAR(200) NOT NULL)")
        node.query(f"INSERT INTO {self.schema}.{TABLE} VALUES ({self.version}, '{self.scale}')")

    def stands(self, node: Node) -> bool:
        """Whether the schema has this mark; False when the schema is missing, not whole, or of another scale.

        Raises WorkloadError for a schema that another version of this program made.
        """
        if not node.query(f"SHOW DATABASES LIKE '{self.schema}'"):
            return False
        if not node.query(f"SHOW TABLES FROM {self.schema} LIKE '{TABLE}'"):
            return False
        rows = node.query(f"SELECT version, scale FROM {self.schema}.{TABLE}")
        if rows and rows[0][0] != self.version:
            raise WorkloadError(
                f"schema {self.schema} on {node.name} has version {rows[0][0]} of its tables, and this workload needs "
                f"version {self.version}: DROP DATABASE {self.schema} there, and run again to make them"
            )
        return rows == [(self.version, self.scale)]
