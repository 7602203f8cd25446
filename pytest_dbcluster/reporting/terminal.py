"""The terminal: how far a claim is, its verdict on one line, and the closing table."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from pytest_dbcluster.measuring.progress import RoundProgress
from pytest_dbcluster.reporting.records import ClaimRecord, CurveRecord
from pytest_dbcluster.reporting.tables import closing, layout, matrix
from pytest_dbcluster.rounds.round import Round

# In a log, seconds between two lines about the same claim; looks are always shown.
LOG_SECONDS = 2.0


class Reporter:
    """Writes through pytest's terminal reporter, past its capturing.

    On a terminal one line follows the claim in progress, in a log a block of rounds is a line of its own.
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
        """Whether a claim in progress has a line that changes."""
        return bool(self._terminal.isatty)

    def _uncaptured(self) -> AbstractContextManager[None]:
        capture = self._config.pluginmanager.getplugin("capturemanager")
        return capture.global_and_fixture_disabled() if capture else nullcontext()

    def line(self, text: str, colour: str = "") -> None:
        """One plain line."""
        if self._terminal is None:
            return
        if self._live:
            self.end_live()
        else:
            self._fresh_line()
        with self._uncaptured():
            self._terminal.write_line(text, **({colour: True} if colour else {}))
            self._terminal.flush()

    def _fresh_line(self) -> None:
        """Leave the line on which pytest has written a file's name or a test's letter."""
        with self._uncaptured():
            self._terminal.ensure_newline()
            if self._config.get_terminal_writer().width_of_current_line:
                self._terminal.line("")

    def end_live(self) -> None:
        """Clear the line that follows the rounds, so that others can write."""
        if self._live:
            with self._uncaptured():
                self._terminal.rewrite("", erase=True)
                self._terminal.rewrite("")
        self._live = False

    def progress(self, event: RoundProgress) -> None:
        """One finished round. Nothing with ``-q``."""
        if not self._shown or self._config.get_verbosity() < 0:
            return
        if event.round.void:
            self.line(f"  {event.load}  {_place(event)}  {event.round.variant}  void: {event.round.void}")
        shown = f"{event.round.variant} {_result(event.round)}"
        if self._follows:
            self._follow("  ".join(["", event.load, _place(event), shown, *_so_far(event)]))
            return
        self._rounds.append(shown)
        if not event.last:
            return
        rounds, self._rounds = ", ".join(self._rounds), []
        if self._due(event):
            self._written = self._clock()
            self.line("   ".join(["", event.load, _place(event), rounds, *_so_far(event)]))

    def _due(self, event: RoundProgress) -> bool:
        """Whether a log wants a line now: of warm-ups, first pairs and looks, and then every few seconds."""
        before_look = event.next_look == event.pair
        return event.warm_up or event.pair == 1 or before_look or self._clock() - self._written >= LOG_SECONDS

    def _follow(self, text: str) -> None:
        if not self._live:
            self._fresh_line()
        with self._uncaptured():
            self._terminal.rewrite(text[: self._config.get_terminal_writer().fullwidth - 1], erase=True)
            self._terminal.flush()
        self._live = True

    def forget(self) -> None:
        """Of a claim that is answered no rounds are to be shown any more."""
        self._rounds = []

    def claim(self, record: ClaimRecord, before: str = "  ") -> None:
        """One answered claim: a line, with ``-v`` its whole message, with ``-qq`` nothing."""
        verbosity = self._config.get_verbosity()
        self.forget()
        if verbosity > 0:
            self.line(f"{before}{record.message}")
        elif verbosity > -2:
            colour = closing.COLOURS[record.verdict.outcome] if record.asserted else ""
            self.line(f"{before}{closing.one_line(record)}", colour)


class Distant(Reporter):
    """Writes through the Reporter of another process: a line at a time, as in a log."""

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
        """One plain line."""
        self._send(text, colour)


def _result(one: Round) -> str:
    """What a round measured: its time, or where that is fixed its goodput, and where that is fixed too a latency."""
    if one.outcome.ledger is None:
        return f"{one.seconds:.3f} s"
    if one.outcome.rate is None:
        return f"{one.goodput:.4g}/s"
    return f"p95 {1e3 * one.outcome.ledger.total.latencies.percentile(0.95):.3g} ms"


def _place(event: RoundProgress) -> str:
    if event.warm_up:
        return "warm-up"
    return f"pair {event.pair}" if event.cap is None else f"pair {event.pair} of at most {event.cap}"


def _so_far(event: RoundProgress) -> list[str]:
    """Ratio since the last look, the next look, and the time used."""
    if event.warm_up:
        return []
    said = []
    if event.ratio is not None and event.low is not None and event.high is not None:
        said.append(closing.with_interval(event.ratio, event.low, event.high))
    if event.next_look is not None:
        said.append(f"next look {event.next_look}")
    if event.budget is not None:
        said.append(f"{event.measured:.0f} of {event.budget:.0f} s")
    return said


def summary(
    reporter: Any,
    records: Sequence[ClaimRecord],
    notes: Sequence[str],
    width: int = 100,
    curves: Sequence[CurveRecord] = (),
    releases: matrix.Matrix | None = None,
) -> None:
    """The closing tables: decided claims, inconclusive ones, what was measured beside, curves, releases; the notes."""
    if not records and not curves:
        return
    for block in closing.blocks(records, curves):
        reporter.write_sep("=", block.title)
        for line, colour in layout.text(block, width):
            reporter.write_line(line, **({colour: True} if colour else {}))
    matrix.show(reporter, releases, width)
    reporter.write_line("")
    total = (closing.total(records), *textwrap.wrap(closing.legend(records), width)) if records else ()
    for line in (*total, *notes):
        reporter.write_line(line)
