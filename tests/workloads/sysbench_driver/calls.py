"""Runs of sysbench's own scripts on a table of a thousand rows, for the tests of terminals."""

from __future__ import annotations

import dataclasses
import threading

from pytest_dbcluster.workloads import sysbench_driver
from pytest_dbcluster.workloads.sysbench_driver import Call
from pytest_dbcluster.workloads.workload import Setting

SCHEMA = "dbcluster_terminals"
ROWS = 1000


def setting_of(cluster, client, **changed):
    """What a load may use."""
    made = Setting(cluster, client, cluster.nodes[0].release, "quick", lambda line: None)
    return dataclasses.replace(made, **changed)


def call(setting, event, *, threads=4, script="oltp.lua", size=ROWS, to=None, **options):
    """One of sysbench's scripts over all nodes."""
    own = {"tables": 1, "table_size": size, "auto_inc": False, **options}
    own |= {"script": event} if script == "oltp.lua" else {}
    where = to or sysbench_driver.endpoints(setting.cluster, "all", writes=True)
    return Call(event, script, threads, SCHEMA, where, own)


def in_the_middle(deed, *, after=0.3):
    """Do something while the load runs."""
    thread = threading.Timer(after, deed)
    thread.start()
    return thread
