"""DRBD: ``topology`` has the topology, ``resource`` the replicated device on two hosts."""

from pytest_dbcluster.clusters.topologies.drbd.topology import Drbd

TOPOLOGY = Drbd

__all__ = ["TOPOLOGY"]
