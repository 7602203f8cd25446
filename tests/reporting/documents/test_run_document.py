"""``run.json`` is read back as the run that was saved, and every other file is one clear sentence."""

from __future__ import annotations

import json

import pytest

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.reporting.documents.run_document import FILE, OUTCOMES, RunIdentity, read_run, run_text
from tests.support.run_documents import CUT_SHORT, TESTS, run_document


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"ended": None, "cut_short": "", "tests": TESTS[:1]},
        {"ended": 1_700_000_001.0, "cut_short": "SIGTERM", "tests": ()},
        {"commit": None, "dirty": None, "releases": {}},
    ],
    ids=["ended", "killed", "cut short", "no repository"],
)
def test_a_run_is_read_back_as_it_was_saved(tmp_path, changes):
    """Ended, killed or cut short, in a repository or not."""
    run = run_document(**changes)
    (tmp_path / FILE).write_bytes(run_text(run))

    assert read_run(tmp_path) == run


def test_a_made_up_run_has_every_outcome():
    """So what shows a run is tested with all of them."""
    assert {test.outcome for test in (*TESTS, CUT_SHORT)} == set(OUTCOMES)


def test_a_test_that_was_cut_short_has_not_ended():
    """It is listed, and does not count."""
    assert run_document(tests=(*TESTS, CUT_SHORT)).ended_tests == len(TESTS)


def test_a_file_without_the_version_of_the_plugin_is_read(tmp_path):
    """The version is empty then, and the rest is as it stands; runs that it continues need none either."""
    content = json.loads(
        run_text(run_document(continues=(RunIdentity(run_id="a", commit=None, dirty=None, began=1.0),)))
    )
    del content["plugin_version"], content["continues"][0]["plugin_version"]
    (tmp_path / FILE).write_text(json.dumps(content))
    run = read_run(tmp_path)

    assert run == run_document(plugin_version="", continues=run.continues)
    assert run.continues[0].plugin_version == ""


def test_results_without_the_file_are_no_error(tmp_path):
    """They are of an older version, or of a full disk."""
    assert read_run(tmp_path) is None


def changed(**changes):
    """The text of a run with other values in its JSON."""
    return json.dumps({**json.loads(run_text(run_document())), **changes}).encode() + b"\n"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (changed(format=99), "it has format 99, and this version reads format 1; update pytest-dbcluster"),
        (changed(format=0), "it has format 0, and this version reads format 1: no version has written it"),
        (b'{"owner": 1, "born": 2.0}\n', "it has no format number, so pytest-dbcluster did not write it"),
        (b"[1]\n", "it has no format number, so pytest-dbcluster did not write it"),
        (b"not JSON\n", "it is not JSON"),
        (b'{"format": 1', "it is incomplete"),
        (changed(tests=[{"test": "a", "outcome": "green", "reason": "", "seconds": 1}]), "Invalid enum value 'green'"),
        (changed(began="soon"), "Expected `float`"),
    ],
    ids=["newer", "older", "another file", "a list", "text", "half", "outcome", "began"],
)
def test_another_file_is_one_sentence(tmp_path, text, sentence):
    """It names the file, and says what to do."""
    (tmp_path / FILE).write_bytes(text)

    with pytest.raises(ConfigError) as caught:
        read_run(tmp_path)

    assert str(caught.value).startswith(f"{tmp_path / FILE}: {sentence}")
    assert "or or" not in str(caught.value)


def test_a_missing_directory_is_one_sentence(tmp_path):
    """It names the directory."""
    with pytest.raises(ConfigError, match="nowhere: there is no such results directory"):
        read_run(tmp_path / "nowhere")


def test_a_file_that_cannot_be_opened_is_one_sentence(tmp_path):
    """A directory in its place stands for every error of the system, which root has few of."""
    (tmp_path / FILE).mkdir()

    with pytest.raises(ConfigError, match=r"cannot read .*run\.json: Is a directory; name a results directory"):
        read_run(tmp_path)


def test_people_can_read_the_file(tmp_path):
    """It has a line for each value, not one line for all."""
    assert run_text(run_document()).count(b"\n") > 40
