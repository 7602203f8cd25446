"""A run on several releases, on real servers: where its matrix is shown and kept."""

from __future__ import annotations

import csv
import json

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


def test_a_run_on_two_vendors_ends_with_its_matrix(pytester, monkeypatch):
    """On real servers: terminal, summary, CSV and Allure have it, with a dash for what a vendor lacks."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("XDG_CACHE_HOME", str(CACHE))
    pytester.makeconftest(conftests.OWN_MACHINE + conftests.NO_CHARTS)
    pytester.makepyfile(SUITE)
    words = ["-p", "pytest_dbcluster.plugin.hooks", "-p", "allure_pytest", "--db-max-pairs=6", "--db-seed=1"]
    result = pytester.runpytest_subprocess(*words, "--db-release=mysql:9.7", "--db-release=mariadb:10.11")

    result.stdout.fnmatch_lines(
        [
            "*= matrix: *",
            "claim * load * mariadb:10.11 * mysql:9.7",
            "other.no_slower_than(*",
            "releases: mariadb:10.11 10.11.*, mysql:9.7 9.7.*",
            "[[]1[]] mysql:9.7 (*",
        ]
    )
    latest = pytester.path / "reports" / "latest"
    lines = list(csv.DictReader((latest / matrix.FILE).read_text().splitlines()))
    assert "- [1] mysql:9.7 (" in (latest / "summary.md").read_text().partition("## matrix: ")[2]
    assert [(one["release"], one["verdict"]) for one in lines if one["test"].endswith("test_galera")] == [
        ("mariadb:10.11", "unclear"),
        ("mysql:9.7", "skipped"),
    ]
    [kept] = (latest / "allure-results").glob("*-globals.json")
    [attached] = json.loads(kept.read_text())["attachments"]
    assert "no Galera library" in (latest / "allure-results" / attached["source"]).read_text()


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


def test_workers_have_one_matrix(pytester, monkeypatch):
    """What each of them measured and skipped stands in the table of the process that the user started."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("COLUMNS", "100")
    pytester.makeconftest(FAKE.read_text() + conftests.NO_CHARTS)
    pytester.makepyfile(MADE_UP)
    words = ["-p", "pytest_dbcluster.plugin.hooks", "-p", "xdist", "-n2", "--db-seed=1"]
    result = pytester.runpytest_subprocess(*words, "--db-release=mysql:9.7", "--db-release=mariadb:10.11")

    result.stdout.fnmatch_lines_random(
        [
            "other.beats(standalone1)  mysqlslap read  *1.* holds *1.* holds",
            "other.beats(standalone1)  mysqlslap write *1.* holds *- [[]1[]]",
            "[[]1[]] mysql:9.7 has no such thing",
        ]
    )
    lines = list(csv.DictReader((pytester.path / "reports" / "latest" / matrix.FILE).read_text().splitlines()))
    assert sorted(one["verdict"] for one in lines) == ["holds", "holds", "holds", "skipped"]
