"""The closing table as values: which claims stand in which block, and what each of their cells says."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from pytest_dbcluster.claims import wording
from pytest_dbcluster.claims.claim import Outcome
from pytest_dbcluster.measuring import remarks as notes
from pytest_dbcluster.reporting.records import ClaimRecord, CurveRecord
from pytest_dbcluster.reporting.tables import curves
from pytest_dbcluster.reporting.tables.layout import Block, Row
from pytest_dbcluster.rounds.round import DRAINED, Round

COLOURS = {Outcome.HOLDS: "green", Outcome.FAILS: "red", Outcome.INCONCLUSIVE: "yellow"}
WORDS = {Outcome.HOLDS: "holds", Outcome.FAILS: "FAILS", Outcome.INCONCLUSIVE: "open"}
BESIDE_WORDS = wording.COMPARISON_WORDS


def blocks(records: Sequence[ClaimRecord], drawn: Sequence[CurveRecord] = ()) -> list[Block]:
    """Decided claims, inconclusive ones apart, what was measured beside, and curves; those that have any rows."""
    asserted = [record for record in records if record.asserted]
    kinds = (
        ("performance claims", [one for one in asserted if one.verdict.outcome is not Outcome.INCONCLUSIVE]),
        ("inconclusive: neither pass nor failure", [one for one in asserted if _open(one)]),
        ("measured beside, not asserted", [one for one in records if not one.asserted]),
    )
    releases = len({record.release for record in records}) > 1
    found = [_block(title, rows, releases) for title, rows in kinds if rows]
    published = paper_block(records)
    return [*found, *([published] if published else []), *map(curves.block, drawn)]


def _open(record: ClaimRecord) -> bool:
    return record.verdict.outcome is Outcome.INCONCLUSIVE


def _block(title: str, records: Sequence[ClaimRecord], releases: bool) -> Block:
    level = f"ratio ({_level(records[0])})"
    columns = ("claim", "load", *(["release"] if releases else []), level, "published", "verdict", "pairs", "seconds")
    return Block(title, columns, tuple(_row(record, releases) for record in records))


def _level(record: ClaimRecord) -> str:
    return f"{100 * (1 - 2 * record.verdict.alpha):.4g} %"


def _row(record: ClaimRecord, releases: bool) -> Row:
    found = record.verdict
    undecided = record.asserted and _open(record)
    cells = (
        record.text,
        record.load,
        *([record.release] if releases else []),
        estimate(record),
        "-" if record.published is None else number(record.published),
        (WORDS if record.asserted else BESIDE_WORDS)[found.outcome],
        str(found.pairs),
        f"{record.measured_seconds:.0f}",
    )
    remarks = [f"{found.reason}; needs {wording.needs(found, record.measured_seconds)}"] if undecided else []
    remarks += [f"a guard holds by its 90 % interval: {held}"] if (held := guarded(record)) else []
    remarks += [record.arrival_rate.line] if record.arrival_rate else []
    remarks += [record.limited] if record.limited else []
    remarks += [*drained(record), *notes.void_line(record.void, found.pairs)]
    return Row(cells, COLOURS[found.outcome] if record.asserted else "", "; ".join(remarks))


def drained(record: ClaimRecord) -> list[str]:
    """The ratio with the drain included, and what was drained; nothing where that does not show in the ratio."""
    if record.drained is None or record.metric not in DRAINED or number(record.drained) == number(record.verdict.ratio):
        return []
    said = ", ".join(f"{name} {seconds:.3f} s" for name, seconds in record.drains.items())
    return [f"with the drain included {number(record.drained)} ({said})"]


def estimate(record: ClaimRecord) -> str:
    """The measured ratio candidate / baseline with its interval."""
    found = record.verdict
    if math.isnan(found.ratio):
        return "-"
    return with_interval(found.ratio, found.low, found.high)


def guarded(record: ClaimRecord) -> str:
    """The interval by which a guard holds, narrower than the one that is shown for all claims; empty for others."""
    found = record.verdict
    if not (record.asserted and found.claim.guard and found.outcome is Outcome.HOLDS):
        return ""
    return f"{number(found.decided_low)} .. {number(found.decided_high)}"


def with_interval(ratio: float, low: float, high: float) -> str:
    """A ratio with its interval, or without one while the pairs bound nothing."""
    if low == 0 and math.isinf(high):
        return f"{number(ratio)} (no interval yet)"
    return f"{number(ratio)} ({number(low)} .. {number(high)})"


def number(value: float) -> str:
    """A ratio in as many digits as it needs: 1.26, 0.0034, 123."""
    return f"{value:.2f}" if 0.0995 <= value < 99.5 else f"{value:.3g}"


def one_line(record: ClaimRecord) -> str:
    """A claim with its verdict on one line."""
    found = record.verdict
    words = WORDS if record.asserted else BESIDE_WORDS
    published = "" if record.published is None else f", published {number(record.published)}"
    reason = f": {found.reason}" if record.asserted and _open(record) else ""
    held = f", 90 % ({interval})" if (interval := guarded(record)) else ""
    return (
        f"{words[found.outcome]}  {record.text}  {record.load}  {estimate(record)}{held}{published}, "
        f"{found.pairs} pairs, {record.measured_seconds:.0f} s{reason}"
    )


def legend(records: Sequence[ClaimRecord]) -> str:
    """What the figures of the table are."""
    return (
        "ratio: speed of the first named / the other, for .lower() the counter instead, for a percentile the inverse "
        "of the latencies; in brackets the "
        f"{_level(records[0])} interval of all looks together"
    )


def total(records: Sequence[ClaimRecord]) -> str:
    """How many claims had which answer, and how many comparisons were measured beside."""
    asserted = [record.verdict.outcome for record in records if record.asserted]
    counts = [(asserted.count(one), word) for one, word in zip(Outcome, ("hold", "fail", "inconclusive"), strict=True)]
    answers = ", ".join(f"{count} {word}" for count, word in counts if count)
    claims = [f"{len(asserted)} claim{'' if len(asserted) == 1 else 's'}: {answers}"] if asserted else []
    beside = [f"{len(records) - len(asserted)} measured beside"] if len(asserted) < len(records) else []
    return "; ".join([*claims, *beside])


def paper_block(records: Sequence[ClaimRecord]) -> Block | None:
    """A row for each load and variant that ran the published command line; None when none did."""
    rows: dict[tuple[str, str, str], Row] = {}
    for record in records:
        for name, rounds in record.rounds.items():
            # Rounds of a load with a ledger last as long as they were told to, so their seconds say nothing.
            timed = rounds and rounds[0].outcome.ledger is None
            if record.profile == "paper" and timed and (record.load, name, record.release) not in rows:
                published = record.published_seconds.get(name, ())
                cells = (
                    name,
                    record.load,
                    record.release,
                    shown_seconds(_paper_seconds(rounds)),
                    shown_seconds(published),
                )
                rows[record.load, name, record.release] = Row(cells, "")
    if not rows:
        return None
    columns = ("variant", "load", "release", "seconds (least .. most)", "published")
    return Block("seconds of the published command line", columns, tuple(rows.values()))


def _paper_seconds(rounds: Sequence[Round]) -> tuple[float, ...]:
    """Mean of the averages, least and most of all iterations of all calls."""
    outcomes = [item.outcome for item in rounds]
    least = min(one.seconds if one.least is None else one.least for one in outcomes)
    most = max(one.seconds if one.most is None else one.most for one in outcomes)
    return statistics.fmean(one.seconds for one in outcomes), least, most


def shown_seconds(cell: Sequence[float]) -> str:
    """``0.474 (0.416 .. 0.652)``, or a dash where there is nothing."""
    if len(cell) == 3:
        return f"{cell[0]:.3f} ({cell[1]:.3f} .. {cell[2]:.3f})"
    return f"{cell[0]:.3f}" if cell else "-"
