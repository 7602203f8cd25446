"""Decide whether a claim about paired log ratios holds, fails or is inconclusive. Pure functions.

``judge`` is called after every pair. It decides only at a look (``critical_values.LOOKS``), so the promised error
covers all looks together. The rule of one look is ``_answer``: the claim holds when its interval lies inside
``Claim.bounds``, and fails when its interval lies outside. A claim ends inconclusive at the cap, when the budget is
used, when it is futile, or when no verdict can be trusted.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence

from pytest_dbcluster.claims import claim as claims
from pytest_dbcluster.claims import critical_values, estimators
from pytest_dbcluster.claims.claim import Claim, Outcome, Verdict
from pytest_dbcluster.errors import ConfigError

ALPHA = critical_values.ALPHAS[0]
CAP = critical_values.LOOKS[-1]
FUTILITY_FROM = 28  # pairs: no claim is futile before this look
FUTILE = 0.05  # a claim with a smaller chance to be decided before the cap is futile
ROUNDING = 1e-12  # a log ratio this close to a bound counts as on the bound

Values = tuple[float, ...]
ClaimsWithValues = Sequence[tuple[Claim, Values]]

STALLS_KIND = claims.STALLS
STALL_PAIRS = 40  # pairs of the only look of a claim about stalls
STALL_HOLD_LEVEL = critical_values.GUARD_LEVEL


@dataclasses.dataclass(frozen=True)
class Terms:
    """The error, the cap and the reasons to stop under which a claim is judged.

    alpha: the maximum chance of a wrong verdict per side, one of ``critical_values.ALPHAS``. cap: the maximum number
    of pairs, 160 or less. out_of_budget: why drawing must end now; empty while it may go on. untrusted: why no verdict
    can be trusted, however many pairs are drawn; empty when verdicts can be trusted.
    """

    alpha: float = ALPHA
    cap: int = CAP
    out_of_budget: str = ""
    untrusted: str = ""


USUAL = Terms()


def judge(
    claim: Claim,
    log_ratios: Sequence[float],
    terms: Terms = USUAL,
    *,
    orders: Sequence[bool] | None = None,
    times: tuple[Sequence[float], Sequence[float]] | None = None,
) -> Verdict | None:
    """Return the verdict after these pairs, or None: then draw another pair and call again.

    None between two looks, and at a look that does not decide. log_ratios: log(candidate / baseline) of each pair.
    orders: for each pair whether the baseline ran first. times: seconds per operation of each round of baseline and
    candidate, to count stalls. Raises ConfigError for an alpha without critical values, ValueError for a nan.
    """
    values = tuple(map(estimators.bounded, log_ratios))
    decision = _decide([(claim, values)], terms)
    if decision is None:
        return None
    verdict = _verdict(*decision, claim, values, terms.alpha)
    if orders is not None:
        effect = estimators.factor(estimators.order_effect(values, orders)) - 1
        verdict = dataclasses.replace(verdict, order_effect=effect)
    if times is not None:
        verdict = dataclasses.replace(verdict, stalls=estimators.stall_test(*times)[:2])
    return inconclusive(verdict, terms.untrusted)


def replay(
    claim: Claim,
    log_ratios: Sequence[float],
    terms: Terms = USUAL,
    *,
    orders: Sequence[bool] | None = None,
    times: tuple[Sequence[float], Sequence[float]] | None = None,
) -> Verdict | None:
    """Return the verdict of a claim whose pairs are drawn already, or None when these pairs decide nothing.

    Takes the arguments of ``judge``. Judges the looks one by one; the first look that decides gives the verdict. A used
    budget counts only after all pairs. So a claim that is asked second gets the verdict it would have got first.
    """
    past = dataclasses.replace(terms, out_of_budget="")

    def judged(look: int) -> Verdict | None:
        past_orders = None if orders is None else orders[:look]
        past_times = None if times is None else (times[0][:look], times[1][:look])
        return judge(claim, log_ratios[:look], past, orders=past_orders, times=past_times)

    return _first(judged, len(log_ratios), terms.cap) or judge(claim, log_ratios, terms, orders=orders, times=times)


def judge_ordered(
    log_ratios_per_neighbour: Sequence[Sequence[float]], terms: Terms = USUAL, *, step: float = 0.0
) -> Verdict | None:
    """Return the verdict on an order of variants, slowest first, or None: then draw another block and call again.

    log_ratios_per_neighbour: for each step the log(faster / slower) of each block. The order holds when every step
    holds at ``alpha``; an intersection-union test needs no correction. It fails when one step fails at ``alpha`` /
    number of steps (Bonferroni). The verdict has the figures of the smallest step, and the verdicts of all steps in
    ``neighbours``. Raises ConfigError for fewer than 2 or more than 5 variants, ValueError for series of different
    lengths.
    """
    steps = len(log_ratios_per_neighbour)
    if not 1 <= steps <= critical_values.MAX_STEPS:
        raise ConfigError(f"ordered takes 2 to {critical_values.MAX_STEPS + 1} variants, not {steps + 1}")
    if len(set(map(len, log_ratios_per_neighbour))) > 1:
        raise ValueError("every step of an order needs the same number of pairs")
    claim = claims.ordered(step)
    series = [tuple(map(estimators.bounded, values)) for values in log_ratios_per_neighbour]
    decision = _decide([(claim, values) for values in series], terms)
    if decision is None:
        return None
    parts = tuple(inconclusive(_verdict(*decision, claim, values, terms.alpha), terms.untrusted) for values in series)
    smallest = weakest(parts)
    where = f" (the smallest step, {smallest + 1} of {steps})" if steps > 1 else ""
    return dataclasses.replace(parts[smallest], reason=parts[smallest].reason + where, neighbours=parts)


def weakest(steps: Sequence[Verdict]) -> int:
    """The 0-based number of the step with the smallest ratio."""
    return min(range(len(steps)), key=lambda k: steps[k].ratio)


def replay_ordered(
    log_ratios_per_neighbour: Sequence[Sequence[float]], terms: Terms = USUAL, *, step: float = 0.0
) -> Verdict | None:
    """``replay`` for an order: takes the arguments of ``judge_ordered``, whose blocks are drawn already."""
    past = dataclasses.replace(terms, out_of_budget="")

    def judged(look: int) -> Verdict | None:
        return judge_ordered([values[:look] for values in log_ratios_per_neighbour], past, step=step)

    drawn = min(map(len, log_ratios_per_neighbour), default=0)
    return _first(judged, drawn, terms.cap) or judge_ordered(log_ratios_per_neighbour, terms, step=step)


def _first(judged: Callable[[int], Verdict | None], drawn: int, cap: int) -> Verdict | None:
    """The verdict of the first look that decides, among the looks that ``drawn`` pairs have reached."""
    return next(filter(None, (judged(look) for look in critical_values.LOOKS if look <= min(drawn, cap))), None)


def _decide(asked: ClaimsWithValues, terms: Terms) -> tuple[Outcome, str] | None:
    """Outcome and reason after these pairs; None to draw on. Several claims hold together, or one of them fails."""
    drawn = len(asked[0][1])
    alpha, cap = terms.alpha, min(terms.cap, CAP)
    upcoming = critical_values.next_look(drawn)
    last = upcoming is None or upcoming > cap
    if drawn in critical_values.LOOKS and drawn <= cap:
        answers = [_answer(claim, values, alpha, alpha / len(asked)) for claim, values in asked]
        failed = [answer for answer in answers if answer and answer[0] is Outcome.FAILS]
        if failed or all(answers):
            return (failed or answers)[0]
        if drawn >= FUTILITY_FROM and not last and _chance(asked, alpha, cap) < FUTILE:
            return (
                Outcome.INCONCLUSIVE,
                f"futile: chance to decide before the cap of {cap} pairs < {100 * FUTILE:.0f} %",
            )
    if terms.out_of_budget:
        return Outcome.INCONCLUSIVE, terms.out_of_budget
    if last and drawn >= min(cap, critical_values.LOOKS[0]):
        return Outcome.INCONCLUSIVE, f"cap of {cap} pairs"
    return None


def _answer(claim: Claim, values: Values, alpha: float, alpha_fail: float) -> tuple[Outcome, str] | None:
    """Compare the intervals of one look with the bounds of the claim; None when the look does not decide.

    ``alpha`` is the level to hold and ``alpha_fail`` the level to fail, both one-sided.
    """
    low, high = claim.bounds
    hold = estimators.interval(values, claim.hold_level(alpha))
    if claim.kind == "differs":
        apart = _clear(hold[0], low) or _clear(high, hold[1])
        return (Outcome.HOLDS, "interval excludes equal speed") if apart else None
    if (math.isinf(low) or _clear(hold[0], low)) and (math.isinf(high) or _clear(high, hold[1])):
        return Outcome.HOLDS, "interval lies inside the claim"
    fail = estimators.interval(values, alpha_fail)
    if _clear(low, fail[1]) or _clear(fail[0], high):
        return Outcome.FAILS, f"interval lies {'below' if _clear(low, fail[1]) else 'above'} the claim"
    return None


def _clear(greater: float, less: float) -> bool:
    """Whether one number is above another by more than rounding errors; pairs without noise can lie on a bound."""
    return greater > less + ROUNDING


def _chance(asked: ClaimsWithValues, alpha: float, cap: int) -> float:
    """Chance that the last look before the cap decides, if later pairs resemble the drawn pairs."""
    end = critical_values.last_look(cap) or cap
    holds, fails = [], 0.0
    for claim, values in asked:
        level, sd = claim.hold_level(alpha), estimators.pair_sd(values)
        centre = estimators.hodges_lehmann(values)
        above, below = centre - claim.bounds[0], claim.bounds[1] - centre
        held = [estimators.chance_beyond(gap, sd, len(values), level, end) for gap in (above, below)]
        if claim.kind == "differs":
            holds.append(sum(held))
            continue
        holds.append(max(0.0, sum(held) - 1))
        fails += sum(estimators.chance_beyond(-gap, sd, len(values), alpha / len(asked), end) for gap in (above, below))
    return min(holds) + fails


def _verdict(outcome: Outcome, reason: str, claim: Claim, values: Values, alpha: float) -> Verdict:
    """The verdict with every figure that its message shows."""
    centre = estimators.hodges_lehmann(values)
    low, high = estimators.around(estimators.interval(values, alpha), centre)
    decided = estimators.around(estimators.interval(values, claim.hold_level(alpha)), centre)
    detectable = estimators.detectable(values, claim.hold_level(alpha))
    first, second = estimators.halves(values)
    is_inconclusive = outcome is Outcome.INCONCLUSIVE
    return Verdict(
        outcome=outcome,
        claim=claim,
        pairs=len(values),
        ratio=estimators.factor(centre),
        low=estimators.factor(low),
        high=estimators.factor(high),
        decided_low=estimators.factor(decided[0]),
        decided_high=estimators.factor(decided[1]),
        reason=reason,
        detectable=estimators.factor(detectable) - 1,
        needed_pairs=_pairs_needed(claim, values, alpha) if is_inconclusive else None,
        needed_margin=_margin_needed(claim, centre, detectable) if is_inconclusive else None,
        pair_sd=estimators.pair_sd(values),
        halves=(estimators.factor(first), estimators.factor(second)),
        order_effect=math.nan,
        lag1=estimators.lag1(values),
        alpha=alpha,
    )


def _pairs_needed(claim: Claim, values: Values, alpha: float) -> int | None:
    """Pairs that would decide with power .8 if the estimate were the true ratio; None if it lies on a bound."""
    if len(values) < 2:
        return None
    centre = estimators.hodges_lehmann(values)
    distance = min(abs(centre - bound) for bound in claim.bounds)
    low, high = claim.bounds
    inside = claim.kind == "differs" or low < centre < high
    needed = estimators.pairs_needed(distance, estimators.pair_sd(values), claim.hold_level(alpha) if inside else alpha)
    return max(needed, len(values) + 1) if needed else None


def _margin_needed(claim: Claim, centre: float, detectable: float) -> float | None:
    """The margin, a fraction, at which a guard would hold with power .8 if the estimate were the true ratio.

    None for a claim that is not a guard, and when nothing is detectable. ``centre`` and ``detectable`` are log ratios.
    """
    if not claim.guard or math.isinf(detectable):
        return None
    shift = abs(centre) if claim.kind == "same_as" else max(0.0, -centre)
    return -math.expm1(-(shift + detectable))


def inconclusive(verdict: Verdict, untrusted: str) -> Verdict:
    """The verdict, or an inconclusive one when ``untrusted`` says why no number of pairs could decide."""
    if not untrusted:
        return verdict
    return dataclasses.replace(
        verdict, outcome=Outcome.INCONCLUSIVE, reason=untrusted, needed_pairs=None, needed_margin=None
    )


def judge_stalls(candidate: Sequence[float], baseline: Sequence[float], terms: Terms = USUAL) -> Verdict | None:
    """Judge whether the candidate stalls more often than the baseline, at one look after 40 pairs.

    The arguments are seconds per operation of each round. Only the first 40 pairs count (fewer at a lower cap), so
    pairs drawn for other claims make no difference. With the chance of so many stalls from ``estimators.stall_test``:
    fails at ``alpha`` or less; holds above .05. Inconclusive between the two, when 40 pairs may not be drawn, and when
    ``terms.untrusted`` gives a reason. None while pairs are missing.
    """
    wanted = min(terms.cap, STALL_PAIRS)
    candidate, baseline = candidate[:wanted], baseline[:wanted]
    too_few = ""
    if len(candidate) < STALL_PAIRS:
        too_few = f"cap of {terms.cap} pairs" if len(candidate) == wanted else terms.out_of_budget
        if not too_few:
            return None
    times = (baseline, candidate)
    ratios = [estimators.log_ratio(b, c) for b, c in zip(baseline, candidate, strict=True)]
    base = judge(claims.differs(), ratios, Terms(terms.alpha, out_of_budget=too_few or "one look"), times=times)
    assert base is not None
    baseline_stalls, candidate_stalls, chance = estimators.stall_test(baseline, candidate)
    outcome, reason = _stall_answer(chance, terms.alpha, too_few)
    verdict = dataclasses.replace(
        base,
        outcome=outcome,
        claim=Claim(STALLS_KIND, 0.0),
        reason=f"{reason}: {candidate_stalls} v {baseline_stalls}",
        stalls=(baseline_stalls, candidate_stalls),
        needed_pairs=STALL_PAIRS if too_few and outcome is Outcome.INCONCLUSIVE else None,
        needed_margin=None,
    )
    return inconclusive(verdict, terms.untrusted)


def _stall_answer(chance: float, alpha: float, too_few: str) -> tuple[Outcome, str]:
    """Outcome and reason for this chance of so many stalls; ``too_few``: why 40 pairs are not there, else empty."""
    if chance <= alpha:
        return Outcome.FAILS, "more stalls than chance explains"
    if chance > STALL_HOLD_LEVEL and not too_few:
        return Outcome.HOLDS, "no more stalls than chance explains"
    return Outcome.INCONCLUSIVE, too_few or "chance may or may not explain the stalls"
