"""The anchor: the speed of one pinned server under one pinned workload, measured at the end of a run with a history.

A ratio of two variants does not show a change that slows both. Relative to the anchor, a variant's speed can be
compared with earlier runs: a slower machine also slows the anchor, a slower server or my.cnf does not.
"""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Mapping

from pytest_dbcluster.errors import SeriesVoid
from pytest_dbcluster.formatting import Report
from pytest_dbcluster.spec import ClusterSpec, ReleaseName
from pytest_dbcluster.testbed.pool import open_pool
from pytest_dbcluster.testbed.testbed import Testbed
from pytest_dbcluster.workloads.mysqlslap import MySQLSlap

RELEASE = ReleaseName("mariadb", "10.11")
# No option of the run reaches it. A flush at each commit would measure the noise of the disk.
OPTIONS = {"innodb_buffer_pool_size": "128M", "innodb_flush_log_at_trx_commit": "2", "sync_binlog": "0"}
LOAD = MySQLSlap("mixed")
SECONDS = 15.0  # of rounds, with the time between them
LEAST = 5  # rounds
MOST_VOID = 10  # void rounds; with more, the run has no anchor


def measure(provisioner: str, images: Mapping[str, str], progress: Report) -> float:
    """Start the pinned server on hosts of the run's provisioner, and return its operations/s: the median of its rounds.

    provisioner: its name. images: the images of releases from ``--db-image``. Raises DBClusterError if we cannot get or
    start the server, and SeriesVoid for too many void rounds.
    """
    pool = open_pool(provisioner, images=images, progress=progress)
    with contextlib.ExitStack() as stack:
        stack.callback(pool.leave)
        variant = pool.resolution.resolve(
            ClusterSpec("standalone", release=RELEASE, options=OPTIONS, name="anchor"), switched=False
        )
        return _speed(Testbed(LOAD, [variant], pool, "quick", progress))


def _speed(testbed: Testbed) -> float:
    """The median of the rounds that count; the first one is a warm-up."""
    speeds: list[float] = []
    void = block = 0
    began = time.monotonic()
    while len(speeds) <= LEAST or time.monotonic() - began < SECONDS:
        done = testbed.round(0, block=block, position=0)
        block += 1
        if done.void:
            void += 1
            if void > MOST_VOID:
                raise SeriesVoid(f"the anchor: {void} void rounds; the last one because {done.void}")
            continue
        speeds.append(done.throughput)
    return statistics.median(speeds[1:])
