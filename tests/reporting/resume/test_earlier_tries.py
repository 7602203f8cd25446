"""Tries of a claim: which earlier ones count, and what a run says of them."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import os
import time
import types

import pytest

from pytest_dbcluster.claims import kinds
from pytest_dbcluster.cli import cache as cache_command
from pytest_dbcluster.measuring.question import Question
from pytest_dbcluster.reporting import schema
from pytest_dbcluster.reporting.recording import Asked
from pytest_dbcluster.reporting.resume import digests, earlier_tries
from pytest_dbcluster.reporting.resume.earlier_tries import DAYS, MOST, EarlierTries
from pytest_dbcluster.reporting.resume.recall import Recall
from tests.support import conftests
from tests.support.facts import missing
from tests.support.resolved import resolved
from tests.support.resumed import FAKE, WORDS

BEATS = kinds.beats()


def question(claim, variants=(1, 0), metric="throughput"):
    """A question about two variants."""
    return Question(claim, *variants, metric)


ASKED = Asked("suites/test_flush.py::test_it[write]", "quick", "pytest", "local")


@dataclasses.dataclass
class FakeRecall:
    """A measurement of two variants, with what its claims depend on."""

    asked: Asked = ASKED
    clusters: str = "one"

    @property
    def source(self):
        """Its names, load and releases."""
        both = [resolved("old"), resolved("new")]
        return types.SimpleNamespace(names=["old", "new"], load="write", content="", resolved=both)

    def id_of(self, question):
        """The id of the claim."""
        return Recall.id_of(self, question)

    def depends_on(self, question):
        """The digests; the margin is in one, and the budget in another."""
        parts = {digests.CLUSTERS: self.clusters, digests.RELEASE: "r", digests.MACHINE: "m"}
        return parts | {digests.CLAIM: str(question.claim.margin), digests.OPTIONS: str(time.monotonic())}


@pytest.fixture
def own_cache(monkeypatch, tmp_path):
    """A cache of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "pytest-dbcluster" / earlier_tries.FOLDER


@pytest.fixture
def tries(own_cache, tmp_path):
    """The tries of a measurement."""
    return EarlierTries(FakeRecall(), tmp_path)


def test_each_try_without_a_verdict_counts(tries):
    """From its first look on, whatever ended it; another margin or budget is another try of the same claim."""
    assert [tries.begin(question(claim)) for claim in (BEATS, BEATS, kinds.beats(0.1))] == [1, 2, 3]


def test_a_verdict_forgets_the_tries_before_it(tries):
    """A claim that was decided may be repeated: no look was wasted."""
    tries.begin(question(BEATS))
    tries.begin(question(BEATS, metric="p95"))
    tries.decide(question(BEATS))

    assert tries.begin(question(BEATS)) == 1
    assert tries.begin(question(BEATS, metric="p95")) == 2


@pytest.mark.parametrize(
    "change",
    [
        {"clusters": "another my.cnf"},
        {"asked": dataclasses.replace(ASKED, test="suites/test_flush.py::test_it[read]")},
        {"asked": dataclasses.replace(ASKED, profile="paper")},
        {"asked": dataclasses.replace(ASKED, provisioner="container")},
    ],
    ids=["clusters", "test", "profile", "provisioner"],
)
def test_another_experiment_is_another_claim(tries, tmp_path, change):
    """It has no earlier try; neither has the same test of another project."""
    tries.begin(question(BEATS))

    assert EarlierTries(FakeRecall(**change), tmp_path).begin(question(BEATS)) == 1
    assert EarlierTries(FakeRecall(), tmp_path / "other").begin(question(BEATS)) == 1
    assert tries.begin(question(BEATS, (0, 1))) == 1
    assert tries.begin(question(kinds.no_slower_than(0.1))) == 1


def test_old_tries_go(tries, own_cache):
    """After a week they say nothing about this attempt; any later try removes them."""
    tries.begin(question(BEATS))
    (file,) = own_cache.glob("*.json")
    before = time.time() - DAYS * 86400 - 60
    os.utime(file, (before, before))

    assert tries.begin(question(BEATS, metric="p95")) == 1
    assert not file.exists()
    assert tries.begin(question(BEATS)) == 1


def test_the_files_of_a_claim_have_a_limit(tries, own_cache):
    """A loop that asks the same claim for ever fills no disk."""
    numbers = [tries.begin(question(BEATS)) for _ in range(MOST + 5)]

    assert len(list(own_cache.glob("*.json"))) == MOST
    assert numbers[-1] == MOST + 1


def test_runs_at_the_same_time_lose_no_try(tries):
    """Each has a file of its own."""
    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda _: tries.begin(question(BEATS)), range(8)))

    assert tries.begin(question(BEATS)) == 9


def test_a_cache_that_cannot_be_written_ends_no_claim(tries, own_cache):
    """A file lies in the place of the directory: every try is the first, and nothing is raised."""
    own_cache.parent.mkdir(parents=True)
    own_cache.write_text("")

    assert [tries.begin(question(BEATS)) for _ in range(2)] == [1, 1]
    tries.decide(question(BEATS))


def test_the_cache_lists_and_removes_them(tries, own_cache):
    """With ``dbcluster cache``."""
    tries.begin(question(BEATS))
    (entry,) = cache_command.list_entries()

    assert (entry.name, missing(entry.holds, "earlier tries", "undecided claims")) == ("tries", [])
    cache_command.clean(["tries"])
    assert list(own_cache.glob("*.json")) == []


SUITE = """
    import os
    import signal

    from pytest_dbcluster.spec import ClusterSpec

    ONE = ClusterSpec("galera", nodes=3)
    OTHER = ONE.with_options(lock_wait_timeout=40).named("other")

    def test_it(measure):
        one, other = measure("mysqlslap write", on=[ONE, OTHER])
        source = one.measurement.source
        plain = source.round

        def killed(variant, *, block, position):
            if block == int(os.environ.get("KILLED_AT", "-9")):
                if os.environ["BY"] == "SIGKILL":
                    os.kill(os.getpid(), signal.SIGKILL)
                raise KeyboardInterrupt
            return plain(variant, block=block, position=position)

        source.round = killed
        assert other.beats(one)
"""


@pytest.fixture
def run(pytester, own_cache, monkeypatch):
    """Run the suite with these variables of the environment; return its only claim, or None."""
    pytester.makeconftest(FAKE + conftests.NO_CHARTS)
    pytester.makepyfile(test_suite=SUITE)

    def run(*words, **environment):
        with monkeypatch.context() as given:
            for name, value in environment.items():
                given.setenv(name, value)
            if environment.get("BY") == "SIGKILL":
                pytester.runpytest_subprocess(*WORDS, "--db-max-pairs", "24", *words)
            else:
                pytester.runpytest_inprocess(*WORDS, "--db-max-pairs", "24", *words, no_reraise_ctrlc=True)
        latest = pytester.path / "reports" / "latest"
        return next(iter(schema.read_claims(latest)), None) if (latest / schema.CLAIMS).exists() else None

    return run


EQUAL = {"FASTER": "1.0", "SD": "0.05"}


def test_a_killed_claim_and_an_inconclusive_one_are_tries(run, own_cache):
    """SIGKILL after the first look leaves a try; the third says that it is the third, and a verdict ends the count."""
    run(**EQUAL, KILLED_AT="3", BY="SIGKILL")
    assert len(list(own_cache.glob("*.json"))) == 1

    second, third = run(**EQUAL), run(**EQUAL)
    assert (second.tries, third.tries) == (2, 3)
    assert "\n  second try: earlier rounds of this claim" in second.message
    assert "up to 3 times that of one (3 in 2000)" in third.message

    decided = run(FASTER="2.0", SD="0.02")
    assert (decided.tries, list(own_cache.glob("*.json"))) == (4, [])
    assert run(FASTER="2.0", SD="0.02").tries == 1


def test_a_claim_that_ended_before_its_first_look_is_no_try(run, own_cache):
    """Nothing was looked at."""
    run(**EQUAL, KILLED_AT="0", BY="Ctrl-C")

    assert list(own_cache.glob("*")) == []
    assert run(**EQUAL).tries == 1


def test_an_answer_that_is_taken_over_is_no_try(run):
    """``--db-resume`` draws nothing for it."""
    assert run(**EQUAL).tries == 1
    assert run("--db-resume", **EQUAL).tries == 1
    assert run(**EQUAL).tries == 2
