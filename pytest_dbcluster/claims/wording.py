"""The words of a verdict: ratio, interval, claim, what could be seen, and the seed; never a bare p-value."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pytest_dbcluster.claims import critical_values
from pytest_dbcluster.claims.claim import STALLS, Claim, Outcome, Verdict

LATENCY = "ms"  # a unit of which less is faster
WORDS = {Outcome.HOLDS: "HOLDS", Outcome.FAILS: "FAILED", Outcome.INCONCLUSIVE: "INCONCLUSIVE"}

BESIDE_WORDS = {Outcome.HOLDS: "differ", Outcome.FAILS: "differ", Outcome.INCONCLUSIVE: "unclear"}


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
    """The block of lines that a verdict prints, whatever its outcome.

    ``usual`` is the metric that a claim about this load need not name. ``names`` and ``absolute`` (medians, in
    ``unit``) go candidate first; an order names all its variants.
    ``seconds_per_round`` is what one round measured, ``seconds`` the measured time of the claim if it is not
    their plain sum. Each of ``extra`` becomes a line.
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
    rest = [_error(verdict, total)]
    if absolute:
        rest.append(f"absolute medians {names[0]} {absolute[0]:.4g} v {names[1]} {absolute[1]:.4g} {unit}".rstrip())
    rest.append(f"settle timeouts {settle_timeouts}")
    return "\n  ".join([*lines, "; ".join(rest), *extra])


def _word(verdict: Verdict) -> str:
    """The outcome; of a comparison beside what the table says of it."""
    return f"{BESIDE_WORDS[verdict.outcome]} " if verdict.claim.kind == "differs" else WORDS[verdict.outcome]


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
    """The range that a claim asserts, in the same units as the measured ratio."""
    low, high = map(math.exp, claim.bounds)
    if claim.kind == STALLS:
        return "no more stalls than the other"
    if claim.kind == "differs":
        return "nothing"
    if claim.guard and math.isfinite(high):
        return f"between {percent(low)} and {percent(high)}"
    return f"more than {percent(low)}" if math.isinf(high) else f"less than {percent(high)}"


def _estimate(verdict: Verdict) -> str:
    """The ratio with its interval, and for a guard the interval that decides."""
    sequential = f"sequential {100 * (1 - 2 * verdict.alpha):.4g} % interval {_range(verdict.low, verdict.high)}"
    guard = f"; 90 % {_range(verdict.decided_low, verdict.decided_high)}" if verdict.claim.guard else ""
    return f"{percent(verdict.ratio)} (Hodges-Lehmann; {sequential}{guard})"


def _range(low: float, high: float) -> str:
    """Both ends of an interval of ratios."""
    return "not bounded yet" if low == 0 and math.isinf(high) else f"{percent(low)} .. {percent(high)}"


def _noise(verdict: Verdict, names: tuple[str, ...]) -> str:
    """How much the pairs scatter, what they could have shown, and the checks of their independence."""
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
    """How often such a verdict is wrong, or what would lead to one."""
    if verdict.claim.kind == STALLS and verdict.outcome is Outcome.HOLDS:
        excess = f"chance alone gives such an excess in more than 1 of {1 / critical_values.GUARD_LEVEL:.0f} runs"
        return f"{excess}, and stalls too rare for {verdict.pairs} pairs are not excluded"
    if verdict.outcome is Outcome.FAILS or (verdict.outcome is Outcome.HOLDS and not verdict.claim.guard):
        return f"error of this verdict <= 1 in {1 / verdict.alpha:.0f}"
    if verdict.outcome is Outcome.HOLDS:
        return f"error of this verdict <= 1 in {1 / critical_values.GUARD_LEVEL:.0f}, exactly on the margin"
    return f"needs {needs(verdict, seconds)}"


def needs(verdict: Verdict, seconds: float) -> str:
    """What would decide an inconclusive verdict whose pairs took so many seconds."""
    ways = []
    if verdict.needed_pairs is not None:
        time = f" ({verdict.needed_pairs * seconds / verdict.pairs:.0f} s)" if verdict.pairs else ""
        most = critical_values.LOOKS[-1]
        rest = f", but no run draws more than {most}: try longer rounds" if verdict.needed_pairs > most else ""
        ways.append(f"about {verdict.needed_pairs} pairs in all{time}{rest}")
    if verdict.needed_margin is not None:
        ways.append(f"a margin >= {_fraction(verdict.needed_margin)}")
    return " or ".join(ways) or "something else: no number of pairs is known to decide it"
