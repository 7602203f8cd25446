"""Group Replication: the topology, and what its members say of each other."""

from pytest_dbcluster.clusters.topologies.group_replication.topology import GroupReplication

TOPOLOGY = GroupReplication

__all__ = ["TOPOLOGY"]
