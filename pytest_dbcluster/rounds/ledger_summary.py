"""Lines about the ledgers of a claim's rounds: conflicts and their cost, outcomes of transactions, and latencies.

Messages show closed-loop latencies, but claims do not use them. A server that stalls gets no new operations, so the
stall adds few latencies (coordinated omission).
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Iterator, Mapping, Sequence

from pytest_dbcluster.formatting import amount, quantity
from pytest_dbcluster.rounds import metrics
from pytest_dbcluster.rounds.histogram import Histogram
from pytest_dbcluster.rounds.ledger import Ledger, LedgerEntry
from pytest_dbcluster.rounds.round import Round

SHOWN = (0.5, 0.95, 0.99, 0.999)  # percentiles, as shares
STATEMENTS = 4  # that took the most time, which a line lists for each variant
ERRORS = 4  # most frequent errors that a line lists for each variant


@dataclasses.dataclass(frozen=True)
class LedgerSummary:
    """The sum of all rounds of one variant."""

    name: str
    """Name of the variant."""

    ledger: Ledger
    """Sum of the ledgers."""

    seconds: float
    """Measured seconds of all rounds."""

    tried: int
    """Operations that the workload tried."""

    open_loop: bool
    """Whether the workload has an arrival rate."""

    latencies: Mapping[str, Histogram]
    """Latencies by type of transaction, "" for all types; see ``metrics.latencies_with_losses``."""

    statements: Mapping[str, Histogram]
    """Latencies by statement, with all attempts; empty if the workload keeps none."""

    @property
    def total(self) -> LedgerEntry:
        """The sum of all types of transactions."""
        return self.ledger.total


def lines(rounds: Mapping[str, Sequence[Round]]) -> list[str]:
    """One line for each topic, with all variants; no lines for a workload without a ledger.

    ``rounds`` has the rounds of each variant by its name.
    """
    summaries = [summary for name, series in rounds.items() if (summary := _summary(name, series))]
    if not summaries:
        return []
    topics = {
        "goodput of attempts": _goodput,
        "attempts of a transaction": _attempts,
        "errors by node": _errors,
        "outcomes": _outcomes,
    }
    how = "from the intended start" if summaries[0].open_loop else "closed loop: shown, not claimed"
    latencies = "; ".join(f"{summary.name} {percentiles(summary.latencies[''])}" for summary in summaries)
    return [
        *_figures(rounds),
        *(
            f"{topic}: {'; '.join(f'{summary.name} {text(summary)}' for summary in summaries)}"
            for topic, text in topics.items()
        ),
        f"latency p50 / p95 / p99 / p99.9 in ms ({how}): {latencies}",
        *map(_types, filter(_has_types, summaries)),
        *(_statements(summary) for summary in summaries if summary.statements),
    ]


def _figures(rounds: Mapping[str, Sequence[Round]]) -> list[str]:
    """One line for each figure of ``RunResult.figures``, such as tpmC: the median of each variant's rounds."""
    names = dict.fromkeys(figure for series in rounds.values() for done in series for figure in done.outcome.figures)
    return [f"{name} (medians): {'; '.join(_medians(rounds, name))}" for name in names]


def _medians(rounds: Mapping[str, Sequence[Round]], figure: str) -> Iterator[str]:
    for name, series in rounds.items():
        if values := [done.outcome.figures[figure] for done in series if figure in done.outcome.figures]:
            yield f"{name} {amount(statistics.median(values))}"


def _summary(name: str, rounds: Sequence[Round]) -> LedgerSummary | None:
    """The sum of the rounds that have a ledger; None without any."""
    with_ledger = [done for done in rounds if done.outcome.ledger is not None]
    if not with_ledger:
        return None
    ledger = Ledger()
    for done in with_ledger:
        ledger += done.outcome.ledger or Ledger()
    seconds, tried = sum(done.seconds for done in with_ledger), sum(done.outcome.operations for done in with_ledger)
    latencies = {kind: metrics.latencies(with_ledger, kind) for kind in ("", *ledger.entries)}
    statements: dict[str, Histogram] = {}
    for statement, times in (item for done in with_ledger for item in done.outcome.statements.items()):
        statements[statement] = statements.get(statement, Histogram()) + times
    return LedgerSummary(name, ledger, seconds, tried, with_ledger[0].outcome.rate is not None, latencies, statements)


def _goodput(summary: LedgerSummary) -> str:
    good, tried = summary.total.good / summary.seconds, summary.tried / summary.seconds
    return f"{amount(good)} of {amount(tried)}/s, abort share {100 * summary.ledger.abort_share:.2g} %"


def _attempts(summary: LedgerSummary) -> str:
    """The numbers of transactions that ended at their first, second and later attempt."""
    attempts = summary.total.attempts
    later = sum(count for number, count in attempts.items() if number > 2)
    return f"{attempts.get(1, 0)} at the first, {attempts.get(2, 0)} at the second, {later} later"


def _errors(summary: LedgerSummary) -> str:
    if not summary.ledger.errors:
        return "none"
    by_count = sorted(summary.ledger.errors.items(), key=lambda item: (-item[1], item[0]))
    listed = [f"{code} on {node} x {count}" for (code, node), count in by_count[:ERRORS]]
    others = sum(count for _, count in by_count[ERRORS:])
    return ", ".join([*listed, *([quantity(others, "other")] if others else [])])


def _outcomes(summary: LedgerSummary) -> str:
    total = summary.total
    known = total.unknown_there + total.unknown_gone
    looked_up = f" (looked up: {total.unknown_there} there, {total.unknown_gone} gone)" if known else ""
    return (
        f"{total.committed} committed, {total.rolled_back} rolled back by design, {total.failed} failed, "
        f"{total.unknown} unknown{looked_up}, "
        f"{total.aborted_seconds:.2g} s lost in aborted attempts and the waits after them"
    )


def percentiles(latencies: Histogram) -> str:
    """The percentiles ``SHOWN`` in milliseconds, ``3.1 / 9 / 14 / 22``; a dash for an empty histogram."""
    return " / ".join(_milliseconds(latencies.percentile(share)) for share in SHOWN) if latencies.total else "-"


def _milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:.0f}" if seconds >= 1 else f"{1e3 * seconds:.3g}"


def _has_types(summary: LedgerSummary) -> bool:
    return len(summary.ledger.entries) > 1


def _types(summary: LedgerSummary) -> str:
    """One line with the types of transactions of a variant."""
    by_type = [
        f"{kind} {amount(entry.good / summary.seconds)}/s {percentiles(summary.latencies[kind])}"
        for kind, entry in summary.ledger.entries.items()
    ]
    return f"{summary.name} by type, goodput and latencies: {', '.join(by_type)}"


def _statements(summary: LedgerSummary) -> str:
    """One line with the statements of a variant that took the most time."""
    seconds = {name: times.mean * times.total for name, times in summary.statements.items() if times.total}
    total = sum(seconds.values())
    first = sorted(seconds, key=lambda name: -seconds[name])[:STATEMENTS]
    shown = [f"{name} {100 * seconds[name] / total:.0f} % {percentiles(summary.statements[name])}" for name in first]
    return f"{summary.name} by statement, share of their time and latencies: {', '.join(shown) or 'none ran'}"
