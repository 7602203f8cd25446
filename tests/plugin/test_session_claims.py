"""What a line of ``claims.jsonl`` says about a claim besides its rounds, in whole runs on made-up rounds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support import conftests

FAKE = Path(__file__).parents[1] / "support" / "fake_session.py"
HEAD = """
    import pytest
    from pytest_dbcluster.spec import ClusterSpec
    from pytest_dbcluster.workloads.sysbench import SysBench

    ONE = ClusterSpec("galera", nodes=3)
    OTHER = ONE.with_options(lock_wait_timeout=40).named("other")
"""
CLAIMS = """
    def test_faster(measure):
        one, other = measure("mysqlslap write", on=[ONE, OTHER.with_storage("gp2-100")])
        assert other.beats(one)

    def test_curve(measure):
        for threads, one, other in measure.sweep(SysBench("oltp_read_only"), on=[ONE, OTHER], threads=(1, 16)):
            assert other.beats(one)
"""


@pytest.fixture
def suite(pytester, monkeypatch):
    """A suite on made-up rounds, without charts; its body is added by the test."""
    monkeypatch.setenv("COLUMNS", "400")  # no line of ours is wrapped
    pytester.makeconftest(FAKE.read_text() + conftests.NO_CHARTS)
    return lambda body, **files: pytester.makepyfile(test_suite=HEAD + body, **files)


def lines(pytester):
    """The claims as any other program reads them: a JSON object on each line."""
    text = (pytester.path / "reports" / "latest" / "claims.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def test_a_claim_has_the_same_id_on_each_release(pytester, suite):
    """Ids differ within a release. Storage, parity, cluster and the value of a sweep are beside it."""
    suite(CLAIMS)

    releases = ["--db-release=mariadb:10.11", "--db-release=mariadb:11.8", "--db-parity=normalised"]
    pytester.runpytest_inprocess(*conftests.PLAIN, "--db-seed=5", *releases)
    found = lines(pytester)
    by_release = {}
    for line in found:
        by_release.setdefault(line["release"], []).append(line["claim_id"])

    assert list(by_release) == ["mariadb:10.11 1.2.3", "mariadb:11.8 1.2.3"]
    first, second = by_release.values()
    assert first == second
    assert len(set(first)) == 3
    assert first[0].startswith("test_suite::test_faster | other")
    assert (found[0]["kind"], found[0]["provisioner"], found[0]["parity"]) == ("beats", "local", "normalised")
    assert (found[0]["storage"], found[0]["sweep_field"], found[0]["sweep_value"]) == ("gp2-100, no limit", "", None)
    assert [(line["sweep_field"], line["sweep_value"]) for line in found[1:3]] == [("threads", 1), ("threads", 16)]
    spec = found[1]["specs"]["other"]
    assert (spec["topology"], spec["nodes"], spec["options"]) == ("galera", 3, {"lock_wait_timeout": "40"})


def test_a_run_ends_with_what_the_faster_variant_gives_up(pytester, suite):
    """The terminal and the summary name the weaker setting once, after all claims."""
    suite(CLAIMS)

    result = pytester.runpytest_inprocess(*conftests.PLAIN, "--db-seed=5")
    line = "less durable: other has innodb_flush_log_at_trx_commit=2 (galera3: 1); a crash can lose its last commits"

    assert result.outlines.count(line) == 1
    assert (pytester.path / "reports" / "latest" / "summary.md").read_text().count(line) == 1


def test_the_command_that_repeats_a_claim_works_on_any_machine(pytester, suite):
    """It names no directory of this one, and says where a path has to be filled in."""
    suite(CLAIMS)
    (pytester.path / "conf").mkdir()
    (pytester.path / "conf" / "my.cnf").write_text("[mysqld]\n")

    cnf = f"--db-cnf={pytester.path}/conf/my.cnf"
    pytester.runpytest_inprocess(
        *conftests.PLAIN, "--db-seed=5", cnf, "--db-results", "/tmp/none/../x", "-k", "no_such_test"
    )
    pytester.runpytest_inprocess(*conftests.PLAIN, "--db-seed=5", cnf, f"--db-results={pytester.path}/reports/latest")
    (repeat, *_) = {line["repeat"] for line in lines(pytester)}

    assert "--db-cnf=conf/my.cnf" in repeat
    assert str(pytester.path) not in repeat
    assert "--db-results" not in repeat


def test_a_claim_that_is_made_twice_is_an_error_before_it_draws(pytester, suite):
    """Whatever its margin; the first one keeps its verdict, and the message says what to do."""
    suite("""
    def test_faster(measure):
        one, other = measure("mysqlslap write", on=[ONE, OTHER])
        assert other.beats(one)
        again, another = measure("mysqlslap write", on=[ONE, OTHER])
        assert another.beats(again, by=0.1)

    def test_another(measure):
        one, other = measure("mysqlslap write", on=[ONE, OTHER])
        assert other.beats(one)
        assert other.same_as(one, within=0.6)
    """)

    result = pytester.runpytest_inprocess(*conftests.PLAIN, "--db-seed=5")

    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        ['*the test makes the claim other.beats(galera3, metric="throughput") on mysqlslap write twice*']
    )
    assert len(lines(pytester)) == 3


def test_two_tests_of_one_name_are_an_error_before_the_first_test(pytester, suite):
    """In two files of one name: ids have no directory. Tests that do not measure may have any name."""
    body = HEAD + CLAIMS + "\n    def test_plain():\n        pass\n"
    for directory in ("a", "b"):
        (pytester.path / directory).mkdir()
        pytester.makepyfile(**{f"{directory}/test_same": body})

    result = pytester.runpytest_inprocess(*conftests.PLAIN, "--import-mode=importlib")
    result.stderr.fnmatch_lines(["*a/test_same.py::test_faster and b/test_same.py::test_faster have the same name*"])
    assert result.ret == pytest.ExitCode.USAGE_ERROR

    result = pytester.runpytest_inprocess(*conftests.PLAIN, "--import-mode=importlib", "-k", "test_plain")
    result.assert_outcomes(passed=2, deselected=4)
