"""Topologies: each module or folder here is one topology; users type its name.

A module names its class ``TOPOLOGY``. The base class is ``clusters.topology.Topology``; its method ``options`` returns
the options that the topology adds to a node's my.cnf. Another package adds a topology by an entry point in the group
``pytest_dbcluster.topologies``.
"""

__all__ = []
