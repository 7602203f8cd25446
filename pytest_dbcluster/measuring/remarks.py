"""The lines of a claim's message below its verdict: drain, warm-up, rate, conflicts, load generator, void blocks."""

from __future__ import annotations

import dataclasses
import itertools
import statistics
from collections.abc import Mapping, Sequence

from pytest_dbcluster.claims import estimators
from pytest_dbcluster.claims.wording import percent
from pytest_dbcluster.rounds import ledger_summary, load_generator
from pytest_dbcluster.rounds.open_loop import ArrivalRate
from pytest_dbcluster.rounds.round import DRAINED, SPEEDS, USUAL, Round

Rounds = Mapping[str, Sequence[Round]]
Blocks = Sequence[Sequence[Round]]
REASONS = 3  # different reasons of void blocks that a message lists


def drains(rounds: Rounds) -> dict[str, float]:
    """The median drain of each variant, in seconds.

    Empty when nothing had to drain: no round committed anything, or no other node applies the commits.
    """
    if not any(
        done.outcome.commits and done.counters.get("drain_seconds") for series in rounds.values() for done in series
    ):
        return {}
    return {
        name: statistics.median(done.counters.get("drain_seconds", 0.0) for done in series)
        for name, series in rounds.items()
    }


def _drained_more(rounds: Rounds) -> bool:
    """Whether more than the measured operations had to drain."""
    return any(done.outcome.span is not None for series in rounds.values() for done in series)


def speed_ratio(candidate: Sequence[Round], baseline: Sequence[Round], metric: str) -> float:
    """Candidate / baseline of a speed over pairs of rounds (Hodges-Lehmann); ``metric``: one of ``round.SPEEDS``."""
    pairs = zip(candidate, baseline, strict=True)
    ratios = [estimators.log_ratio(getattr(first, metric), getattr(second, metric)) for first, second in pairs]
    return estimators.factor(estimators.hodges_lehmann(ratios))


def drained_ratio(rounds: Rounds, metric: str = USUAL) -> float | None:
    """Speed of the first variant / speed of the last variant, drain included.

    None when nothing had to drain, for a counter or a latency, and when more than the measured operations drained.
    """
    series, speed = list(rounds.values()), DRAINED.get(metric, metric)
    if _drained_more(rounds):
        return None
    return speed_ratio(series[0], series[-1], speed) if speed in SPEEDS and drains(rounds) else None


def drain_line(rounds: Rounds, metric: str) -> list[str]:
    """One line: the median drain of each variant, and for a claim about speed the ratio with or without the drain.

    The ratio includes the drain when the claim's metric leaves it out, and the reverse. ``rounds``: candidate first,
    or the fastest variant of an order first. No line when nothing had to drain.
    """
    medians = drains(rounds)
    if not medians:
        return []
    line = "drain until all nodes are equal (medians): "
    line += ", ".join(f"{name} {seconds:.3f} s" for name, seconds in medians.items())
    other = {**DRAINED, **{value: name for name, value in DRAINED.items()}}.get(metric)
    if not other:
        return [line]
    if _drained_more(rounds):
        return [f"{line}; includes all repetitions and the rows that populated their tables, so no ratio includes it"]
    word = "included" if metric in DRAINED else "left out"
    ratios = [
        f"{fast} / {slow} {percent(speed_ratio(rounds[fast], rounds[slow], other))}"
        for fast, slow in itertools.pairwise(rounds)
    ]
    return [f"{line}; with it {word} {', '.join(ratios)}"]


def warm_up_line(means: Sequence[float], maximum: int, steady: float) -> list[str]:
    """One line when the warm-up ended at its maximum of blocks, while they still got faster; else no line.

    means: the mean log cost of each warm-up block. steady: the smallest fall of it that counts as faster.
    """
    if len(means) < maximum or means[-1] > means[-2] - steady:
        return []
    faster = percent(estimators.factor(means[-2] - means[-1]))
    return [f"warm-up ended after {maximum} blocks; the last block was still {faster} faster than the one before"]


def dropped_line(blocks: int) -> list[str]:
    """One line on the blocks that were dropped when the arrival rate was lowered; none without any."""
    return [f"{blocks} blocks at the rate that was too high were dropped, and all began again"] if blocks else []


def round_lines(rounds: Rounds, rate: ArrivalRate | None) -> list[str]:
    """The lines on arrival rate, conflicts and latencies, and on the load generator."""
    marked = load_generator.mark(rounds)
    return [
        *([rate.line] if rate else []),
        *ledger_summary.lines(rounds),
        *load_generator.line(rounds),
        *([marked] if marked else []),
    ]


def as_void(block: Sequence[Round]) -> list[Round]:
    """The rounds of a void block, each with a reason: its own, or the reason of the round that made the block void."""
    return [done if done.void else dataclasses.replace(done, void=f"with {reason(block)}") for done in block]


def reason(block: Sequence[Round]) -> str:
    """The first variant that made a block void, and why."""
    return next(f"{done.variant}: {done.void}" for done in block if done.void)


def void_line(blocks: Blocks, pairs: int) -> list[str]:
    """One line on the void blocks that were repeated, with the number of ``pairs`` that count; none without any."""
    if not blocks:
        return []
    reasons = list(dict.fromkeys(reason(block) for block in blocks))
    more = [f"and {len(reasons) - REASONS} more"] if len(reasons) > REASONS else []
    drawn = f"{len(blocks)} of {pairs + len(blocks)} blocks void, drawn again"
    return [f"{drawn}: {'; '.join([*reasons[:REASONS], *more])}"]
