"""``RunRecorder``: keeps ``run.json`` up to date while a run is running."""

from __future__ import annotations

import dataclasses
import secrets
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_dbcluster import redaction
from pytest_dbcluster.reporting import unwritten
from pytest_dbcluster.reporting.documents.machine import commit, machine
from pytest_dbcluster.reporting.documents.run_document import (
    CUT_SHORT,
    FILE,
    FORMAT,
    Outcome,
    RunDocument,
    RunIdentity,
    TestDocument,
    run_text,
)
from pytest_dbcluster.reporting.unwritten import Unwritten
from pytest_dbcluster.version import __version__

NAME = "dbcluster_run"
FRESH = f".{FILE}"  # the next version of the file, until it is whole
# A test has the outcome of its parts (setup, body, teardown) that comes first here. Until it ends, it is cut short.
WORST: tuple[Outcome, ...] = ("refuted", "broken", "inconclusive", "skipped", "holds", "passed", CUT_SHORT)
PAUSE = 1.0  # seconds between two writes for tests that claim nothing: a project may have thousands of them


def clear(directory: Path) -> None:
    """Remove the file of an earlier run. Raises OSError."""
    for name in (FILE, FRESH):
        (directory / name).unlink(missing_ok=True)


def new_run(
    project: Path, data: Path, command: str, selected: int, continues: tuple[RunIdentity, ...] = ()
) -> RunDocument:
    """The document of a run that begins now.

    project: the root directory of the tests. data: the directory that holds the servers' data. command, selected,
    continues: as in RunDocument.
    """
    sha, dirty = commit(project)
    return RunDocument(
        format=FORMAT,
        run_id=secrets.token_hex(8),
        commit=sha,
        dirty=dirty,
        command=redaction.redact(command),
        began=time.time(),
        plugin_version=__version__,
        ended=None,
        cut_short="",
        selected=selected,
        releases={},
        machine=machine(data),
        tests=(),
        continues=continues,
    )


class RunRecorder:
    """Writes the file of one run: at once, and again as a whole whenever something has changed.

    If the file cannot be written, that is noted in ``lost``, and no error is raised. document: the run so far; its
    tests are those of the run that it continues.
    """

    def __init__(self, directory: Path, document: RunDocument, lost: Unwritten) -> None:
        self.document = document
        self._directory = directory
        self._lost = lost
        self._releases = dict(document.releases)
        self._before = {test.test: test for test in document.tests}
        self._running: dict[str, TestDocument] = {}
        self._ended: dict[str, TestDocument] = {}
        self._written = 0.0
        self._write()

    def add_release(self, name: str, version: str = "") -> None:
        """Note a release of the run, and its exact version if that is known."""
        self._releases[name] = version or self._releases.get(name, "")

    def note_record(self, test: str, releases: str) -> None:
        """Write the file, because this test has a record; its releases are in the text of ``ClaimRecord.release``.

        It is written before the record, so it has the test of each record even if the run is killed.
        """
        for release in releases.split(", "):
            name, _, version = release.partition(" ")
            self.add_release(name, version)
        self.begin_test(test)
        self._refresh(write=True)

    def begin_test(self, test: str) -> None:
        """Note that this test has begun. It is cut short until it ends."""
        self._before.pop(test, None)
        if test not in self._ended:
            self._running.setdefault(test, TestDocument(test, CUT_SHORT, "", 0.0))

    def take_over(self, earlier: str) -> None:
        """Note that a test took over an answer of a run that this one continues.

        earlier: the test's node id in that run.
        """
        self.rename(earlier)
        self.document = dataclasses.replace(self.document, taken_over=self.document.taken_over + 1)

    def rename(self, earlier: str) -> None:
        """Leave out a test of a run that this one continues: a test of this run replaces it."""
        self._before.pop(earlier, None)

    def part(self, test: str, outcome: Outcome, reason: str, seconds: float) -> None:
        """Note how one part of a test ended: its setup, its body, or its teardown. ``end_test`` writes it."""
        self.begin_test(test)
        before = self._running.pop(test, None) or self._ended.pop(test)
        if WORST.index(outcome) < WORST.index(before.outcome):
            before = dataclasses.replace(before, outcome=outcome, reason=redaction.redact(reason))
        self._running[test] = dataclasses.replace(before, seconds=before.seconds + seconds)

    def place(self, test: str, file: str, line: int) -> None:
        """Note where a test is; a part of it must have been noted. file, line: as in TestDocument."""
        self._running[test] = dataclasses.replace(self._running[test], file=file, line=line)

    def end_test(self, test: str) -> None:
        """Write the file, because this test has ended."""
        done = self._ended[test] = self._running.pop(test)
        waits = done.outcome == "passed" and time.monotonic() - self._written < PAUSE
        self._refresh(write=not waits)

    def note_time(self, seconds: Mapping[str, float]) -> None:
        """Write the file with the seconds of the run by group of phases."""
        self.document = dataclasses.replace(self.document, time_spent=seconds)
        self._write()

    def finish(self, cut_short: str) -> None:
        """Write the file at the end of the run. cut_short: as in RunDocument. A later call replaces an earlier one."""
        self.document = dataclasses.replace(self.document, ended=time.time(), cut_short=redaction.redact(cut_short))
        self._refresh(write=True)

    def _refresh(self, *, write: bool) -> None:
        why = self.document.cut_short
        running = [
            dataclasses.replace(test, outcome=CUT_SHORT, reason=why) if test.outcome in (CUT_SHORT, "passed") else test
            for test in self._running.values()
        ]
        self.document = dataclasses.replace(
            self.document,
            releases=dict(self._releases),
            tests=(*self._before.values(), *self._ended.values(), *running),
        )
        if write:
            self._write()

    def _write(self) -> None:
        fresh = self._directory / FRESH
        with self._lost.note(self._directory / FILE):
            unwritten.write(fresh, run_text(self.document))
            fresh.replace(self._directory / FILE)
        self._written = time.monotonic()


def of(config: Any) -> RunRecorder | None:
    """The recorder of this process of a run; None in a worker of pytest-xdist, and without measurements."""
    recorder: RunRecorder | None = config.pluginmanager.get_plugin(NAME)
    return recorder
