"""Runs whose nodes and load generators are guests: Galera under each load with a ledger, and a pair on DRBD.

The pair fails over, and a chart of it is killed and continued.
"""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys

import psutil
import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.reporting import schema
from tests.support import conftests, guests

pytestmark = [
    pytest.mark.guests,
    pytest.mark.skipif(bool(guests.missing()), reason=guests.missing() or "there can be guests"),
]

SUITE = """\
import pytest

from pytest_dbcluster import TPCC, ClusterSpec, SysBench

LOADS = {
    "sysbench": SysBench("oltp_read_write", size=500, threads=2, to="writer", seconds=2.0),
    "tpcc": TPCC(warehouses=1, threads=2, to="writer", seconds=2.0),
}


@pytest.mark.parametrize("load", LOADS)
def test_claim(measure, load):
    spec = ClusterSpec("galera", nodes=3, release="mariadb:10.11")
    one, other = measure(LOADS[load], on=[spec.named("one"), spec.with_options(long_query_time=9).named("other")])
    one.against(other)
"""
FAILOVER = """\
from pytest_dbcluster import TPCC, ClusterSpec
from pytest_dbcluster.events import FailOver

DRBD = ClusterSpec("drbd", nodes=2, proxy="haproxy", release="mariadb:10.11").with_needs(rtt=0.02)
GALERA = ClusterSpec("galera", nodes=1, proxy="haproxy")


def test_the_standby_takes_over(measure):
    done = measure.event(TPCC(threads=4), FailOver(), on=DRBD, times=2)

    assert done.loses_nothing()
    print([outage.node for outage in done.outages])


def test_no_standby(measure):
    measure.event(TPCC(threads=4), FailOver(), on=GALERA)
"""
CHART = """\
import os
import time

from pytest_dbcluster import ClusterSpec, SysBench

NEAR = ClusterSpec("drbd", nodes=2, release="mariadb:10.11").with_needs(rtt=0).named("near")
FAR = NEAR.with_needs(rtt=0.02).named("far")
COMMITS = SysBench("oltp_update_index", size=500, to="writer", seconds=0.5)


def test_chart(measure):
    curve = measure.sweep(COMMITS, on=[NEAR, FAR], threads=(1, 2, 4))
    save, drawn = curve.point_drawn, []

    def saved(curve):
        save(curve)
        drawn.append(curve)
        while "WAIT" in os.environ and len(drawn) == 2:
            time.sleep(0.1)

    curve.point_drawn = saved
    curve.draw(2, relative_to="near")
"""
NODES = 3
HOSTS = ("cpu_user", "cpu_system", "cpu_iowait", "cpu_idle", "disk_read_bytes", "disk_write_bytes")
HOSTS += ("network_sent_bytes", "network_received_bytes")


def begun(directory, suite, *words, **variables):
    """A run of these tests that has begun, with its results below the directory; whoever begins it ends it."""
    (directory / "test_claim.py").write_text(suite)
    (directory / "conftest.py").write_text(conftests.OWN_MACHINE)
    usual = ["-p", "no:cacheprovider", "--db-provisioner=vm", "--db-max-pairs=2", "--db-results=results"]
    return subprocess.Popen(
        [sys.executable, "-m", "pytest", *usual, "-W", "error", *words],
        cwd=directory,
        env={**os.environ, "DBCLUSTER_DATA_DIR": str(directory / "runs"), "COLUMNS": "400", **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def run(directory, suite, *words):
    """A run of these tests, once it has ended."""
    with begun(directory, suite, *words) as process:
        said, _ = process.communicate(timeout=3000)
    return subprocess.CompletedProcess(process.args, process.returncode, said)


def test_every_load_measures_galera_in_guests(tmp_path):
    """Every second has CPU, disk and network of each guest, from inside of it."""
    done = run(tmp_path, SUITE)
    assert done.returncode == 0, done.stdout
    claims = [json.loads(line) for line in (tmp_path / "results/claims.jsonl").read_text().splitlines()]

    assert [len(claim["rounds"]["one"]) for claim in claims] == [2, 2], done.stdout
    assert all(claim["fingerprint"]["guests"].startswith("user-mode Linux ") for claim in claims)
    for claim in claims:
        with (tmp_path / "results" / claim["timeline_file"]).open(newline="") as file:
            rows = list(csv.DictReader(file))
        hosts = [*(f"node{number}" for number in range(1, NODES + 1)), "client"]
        assert {f"{name}_{host}" for name in HOSTS for host in hosts} <= set(rows[0])
        for host in hosts:
            sent = [float(row[f"network_sent_bytes_{host}"] or 0) for row in rows]
            busy = [float(row[f"cpu_user_{host}"] or 0) + float(row[f"cpu_system_{host}"] or 0) for row in rows]
            assert max(sent) > 1000, host
            assert max(busy) > 0, host


def test_a_pair_fails_over_under_load_and_goes_on(tmp_path):
    """All repetitions share the pair. A cluster without a standby is not started."""
    done = run(tmp_path, FAILOVER, "-s")

    assert "['node1', 'node2']" in done.stdout, done.stdout
    assert done.stdout.count("starting 1 x mariadb:10.11 as drbd ") == 1
    assert "a cluster of topology galera has no standby for its server; use drbd" in done.stdout
    assert "starting 1 x mariadb:10.11 as galera" not in done.stdout
    assert re.search(r"1 failed, 1 passed in ", done.stdout)


def test_a_chart_that_was_killed_goes_on_at_its_next_point(tmp_path):
    """Points that were drawn are kept, round by round. The guests of the killed run end with it."""
    results = tmp_path / "results"

    def drawn():
        curves = schema.read_curves(results, whole=False) if results.exists() else []
        return [] if [list(curve.values) for curve in curves] == [[1, 2]] else ["two values are not drawn yet"]

    with begun(tmp_path, CHART, WAIT="1") as process:
        try:
            wait.until(drawn, "two values of the chart", seconds=600)
            programs = psutil.Process(process.pid).children(recursive=True)
        finally:
            process.send_signal(signal.SIGKILL)
    left = psutil.wait_procs(programs, timeout=120)[1]
    (before,) = schema.read_curves(results, whole=False)
    done = run(tmp_path, CHART, "--db-resume")
    (after,) = schema.read_curves(results)

    assert left == []
    assert done.returncode == 0, done.stdout
    assert "2 of 3 values were drawn before; values with all their rounds are kept" in done.stdout
    assert (before.drawn, after.drawn, list(after.values)) == (0, 2, [1, 2, 4])
    rounds = {(point.value, point.variant): point.rounds for point in after.points}
    assert all(rounds[point.value, point.variant] == point.rounds for point in before.points)
    assert [len(rounds[4, name]) for name in ("near", "far")] == [2, 2]
