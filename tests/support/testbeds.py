"""Testbeds of real servers, and the specs and the load that their tests share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_dbcluster.claims import kinds
from pytest_dbcluster.formatting import Report
from pytest_dbcluster.measuring.evidence import Evidence
from pytest_dbcluster.measuring.question import Question
from pytest_dbcluster.spec import ClusterSpec, ReleaseName
from pytest_dbcluster.testbed.pool import Pool
from pytest_dbcluster.testbed.testbed import Testbed
from pytest_dbcluster.workloads.mysqlslap import MySQLSlap

ONE = ClusterSpec("standalone", release=ReleaseName("mariadb", "10.11"))
OTHER = ONE.with_options(lock_wait_timeout=40).named("other")
TWO = ClusterSpec("galera", nodes=2, release=ReleaseName("mariadb", "10.11"))
MYSQL = ClusterSpec("standalone", release=ReleaseName("mysql", "9.7"), name="mysql")
WRITE = MySQLSlap("write", concurrency=2, queries=20, rows=100)


def source(
    pool: Pool,
    load: Any,
    *specs: ClusterSpec,
    profile: str = "quick",
    progress: Report = lambda line: None,
    **permits: Any,
) -> Testbed:
    """The testbed of these specs."""
    return Testbed(load, [pool.resolution.resolve(spec) for spec in specs], pool, profile, progress, **permits)


def evidence(made: Testbed, *numbers: int) -> Evidence:
    """What is known about these variants, candidate first."""
    candidate, baseline, *others = numbers
    return made.evidence(Question(kinds.differs(), candidate, baseline, made.metric, tuple(others)))


def differing(made: Testbed, candidate: int, baseline: int) -> Mapping[str, tuple[str, str]]:
    """The server variables that differ between two variants."""
    return evidence(made, candidate, baseline).differences[made.names[candidate], made.names[baseline]]
