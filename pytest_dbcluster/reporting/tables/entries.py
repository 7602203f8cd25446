"""Entries: one claim, or one test without a claim, as the terminal shows it.

``✓ holds  flush_2 is 1.84x as fast as galera3   mysqlslap write c50`` and below it the interval, the published ratio
and the bar of the interval. An inconclusive claim has the command that would decide it, on a separate line: only
this line may be wider than the terminal.
"""

from __future__ import annotations

import dataclasses
import math
import re
import shlex
import textwrap
from collections.abc import Callable, Sequence

from pytest_dbcluster import formatting
from pytest_dbcluster.claims import critical_values, wording
from pytest_dbcluster.claims.claim import EQUAL, Claim, Outcome
from pytest_dbcluster.formatting import elide, printable
from pytest_dbcluster.reporting import rounds_csv
from pytest_dbcluster.reporting.documents.run_document import TestDocument
from pytest_dbcluster.reporting.records import ClaimRecord
from pytest_dbcluster.reporting.tables import closing, interval_bar, states
from pytest_dbcluster.reporting.tables.layout import INDENT, Line
from pytest_dbcluster.rounds import metrics

GAP = "   "
LEAST = 8  # characters of a name that is elided
REST = "all statements, plans, waits and status: on the page, and in `servers` of claims.jsonl"
OWN = ("--db-budget", "--db-max-pairs", "--db-run-budget", "--db-seed")  # options that the repeated command leaves out


@dataclasses.dataclass(frozen=True)
class TerminalEntry:
    """What the terminal shows of a claim or test."""

    state: str
    """A word of ``states.SYMBOLS``."""

    headline: str
    """The first line."""

    names: tuple[str, ...] = ()
    """The parts of the headline that may be elided without losing a figure."""

    load: str = ""
    """The workload, to the right of the headline."""

    details: tuple[str, ...] = ()
    """The short texts of the second line."""

    bar: str = ""
    """The bar of the interval; empty for none."""

    below: tuple[str, ...] = ()
    """The sentences below the second line."""

    command: str = ""
    """The command to type next; empty for none."""


def of_claim(
    record: ClaimRecord,
    *,
    release: bool = False,
    ascii_only: bool = False,
    located: Callable[[str], str] = str,
    remarks: bool = True,
) -> TerminalEntry:
    """The entry of a claim.

    release: show its release. located: makes a node id one that the user can type. remarks: show the sentences about
    its rounds, and what would decide it.
    """
    verdict = record.verdict
    state = states.state(record)
    low, high, level = closing.deciding_interval(record)
    bounds, has_ratio = verdict.claim.ratios, verdict.claim.of_kind.is_ratio
    letters = interval_bar.ASCII if ascii_only else interval_bar.LINES
    command = rerun(record, located) if remarks else ""
    return TerminalEntry(
        state=state,
        headline=_headline(record),
        names=tuple(record.rounds),
        load=record.load,
        details=(*_details(record, low, high, level), *([record.release] if release else [])),
        bar=interval_bar.bar(verdict.ratio, low, high, bounds, letters=letters) if has_ratio else "",
        below=(*places(record), *(_remarks(record) if remarks else []), *_why(record, command, remarks=remarks)),
        command=command,
    )


def _remarks(record: ClaimRecord) -> list[str]:
    """The sentences about the rounds of a claim, and about the largest differences of its servers."""
    servers = record.servers
    rest = [REST] if servers and not servers.reason else []
    return [*closing.remarks(record), *(servers.lines if servers else []), *rest]


def of_test(test: TestDocument) -> TerminalEntry:
    """The entry of a test without a claim, such as a broken one: its name, and the reason if there is one."""
    return TerminalEntry(test.outcome, test.test, below=tuple(filter(None, [test.reason])))


def _headline(record: ClaimRecord) -> str:
    """The answer with its figure, ``flush_2 is 1.84x as fast as galera3``, or the claim as the test writes it."""
    verdict = record.verdict
    if states.state(record) == "inconclusive" or math.isnan(verdict.ratio):
        return record.text
    ratio, holds = wording.ratio(verdict), verdict.outcome is Outcome.HOLDS
    names, unit = tuple(record.rounds), metrics.unit(record.metric)
    return (
        verdict.claim.of_kind.headline(ratio, names, record.metric, unit, holds=holds, count=verdict.pairs)
        or record.text
    )


def _details(record: ClaimRecord, low: float, high: float, level: str) -> list[str]:
    """Interval, bound and published ratio, each a short text."""
    verdict = record.verdict
    shown = wording.interval(verdict, (low, high))
    between = shown if shown == formatting.NO_INTERVAL else verdict.claim.of_kind.of_level(level, shown)
    ratio = wording.ratio(verdict)
    details = []
    if figure := verdict.claim.of_kind.figure(ratio):
        details += [figure, between]
    elif verdict.claim.of_kind.composed and states.state(record) != "inconclusive":
        second, first = (formatting.ratio(kept, EQUAL) for kept in rounds_csv.losses(record))
        details += [f"{second} v {first}", f"ratio {ratio}", between]
    elif states.state(record) == "inconclusive" and not math.isnan(verdict.ratio):
        details += [ratio, between]
    else:
        details.append(between)
    if verdict.claim.margin and states.state(record) in ("holds", "refuted"):
        details.append(f"claimed {_claim_range(verdict.claim)}")
    if record.published is not None:
        details.append(f"published {formatting.ratio(record.published)}")
    return details


def places(record: ClaimRecord) -> list[str]:
    """The places of a race after the winner, such as ``flush_1 0.71x (0.65 .. 0.77), left after 17 rounds, ...``."""
    return [f"{one.name} {one.estimate}, {one.end}" for one in record.standings[1:]]


def _claim_range(claim: Claim) -> str:
    """The range of ratios that the claim asserts: ``> 1.50x``, ``-10 % .. +11 %``."""
    if len(claim.ratios) > 1:
        return claim.of_kind.range_text(claim)
    [bound] = map(claim.of_kind.bound_text, claim.ratios)
    return f"< {bound}" if math.isinf(claim.bounds[0]) else f"> {bound}"


def _why(record: ClaimRecord, command: str, *, remarks: bool) -> list[str]:
    """Why a claim is inconclusive, and what would decide it."""
    if states.state(record) != "inconclusive":
        return []
    verdict = record.verdict
    if not remarks:
        return [verdict.reason]
    needs = closing.needs(record)
    if not command:
        return [f"{verdict.reason}; needs {needs}"]
    more = formatting.duration(_seconds(record) - record.measured_seconds)
    ways = [f"{more} more, {verdict.needed_pairs} pairs in all", wording.needed_margin(verdict)]
    return [verdict.reason, f"needs about {' or '.join(filter(None, ways))}:"]


def _seconds(record: ClaimRecord) -> float:
    """The measured seconds of all pairs that would decide an inconclusive claim."""
    verdict = record.verdict
    return (verdict.needed_pairs or 0) * record.measured_seconds / verdict.pairs


def rerun(record: ClaimRecord, located: Callable[[str], str] = str) -> str:
    """The command that would decide an inconclusive claim; empty if more pairs of a run would not decide it."""
    verdict = record.verdict
    needed = verdict.needed_pairs
    if states.state(record) != "inconclusive" or not needed or needed > critical_values.LOOKS[-1] or not verdict.pairs:
        return ""
    budget = wording.budget(_seconds(record))
    _, _, *options = shlex.split(record.repeat)
    return shlex.join(["pytest", located(record.test), *_others(options), "--db-budget", str(budget)])


def _others(options: Sequence[str]) -> list[str]:
    """The options without those of OWN, whose values may be separate words."""
    kept, value_follows = [], False
    for option in options:
        name, equals, _ = option.partition("=")
        if option.startswith("--"):
            value_follows = name in OWN and not equals
            dropped = name in OWN
        else:
            dropped, value_follows = value_follows, False
        kept += [] if dropped else [option]
    return kept


def lines(entries: Sequence[TerminalEntry], width: int, *, ascii_only: bool = False) -> list[Line]:
    """The lines of the entries with their colours, at most ``width`` characters wide; commands may be wider.

    The workloads of all entries are in one column, and so are their bars.
    """
    indent = max((len(entry.state) for entry in entries), default=0) + 4
    room = max(width - indent, 3 * LEAST)
    right = max((len(entry.bar) for entry in entries), default=0)
    right = max(right, max((len(entry.load) for entry in entries if len(entry.load) <= room // 3), default=0))
    least = room - right - len(GAP)
    texts = [text for entry in entries for text in (entry.headline, _wrap(entry.details, least, room)[0])]
    column = max((len(text) for text in texts if len(text) <= least), default=least)
    symbols = states.ASCII_SYMBOLS if ascii_only else states.SYMBOLS
    shown: list[Line] = []
    for entry in entries:
        first, *rest = _texts(entry, room, column)
        start = f"{symbols[entry.state]} {entry.state}".ljust(indent)
        shown.append((f"{start}{first}", states.COLOURS.get(entry.state, "")))
        shown += [(f"{' ' * indent}{text}".rstrip(), "") for text in rest]
        shown += [(f"{INDENT}{entry.command}", "")] if entry.command else []
    return shown


def _texts(entry: TerminalEntry, room: int, column: int) -> list[str]:
    """The lines of an entry without their indent."""
    headline, details = _fit(entry, room), list(map(printable, entry.details))
    load = printable(entry.load)
    beside = f"{headline.ljust(column)}{GAP}{load}"
    first = beside if load and len(beside) <= room else headline
    below_it = [load] if load and first is headline else []
    wrapped = _wrap(details, column if entry.bar else room, room)
    if entry.bar:
        with_bar = f"{wrapped[0].ljust(column)}{GAP}{entry.bar}"
        wrapped[:1] = [with_bar] if len(with_bar) <= room else [wrapped[0], f"{' ' * column}{GAP}{entry.bar}"]
    below = [line for text in entry.below for line in textwrap.wrap(printable(text), room)]
    return [first, *(elide(line, room) for line in [*below_it, *wrapped] if line), *below]


def _wrap(details: Sequence[str], least: int, room: int) -> list[str]:
    """The details in lines; the first is ``least`` characters wide at most if it has several, the others ``room``."""
    texts = [""]
    for detail in details:
        longer = f"{texts[-1]}{GAP}{detail}" if texts[-1] else detail
        if texts[-1] and len(longer) > (least if len(texts) == 1 else room):
            texts.append(detail)
        else:
            texts[-1] = longer
    return texts


def _fit(entry: TerminalEntry, room: int) -> str:
    """The headline, with its names elided as far as needed, and then the headline itself."""
    headline = printable(entry.headline)
    if len(headline) <= room:
        return headline
    longest_first = sorted(filter(None, map(printable, entry.names)), key=len, reverse=True)
    any_name = re.compile("|".join(map(re.escape, longest_first)) or "$^")
    names = sorted(any_name.findall(headline), key=len)
    left = room - len(headline) + sum(map(len, names))
    short = {}
    for number, name in enumerate(names):  # the shortest first: the others get the room that it does not need
        kept = min(len(name), max(LEAST, left // (len(names) - number)))
        short[name] = elide(name, kept)
        left -= kept
    return elide(any_name.sub(lambda found: short[found[0]], headline), room)
