"""TPC-C: ``workload`` has the workload, ``conditions`` the consistency conditions of its tables."""

from pytest_dbcluster.workloads.tpcc.workload import TPCC

__all__ = ["TPCC"]
