"""Sinks: what a session reports to. ``report.Report`` is one, and ``Relay`` in a worker of pytest-xdist.

A relay writes the files of its claims into a separate directory, and sends messages (``messages.Message``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pytest_dbcluster.measuring.drawing.progress import RoundProgress
from pytest_dbcluster.reporting import terminal, unwritten
from pytest_dbcluster.reporting.allure import allure_results
from pytest_dbcluster.reporting.documents import messages
from pytest_dbcluster.reporting.records import ClaimRecord, CurveRecord, Reading
from pytest_dbcluster.reporting.results_directory import Results
from pytest_dbcluster.reporting.resume import earlier
from pytest_dbcluster.reporting.resume.earlier import Key, curve_key_of
from pytest_dbcluster.reporting.tables import curves

COMMA = ", "  # between parts in a message of a worker
WORKER = "dbcluster_worker"  # name of the pytest plugin that sends a worker's messages


class Sink:
    """Gets the claims, curves and lines of a run. Each method does nothing; a sink overrides those that it needs."""

    drifted = False
    """Whether a claim differs from its history, after ``finish``."""

    def line(self, text: str, colour: str = "") -> None:
        """Show one line; ``colour`` is a keyword of pytest's ``write_line``, empty for none."""

    def progress(self, event: RoundProgress) -> None:
        """Show one finished round."""

    def end_live(self) -> None:
        """Clear the line that shows progress, so other code can print."""

    def claim(self, record: ClaimRecord, timeline: str = "") -> None:
        """Show and save one answered claim; ``timeline`` is its CSV of samples, empty for none."""

    def curve(self, record: CurveRecord) -> None:
        """Save one curve, when its test has ended."""

    def point_drawn(self, record: CurveRecord) -> None:
        """Save a curve that is still being drawn, so a run that continues this one has its points."""

    def keep_curve(self, record: CurveRecord, test: str) -> None:
        """Keep a curve of the run that this one continues. test: the node id of its test in this run."""

    def take_over(self, key: Key, reading: Reading) -> None:
        """Show an answer of the run that this one continues, as the test reads it that takes it over."""

    def drop(self, key: Key, changed: Sequence[str]) -> None:
        """Drop an answer of the run that this one continues, because what it depends on has changed.

        changed: the names of these parts (``resume.digests``).
        """

    def finish(self, overridden: Sequence[str]) -> None:
        """Write the summary at the end of the run.

        ``overridden`` are lines about server options that the run used instead of those of the test.
        """

    def page(self) -> str:
        """Make the page of the run, after ``finish``; return the line with its path; empty for none."""
        return ""

    def github(self) -> Sequence[str]:
        """Write what GitHub Actions reads, after ``page``; return its annotations and what failed, a line each."""
        return ()

    def summary(self, terminal_reporter: Any) -> None:
        """Print all verdicts."""

    def last_lines(self, terminal_reporter: Any, page: str) -> None:
        """Print the number of claims by state, and the path of the page; ``page`` is the line of ``page``."""


class Relay(Sink):
    """Reports in a worker of pytest-xdist.

    It writes files into the worker's own directory, and adds claims to Allure's results of its own tests. The rest goes
    to the Report of the process that the user started. Only that process makes page, summary and history. A curve that
    is still being drawn is not saved, because a worker's directory does not outlive a killed run.
    """

    def __init__(self, config: Any) -> None:
        self._config = config
        self._worker = config.pluginmanager.get_plugin(WORKER)
        self._reporter = terminal.Distant(config, self._send_line)
        self._results = Results(self._worker.directory, unwritten.of(config))

    def _send_line(self, text: str, colour: str) -> None:
        self._worker.send(messages.encode(messages.Message("line", text, colour)))

    def _send_kept(self, kind: str, line: int) -> None:
        self._worker.send(messages.encode(messages.Message(kind, directory=str(self._results.directory), line=line)))

    def line(self, text: str, colour: str = "") -> None:
        """Send one line."""
        self._reporter.line(text, colour)

    def progress(self, event: RoundProgress) -> None:
        """Send a line about finished rounds."""
        self._reporter.progress(event)

    def claim(self, record: ClaimRecord, timeline: str = "") -> None:
        """Save one answered claim, add it to Allure's results, and send its directory and line."""
        self._reporter.forget()
        kept = self._results.add(record, timeline)
        allure_results.claim(self._config, record, kept)
        if kept.line and kept.rounds.exists():
            self._send_kept("claim", kept.line)
        else:  # the disk of the workers' directory is full: the verdict was shown, and the closing table lacks it
            self._send_line(record.message, "")

    def take_over(self, key: Key, reading: Reading) -> None:
        """Add an answer of the run that this one continues to Allure's results, and send how its test reads it."""
        if found := earlier.of(self._config):
            allure_results.claim(self._config, found.take(key, reading), found.files[key])
        message = messages.Message("taken over", test=key.test, claim_id=key.claim_id, reading=reading)
        self._worker.send(messages.encode(message))

    def drop(self, key: Key, changed: Sequence[str]) -> None:
        """Send which answer of the run that this one continues no longer counts."""
        message = messages.Message("outdated", COMMA.join(changed), test=key.test, claim_id=key.claim_id)
        self._worker.send(messages.encode(message))

    def keep_curve(self, record: CurveRecord, test: str) -> None:
        """Add a curve of the run that this one continues to Allure's results, and send which test keeps it."""
        key = curve_key_of(record)
        if found := earlier.of(self._config):
            allure_results.curve(self._config, record, curves.as_csv(record), found.chart(key))
        self._worker.send(messages.encode(messages.Message("kept", curve=key, now=test)))

    def curve(self, record: CurveRecord) -> None:
        """Save one curve, add it to Allure's results, and send its directory and line."""
        table = curves.as_csv(record)
        kept = self._results.add_curve(record, table)
        allure_results.curve(self._config, record, table, kept.chart)
        if kept.line and kept.rounds.exists():
            self._send_kept("curve", kept.line)

    def finish(self, overridden: Sequence[str]) -> None:
        """Hand the lines about overridden options to the plugin, which sends them when the worker ends."""
        self._worker.overridden[:] = overridden
