"""Runs whose nodes and load generators are guests: Galera under each load with a ledger, and a failover of a pair."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys

import pytest

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

DRBD = ClusterSpec("drbd", nodes=2, release="mariadb:10.11").with_needs(rtt=0.02)
GALERA = ClusterSpec("galera", nodes=1)


def test_the_standby_takes_over(measure):
    done = measure.failover(TPCC(threads=4), on=DRBD)

    assert done.acknowledged + done.unknown >= 20
    assert not done.lost
    assert not done.violations


def test_there_and_back(measure):
    first, second = (measure.failover(TPCC(threads=4), on=DRBD) for _ in range(2))

    assert (first.failover.new, second.failover.new) == ("node1", "node2")


def test_no_standby(measure):
    measure.failover(TPCC(threads=4), on=GALERA)
"""
NODES = 3
HOSTS = ("cpu_user", "cpu_system", "cpu_iowait", "cpu_idle", "disk_read_bytes", "disk_write_bytes")
HOSTS += ("network_sent_bytes", "network_received_bytes")


def run(directory, suite):
    """A run of these tests, with its results below the directory."""
    (directory / "test_claim.py").write_text(suite)
    (directory / "conftest.py").write_text(conftests.OWN_MACHINE)
    words = ["-p", "no:cacheprovider", "--db-provisioner=vm", "--db-max-pairs=2", "--db-results=results"]
    return subprocess.run(
        [sys.executable, "-m", "pytest", *words, "-W", "error"],
        cwd=directory,
        env={**os.environ, "DBCLUSTER_DATA_DIR": str(directory / "runs"), "COLUMNS": "400"},
        capture_output=True,
        text=True,
        timeout=3000,
        check=False,
    )


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
    """Its seconds are printed; all failovers of a run share the pair. A cluster without a standby is not started."""
    done = run(tmp_path, FAILOVER)

    printed = re.findall(r"^failover from (node\d) to (node\d) took \S+ s: fenced \S+ s, promoted ", done.stdout, re.M)
    assert printed == [("node1", "node2"), ("node2", "node1"), ("node1", "node2")], done.stdout
    assert done.stdout.count(", 0 of them lost, and ") == 3
    assert done.stdout.count("starting 1 x mariadb:10.11 as drbd ") == 1
    assert "cluster galera1 has no node that stands by for its server: take topology drbd" in done.stdout
    assert re.search(r"1 failed, 2 passed in ", done.stdout)
