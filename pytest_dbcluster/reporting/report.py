"""Report: what a run has to say. Its records in one list, its files, its lines on the terminal.

A run in one process has one Report. With pytest-xdist each worker has a Relay in its place, which keeps files of its
own and sends everything to the Report of the process that the user started.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from pytest_dbcluster.measuring.progress import RoundProgress
from pytest_dbcluster.reporting import allure, schema, terminal
from pytest_dbcluster.reporting.records import ClaimRecord, CurveRecord
from pytest_dbcluster.reporting.results_directory import Results
from pytest_dbcluster.reporting.tables import curves, matrix

WORKER = "dbcluster_worker"  # the plugin of a worker that sends


class Reporting(Protocol):
    """Whom a session tells what it does and finds."""

    def line(self, text: str, colour: str = "") -> None:
        """One plain line."""

    def progress(self, event: RoundProgress) -> None:
        """One finished round."""

    def end_live(self) -> None:
        """The screen belongs to others now."""

    def claim(self, record: ClaimRecord) -> None:
        """One answered claim."""

    def curve(self, record: CurveRecord) -> None:
        """One curve, when its test has ended."""

    def finish(self, overridden: Sequence[str]) -> None:
        """The end of the run, with lines about options that were not what the test said."""

    def summary(self, terminal_reporter: Any) -> None:
        """The closing table."""


class Report:
    """The report in the process that the user started."""

    def __init__(self, config: Any, results: Path) -> None:
        self.records: list[ClaimRecord] = []
        self.curves: list[CurveRecord] = []
        self._config = config
        self._reporter = terminal.Reporter(config)
        self._results = Results(results)
        self._closing: list[str] = []

    def line(self, text: str, colour: str = "") -> None:
        """One plain line."""
        self._reporter.line(text, colour)

    def progress(self, event: RoundProgress) -> None:
        """One finished round."""
        self._reporter.progress(event)

    def end_live(self) -> None:
        """The screen belongs to others now."""
        self._reporter.end_live()

    def claim(self, record: ClaimRecord) -> None:
        """One answered claim."""
        self.records.append(record)
        self._reporter.claim(record)
        allure.claim(self._config, record, self._results.add(record))

    def curve(self, record: CurveRecord) -> None:
        """One curve, when its test has ended."""
        self.curves.append(record)
        table = curves.as_csv(record)
        allure.curve(self._config, record, table, self._results.add_curve(record, table).chart)

    def sort(self, tests: Sequence[str]) -> None:
        """The records in the order of these tests, those of a test as they came."""
        place = {test: number for number, test in enumerate(tests)}
        self.records.sort(key=lambda record: place.get(record.test, len(place)))
        self.curves.sort(key=lambda record: place.get(record.test, len(place)))

    def received(self, worker: str, message: bytes) -> None:
        """What a Relay has sent, said with the worker's name. Its files become ours, in the order of arrival."""
        said = schema.message_of(message)
        if said.kind == "line":
            self._reporter.line(f"[{worker}] {said.text.strip()}", said.colour)
        elif said.kind == "claim":
            record = self._results.adopt(Path(said.directory), said.line)
            self.records.append(record)
            self._reporter.claim(record, f"[{worker}] ")
        else:
            self.curves.append(self._results.adopt_curve(Path(said.directory), said.line))

    def finish(self, overridden: Sequence[str]) -> None:
        """Write what a reader wants of the whole run."""
        overridden = list(dict.fromkeys(overridden))
        self._closing = [*overridden, *self._results.finish(self.records, overridden, self.curves, self._matrix())]
        allure.finish(self._config, [*self.records, *self.curves], self._matrix())

    def _matrix(self) -> matrix.Matrix | None:
        reports = self._config.pluginmanager.getplugin("terminalreporter")
        return matrix.matrix(self.records, matrix.ended(reports.stats) if reports else ())

    def summary(self, terminal_reporter: Any) -> None:
        """The closing table, when anything was measured."""
        width = self._config.get_terminal_writer().fullwidth
        terminal.summary(terminal_reporter, self.records, self._closing, width, self.curves, self._matrix())


class Relay:
    """The report of a worker: files in a directory of its own, an Allure step in its own test, the rest is sent."""

    def __init__(self, config: Any) -> None:
        self._config = config
        self._worker = config.pluginmanager.get_plugin(WORKER)
        self._reporter = terminal.Distant(config, self._send_line)
        self._results = Results(self._worker.directory)

    def _send_line(self, text: str, colour: str) -> None:
        self._worker.send(schema.message(schema.Message("line", text, colour)))

    def _send_kept(self, kind: str, line: int) -> None:
        self._worker.send(schema.message(schema.Message(kind, directory=str(self._results.directory), line=line)))

    def line(self, text: str, colour: str = "") -> None:
        """One plain line."""
        self._reporter.line(text, colour)

    def progress(self, event: RoundProgress) -> None:
        """One finished round."""
        self._reporter.progress(event)

    def end_live(self) -> None:
        """Nothing follows a claim on a line of its own."""

    def claim(self, record: ClaimRecord) -> None:
        """One answered claim."""
        self._reporter.forget()
        kept = self._results.add(record)
        allure.claim(self._config, record, kept)
        self._send_kept("claim", kept.line)

    def curve(self, record: CurveRecord) -> None:
        """One curve, when its test has ended."""
        table = curves.as_csv(record)
        kept = self._results.add_curve(record, table)
        allure.curve(self._config, record, table, kept.chart)
        self._send_kept("curve", kept.line)

    def finish(self, overridden: Sequence[str]) -> None:
        """The Report hears at the end of the worker which options were overridden."""
        self._worker.overridden[:] = overridden

    def summary(self, terminal_reporter: Any) -> None:
        """Nobody sees a worker's screen."""


def of(config: Any, results: Path) -> Reporting:
    """Whom a session of this process tells."""
    return Relay(config) if hasattr(config, "workerinput") else Report(config, results)
