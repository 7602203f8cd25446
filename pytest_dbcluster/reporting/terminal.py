"""The terminal: the progress of a claim, its verdict on one line, and the closing table (``summary``).

This module prints; ``tables/closing.py`` makes the closing table.
"""

from __future__ import annotations

import textwrap
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from pytest_dbcluster.formatting import printable
from pytest_dbcluster.measuring.progress import RoundProgress
from pytest_dbcluster.reporting.records import ClaimRecord, CurveRecord
from pytest_dbcluster.reporting.tables import closing, layout, matrix
from pytest_dbcluster.rounds.round import Round

# In a log, the minimum seconds between two lines about one claim; looks are always shown.
LOG_SECONDS = 2.0


class Reporter:
    """Writes through pytest's terminal reporter, with the capturing of output suspended.

    On a terminal, one line is rewritten after each round of the claim in progress. In a log, each block of rounds is a
    line of its own, at most one every LOG_SECONDS.
    """

    def __init__(self, config: Any, clock: Callable[[], float] = time.monotonic) -> None:
        self._config = config
        self._clock = clock
        self._live = False
        self._rounds: list[str] = []
        self._written = 0.0

    @property
    def _terminal(self) -> Any:
        return self._config.pluginmanager.getplugin("terminalreporter")

    @property
    def _shown(self) -> bool:
        return self._terminal is not None

    @property
    def _follows(self) -> bool:
        """Whether the output is a terminal, where a line can be rewritten."""
        return bool(self._terminal.isatty)

    def _uncaptured(self) -> AbstractContextManager[None]:
        capture = self._config.pluginmanager.getplugin("capturemanager")
        return capture.global_and_fixture_disabled() if capture else nullcontext()

    def line(self, text: str, colour: str = "") -> None:
        """Write one line; ``colour`` is a keyword of pytest's ``write_line``, empty for none."""
        if self._terminal is None:
            return
        if self._live:
            self.end_live()
        else:
            self._fresh_line()
        with self._uncaptured():
            self._terminal.write_line(printable(text, lines=True), **({colour: True} if colour else {}))
            self._terminal.flush()

    def _fresh_line(self) -> None:
        """Begin a new line if pytest has written a file name or the letter of a test on this one."""
        with self._uncaptured():
            self._terminal.ensure_newline()
            if self._config.get_terminal_writer().width_of_current_line:
                self._terminal.line("")

    def end_live(self) -> None:
        """Clear the line that shows progress, so that others can write."""
        if self._live:
            with self._uncaptured():
                self._terminal.rewrite("", erase=True)
                self._terminal.rewrite("")
        self._live = False

    def progress(self, event: RoundProgress) -> None:
        """Show one finished round; nothing with ``-q``."""
        if not self._shown or self._config.get_verbosity() < 0:
            return
        if event.round.void:
            self.line(f"  {event.load}  {_pair(event)}  {event.round.variant}  void: {event.round.void}")
        shown = f"{event.round.variant} {_result(event.round)}"
        if self._follows:
            self._follow("  ".join(["", event.load, _pair(event), shown, *_so_far(event)]))
            return
        self._rounds.append(shown)
        if not event.last:
            return
        rounds, self._rounds = ", ".join(self._rounds), []
        if self._due(event):
            self._written = self._clock()
            self.line("   ".join(["", event.load, _pair(event), rounds, *_so_far(event)]))

    def _due(self, event: RoundProgress) -> bool:
        """Whether a log gets a line now: for warm-up, first pair and looks; else LOG_SECONDS after the last one."""
        before_look = event.next_look == event.pair
        return event.warm_up or event.pair == 1 or before_look or self._clock() - self._written >= LOG_SECONDS

    def _follow(self, text: str) -> None:
        if not self._live:
            self._fresh_line()
        with self._uncaptured():
            self._terminal.rewrite(printable(text)[: self._config.get_terminal_writer().fullwidth - 1], erase=True)
            self._terminal.flush()
        self._live = True

    def forget(self) -> None:
        """Drop the rounds that were not shown yet: their claim is answered."""
        self._rounds = []

    def claim(self, record: ClaimRecord, before: str = "  ") -> None:
        """Show one answered claim: one line, with ``-v`` the whole message, with ``-qq`` nothing."""
        verbosity = self._config.get_verbosity()
        self.forget()
        if verbosity > 0:
            self.line(f"{before}{record.message}")
        elif verbosity > -2:
            colour = closing.COLOURS[record.verdict.outcome] if record.asserted else ""
            self.line(f"{before}{closing.one_line(record)}", colour)


class Distant(Reporter):
    """A Reporter that sends each line to another process, which prints it; the output is that of a log."""

    def __init__(self, config: Any, send: Callable[[str, str], None], clock: Callable[[], float] = time.monotonic):
        super().__init__(config, clock)
        self._send = send

    @property
    def _shown(self) -> bool:
        return True

    @property
    def _follows(self) -> bool:
        return False

    def line(self, text: str, colour: str = "") -> None:
        """Send one line."""
        self._send(text, colour)


def _result(measured: Round) -> str:
    """The figure of a round that its load does not fix: seconds; goodput of a timed round; p95 of an open loop."""
    if measured.outcome.ledger is None:
        return f"{measured.seconds:.3f} s"
    if measured.outcome.rate is None:
        return f"{measured.goodput:.4g}/s"
    return f"p95 {1e3 * measured.outcome.ledger.total.latencies.percentile(0.95):.3g} ms"


def _pair(event: RoundProgress) -> str:
    """``warm-up``, or the number of the pair, 1-based: ``pair 6 of at most 160``."""
    if event.warm_up:
        return "warm-up"
    return f"pair {event.pair}" if event.cap is None else f"pair {event.pair} of at most {event.cap}"


def _so_far(event: RoundProgress) -> list[str]:
    """The ratio at the last look, the pair of the next look, and the measured seconds used of the budget."""
    if event.warm_up:
        return []
    words = [event.estimate] if event.estimate else []
    if event.next_look is not None:
        words.append(f"next look {event.next_look}")
    if event.budget is not None:
        words.append(f"{event.measured:.0f} of {event.budget:.0f} s")
    return words


def summary(
    reporter: Any,
    records: Sequence[ClaimRecord],
    notes: Sequence[str],
    width: int = 100,
    curves: Sequence[CurveRecord] = (),
    releases: matrix.Matrix | None = None,
) -> None:
    """Print the closing table, then the matrix of releases, the total, and ``notes``; nothing without records.

    The blocks of the closing table are those of ``tables/closing.py``, ``width`` characters wide.
    """
    if not records and not curves:
        return
    for block in closing.blocks(records, curves):
        reporter.write_sep("=", block.title)
        for line, colour in layout.text(block, width):
            reporter.write_line(printable(line), **({colour: True} if colour else {}))
    matrix.show(reporter, releases, width)
    reporter.write_line("")
    total = (closing.total(records), *textwrap.wrap(closing.legend(records), width)) if records else ()
    for line in (*total, *notes):
        reporter.write_line(printable(line))
