"""Group Replication: all members certify each commit; one member or all members accept writes.

``topology`` has the topology, ``members`` the group as its members see it.
"""

from pytest_dbcluster.clusters.topologies.group_replication.topology import GroupReplication

TOPOLOGY = GroupReplication

__all__ = ["TOPOLOGY"]
