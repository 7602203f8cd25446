"""Group Replication: the topology (``topology``), and the group as its members see it (``members``)."""

from pytest_dbcluster.clusters.topologies.group_replication.topology import GroupReplication

TOPOLOGY = GroupReplication

__all__ = ["TOPOLOGY"]
