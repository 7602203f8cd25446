"""The guard against rare stalls of one variant, to which a rank estimate of speed is blind."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from pytest_dbcluster.claims import claim as claims
from pytest_dbcluster.claims import critical_values, estimators, verdict
from pytest_dbcluster.claims.claim import Claim
from pytest_dbcluster.claims.verdict import Outcome, Verdict

KIND = claims.STALLS
PAIRS = 40
HOLD_LEVEL = critical_values.GUARD_LEVEL


def judge_stalls(
    candidate: Sequence[float],
    baseline: Sequence[float],
    *,
    alpha: float,
    cap: int = verdict.CAP,
    out_of_budget: str | None = None,
    blind: str | None = None,
) -> Verdict | None:
    """One look, after 40 pairs: fails when the candidate's stalls are too many for chance at ``alpha``.

    The arguments are seconds per round; of more than 40 pairs, or than ``cap``, the first ones count, so that it makes
    no difference what was drawn for other claims. Holds when chance explains the stalls at .05 (exact test on the
    discordant pairs); between the two, with fewer pairs than 40, and when ``blind`` says why no answer could be
    trusted, it is inconclusive. None while pairs are missing.
    """
    most = min(cap, PAIRS)
    candidate, baseline = candidate[:most], baseline[:most]
    few = ""
    if len(candidate) < PAIRS:
        few = (f"cap of {cap} pairs" if len(candidate) == most else out_of_budget) or ""
        if not few:
            return None
    times = (baseline, candidate)
    ratios = [estimators.log_ratio(b, c) for b, c in zip(baseline, candidate, strict=True)]
    base = verdict.judge(verdict.differs(), ratios, alpha=alpha, out_of_budget=few or "one look", times=times)
    assert base is not None
    theirs, ours, chance = estimators.stall_test(baseline, candidate)
    outcome, words = _answer(chance, alpha, few)
    found = dataclasses.replace(
        base,
        outcome=outcome,
        claim=Claim(KIND, 0.0),
        reason=f"{words}: {ours} v {theirs}",
        stalls=(theirs, ours),
        needed_pairs=PAIRS if few and outcome is Outcome.INCONCLUSIVE else None,
        needed_margin=None,
    )
    return verdict.blinded(found, blind)


def _answer(chance: float, alpha: float, few: str) -> tuple[Outcome, str]:
    """What this chance of as many stalls says; ``few`` is why there are too few pairs to hold."""
    if chance <= alpha:
        return Outcome.FAILS, "more stalls than chance explains"
    if chance > HOLD_LEVEL and not few:
        return Outcome.HOLDS, "no more stalls than chance explains"
    return Outcome.INCONCLUSIVE, few or "could be chance, could be not"
