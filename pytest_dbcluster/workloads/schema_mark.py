"""Schema mark: a small table in a load's schema that says what was loaded, in which version of its layout."""

from __future__ import annotations

import dataclasses

from pytest_dbcluster.clusters.servers.node import Node
from pytest_dbcluster.errors import WorkloadError

TABLE = "dbcluster_schema"


@dataclasses.dataclass(frozen=True)
class SchemaMark:
    """What a load's schema holds. version: of its tables' layout. scale: how much, in the load's own words."""

    schema: str
    version: int
    scale: str

    def write(self, node: Node) -> None:
        """Say that the tables are whole; to be called last."""
        node.query(f"DROP TABLE IF EXISTS {self.schema}.{TABLE}")
        node.query(f"CREATE TABLE {self.schema}.{TABLE} (version INT PRIMARY KEY, scale VARCHAR(200) NOT NULL)")
        node.query(f"INSERT INTO {self.schema}.{TABLE} VALUES ({self.version}, '{self.scale}')")

    def stands(self, node: Node) -> bool:
        """Whether the schema holds this; False when it is missing, not whole, or of another scale.

        Raises WorkloadError for one that another version of the program left.
        """
        if not node.query(f"SHOW DATABASES LIKE '{self.schema}'"):
            return False
        if not node.query(f"SHOW TABLES FROM {self.schema} LIKE '{TABLE}'"):
            return False
        rows = node.query(f"SELECT version, scale FROM {self.schema}.{TABLE}")
        if rows and rows[0][0] != self.version:
            raise WorkloadError(
                f"schema {self.schema} on {node.name} has version {rows[0][0]} of its tables, and this load needs "
                f"version {self.version}: DROP DATABASE {self.schema} there, and they are made anew"
            )
        return rows == [(self.version, self.scale)]
