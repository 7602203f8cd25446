"""Workloads: load generators that run against a cluster.

A *workload* is a frozen value with its sizes, threads and seed: ``LuaScript``, ``MySQLSlap``, ``SQLFiles``,
``SysBench``, ``TPCC``. It prepares its tables, runs one round, and resets its tables before the next round. It reports
the seconds of its run. A *setting* is its environment: the cluster, the host of the load generator, the client release.
``testbed/round_runner.py`` calls it.

- ``workload``: the base class ``Workload``, ``Setting``, the error ``LoadEnded``, and the optional protocols
  ``HasDataSet``, ``OpenLoop`` and ``Timed``.
- ``mysqlslap``, ``script/``, ``sql/``, ``sysbench``, ``tpcc/``: the workloads.
- ``digest/``: a log of a server becomes a directory of SQL files.
- ``sysbench_driver``: starts sysbench, and reads the reports of its threads. ``lua/`` has the scripts it runs.
- ``lua_tree``: a user's script with the files beside it.
- ``load_hosts``: a workload on several load hosts: their terminals, their clocks, and their common start.
- ``made_tables``: tables that users make, and copies of them.
- ``until_stopped``: a load that runs through an event until we stop it.
- ``schema_mark``: a table with the version and scale of a workload's tables.
- ``driver_workload``: the base class of the workloads that the driver runs. ``tls_files``: its certificates.
- ``arguments``: checks of the values that users pass.

A new workload is a module here, named in ``pytest_dbcluster/__init__.py``. ``tests/contracts`` runs it.
"""

__all__ = ["digest", "mysqlslap", "script", "sql", "sysbench", "tpcc", "until_stopped", "workload"]
