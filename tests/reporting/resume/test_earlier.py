"""Whole runs on made-up rounds that continue an earlier run: what is taken over, and what is measured."""

from __future__ import annotations

import dataclasses
import json
import os
import textwrap

import pytest

from pytest_dbcluster.claims.claim import Outcome
from pytest_dbcluster.reporting import results_lock, schema
from pytest_dbcluster.reporting.documents.run_document import read_run
from pytest_dbcluster.reporting.history import history_file
from tests.support import conftests, users
from tests.support.records import comparable
from tests.support.resumed import COUNTED, FAKE, RESUME, WORDS, Killed, drawn
from tests.support.suites import refusal

ANCHOR = 'PATCHES["pytest_dbcluster.testbed.anchor.measure"] = lambda *words: 1000.0\n'
SUITE = """
    import os
    import signal

    from pytest_dbcluster.spec import ClusterSpec

    ONE = ClusterSpec("galera", nodes=3)
    OTHER = ONE.with_options(lock_wait_timeout=int(os.environ.get("TIMEOUT", "40"))).named("other")

    def killed():
        if "KILL" in os.environ:
            os.kill(os.getpid(), signal.SIGKILL)

    def test_faster(measure):
        one, other = measure("mysqlslap write", on=[ONE, OTHER])
        assert other.beats(one)

    def test_slower(measure):
        one, other = measure("mysqlslap key", on=[ONE, OTHER])
        assert one.beats(other)

    def test_open(measure):
        one, other = measure("mysqlslap read", on=[ONE, OTHER])
        assert other.beats(one, by=0.5)

    def test_two(measure):
        one, other = measure("mysqlslap mixed", on=[ONE, OTHER])
        assert other.beats(one)
        assert len(other.values("throughput")) >= 8
        killed()
        third, fourth = measure(os.environ.get("SECOND", "mysqlslap update"), on=[ONE, ONE.with_options(port=1)])
        assert fourth.beats(third)
"""
ALLURE = ["-p", "allure_pytest"]
OUTCOMES = {"test_faster": "holds", "test_slower": "refuted", "test_open": "inconclusive", "test_two": "holds"}


def on_made_up_rounds(pytester, monkeypatch, suite):
    """The suite of this text on made-up rounds; no charts."""
    monkeypatch.setenv("COLUMNS", "600")
    pytester.makeconftest(FAKE + conftests.NO_CHARTS + COUNTED + ANCHOR)
    pytester.makepyfile(test_suite=suite)
    return pytester


@pytest.fixture
def suite(pytester, monkeypatch):
    """The suite of this module."""
    return on_made_up_rounds(pytester, monkeypatch, SUITE)


ACROSS = """
    from pytest_dbcluster.spec import ClusterSpec

    ONE = ClusterSpec("galera", nodes=3)
    OTHER = ONE.with_options(lock_wait_timeout=40).named("other")

    def test_across(measure):
        few, few_other, many, many_other = measure({"few": "mysqlslap write", "many": "mysqlslap key"}, on=[ONE, OTHER])
        assert many_other.beats(few)
"""


@pytest.fixture
def latest(suite):
    """The results directory."""
    return suite.path / "reports" / "latest"


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    """A run that SIGKILL ended in its last test."""
    suite, conftest = textwrap.dedent(SUITE), FAKE + conftests.NO_CHARTS + COUNTED + ANCHOR
    words = [*WORDS, *ALLURE, "--db-max-pairs=12"]
    return Killed(tmp_path_factory.mktemp("ended"), suite, conftest, words, KILL="1")


@pytest.fixture
def killed(ended, suite, latest):
    """What is left of this run, which ended while it wrote a line."""
    ended.copied(suite)
    with (latest / "claims.jsonl").open("a") as file:
        file.write('{"format": 3, "test": "test_suite.py::test_tw')
    (latest / "rounds" / "05-torn.csv").write_text("its line was never written")
    drawn(suite)
    return suite


def outcomes(latest):
    """Test -> outcome."""
    return {test.test.partition("::")[2]: test.outcome for test in read_run(latest).tests}


def allure(latest):
    """Test -> the uuids of its results in Allure."""
    found = {}
    for path in (latest / "allure-results").glob("*-result.json"):
        result = json.loads(path.read_text())
        found.setdefault(result["fullName"].partition("#")[2], []).append(result["uuid"])
    return found


WORKERS = [[], pytest.param(["-n1"], marks=pytest.mark.thorough)]


@pytest.mark.parametrize("workers", WORKERS, ids=["one process", "a worker"])
def test_allure_has_the_tests_of_all_runs(killed, latest, workers):
    """The result of a test that runs again replaces the one it had, with its attachments; the others stay."""
    before, folder = allure(latest), latest / "allure-results"
    attached = {path.name for path in folder.glob("*-attachment*")}
    (folder / "torn-result.json").write_text('{"uuid": ')

    killed.runpytest_inprocess(*RESUME, "--db-max-pairs=12", "-k", "slower or two", *ALLURE, *workers)
    after = allure(latest)
    texts = "".join(path.read_text() for path in folder.glob("*.json"))
    left = {path.name for path in folder.glob("*-attachment*")}

    assert set(before) == {"test_faster", "test_slower", "test_open"}
    assert set(after) == set(OUTCOMES)
    assert {name: len(uuids) for name, uuids in after.items()} == dict.fromkeys(OUTCOMES, 1)
    assert {name: after[name] == before.get(name) for name in after} == {
        "test_faster": True, "test_open": True, "test_slower": False, "test_two": False
    }  # fmt: skip
    assert attached & left
    assert attached - left
    assert [name for name in left if name not in texts] == []


@pytest.mark.parametrize("workers", [[], ["-n1"]], ids=["one process", "a worker"])
def test_a_killed_run_goes_on_claim_by_claim(killed, latest, workers):
    """Answers stay as they are, inconclusive and refuted ones too; only the claim without an answer is measured."""
    before = schema.read_claims(latest, whole=False)
    earlier = read_run(latest)

    result = killed.runpytest_inprocess(*RESUME, "--db-max-pairs=12", *workers)
    run, claims = read_run(latest), schema.read_claims(latest)

    assert drawn(killed) == {"mysqlslap update"}
    assert comparable(claims[:4]) == comparable(before)
    assert [claim.load for claim in claims[4:]] == ["mysqlslap update"]
    assert outcomes(latest) == OUTCOMES
    assert (run.taken_over, run.selected, run.cut_short) == (4, 4, "")
    assert [(one.run_id, one.plugin_version) for one in run.continues] == [(earlier.run_id, earlier.plugin_version)]
    assert [claim.run_id for claim in claims] == [earlier.run_id] * 4 + [run.run_id]
    result.stdout.fnmatch_lines(["*--db-resume: *reports/latest has 4 answered claims of the run of *"])
    result.stdout.fnmatch_lines(["--db-resume: 4 answers taken over, 1 claim measured"])
    assert "--db-resume: 4 answers taken over" in (latest / "summary.md").read_text()
    assert not (latest / "rounds" / "05-torn.csv").exists()
    assert all(
        (latest / json.loads(line)["rounds_file"]).exists()
        for line in (latest / "claims.jsonl").read_text().splitlines()
    )


def test_a_run_that_has_ended_has_nothing_left_to_measure(ended, killed, latest):
    """A second and a third continuation leave the answers as they are."""
    ended.continued(killed, *RESUME, "--db-max-pairs=12")
    before = (latest / "claims.jsonl").read_bytes()
    drawn(killed)

    result = killed.runpytest_inprocess(*RESUME, "--db-max-pairs=12", "--db-strict")

    assert drawn(killed) == set()
    assert (latest / "claims.jsonl").read_bytes() == before
    assert len(read_run(latest).continues) == 2
    result.assert_outcomes(passed=2, failed=2)  # what was inconclusive is red with --db-strict


@pytest.mark.parametrize(
    ("changes", "words", "again", "why"),
    [
        ({"TIMEOUT": "41"}, [], {"write", "key", "read", "mixed"}, "its clusters or their my.cnf changed"),
        ({"VERSION": "1.2.4"}, [], {"write", "key", "read", "mixed", "update"}, "its release changed"),
        ({}, ["--db-budget=119"], {"write", "key", "read", "mixed", "update"}, "the run's options changed"),
        ({"SECOND": "mysqlslap scan"}, [], {"scan"}, ""),
        ({}, ["--db-seed=7", "--db-keep"], set(), ""),
    ],
    ids=["spec", "release", "option", "load", "seed"],
)
def test_what_has_changed_is_measured_again_and_nothing_else(
    ended, killed, latest, monkeypatch, changes, words, again, why
):
    """The answer that does not count any more is removed with its files."""
    ended.continued(killed, *RESUME, "--db-max-pairs=12")
    drawn(killed)
    for name, value in changes.items():
        monkeypatch.setenv(name, value)

    result = killed.runpytest_inprocess(*RESUME, "--db-max-pairs=12", *words)

    assert drawn(killed) == {f"mysqlslap {mode}" for mode in again}
    claims = schema.read_claims(latest)
    assert len({(claim.test, claim.claim_id) for claim in claims}) == len(claims)
    assert len(list((latest / "rounds").glob("*.csv"))) == len(claims)
    if why:
        result.stdout.fnmatch_lines([f"*measured again ({why}): *", f"--db-resume: *no longer valid (*{why}*)*"])


def test_a_broken_test_is_measured_again(killed, latest, monkeypatch):
    """It has no answer, only an outcome in run.json."""
    monkeypatch.setenv("SECOND", "dies")
    killed.runpytest_inprocess(*RESUME, "--db-max-pairs=12")
    assert outcomes(latest)["test_two"] == "broken"
    monkeypatch.delenv("SECOND")
    drawn(killed)

    killed.runpytest_inprocess(*RESUME, "--db-max-pairs=12")

    assert drawn(killed) == {"mysqlslap update"}
    assert outcomes(latest) == OUTCOMES


HELD = """
import contextlib
import itertools
from pytest_dbcluster.errors import LockHeld

turns = itertools.count()


@contextlib.contextmanager
def exclusive(self):
    if self.load == "mysqlslap read" and next(turns) >= 7 and "HELD" in os.environ:
        raise LockHeld("waited 30 min (--db-wait) for pid 4711")
    yield


FakeSource.exclusive = exclusive
"""


@pytest.mark.parametrize("workers", WORKERS, ids=["one process", "a worker"])
def test_a_lock_waited_for_in_vain_costs_no_round(suite, latest, monkeypatch, workers):
    """The claim in progress is inconclusive with its rounds, and exit code 2; a later run measures it anew."""
    suite.makeconftest((suite.path / "conftest.py").read_text() + HELD)
    monkeypatch.setenv("HELD", "1")
    ended = suite.runpytest_inprocess(*WORDS, *workers, "--db-max-pairs=12", "-k", "faster or open")
    (held,) = [claim for claim in schema.read_claims(latest) if claim.load == "mysqlslap read"]
    drawn(suite)
    monkeypatch.delenv("HELD")
    suite.runpytest_inprocess(*RESUME, "--db-max-pairs=12", "-k", "faster or open")
    (again,) = [claim for claim in schema.read_claims(latest) if claim.load == "mysqlslap read"]

    assert ended.ret == pytest.ExitCode.INTERRUPTED
    assert held.verdict.outcome is Outcome.INCONCLUSIVE
    assert "pid 4711" in held.message
    assert all(0 < len(rounds) == held.verdict.pairs < 12 for rounds in held.rounds.values())
    assert "mysqlslap read" in drawn(suite)
    assert again.verdict.pairs == 12


def test_another_release_adds_a_column(suite, latest):
    """The tests have other names then; answers of the release before are theirs now."""
    suite.runpytest_inprocess(*WORDS, "-k", "faster")
    drawn(suite)

    suite.runpytest_inprocess(*RESUME, "-k", "faster", "--db-release=mariadb:10.11", "--db-release=mariadb:11.8")

    names = ["test_suite.py::test_faster[mariadb:10.11]", "test_suite.py::test_faster[mariadb:11.8]"]
    assert [claim.test for claim in schema.read_claims(latest)] == names
    assert [test.test for test in read_run(latest).tests] == names
    assert read_run(latest).taken_over == 1


def test_tests_that_are_not_selected_keep_their_answers(killed, latest):
    """They stay in the results, and the last lines count them."""
    result = killed.runpytest_inprocess(*RESUME, "--db-max-pairs=12", "-k", "faster")

    assert drawn(killed) == set()
    assert len(schema.read_claims(latest)) == 4
    assert {name: outcome for name, outcome in outcomes(latest).items() if name != "test_two"} == {
        name: outcome for name, outcome in OUTCOMES.items() if name != "test_two"
    }
    line = (
        "--db-resume: 1 answer taken over, 0 claims measured; 3 answers of tests that this run did not reach or select"
    )
    result.stdout.fnmatch_lines([line])


def test_answers_count_after_the_time_of_the_run(killed, latest):
    """A used --db-run-budget ends what has to be measured, and takes no answer away."""
    killed.runpytest_inprocess(*RESUME, "--db-max-pairs=12", "--db-run-budget=0.001")

    assert drawn(killed) == set()
    assert outcomes(latest) == {**OUTCOMES, "test_two": "inconclusive"}


def test_an_answer_is_once_in_a_history(killed, suite, latest):
    """It belongs to the run that measured it."""
    history = suite.path / "history.jsonl"
    for _ in range(2):
        killed.runpytest_inprocess(*RESUME, "--db-max-pairs=12", f"--db-history={history}")
    entries = history_file.read(history).entries

    assert len(entries) == 5
    first, second = read_run(latest).continues[:2]
    assert [entry.run for entry in entries] == [first.run_id] * 4 + [second.run_id]
    assert [entry.anchor for entry in entries] == [None] * 4 + [1000.0]


def test_where_nothing_was_answered_everything_is_measured(suite, latest):
    """The first line says so: the directory may be a wrong one."""
    result = suite.runpytest_inprocess(*RESUME, "--db-results=elsewhere", "-k", "faster")

    result.assert_outcomes(passed=1, deselected=3)
    result.stdout.fnmatch_lines(["*--db-resume: */elsewhere has no answered claim, so everything is measured"])
    assert len(schema.read_claims(suite.path / "elsewhere")) == 1


def test_a_directory_in_use_is_not_continued(killed, latest):
    """A second run at the same time would measure the same claims."""
    lock = results_lock.take(latest, ())
    before = (latest / "claims.jsonl").read_bytes()
    result = killed.runpytest_inprocess(*RESUME)
    lock.release()

    assert refusal(result).startswith(f"another run writes into {latest}; ")
    assert refusal(result).endswith(" --db-results DIR")
    assert (latest / "claims.jsonl").read_bytes() == before


def test_a_line_that_cannot_be_read_is_named_and_nothing_is_changed(killed, latest):
    """Garbage in the middle may have been an answer: people decide."""
    lines = (latest / "claims.jsonl").read_text().splitlines(keepends=True)
    damaged = "".join([lines[0], "garbage\n", *lines[1:]])
    (latest / "claims.jsonl").write_text(damaged)
    result = killed.runpytest_inprocess(*RESUME)

    assert refusal(result).startswith(f"--db-resume cannot continue {latest}: {latest}/claims.jsonl, line 2: ")
    assert refusal(result).endswith("; or measure all again without it")
    assert (latest / "claims.jsonl").read_text() == damaged


def test_results_of_another_user_are_not_continued(killed, latest):
    """Nothing in their directory is changed."""
    if reason := users.missing():
        pytest.skip(reason)
    os.chown(latest, users.ALICE, users.ALICE)
    before = sorted(path.name for path in latest.rglob("*"))
    result = killed.runpytest_inprocess(*RESUME)

    assert "belongs to another user" in refusal(result)
    assert sorted(path.name for path in latest.rglob("*")) == before


def test_answers_of_a_version_without_digests_are_measured_again(killed, latest):
    """What they depend on is not known."""
    lines = [json.loads(line) for line in (latest / "claims.jsonl").read_text().splitlines()[:4]]
    old = [{name: value for name, value in line.items() if name != "depends_on"} for line in lines]
    (latest / "claims.jsonl").write_text("".join(json.dumps(line) + "\n" for line in old))

    killed.runpytest_inprocess(*RESUME, "--db-max-pairs=12", "-k", "faster")

    assert drawn(killed) == {"mysqlslap write"}
    assert len(schema.read_claims(latest)) == 4


def test_claims_of_a_version_without_ids_are_refused(killed, latest):
    """They could not be told apart, so none of them may be replaced."""
    line = json.loads((latest / "claims.jsonl").read_text().splitlines()[0])
    (latest / "claims.jsonl").write_text(json.dumps({**line, "claim_id": ""}) + "\n")
    result = killed.runpytest_inprocess(*RESUME)

    assert refusal(result).startswith(f"--db-resume cannot continue {latest}: an older version ")
    assert "no id" in refusal(result)


def test_answers_of_another_machine_are_measured_again(killed, latest):
    """A directory may have been copied."""
    text = (latest / "claims.jsonl").read_text().splitlines(keepends=True)[:4]
    digest = json.loads(text[0])["depends_on"]["the machine"]
    (latest / "claims.jsonl").write_text("".join(text).replace(digest, "0" * len(digest)))

    result = killed.runpytest_inprocess(*RESUME, "--db-max-pairs=12", "-k", "faster")

    assert drawn(killed) == {"mysqlslap write"}
    result.stdout.fnmatch_lines(["*measured again (the machine changed): other.beats(galera3) (mysqlslap write)"])


def test_records_of_several_runs_say_which_measured_them(ended, killed, latest):
    """The message of an answer stays that of its own run."""
    ended.continued(killed, *RESUME, "--db-max-pairs=12")
    claims = schema.read_claims(latest)
    again = dataclasses.replace(claims[0], run_id=claims[-1].run_id)

    assert claims[0].message != claims[-1].message
    assert again != claims[0]


CURVE = """
    from pytest_dbcluster.spec import ClusterSpec
    from pytest_dbcluster.workloads.sysbench import SysBench

    ONE = ClusterSpec("galera", nodes=3)
    OTHER = ONE.with_options(lock_wait_timeout=40).named("other")

    def test_curve(measure):
        curve = measure.sweep(SysBench("oltp_read_only"), on=[ONE, OTHER], threads=(1, 4))
        assert curve.every(lambda one, other: other.beats(one))
"""


def test_a_curve_is_there_once_and_draws_no_answered_point(suite, latest):
    """Its claims are taken over point by point, with their rounds."""
    suite.makepyfile(test_suite=CURVE)
    suite.runpytest_inprocess(*WORDS)
    (before,) = schema.read_curves(latest)
    drawn(suite)

    result = suite.runpytest_inprocess(*RESUME)
    (after,) = schema.read_curves(latest)

    result.assert_outcomes(passed=1)
    assert drawn(suite) == set()
    assert len(schema.read_claims(latest)) == 2
    assert after.points == before.points
    assert len(list((latest / "curves").glob("*.csv"))) == 1


def test_a_claim_across_workloads_on_several_clusters_is_taken_over(suite):
    """Each of the four variants has its own workload; a claim about the last one finds it."""
    suite.makepyfile(test_suite=ACROSS)
    suite.runpytest_inprocess(*WORDS).assert_outcomes(passed=1)
    assert drawn(suite)

    suite.runpytest_inprocess(*RESUME).assert_outcomes(passed=1)
    assert not drawn(suite)
