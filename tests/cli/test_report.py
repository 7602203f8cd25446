"""``dbcluster report``: pages of results directories, and a sentence for everything that is none."""

import pytest

from pytest_dbcluster.cli import main
from pytest_dbcluster.reporting.charts import claim as claim_chart
from pytest_dbcluster.reporting.charts import drawing
from tests.support.records import failed, record
from tests.support.results import results

OLD = "mariadb:10.5 10.5.29"


@pytest.fixture
def run(tmp_path, monkeypatch):
    """``run(name, claims)``: a results directory. Files of charts have their own tests."""

    def make(name="run", made=None, **given):
        with monkeypatch.context() as patch:
            patch.setattr(claim_chart, "svg", lambda one: None)
            return results(tmp_path / name, [record()] if made is None else made, **given)

    return make


def test_the_page_of_a_directory_is_made_again(run, capsys):
    """It lies in the directory; the line says where."""
    directory = run()

    assert main.main(["report", str(directory)]) == 0
    assert capsys.readouterr().out == f"report: {directory}/index.html (1 claim)\n"
    assert "flush_2 is faster than galera3" in (directory / "index.html").read_text()


def test_the_page_of_a_killed_run_is_made(run, capsys):
    """What is missing is said."""
    directory = run(made=[record(), failed()], ended=None, selected=9)
    lines = (directory / "claims.jsonl").read_bytes()
    (directory / "claims.jsonl").write_bytes(lines[:-100])

    assert main.main(["report", str(directory)]) == 0
    told = capsys.readouterr()
    assert told.out == f"report: {directory}/index.html (1 claim)\n"
    assert f"{directory}: the last line of claims.jsonl is incomplete" in told.err
    assert f"{directory}: the run was killed, or is still running: 6 of 9 tests have ended" in told.err


def test_two_runs_have_one_page_and_one_table(run, tmp_path, capsys):
    """The claims stand side by side, printed, in the page, and as Markdown."""
    words = [str(run("new")), str(run("old", [record(release=OLD)]))]

    assert main.main(["report", *words, "--output", str(tmp_path / "both.html")]) == 0
    printed = capsys.readouterr().out
    assert printed.splitlines()[0].endswith(f"{OLD}        mariadb:10.11 10.11.19")
    assert "1.30x (" in printed
    assert f'<th scope="col">{OLD}</th>' in (tmp_path / "both.html").read_text()

    assert main.main(["report", *words, "--output", str(tmp_path / "both.md")]) == 0
    assert (tmp_path / "both.md").read_text().startswith("## claims by release\n\n| claim | load | mariadb:10.5 ")


def test_an_output_that_is_a_directory_gets_the_page(run, tmp_path, capsys):
    """Under the name that a web server shows."""
    (tmp_path / "site").mkdir()

    assert main.main(["report", str(run()), "--output", str(tmp_path / "site")]) == 0
    assert (tmp_path / "site" / "index.html").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["{there}", "{nowhere}"], "several results directories have one page together: give --output FILE.html"),
        (["{nowhere}"], "{nowhere}: there is no such results directory; a measuring run creates one"),
        (["{there}/rounds"], "it is no results directory: it has none of claims.jsonl, curves.jsonl, run.json"),
        (["{there}", "--output", "{nowhere}/x.html"], "cannot write {nowhere}/x.html: No such file or directory"),
        (["{there}", "--output", "{nowhere}.md"], "its table needs two releases or directories"),
    ],
)
def test_wrong_input_is_a_sentence(run, tmp_path, capsys, words, said):
    """It names what is wrong, and the status is 2."""
    places = {"there": run(), "nowhere": tmp_path / "nowhere"}

    assert main.main(["report", *(word.format(**places) for word in words)]) == 2
    assert said.format(**places) in capsys.readouterr().err


def test_missing_packages_are_named(run, monkeypatch, capsys):
    """With the command that installs them."""
    directory = run()
    monkeypatch.setattr(drawing, "available", lambda: False)

    assert main.main(["report", str(directory)]) == 1
    assert "no page: matplotlib is not installed; pip install 'pytest-dbcluster[plots]'" in capsys.readouterr().err
