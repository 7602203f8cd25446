"""A run on several releases, on made-up rounds and on real servers: where its matrix is shown and kept."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
import textwrap
import types

import pytest

from pytest_dbcluster.cli import main
from pytest_dbcluster.reporting.tables import matrix
from pytest_dbcluster.system import cache
from tests.plugin.test_outcomes import FAKE
from tests.support import conftests

CACHE = cache.root().parent  # read before pytester gives its runs a home of their own
SUITE = """
    from pytest_dbcluster.spec import ClusterSpec
    from pytest_dbcluster.workloads.mysqlslap import MySQLSlap

    ONE = ClusterSpec("standalone")
    OTHER = ONE.with_options(lock_wait_timeout=40).named("other")
    LOAD = MySQLSlap("read", concurrency=2, queries=20, rows=100)

    def test_same(measure):
        one, other = measure(LOAD, on=[ONE, OTHER])
        assert other.no_slower_than(one, by=0.9)

    def test_galera(measure):
        galera = ClusterSpec("galera", nodes=1)
        one, other = measure(LOAD, on=[galera, galera.with_options(lock_wait_timeout=40).named("other")])
        one.against(other)
"""


@pytest.fixture(scope="module")
def two_vendors(tmp_path_factory):
    """A run on real servers of two vendors: its directory and its output, once for all tests."""
    path = tmp_path_factory.mktemp("two_vendors")
    (path / "conftest.py").write_text(conftests.OWN_MACHINE + conftests.NO_CHARTS + conftests.SHORT_ROUNDS)
    (path / "test_suite.py").write_text(textwrap.dedent(SUITE))
    (path / "pytest.ini").write_text("[pytest]\n")
    words = ["-p", "pytest_dbcluster.plugin.hooks", "-p", "allure_pytest", "--db-max-pairs=8", "--db-seed=1"]
    releases = ["--db-release=mysql:9.7", "--db-release=mariadb:10.11"]
    environment = {
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "COLUMNS": "100",
        "XDG_CACHE_HOME": str(CACHE),
        "DBCLUSTER_DATA_DIR": str(path / "runs"),
    }
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words, *releases],
        cwd=path,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    return types.SimpleNamespace(path=path, output=pytest.LineMatcher(done.stdout.splitlines()))


def attached(latest):
    """The text that Allure shows beside all tests."""
    [kept] = (latest / "allure-results").glob("*-globals.json")
    [found] = json.loads(kept.read_text())["attachments"]
    return (latest / "allure-results" / found["source"]).read_text()


@pytest.mark.thorough
def test_a_run_on_two_vendors_ends_with_its_matrix(two_vendors):
    """On real servers: terminal, summary, CSV and Allure have it, with a dash for what a vendor lacks."""
    two_vendors.output.fnmatch_lines(
        [
            "*= matrix: *",
            "claim * load * mariadb:10.11 * mysql:9.7",
            "other.no_slower_than(*",
            "releases: mariadb:10.11 10.11.*, mysql:9.7 9.7.*",
            "[[]1[]] mysql:9.7 (*",
        ]
    )
    latest = two_vendors.path / "reports" / "latest"
    lines = list(csv.DictReader((latest / matrix.FILE).read_text().splitlines()))
    assert "- [1] mysql:9.7 (" in (latest / "summary.md").read_text().partition("## matrix: ")[2]
    assert [(one["release"], one["verdict"]) for one in lines if one["test"].endswith("test_galera")] == [
        ("mariadb:10.11", "unclear"),
        ("mysql:9.7", "skipped"),
    ]
    assert "no Galera library" in attached(latest)


@pytest.mark.thorough
def test_its_claims_stand_side_by_side_in_the_report(two_vendors, capsys):
    """``dbcluster report`` reads the same run: one claim on both releases, with absolute figures of each."""
    latest = two_vendors.path / "reports" / "latest"

    assert main.main(["report", str(latest)]) == 0
    head, same, galera, *_ = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"claim +load +mariadb:10\.11 10\.11\.\S+ +mysql:9\.7 9\.7\.\S+", head)
    assert re.search(r"other\.no_slower_than\(.* holds, \S+ v \S+ /s .* holds, \S+ v \S+ /s$", same)
    assert re.search(r"galera1 against other .* compared, \S+ v \S+ /s$", galera)
    assert (latest / "index.md").read_text().startswith("## Claims by release\n\n| claim | load | mariadb:10.11 ")
    assert "Claims by release" in (latest / "index.html").read_text()


MADE_UP = """
    from pytest_dbcluster.errors import Unsupported
    from pytest_dbcluster.spec import ClusterSpec

    ONE = ClusterSpec("standalone")

    def test_same(measure, db_release):
        one, other = measure("mysqlslap read", on=[ONE, ONE.named("other")])
        assert other.beats(one)

    def test_lacking(measure, db_release):
        if db_release.product == "mysql":
            raise Unsupported("mysql:9.7 has no such thing")
        one, other = measure("mysqlslap write", on=[ONE, ONE.named("other")])
        assert other.beats(one)
"""


def test_the_matrix_of_a_worker_is_shown_and_kept(pytester, monkeypatch):
    """Terminal, summary, CSV, Allure and ``dbcluster report`` have what it measured and skipped on each release."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("COLUMNS", "100")
    pytester.makeconftest(FAKE.read_text() + conftests.NO_CHARTS)
    pytester.makepyfile(MADE_UP)
    words = ["-p", "pytest_dbcluster.plugin.hooks", "-p", "allure_pytest", "-p", "xdist", "-n1", "--db-seed=1"]
    result = pytester.runpytest_inprocess(*words, "--db-release=mysql:9.7", "--db-release=mariadb:10.11")
    latest = pytester.path / "reports" / "latest"

    result.stdout.fnmatch_lines_random(
        [
            "other.beats(standalone1)  mysqlslap read  *1.* holds *1.* holds",
            "other.beats(standalone1)  mysqlslap write *1.* holds *skipped [[]1[]]",
            "[[]1[]] mysql:9.7 has no such thing",
        ]
    )
    lines = list(csv.DictReader((latest / matrix.FILE).read_text().splitlines()))
    assert sorted(one["verdict"] for one in lines) == ["holds", "holds", "holds", "skipped"]
    assert "- [1] mysql:9.7 has no such thing" in (latest / "summary.md").read_text().partition("## matrix: ")[2]
    assert "mysql:9.7 has no such thing" in attached(latest)

    assert main.main(["report", str(latest), "--output", str(pytester.path / "table.md")]) == 0
    table = (pytester.path / "table.md").read_text()
    assert table.startswith("## Claims by release\n\n| claim | load | mariadb:10.11 1.2.3 | mysql:9.7 1.2.3 |")
