"""Parts: the transactions and statements of a workload, as the rounds of a claim show them.

Their figures come from rounds that are drawn for the claim. So they cost no round, and decide nothing.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from pytest_dbcluster import formatting
from pytest_dbcluster.claims import estimators, intervals
from pytest_dbcluster.claims.claim import EQUAL
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.formatting import NOTHING, amount
from pytest_dbcluster.rounds import metrics, pairing
from pytest_dbcluster.rounds.round import Round

SHOWN = ("p50", "p95", "p99")
Sides = tuple[Sequence[Round], Sequence[Round]]  # the rounds of baseline and candidate


@dataclasses.dataclass(frozen=True)
class ComparedTransaction:
    """One type of transaction, compared between two variants without a claim."""

    metric: str
    """The metric, such as ``p95:order``."""

    medians: tuple[str, str]
    """The medians of baseline and candidate with their unit."""

    ratio: str
    """The ratio with its interval; above 1 the candidate is faster."""

    remark: str
    """Its share of the transactions, and why it has no interval."""


def compare_transactions(
    sides: Sides, metric: str, load: str, *, instances: int, alpha: float
) -> tuple[ComparedTransaction, ...]:
    """The types of transactions, compared by a latency in the rounds of a claim; the most frequent type comes first.

    Each interval is the sequential interval of its type, at the alpha of a claim. A type with too few operations a
    round has its percentile over all rounds, and no interval. Empty for a workload with a single type.
    """
    kinds = [kind for kind, _ in _good(done for rounds in sides for done in rounds).most_common()]
    if len(kinds) < 2:
        return ()
    return tuple(_compare(kind, sides, metric, load, instances=instances, alpha=alpha) for kind in kinds)


def _compare(kind: str, sides: Sides, metric: str, load: str, *, instances: int, alpha: float) -> ComparedTransaction:
    own, share, (baseline, candidate) = f"{metric}:{kind}", _share(kind, sides), sides
    try:
        speeds = _speeds(candidate, own, load), _speeds(baseline, own, load)
        pairs = pairing.pairs_of(candidate, baseline, speeds, instances=instances)
        medians = median_texts(own, load, sides)
    except ConfigError:  # too few in the median round, or none in a round
        return _over_all_rounds(own, sides, share)
    centre = intervals.estimate(pairs)
    ends = estimators.widen(intervals.interval(pairs, alpha), centre)
    ratio, low, high = map(estimators.factor, (centre, *ends))
    return ComparedTransaction(own, medians, formatting.with_interval(ratio, low, high, EQUAL), share)


def _speeds(rounds: Sequence[Round], metric: str, load: str) -> list[float]:
    """The speed of each round. Raises ConfigError if the rounds have too few operations for the percentile."""
    metrics.require_operations(rounds, metric, load)
    return [metrics.ratio_value(done, metric, load) for done in rounds]


def _over_all_rounds(metric: str, sides: Sides, share: str) -> ComparedTransaction:
    """The latency over all rounds, without an interval; without figures if all rounds have too few operations."""
    name, _, kind = metric.partition(":")
    both = [metrics.latencies(rounds, kind) for rounds in sides]
    if min(latencies.total for latencies in both) < metrics.operations_needed(metric):
        return ComparedTransaction(metric, (NOTHING, NOTHING), NOTHING, f"{share}, too few for {name}")
    first, second = (latencies.percentile(metrics.QUANTILES[name]) for latencies in both)
    medians = _with_unit(1e3 * first, metric), _with_unit(1e3 * second, metric)
    ratio = f"{formatting.ratio(first / second, EQUAL)} (no interval)"
    return ComparedTransaction(metric, medians, ratio, f"{share}, too few a round for an interval")


@dataclasses.dataclass(frozen=True)
class PartLatencies:
    """The latencies of one transaction or statement, over all rounds of one variant."""

    part: str
    """A type of transaction such as ``order``, or a statement: ``order:7`` is line 7 of order.sql."""

    variant: str
    """The variant's name."""

    count: int
    """The number of latencies; of a statement with all its attempts. Lost operations of an open loop count."""

    milliseconds: tuple[float, ...]
    """The latency of each percentile of SHOWN."""


def latencies(rounds: Mapping[str, Sequence[Round]]) -> list[PartLatencies]:
    """The latencies of each type of transaction, each followed by its statements; the most frequent type comes first.

    rounds: by variant. Empty for a workload with a single type and no statements.
    """
    every = [done for many in rounds.values() for done in many]
    kinds = [kind for kind, _ in _good(every).most_common()]
    statements = list(dict.fromkeys(name for done in every for name in done.outcome.statements))
    if len(kinds) < 2 and not statements:
        return []
    names = [name for kind in kinds for name in (kind, *(one for one in statements if metrics.type_of(one) == kind))]
    return [_latencies(name, variant, many) for name in names for variant, many in rounds.items()]


def _latencies(part: str, variant: str, rounds: Sequence[Round]) -> PartLatencies:
    found = metrics.latencies(rounds, part)
    milliseconds = tuple(1e3 * found.percentile(metrics.QUANTILES[name]) for name in SHOWN)
    return PartLatencies(part, variant, found.total, milliseconds)


def median_texts(metric: str, load: str, sides: Sides) -> tuple[str, str]:
    """The medians of baseline and candidate with their unit; a dash without rounds."""
    values = [[metrics.display_value(done, metric, load) for done in rounds] for rounds in sides]
    first, second = (_with_unit(statistics.median(many), metric) if many else NOTHING for many in values)
    return first, second


def _with_unit(value: float, metric: str) -> str:
    return f"{amount(value)} {metrics.unit(metric)}".rstrip()


def _share(kind: str, sides: Sides) -> str:
    """The share of a type in the transactions; of baseline and candidate if it differs."""
    counts = [_good(rounds) for rounds in sides]
    shares = [100 * good[kind] / max(1, good.total()) for good in counts]
    texts = dict.fromkeys(f"{share:.0f} %" if share >= 1 else f"{share:.1g} %" for share in shares)
    return f"{' and '.join(texts)} of the transactions"


def _good(rounds: Iterable[Round]) -> Counter[str]:
    """By type, the number of good transactions."""
    good: Counter[str] = Counter()
    for done in rounds:
        if ledger := done.outcome.ledger:
            good.update({kind: entry.good for kind, entry in ledger.entries.items()})
    return good
