"""The process that makes a page of many claims."""

import os
import signal
import sys
import threading

import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.reporting.page import making, report_page
from pytest_dbcluster.reporting.page.report_page import APART
from pytest_dbcluster.system import processes
from tests.support.records import record
from tests.support.results import results

NOTES_ITSELF = "#!/bin/sh\necho $$ > {at}/pid\n{body}\n"


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """Results with so many claims that a separate process makes their page."""
    return results(tmp_path_factory.mktemp("many"), [record(load=f"load {number}") for number in range(APART)])


@pytest.fixture
def another(tmp_path, monkeypatch):
    """Returns a function that puts a shell script in the place of the process, and one that reads its process id."""

    def put(body):
        program = tmp_path / "program"
        program.write_text(NOTES_ITSELF.format(at=tmp_path, body=body))
        program.chmod(0o755)
        monkeypatch.setattr(sys, "executable", str(program))
        return lambda: int((tmp_path / "pid").read_text() or 0)

    return put


def test_a_separate_process_makes_a_page_of_many_claims(many, monkeypatch):
    """Also if the run has threads, with which it cannot draw in several processes."""
    monkeypatch.setattr(report_page, "html", lambda *given: 1 / 0)  # of this process

    assert report_page.make(many) == f"report: {many}/index.html"
    assert (many / "index.html").read_text().count('<section class="claim ') == APART


def test_its_progress_is_shown(many, another):
    """What it prints before its result."""
    another("echo 'making the page: 3 of 16 claims'; echo 'report: there'")
    said = []

    assert report_page.make(many, said.append) == "report: there"
    assert said == ["making the page: 3 of 16 claims"]


def test_a_process_that_fails_is_a_sentence(many, another):
    """With its exit status; what it said is shown."""
    another("echo 'MemoryError' >&2; exit 7")
    said = []
    line = report_page.make(many, said.append)

    assert line.startswith("no page: the process that makes it ended with 7; ")
    assert f"`dbcluster report {many}`" in line
    assert said == ["MemoryError"]


def test_a_process_that_hangs_is_ended(many, another, monkeypatch, tmp_path):
    """After the limit of silence."""
    pid = another("exec sleep 60")

    def lines_of(process):
        wait.until(lambda: [] if list(tmp_path.glob("pid")) and pid() else ["no process"], "its begin", seconds=60)
        return making.lines_of(process)

    monkeypatch.setattr(report_page, "lines_of", lines_of)
    monkeypatch.setattr(making, "SILENT", 0.2)

    assert "has said nothing for 0 s" in report_page.make(many)
    assert processes.cpu_seconds(pid()) is None


def test_an_interrupt_ends_it(many, another, monkeypatch):
    """At once, and not after the limit of silence; the sentence says how to make the page later."""
    monkeypatch.setattr(making, "SILENT", 10.0)
    pid = another("echo 'making the page'; exec sleep 60")
    shown = threading.Event()

    def interrupt():
        assert shown.wait(10)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()

    assert "its making was interrupted" in report_page.make(many, lambda line: shown.set())
    assert processes.cpu_seconds(pid()) is None
