"""The lines of a claim's message below its verdict: carry-over, drain, warm-up, rate, conflicts, client, void."""

from __future__ import annotations

import dataclasses
import itertools
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence

from pytest_dbcluster import formatting
from pytest_dbcluster.claims import estimators, intervals
from pytest_dbcluster.claims.carry_over import CarryOver
from pytest_dbcluster.claims.claim import EQUAL
from pytest_dbcluster.rounds import busy_machine, ledger_summary, load_generator, pairing
from pytest_dbcluster.rounds.capacity import summary
from pytest_dbcluster.rounds.open_loop import ArrivalRate
from pytest_dbcluster.rounds.round import DRAINED, SPEEDS, USUAL, Round

Rounds = Mapping[str, Sequence[Round]]
Blocks = Sequence[Sequence[Round]]
HELP = (
    "{first} leaves work behind for the next round. To reduce it: take longer rounds; claim "
    'metric="drained_throughput", which includes the drain of each variant; or let the servers settle in the second '
    'before each round ("settle timeouts" counts the rounds that began earlier)'
)
FIXED_SEED = (
    "--db-seed {seed} fixed the order of the rounds, to repeat a run; the promised error holds only for a seed that "
    "was chosen before its result was seen"
)
NUMERALS = {2: "second", 3: "third", 4: "fourth", 5: "fifth"}
NO_PROMISE = (
    "Carry-over cannot be distinguished from an effect of the variant, so the error of this claim has no bound."
)
REASONS = 3  # different reasons of void blocks that a message lists


def carry_over_lines(compared: Sequence[tuple[str, str]], carried: Sequence[CarryOver | None]) -> list[str]:
    """One line for each comparison: whether rounds are slower after one variant than after the other.

    compared: the names of candidate and baseline of each comparison. carried: the carry-over of each.
    """
    return [
        _carry_over_line(candidate, baseline, found)
        for (candidate, baseline), found in zip(compared, carried, strict=True)
    ]


def _carry_over_line(candidate: str, baseline: str, found: CarryOver | None) -> str:
    if found is None:
        return f"carry-over unknown: too few rounds of {candidate} and {baseline} followed each other"
    without = f"without carry-over {formatting.ratio(found.ratio, EQUAL)}"
    first, second = candidate, baseline
    times = 1 + found.slower, 1 + found.low, 1 + found.high
    if found.warned and found.high < 0:
        first, second = baseline, candidate
        times = 1 / times[0], 1 / times[2], 1 / times[1]
    shown = formatting.with_interval(*times, EQUAL)
    took = f"carry-over: rounds after {first} take {shown} the time of rounds after {second}, 99 % interval; {without}"
    return f"warning: {took}. {NO_PROMISE} {HELP.format(first=first)}" if found.warned else took


def drains(rounds: Rounds) -> dict[str, float]:
    """The median drain of each variant, in seconds.

    Empty if nothing drained: no round committed anything, or no other node applies the commits.
    """
    if not any(
        done.outcome.commits and done.counters.get("drain_seconds") for series in rounds.values() for done in series
    ):
        return {}
    return {
        name: statistics.median(done.counters.get("drain_seconds", 0.0) for done in series)
        for name, series in rounds.items()
    }


def _drains_more(rounds: Rounds) -> bool:
    """Whether more than the measured operations drained."""
    return any(done.outcome.span is not None for series in rounds.values() for done in series)


def speed_ratio(candidate: Sequence[Round], baseline: Sequence[Round], metric: str) -> float:
    """Candidate / baseline of a speed over pairs of rounds (Hodges-Lehmann); ``metric``: one of ``round.SPEEDS``."""
    first, second = ([float(getattr(done, metric)) for done in rounds] for rounds in (candidate, baseline))
    return estimators.factor(intervals.estimate(pairing.pairs_of(candidate, baseline, (first, second))))


def drained_ratio(rounds: Rounds, metric: str = USUAL) -> float | None:
    """Speed of the first variant / speed of the last variant, drain included.

    None if nothing drained, for a counter or a latency, and if more than the measured operations drained.
    """
    series, speed = list(rounds.values()), DRAINED.get(metric, metric)
    if _drains_more(rounds):
        return None
    return speed_ratio(series[0], series[-1], speed) if speed in SPEEDS and drains(rounds) else None


def drain_line(rounds: Rounds, metric: str) -> list[str]:
    """One line: the median drain of each variant, and for a claim about speed the ratio with or without the drain.

    The ratio includes the drain when the claim's metric leaves it out, and the reverse. ``rounds``: candidate first,
    or the fastest variant of an order first. No line if nothing drained.
    """
    medians = drains(rounds)
    if not medians:
        return []
    line = "drain until all nodes are equal (medians): "
    line += ", ".join(f"{name} {seconds:.3f} s" for name, seconds in medians.items())
    other = {**DRAINED, **{value: name for name, value in DRAINED.items()}}.get(metric)
    if not other:
        return [line]
    if _drains_more(rounds):
        return [f"{line}; includes all repetitions and the rows that populated their tables, so no ratio includes it"]
    word = "included" if metric in DRAINED else "left out"
    ratios = [
        f"{fast} / {slow} {formatting.ratio(speed_ratio(rounds[fast], rounds[slow], other), EQUAL)}"
        for fast, slow in itertools.pairwise(rounds)
    ]
    return [f"{line}; with it {word} {', '.join(ratios)}"]


def warm_up_line(means: Sequence[float], maximum: int, steady: float) -> list[str]:
    """One line when the warm-up ended at its maximum of blocks, while they still got faster; no line otherwise.

    means: the mean log cost of each warm-up block. steady: the smallest fall of it that counts as faster.
    """
    if len(means) < maximum or means[-1] > means[-2] - steady:
        return []
    faster = formatting.ratio(estimators.factor(means[-2] - means[-1]), EQUAL)
    return [f"warm-up ended after {maximum} blocks; the last block was still {faster} as fast as the one before"]


def repeat_line(times: int) -> list[str]:
    """One line on rounds that run their work several times; none if they run it once."""
    return [f"each round ran its work {times} times, to be long enough for the clock of the tool"] if times > 1 else []


def fixed_seed_line(seed: int | None) -> list[str]:
    """One line on a seed that the user chose; none if we drew it."""
    return [] if seed is None else [FIXED_SEED.format(seed=seed)]


def chosen_line(variants: int) -> list[str]:
    """One line on a claim about two of several variants that already had rounds; none for two variants."""
    if variants < 3:
        return []
    return [
        f"rounds of {variants} variants were drawn before this claim; if you chose it by their results, it is wrong up "
        f"to {variants} times as often"
    ]


def try_line(number: int, alpha: float) -> list[str]:
    """One line on a claim that was tried before, without a verdict; none for the first try."""
    if number < 2:
        return []
    nth = NUMERALS.get(number, f"{number}th")
    return [
        f"{nth} try: earlier rounds of this claim decided nothing, and each try draws new ones. The "
        f"chance that any of the tries is wrong is up to {number} times that of one ({number} in {1 / alpha:.0f})"
    ]


def dropped_line(pairs: int) -> list[str]:
    """One line on the pairs that were dropped when the arrival rate was lowered; none without any."""
    return [f"dropped {formatting.quantity(pairs, 'pair')}, because the arrival rate was too high"] if pairs else []


def round_lines(rounds: Rounds, rate: ArrivalRate | None) -> list[str]:
    """The lines on arrival rate, capacity, conflicts, latencies, the load generator, and a busy machine."""
    marked = load_generator.mark(rounds)
    capacities = {name: [done.capacity for done in many if done.capacity] for name, many in rounds.items()}
    return [
        *([rate.line] if rate else []),
        *(summary.lines(capacities) or ledger_summary.lines(rounds)),  # rounds of a capacity add up several rates
        *load_generator.line(rounds),
        *([marked] if marked else []),
        *busy_machine.lines(rounds),
    ]


def with_reasons(block: Sequence[Round]) -> list[Round]:
    """The rounds of a void block, each with a reason: its own, or the reason of the round that made the block void."""
    return [done if done.void else dataclasses.replace(done, void=f"with {reason(block)}") for done in block]


def reason(block: Sequence[Round]) -> str:
    """The first variant that made a block void, and why."""
    return next(f"{done.variant}: {done.void}" for done in block if done.void)


def void_line(blocks: Blocks) -> list[str]:
    """One line on the void rounds that were drawn again: how many of each variant, and why; none without any."""
    if not blocks:
        return []
    reasons = list(dict.fromkeys(reason(block) for block in blocks))
    more = [f"and {len(reasons) - REASONS} more"] if len(reasons) > REASONS else []
    by_variant = Counter(done.variant for block in blocks for done in block if done.void)
    counts = ", ".join(f"{name} {count}" for name, count in sorted(by_variant.items()))
    return [f"void rounds, drawn again: {counts}: {'; '.join([*reasons[:REASONS], *more])}"]
