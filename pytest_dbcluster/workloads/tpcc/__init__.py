"""TPC-C: ``workload`` has the workload, ``conditions`` the consistency conditions of its tables.

``failover`` takes the server away under this load, and compares the orders that were acknowledged afterwards.
"""

from pytest_dbcluster.workloads.tpcc.workload import TPCC

__all__ = ["TPCC", "failover"]
