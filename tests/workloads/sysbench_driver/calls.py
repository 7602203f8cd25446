"""Runs of sysbench's own scripts on a table of a thousand rows, for the tests of terminals."""

from __future__ import annotations

import dataclasses
import threading

from pytest_dbcluster import wait
from pytest_dbcluster.clusters.servers.connection import Connection
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


def when(problems, what, deed):
    """Do something as soon as nothing stands against it, in a thread of its own."""

    def wait_and_do():
        wait.until(problems, what, seconds=60, poll=0.005)
        deed()

    thread = threading.Thread(target=wait_and_do)
    thread.start()
    return thread


def in_the_middle(deed, node):
    """Do something while the load runs: as soon as a node has executed statements of it."""
    watcher = Connection("watcher", node.endpoint)

    def executed():  # sysbench does not prepare its inserts
        asked = "SHOW GLOBAL STATUS WHERE variable_name IN ('Com_stmt_execute', 'Com_insert')"
        return sum(int(count) for count in watcher.pairs(asked).values())

    before = executed()

    def do():
        watcher.close()
        deed()

    return when(lambda: [] if executed() > before + 20 else ["no statements"], "a load at work", do)
