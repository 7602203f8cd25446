"""What the ledgers of a claim's rounds say: conflicts and what they cost, outcomes, and latencies.

Closed-loop latencies are among it and claim nothing: a server that stands still is asked nothing meanwhile.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Iterator, Mapping, Sequence

from pytest_dbcluster.rounds import metrics
from pytest_dbcluster.rounds.histogram import Histogram
from pytest_dbcluster.rounds.ledger import Ledger, LedgerEntry
from pytest_dbcluster.rounds.round import Round

SHOWN = (0.5, 0.95, 0.99, 0.999)
ERRORS = 4  # of each variant, the most frequent ones


@dataclasses.dataclass(frozen=True)
class LedgerSummary:
    """The rounds of one variant together. seconds: measured; tried: attempts of all operations.

    latencies: by type of transactions, "" for all of them; in an open loop with what was lost.
    """

    name: str
    ledger: Ledger
    seconds: float
    tried: int
    open_loop: bool
    latencies: Mapping[str, Histogram]

    @property
    def total(self) -> LedgerEntry:
        """All types of transactions."""
        return self.ledger.total


def lines(rounds: Mapping[str, Sequence[Round]]) -> list[str]:
    """A line for each thing that ledgers tell, all variants in it; none of loads that keep no ledger."""
    books = [one for name, many in rounds.items() if (one := _added(name, many))]
    if not books:
        return []
    each = {
        "goodput of attempts": _goodput,
        "tries of a transaction": _attempts,
        "errors by node": _errors,
        "outcomes": _outcomes,
    }
    said = [f"{what}: {'; '.join(f'{one.name} {words(one)}' for one in books)}" for what, words in each.items()]
    how = "from the intended start" if books[0].open_loop else "closed loop: shown, not claimed"
    latencies = "; ".join(f"{one.name} {percentiles(one.latencies[''])}" for one in books)
    return [
        *_figures(rounds),
        *said,
        f"latency p50 / p95 / p99 / p99.9 in ms ({how}): {latencies}",
        *map(_types, filter(_several, books)),
    ]


def _figures(rounds: Mapping[str, Sequence[Round]]) -> list[str]:
    """A line for each figure that a load is known by: the median of each variant's rounds."""
    names = dict.fromkeys(figure for many in rounds.values() for one in many for figure in one.outcome.figures)
    return [f"{name} (medians): {'; '.join(_medians(rounds, name))}" for name in names]


def _medians(rounds: Mapping[str, Sequence[Round]], figure: str) -> Iterator[str]:
    for name, many in rounds.items():
        if values := [one.outcome.figures[figure] for one in many if figure in one.outcome.figures]:
            yield f"{name} {statistics.median(values):.4g}"


def _added(name: str, rounds: Sequence[Round]) -> LedgerSummary | None:
    kept = [one for one in rounds if one.outcome.ledger is not None]
    if not kept:
        return None
    ledger = Ledger()
    for one in kept:
        ledger += one.outcome.ledger or Ledger()
    seconds, tried = sum(one.seconds for one in kept), sum(one.outcome.operations for one in kept)
    latencies = {kind: metrics.latencies(kept, kind) for kind in ("", *ledger.entries)}
    return LedgerSummary(name, ledger, seconds, tried, kept[0].outcome.rate is not None, latencies)


def _goodput(books: LedgerSummary) -> str:
    good, tried = books.total.good / books.seconds, books.tried / books.seconds
    return f"{good:.4g} of {tried:.4g}/s, abort share {100 * books.ledger.abort_share:.2g} %"


def _attempts(books: LedgerSummary) -> str:
    """How many ended at their first, second and later attempt."""
    found = books.total.attempts
    later = sum(count for number, count in found.items() if number > 2)
    return f"{found.get(1, 0)} at the first, {found.get(2, 0)} at the second, {later} later"


def _errors(books: LedgerSummary) -> str:
    if not books.ledger.errors:
        return "none"
    often = sorted(books.ledger.errors.items(), key=lambda item: (-item[1], item[0]))
    said = [f"{number} on {node} x {count}" for (number, node), count in often[:ERRORS]]
    rest = sum(count for _, count in often[ERRORS:])
    return ", ".join([*said, *([f"{rest} others"] if rest else [])])


def _outcomes(books: LedgerSummary) -> str:
    total = books.total
    return (
        f"{total.committed} committed, {total.rolled_back} rolled back by design, {total.failed} failed, "
        f"{total.unknown} unknown, {total.aborted_seconds:.2g} s lost in aborted attempts and waits after them"
    )


def percentiles(latencies: Histogram) -> str:
    """``3.1 / 9 / 14 / 22``, milliseconds; a dash without any."""
    return " / ".join(_milliseconds(latencies.percentile(share)) for share in SHOWN) if latencies.total else "-"


def _milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:.0f}" if seconds >= 1 else f"{1e3 * seconds:.3g}"


def _several(books: LedgerSummary) -> bool:
    return len(books.ledger.entries) > 1


def _types(books: LedgerSummary) -> str:
    """One line of a variant whose load has several types of transactions."""
    each = [
        f"{kind} {entry.good / books.seconds:.4g}/s {percentiles(books.latencies[kind])}"
        for kind, entry in books.ledger.entries.items()
    ]
    return f"{books.name} by type, good ones and latencies: {', '.join(each)}"
