"""The anchor: the speed of one pinned server under one pinned load, measured at the end of a run with a history.

A ratio of two variants does not see a change that slows both. Relative to the anchor each variant's own speed can be
compared with that of earlier runs: a slower machine slows the anchor too, a slower server or my.cnf does not.
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
SECONDS = 15.0  # of rounds, with what lies between them
LEAST = 5  # rounds
MOST_VOID = 10  # rounds that did not count, before there is no anchor


def measure(provisioner: str, images: Mapping[str, str], progress: Report) -> float:
    """Start the pinned server where the run's clusters ran, and return its operations/s: the median of its rounds.

    provisioner: its name. images: of releases, as given by ``--db-image``. Raises DBClusterError when the server cannot
    be had or started, and SeriesVoid for too many void rounds.
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
                raise SeriesVoid(f"the anchor: {void} rounds did not count, the last one because {done.void}")
            continue
        speeds.append(done.throughput)
    return statistics.median(speeds[1:])
