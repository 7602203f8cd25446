"""DRBD: the topology (``topology``), and the replicated device on two hosts (``resource``)."""

from pytest_dbcluster.clusters.topologies.drbd.topology import Drbd

TOPOLOGY = Drbd

__all__ = ["TOPOLOGY"]
