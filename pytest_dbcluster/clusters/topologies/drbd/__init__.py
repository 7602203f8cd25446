"""DRBD: one server, and a standby host with a copy of its disk.

``topology`` has the topology, ``resource`` the replicated device on two hosts.
"""

from pytest_dbcluster.clusters.topologies.drbd.topology import Drbd

TOPOLOGY = Drbd

__all__ = ["TOPOLOGY"]
