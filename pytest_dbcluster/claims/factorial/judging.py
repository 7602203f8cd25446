"""Decide whether a claim about an effect holds, fails or is inconclusive. Pure functions.

``judge`` is called after every block, and replays the looks that the rounds have reached. The rule of one look is that
of ``claims.verdict``: a claim holds when its interval lies inside its bounds, and fails when it lies outside.
"""

from __future__ import annotations

import dataclasses
import math
import statistics

from pytest_dbcluster.claims import estimators, power, verdict
from pytest_dbcluster.claims.claim import Claim, Outcome, Verdict
from pytest_dbcluster.claims.factorial import chances, contrasts
from pytest_dbcluster.claims.factorial.contrasts import Contrast
from pytest_dbcluster.claims.factorial.design import PER_LEVEL
from pytest_dbcluster.claims.factorial.trial import FactorialTrial
from pytest_dbcluster.claims.verdict import CAP, Terms

Decision = tuple[Outcome, str]


def judge(claim: Claim, trial: FactorialTrial, terms: Terms, option: int, given: int | None = None) -> Verdict | None:
    """Return the verdict after these rounds, or None: then draw another block and call again.

    The first look that decides gives the verdict. So a claim that is made second gets what it would have got first.
    option: 0-based. given: the other option of a claim about two. terms: ``alpha`` is that of one claim.
    """
    cap = min(terms.cap, CAP)
    looks = [look for look in chances.LOOKS if PER_LEVEL * look <= cap]
    for look in looks:
        if look <= trial.blocks and (found := _at_look(claim, seen := trial.part(0, look), terms, option, given)):
            return _verdict(claim, seen, terms, option, given, found)
    end = terms.out_of_budget
    if not end and trial.blocks >= max(looks, default=1):
        end = f"cap of {cap} pairs"
    if not end:
        return None
    why = "; ".join(filter(None, (end, verdict.unlike(*trial.void_rounds(option), trial.pairs))))
    return _verdict(claim, trial, terms, option, given, (Outcome.INCONCLUSIVE, why))


def _at_look(claim: Claim, trial: FactorialTrial, terms: Terms, option: int, given: int | None) -> Decision | None:
    """Outcome and reason at a look; None if it does not decide."""
    if terms.untrusted or verdict.unlike(*trial.void_rounds(option), trial.pairs) or math.isinf(trial.rounding):
        return None
    contrast, blur = contrasts.of(trial, option, given), trial.rounding
    low, high = contrast.interval(claim.hold_level(terms.alpha))
    least, most = claim.bounds
    if claim.of_kind.claims_nothing:
        apart = low - blur > most or high + blur < least
        return (Outcome.HOLDS, "interval excludes equal speed") if apart else None
    if low - blur > least and high + blur < most:
        return Outcome.HOLDS, "interval lies inside the claim"
    low, high = contrast.interval(terms.alpha)
    if high + blur < least:
        return Outcome.FAILS, "interval lies below the claim"
    if low - blur > most:
        return Outcome.FAILS, "interval lies above the claim"
    return None


def _verdict(
    claim: Claim, trial: FactorialTrial, terms: Terms, option: int, given: int | None, decision: Decision
) -> Verdict:
    """The verdict with every figure that its message shows."""
    contrast, noise, hold = contrasts.of(trial, option, given), trial.noise(), claim.hold_level(terms.alpha)
    centre, half = contrast.estimate, trial.blocks // 2
    low, high = estimators.widen(contrast.interval(terms.alpha), centre)
    decided = estimators.widen(contrast.interval(hold), centre)
    sd = math.sqrt(2) * estimators.pair_sd(noise)
    shown = _detectable(sd * contrast.noise_factor, hold, trial.pairs)
    halves = [contrasts.of(part, option, given).estimate for part in (trial.part(0, half), trial.part(half, 2 * half))]
    found = Verdict(
        outcome=decision[0],
        claim=claim,
        pairs=trial.pairs,
        ratio=estimators.factor(centre),
        low=estimators.factor(low),
        high=estimators.factor(high),
        decided_low=estimators.factor(decided[0]),
        decided_high=estimators.factor(decided[1]),
        reason=decision[1],
        detectable=estimators.factor(shown) - 1,
        needed_pairs=None,
        pair_sd=sd,
        halves=(estimators.factor(halves[0]), estimators.factor(halves[1])),
        order_effect=math.nan,
        lag1=estimators.lag1(noise),
        alpha=terms.alpha,
        void=trial.void_rounds(option),
    )
    if decision[0] is not Outcome.INCONCLUSIVE:
        return found
    return verdict.inconclusive(_add_advice(found, contrast, shown, hold), terms.untrusted)


def _add_advice(found: Verdict, contrast: Contrast, shown: float, hold: float) -> Verdict:
    """An inconclusive verdict with the pairs and the margin that would decide it."""
    if not found.pairs or math.isnan(contrast.estimate):
        return found
    claim, centre = found.claim, contrast.estimate
    distance = min(abs(centre - bound) for bound in claim.bounds)
    inside = claim.of_kind.claims_nothing or claim.bounds[0] < centre < claim.bounds[1]
    level = hold if inside else found.alpha
    needed = None
    if distance > 0 and math.isfinite(found.pair_sd):
        unit = _detectable(found.pair_sd * contrast.noise_factor, level, 1)
        needed = max(found.pairs + PER_LEVEL, math.ceil((unit / distance) ** 2))
        needed = next((look for look in chances.PAIRS if look >= needed), needed)
    return dataclasses.replace(
        found,
        needed_pairs=needed if needed is None or needed <= estimators.MOST_PAIRS else None,
        needed_margin=verdict.margin_needed(claim, centre, shown),
    )


def _detectable(sd: float, level: float, pairs: int) -> float:
    """The log ratio that so many rounds of each level show with power .8, for normal noise; infinite without rounds.

    sd: the standard deviation of the log ratio of two rounds. level: of all looks together.
    """
    if not pairs or math.isinf(sd):
        return math.inf
    z = statistics.NormalDist().inv_cdf(1 - chances.at_look(level)) + estimators.POWER_Z
    return power.RANK_COST * z * sd / math.sqrt(pairs)
