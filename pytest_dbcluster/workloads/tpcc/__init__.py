"""TPC-C: ``workload`` has the workload, ``conditions`` the consistency conditions of its tables.

``digests`` are of the values that no transaction changes, ``orders`` compares reported orders with those of a node, and
``books`` counts what is lost, invented, there or gone.
``failover`` takes the server away under this load, and compares the orders that were acknowledged afterwards.
"""

from pytest_dbcluster.workloads.tpcc.workload import TPCC

__all__ = ["TPCC", "failover"]
