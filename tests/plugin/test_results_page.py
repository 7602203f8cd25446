"""A run ends with its page."""

from __future__ import annotations

import fnmatch
import html
import re
from pathlib import Path

import pytest

from pytest_dbcluster.reporting.documents.run_document import read_run
from tests.support import conftests

FAKE = Path(__file__).parents[1] / "support" / "fake_session.py"
WORDS = [*conftests.PLAIN, "--db-seed=5"]
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


# Charts of claims are no part of these tests.
QUICK = FAKE.read_text() + 'PATCHES["pytest_dbcluster.reporting.charts.claim.svg"] = lambda *given, **more: "<svg/>"\n'


@pytest.fixture
def suite(pytester, monkeypatch):
    """A suite on made-up rounds with a refuted claim and a broken test."""
    monkeypatch.setenv("COLUMNS", "400")
    pytester.makeconftest(QUICK)
    pytester.makepyfile(test_suite=SUITE)
    return pytester


@pytest.mark.parametrize("workers", [[], ["-n1"]], ids=["one process", "a worker"])
def test_the_last_line_counts_and_names_the_page(suite, workers):
    """Broken tests are counted too. The page says what was refuted, and lists what broke."""
    result = suite.runpytest_inprocess(*WORDS, *workers)
    page = suite.path / "reports" / "latest" / "index.html"

    result.stdout.fnmatch_lines(
        [
            "*= broken: says nothing about speed =*",
            "! broken  test_suite.py::test_broken",
            f"1 refuted, 1 broken{' ' * 348}report: reports/latest/index.html",
        ]
    )
    sentence = "The only claim is refuted: galera3 is not faster than other (mysqlslap read); 1 test is broken."
    assert sentence in page.read_text()
    assert "node2 has no disk" in page.read_text()


def test_a_page_that_fails_loses_nothing(suite):
    """The closing table is printed first, the files are there, and the status is that of the tests."""
    suite.makeconftest(QUICK + '\nPATCHES["pytest_dbcluster.reporting.page.report_page.html"] = lambda *given: 1 / 0\n')
    result = suite.runpytest_inprocess(*WORDS)
    latest = suite.path / "reports" / "latest"

    result.stdout.fnmatch_lines(
        ["*performance claims*", "no page: ZeroDivisionError: *; the results are*", "1 refuted, 1 broken"]
    )
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert (latest / "claims.jsonl").exists()
    assert not (latest / "index.html").exists()


def test_a_page_that_takes_long_says_so(suite):
    """How far it is, that it is slow, and what else makes it."""
    suite.makeconftest(
        QUICK + '\nPATCHES |= {f"pytest_dbcluster.reporting.page.making.{name}": 0.0 for name in ("FIRST", "SLOW")}\n'
    )
    suite.makepyfile(test_suite=SUITE.replace('raise RuntimeError("node2 has no disk")', "assert one.beats(other)"))
    result = suite.runpytest_inprocess(*WORDS)
    latest = suite.path / "reports" / "latest"

    result.stdout.fnmatch_lines(
        [f"making the page: 1 of 2 claims after * s, which is slow; *`dbcluster report {latest}` *"]
    )
    assert (latest / "index.html").exists()


def test_ctrl_c_leaves_the_page_out(suite):
    """Nobody has to wait for it; the status is that of the tests."""
    suite.makeconftest(
        QUICK
        + "\ndef stop(*given):\n    raise KeyboardInterrupt\n"
        + '\nPATCHES["pytest_dbcluster.reporting.page.report_page.html"] = stop\n'
    )
    result = suite.runpytest_inprocess(*WORDS)
    latest = suite.path / "reports" / "latest"

    result.stdout.fnmatch_lines(
        [f"no page: its making was interrupted; the results are complete, and *{latest}* makes it"]
    )
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert (latest / "claims.jsonl").exists()


@pytest.mark.parametrize(
    ("view", "said"),
    [
        (
            "page.claim_view.view",
            "claim 1 (*.beats(other), mysqlslap read) could not be shown (ZeroDivision*",
        ),
        ("page.causes.causes", "claim 1 (*.beats(other), mysqlslap read) could not be shown (ZeroDivision*"),
        ("page.comparison_view.view", "the comparison of claims could not be shown (ZeroDivisionError: *"),
        ("charts.forest.svg", "the plot of all claims could not be shown (ZeroDivisionError: *"),
        ("charts.claim.svg", "claim 1 (*.beats(other), mysqlslap read) could not be shown (ZeroDivision*"),
    ],
)
def test_a_view_that_fails_is_left_out_alone(suite, view, said):
    """The page has all others and names it; the verdicts and the outcome of the test are what they were."""
    broken = f'\nPATCHES["pytest_dbcluster.reporting.{view}"] = lambda *given, **more: 1 / 0\n'
    suite.makeconftest(QUICK + broken)
    result = suite.runpytest_inprocess(*WORDS)
    latest = suite.path / "reports" / "latest"
    [note] = re.findall(r'<p class="note">\s*(.*)\s*</p>', (latest / "index.html").read_text())

    assert fnmatch.fnmatch(html.unescape(note), said[0].upper() + said[1:])
    result.assert_outcomes(failed=2)
    assert read_run(latest).tests[0].outcome == "refuted"
    assert "The only claim is refuted: galera3 is not faster than other" in (latest / "index.html").read_text()


def test_a_chart_that_fails_breaks_no_test(suite):
    """It is named once, at the end."""
    suite.makeconftest(
        FAKE.read_text() + '\nPATCHES["pytest_dbcluster.reporting.charts.claim.svg"] = lambda *given, **more: 1 / 0\n'
    )
    result = suite.runpytest_inprocess(*WORDS, "-k", "slower")

    said = " ".join(result.stdout.str().split())  # a long line is wrapped
    assert re.search(r"NOT WRITTEN: \S*charts/01-\S*\.svg: the chart failed with ZeroDivisionError: ", said)
    assert read_run(suite.path / "reports" / "latest").tests[0].outcome == "refuted"


def test_without_matplotlib_a_line_says_what_to_install(suite):
    """And nothing else is missing."""
    suite.makeconftest(FAKE.read_text() + conftests.NO_CHARTS)
    result = suite.runpytest_inprocess(*WORDS, "-k", "slower")

    result.stdout.fnmatch_lines(["no charts and no page: matplotlib is not installed; pip install *"])
    result.stdout.no_fnmatch_line("*report: *")
