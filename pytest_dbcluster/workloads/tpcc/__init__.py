"""TPC-C: ``workload`` has the workload, ``conditions`` the consistency conditions of its tables.

- ``digests``: digests of the values that no transaction changes.
- ``orders``: compares the orders that terminals reported with the tables of a node.
- ``books``: counts lost and invented orders, and orders of unknown outcome.
"""

from pytest_dbcluster.workloads.tpcc.workload import TPCC

__all__ = ["TPCC"]
