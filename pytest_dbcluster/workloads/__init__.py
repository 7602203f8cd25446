"""Workloads: what is run against a cluster.

A *workload* is a frozen value with its sizes, threads and seed: ``MySQLSlap``, ``SysBench``, ``TPCC``. It prepares its
tables, runs one round, and resets its tables before the next round. A *setting* is what a workload runs in: the
cluster, the host of the load generator, the client release. A workload reports the seconds of its run;
``testbed/round_runner.py`` calls it.

- ``workload``: the base class ``Workload``, ``Setting``, the error ``LoadEnded``, and the optional powers
  ``HasDataSet``, ``OpenLoop`` and ``Timed``.
- ``mysqlslap``, ``sysbench``, ``tpcc/``: the workloads.
- ``sysbench_driver``: starts sysbench, and reads the reports of its threads. ``lua/`` has the scripts it runs.
- ``load_hosts``: several hosts of one load: who runs which terminals, their clocks, and their common begin.
- ``schema_mark``: a table with the version and scale of a workload's tables.
- ``arguments``: checks of the numbers that users give.

A new workload is a module here, named in ``pytest_dbcluster/__init__.py``. ``tests/contracts`` runs it.
"""

__all__ = ["mysqlslap", "sysbench", "tpcc", "workload"]
