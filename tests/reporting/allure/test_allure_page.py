"""Allure's page: what Allure is given. ``test_allure_page_made`` tests the page that it makes of that."""

import json
import os

import pytest

from pytest_dbcluster.errors import ConfigError, Unsupported
from pytest_dbcluster.reporting.allure import allure_page, program
from pytest_dbcluster.reporting.page import sources
from tests.support.records import record
from tests.support.results import results
from tests.support.run_documents import TESTS

PAGE = '<meta charset="utf-8"><script async src="https://a"></script><script></script>'


def a_result(release="mariadb:10.11", **changes):
    """The text of a result."""
    labels = [{"name": "env", "value": release}, {"name": "suite", "value": "test_flush"}]
    return json.dumps({"uuid": "1", "name": "test_it", "status": "passed", "labels": labels, **changes})


@pytest.fixture
def run(tmp_path):
    """``run(name, files)``: a results directory with these files in its directory of Allure, by name."""

    def make(name="run", files=None, **given):
        directory = results(tmp_path / name, [record(pairs=0, test=TESTS[0].test)], **given)
        if files is not None:
            (directory / "allure-results").mkdir()
        for file, text in (files or {}).items():
            (directory / "allure-results" / file).write_text(text)
        return directory

    return make


@pytest.fixture
def staged(tmp_path):
    """``staged(*directories)``: their environments, the directory that Allure is given, and lines about files."""

    def stage(*directories):
        into, lines = tmp_path / "staged", []
        into.mkdir()
        return allure_page.stage(sources.read_all(directories), into, "index.html", lines.append), into, lines

    return stage


@pytest.fixture
def allure(monkeypatch, tmp_path):
    """An Allure that makes PAGE; it notes the environments and the metadata that it is given."""
    given = []

    def generate(entry, configuration, results):
        settings = json.loads((configuration.parent / "settings.json").read_text())
        given.append((settings["environments"], (results / "environment.properties").read_text()))
        assert configuration.exists()
        assert list(results.glob("*-result.json"))
        return PAGE

    monkeypatch.setattr(program, "generate", generate)
    monkeypatch.setattr(program, "lookup", lambda: tmp_path)
    return given


def test_each_release_is_an_environment(run, staged):
    """They are sorted by version; a result stays as it is, but for its folders."""
    others = {
        "2-result.json": a_result("mysql:9.7"),
        "3-result.json": a_result("mariadb:10.5"),
        "4-result.json": a_result(),
    }
    environments, into, _ = staged(run(files={"1-result.json": a_result(), **others}))

    assert list(environments.items()) == [(name, name) for name in ("mariadb:10.5", "mariadb:10.11", "mysql:9.7")]
    given = json.loads(a_result())
    assert json.loads((into / "1-result.json").read_text()) == {**given, "labels": given["labels"][:1]}


def test_the_environments_of_several_directories_are_kept_apart(run, staged):
    """Else the same test of another machine would be taken for a retry."""
    old, new = run("old", {"1-result.json": a_result()}), run("new", {"2-result.json": a_result()})
    environments, into, _ = staged(old, new)

    assert list(environments) == ["mariadb:10.11, new", "mariadb:10.11, old"]
    assert "old\\:\\ commit=" in (into / "environment.properties").read_text()


def test_a_test_without_a_release_is_in_the_environment_of_its_directory(run, staged):
    """Such as a test that measures nothing: in one environment it would be a retry of itself."""
    plain = [a_result(labels=labels) for labels in ([{"name": "suite", "value": "test_it"}], None)]
    environments, into, _ = staged(run("old", {"1-result.json": plain[0]}), run("new", {"2-result.json": plain[1]}))

    assert environments == {"new": "new", "old": "old"}
    labels = [json.loads((into / f"{number}-result.json").read_text())["labels"] for number in (1, 2)]
    assert labels == [[{"name": "env", "value": "old"}], [{"name": "env", "value": "new"}]]


def test_directories_of_one_name_are_numbered(run, staged, tmp_path):
    """Runs of two machines are mostly called latest."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    text = {"1-result.json": a_result()}
    environments, _, _ = staged(run("a/latest", text), run("b/latest", {"2-result.json": text["1-result.json"]}))

    assert list(environments) == ["mariadb:10.11, latest", "mariadb:10.11, latest (2)"]


def test_allure_takes_every_name_of_an_environment(run, staged):
    """It refuses paths, control characters, long names and its own; each label still has a name of its own."""
    labels = ["mysql:8.4=/opt/mysql", "mysql:8.4=_opt_mysql", "x" * 99, "x" * 98, "..", "default", "a\nb"]
    environments, _, _ = staged(
        run(files={f"{number}-result.json": a_result(label) for number, label in enumerate(labels)})
    )

    assert environments == {
        "mysql:8.4=/opt/mysql": "mysql:8.4=_opt_mysql",
        "mysql:8.4=_opt_mysql": "mysql:8.4=_opt_mysql (2)",
        "x" * 98: "x" * 56,
        "x" * 99: "x" * 56 + " (2)",
        "..": "unnamed",
        "default": "default (2)",
        "a\nb": "a_b",
    }


def test_what_is_no_result_is_left_out_and_named(run, staged):
    """A torn file, JSON of another kind and labels of another kind end nothing; links and other files stay away."""
    directory = run(
        files={
            "1-result.json": a_result()[:-9],
            "2-result.json": "[1]",
            "3-result.json": a_result(labels=["env"]),
            "4-attachment.csv": "a",
            "mine.txt": "mine",
        }
    )
    (directory / "allure-results" / "5-attachment.txt").symlink_to("/etc/hostname")
    os.mkfifo(directory / "allure-results" / "6-result.json")
    environments, into, lines = staged(directory)

    assert [note.partition("allure-results/")[2] for note in lines] == [
        "1-result.json is not a result of Allure, and is left out",
        "2-result.json is not a result of Allure, and is left out",
    ]
    ours = {"claims-perf.json", "environment.properties"}
    assert {path.name for path in into.iterdir()} == {"3-result.json", "4-attachment.csv", *ours}
    assert environments == {}


def test_a_killed_run_says_so(run, allure):
    """It has no files of Allure about the whole run; the metadata are made of what it has."""
    directory = run(files={"1-result.json": a_result()}, ended=None, selected=9)
    line = allure_page.try_to_make(sources.read_all([directory]), directory / "index.html", lambda line: None)
    [(environments, metadata)] = allure

    assert line == f"Allure report: {directory}/allure.html"
    assert "The run was killed, or is still running: 6 of 9 tests ended." in metadata.replace("\\", "")
    assert environments == {"mariadb:10.11": "mariadb:10.11"}


def test_a_test_that_had_not_ended_is_in_the_environment_of_its_release(tmp_path, staged):
    """Allure wrote no result of it; its claims are in the results directory."""
    directory = results(tmp_path / "run", [record(pairs=0, claim_id="test_flush::test_flush_2[write] | beats | write")])
    (directory / "allure-results").mkdir()
    environments, into, _ = staged(directory)
    [path] = into.glob("*-result.json")

    assert environments == {"mariadb:10.11": "mariadb:10.11"}
    assert json.loads(path.read_text())["name"].startswith("test_flush_2[write]: inconclusive: -")


def test_it_lies_beside_the_page_of_the_run(tmp_path):
    """Its name says whose it is, where a directory has several pages."""
    assert allure_page.path(tmp_path / "index.html") == tmp_path / "allure.html"
    assert allure_page.path(tmp_path / "both.html") == tmp_path / "both-allure.html"


def test_a_run_without_allure_has_no_line_about_it(run):
    """Nobody asked for it."""
    directory = run()

    assert allure_page.try_to_make(sources.read_all([directory]), directory / "index.html", lambda line: None) == ""


def test_asking_for_allure_without_its_results_is_a_sentence(run):
    """It names what is missing."""
    directory = run(files={"mine.txt": "mine"})
    with pytest.raises(
        ConfigError, match=rf"no results of Allure in {directory}/allure-results: allure-pytest was not"
    ):
        allure_page.check(sources.read_all([directory]), directory / "index.html")


@pytest.mark.parametrize(
    ("lookup", "node", "said"),
    [
        (None, None, "no Allure page: Allure 3.18.0 was not fetched; --allure fetches it with npm"),
        (None, "Allure needs Node.js", "no Allure page: Allure needs Node.js"),
        ("there", "Allure needs Node.js", "no Allure page: Allure needs Node.js"),
    ],
    ids=["not fetched", "nothing", "no node"],
)
def test_what_is_missing_is_said(run, monkeypatch, lookup, node, said):
    """The page of the run is there; the line says how to get Allure's."""

    def asked(*given):
        if node:
            raise Unsupported(node)

    monkeypatch.setattr(program, "lookup", lambda: lookup)
    monkeypatch.setattr(program, "node", asked)
    directory = run(files={"1-result.json": a_result()})

    assert allure_page.try_to_make(sources.read_all([directory]), directory / "index.html", lambda line: None) == said


def test_results_of_another_user_are_read_and_not_written(run, allure, monkeypatch):
    """The page belongs where the user says."""
    directory = run(files={"1-result.json": a_result()})
    read = sources.read_all([directory])
    monkeypatch.setattr(os, "geteuid", lambda: 64001)
    line = allure_page.try_to_make(read, directory / "index.html", lambda line: None)

    assert line.startswith(f"no Allure page: cannot write {directory}/allure.html: {directory} belongs to ")
