"""A race as a user starts it: pytest, one real server that is switched, and its results."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.support import conftests

SUITE = """\
from pytest_dbcluster import ClusterSpec, MySQLSlap

SERVER = ClusterSpec("standalone", options={"innodb_log_file_buffering": "ON"})
FLUSH = [SERVER.with_options(innodb_flush_log_at_trx_commit=n).named(f"flush_{n}") for n in (0, 1, 2)]
WRITE = MySQLSlap("write", concurrency=2, queries=60, rows=200)


def test_best(measure):
    winner = measure.race(WRITE, on=FLUSH, by=.5)
    assert winner.name.startswith("flush_")


def test_one(measure):
    measure.race(WRITE, on=FLUSH[:1])


def test_again(measure):
    measure.race(WRITE, on=[*FLUSH, SERVER.with_options(innodb_flush_log_at_trx_commit="2").named("again")])


def test_one_spec(measure):
    measure.race(WRITE, on=FLUSH[0])


def test_margin(measure):
    measure.race(WRITE, on=FLUSH, by=5)
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The directory of a run of the suite, and what it printed."""
    place = tmp_path_factory.mktemp("race")
    (place / "test_suite.py").write_text(SUITE)
    (place / "pytest.ini").write_text("[pytest]\n")
    (place / "conftest.py").write_text(conftests.OWN_MACHINE + conftests.SHORT_ROUNDS)
    words = ["-W", "error", "-p", "no:cacheprovider", "-p", "no:hypothesispytest", "-v", "--db-seed=4"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words],
        cwd=place,
        env={**os.environ, "DBCLUSTER_DATA_DIR": str(place / "runs"), "COLUMNS": "400"},
        capture_output=True,
        text=True,
        check=False,
    )
    return place, done


def test_one_server_races_three_variants(run):
    """Whatever wins, or if the disk is so fast that nothing does: wrong use fails, and only one server starts."""
    _, done = run

    assert "4 failed, 1 " in done.stdout, done.stdout + done.stderr
    assert done.stdout.count("starting standalone x mariadb") <= 1
    assert "measure.race accepts 2 to 17 clusters, got 1" in done.stdout
    assert "flush_2 and again are the same cluster" in done.stdout
    assert "measure.race(workload, on=[...]) accepts a list of ClusterSpec; got ClusterSpec(" in done.stdout
    assert "by is out of range, 0 < by < 1; it is a fraction: 5 means 500 %" in done.stdout


def test_the_record_has_the_place_of_each_variant(run):
    """In the line of its claim, and on the page; rounds of a variant that left are fewer."""
    place, _ = run
    latest = place / "reports" / "latest"
    [claim] = map(json.loads, (latest / "claims.jsonl").read_text().splitlines())
    places = claim["standings"]

    assert claim["kind"] == "race"
    assert claim["text"] == "race(flush_0, flush_1, flush_2, by=0.5)"
    assert sorted(one["name"] for one in places) == ["flush_0", "flush_1", "flush_2"]
    assert [len(claim["rounds"][one["name"]]) for one in places] == [one["rounds"] for one in places]
    assert places[0]["rounds"] == max(one["rounds"] for one in places)
    assert all(one["beaten_by"] for one in places if one["rounds"] < places[0]["rounds"])
    assert claim["candidate"] == places[0]["name"]
    page = (latest / "index.html").read_text()
    assert f"speed / {places[0]['name']}" in page
    assert "left after" in page or not any(one["beaten_by"] for one in places)
