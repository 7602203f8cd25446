"""``dbcluster report``: pages of results directories, their claims side by side, and a sentence for bad input."""

import dataclasses

import pytest

from pytest_dbcluster.cli import main
from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.reporting.allure import allure_page, program
from pytest_dbcluster.reporting.charts import claim as claim_chart
from pytest_dbcluster.reporting.charts import drawing
from pytest_dbcluster.reporting.page import comparison_view
from tests.support.facts import missing
from tests.support.records import failed, record
from tests.support.results import results
from tests.support.run_documents import MACHINE

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


@pytest.fixture
def allure(run):
    """A results directory with a result of Allure."""
    directory = run()
    (directory / "allure-results").mkdir()
    (directory / "allure-results" / "1-result.json").write_text("{}")
    return directory


def test_the_page_of_allure_is_made_where_allure_is(allure, capsys, monkeypatch):
    """Without being asked for; where something is missing, a line says what, and the run's own page is there."""
    monkeypatch.setattr(allure_page, "try_to_make", lambda read, page, tell: f"no Allure page beside {page}")

    assert main.main(["report", str(allure)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"report: {allure}/index.html (1 claim)",
        f"no Allure page beside {allure}/index.html",
    ]


def test_allure_is_fetched_when_it_is_asked_for(allure, capsys, monkeypatch, tmp_path):
    """Its page is made with what was fetched."""
    monkeypatch.setattr(program, "fetch", lambda tell: tmp_path / "fetched")
    monkeypatch.setattr(allure_page, "make", lambda read, page, entry, tell: f"{page} by {entry}")

    assert main.main(["report", str(allure), "--allure"]) == 0
    assert capsys.readouterr().out.splitlines()[1] == f"{allure}/index.html by {tmp_path}/fetched"


def test_an_allure_that_cannot_be_fetched_leaves_the_page(allure, capsys, monkeypatch):
    """It is an error, because it was asked for; the run's own page was made before."""

    def fetch(tell):
        raise ProvisionError("npm could not fetch Allure")

    monkeypatch.setattr(program, "fetch", fetch)

    assert main.main(["report", str(allure), "--allure"]) == 1
    told = capsys.readouterr()
    assert told.err.splitlines()[-1] == "dbcluster: npm could not fetch Allure"
    assert (allure / "index.html").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [([], "there are no results of Allure in "), (["--output", "both.md"], "a table has no Allure page")],
    ids=["no results", "table"],
)
def test_a_page_of_allure_that_cannot_be_is_refused_before_anything(run, capsys, words, said):
    """Nothing is fetched and nothing is written."""
    directory = run()

    assert main.main(["report", str(directory), "--allure", *words]) == 2
    assert said in capsys.readouterr().err
    assert not (directory / "index.html").exists()


def test_the_page_of_a_killed_run_is_made(run, capsys):
    """What is missing is said."""
    directory = run(made=[record(), failed()], ended=None, selected=9)
    lines = (directory / "claims.jsonl").read_bytes()
    (directory / "claims.jsonl").write_bytes(lines[:-100])

    assert main.main(["report", str(directory)]) == 0
    told = capsys.readouterr()
    assert told.out == f"report: {directory}/index.html (1 claim)\n"
    assert f"{directory}: the last line of claims.jsonl is incomplete" in told.err
    assert f"{directory}: the run was killed, or is still running: 6 of 9 tests ended" in told.err


def test_two_runs_have_one_page_and_one_table(run, tmp_path, capsys):
    """The claims stand side by side, printed, in the page, and as Markdown."""
    words = [str(run("new")), str(run("old", [record(release=OLD)]))]

    assert main.main(["report", *words, "--output", str(tmp_path / "both.html")]) == 0
    printed = capsys.readouterr().out
    assert printed.splitlines()[0].startswith("claim                   load                 mariadb:10.5 10.5.29 ")
    assert "1.26x (" in printed
    assert printed.endswith(f"table: {tmp_path}/both.md (1 row)\n")
    assert f'<th scope="col">{OLD}</th>' in (tmp_path / "both.html").read_text()
    table = (tmp_path / "both.md").read_text()
    assert table.startswith("## Claims by release\n\n| claim | load | mariadb:10.5 ")

    assert main.main(["report", *words, "--output", str(tmp_path / "alone.md")]) == 0
    assert (tmp_path / "alone.md").read_text() == table
    assert not (tmp_path / "alone.html").exists()


def test_a_file_that_is_no_table_of_ours_stays(run, tmp_path, capsys):
    """The page is written, and one that is a table is replaced."""
    words = [str(run("new")), str(run("old", [record(release=OLD)])), "--output", str(tmp_path / "README.html")]
    (tmp_path / "README.md").write_text("# My project\n")

    assert main.main(["report", *words]) == 0
    told = capsys.readouterr()
    assert (tmp_path / "README.md").read_text() == "# My project\n"
    assert missing(told.err, "README.md was not written by this command", "--output FILE.md") == []
    assert (tmp_path / "README.html").exists()

    (tmp_path / "README.md").write_text("## Claims by release\n\nold\n")
    assert main.main(["report", *words]) == 0
    assert "| claim | load |" in (tmp_path / "README.md").read_text()


def test_claims_are_compared_by_what_is_asked_for(run, tmp_path, capsys):
    """Two machines; without --by a sentence says which comparison there is, and the page has it anyway."""
    other = dataclasses.replace(MACHINE, id="ab" * 8)
    words = [str(run("here")), str(run("there", machine=other)), "--output", str(tmp_path / "both.html")]

    assert main.main(["report", *words]) == 0
    told = capsys.readouterr()
    (line,) = told.err.splitlines()
    assert missing(line, "no claim has two releases", "--by machine") == []
    assert not (tmp_path / "both.md").exists()
    assert "Claims by machine" in (tmp_path / "both.html").read_text()

    assert main.main(["report", *words, "--by", "machine"]) == 0
    told = capsys.readouterr()
    assert told.err == ""
    assert "0f0f0f, 2 x a CPU" in told.out.splitlines()[0]
    assert "ababab, 2 x a CPU" in told.out.splitlines()[0]
    assert (tmp_path / "both.md").read_text().startswith("## Claims by machine\n")


def test_the_help_lists_what_can_be_compared(capsys):
    """Every word that --by takes."""
    with pytest.raises(SystemExit):
        main.main(["report", "--help"])
    said = " ".join(capsys.readouterr().out.split())

    assert f"{', '.join(comparison_view.KNOWN[1:-1])} or {comparison_view.KNOWN[-1]}" in said


def test_an_output_that_is_a_directory_gets_the_page(run, tmp_path, capsys):
    """Under the name that a web server shows."""
    (tmp_path / "site").mkdir()

    assert main.main(["report", str(run()), "--output", str(tmp_path / "site")]) == 0
    assert (tmp_path / "site" / "index.html").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["{there}", "{nowhere}"], "several results directories have one page: add --output FILE.html"),
        (["{nowhere}"], "{nowhere}: there is no such results directory; a measuring run creates one"),
        (["{there}/rounds"], "it is not a results directory: it has none of claims.jsonl, curves.jsonl, run.json"),
        (["{there}", "--output", "{nowhere}/x.html"], "cannot write {nowhere}/x.html: No such file or directory"),
        (["{there}", "--output", "{nowhere}.md"], "there is no table, because no claim has two releases"),
        (["{there}", "--output", "{there}/claims.jsonl"], "--output needs a name that ends in .html or .md"),
        (["{there}", "--output", "{there}/summary.md"], "cannot write {there}/summary.md: --output needs a name"),
        (["{there}", "--by", "vendor"], "unknown comparison 'vendor'; known: release, topology, storage, machine, run"),
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
