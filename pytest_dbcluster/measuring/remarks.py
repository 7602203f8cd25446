"""What a claim's message says beside the verdict: the drain after its rounds, what they tell, and which were void."""

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
REASONS = 3


def drains(rounds: Rounds) -> dict[str, float]:
    """The median drain of each variant in seconds.

    Empty where nothing had to drain: rounds that committed nothing, or servers whose commits nobody else applies.
    """
    every = [one for many in rounds.values() for one in many]
    if not any(one.outcome.commits and one.counters.get("drain_seconds") for one in every):
        return {}
    return {
        name: statistics.median(one.counters.get("drain_seconds", 0.0) for one in many) for name, many in rounds.items()
    }


def _drained_more(rounds: Rounds) -> bool:
    """Whether more than the measured operations had to drain."""
    return any(one.outcome.span is not None for many in rounds.values() for one in many)


def speed_ratio(candidate: Sequence[Round], baseline: Sequence[Round], metric: str) -> float:
    """The ratio of a speed over pairs of rounds (Hodges-Lehmann)."""
    pairs = zip(candidate, baseline, strict=True)
    ratios = [estimators.log_ratio(getattr(one, metric), getattr(other, metric)) for one, other in pairs]
    return estimators.factor(estimators.hodges_lehmann(ratios))


def drained_ratio(rounds: Rounds, metric: str = USUAL) -> float | None:
    """A speed of the first variant by that of the last, drain included; None where nothing had to drain.

    A counter or a latency is no speed, and has none either; nor have rounds that measured less than what drained.
    """
    several, speed = list(rounds.values()), DRAINED.get(metric, metric)
    if _drained_more(rounds):
        return None
    return speed_ratio(several[0], several[-1], speed) if speed in SPEEDS and drains(rounds) else None


def drain_line(rounds: Rounds, metric: str) -> list[str]:
    """One line: how long each variant drained, and the ratio that a claim about speed would have the other way.

    ``rounds`` are those of the claim, candidate first; those of an order, fastest first. No line for no drain.
    """
    medians = drains(rounds)
    if not medians:
        return []
    said = ", ".join(f"{name} {seconds:.3f} s" for name, seconds in medians.items())
    other = {**DRAINED, **{value: name for name, value in DRAINED.items()}}.get(metric)
    if not other:
        return [f"drain until all nodes are equal (medians): {said}"]
    if _drained_more(rounds):
        more = "of all repetitions and what filled their tables, so no ratio has it included"
        return [f"drain until all nodes are equal (medians): {said}; {more}"]
    word = "included" if metric in DRAINED else "left out"
    ratios = [
        f"{fast} / {slow} {percent(speed_ratio(rounds[fast], rounds[slow], other))}"
        for fast, slow in itertools.pairwise(rounds)
    ]
    return [f"drain until all nodes are equal (medians): {said}; with it {word} {', '.join(ratios)}"]


def warm_up_line(means: Sequence[float], most: int, steady: float) -> list[str]:
    """One line when the unmeasured blocks ended although they still got faster; ``means`` are their log costs."""
    if len(means) < most or means[-1] > means[-2] - steady:
        return []
    faster = percent(estimators.factor(means[-2] - means[-1]))
    return [f"warm-up ended after {most} blocks, the last of them still {faster} faster than the one before"]


def round_lines(rounds: Rounds, rate: ArrivalRate | None) -> list[str]:
    """What the rounds themselves tell: the rate, conflicts and latencies, and the load generator with its mark."""
    marked = load_generator.mark(rounds)
    return [
        *([rate.line] if rate else []),
        *ledger_summary.lines(rounds),
        *load_generator.line(rounds),
        *([marked] if marked else []),
    ]


def as_void(block: Sequence[Round]) -> list[Round]:
    """The rounds of a void block, each with a reason: its own, or that of another one."""
    return [one if one.void else dataclasses.replace(one, void=f"with {reason(block)}") for one in block]


def reason(block: Sequence[Round]) -> str:
    """Which variant made a block void, and why."""
    return next(f"{one.variant}: {one.void}" for one in block if one.void)


def void_line(blocks: Blocks, pairs: int) -> list[str]:
    """One line on the void blocks that were drawn again among ``pairs`` that count; none without any."""
    if not blocks:
        return []
    reasons = list(dict.fromkeys(reason(block) for block in blocks))
    rest = [f"and {len(reasons) - REASONS} more"] if len(reasons) > REASONS else []
    drawn = f"{len(blocks)} of {pairs + len(blocks)} blocks void, drawn again"
    return [f"{drawn}: {'; '.join([*reasons[:REASONS], *rest])}"]
