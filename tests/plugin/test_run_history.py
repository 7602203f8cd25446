"""What a run leaves for later runs and for GitHub: ``--db-history``, its warnings, and the step summary."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from pytest_dbcluster.reporting.history import history_file
from tests.support import conftests

FAKE = Path(__file__).parents[1] / "support" / "fake_session.py"
WORDS = [*conftests.PLAIN, "--db-seed=5"]
SUITE = """
    from pytest_dbcluster.spec import ClusterSpec

    ONE = ClusterSpec("galera", nodes=3)
    OTHER = ONE.with_options(lock_wait_timeout=40).named("other")

    def test_faster(measure):
        one, other = measure("mysqlslap write", on=[ONE, OTHER])
        assert other.beats(one)
"""

ANCHOR = 'PATCHES["pytest_dbcluster.testbed.anchor.measure"] = lambda *words: 1000.0\n'  # the real one starts a server


@pytest.fixture
def suite(pytester, monkeypatch):
    """A suite on made-up rounds with one claim that holds."""
    monkeypatch.setenv("COLUMNS", "250")
    pytester.makeconftest(FAKE.read_text() + conftests.NO_CHARTS + ANCHOR)
    pytester.makepyfile(test_suite=SUITE)
    return pytester


def earlier(file, **changes):
    """Replace the history in this file by eight runs like its last one, with these changes."""
    last = history_file.read(file).entries[-1]
    file.unlink()
    made = [
        dataclasses.replace(last, **{"run": f"run{number}", "time": last.time - 1000 + number, **changes})
        for number in range(8)
    ]
    history_file.add(file, [dataclasses.replace(one, ratio=one.ratio * (1 + 0.002 * n)) for n, one in enumerate(made)])


def test_a_run_adds_its_claims(suite):
    """The line says how many runs the history has; the results keep the part about these claims."""
    result = suite.runpytest_inprocess(*WORDS, "--db-history=reports/history.jsonl")
    result.stdout.fnmatch_lines([f"history: {suite.path}/reports/history.jsonl has 1 run; 1 claim of this run"])
    history = history_file.read(suite.path / "reports" / "history.jsonl")

    assert (len(history.entries), len(history.runs)) == (1, 1)
    assert history_file.read(suite.path / "reports" / "latest" / "history.jsonl") == history
    assert "--db-history" not in history.entries[0].repeat
    assert history.entries[0].anchor == 1000.0


def test_an_anchor_that_cannot_be_measured_is_a_line(suite):
    """The claims are added without it."""
    broken = ANCHOR.replace("1000.0", "(_ for _ in ()).throw(errors.ProvisionError('no mariadb:10.11'))")
    suite.makeconftest(FAKE.read_text() + conftests.NO_CHARTS + "from pytest_dbcluster import errors\n" + broken)
    result = suite.runpytest_inprocess(*WORDS, "--db-history=reports/history.jsonl")

    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["no anchor, so the history compares only ratios: no mariadb:10.11"])
    assert history_file.read(suite.path / "reports" / "history.jsonl").entries[0].anchor is None


def test_a_ratio_that_differs_is_a_warning_and_red_only_when_asked(suite):
    """The verdict stays; the exit code is 1 with --db-history-strict alone. A run like the earlier ones is green."""
    file = suite.path / "reports" / "history.jsonl"
    suite.runpytest_inprocess(*WORDS, f"--db-history={file}")
    drift = "DRIFT: other.beats(galera3) (mysqlslap write, *): the ratio is *; measure both in one run: pytest *"
    earlier(file, ratio=9.0)
    warned = suite.runpytest_inprocess(*WORDS, f"--db-history={file}")
    red = suite.runpytest_inprocess(*WORDS, f"--db-history={file}", "--db-history-strict")
    for result in (warned, red):
        result.assert_outcomes(passed=1)
        result.stdout.fnmatch_lines([drift])
    earlier(file)
    green = suite.runpytest_inprocess(*WORDS, f"--db-history={file}", "--db-history-strict")

    green.stdout.no_fnmatch_line("DRIFT*")
    assert [result.ret for result in (warned, red, green)] == [0, 1, 0]


def test_a_history_that_cannot_be_read_loses_no_verdict(suite):
    """The file is named at the end."""
    (suite.path / "taken").write_text("")
    result = suite.runpytest_inprocess(*WORDS, "--db-history=taken/history.jsonl")

    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["history: cannot read the history */taken/history.jsonl: Not a directory; *"])


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"garbage in its middle\n", "*history.jsonl, line 2: it is not JSON*"),
        (b'{"kind": "claim", "format": 99}\n', "*history.jsonl, line 2: it has format 99, and this version reads *"),
    ],
    ids=["garbage", "another schema"],
)
def test_a_history_with_a_line_that_cannot_be_read_is_kept_and_added_to(suite, line, said):
    """It is a warning: the run is green with --db-history-strict too, and no line is lost."""
    file = suite.path / "history.jsonl"
    suite.runpytest_inprocess(*WORDS, f"--db-history={file}")
    earlier(file)
    first, *others = file.read_bytes().splitlines(keepends=True)
    damaged = b"".join([first, line, *others])
    file.write_bytes(damaged)
    result = suite.runpytest_inprocess(*WORDS, f"--db-history={file}", "--db-history-strict")

    assert result.ret == 0
    result.stdout.fnmatch_lines([said])
    assert file.read_bytes().startswith(damaged)
    assert len(history_file.read(file).entries) == 9


def test_a_history_of_another_machine_is_compared_with_nothing(suite):
    """Its ratios are not those of this machine; the line says which machine it was."""
    file = suite.path / "history.jsonl"
    suite.runpytest_inprocess(*WORDS, f"--db-history={file}")
    earlier(file, machine="64 x another CPU", ratio=9.0)
    result = suite.runpytest_inprocess(*WORDS, f"--db-history={file}", "--db-history-strict")

    assert result.ret == 0
    result.stdout.no_fnmatch_line("DRIFT*")
    result.stdout.fnmatch_lines(
        ["history: 8 runs on another machine (64 x another CPU) cannot be compared with this one"]
    )


@pytest.mark.parametrize("workers", [[], ["-n1"]], ids=["one process", "a worker"])
def test_a_run_in_github_actions_writes_its_summary(suite, workers, monkeypatch):
    """GitHub names the file in the environment."""
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(suite.path / "step.md"))
    suite.makepyfile(test_suite=SUITE.replace("other.beats(one)", "one.beats(other)"))
    result = suite.runpytest_inprocess(*WORDS, *workers)

    result.stdout.fnmatch_lines(["::error file=test_suite.py,line=6,title=refuted::test_suite.py::test_faster: *"])
    assert (suite.path / "step.md").read_text().startswith("## The only claim is refuted: ")


def test_a_summary_is_written_elsewhere_where_it_is_asked_for(suite, monkeypatch):
    """With --db-github, and else in GitHub Actions alone."""
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(suite.path / "step.md"))
    suite.runpytest_inprocess(*WORDS)
    assert not (suite.path / "step.md").exists()
    suite.runpytest_inprocess(*WORDS, "--db-github")

    assert (suite.path / "step.md").read_text().startswith("## The only claim holds")


SEVERAL = """
    import pytest
    from pytest_dbcluster.spec import ClusterSpec

    ONE = ClusterSpec("galera", nodes=3)
    OTHER = ONE.with_options(lock_wait_timeout=40).named("other")

    @pytest.mark.expected_seconds(600)
    def test_slow(measure):
        one, other = measure("mysqlslap write", on=[ONE, OTHER])
        assert other.beats(one)

    @pytest.mark.expected_seconds(30)
    def test_cheap(measure):
        one, other = measure("mysqlslap read", on=[ONE, OTHER])
        assert other.beats(one)

    @pytest.mark.skip(reason="later")
    def test_skipped(measure):
        pass
"""


def timed(file, **seconds):
    """Give the tests of a history these times."""
    entries = history_file.read(file).entries
    file.unlink()
    history_file.add(file, [dataclasses.replace(one, seconds=seconds[one.test.partition("::")[2]]) for one in entries])


def ran(result):
    """The tests of a run in their order."""
    return [line.partition("::")[2].split()[0] for line in result.outlines if line.startswith("test_suite.py::test_")]


@pytest.mark.parametrize("workers", [[], ["-n1"]], ids=["one process", "a worker"])
def test_the_expected_time_is_that_of_earlier_runs(suite, workers):
    """Of all tests that have one, whatever their marks say; a test that will be skipped does not count.

    The second run adds its claims to the history too.
    """
    suite.makepyfile(test_suite=SEVERAL)
    file = suite.path / "history.jsonl"
    first = suite.runpytest_inprocess(*WORDS, f"--db-history={file}")
    assert all(entry.seconds is not None for entry in history_file.read(file).entries)
    timed(file, test_slow=100.0, test_cheap=20.0)
    second = suite.runpytest_inprocess(*WORDS, f"--db-history={file}", *workers)

    line = "*expected time: about {} at a round CV of 10 % (2 tests {}; 1 test will be skipped)"
    first.stdout.fnmatch_lines(
        ["*expected time: about 11 min * (2 tests by mark expected_seconds; * 1 test will be skipped)"]
    )
    second.stdout.fnmatch_lines([line.format("2 min", "from earlier runs")])
    second.stdout.fnmatch_lines([f"history: {file} has 2 runs; 2 claims of this run*"])
    history = history_file.read(file)
    assert (len(history.entries), len(history.runs)) == (4, 2)
    assert history_file.read(suite.path / "reports" / "latest" / "history.jsonl") == history


def test_a_budget_is_spent_on_what_is_cheap_and_undecided(suite):
    """Without a history cheap tests come first; with one those whose claims are still open come before all others."""
    suite.makepyfile(test_suite=SEVERAL)
    file = suite.path / "history.jsonl"
    words = [*WORDS, f"--db-history={file}", "-v"]
    usual = suite.runpytest_inprocess(*WORDS, "--collect-only", "-q")
    cheap_first = suite.runpytest_inprocess(*words, "--db-run-budget=600")
    entries = history_file.read(file).entries
    file.unlink()
    open_now = {"test_slow": "inconclusive", "test_cheap": "holds"}
    outcomes = [dataclasses.replace(one, outcome=open_now[one.test.partition("::")[2]]) for one in entries]
    history_file.add(file, outcomes)
    open_first = suite.runpytest_inprocess(*words, "--db-run-budget=600")

    assert ran(usual)[:2] == ["test_slow", "test_cheap"]
    assert [name for name in dict.fromkeys(ran(cheap_first)) if name != "test_skipped"] == ["test_cheap", "test_slow"]
    assert [name for name in dict.fromkeys(ran(open_first)) if name != "test_skipped"] == ["test_slow", "test_cheap"]


@pytest.mark.parametrize(
    "workers", [[], pytest.param(["-n1"], marks=pytest.mark.thorough)], ids=["one process", "a worker"]
)
def test_what_the_budget_left_out_is_listed(suite, workers):
    """By name, at the end."""
    suite.makepyfile(test_suite=SEVERAL)
    result = suite.runpytest_inprocess(*WORDS, "--db-run-budget=0.001", *workers)

    line = "--db-run-budget left no time for 2 tests: test_suite.py::test_cheap, test_suite.py::test_slow"
    result.stdout.fnmatch_lines([line])


@pytest.mark.parametrize("workers", [[], ["-n1"]], ids=["one process", "a worker"])
def test_paths_are_relative_to_the_working_directory(suite, monkeypatch, workers):
    """In a directory below the rootdir; results without an option are below the rootdir."""
    below = suite.path / "below"
    below.mkdir()
    suite.makeini("[pytest]")
    monkeypatch.chdir(below)
    history = ["--db-history", "history.jsonl"]
    if not workers:
        suite.runpytest_inprocess(*WORDS, "..", "--db-results=out", *history).assert_outcomes(passed=1)
        assert sorted(path.name for path in below.iterdir()) == ["history.jsonl", "out"]
        assert (below / "out" / "claims.jsonl").exists()
        assert not (suite.path / "reports").exists()
        (below / "history.jsonl").unlink()

    suite.runpytest_inprocess(*WORDS, "..", *history, *workers).assert_outcomes(passed=1)
    assert len(history_file.read(below / "history.jsonl").entries) == 1
    assert (suite.path / "reports" / "latest" / "claims.jsonl").exists()
