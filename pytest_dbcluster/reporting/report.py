"""Report: passes each claim and curve of a run to the terminal, the results directory and Allure.

A run in one process has one Report. With pytest-xdist each worker has a Relay (``sinks``) instead. The Report of the
process that the user started moves its files into the results directory of the run.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_dbcluster import errors
from pytest_dbcluster.formatting import wrap
from pytest_dbcluster.measuring.drawing.progress import RoundProgress
from pytest_dbcluster.reporting import schema, terminal, unwritten
from pytest_dbcluster.reporting.allure import allure_results
from pytest_dbcluster.reporting.charts import drawing
from pytest_dbcluster.reporting.documents import messages, run_recorder
from pytest_dbcluster.reporting.documents.run_document import CUT_SHORT, RunDocument, TestDocument
from pytest_dbcluster.reporting.github import step_summary
from pytest_dbcluster.reporting.history import record_history
from pytest_dbcluster.reporting.history.entry import entry_of
from pytest_dbcluster.reporting.page import report_page
from pytest_dbcluster.reporting.records import ClaimRecord, CurveRecord, Reading
from pytest_dbcluster.reporting.results_directory import Results
from pytest_dbcluster.reporting.resume import earlier
from pytest_dbcluster.reporting.resume.earlier import Key, curve_key_of, curve_key_of_line, key_of_line
from pytest_dbcluster.reporting.sinks import COMMA, Relay, Sink
from pytest_dbcluster.reporting.tables import closing, curves, joint_error, less_durable, matrix
from pytest_dbcluster.system.tracing import recorder, time_spent
from pytest_dbcluster.system.tracing.recorder import span

TAKEN_OVER = "  taken over: "  # before the lines of an answer of the run that is continued


class Report(Sink):
    """Reports in the process that the user started.

    records, curves: those of the run so far, and of the run that it continues. measured: the claims that this run
    measured.
    """

    def __init__(self, config: Any, results: Path) -> None:
        self._earlier = earlier.of(config)
        self.records: list[ClaimRecord] = list(self._earlier.answers.values()) if self._earlier else []
        self.curves: list[CurveRecord] = list(self._earlier.curves) if self._earlier else []
        self.measured = 0
        self._config = config
        self._reporter = terminal.Reporter(config)
        recorder = run_recorder.of(config)
        self._results = Results(results, unwritten.of(config), recorder.document.run_id if recorder else "")
        if self._earlier:
            self._results.go_on(*self._earlier.numbers)
        self._closing: list[str] = []
        self.drifted = False  # whether a claim differs from its history
        self.anchor: float | None = None  # operations/s; of a run with a history
        self._received: set[tuple[str, str, int]] = set()  # kind, directory and line of the workers' records

    def line(self, text: str, colour: str = "") -> None:
        """Show one line; ``colour`` is a keyword of pytest's ``write_line``, empty for none."""
        self._reporter.line(text, colour)

    def progress(self, event: RoundProgress) -> None:
        """Show one finished round."""
        self._reporter.progress(event)

    def end_live(self) -> None:
        """Clear the line that shows progress, so other code can print."""
        self._reporter.end_live()

    def claim(self, record: ClaimRecord, timeline: str = "") -> None:
        """Show one answered claim, save it, and add it to Allure's results."""
        record = self._add(record)
        self._reporter.claim(record)
        allure_results.claim(self._config, record, self._results.add(record, timeline))

    def curve(self, record: CurveRecord) -> None:
        """Save one curve and add it to Allure's results, when its test has ended."""
        self._add_curve(record)
        table = curves.as_csv(record)
        kept = self._results.add_curve(record, table, _line_of(record))
        allure_results.curve(self._config, record, table, kept.chart)

    def point_drawn(self, record: CurveRecord) -> None:
        """Save a curve that is still being drawn, so a run that continues this one has its points."""
        self._results.save_points(record, curves.as_csv(record), _line_of(record))

    def keep_curve(self, record: CurveRecord, test: str) -> None:
        """Keep a curve of the run that this one continues, and add it to Allure's results."""
        key = curve_key_of(record)
        self._keep(key, test)
        if self._earlier:
            allure_results.curve(self._config, record, curves.as_csv(record), self._earlier.chart(key))

    def _keep(self, key: tuple[str, ...], test: str) -> None:
        """Keep a curve under the name of this test."""
        before = next((one for one in self.curves if curve_key_of(one) == key), None)
        if self._earlier is None or before is None:
            return
        self._earlier.kept.add(key)
        if recorder := run_recorder.of(self._config):
            recorder.rename(before.test)
        if test != before.test:
            self.curves[self.curves.index(before)] = dataclasses.replace(before, test=test)
            now = {"test": test}
            self._results.rewrite(schema.CURVES, lambda line: line | now if curve_key_of_line(line) == key else line)
        self._note_measured(dataclasses.replace(before, test=test))

    def _add(self, record: ClaimRecord) -> ClaimRecord:
        """Add a claim that was measured now; return it with the id of this run."""
        record = dataclasses.replace(record, run_id=self._results.run_id)
        self.measured += 1
        self.records.append(record)
        self._note_measured(record)
        return record

    def _add_curve(self, record: CurveRecord) -> None:
        """Add a curve; it replaces the same curve of the run that this one continues."""
        own = curve_key_of(record)
        self.curves = [one for one in self.curves if curve_key_of(one) != own]
        self.curves.append(record)
        self._note_measured(record)

    def take_over(self, key: Key, reading: Reading) -> None:
        """Show an answer of the run that this one continues, and add it to Allure's results."""
        record = self._take_over(key, reading)
        if record and self._earlier:
            allure_results.claim(self._config, record, self._earlier.files[key])

    def _take_over(self, key: Key, reading: Reading) -> ClaimRecord | None:
        """Show an answer that a test takes over, and return it; None if a test has taken it over already."""
        if self._earlier is None or key in self._earlier.taken:
            return None
        before = self._earlier.answers[key]
        record = self._earlier.take(key, reading)
        self.records = [record if other is before else other for other in self.records]
        if recorder := run_recorder.of(self._config):
            recorder.take_over(key.test)
        self._note_measured(record)
        self._reporter.claim(record, TAKEN_OVER)
        return record

    def drop(self, key: Key, changed: Sequence[str]) -> None:
        """Drop an answer of the run that this one continues, because what it depends on has changed."""
        if self._earlier is None or key not in self._earlier.answers:
            return
        before = self._earlier.answers[key]
        self._earlier.outdated[key] = list(changed)
        self.records = [other for other in self.records if other is not before]
        self._results.rewrite(schema.CLAIMS, lambda line: None if key_of_line(line) == key else line)
        self._reporter.line(f"measured again ({', '.join(changed)} changed): {before.text} ({before.load})")

    def _settle_earlier(self) -> list[str]:
        """Write answers as the tests read them that took them over; return lines about all answers."""
        if self._earlier is None:
            return []
        if self._earlier.has_changed_lines:
            self._results.rewrite(schema.CLAIMS, self._earlier.as_read)
        return self._earlier.lines(self.measured)

    def _note_measured(self, record: ClaimRecord | CurveRecord) -> None:
        if recorder := run_recorder.of(self._config):
            recorder.note_record(record.test, record.release)

    def sort(self, tests: Sequence[str]) -> None:
        """Sort the records by test in the order of ``tests``; those of one test stay in order of arrival."""
        numbers = {test: number for number, test in enumerate(tests)}
        self.records.sort(key=lambda record: numbers.get(record.test, len(numbers)))
        self.curves.sort(key=lambda record: numbers.get(record.test, len(numbers)))

    def receive(self, worker: str, message: bytes) -> None:
        """Show and save what a Relay has sent.

        Lines on the terminal begin with the worker's name. Files of claims and curves are moved into the results
        directory of the run, numbered in order of arrival. Raises ConfigError for a message or file that cannot be
        read.
        """
        sent = messages.decode(message)
        self._received.add((sent.kind, sent.directory, sent.line))
        if sent.kind == "line":
            self._reporter.line(f"[{worker}] {sent.text.strip()}", sent.colour)
        elif sent.kind == "claim":
            record = self._add(self._results.adopt(Path(sent.directory), sent.line))
            self._reporter.claim(record, f"[{worker}] ")
        elif sent.kind == "taken over" and sent.reading:
            self._take_over(Key(sent.test, sent.claim_id), sent.reading)
        elif sent.kind == "kept":
            self._keep(sent.curve, sent.now)
        elif sent.kind == "outdated":
            self.drop(Key(sent.test, sent.claim_id), sent.text.split(COMMA))
        else:
            self._add_curve(self._results.adopt_curve(Path(sent.directory), sent.line, _line_of))

    def collect(self, directory: Path) -> None:
        """Show and save the records that a worker has saved, but whose message has not arrived.

        If a run is interrupted, nobody reads the messages that are under way. ``directory``: the worker's directory.
        """
        for kind, name in (("claim", schema.CLAIMS), ("curve", schema.CURVES)):
            path = directory / name
            lines = path.read_bytes().count(b"\n") if path.exists() else 0
            for line in range(1, lines + 1):
                if (kind, str(directory), line) not in self._received:
                    message = messages.Message(kind, directory=str(directory), line=line)
                    self.receive(directory.name, messages.encode(message))

    def finish(self, overridden: Sequence[str]) -> None:
        """Write ``summary.md``, ``matrix.csv`` and Allure's files about the whole run."""
        overridden = [
            *errors.merge_names(dict.fromkeys(overridden)),
            *self._settle_earlier(),
            *less_durable.lines(self.records),
            *closing.to_calibrate(self.records),
        ]
        made = self._results.finish(self.records, overridden, self.curves, self._matrix(), self._tests())
        self._closing = [*overridden, *made]
        allure_results.finish(self._config, [*self.records, *self.curves], self._matrix())
        self._add_to_history()

    def _add_to_history(self) -> None:
        """Add the claims to the run's history, and keep its lines about them."""
        recorder, file = run_recorder.of(self._config), getattr(self._config.option, "db_history", None)
        if recorder is None or not file:
            return
        lost = unwritten.of(self._config)
        run = recorder.document
        times = _times(run, self.records)
        entries = []
        for record in [one for one in self.records if one.verdict.pairs and one.verdict.claim.of_kind.has_history]:
            by = run.run_of(record.run_id)
            own = (self.anchor, times.get(record.test)) if by is run else (None, None)
            entries.append(entry_of(record, by, *own))
        kept = record_history.add_run(Path(file), self._results.directory, entries, lost)
        self._closing += kept.lines
        self.drifted = kept.drifted

    def page(self) -> str:
        """Make the page of the run from its results directory; return the line with its path.

        Empty for a run without results, and without matplotlib, which another line reports.
        """
        ended = self.records or self.curves or run_recorder.of(self._config)
        with span("page"):
            return report_page.make(self._results.directory, self.line) if ended and drawing.available() else ""

    def github(self) -> Sequence[str]:
        """Write what GitHub Actions reads, after ``page``; return its annotations and what failed, a line each.

        Outside of GitHub Actions it needs ``--db-github``. No error of it ends the run.
        """
        asked = getattr(self._config.option, "db_github", False)
        to = step_summary.files(os.environ, asked=asked, root=self._config.rootpath)
        if to is None or not run_recorder.of(self._config):
            return ()
        try:
            return step_summary.write(self._results.directory, to, unwritten.of(self._config))
        except errors.ConfigError as error:
            return (f"no summary for GitHub: {error}",)

    def _matrix(self) -> matrix.Matrix | None:
        """The matrix of releases; None for a run on one release."""
        reports = self._config.pluginmanager.getplugin("terminalreporter")
        return matrix.matrix(self.records, matrix.ended_tests(reports.stats) if reports else ())

    def summary(self, terminal_reporter: Any) -> None:
        """Print all verdicts, if anything was measured."""
        screen = terminal.Screen.of(self._config)
        tests = self._tests()
        guide = [*closing.guide_lines(self.records, tests), *closing.to_explain(self.records, "--db-why")]
        notes = [*self._closing, *guide, *unwritten.of(self._config).lines()]
        if self._config.getoption("tbstyle", "no") != "no":  # then pytest has shown why a test is broken
            tests = [dataclasses.replace(test, reason="") if test.outcome == "broken" else test for test in tests]
        terminal.summary(terminal_reporter, self.records, notes, screen, self.curves, self._matrix(), tests)

    def last_lines(self, terminal_reporter: Any, page: str) -> None:
        """Print the number of claims by state, and the path of the page; ``page`` is the line of ``page``."""
        width = terminal.Screen.of(self._config).width
        total = closing.total(self.records, self._tests())
        recorded = recorder.current()
        spent = time_spent.line(time_spent.by_group(recorded), recorded.workers) if recorded else ""
        last = terminal.last_lines(total, page, width, joint_error.line(self.records))
        for line in [*(wrap(spent, width) if spent else []), *last]:
            terminal_reporter.write_line(line)

    def _tests(self) -> Sequence[TestDocument]:
        """The tests of the run that have ended."""
        recorder = run_recorder.of(self._config)
        return recorder.document.tests if recorder else ()


def _times(run: RunDocument, records: Sequence[ClaimRecord]) -> Mapping[str, float]:
    """The seconds of each test that ended in this run and took over no answer."""
    partly = {record.test for record in records if run.run_of(record.run_id) is not run}
    return {one.test: one.seconds for one in run.tests if one.outcome != CUT_SHORT and one.test not in partly}


def _line_of(record: CurveRecord) -> Callable[[Mapping[str, Any]], bool]:
    """Whether a line of ``curves.jsonl`` has this curve, of this run or of the run that it continues."""
    own = curve_key_of(record)
    return lambda line: curve_key_of_line(line) == own


def of(config: Any, results: Path) -> Sink:
    """A Relay in a worker of pytest-xdist; otherwise a Report that writes into the directory ``results``."""
    return Relay(config) if hasattr(config, "workerinput") else Report(config, results)
