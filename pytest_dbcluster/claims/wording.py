"""The message of a verdict: its sentence, what to do next, the main figures, then the details.

The sentence (``Claim.sentence``) needs no knowledge of this package. The details have the estimator, the noise, the
order and the seed. ``brief`` leaves them out. No message has a bare p-value.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from pytest_dbcluster import formatting
from pytest_dbcluster.claims import cluster_difference, critical_values
from pytest_dbcluster.claims.claim import EQUAL, UNDECIDED, Claim, Outcome, Verdict, by_metric
from pytest_dbcluster.claims.critical_values import GUARD_BOUND

DETAILS = "  details:"  # the line of a message before its details
UNBOUNDED = "the error of this verdict has no bound: carry-over was found"
REFUTED_NEXT = "the page shows which counters differ between the variants"
TOO_FEW = "more pairs: these are too few to estimate how many"
NO_WAY = "a different test: more pairs would not help"
TOO_CLOSE = "a different test: the ratio is closer to the bound than {} instances of each variant can differ"
INSTANCES = 4  # of a variant: the mean of more of them differs little less
FAR_TOO_MANY = "a different test: the ratio is so close to the bound that it would take about {} pairs"
LONGEST = 20  # times as long: rounds that a message advises
LATENCY = "ms"  # a unit in which lower values are faster
SPARE, STEP = 1.25, 10  # the budget of a claim / the seconds it is expected to take; seconds to which it is rounded up
# What a test writes, by the first word of a workload's name.
TIMED = {"sql": "SQLFiles", "sysbench": "SysBench", "tpcc": "TPCC"}


def state_count(word: str, number: int) -> str:
    """A number of claims or tests with their state: ``1 holds``, ``2 hold``, ``1 broken``."""
    return f"{number} {'hold' if word == 'holds' and number != 1 else word}"


def message(
    verdict: Verdict,
    *,
    names: tuple[str, ...],
    metric: str,
    usual: str = "throughput",
    seconds_per_round: float,
    seed: int,
    absolute: tuple[float, float] | None = None,
    settle_timeouts: int = 0,
    unit: str = "",
    seconds: float | None = None,
    load: str = "",
    instances: int = 1,
    carried: bool = False,
    extra: Sequence[str] = (),
) -> str:
    """The lines that a verdict prints, as one text.

    names: as in ``Claim.call``. usual: the default metric of the workload. seconds_per_round: measured seconds of one
    round. seconds: measured seconds of the whole claim, if it is not rounds times seconds_per_round. seed: the seed of
    the order of rounds. absolute: medians of candidate and baseline, in ``unit``. settle_timeouts: rounds whose servers
    did not settle in time. load: the name of the workload. instances: those of each variant. carried: whether
    carry-over was found. extra: more lines.
    """
    kind = verdict.claim.of_kind
    variants, inverse = max(2, len(names)) if kind.paired else 2, ", compared as a speed" if unit == LATENCY else ""
    total = verdict.pairs * variants * seconds_per_round if seconds is None else seconds
    blocks = "pairs" if variants == 2 else "blocks"
    figures = [f"{verdict.pairs} {blocks} in {total:.0f} s"]
    if absolute:
        shown = [f"{name} {formatting.amount(value)}" for name, value in zip(names, absolute, strict=False)]
        figures.append(f"medians {', '.join(shown)} {unit}".rstrip())
    if verdict.outcome is not Outcome.INCONCLUSIVE:
        figures.append(UNBOUNDED if carried else _error(verdict))
    details = [
        f"{verdict.claim.call(names, metric, usual)}   metric {metric}{inverse}   "
        f"{verdict.pairs} {blocks} x {variants} x {seconds_per_round:.2g} s = {total:.0f} s, "
        f"look {verdict.look} of {len(kind.looks(1))}, seed {seed}",
        f"estimate {_estimate(verdict)}   -> {verdict.reason}",
        _noise(verdict, names),
        *(f"step {k}: {_estimate(part)}" for k, part in enumerate(verdict.neighbours, 1) if len(names) > 2),
        f"settle timeouts {settle_timeouts}",
        *extra,
    ]
    following = _next(verdict, total, load, variants, instances)
    first = [_first(verdict, names, metric, unit), *following, "; ".join(figures)]
    return "\n".join(["\n  ".join(first), "\n  ".join([DETAILS, *details])])


def brief(text: str) -> str:
    """The message, or several messages, without their details."""
    kept, hidden = [], False
    for line in text.split("\n"):
        hidden = line == DETAILS or (hidden and line.startswith(" "))
        kept += [] if hidden else [line]
    return "\n".join(kept)


def _first(verdict: Verdict, names: tuple[str, ...], metric: str, unit: str) -> str:
    """The outcome, the sentence, what was measured, and what was claimed."""
    claim = verdict.claim
    kind, outcome = claim.of_kind, verdict.outcome
    word = "COMPARED" if kind.claims_nothing else kind.word(outcome).upper()
    sentence = claim.sentence(outcome, names, metric, unit).removeprefix(UNDECIDED)
    return f"{word}: {sentence}; {_measurement(verdict)}, claimed {kind.range_text(claim)}"


def _measurement(verdict: Verdict) -> str:
    """The ratio with the interval that decided."""
    if math.isnan(verdict.ratio):
        return "measured nothing"
    held = verdict.claim.guard and verdict.outcome is Outcome.HOLDS
    ends = (verdict.decided_low, verdict.decided_high) if held else None
    within = interval(verdict, ends)
    if within != formatting.NO_INTERVAL:
        within = f"{'90 %' if held else level(verdict)} interval {within}"
    step = " in the smallest step" if len(verdict.neighbours) > 1 else ""
    return f"measured {ratio(verdict)}{step} ({within})"


def _next(verdict: Verdict, seconds: float, load: str, variants: int, instances: int) -> list[str]:
    """What to do after a claim that does not hold; before it, why it is inconclusive."""
    if verdict.outcome is Outcome.INCONCLUSIVE:
        return [f"why: {verdict.reason}", f"next: it needs {needs(verdict, seconds, load, variants, instances)}"]
    return [f"next: {REFUTED_NEXT}"] if verdict.outcome is Outcome.FAILS else []


def _estimate(verdict: Verdict) -> str:
    """The ratio with its sequential interval, and for a guard also the 90 % interval that lets it hold."""
    estimator = "Hodges-Lehmann"
    if verdict.total is not None:
        estimator = f"median pair, totals {formatting.ratio(verdict.total, verdict.claim.limits)}"
    return f"{estimate(verdict)}, {estimator}, sequential {level(verdict)} interval{guard_interval(verdict)}"


def estimate(verdict: Verdict) -> str:
    """The ratio with its sequential interval, ``1.84x (1.18 .. 3.08)``; ``-`` without pairs."""
    if math.isnan(verdict.ratio):
        return formatting.NOTHING
    return f"{ratio(verdict)} ({interval(verdict)})"


def ratio(verdict: Verdict) -> str:
    """The ratio, ``1.84x``; a dash if nothing was measured."""
    return verdict.claim.of_kind.figure_text(verdict.ratio, verdict.claim.limits)


def interval(verdict: Verdict, ends: tuple[float, float] | None = None) -> str:
    """The interval of the ratio, ``1.18 .. 3.08``; ``no interval yet`` before there are enough pairs.

    ends: those of another interval of the verdict; by default of the sequential one.
    """
    low, high = ends or (verdict.low, verdict.high)
    return verdict.claim.of_kind.interval_text(low, high, verdict.claim.limits)


def level(verdict: Verdict) -> str:
    """The confidence level of the sequential interval: 1 - 2 alpha, because alpha is the error of one side."""
    return confidence(verdict.claim.of_kind.sides * verdict.alpha)


def confidence(error: float) -> str:
    """The level of an interval with this error, such as ``99.9 %``; never rounded to 100 %."""
    return f"{100 * (1 - error):.{max(4, -math.floor(math.log10(error)))}g} %"


def guard_interval(verdict: Verdict) -> str:
    """The 90 % interval of a guard, after a comma; empty for other claims."""
    if not verdict.claim.guard:
        return ""
    return f", 90 % {interval(verdict, (verdict.decided_low, verdict.decided_high))}"


def _noise(verdict: Verdict, names: tuple[str, ...]) -> str:
    """The scatter of the pairs, the difference they could show, and the checks of their independence."""
    first, second = verdict.halves
    parts = [
        f"noise: pair sd {_fraction(verdict.pair_sd)}, could see differences >= {_detectable(verdict)} (power .8)",
        f"halves {formatting.ratio(first)} / {formatting.ratio(second)}",
        f"order AB / BA {formatting.ratio(1 + verdict.order_effect, EQUAL)}",
        f"lag-1 r {'unknown' if math.isnan(verdict.lag1) else format(verdict.lag1, '+.2f')}",
    ]
    if verdict.stalls is not None:
        counts = verdict.stalls if verdict.claim.of_kind.candidate_last else verdict.stalls[::-1]
        shown = (f"{name} {count}/{verdict.pairs}" for name, count in zip(names, counts, strict=True))
        parts.append(f"stalls {' v '.join(shown)}")
    return f"{parts[0]}; {', '.join(parts[1:])}"


def _detectable(verdict: Verdict) -> str:
    """The smallest difference that this many pairs show; a range if they do not show their noise."""
    least, most = _fraction(verdict.detectable), verdict.detectable_most
    return least if most is None or _fraction(most) == least else f"{least} to {_fraction(most)}"


def _fraction(value: float) -> str:
    """A fraction as a percentage, unless it is infinite."""
    return "unknown" if math.isinf(value) else f"{100 * value:.1f} %"


def _error(verdict: Verdict) -> str:
    """The error rate of a verdict that is not inconclusive."""
    if verdict.outcome is Outcome.HOLDS and verdict.claim.guard:
        wrong = f"1 time in {1 / critical_values.GUARD_LEVEL:.0f} if the true ratio equals the margin"
        wrong = f"{wrong} (1 in {1 / GUARD_BOUND:.0f} if rounds depend on each other)"
    else:
        alpha = verdict.alpha * (2 if verdict.claim.of_kind.claims_nothing else 1)  # to either side
        wrong = f"1 time in {1 / alpha:.0f}"
    return f"this verdict is wrong at most {wrong}{_unless(verdict.claim)}"


def _unless(claim: Claim) -> str:
    """The condition of a verdict about variants on separate clusters; empty if they share one."""
    if not claim.apart:
        return ""
    return (
        f", unless equal clusters differ by more than {cluster_difference.percent(claim.apart)} "
        f"(1 in {cluster_difference.ONE_IN})"
    )


def budget(seconds: float) -> int:
    """The value of ``--db-budget`` for a claim that is expected to take this many seconds."""
    return max(STEP, STEP * math.ceil(SPARE * seconds / STEP))


def needs(verdict: Verdict, seconds: float, load: str = "", variants: int = 2, instances: int = 1) -> str:
    """What would decide an inconclusive claim.

    seconds: the measured time of its pairs so far. load: the name of its workload. variants: how many rounds a pair
    has. instances: the clusters of each variant.
    """
    if own := verdict.claim.of_kind.needs(verdict):
        return own
    ways = []
    if verdict.needed_pairs is not None and verdict.needed_pairs > LONGEST * critical_values.LOOKS[-1]:
        ways.append(FAR_TOO_MANY.format(verdict.needed_pairs))
    elif verdict.needed_pairs is not None:
        time = f" ({verdict.needed_pairs * seconds / verdict.pairs:.0f} s)" if verdict.pairs else ""
        advice = _longer_rounds(verdict.needed_pairs, verdict.pairs, seconds, load, variants)
        ways.append(f"about {verdict.needed_pairs} pairs in all{time}{advice}")
    ways += [margin] if (margin := needed_margin(verdict)) else []
    if verdict.claim.apart and instances < INSTANCES:
        ways.append(f"more instances of each variant (measure(..., instances={INSTANCES}))")
    elif verdict.claim.apart and not ways and verdict.pairs > 1:
        ways.append(TOO_CLOSE.format(instances))
    return " or ".join(ways) or (NO_WAY if verdict.pairs > 1 else TOO_FEW)


def _longer_rounds(needed: int, pairs: int, seconds: float, load: str, variants: int) -> str:
    """What to change in the test if no run draws so many pairs; empty if a run does.

    Rounds that are n times as long scatter less, by the root of n. The whole time stays the same.
    """
    if needed <= (maximum := critical_values.LOOKS[-1]):
        return ""
    times, tool = math.ceil(needed / maximum), load.partition(" ")[0]
    change = ""
    if tool == "mysqlslap":
        change = f" (MySQLSlap(..., queries={times} times as many))"
    elif tool in TIMED and pairs:
        change = f" ({TIMED[tool]}(..., seconds={math.ceil(times * seconds / pairs / variants)}))"
    return f", but no run draws more than {maximum}: take rounds {times} times as long in the test{change}"


def needed_margin(verdict: Verdict) -> str:
    """The margin with which an inconclusive guard would hold; empty if there is none."""
    return "" if verdict.needed_margin is None else f"a margin >= {_fraction(verdict.needed_margin)}"


def losses(names: Sequence[str], ratios: tuple[float, float], metric: str, unit: str) -> str:
    """Both ratios that ``fades`` compares: ``many_far is 0.42x as fast as many, one_far 0.21x as fast as one``.

    names: the two pairs as in ``Claim.call``. ratios: candidate / baseline of the second pair, and of the first.
    """
    second, first = (formatting.ratio(ratio, EQUAL) for ratio in ratios)
    of = by_metric(metric, unit)
    return f"{names[3]} is {second} as fast as {names[2]}, {names[1]} {first} as fast as {names[0]}{of}"
