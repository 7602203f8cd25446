"""TPC-C: the workload, and the conditions that its tables have to meet after every round."""

from pytest_dbcluster.workloads.tpcc.workload import TPCC

__all__ = ["TPCC"]
