"""Which option does it: a run with ``measure.factorial``, and ``dbcluster compare --by-option``, on a real server."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from pytest_dbcluster.reporting import schema
from tests.support import conftests
from tests.support.command import alone, dbcluster
from tests.support.facts import missing

# A cache of all results makes these reads many times as fast, and background writes have nothing to do.
SUITE = """\
from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.workloads.mysqlslap import MySQLSlap

ONE = ClusterSpec("standalone").with_options(query_cache_type=1)
READ = MySQLSlap("read", concurrency=2, queries=60, rows=500)


def test_the_cache_does_it(measure):
    options = {"query_cache_size": (0, "64M"), "innodb_io_capacity": (200, 300), "lock_wait_timeout": (86400, 40)}
    effects = measure.factorial(READ, on=ONE, options=options)
    assert effects["query_cache_size"].beats()
    assert effects["innodb_io_capacity"].same_as(within=0.9)
    assert len(effects.interactions()) == 3


def test_an_option_twice(measure):
    measure.factorial(READ, on=ONE, options={"lock_wait_timeout": (86400, 40), "lock-wait-timeout": (86400, 50)})


def test_an_unknown_option(measure):
    measure.factorial(READ, on=ONE, options={"lock_wait_timeot": (86400, 40)})
"""


# A comparison of options ends after the fewest rounds that can decide, whatever they show. A round has 500 queries.
FEW_BLOCKS = """
from pytest_dbcluster.claims.factorial import judging
from pytest_dbcluster.workloads import mysqlslap

judging.CAP = 16
mysqlslap.QUICK_QUERIES["key"] = 500
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of the suite, with the directory of its results."""
    place = tmp_path_factory.mktemp("suite")
    (place / "test_options.py").write_text(SUITE)
    (place / "pytest.ini").write_text("[pytest]\n")
    (place / "conftest.py").write_text(conftests.OWN_MACHINE + conftests.NO_CHARTS + conftests.SHORT_ROUNDS)
    words = [
        "-W",
        "error",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:hypothesispytest",
        "--db-seed=4",
        "--db-results=results",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words],
        cwd=place,
        env={**os.environ, "DBCLUSTER_DATA_DIR": str(place / "runs"), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done, place / "results"


def test_one_run_answers_for_each_option(run):
    """Two claims and the effect that nobody claimed, from the same rounds; wrong calls start nothing."""
    done, results = run
    records = schema.read_claims(results)

    assert "2 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert [(record.text, record.asserted) for record in records] == [
        ('effects["query_cache_size"].beats()', True),
        ('effects["innodb_io_capacity"].same_as(within=0.9)', True),
        ("lock_wait_timeout=40 against lock_wait_timeout=86400", False),
    ]
    assert {record.verdict.alpha for record in records} == {0.0005 / 3}
    assert dict(records[0].differences) == {"query_cache_size": ("0", "67108864")}
    assert {len(rounds) for rounds in records[0].rounds.values()} == {records[0].verdict.pairs}
    assert {done.variant[0] for done in records[0].rounds["query_cache_size=64M"]} == {"1"}


def test_the_terminal_shows_all_effects(run):
    """One table, the largest effect first, and what is wrong with a call."""
    done, _ = run
    _, _, table = done.stdout.partition("effects of options, mysqlslap read c2")
    first, *others = [line for line in table.splitlines() if " -> " in line][:3]

    assert first.startswith("query_cache_size: 0 -> 64M")
    assert sorted(line.split(":")[0] for line in others) == ["innodb_io_capacity", "lock_wait_timeout"]
    facts = ("'lock-wait-timeout' and 'lock_wait_timeout' are the same option", "did you mean lock_wait_timeout")
    assert missing(done.stdout, *facts) == []


def test_the_page_has_the_table(run):
    """Its results directory has the rounds, each once."""
    _, results = run
    rows = (results / "summary.md").read_text()

    assert "query_cache_size: 0 -> 64M" in rows
    lines = min((results / "rounds").glob("*.csv")).read_text().splitlines()
    places = [tuple(line.split(",")[1:3]) for line in lines[1:]]
    assert len(places) == len(set(places)) >= 32


def test_a_comparison_by_option_names_the_one_that_does_it(tmp_path):
    """Two files differ in two options; one row for each, and the exit code says if all have an answer."""
    (tmp_path / "current.cnf").write_text("[mysqld]\nlock_wait_timeout = 86400\ngeneral_log = OFF\n")
    (tmp_path / "candidate.cnf").write_text("[mysqld]\nlock_wait_timeout = 40\ngeneral_log = ON\n")
    files = [f"--cnf={tmp_path / name}.cnf" for name in ("current", "candidate")]
    words = ["--by-option", "--workload=mysqlslap:key", "--threads=4", f"--results={tmp_path / 'results'}"]
    program = alone(tmp_path / "bin", conftests.SHORT_ROUNDS + FEW_BLOCKS)
    done = dbcluster("compare", *files, *words, "--seconds=60", seconds=180, program=program)

    assert done.returncode in (0, 4), done.stdout + done.stderr
    rows = [line for line in done.stdout.splitlines() if " -> " in line]
    assert sorted(row.split()[0] for row in rows) == ["general_log", "lock_wait_timeout"]
    assert missing("".join(rows), " OFF -> ON ", " 86400 -> 40 ") == []
    assert done.stdout.splitlines()[-1].endswith(" on mysqlslap key c4")
    kinds = [record.kind for record in schema.read_claims(tmp_path / "results")]
    assert kinds[:2] == ["effect_same_as"] * 2
    assert set(kinds[2:]) <= {"same_as"}
    assert (" alone against all 2 options: " in done.stdout) is ("".join(rows).count(" carries it") == 1)


@pytest.mark.parametrize("words", [[], ["--release=mariadb:11.8"], ["--equal"], ["--resume"]])
def test_a_comparison_by_option_needs_two_files(called, tmp_path, words):
    """On one release, and from the beginning; otherwise nothing starts."""
    (tmp_path / "a.cnf").write_text("[mysqld]\n")
    (tmp_path / "b.cnf").write_text("[mysqld]\nlock_wait_timeout = 40\n")
    files = [f"--cnf={tmp_path / name}.cnf" for name in ("a", "b")][: 2 if words else 1]
    more = ["--release=mariadb:10.11"] if words and "release" in words[0] else []
    done = called("compare", *files, *words, *more, "--by-option", f"--results={tmp_path / 'results'}")

    assert done.returncode == 2
    assert "--by-option" in done.stderr
    assert not (tmp_path / "results").exists()
