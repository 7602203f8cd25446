"""Decide whether a claim about two variants holds, fails or is inconclusive. Pure functions.

``judge`` is called after every block. It decides only at a look (``critical_values.looks``), so the promised error
covers all looks together. The rule of one look is ``_answer``: the claim holds when its interval lies inside
``Claim.hold_bounds``, and fails when its interval lies outside of ``Claim.fail_bounds``. A claim ends inconclusive at
the cap, when the budget is used, and when it is futile. It does so too if void rounds depend on the variant, or if
equal clusters can differ as much. The last reason is that no verdict can be trusted.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence

from pytest_dbcluster import formatting
from pytest_dbcluster.claims import cluster_difference, counts, critical_values, estimators, intervals, power
from pytest_dbcluster.claims.block_order import PER_OPENING
from pytest_dbcluster.claims.claim import Claim, Outcome, Verdict
from pytest_dbcluster.claims.pairs import Pairs

ALPHA = critical_values.ALPHAS[0]
CAP = critical_values.LOOKS[-1]
FUTILITY_FROM = 28  # pairs: no claim is futile before this look
REST_FUTILE_FROM = 14  # pairs: before this look we do not give up the rest of a budget, except for guards
FUTILE = 0.01  # a claim with a smaller chance to be decided before the cap, or within its budget, is futile
CHANCE_FROM = 17  # pairs: the chance to decide at an earlier look is not known
AFTER_WIDER = 1.5  # most pairs of a guard / those that first showed its wider margin
RARELY = f"chance < {100 * FUTILE:.0f} %"
MAX_UNLIKE = 0.03  # of a variant's rounds: how far the void rounds of two variants may differ in number
ONE_VOID_FROM = critical_values.RANKS_FROM  # pairs: from here on they may differ by one in any case

ClaimsWithPairs = Sequence[tuple[Claim, Pairs]]
Times = tuple[Sequence[float], Sequence[float]]


@dataclasses.dataclass(frozen=True)
class Terms:
    """The error, the cap and the reasons to stop under which a claim is judged."""

    alpha: float = ALPHA
    """The maximum chance of a wrong verdict per side, one of ``critical_values.ALPHAS``."""

    cap: int = CAP
    """The maximum number of pairs, 160 or less."""

    out_of_budget: str = ""
    """Why drawing must end now; empty while it may go on."""

    untrusted: str = ""
    """Why no verdict can be trusted, however many pairs are drawn; empty when verdicts can be trusted."""

    reachable: int = CAP
    """The number of pairs that the budget allows at the pace so far."""

    budget: str = ""
    """The budget, as the user calls it."""

    wider: float = 0.0
    """A wider margin of a guard: the guard is not futile as long as its interval may still show this margin.

    It ends at a look that shows it, after ``AFTER_WIDER`` times as many pairs as showed it first.
    """


USUAL = Terms()


def judge(
    claim: Claim,
    drawn: Pairs | Sequence[Pairs],
    terms: Terms = USUAL,
    *,
    times: Times | None = None,
    apart: Sequence[float] = (),
) -> Verdict | None:
    """Return the verdict after these pairs, or None: then draw another block and call again.

    None between two looks, and at a look that does not decide. drawn: the pairs, or those of each comparison of the
    claim, in the order in which a test writes them. times: seconds per operation of each round of baseline and
    candidate, to count stalls. apart: of each comparison as in ``Claim``; empty if all variants share a cluster. Of
    several comparisons the verdict has the figures of the smallest ratio, the largest ``apart``, and all verdicts in
    ``neighbours``. Raises ConfigError for an alpha without critical values, ValueError for comparisons of different
    lengths.
    """
    claims = [(claim, drawn)] if isinstance(drawn, Pairs) else claim.of_kind.subclaims(claim, drawn, apart)
    if len({len(pairs) for _, pairs in claims}) > 1:
        raise ValueError("every comparison of a claim needs the same number of pairs")
    decision = _decide(claims, terms)
    if decision is None:
        return None
    parts = tuple(inconclusive(complete(*decision, one, pairs, terms.alpha), terms.untrusted) for one, pairs in claims)
    if len(parts) > 1:
        return _combine(claim, parts)
    return parts[0] if times is None else dataclasses.replace(parts[0], stalls=estimators.count_stalls(*times))


def _combine(claim: Claim, parts: tuple[Verdict, ...]) -> Verdict:
    """The verdict of several comparisons that were judged together."""
    smallest = weakest(parts)
    reason = f"{parts[smallest].reason} (the smallest step, {smallest + 1} of {len(parts)})"
    whole = dataclasses.replace(claim, apart=max(part.claim.apart for part in parts))
    return dataclasses.replace(parts[smallest], claim=whole, reason=reason, neighbours=parts)


def replay(
    claim: Claim,
    drawn: Pairs | Sequence[Pairs],
    terms: Terms = USUAL,
    *,
    times: Times | None = None,
    apart: Sequence[float] = (),
) -> Verdict | None:
    """Return the verdict of a claim whose pairs are already drawn, or None if these pairs decide nothing.

    Takes the arguments of ``judge``. Judges the looks one by one; the first look that decides gives the verdict. A used
    budget counts only after all pairs. So a claim that is made second gets the verdict it would have got first.
    """
    past = dataclasses.replace(terms, out_of_budget="", reachable=CAP)
    pairs = drawn if isinstance(drawn, Pairs) else drawn[0]

    def at_look(look: int) -> Verdict | None:
        past_times = None if times is None else (times[0][:look], times[1][:look])
        first = drawn.first(look) if isinstance(drawn, Pairs) else [one.first(look) for one in drawn]
        return judge(claim, first, past, times=past_times, apart=apart)

    reached = (look for look in critical_values.looks(pairs.instances) if look <= min(len(pairs), terms.cap))
    found = next(filter(None, map(at_look, reached)), None)
    return found or judge(claim, drawn, terms, times=times, apart=apart)


def weakest(parts: Sequence[Verdict]) -> int:
    """The 0-based number of the comparison with the smallest ratio."""
    return min(range(len(parts)), key=lambda k: parts[k].ratio)


def _decide(claims: ClaimsWithPairs, terms: Terms) -> tuple[Outcome, str] | None:
    """Outcome and reason after these pairs; None to draw on. Several claims hold together, or one of them fails."""
    drawn, instances = len(claims[0][1]), claims[0][1].instances
    alpha, cap = terms.alpha, min(terms.cap, CAP)
    looks = [look for look in critical_values.looks(instances) if look <= cap]
    last = not looks or drawn >= looks[-1]
    unlike = next(filter(None, (unlike_voids(pairs) for _, pairs in claims)), "")
    end = ""
    if drawn in looks and not unlike:
        answers = [_answer(claim, pairs, alpha, alpha / len(claims)) for claim, pairs in claims]
        failed = [answer for answer in answers if answer and answer[0] is Outcome.FAILS]
        within = [answer for answer in answers if answer and answer[0] is Outcome.INCONCLUSIVE]
        if failed or within or all(answers):
            return (failed or within or answers)[0]
        end = terms.out_of_budget or ("" if last else _given_up(claims, looks, terms))
    end = end or terms.out_of_budget
    if not end and last and drawn >= min(cap, PER_OPENING):
        end = f"cap of {cap} pairs"
    if not end:
        return None
    return Outcome.INCONCLUSIVE, "; ".join(filter(None, (end, unlike or _obstacle(claims, alpha))))


def _given_up(claims: ClaimsWithPairs, looks: Sequence[int], terms: Terms) -> str:
    """Why to draw no more for a claim that this look did not decide; empty to draw on.

    A guard with a wider margin goes on while it may show that margin. Afterwards more pairs serve only the claimed
    margin, so ``AFTER_WIDER`` limits them.
    """
    claim, pairs = claims[0]
    why = _futile(claims, looks, terms)
    if not claim.guard or terms.wider <= claim.margin:
        return why
    wider = dataclasses.replace(claim, margin=terms.wider)
    past = [look for look in looks if look <= len(pairs) and _holds(wider, pairs.first(look), terms.alpha)]
    if len(pairs) not in past:
        return why and _futile([(wider, pairs)], looks, terms)
    most = math.ceil(AFTER_WIDER * past[0])
    if len(pairs) < most:
        return why
    return f"cap of {most} pairs, since {past[0]} pairs showed a margin of {100 * terms.wider:.0f} %"


def _holds(claim: Claim, pairs: Pairs, alpha: float) -> bool:
    answer = _answer(claim, pairs, alpha, alpha)
    return answer is not None and answer[0] is Outcome.HOLDS


def _futile(claims: ClaimsWithPairs, looks: Sequence[int], terms: Terms) -> str:
    """Why later looks would not decide a claim that this one did not; empty if they may.

    A comparison without a claim uses its budget: more pairs narrow the interval that it shows.
    """
    drawn, kind, last = len(claims[0][1]), claims[0][0].of_kind, looks[-1]
    least = 0 if kind.guard else REST_FUTILE_FROM
    few = CHANCE_FROM <= last < FUTILITY_FROM and not kind.claims_nothing
    if drawn >= (least if few else FUTILITY_FROM) and _chance(claims, terms.alpha, last) < FUTILE:
        return f"stopped early: even {min(terms.cap, CAP)} pairs would almost surely not decide ({RARELY})"
    later = [look for look in looks if drawn < look <= terms.reachable]
    if kind.claims_nothing or terms.reachable >= last or drawn < least:
        return ""
    # Not every look can decide at every level, so the last one alone would not show the chance.
    if later and (later[-1] < CHANCE_FROM or _may_decide(claims, terms.alpha, later)):
        return ""
    return f"stopped early: the rest of {terms.budget} would almost surely not decide ({RARELY})"


def _may_decide(claims: ClaimsWithPairs, alpha: float, looks: Sequence[int]) -> bool:
    """Whether one of these looks may decide a claim."""
    return any(_chance(claims, alpha, look) >= FUTILE for look in reversed(looks) if look >= CHANCE_FROM)


def unlike_voids(pairs: Pairs) -> str:
    """Why these pairs may not decide yet: the void rounds depend on the variant; empty if they do not.

    If the slow rounds of a variant go void, it looks faster than it is. So the void rounds of two variants may differ
    by at most 3 % of the rounds of a variant. From 14 pairs on they may differ by one. ``benchmarks/noise_models.py``
    simulates the cost of one void round that was the slowest of its variant.
    """
    return unlike(*pairs.void_rounds(), len(pairs))


def unlike(baseline: int, candidate: int, pairs: int) -> str:
    """Why pairs beside so many void rounds of each variant may not decide yet; empty if they may."""
    attempted = pairs + max(baseline, candidate)
    if abs(candidate - baseline) <= max(MAX_UNLIKE * attempted, pairs >= ONE_VOID_FROM):
        return ""
    return (
        f"of {attempted} rounds, {candidate} of the candidate and {baseline} of the baseline were void, and this may "
        "depend on the variant: a variant whose slow rounds are void looks faster than it is"
    )


def _answer(claim: Claim, pairs: Pairs, alpha: float, alpha_fail: float) -> tuple[Outcome, str] | None:
    """Compare the intervals of one look with the bounds of the claim; None when the look does not decide.

    ``alpha`` is the level to hold and ``alpha_fail`` the level to fail, both one-sided. Times that were printed in
    steps decide only if rounding cannot change the answer.
    """
    low, high = claim.hold_bounds
    hold, blur = claim.hold_level(alpha), pairs.blur
    if math.isinf(blur):
        return None

    def above(level: float, bound: float) -> bool:
        return intervals.rejects(pairs, level, bound + blur)[0]

    def below(level: float, bound: float) -> bool:
        return intervals.rejects(pairs, level, bound - blur)[1]

    if claim.of_kind.claims_nothing:
        if above(hold, low) or below(hold, high):
            return Outcome.HOLDS, "interval excludes equal speed"
        return (Outcome.INCONCLUSIVE, _too_close(claim)) if _within(claim, pairs, hold) else None
    if above(hold, low) and below(hold, high):
        return None if _totals_deny(claim, pairs, holds=True) else (Outcome.HOLDS, "interval lies inside the claim")
    low, high = claim.fail_bounds
    if math.isfinite(low) and below(alpha_fail, low):
        return Outcome.FAILS, "interval lies below the claim"
    if math.isfinite(high) and above(alpha_fail, high):
        return None if _totals_deny(claim, pairs, holds=False) else (Outcome.FAILS, "interval lies above the claim")
    if _within(claim, pairs, alpha_fail):
        return Outcome.INCONCLUSIVE, _too_close(claim)
    return None


def _totals_deny(claim: Claim, pairs: Pairs, *, holds: bool) -> bool:
    """Whether the totals of a counter lie on the other side of the claim's bound than its typical round."""
    total = counts.total(pairs) if pairs.counts else math.nan
    return total >= claim.bounds[1] if holds else total <= claim.bounds[1]


def _too_close(claim: Claim) -> str:
    return f"too close to the bound of the claim: {_equal_clusters(claim)}"


def _equal_clusters(claim: Claim) -> str:
    return f"equal clusters can differ by {cluster_difference.percent(claim.apart)}"


def _within(claim: Claim, pairs: Pairs, level: float) -> bool:
    """Whether the interval lies so close to a bound of the claim that equal clusters can differ by as much."""
    return any(
        intervals.rejects(pairs, level, bound - claim.apart)[0]
        and intervals.rejects(pairs, level, bound + claim.apart)[1]
        for bound in claim.bounds
        if claim.apart and math.isfinite(bound)
    )


def _obstacle(claims: ClaimsWithPairs, alpha: float) -> str:
    """Why there is no verdict, if one reason prevents it: equal clusters, totals, or rounding; else empty.

    claims: claims that the last look did not decide.
    """
    fail = alpha / len(claims)
    for claim, pairs in claims:
        look = critical_values.last_look(len(pairs), pairs.instances)
        if look is None or _answer(claim, seen := pairs.first(look), alpha, fail):
            continue
        if pairs.counts and (why := _disagreement(claim, seen, alpha, fail)):
            return why
        if claim.apart and _answer(dataclasses.replace(claim, apart=0.0), seen, alpha, fail):
            return f"{_equal_clusters(claim)}, more than the distance from the interval to the bound of the claim"
        if pairs.blur and _answer(claim, seen.exact(), alpha, fail):
            step = "a whole round" if math.isinf(pairs.blur) else f"{100 * math.expm1(pairs.blur):.2g} % of a round"
            return (
                f"rounding could decide: the tool prints the time of a round in steps of up to {step}, and the ratio "
                "may be wrong by as much; make the rounds longer"
            )
    return ""


def _disagreement(claim: Claim, pairs: Pairs, alpha: float, alpha_fail: float) -> str:
    """That the typical round would decide a claim about a counter, and the totals deny it; else empty."""
    held = intervals.rejects(pairs, claim.hold_level(alpha), claim.hold_bounds[1])[1]
    if not held and not intervals.rejects(pairs, alpha_fail, claim.fail_bounds[1])[0]:
        return ""
    typical, total = (
        formatting.ratio(estimators.factor(log), claim.ratios) for log in (counts.estimate(pairs), counts.total(pairs))
    )
    return (
        f"the typical round and the totals disagree: {typical} in the median pair, {total} in all rounds together; "
        "a few rounds have most of the counts, so longer rounds may help"
    )


def _chance(claims: ClaimsWithPairs, alpha: float, end: int) -> float:
    """Chance that a claim is decided by the look at ``end`` pairs, if later pairs resemble the drawn pairs.

    The noise counts as smaller by 1.5 of its standard errors, so no claim is given up too early. If normal noise of
    ``pair_sd`` leaves no chance, the noise is resampled too, and the larger chance counts.
    """
    fast = _chance_by(claims, alpha, end, power.detectable_if_normal)
    return fast if fast >= FUTILE else max(fast, _chance_by(claims, alpha, end, power.detectable))


def _chance_by(
    claims: ClaimsWithPairs, alpha: float, end: int, shown_by: Callable[[Pairs, float, int], float]
) -> float:
    """As ``_chance``; ``shown_by`` returns the log ratio that ``end`` pairs show at a level."""
    holds, fails, fail = [], 0.0, alpha / len(claims)
    for claim, pairs in claims:
        if pairs.counts:
            return _chance_of_counts(claim, pairs, alpha, end)
        level = claim.hold_level(alpha)
        surely = 1 - 1.5 / math.sqrt(len(pairs))
        shown, shown_failing = (surely * shown_by(pairs, one, end) for one in (level, fail))
        centre = intervals.quick_estimate(pairs)
        above, below = centre - claim.hold_bounds[0], claim.hold_bounds[1] - centre
        held = [power.chance_beyond(gap - pairs.blur, shown, len(pairs), level, end) for gap in (above, below)]
        if claim.of_kind.claims_nothing:
            holds.append(sum(held))
            continue
        holds.append(max(0.0, sum(held) - 1))
        gaps = centre - claim.fail_bounds[0], claim.fail_bounds[1] - centre
        fails += sum(power.chance_beyond(-gap - pairs.blur, shown_failing, len(pairs), fail, end) for gap in gaps)
    return min(holds) + fails


def _chance_of_counts(claim: Claim, pairs: Pairs, alpha: float, end: int) -> float:
    """As ``_chance``, for a claim about a counter."""
    higher, lower = counts.sides(pairs, claim.fail_bounds[1])[0], counts.sides(pairs, claim.hold_bounds[1])[1]
    return sum(counts.chance_of(on_side, pairs, alpha, end) for on_side in (higher, lower))


def complete(outcome: Outcome, reason: str, claim: Claim, pairs: Pairs, alpha: float) -> Verdict:
    """The verdict with every figure that its message shows. alpha: the level of its intervals."""
    centre, values = intervals.estimate(pairs), pairs.ratios
    low, high = estimators.widen(intervals.interval(pairs, alpha), centre)
    decided = estimators.widen(intervals.interval(pairs, claim.hold_level(alpha)), centre)
    least, most = (figure + pairs.blur for figure in power.detectable_range(pairs, claim.hold_level(alpha)))
    first, second = estimators.halves(values)
    # Neither more pairs nor a wider margin is an answer to void rounds that depend on the variant.
    advised = outcome is Outcome.INCONCLUSIVE and not unlike_voids(pairs)
    few = counts.too_little(pairs) if pairs.counts and outcome is Outcome.INCONCLUSIVE else ""
    return Verdict(
        outcome=outcome,
        claim=claim,
        pairs=len(pairs),
        ratio=estimators.factor(centre),
        low=estimators.factor(low),
        high=estimators.factor(high),
        decided_low=estimators.factor(decided[0]),
        decided_high=estimators.factor(decided[1]),
        reason=f"{reason}; {few}" if few else reason,
        detectable=estimators.factor(least) - 1,
        needed_pairs=_pairs_needed(claim, pairs, centre, alpha) if advised else None,
        needed_margin=margin_needed(claim, centre, most) if advised else None,
        pair_sd=estimators.pair_sd(values),
        halves=(estimators.factor(first), estimators.factor(second)),
        order_effect=estimators.factor(estimators.order_effect(values, pairs.baseline_first)) - 1,
        lag1=estimators.lag1(values),
        alpha=alpha,
        void=pairs.void_rounds(),
        detectable_most=estimators.factor(most) - 1 if most > least else None,
        total=estimators.factor(counts.total(pairs)) if pairs.counts else None,
    )


def _pairs_needed(claim: Claim, pairs: Pairs, centre: float, alpha: float) -> int | None:
    """Pairs that would decide with power .8 if the estimate were true; None if it lies on a bound."""
    if len(pairs) < 2:
        return None
    if pairs.counts:
        higher, lower = counts.sides(pairs, claim.fail_bounds[1])[0], counts.sides(pairs, claim.hold_bounds[1])[1]
        later = [look for look in power.deciding_looks(alpha, pairs) if look > len(pairs)]
        return counts.pairs_needed(pairs, max(higher, lower), alpha, later)
    distance = min(abs(centre - bound) for bound in claim.bounds) - claim.apart - pairs.blur
    if distance <= 0:
        return None
    low, high = claim.bounds
    inside = claim.of_kind.claims_nothing or low < centre < high
    return power.pairs_needed(pairs, distance, claim.hold_level(alpha) if inside else alpha)


def margin_needed(claim: Claim, centre: float, detectable: float) -> float | None:
    """The margin, a fraction, at which a guard would hold with power .8 if the estimate were the true ratio.

    None for a claim that is not a guard, and when nothing is detectable. ``centre`` and ``detectable`` are log ratios.
    """
    if not claim.guard or math.isinf(detectable):
        return None
    low, high = claim.bounds
    shift = max(0.0, -centre if math.isfinite(low) else 0.0, centre if math.isfinite(high) else 0.0)
    return -math.expm1(-(shift + detectable + claim.apart))


def inconclusive(verdict: Verdict, untrusted: str) -> Verdict:
    """The verdict, or an inconclusive one when ``untrusted`` says why no number of pairs could decide."""
    if not untrusted:
        return verdict
    return dataclasses.replace(
        verdict, outcome=Outcome.INCONCLUSIVE, reason=untrusted, needed_pairs=None, needed_margin=None
    )
