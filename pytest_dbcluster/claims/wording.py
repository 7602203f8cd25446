"""The message of a verdict: ratio, interval, claim, detectable difference and seed; never a bare p-value."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pytest_dbcluster.claims import critical_values
from pytest_dbcluster.claims.claim import STALLS, Claim, Outcome, Verdict

LATENCY = "ms"  # a unit in which lower values are faster
WORDS = {Outcome.HOLDS: "HOLDS", Outcome.FAILS: "FAILED", Outcome.INCONCLUSIVE: "INCONCLUSIVE"}
COMPARISON_WORDS = {Outcome.HOLDS: "differ", Outcome.FAILS: "differ", Outcome.INCONCLUSIVE: "unclear"}


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
    extra: Sequence[str] = (),
) -> str:
    """The lines that a verdict prints, as one text.

    names: candidate and baseline, or all variants of an order, slowest first. usual: the default metric of the
    workload. seconds_per_round: measured seconds of one round. seconds: measured seconds of the whole claim, if it is
    not rounds times seconds_per_round. seed: the seed of the order of rounds. absolute: medians of candidate and
    baseline, in ``unit``. settle_timeouts: rounds whose servers did not settle in time. extra: more lines.
    """
    variants = max(2, len(names))
    total = verdict.pairs * variants * seconds_per_round if seconds is None else seconds
    blocks = "pairs" if variants == 2 else "blocks"
    inverse = ", compared as a speed" if unit == LATENCY else ""
    lines = [
        f"{_word(verdict)} {verdict.claim.call(names, metric, usual)}   metric {metric}{inverse}   "
        f"{verdict.pairs} {blocks} x {variants} x {seconds_per_round:.2g} s = {total:.0f} s, "
        f"look {verdict.look} of {len(critical_values.LOOKS)}, seed {seed}",
        f"measured {_estimate(verdict)}   claimed {claimed(verdict.claim)}   -> {verdict.reason}",
        _noise(verdict, names),
    ]
    lines += [f"step {k}: {_estimate(part)}" for k, part in enumerate(verdict.neighbours, 1) if len(names) > 2]
    last_line = [_error(verdict, total)]
    if absolute:
        medians = f"absolute medians {names[0]} {absolute[0]:.4g} v {names[1]} {absolute[1]:.4g} {unit}"
        last_line.append(medians.rstrip())
    last_line.append(f"settle timeouts {settle_timeouts}")
    return "\n  ".join([*lines, "; ".join(last_line), *extra])


def _word(verdict: Verdict) -> str:
    """The first word of the message: the outcome, or for a comparison without a claim whether the variants differ."""
    return f"{COMPARISON_WORDS[verdict.outcome]} " if verdict.claim.kind == "differs" else WORDS[verdict.outcome]


def percent(ratio: float) -> str:
    """A ratio as a signed difference, and from double on as a multiple."""
    if math.isnan(ratio):
        return "unknown"
    if math.isinf(ratio):
        return "unbounded"
    if ratio >= 2:
        return f"x{ratio:.3g}"
    difference = round((ratio - 1) * 100, 1) + 0.0
    return f"{difference:+.1f} %" if abs(difference) < 10 else f"{difference:+.0f} %"


def claimed(claim: Claim) -> str:
    """The range of ratios that a claim asserts, printed like the measured ratio."""
    low, high = map(math.exp, claim.bounds)
    if claim.kind == STALLS:
        return "no more stalls than the other"
    if claim.kind == "differs":
        return "nothing"
    if claim.guard and math.isfinite(high):
        return f"between {percent(low)} and {percent(high)}"
    return f"more than {percent(low)}" if math.isinf(high) else f"less than {percent(high)}"


def _estimate(verdict: Verdict) -> str:
    """The ratio with its sequential interval, and for a guard also the 90 % interval that lets it hold."""
    sequential = f"sequential {100 * (1 - 2 * verdict.alpha):.4g} % interval {_range(verdict.low, verdict.high)}"
    guard = f"; 90 % {_range(verdict.decided_low, verdict.decided_high)}" if verdict.claim.guard else ""
    return f"{percent(verdict.ratio)} (Hodges-Lehmann; {sequential}{guard})"


def _range(low: float, high: float) -> str:
    """An interval of ratios, ``+3.1 % .. +9.0 %``."""
    return "not bounded yet" if low == 0 and math.isinf(high) else f"{percent(low)} .. {percent(high)}"


def _noise(verdict: Verdict, names: tuple[str, ...]) -> str:
    """The scatter of the pairs, the difference they could show, and the checks of their independence."""
    first, second = verdict.halves
    parts = [
        f"noise: pair sd {_fraction(verdict.pair_sd)}, "
        f"could see differences >= {_fraction(verdict.detectable)} (power .8)",
        f"halves {percent(first)} / {percent(second)}",
        f"order AB-BA {percent(1 + verdict.order_effect)}",
        f"lag-1 r {'unknown' if math.isnan(verdict.lag1) else format(verdict.lag1, '+.2f')}",
    ]
    if verdict.stalls is not None:
        baseline, candidate = verdict.stalls
        parts.append(f"stalls {names[0]} {candidate}/{verdict.pairs} v {names[1]} {baseline}/{verdict.pairs}")
    return f"{parts[0]}; {', '.join(parts[1:])}"


def _fraction(value: float) -> str:
    """A fraction as a percentage, unless it is infinite."""
    return "unknown" if math.isinf(value) else f"{100 * value:.1f} %"


def _error(verdict: Verdict, seconds: float) -> str:
    """The error rate of the verdict, or what would decide an inconclusive claim."""
    if verdict.claim.kind == STALLS and verdict.outcome is Outcome.HOLDS:
        excess = f"chance alone gives such an excess in more than 1 of {1 / critical_values.GUARD_LEVEL:.0f} runs"
        return f"{excess}; stalls too rare to appear in {verdict.pairs} pairs remain possible"
    if verdict.outcome is Outcome.FAILS or (verdict.outcome is Outcome.HOLDS and not verdict.claim.guard):
        return f"error of this verdict <= 1 in {1 / verdict.alpha:.0f}"
    if verdict.outcome is Outcome.HOLDS:
        return f"error of this verdict <= 1 in {1 / critical_values.GUARD_LEVEL:.0f}, exactly on the margin"
    return f"needs {needs(verdict, seconds)}"


def needs(verdict: Verdict, seconds: float) -> str:
    """What would decide an inconclusive claim; ``seconds`` is the measured time of its pairs so far."""
    ways = []
    if verdict.needed_pairs is not None:
        time = f" ({verdict.needed_pairs * seconds / verdict.pairs:.0f} s)" if verdict.pairs else ""
        maximum = critical_values.LOOKS[-1]
        advice = f", but no run draws more than {maximum}: try longer rounds" if verdict.needed_pairs > maximum else ""
        ways.append(f"about {verdict.needed_pairs} pairs in all{time}{advice}")
    if verdict.needed_margin is not None:
        ways.append(f"a margin >= {_fraction(verdict.needed_margin)}")
    return " or ".join(ways) or "something else: no number of pairs is known to decide it"
