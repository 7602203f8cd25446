"""``run.json`` of whole runs on made-up rounds: every test with its outcome, whatever ends the run."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.reporting import schema
from pytest_dbcluster.reporting.documents.run_document import read_run
from pytest_dbcluster.version import __version__
from tests.support import conftests
from tests.support.facts import missing

FAKE = Path(__file__).parents[1] / "support" / "fake_session.py"
WORDS = [*conftests.PLAIN, "--db-seed=5"]
HEAD = """
    import os
    import signal
    import time

    import pytest
    from pytest_dbcluster import errors
    from pytest_dbcluster.spec import ClusterSpec

    ONE = ClusterSpec("galera", nodes=3)
    OTHER = ONE.with_options(lock_wait_timeout=40).named("other")
"""
EVERY = """
    def test_faster(measure):
        one, other = measure("mysqlslap write", on=[ONE, OTHER])
        assert other.beats(one)

    def test_slower(measure):
        one, other = measure("mysqlslap read", on=[ONE, OTHER])
        assert one.beats(other)

    def test_open(measure):
        one, other = measure("mysqlslap read", on=[ONE, OTHER])
        assert other.beats(one, by=0.5)

    def test_checks(measure):
        one, other = measure("dies", on=[ONE, OTHER])
        assert other.beats(one)

    def test_compares(measure):
        one, other = measure("mysqlslap read", on=[ONE, OTHER])
        other.against(one)

    def test_lacks(measure):
        raise errors.Unsupported("no mysqlrouter on PATH")

    @pytest.mark.xfail(reason="known")
    def test_known(measure):
        one, other = measure("mysqlslap read", on=[ONE, OTHER])
        assert one.beats(other)

    @pytest.fixture
    def wrong():
        yield
        raise RuntimeError("after the test")

    def test_teardown(measure, wrong):
        one, other = measure("mysqlslap read", on=[ONE, OTHER])
        assert other.beats(one)

    def test_plain():
        pass

    def test_red():
        assert 1 == 2
"""
SHOWS = """
    def test_shows(measure):
        one, other = measure("mysqlslap read", on=[ONE, OTHER])
        one.beats(other).show()

    def test_shows_after_a_claim(measure):
        one, other = measure("mysqlslap write", on=[ONE, OTHER])
        answer = other.beats(one)
        assert answer
        answer.show()
"""
OUTCOMES = {
    "test_faster": "holds",
    "test_slower": "refuted",
    "test_open": "inconclusive",
    "test_checks": "broken",
    "test_compares": "passed",
    "test_lacks": "skipped",
    "test_known": "refuted",
    "test_teardown": "broken",
    "test_plain": "passed",
    "test_red": "broken",
}


@pytest.fixture
def suite(pytester):
    """A suite on made-up rounds, without charts; its body is added by the test."""
    pytester.makeconftest(FAKE.read_text() + conftests.NO_CHARTS)
    return lambda body: pytester.makepyfile(test_suite=HEAD + body)


def run_of(pytester):
    """The run in the results directory of these tests."""
    return read_run(pytester.path / "reports" / "latest")


def outcomes(run):
    """Test -> outcome."""
    return {test.test.partition("::")[2]: test.outcome for test in run.tests}


@pytest.mark.parametrize("workers", [[], ["-n1"]], ids=["one process", "a worker"])
def test_every_test_of_a_run_has_an_outcome(pytester, suite, workers):
    """Broken and skipped tests too, each with its reason; green tests have none."""
    suite(EVERY)

    pytester.runpytest_inprocess(*WORDS, "--db-max-pairs=12", *workers)
    run = run_of(pytester)
    reasons = {test.test.partition("::")[2]: test.reason for test in run.tests}

    assert outcomes(run) == OUTCOMES
    assert {name for name, reason in reasons.items() if not reason} == {"test_faster", "test_compares", "test_plain"}
    assert reasons["test_lacks"] == "no mysqlrouter on PATH"
    assert reasons["test_checks"].startswith("tables differ on node db2")
    assert "after the test" in reasons["test_teardown"]
    assert (run.selected, run.cut_short) == (len(OUTCOMES), "")
    assert run.began < run.ended
    assert run.releases == {"mariadb:10.11": "1.2.3"}
    assert run.command.startswith("pytest ")
    assert "--db-seed=5" in run.command
    assert run.machine.memory > 2**20
    assert run.plugin_version == __version__


RERUN = """
    import pytest

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(item, call):
        report = yield
        if item.name == "test_plain" and call.when == "call":
            item.ihook.pytest_runtest_logreport(report=again(report))
        return report

    def again(report):
        import copy
        twin = copy.copy(report)
        twin.outcome = "rerun"
        return twin
"""


def test_a_part_that_another_plugin_repeats_ends_no_run(pytester, suite):
    """Only its last report counts: pytest-rerunfailures reports those before it as "rerun"."""
    pytester.makeconftest((pytester.path / "conftest.py").read_text() + textwrap.dedent(RERUN))
    suite(EVERY)
    result = pytester.runpytest_inprocess(*WORDS, "-k", "test_plain or test_faster")

    assert result.ret == 0
    assert outcomes(run_of(pytester)) == {"test_faster": "holds", "test_plain": "passed"}


def test_a_test_that_only_shows_claims_nothing(pytester, suite):
    """Its answer may be refuted; a test that asserts an answer and then shows it has a claim."""
    suite(SHOWS)
    pytester.runpytest_inprocess(*WORDS)

    assert outcomes(run_of(pytester)) == {"test_shows": "passed", "test_shows_after_a_claim": "holds"}


def test_strict_changes_the_color_and_not_the_outcome(pytester, suite):
    """With --db-strict an inconclusive test is red."""
    suite(EVERY)

    result = pytester.runpytest_inprocess(*WORDS, "--db-max-pairs=12", "--db-strict", "-k", "test_open")

    result.assert_outcomes(failed=1, deselected=9)
    assert outcomes(run_of(pytester)) == {"test_open": "inconclusive"}


ENDS = """
    def test_first(measure):
        one, other = measure("mysqlslap write", on=[ONE, OTHER])
        assert other.beats(one)

    def test_second(measure):
        {body}

    def test_third(measure):
        pass
"""


@pytest.mark.parametrize(
    ("body", "options", "why"),
    [
        ("raise KeyboardInterrupt", [], "Ctrl-C"),
        ("pytest.exit('no room')", [], "no room"),
        ("assert False", ["-x"], "stopping after 1 failures"),
    ],
    ids=["Ctrl-C", "exit", "-x"],
)
def test_a_run_that_is_cut_short_says_why(pytester, suite, body, options, why):
    """What had ended before has its outcome."""
    suite(ENDS.format(body=body))

    pytester.runpytest_inprocess(*WORDS, *options, no_reraise_ctrlc=True)
    run = run_of(pytester)

    assert run.cut_short == why
    assert outcomes(run)["test_first"] == "holds"
    assert run.ended_tests < run.selected == 3
    assert run.ended
    ended = outcomes(run)["test_second"]
    assert ended == ("broken" if "-x" in options else "cut short")
    assert "test_third" not in outcomes(run)


CLAIMS = """
        one, other = measure("mysqlslap write", on=[ONE, OTHER])
        assert other.beats(one)
        os.kill({process}, signal.SIGTERM)
        time.sleep(60)
"""


@pytest.mark.parametrize(
    ("process", "workers"), [("os.getpid()", []), ("os.getppid()", ["-n1"])], ids=["one process", "a worker"]
)
def test_the_test_of_each_claim_is_in_the_file(pytester, suite, process, workers):
    """A signal may interrupt a test after it has made a claim: it is there as cut short, with the reason of the run."""
    suite(ENDS.format(body=CLAIMS.format(process=process)))

    pytester.runpytest_subprocess(*WORDS, *workers)
    run = run_of(pytester)
    claims = schema.read_claims(pytester.path / "reports" / "latest")

    assert {claim.test for claim in claims} <= {test.test for test in run.tests}
    assert [claim.test.partition("::")[2] for claim in claims] == ["test_first", "test_second"]
    assert outcomes(run) == {"test_first": "holds", "test_second": "cut short"}
    assert run.tests[-1].reason == run.cut_short == "the run was ended by SIGTERM"
    assert run.ended_tests < run.selected == 3
    assert run.ended


def test_the_budget_of_the_run_is_a_reason(pytester, suite):
    """All tests have ended, and some only because the time was used."""
    suite("""
    def test_first(measure):
        one, other = measure("mysqlslap write", on=[ONE, OTHER])
        time.sleep(0.7)
        assert other.beats(one)
    """)

    pytester.runpytest_inprocess(*WORDS, "--db-run-budget=0.5")
    run = run_of(pytester)

    assert outcomes(run) == {"test_first": "inconclusive"}
    assert missing(run.cut_short, "the run's budget", "--db-run-budget", "spent") == []


def test_a_killed_run_has_its_file(pytester, suite):
    """With the tests that had ended, and without an end. It is there as soon as the first test begins."""
    suite(ENDS.format(body="time.sleep(600)"))
    directory = pytester.path / "reports" / "latest"

    def second():
        run = read_run(directory) if directory.exists() else None
        return [] if run and run.ended_tests else ["the first test"]

    command = [sys.executable, "-m", "pytest", *WORDS]
    with subprocess.Popen(command, cwd=pytester.path, stdout=subprocess.DEVNULL) as process:
        wait.until(second, "the first test", seconds=120)
        process.send_signal(signal.SIGKILL)
    run = read_run(directory)

    assert outcomes(run) == {"test_first": "holds"}
    assert (run.ended, run.selected) == (None, 3)


def test_a_run_that_measures_nothing_leaves_the_file_alone(pytester, suite):
    """As it leaves all results alone."""
    suite(EVERY)
    (directory := pytester.path / "reports" / "latest").mkdir(parents=True)
    (directory / "run.json").write_text("of a run before")

    pytester.runpytest_inprocess(*WORDS, "-k", "test_plain")

    assert (directory / "run.json").read_text() == "of a run before"


def test_a_file_that_cannot_be_written_ends_no_test(pytester, suite):
    """It is named once, at the end."""
    suite(EVERY)
    full = "def full(document):\n    raise OSError(28, 'No space left on device')\n\n"
    patched = 'PATCHES["pytest_dbcluster.reporting.documents.run_recorder.run_text"] = full\n'
    pytester.makeconftest(FAKE.read_text() + conftests.NO_CHARTS + full + patched)

    result = pytester.runpytest_inprocess(*WORDS, "-k", "test_faster or test_slower")

    result.assert_outcomes(passed=1, failed=1, deselected=8)
    result.stdout.fnmatch_lines(["NOT WRITTEN:*", "*/run.json:*", "*No space left on device*"])
    claims = (pytester.path / "reports" / "latest" / "claims.jsonl").read_text().splitlines()
    assert [json.loads(line)["verdict"]["outcome"] for line in claims] == ["holds", "fails"]
    assert not (pytester.path / "reports" / "latest" / "run.json").exists()
