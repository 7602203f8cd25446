"""The jobs of the other workflows, run as they are written in a small project, on real servers."""

from __future__ import annotations

import pytest

from pytest_dbcluster.cli import init
from pytest_dbcluster.reporting.documents.run_document import read_run
from pytest_dbcluster.reporting.history import history_file
from tests.support.checkouts import Checkout
from tests.support.facts import missing
from tests.support.histories import entries, healthy

SUITE = """\
from pytest_dbcluster import ClusterSpec, MySQLSlap

ONE = ClusterSpec("standalone")
READ = MySQLSlap("read", concurrency=2, queries=60, rows=200)


def test_flush_2_is_no_slower(measure):
    default, flush_2 = measure(READ, on=[ONE, ONE.with_cnf("flush_2")])
    assert flush_2.no_slower_than(default, by=0.99)  # after four pairs, whatever else the machine does
"""
FILES = {
    "suites/galera/test_flush.py": SUITE,
    # A running server can switch to it, so that one of each release is enough.
    "fixtures/mycnf/flush_2.cnf": "[mysqld]\nmax_connections = 150\n",
}
# A few rounds of the anchor, instead of those of 15 s.
SHORT_ANCHOR = """
from pytest_dbcluster.testbed import anchor

anchor.SECONDS = 0.0
"""
PULL_REQUEST = {"event_name": "pull_request", "event": {"pull_request": {"number": 7}}}


@pytest.fixture
def checkout(tmp_path):
    """A project with one claim that holds."""
    made = Checkout(tmp_path)
    with (made.place / "conftest.py").open("a") as file:
        file.write(SHORT_ANCHOR)
    made.set_up()
    made.commit("base", **FILES)
    made.git("push", "--quiet", "origin", "HEAD:main")
    return made


@pytest.mark.parametrize(
    ("workflow", "job", "artifact"),
    [
        ("gate-example.yml", "flush", "verdicts"),
        pytest.param("suites.yml", "quick", "suites", marks=pytest.mark.thorough),
    ],
)
def test_a_claim_that_holds_lets_a_pull_request_pass(checkout, workflow, job, artifact):
    """The results are an artifact, and name the commit; the summary has the sentence. No step asks for rights."""
    done = checkout.runs(workflow, job, **PULL_REQUEST)
    run = read_run(done.artifacts / artifact)

    assert done.red == [], done.text
    assert [test.outcome for test in run.tests] == ["holds"]
    assert (run.commit, run.dirty) == (checkout.git("rev-parse", "HEAD"), False)
    assert done.summary.read_text().startswith("## The only claim holds")
    assert checkout.calls == []


def test_the_workflow_of_a_project_of_ones_own_runs_its_claims(tmp_path):
    """As ``dbcluster init`` writes it, beside a test that takes less time than the one it writes."""
    checkout = Checkout(tmp_path, copied=())
    texts = {**init.files(checkout.place), init.TEST: SUITE.replace("flush_2", "candidate")}
    checkout.commit("first", **texts)
    done = checkout.runs(checkout.place / init.WORKFLOW, "claims", **PULL_REQUEST)
    run = read_run(done.artifacts / "results")

    assert done.red == [], done.text
    assert checkout.installed[-1] == f"pip install {init.requirement()}"
    assert [test.outcome for test in run.tests] == ["holds"]
    assert (run.commit, run.dirty) == (checkout.git("rev-parse", "HEAD"), False)


@pytest.mark.thorough
def test_a_night_goes_on_from_the_history_of_the_nights_before(checkout):
    """One job measures every release with the history of the branch, the next one pushes what it added."""
    earlier = checkout.directory / "earlier.jsonl"
    history_file.add(earlier, entries(healthy(3)))
    checkout.branch("put", str(earlier))
    measured = checkout.runs("suites.yml", "matrix", event_name="schedule")
    (checkout.place / "reports" / "history.jsonl").unlink()  # each job has a checkout of its own
    kept = checkout.runs("suites.yml", "keep", event_name="schedule")
    assert (measured.red, kept.red) == ([], []), measured.text + kept.text
    checkout.branch("get", "kept.jsonl")
    history = history_file.read(checkout.place / "kept.jsonl")
    new = history.entries[3:]

    (line,) = measured.steps["Earlier nights"].stdout.splitlines()
    assert missing(line, "reports/history.jsonl: ", "3 lines", "branch history") == []
    assert history.runs[:3] == ["run00", "run01", "run02"]
    assert [entry.release for entry in new] == ["mariadb:10.5", "mariadb:10.11", "mariadb:11.8", "mysql:9.7"]
    assert {entry.outcome for entry in new} == {"holds"}
    assert all(entry.anchor for entry in new)
    assert checkout.calls == [["auth", "setup-git"]]
