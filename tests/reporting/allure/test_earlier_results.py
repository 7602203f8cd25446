"""Results of Allure that stay when a run is continued."""

import json

import pytest

from pytest_dbcluster.reporting.allure.earlier_results import EarlierResults, tidy


def result(uuid, history, *attached):
    """A result whose step has attachments."""
    steps = [{"name": "claim", "attachments": [{"source": name} for name in attached]}]
    return {"uuid": uuid, "historyId": history, "steps": steps}


@pytest.fixture
def directory(tmp_path):
    """Two tests with attachments, a fixture of the first and one of both, and what the end of a run writes."""
    befores = [{"attachments": [{"source": "c-attachment"}]}]
    files = {
        "1-result.json": result("one", "first", "a-attachment.csv"),
        "2-result.json": result("two", "second", "b-attachment.csv"),
        "3-container.json": {"uuid": "c", "children": ["one"], "befores": befores},
        "4-container.json": {"uuid": "d", "children": ["one", "two"]},
        "5-globals.json": {},
        "categories.json": [],
        "claims-perf.json": [],
    }
    for name, content in files.items():
        (tmp_path / name).write_text(json.dumps(content))
    for name in ("a-attachment.csv", "b-attachment.csv", "c-attachment", "my.txt"):
        (tmp_path / name).write_text("text")
    return tmp_path


def names(directory):
    """The names of its files."""
    return sorted(path.name for path in directory.iterdir())


def test_a_test_that_runs_again_loses_what_it_had(directory):
    """Its result, its attachments and its own fixtures; what other tests have stays."""
    earlier = EarlierResults(directory)
    for _ in range(2):  # a test that is repeated within one run keeps its results of this run
        earlier.replace("first")

    assert names(directory) == [
        "2-result.json", "4-container.json", "5-globals.json", "b-attachment.csv", "categories.json",
        "claims-perf.json", "my.txt",
    ]  # fmt: skip


def test_fixtures_of_several_tests_stay_with_the_last_of_them(directory):
    """A fixture of a session belongs to all of its tests."""
    earlier = EarlierResults(directory)
    earlier.replace("first")
    earlier.replace("second")

    assert names(directory) == ["5-globals.json", "categories.json", "claims-perf.json", "my.txt"]


def test_an_unknown_test_removes_nothing(directory):
    """It is new in this run."""
    before = names(directory)
    EarlierResults(directory).replace("third")

    assert names(directory) == before


def test_what_a_killed_run_leaves_is_removed(directory):
    """A torn result, attachments and fixtures of tests that had not ended; and what each end of a run writes."""
    (directory / "2-result.json").write_text('{"uuid": "two", "hist')
    (directory / "6-container.json").write_text(json.dumps({"uuid": "e", "children": ["three"]}))
    tidy(directory)

    assert names(directory) == [
        "1-result.json", "3-container.json", "4-container.json", "a-attachment.csv", "c-attachment", "my.txt"
    ]  # fmt: skip


def test_an_attachment_elsewhere_is_not_ours(directory, tmp_path_factory):
    """A document names files of its own directory alone."""
    outside = tmp_path_factory.mktemp("outside") / "mine"
    outside.write_text("mine")
    (directory / "1-result.json").write_text(json.dumps(result("one", "first", f"../{outside.parent.name}/mine")))
    EarlierResults(directory).replace("first")

    assert outside.read_text() == "mine"


def test_a_run_without_results_has_none(tmp_path):
    """Nor has one whose Allure was not installed."""
    tidy(tmp_path / "missing")
    EarlierResults(tmp_path / "missing").replace("first")
