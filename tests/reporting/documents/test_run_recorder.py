"""The recorder writes the whole file each time, and what a test's parts make of it."""

from __future__ import annotations

import pytest

from pytest_dbcluster import redaction
from pytest_dbcluster.reporting.documents import run_recorder
from pytest_dbcluster.reporting.documents.run_document import FILE, read_run
from pytest_dbcluster.reporting.documents.run_recorder import RunRecorder
from pytest_dbcluster.reporting.unwritten import Unwritten
from tests.support.run_documents import run_document


@pytest.fixture
def recorder(tmp_path):
    """The recorder of a run that has just begun."""
    return RunRecorder(tmp_path, run_document(ended=None, releases={}, tests=()), Unwritten())


def test_the_file_is_there_when_the_run_begins(tmp_path, recorder):
    """So a run that is killed at once has it."""
    assert read_run(tmp_path) == recorder.document


def test_of_the_parts_of_a_test_the_worst_counts(tmp_path, recorder):
    """Its seconds are those of all parts; a refuted claim stays refuted when the teardown breaks."""
    for outcome, reason in (("passed", ""), ("refuted", "REFUTED"), ("broken", "teardown")):
        recorder.part("a", outcome, reason, 1.5)
    recorder.part("b", "holds", "", 1.0)
    recorder.part("b", "broken", "teardown", 1.0)
    recorder.end_test("b")
    recorder.end_test("a")

    ended = [(test.test, test.outcome, test.reason, test.seconds) for test in read_run(tmp_path).tests]
    assert ended == [("b", "broken", "teardown", 2.0), ("a", "refuted", "REFUTED", 4.5)]


def test_a_release_gets_its_version_when_it_is_known(tmp_path, recorder):
    """And keeps it."""
    recorder.add_release("mysql:8.4")
    recorder.add_release("mariadb:10.11")
    recorder.note_record("a", "mariadb:10.11 10.11.19, mariadb:11.8 11.8.3")
    recorder.add_release("mariadb:10.11")
    recorder.finish("")

    assert read_run(tmp_path).releases == {"mysql:8.4": "", "mariadb:10.11": "10.11.19", "mariadb:11.8": "11.8.3"}


def test_a_test_is_cut_short_until_it_ends(tmp_path, recorder):
    """Its claims are in the results of a killed run, so it is there too, after those that have ended."""
    recorder.begin_test("a")
    recorder.part("a", "passed", "", 1.0)
    recorder.note_record("a", "mysql:8.4 8.4.3")
    killed = read_run(tmp_path).tests
    recorder.begin_test("b")
    recorder.part("b", "holds", "", 2.0)
    recorder.end_test("b")
    recorder.finish("Ctrl-C")

    assert [(test.test, test.outcome, test.reason) for test in killed] == [("a", "cut short", "")]
    assert [(test.test, test.outcome, test.reason) for test in read_run(tmp_path).tests] == [
        ("b", "holds", ""),
        ("a", "cut short", "Ctrl-C"),
    ]


def test_a_claim_that_was_refuted_stays_refuted_when_its_teardown_is_cut_short(tmp_path, recorder):
    """The answer is known."""
    recorder.part("a", "refuted", "FAILS", 1.0)
    recorder.finish("Ctrl-C")

    assert [(test.outcome, test.reason) for test in read_run(tmp_path).tests] == [("refuted", "FAILS")]


def test_a_record_that_arrives_after_the_end_of_its_test_changes_nothing(tmp_path, recorder):
    """As from a worker."""
    recorder.part("a", "holds", "", 1.0)
    recorder.end_test("a")
    recorder.note_record("a", "mysql:8.4 8.4.3")

    assert [test.outcome for test in read_run(tmp_path).tests] == ["holds"]


def test_no_password_is_written(tmp_path, recorder):
    """Neither in a reason nor in why the run ended."""
    secret = redaction.new_password()
    recorder.part("a", "broken", f"refused with {secret}", 1.0)
    recorder.end_test("a")
    recorder.finish(f"ended by {secret}")

    assert secret not in (tmp_path / FILE).read_text()
    assert read_run(tmp_path).cut_short == "ended by ***"


def test_thousands_of_tests_that_claim_nothing_are_not_a_write_each(tmp_path, recorder, monkeypatch):
    """They are written once a second, and at the end."""
    writes = []
    monkeypatch.setattr(run_recorder, "PAUSE", 3600.0)
    monkeypatch.setattr(run_recorder.unwritten, "write", lambda path, text: path.write_bytes(text) and writes.append(1))
    for number in range(50):
        recorder.part(f"plain{number}", "passed", "", 0.0)
        recorder.end_test(f"plain{number}")
    assert writes == []
    recorder.part("claims", "holds", "", 1.0)
    recorder.end_test("claims")

    assert len(writes) == 1
    assert len(read_run(tmp_path).tests) == 51


def test_an_earlier_run_is_removed_and_nothing_else(tmp_path, recorder):
    """A missing file is no error."""
    (tmp_path / "notes.txt").touch()
    run_recorder.clear(tmp_path)
    run_recorder.clear(tmp_path)

    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
