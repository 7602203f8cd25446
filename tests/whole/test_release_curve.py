"""A run of ``suites/versions`` on real servers of two releases: its line, and a release that is not there."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import conftests
from tests.support.facts import missing

ROOT = Path(__file__).parents[2]
# No mirror has a release, so what is not in the cache cannot be fetched. Clusters of one node start faster.
NEARBY = """
import fixtures.clusters
from fixtures import loads
from pytest_dbcluster import ClusterSpec, MySQLSlap
from pytest_dbcluster.releases import sources

sources.candidates = lambda *given: []
fixtures.clusters.ASYNC = ClusterSpec("standalone", name="async")
loads.slap = lambda mode: MySQLSlap(mode, concurrency=2, queries=60, rows=200)
"""
RELEASES = ("mariadb:11.8", "mariadb:10.6", "mariadb:10.11")


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    """The run, once for all tests."""
    place = tmp_path_factory.mktemp("versions")
    parts = (conftests.OWN_MACHINE, conftests.NO_CHARTS, conftests.SHORT_ROUNDS, NEARBY)
    (place / "conftest.py").write_text("".join(parts))
    (place / "pytest.ini").write_text("[pytest]\n")
    (place / "test_versions.py").write_text((ROOT / "suites" / "versions" / "test_versions.py").read_text())
    options = [f"--db-release={name}" for name in RELEASES]
    own = {"PYTHONPATH": str(ROOT), "COLUMNS": "400", "DBCLUSTER_DATA_DIR": str(place / "runs")}
    return place, subprocess.run(
        [sys.executable, "-m", "pytest", "-k", "write", "--db-max-pairs=12", "--db-seed=2", *options],
        cwd=place,
        env={**os.environ, **own},
        capture_output=True,
        text=True,
        check=False,
    )


def test_each_release_has_a_row_and_a_missing_one_its_reason(result):
    """The oldest comes first, with its ratio to the newest; both exact versions are below."""
    place, done = result
    lines = done.stdout.splitlines()
    start = next((number for number, line in enumerate(lines) if "= curve: mysqlslap write c2" in line), None)
    assert start is not None, done.stdout + done.stderr
    heading, older, newest, *notes = (" ".join(line.split()) for line in lines[start + 1 :])
    below = " ".join(notes)

    assert heading == "release async ratio"
    assert missing(older, "mariadb:10.11 ", "x (", " .. ") == []
    assert missing(newest, "mariadb:11.8 ", " 1.00x") == []
    assert missing(below, "mariadb:10.6 is left out: ", "releases: mariadb:10.11 10.11.", ", mariadb:11.8 11.8.") == []
    assert "ratio to mariadb:11.8 (99.9 %)" in (place / "reports/latest/summary.md").read_text()


def test_the_newer_release_is_claimed_against_the_older_one(result):
    """The claim names both, and its file has the rounds of both."""
    place, _ = result
    [kept] = (place / "reports" / "latest" / "curves").glob("*.csv")
    rows = list(csv.DictReader(kept.read_text().splitlines()))

    assert [(row["release"], row["variant"], row["rounds"]) for row in rows] == [
        ("mariadb:10.11", "async", "17"), ("mariadb:11.8", "async", "17"),
    ]  # fmt: skip
    assert (
        "`async@mariadb:11.8.no_slower_than(async@mariadb:10.11, by=0.1)`"
        in (place / "reports/latest/summary.md").read_text()
    )
