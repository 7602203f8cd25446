"""RunFile: passes the reports of pytest to the recorder of ``run.json``: how tests end, and what stops a run early.

``shown_message`` is the text with which pytest shows the error that ended a test.
"""

from __future__ import annotations

import collections
import dataclasses
import shlex
from collections.abc import Collection
from pathlib import Path
from typing import Any

from pytest_dbcluster import errors
from pytest_dbcluster.claims import wording
from pytest_dbcluster.formatting import printable, quantity, some
from pytest_dbcluster.hosts import runs
from pytest_dbcluster.reporting import unwritten
from pytest_dbcluster.reporting.documents import run_recorder
from pytest_dbcluster.reporting.documents.run_document import Outcome
from pytest_dbcluster.reporting.resume.earlier import Earlier
from pytest_dbcluster.reporting.tables import matrix
from pytest_dbcluster.system.tracing import recorder, time_spent

OUTCOME = "dbcluster_outcome"  # the property of a report with an outcome that pytest does not know
DETAILS = "  noise, seed and all other figures: -vv, or the page"  # the last line of a message without its details
NAME = "dbcluster_run_file"
BUDGET = "--db-run-budget"  # part of each message of a claim that the run's budget has ended
NOTHING = "nothing was "  # part of the message of a claim for which the budget left no time
PHASES = ("setup", "call", "teardown")
OF_PYTEST: dict[str, Outcome] = {"passed": "passed", "failed": "broken", "skipped": "skipped"}


def outcome(error: BaseException | None, *, claims: bool) -> Outcome | None:
    """The outcome of a part of a test that pytest does not know; None for all others.

    error: the error that ended it; None if it passed. claims: whether the test has made a claim.
    """
    if error is None:
        return "holds" if claims else None
    if isinstance(error, errors.ClaimFailed):
        return "refuted"
    return "inconclusive" if isinstance(error, errors.Inconclusive) else None


def shown_message(config: Any, error: BaseException) -> str:
    """The message of the error of a test; details of a verdict only with ``-vv``. It may quote a server's log."""
    whole = printable(str(error), lines=True)
    if config.get_verbosity() > 1 or (brief := wording.brief(whole)) == whole:
        return whole
    return f"{brief}\n{DETAILS}"


class RunFile:
    """The plugin that follows a run, in the one process that writes its results. Its methods are hooks of pytest.

    left_out: the tests for which the budget of the run left no time. lost: tests without an outcome in a run that
    nothing stopped early; such a run fails.
    """

    def __init__(self, recorder: run_recorder.RunRecorder, selected: Collection[str]) -> None:
        self._recorder = recorder
        self._waiting = collections.Counter(selected)  # two tests can have one node id
        self.left_out: list[str] = []
        self.lost: list[str] = []
        self._cut_short = ""
        self._out_of_time = False

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Note that a test begins, also in a worker of pytest-xdist."""
        self._recorder.begin_test(nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Note a part of a test, and write the file when its teardown has ended.

        A failed report whose ``when`` is not a phase comes from a worker that crashed. Messages of workers also have
        another ``when``, and are not a part of a test. A part that another plugin repeats has another outcome.
        """
        if (report.when not in PHASES and report.outcome != "failed") or report.outcome not in OF_PYTEST:
            return
        given = dict(report.user_properties)
        if release := given.get(matrix.RELEASE):
            self._recorder.add_release(release)
        ended = self._outcome(report, given.get(OUTCOME))
        reason = "" if ended in ("holds", "passed") else matrix.reason(report.longrepr)
        self._recorder.part(report.nodeid, ended, reason, report.duration)
        file, line, _ = report.location
        self._recorder.place(report.nodeid, file, 0 if line is None else line + 1)
        if ended == "inconclusive" and BUDGET in str(report.longrepr):
            self._out_of_time = True
            if NOTHING in str(report.longrepr):
                self.left_out.append(report.nodeid)
        if report.when not in PHASES[:2]:
            self._recorder.end_test(report.nodeid)
            self._waiting[report.nodeid] -= 1

    @staticmethod
    def _outcome(report: Any, own: Outcome | None) -> Outcome:
        """The outcome of a part of a test. own: the outcome of its claims, which ``xfail`` does not change."""
        if own in ("refuted", "inconclusive"):
            return own
        return own if own and report.outcome == "passed" else OF_PYTEST[report.outcome]

    def pytest_keyboard_interrupt(self, excinfo: Any) -> None:
        """Note the interruption of the run: Ctrl-C, a signal, ``pytest.exit``, or a worker that asked to stop."""
        self._cut_short = str(excinfo.value) or "Ctrl-C"

    def open_tests(self) -> list[str]:
        """The line with the interruption of the run, and the tests that had not ended; none for a complete run."""
        left = [*self._waiting.elements()]
        if not self._cut_short or not left:
            return []
        return [f"{self._cut_short}; {quantity(len(left), 'test')} not ended: {some(left)}"]

    def pytest_internalerror(self, excinfo: Any) -> None:
        """Note an error of pytest or of a plugin."""
        self._cut_short = f"internal error: {excinfo.typename}: {excinfo.value}"

    def pytest_sessionfinish(self, session: Any) -> None:
        """Write the file at the end of the run. Called again if more reports arrive from workers."""
        document = self._recorder.document
        stopped = self._cut_short or str(session.shouldfail or session.shouldstop or "")
        self.lost = [] if stopped else sorted(self._waiting.elements())
        if self.lost and not session.exitstatus:
            session.exitstatus = 1  # pytest.ExitCode.TESTS_FAILED
        why = stopped if document.ended_tests < document.selected else ""
        why = why or "".join(_loss_lines(self))
        self._recorder.finish(why or (f"the run's budget ({BUDGET}) is spent" if self._out_of_time else ""))


def begin(config: Any, directory: Path, selected: Collection[str], earlier: Earlier | None = None) -> None:
    """Write ``run.json`` into the results directory, and follow the run.

    selected: the node ids of its tests. earlier: the run that this one continues; its tests stay until they run again.
    """
    command = shlex.join(["pytest", *map(str, config.invocation_params.args)])
    before = earlier.run.tests if earlier and earlier.run else ()
    more = {test.test for test in before} - set(selected)
    continues = earlier.runs if earlier else ()
    document = run_recorder.new_run(config.rootpath, runs.directory(), command, len(selected) + len(more), continues)
    document = dataclasses.replace(document, tests=before)
    recorder = run_recorder.RunRecorder(directory, document, unwritten.of(config))
    config.pluginmanager.register(recorder, run_recorder.NAME)
    config.pluginmanager.register(RunFile(recorder, selected), NAME)


def note_time(config: Any) -> None:
    """Write into ``run.json`` where the time went, after the servers have stopped; nothing in a worker."""
    recorded = recorder.current()
    if recorded and (following := run_recorder.of(config)):
        following.note_time(time_spent.by_group(recorded))


def not_run_lines(config: Any) -> list[str]:
    """Lines on tests that did not run: the budget was too small, the run was interrupted, or a worker lost them."""
    following: RunFile | None = config.pluginmanager.get_plugin(NAME)
    if following is None:
        return []
    tests = list(dict.fromkeys(following.left_out))
    left_out = [f"{BUDGET} left no time for {quantity(len(tests), 'test')}: {', '.join(tests)}"] if tests else []
    return [*following.open_tests(), *left_out, *_loss_lines(following)]


def _loss_lines(following: RunFile) -> list[str]:
    if not following.lost:
        return []
    return [f"no worker reported an outcome for {quantity(len(following.lost), 'test')}: {', '.join(following.lost)}"]


def finish(session: Any) -> None:
    """Write ``run.json`` again, because workers may have sent more since pytest's end of the session."""
    if following := session.config.pluginmanager.get_plugin(NAME):
        following.pytest_sessionfinish(session)
