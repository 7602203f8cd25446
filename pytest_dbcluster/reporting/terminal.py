"""The terminal: the progress of a claim, its verdict, and all verdicts at the end (``summary``, ``last_lines``).

This module prints; ``tables/entries.py`` makes the lines of a claim.
"""

from __future__ import annotations

import codecs
import dataclasses
import locale
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from pytest_dbcluster.claims import wording
from pytest_dbcluster.formatting import amount, elide, near, printable, wrap
from pytest_dbcluster.measuring.drawing.progress import RoundProgress
from pytest_dbcluster.reporting.documents.run_document import TestDocument
from pytest_dbcluster.reporting.records import ClaimRecord, CurveRecord
from pytest_dbcluster.reporting.tables import closing, entries, layout, matrix, states
from pytest_dbcluster.reporting.tables.entries import TerminalEntry
from pytest_dbcluster.rounds.round import Round

# In a log, the minimum seconds between two lines about one claim; looks are always shown.
LOG_SECONDS = 2.0
NAME_OF_WORKER = 4  # characters that "[gw10] " takes more than the indent of a line
LEAST = 12  # characters that are left of a long name in a line of progress
REPORT = "report: "  # how the line about the page begins


class Reporter:
    """Writes through pytest's terminal reporter, with the capturing of output suspended.

    On a terminal, one line is rewritten after each round of the claim in progress. In a log, each block of rounds is
    one line, at most one every LOG_SECONDS.
    """

    def __init__(self, config: Any, clock: Callable[[], float] = time.monotonic) -> None:
        self._config = config
        self._clock = clock
        self._live = False
        self._rounds: list[tuple[str, str]] = []  # variant and figure of each round of a block
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

    @property
    def _width(self) -> int:
        """The characters of a line."""
        return int(self._config.get_terminal_writer().fullwidth)

    def _without_capture(self) -> AbstractContextManager[None]:
        capture = self._config.pluginmanager.getplugin("capturemanager")
        return capture.global_and_fixture_disabled() if capture else nullcontext()

    def line(self, text: str, colour: str = "") -> None:
        """Write one line, wrapped; ``colour`` is a keyword of pytest's ``write_line``, empty for none.

        A text of several lines keeps its layout, such as commands that must stay whole.
        """
        if self._terminal is None:
            return
        if self._live:
            self.end_live()
        else:
            self._fresh_line()
        shown = printable(text, lines=True)
        with self._without_capture():
            for part in [shown] if "\n" in shown else wrap(shown, self._width):
                self._terminal.write_line(part, **({colour: True} if colour else {}))
            self._terminal.flush()

    def _fresh_line(self) -> None:
        """Begin a new line if pytest has written a file name or the letter of a test on this one."""
        with self._without_capture():
            self._terminal.ensure_newline()
            if self._config.get_terminal_writer().width_of_current_line:
                self._terminal.line("")

    def end_live(self) -> None:
        """Clear the line that shows progress, so other code can print."""
        if self._live:
            with self._without_capture():
                self._terminal.rewrite("", erase=True)
                self._terminal.rewrite("")
        self._live = False

    def progress(self, event: RoundProgress) -> None:
        """Show one finished round; nothing with ``-q``."""
        if not self._shown or self._config.get_verbosity() < 0:
            return
        if event.round.void:
            self.line(f"  {event.load}  {_place(event)}  {event.round.variant}  void: {event.round.void}")
        shown = event.round.variant, _result(event.round)
        if self._follows:
            self._follow(_progress(event, [shown], "  ", self._width - 1))
            return
        self._rounds.append(shown)
        if not event.last:
            return
        rounds, self._rounds = self._rounds, []
        if self._due(event):
            self._written = self._clock()
            self.line(_progress(event, rounds, "   ", self._width))

    def _due(self, event: RoundProgress) -> bool:
        """Whether a log gets a line now: for warm-up, first pair and looks, and LOG_SECONDS after the last one."""
        before_look = event.next_look == event.pair
        return event.warm_up or event.pair == 1 or before_look or self._clock() - self._written >= LOG_SECONDS

    def _follow(self, text: str) -> None:
        if not self._live:
            self._fresh_line()
        with self._without_capture():
            self._terminal.rewrite(printable(text), erase=True)
            self._terminal.flush()
        self._live = True

    def forget(self) -> None:
        """Drop the rounds that were not shown yet, because their claim is answered."""
        self._rounds = []

    def claim(self, record: ClaimRecord, before: str = "  ") -> None:
        """Show one answered claim.

        Its answer and interval; with ``-v`` its message, with ``-vv`` also the details, with ``-qq`` nothing.
        """
        verbosity = self._config.get_verbosity()
        self.forget()
        if verbosity > 0:
            message = record.message if verbosity > 1 else wording.brief(record.message)
            self.line(before + "\n".join(wrap(message, self._width - len(before))))
        elif verbosity > -2:
            screen = Screen.of(self._config)
            entry = entries.of_claim(record, ascii_only=screen.ascii_only, remarks=False)
            shown = entries.lines([entry], screen.width - len(before), ascii_only=screen.ascii_only)
            for number, (line, colour) in enumerate(shown):
                self.line(f"{' ' * len(before) if number else before}{line}", colour)


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

    @property
    def _width(self) -> int:
        """The characters of a line without the name of this worker, which takes the place of the indent."""
        return super()._width - NAME_OF_WORKER

    def line(self, text: str, colour: str = "") -> None:
        """Send one line."""
        self._send(text, colour)


def _result(measured: Round) -> str:
    """The figure that its workload leaves open: seconds; goodput of a timed round; p95 of an open loop; the stall.

    Of a capacity it is the rate, with a sign if it lies beyond all rates of the round.
    """
    if measured.capacity:
        return f"{('', '> ', '< ')[measured.capacity.censored]}{amount(measured.capacity.value)}/s"
    if measured.outage:
        reads = math.isnan(measured.outage.stall)
        return f"read stall {measured.outage.read_stall:.2f} s" if reads else f"stall {measured.outage.stall:.2f} s"
    if measured.outcome.ledger is None:
        return f"{measured.seconds:.3f} s"
    if measured.outcome.rate is None:
        return f"{amount(measured.goodput)}/s"
    return f"p95 {1e3 * measured.outcome.ledger.total.latencies.percentile(0.95):.3g} ms"


def _place(event: RoundProgress, rounds: int = 1, *, brief: bool = False) -> str:
    """``warm-up``, ``block 1, rounds 7-8 of 8`` (an opening block), ``pair 6 of at most 160``, ``repetition 3 of 6``.

    Numbers begin with 1. rounds: the rounds that the line shows. brief: without the number that comes last.
    """
    if event.warm_up:
        return "warm-up"
    if event.repetitions:
        numbers = _numbers("repetition", event.repetition, rounds)
        return numbers if brief else f"{numbers} of {event.repetitions}"
    if event.opening:
        block = f"block {event.round.block + 1}"
        return block if brief else f"{block}, {_numbers('round', event.round.position + 1, rounds)} of {event.opening}"
    return f"pair {event.pair}" if brief or event.cap is None else f"pair {event.pair} of at most {event.cap}"


def _numbers(noun: str, last: int, rounds: int) -> str:
    """``round 8``, or ``rounds 7-8`` for several."""
    return f"{noun}s {last - rounds + 1}-{last}" if 1 < rounds <= last else f"{noun} {last}"


def _progress(event: RoundProgress, rounds: Sequence[tuple[str, str]], gap: str, width: int) -> str:
    """One line: load, pair, rounds, claim, ratio at the last look, pair of the next look, seconds used of the budget.

    rounds: variant and figure of each. If the line is wider than ``width``, parts are left out. First go the
    cap, the next look and the seconds. Then go the middle of long names, the rounds, the claim, and the middle of the
    workload's name.
    """
    pair, brief = _place(event, len(rounds)), _place(event, brief=True)
    whole, short = (", ".join(f"{elide(name, most)} {figure}" for name, figure in rounds) for most in (width, LEAST))
    look = "" if event.next_look is None or event.warm_up else f"next check: pair {event.next_look}"
    used = "" if event.budget is None or event.warm_up else f"{event.measured:.0f} of {event.budget:.0f} s"
    ratio = "" if event.warm_up else event.estimate
    claim = "" if event.warm_up else ": ".join(filter(None, [event.claim, ratio]))
    forms = (
        (pair, whole, claim, look, used),
        (brief, whole, claim, look, used),
        (brief, whole, claim, used),
        (brief, whole, claim),
        (brief, short, claim, used),
        (brief, short, claim),
        (brief, claim if ratio else short, used),
        (brief, claim if ratio else short),
        (brief, ratio or short),
    )
    lines = [gap + gap.join(filter(None, [event.load, *form])) for form in forms]
    room = max(LEAST, width - len(lines[-1]) + len(event.load))
    last = gap + gap.join(filter(None, [elide(event.load, room), *forms[-1]]))
    return next((line for line in (*lines, last) if len(line) <= width), elide(lines[-1], width))


@dataclasses.dataclass(frozen=True)
class Screen:
    """Where lines are shown."""

    width: int = 100
    """The width in characters."""

    ascii_only: bool = False
    """Whether it can show only ASCII."""

    located: Callable[[str], str] = str
    """Makes a node id one that the user can type in the directory in which pytest was started."""

    @classmethod
    def of(cls, config: Any) -> Screen:
        """The terminal or log of this run of pytest."""
        writer = config.get_terminal_writer()
        file = getattr(writer, "_file", sys.stdout)  # pytest's own, which knows its encoding
        names = (getattr(file, "encoding", None) or "ascii", locale.getencoding())
        ascii_only = any(codecs.lookup(name).name != "utf-8" for name in names)
        return cls(writer.fullwidth, ascii_only, config.cwd_relative_nodeid)


def summary(
    reporter: Any,
    records: Sequence[ClaimRecord],
    notes: Sequence[str],
    screen: Screen,
    curves: Sequence[CurveRecord] = (),
    releases: matrix.Matrix | None = None,
    tests: Sequence[TestDocument] = (),
) -> None:
    """Print each claim and each test that no claim shows, the tables of ``closing``, the matrix, and ``notes``.

    Prints nothing if there are none. No line is wider than the screen, except commands and paths.
    """
    if not records and not curves and not notes and not states.tests_without_claim(records, tests):
        return
    for title, shown in _blocks(records, tests, screen):
        reporter.write_sep("=", title)
        _write(reporter, entries.lines(shown, screen.width, ascii_only=screen.ascii_only))
    if closing.has_published(records):
        _write(reporter, [(line, "") for line in wrap(closing.PUBLISHED, screen.width)])
    for block in closing.tables(records, curves):
        reporter.write_sep("=", elide(block.title, screen.width - 4))
        _write(reporter, [(elide(line, screen.width), colour) for line, colour in layout.text(block, screen.width)])
    matrix.show(reporter, releases, screen.width)
    reporter.write_line("")
    for note in notes:
        _write(reporter, [(line, "") for line in wrap(printable(note), screen.width)])


def _blocks(
    records: Sequence[ClaimRecord], tests: Sequence[TestDocument], screen: Screen
) -> Iterator[tuple[str, list[TerminalEntry]]]:
    """The titles that have entries, with these."""
    left = states.tests_without_claim(records, tests)
    for title in dict.fromkeys(closing.TITLES.values()):
        shown = [
            entries.of_claim(
                record, release=closing.several(records), ascii_only=screen.ascii_only, located=screen.located
            )
            for record in closing.of_title(title, records)
        ]
        shown += [entries.of_test(test) for test in left if closing.TITLES[test.outcome] == title]
        if shown:
            yield title, shown


def _write(reporter: Any, lines: Sequence[layout.Line]) -> None:
    for line, colour in lines:
        reporter.write_line(printable(line), **({colour: True} if colour else {}))


def last_lines(total: str, page: str, width: int, joint: str = "") -> list[str]:
    """The number of claims and tests by state, and to the right (or below) the path of the page.

    joint: the last line, on the chance that any claim is wrong; empty for none. page: the line of ``Report.page``. If
    it says why there is no page, it comes first.
    """
    below = wrap(joint, width) if joint else []
    if not page.startswith(REPORT):
        return [*filter(None, [*wrap(printable(page), width), total]), *below]
    page = f"{REPORT}{near(page.removeprefix(REPORT), Path.cwd())}"
    space = width - len(total) - len(page)
    first = [f"{total}{' ' * space}{page}"] if total and space >= len(entries.GAP) else [*filter(None, [total]), page]
    return [*first, *below]
