"""TPC-C: ``workload`` has the workload, ``conditions`` the consistency conditions of its tables.

``digests`` are of the values that no transaction changes, ``orders`` compares the orders whose COMMIT returned.
``failover`` takes the server away under this load, and compares the orders that were acknowledged afterwards.
"""

from pytest_dbcluster.workloads.tpcc.workload import TPCC

__all__ = ["TPCC", "failover"]
