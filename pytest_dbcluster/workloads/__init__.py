"""Workloads: what is run against a cluster.

A *workload* is a frozen value with its sizes, threads and seed: ``MySQLSlap``, ``SysBench``, ``TPCC``. It prepares its
tables, runs one round, and returns its tables to what they were. A *setting* is what it runs in: the cluster, the host
of the load generator, the client release.

- ``workload``: the base class, and the powers that a workload may have.
- ``mysqlslap``, ``sysbench``, ``tpcc/``: the workloads.
- ``sysbench_driver``: how sysbench is started, and how its reports are read. ``lua/`` is what sysbench runs.
- ``schema_mark``: a table that says what a database holds.
- ``arguments``: checks of numbers that users give.

A new workload is a module here, named in ``pytest_dbcluster/__init__.py``. ``tests/contracts`` runs it.
"""

__all__ = ["mysqlslap", "sysbench", "tpcc", "workload"]
