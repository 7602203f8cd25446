"""The terminal: a line for each finished round, and the closing table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pytest_dbcluster.record import ClaimRecord, Progress


class Reporter:
    """Writes through pytest's terminal reporter, past its capturing."""

    def __init__(self, config: Any) -> None:
        self._config = config

    def line(self, text: str) -> None:
        """One plain line."""
        reporter = self._config.pluginmanager.getplugin("terminalreporter")
        capture = self._config.pluginmanager.getplugin("capturemanager")
        if reporter is None:
            return
        if capture is None:
            reporter.write_line(text)
            return
        with capture.global_and_fixture_disabled():
            reporter.write_line(text)

    def progress(self, event: Progress) -> None:
        """One finished round."""
        item = event.round
        where = "warm-up" if event.warm_up else f"pair {event.pair}"
        so_far = "" if event.ratio is None else f"   so far {event.ratio:.2f} ({event.low:.2f} .. {event.high:.2f})"
        self.line(f"  {event.load}  {where}  {item.variant}  {item.seconds:.3f} s{so_far}")

    def claim(self, record: ClaimRecord) -> None:
        """One answered claim."""
        self.line(record.message)


def summary(reporter: Any, records: Sequence[ClaimRecord], notes: Sequence[str]) -> None:
    """The closing table."""
    if not records:
        return
    reporter.write_sep("=", "performance claims")
    for line in notes:
        reporter.write_line(line)
    for record in records:
        found = record.verdict
        published = "-" if record.published is None else f"{record.published:.2f}"
        reporter.write_line(
            f"{record.load:24} {record.text:40} {found.ratio:6.2f} ({found.low:.2f} .. {found.high:.2f})  "
            f"published {published:>6}  {found.outcome.value:12}  {found.pairs:3} pairs  {record.measured_seconds:.0f} s"
        )
