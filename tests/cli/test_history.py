"""``dbcluster history``: lists, charts, CSV and accepted levels, and a sentence for what is not there."""

from __future__ import annotations

import pytest

from pytest_dbcluster.cli import main
from pytest_dbcluster.reporting.charts import drawing
from pytest_dbcluster.reporting.history import history_file
from tests.support.facts import missing
from tests.support.histories import CLAIM, entries, healthy


@pytest.fixture
def file(tmp_path):
    """A history of two claims, of which one fell in its last run."""
    path = tmp_path / "history.jsonl"
    history_file.add(path, [*entries([*healthy(8), 1.2]), *entries([1.1], claim_id="test_x::test_y | a | tpcc")])
    return path


def run(*words):
    """Run the command and return its exit code."""
    return main.main(["history", *map(str, words)])


def test_the_list_shows_each_claim_beside_its_earlier_runs(file, capsys):
    """A drift is marked; --claim chooses."""
    assert run("list", "--file", file) == 0
    assert "DRIFT" in capsys.readouterr().out

    assert run("list", "--file", file, "--claim", "test_x") == 0
    out = capsys.readouterr().out
    assert ("test_x::test_y" in out, "DRIFT" in out) == (True, False)


def test_a_line_that_cannot_be_read_is_told(file, capsys):
    """The rest is listed."""
    with file.open("a") as history:
        history.write("torn")

    assert run("list", "--file", file) == 0
    told = capsys.readouterr()
    assert f"{file}, line 11: it is incomplete" in told.err
    assert CLAIM in told.out


@pytest.mark.skipif(not drawing.available(), reason=drawing.MISSING)
def test_charts_are_written(file, tmp_path, capsys):
    """One for each claim with two runs or more."""
    assert run("draw", tmp_path / "charts", "--file", file) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert missing(line, "1 chart", f"{tmp_path}/charts;", "needs two runs") == []
    (chart,) = (tmp_path / "charts").iterdir()
    assert chart.read_text().startswith("<?xml")


def test_csv_is_written(file, tmp_path, capsys):
    """A line for each run of each claim, under the names of the columns."""
    assert run("export", tmp_path / "all.csv", "--file", file) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert missing(line, "10 lines", f"{tmp_path}/all.csv") == []
    assert len((tmp_path / "all.csv").read_text().splitlines()) == 11


def test_a_new_level_is_accepted(file, capsys):
    """The list then compares nothing with the runs before it."""
    assert run("accept", "test_flush_2", "run08", "another disk", "--file", file) == 0
    assert capsys.readouterr().out.startswith(f"accepted: {CLAIM} (mariadb:10.11) has a new level since ")

    assert run("list", "--file", file) == 0
    assert "DRIFT" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["list", "--file", "none.jsonl"], "none.jsonl: there is no such history; pytest --db-history none.jsonl "),
        (["list", "--claim", "zz"], "has no claim with 'zz' in its id; it has:\n  test_flush::"),
        (["accept", "test_flush_2", "zz", "why"], "the history has no run 'zz'"),
        (["export", "/dev/null/all.csv"], "cannot write /dev/null/all.csv: File exists; name another file"),
    ],
)
def test_wrong_words_are_answered(file, capsys, words, said):
    """Exit code 2, and what there is."""
    where = [] if "--file" in words else ["--file", file]

    assert run(*words, *where) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("words", [["list"], ["list", "--claim", "zz"]])
def test_an_empty_history_is_called_empty(tmp_path, capsys, words):
    """Whatever claim was asked for."""
    file = tmp_path / "history.jsonl"
    file.touch()

    assert run(*words, "--file", file) == 2
    assert f"{file} has no run" in capsys.readouterr().err
