"""The closing table: the result of every claim, in ``summary.md``; the terminal shows its rows as ``entries``.

``blocks`` makes the table from the records of a run, which ``results_directory.Results.finish`` writes as Markdown.
``tables`` has the blocks that the terminal prints as they are. ``one_line`` is one result, for Allure.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from pytest_dbcluster import formatting, reasons
from pytest_dbcluster.claims import wording
from pytest_dbcluster.claims.claim import Outcome
from pytest_dbcluster.claims.repetitions.kind import RepetitionKind
from pytest_dbcluster.measuring import remarks as notes
from pytest_dbcluster.reporting.documents.run_document import TestDocument
from pytest_dbcluster.reporting.records import ClaimRecord, CurveRecord
from pytest_dbcluster.reporting.tables import curves, effects, states
from pytest_dbcluster.reporting.tables.layout import Row, TableBlock
from pytest_dbcluster.rounds import metrics
from pytest_dbcluster.rounds.capacity import summary
from pytest_dbcluster.rounds.round import DRAINED, Round

PUBLISHED = "published: the same ratio in the publication that the test names"  # what ``published 7.41x`` means
EVENTS = ", without a ratio"  # after the title of claims that compare no ratios
CALIBRATIONS = 2  # commands of `dbcluster calibrate` in one line: each takes up to an hour
UNREAD = "not asserted"  # of a claim that its test did not read
# The titles of claims and tests, by their state.
DECIDED, OPEN = "performance claims", "inconclusive: neither pass nor failure"
BESIDE, BROKEN = "measured without a claim", "broken: says nothing about speed"
TITLES = {"holds": DECIDED, "refuted": DECIDED, "inconclusive": OPEN, states.COMPARED: BESIDE, "broken": BROKEN}


def blocks(
    records: Sequence[ClaimRecord], drawn: Sequence[CurveRecord] = (), tests: Sequence[TestDocument] = ()
) -> list[TableBlock]:
    """The blocks of the closing table that have rows, in the order in which they are shown.

    First come the claims that hold or are refuted, then inconclusive claims. Comparisons without a claim and tests
    without a claim follow. The last blocks are the seconds of published command lines, and one block for each curve in
    ``drawn``.
    """
    releases = several(records)
    titles = dict.fromkeys(TITLES.values())
    claims = [
        block(f"{title}{EVENTS if events else ''}", rows, releases)
        for title in titles
        for events, block in ((False, _block), (True, _block_of_events))
        if (rows := [one for one in of_title(title, records) if one.verdict.claim.of_kind.is_ratio is not events])
    ]
    left = [Row((test.test, test.outcome, test.reason)) for test in states.tests_without_claim(records, tests)]
    without = [TableBlock("tests without a verdict", ("test", "outcome", "reason"), tuple(left))] if left else []
    return [*claims, *without, *tables(records, drawn)]


def tables(records: Sequence[ClaimRecord], drawn: Sequence[CurveRecord]) -> list[TableBlock]:
    """The other blocks: seconds of published command lines, effects of options, and curves."""
    published = paper_block(records)
    return [*([published] if published else []), *effects.blocks(records), *map(curves.block, drawn)]


def of_title(title: str, records: Sequence[ClaimRecord]) -> list[ClaimRecord]:
    """The records under this one of TITLES."""
    return [record for record in records if TITLES[states.state(record)] == title]


def several(records: Sequence[ClaimRecord]) -> bool:
    """Whether the run has several releases, so each claim must name its own."""
    return len({record.release for record in records}) > 1


def _block(title: str, records: Sequence[ClaimRecord], releases: bool) -> TableBlock:
    """One row for each record; with a column for the release if the run has several."""
    level = f"ratio ({shared_level(records)})"
    columns = ("claim", "load", *(["release"] if releases else []), level, "published", "verdict", "pairs", "seconds")
    return TableBlock(title, columns, tuple(_row(record, releases) for record in records))


def shared_level(records: Sequence[ClaimRecord]) -> str:
    """The level that all intervals have at least; options that share alpha have a higher one."""
    return wording.level(max((record.verdict for record in records), key=lambda verdict: verdict.alpha))


def _block_of_events(title: str, records: Sequence[ClaimRecord], releases: bool) -> TableBlock:
    """One row for each claim about an event. Their intervals may have different levels, so each row has its own."""
    columns = ("claim", "load", *(["release"] if releases else []), "measured", "level", "verdict", "repetitions")
    return TableBlock(title, columns, tuple(_event_row(record, releases) for record in records))


def _event_row(record: ClaimRecord, releases: bool) -> Row:
    verdict = record.verdict
    cells = (
        record.text,
        record.load,
        *([record.release] if releases else []),
        wording.estimate(verdict),
        wording.level(verdict),
        word(record),
        str(verdict.pairs),
    )
    return Row(cells, states.COLOURS.get(states.state(record), ""), "; ".join(_remarks(record)))


def _row(record: ClaimRecord, releases: bool) -> Row:
    verdict = record.verdict
    cells = (
        record.text,
        record.load,
        *([record.release] if releases else []),
        wording.estimate(verdict),
        formatting.NOTHING if record.published is None else formatting.ratio(record.published),
        word(record),
        str(verdict.pairs),
        f"{record.measured_seconds:.0f}",
    )
    return Row(cells, states.COLOURS.get(states.state(record), ""), "; ".join(_remarks(record)))


def word(record: ClaimRecord) -> str:
    """The verdict in one or two words; for a comparison without a claim, whether the variants differ."""
    if record.asserted:
        return states.state(record)
    kind = record.verdict.claim.of_kind
    return kind.word(record.verdict.outcome) if kind.claims_nothing else UNREAD


def _remarks(record: ClaimRecord) -> list[str]:
    """The text below a row: why a claim is inconclusive, and ``remarks``."""
    verdict = record.verdict
    below = []
    if states.state(record) == "inconclusive":
        below.append(f"{verdict.reason}; needs {needs(record)}")
    if interval := guard_interval(record):
        below.append(f"a guard holds by its 90 % interval: {interval}")
    return [*below, *remarks(record)]


def needs(record: ClaimRecord) -> str:
    """What would decide an inconclusive claim."""
    variants, instances = max(2, len(record.rounds)), record.instances
    return wording.needs(record.verdict, record.measured_seconds, record.load, variants, instances)


def remarks(record: ClaimRecord) -> list[str]:
    """The lines about the rounds of a claim: ``of_rounds``, and the void blocks."""
    return [*of_rounds(record), *notes.void_line(record.void_rounds)]


def of_rounds(record: ClaimRecord) -> list[str]:
    """The rate of an open loop, capacities, the round trips of an operation, a bottleneck, small data, and a drain."""
    rate = [record.arrival_rate.line] if record.arrival_rate else []
    rate += summary.medians(
        {name: [done.capacity for done in many if done.capacity] for name, many in record.rounds.items()}
    )
    trips = [str(record.round_trips)] if record.round_trips else []
    return [*rate, *trips, *filter(None, [record.limited, record.data_fits]), *drain_lines(record)]


def drain_lines(record: ClaimRecord) -> list[str]:
    """One line: the ratio with the drain included, and the seconds of the drain by variant.

    Empty if the metric includes the drain already, and if both ratios have the same text. There is no other threshold:
    the drain is not noise, so even a difference within the interval counts. The text of a ratio shows its side of the
    claim's bounds. So a drain that would change the answer always has a line.
    """
    if record.drained is None or record.metric not in DRAINED:
        return []
    limits = record.verdict.claim.limits
    if (with_drain := formatting.ratio(record.drained, limits)) == formatting.ratio(record.verdict.ratio, limits):
        return []
    drains = ", ".join(f"{name} {seconds:.3f} s" for name, seconds in record.drains.items())
    return [f"including the drain {with_drain} ({drains})"]


def guard_interval(record: ClaimRecord) -> str:
    """The 90 % interval that decided a guard that holds; empty for other claims and outcomes.

    It is narrower than the interval that the table shows for all claims.
    """
    if not holds_as_guard(record):
        return ""
    verdict = record.verdict
    return wording.interval(verdict, (verdict.decided_low, verdict.decided_high))


def holds_as_guard(record: ClaimRecord) -> bool:
    """Whether a claim holds by its 90 % interval; the other interval may not have ends yet."""
    verdict = record.verdict
    return record.asserted and verdict.claim.guard and verdict.outcome is Outcome.HOLDS


def deciding_interval(record: ClaimRecord) -> tuple[float, float, str]:
    """The interval that decided, with its level: 90 % for a guard that holds, otherwise the sequential interval."""
    verdict = record.verdict
    if holds_as_guard(record):
        return verdict.decided_low, verdict.decided_high, "90 %"
    return verdict.low, verdict.high, wording.level(verdict)


def one_line(record: ClaimRecord) -> str:
    """The result of one claim on one line."""
    verdict = record.verdict
    published = "" if record.published is None else f", published {formatting.ratio(record.published)}"
    reason = f": {verdict.reason}" if states.state(record) == "inconclusive" else ""
    guard = f", 90 % ({interval})" if (interval := guard_interval(record)) else ""
    return (
        f"{word(record)}  {record.text}  {record.load}  {wording.estimate(verdict)}{guard}{published}, "
        f"{formatting.quantity(verdict.pairs, unit_of(record))}, {record.measured_seconds:.0f} s{reason}"
    )


def unit_of(record: ClaimRecord) -> str:
    """What a verdict counts: ``pair``, ``repetition`` of an event, or ``round`` of a single variant."""
    kind = record.verdict.claim.of_kind
    return kind.repetition if isinstance(kind, RepetitionKind) else "pair"


def legend(records: Sequence[ClaimRecord]) -> str:
    """The line below the table that explains the columns ``ratio`` and ``published``."""
    ratios = [record for record in records if record.verdict.claim.of_kind.is_ratio]
    if not ratios:
        return "measured: seconds, milliseconds, or a share of the events; in brackets their interval"
    level = shared_level(ratios)
    published = f". {PUBLISHED[0].upper()}{PUBLISHED[1:]}" if has_published(records) else ""
    return (
        "ratio: speed of the first named / speed of the other; for .lower() the counter instead of the speed, for a "
        f"percentile the inverse of the latencies; in brackets the {level} interval of all looks together{published}"
    )


def has_published(records: Sequence[ClaimRecord]) -> bool:
    """Whether a claim of the table has a published ratio."""
    return any(record.published is not None for record in records)


def total(records: Sequence[ClaimRecord], tests: Sequence[TestDocument] = ()) -> str:
    """The number of claims, and of tests without a claim, by state: ``2 hold, 1 refuted, 1 broken``."""
    return ", ".join(wording.state_count(state, number) for state, number in states.counts(records, tests).items())


def guide_lines(records: Sequence[ClaimRecord], tests: Sequence[TestDocument] = ()) -> list[str]:
    """One line with the page that says what to do about inconclusive and broken claims; empty without an entry.

    For readers who have neither a file nor a site, a line for each reason says what to do.
    """
    texts = [record.verdict.reason for record in of_title(OPEN, records)]
    texts += [test.reason for test in states.tests_without_claim(records, tests)]
    found = list(dict.fromkeys(reason for text in texts for reason in reasons.find(text)))
    page = reasons.address(found)
    if page == reasons.NAME:
        return [*(f"what to do ({reason.name}): {reason.advice}" for reason in found), f"more: {page}"]
    return [f"what to do ({', '.join(reason.name for reason in found)}): {page}"] if page else []


def to_explain(records: Sequence[ClaimRecord], option: str) -> list[str]:
    """One line with the option that shows why a claim is refuted; empty if every refuted claim has that already."""
    refuted = [record for record in of_title(DECIDED, records) if states.state(record) == "refuted"]
    if all(record.servers or not _has_extra_rounds(record) for record in refuted):
        return []
    return [f"why a claim is refuted: {option} compares the statements, plans, waits and status of the servers"]


def _has_extra_rounds(record: ClaimRecord) -> bool:
    """Whether --db-why compares the servers of a claim: not of options, counters, capacities and races."""
    kind = record.verdict.claim.of_kind
    return kind.is_ratio and kind.paired and not record.standings and record.metric != metrics.CAPACITY


def to_calibrate(records: Sequence[ClaimRecord]) -> list[str]:
    """One line with the commands that measure how far equal clusters differ; empty if no claim used a default.

    A run over several releases and workloads has a command for each of them. The line has the first CALIBRATIONS.
    """
    differences = [record.cluster_difference for record in records if record.cluster_difference]
    commands = list(dict.fromkeys(part for one in differences if one.command for part in one.command.split(" && ")))
    if not commands:
        return []
    why = "claims used a default for how far equal clusters differ; to measure it on this machine"
    more = len(commands) - CALIBRATIONS
    rest = f" (and {more} more: cluster_difference.command in claims.jsonl)" if more > 0 else ""
    return [f"{why}: {' && '.join(commands[:CALIBRATIONS])}{rest}"]


def paper_block(records: Sequence[ClaimRecord]) -> TableBlock | None:
    """A row for each load, variant and release that ran the published command line; None without any.

    Only the profile ``paper`` runs published command lines. Loads with a ledger have no row: their rounds last a fixed
    time, so their seconds cannot be compared.
    """
    rows: dict[tuple[str, str, str], Row] = {}
    for record in records:
        for name, rounds in record.rounds.items():
            timed = rounds and rounds[0].outcome.ledger is None
            if record.profile == "paper" and timed and (record.load, name, record.release) not in rows:
                measured, published = _paper_seconds(rounds), record.published_seconds.get(name, ())
                cells = (name, record.load, record.release, seconds_text(measured), seconds_text(published))
                rows[record.load, name, record.release] = Row(cells, "")
    if not rows:
        return None
    columns = ("variant", "load", "release", "seconds (min .. max)", "published")
    return TableBlock("seconds of the published command line", columns, tuple(rows.values()))


def _paper_seconds(rounds: Sequence[Round]) -> tuple[float, ...]:
    """Mean of the averages, then minimum and maximum of all iterations of all rounds, in seconds."""
    outcomes = [item.outcome for item in rounds]
    least = min(outcome.seconds if outcome.least is None else outcome.least for outcome in outcomes)
    most = max(outcome.seconds if outcome.most is None else outcome.most for outcome in outcomes)
    return statistics.fmean(outcome.seconds for outcome in outcomes), least, most


def seconds_text(cell: Sequence[float]) -> str:
    """``0.474 (0.416 .. 0.652)`` for average, minimum and maximum, ``0.474`` for an average, ``-`` for nothing."""
    if len(cell) == 3:
        return f"{cell[0]:.3f} ({cell[1]:.3f} .. {cell[2]:.3f})"
    return f"{cell[0]:.3f}" if cell else "-"
