"""``dbcluster compare`` with three or more files: they race."""

from __future__ import annotations

import json
import types

import pytest

from pytest_dbcluster.claims.race.standing import Standing
from pytest_dbcluster.cli.compare import racing
from pytest_dbcluster.cli.compare.racing import RacedWorkload
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.measuring.race import running
from pytest_dbcluster.reporting.tables.no_worse import Result
from tests.support.command import SHORT_COMPARISON, alone, dbcluster
from tests.support.facts import missing
from tests.support.fakes import FakeSource, noisy
from tests.support.measurements import measurement
from tests.workloads.sql.directories import directory

SLEEPS = (5, 10, 15)  # ms of a transaction, which sleeps as long as its server's my.cnf says
SLEEP = "DO SLEEP(@@GLOBAL.long_query_time);\n"


def raced(workload, *, wins="", reason=""):
    """A race of ``a`` and ``b`` on a workload."""
    standings = (
        Standing(wins or "a", 1.0, 1.0, 1.0, 20, wins=bool(wins)),
        Standing("b", 0.8, 0.7, 0.9, 17, beaten_by="a"),
    )
    return RacedWorkload(workload, types.SimpleNamespace(standings=standings), reason)


@pytest.mark.parametrize(
    ("items", "said", "result"),
    [
        ([raced("x", wins="a"), raced("y", wins="a")], "a is best: it wins on x and y", Result.NO_WORSE),
        (
            [raced("x", wins="a"), raced("y", wins="c")],
            "could not tell which is best: a wins on x, c wins on y",
            Result.UNKNOWN,
        ),
        (
            [raced("x", wins="a"), raced("y", reason="no time")],
            "could not tell which is best: a wins on x, no winner on y",
            Result.UNKNOWN,
        ),
        ([RacedWorkload("x", None, "no time")], "could not tell which is best: no winner on x", Result.UNKNOWN),
        ([RacedWorkload("x", None, "died", True)], "could not tell which is best: no winner on x", Result.BROKEN),
    ],
)
def test_the_answer_is_a_winner_of_all_workloads(items, said, result):
    """Otherwise the sentence names the winner of each."""
    assert racing.sentence(items) == said
    assert racing.overall(items) is result


def test_each_workload_has_a_table():
    """Or the reason why there is none."""
    lines = racing.tables([raced("x", wins="a"), RacedWorkload("y", None, "no time")])

    assert [line.split() for line in lines if line.startswith(("variant", "a", "b"))] == [
        ["variant", "speed", "/", "a", "rounds", "end"],
        ["a", "-", "20", "wins"],
        ["b", "0.80x", "(0.70", "..", "0.90)", "17", "left", "after", "17", "rounds,", "beaten", "by", "a"],
    ]
    assert "no winner: no time" in lines


def test_an_open_race_is_shown_without_a_winner():
    """Its answer is not read: that would raise."""
    source = FakeSource(("a", "b", "c"), noisy(1.0, 1.0, 1.0, sd=0.3))
    open_race = running.run(measurement(source, budget=1e6, cap=20), by=0.001)
    item = RacedWorkload("x", open_race.answer, open_race.answer.verdict.reason)

    assert racing.sentence([item]) == "could not tell which is best: no winner on x"
    assert "no winner: cap of 20 pairs" in racing.tables([item])


def resolved(**options):
    """A variant as far as its options go."""
    return types.SimpleNamespace(options=options)


def test_files_with_the_same_options_are_refused():
    """However they are written."""
    same = [resolved(a="1G"), resolved(a="2G"), resolved(a="1024M")]

    with pytest.raises(ConfigError, match=r"one\.cnf and three\.cnf give the servers the same options"):
        racing.refuse_equal(same, ["one.cnf", "two.cnf", "three.cnf"])
    racing.refuse_equal(same[:2], ["one.cnf", "two.cnf"])
    with pytest.raises(ConfigError, match=r"--equal measures two files, not 2"):
        racing.refuse_equal(same[:2], ["one.cnf", "two.cnf"], anyway=True)


def test_the_options_that_differ_are_shown():
    """Each with the value that every file gives its server."""
    variants = [resolved(a="1", b="5"), resolved(a="2"), resolved()]
    lines = racing.differences(
        ["x", "y", "z"], variants, [{"a": "1", "b": "5"}, {"a": "2", "b": "5"}, {"a": "1", "b": "5"}]
    )

    assert [line.split() for line in lines[2:]] == [["variable", "x", "y", "z"], ["a", "1", "2", "1"]]
    assert racing.differences(["x", "y"], variants[:1] * 2, [{"a": "1", "b": "5"}] * 2) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--cnf=a", "--cnf=b", "--cnf=c", "--release=mariadb:10.11", "--release=mariadb:11.8"], "3 files and 2 rel"),
        (["--cnf=a"] * 18, "18 files and 0 releases"),
        (["--cnf=a"], "or 3 to 17 files of one release, which race; got 1 file and 0 releases"),
    ],
)
def test_what_cannot_race_is_refused(words, said):
    """Too many files, or files of several releases."""
    done = dbcluster("compare", *words)

    assert done.returncode == 2
    assert said in " ".join(done.stderr.split())


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Three files that one server can switch between."""
    place = tmp_path_factory.mktemp("raced")
    for value in SLEEPS:
        text = f"[mysqld]\nmax_connections = 200\nlong_query_time = {value / 1000}\n"
        (place / f"sleep_{value}.cnf").write_text(text)
    return place, [f"--cnf={place / f'sleep_{value}.cnf'}" for value in SLEEPS]


@pytest.mark.thorough  # tests/whole/test_race.py has a race on a real server
def test_three_files_race_on_real_servers(files):
    """One server serves all three; the output ends with the answer, and each answer is in the results."""
    place, words = files
    shop = directory(place / "shop", {"browse.sql": SLEEP})
    program, results = alone(place / "bin", SHORT_COMPARISON), place / "results"
    words = [*words, f"--workload={shop}/", "--threads=4", "--seconds=120", f"--results={results}"]
    done = dbcluster("compare", *words, seconds=300, program=program)
    lines = done.stdout.splitlines()

    assert done.returncode == 0, done.stdout + done.stderr
    assert lines[-1] == "sleep_5 is best: it wins on sql shop t4"
    assert ["long_query_time", "0.005", "0.01", "0.015"] in [line.split() for line in lines]
    [claim] = map(json.loads, (results / "claims.jsonl").read_text().splitlines())
    assert claim["kind"] == "race"
    assert sorted(one["name"] for one in claim["standings"]) == ["sleep_10", "sleep_15", "sleep_5"]
    assert [one["wins"] for one in claim["standings"]] == [True, False, False]
    assert "speed / sleep_5" in (results / "index.html").read_text()


def test_two_of_three_files_that_say_the_same_are_refused_before_a_server_starts(files):
    """The error names both."""
    place, words = files
    (place / "again.cnf").write_text("[mysqld]\nlong-query-time=0.01\nloose_max_connections=200\n# a comment\n")
    words = [*words, f"--cnf={place / 'again.cnf'}", f"--results={place / 'none'}"]
    done = dbcluster("compare", *words, program=alone(place / "bin"))

    assert done.returncode == 2
    assert "give the servers the same options, so no server was started" in " ".join(done.stderr.split())


def test_why_compares_two_files_only(tmp_path, called):
    """With three files it is refused before anything starts, with what to do."""
    done = called("compare", *(f"--cnf={tmp_path / name}.cnf" for name in "abc"), "--why")

    assert done.returncode == 2
    assert missing(done.stderr, "--why", "two --cnf files") == []
