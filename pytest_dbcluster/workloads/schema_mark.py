"""``SchemaMark``: a small table in a workload's schema with the version and the scale of its tables."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from pytest_dbcluster.errors import WorkloadError

if TYPE_CHECKING:
    from pytest_dbcluster.clusters.servers.node import Node

TABLE = "dbcluster_schema"
COLUMNS = "version INT PRIMARY KEY, scale VARCHAR(1000) CHARACTER SET utf8mb4 NOT NULL"


@dataclasses.dataclass(frozen=True)
class SchemaMark:
    """The version and scale of the tables in a workload's schema."""

    schema: str
    """The name of the schema."""

    version: int
    """Version of the tables' layout."""

    scale: str
    """The size, in the workload's words."""

    def write(self, node: Node) -> None:
        """Mark the tables as complete. Call it after everything is loaded."""
        node.query(f"DROP TABLE IF EXISTS {self.schema}.{TABLE}")
        node.query(f"CREATE TABLE {self.schema}.{TABLE} ({COLUMNS})")
        scale = f"_utf8mb4 X'{self.scale.encode().hex()}'"  # it may have the name of a user's directory
        node.query(f"INSERT INTO {self.schema}.{TABLE} VALUES ({self.version}, {scale})")

    def stands(self, node: Node) -> bool:
        """Whether the schema has this mark; False if the schema is missing, incomplete, or of another scale.

        Raises WorkloadError if another version of this program made the schema.
        """
        if not node.query(f"SHOW DATABASES LIKE '{self.schema}'"):
            return False
        if not node.query(f"SHOW TABLES FROM {self.schema} LIKE '{TABLE}'"):
            return False
        rows = node.query(f"SELECT version, scale FROM {self.schema}.{TABLE}")
        if rows and rows[0][0] != self.version:
            raise WorkloadError(
                f"schema {self.schema} on {node.name} has tables of version {rows[0][0]}, and this workload needs "
                f"version {self.version}: run DROP DATABASE {self.schema} there, then run the test again"
            )
        return rows == [(self.version, self.scale)]
