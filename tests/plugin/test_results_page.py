"""A run ends with its page."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import conftests

FAKE = Path(__file__).parents[1] / "support" / "fake_session.py"
WORDS = ["-p", "no:cacheprovider", "-p", "no:hypothesispytest", "-p", "no:benchmark", "--db-seed=5"]
SUITE = """
    from pytest_dbcluster.spec import ClusterSpec

    ONE = ClusterSpec("galera", nodes=3)
    OTHER = ONE.with_options(lock_wait_timeout=40).named("other")

    def test_slower(measure):
        one, other = measure("mysqlslap read", on=[ONE, OTHER])
        assert one.beats(other)

    def test_broken(measure):
        one, other = measure("mysqlslap write", on=[ONE, OTHER])
        raise RuntimeError("node2 has no disk")
"""


@pytest.fixture
def suite(pytester, monkeypatch):
    """A suite on made-up rounds with a refuted claim and a broken test."""
    monkeypatch.setenv("COLUMNS", "200")
    pytester.makeconftest(FAKE.read_text())
    pytester.makepyfile(test_suite=SUITE)
    return pytester


@pytest.mark.parametrize("workers", [[], ["-n2"]], ids=["one process", "two workers"])
def test_the_last_line_counts_and_names_the_page(suite, workers):
    """Broken tests are counted too. The page says what was refuted, and lists what broke."""
    result = suite.runpytest_subprocess(*WORDS, *workers)
    page = suite.path / "reports" / "latest" / "index.html"

    result.stdout.fnmatch_lines(
        [
            "*= broken: says nothing about speed =*",
            "! broken  test_suite.py::test_broken",
            "          RuntimeError: node2 has no disk",
            f"1 refuted, 1 broken{' ' * 148}report: reports/latest/index.html",
        ]
    )
    assert "None of 1 claims holds" not in page.read_text()
    assert "1 is refuted: galera3 is not faster than other (mysqlslap read); 1 test is broken." in page.read_text()
    assert "node2 has no disk" in page.read_text()


def test_a_page_that_fails_loses_nothing(suite):
    """The closing table is printed first, the files are there, and the status is that of the tests."""
    suite.makeconftest(
        FAKE.read_text()
        + "\nfrom pytest_dbcluster.reporting.page import report_page\nreport_page.html = lambda read: 1 / 0\n"
    )
    result = suite.runpytest_subprocess(*WORDS)
    latest = suite.path / "reports" / "latest"

    result.stdout.fnmatch_lines(
        ["*performance claims*", "no page: ZeroDivisionError: *; the results are*", "1 refuted, 1 broken"]
    )
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert (latest / "claims.jsonl").exists()
    assert not (latest / "index.html").exists()


def test_without_matplotlib_a_line_says_what_to_install(suite):
    """And nothing else is missing."""
    suite.makeconftest(FAKE.read_text() + conftests.NO_CHARTS)
    result = suite.runpytest_subprocess(*WORDS, "-k", "slower")

    result.stdout.fnmatch_lines(["no charts and no page: matplotlib is not installed; pip install *"])
    result.stdout.no_fnmatch_line("*report: *")
