"""The chance that any claim of a run is wrong: the sum of the chances of its claims (Boole's inequality).

The sum holds for any dependence between claims. It counts all claims as they were written before their rounds
were drawn, whatever their outcomes. Guards are counted separately: their level is .05, exactly on the margin.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from pytest_dbcluster.claims.cluster_difference import ONE_IN
from pytest_dbcluster.claims.critical_values import GUARD_LEVEL
from pytest_dbcluster.formatting import quantity
from pytest_dbcluster.reporting.records import ClaimRecord

ROUNDING = 1e-6  # of the last digit that is shown
LEAST = 2  # claims: the message of a single claim has its error


def line(records: Sequence[ClaimRecord]) -> str:
    """``58 claims: at most .029 that any is wrong; 2 guards: at most .1 more``; empty for fewer than two claims.

    A claim with an unknown error is counted separately: its rounds carried over, or a default is used for how far its
    clusters differ.
    """
    made = [record for record in records if record.asserted]
    if len(made) < LEAST:
        return ""
    covered = [record for record in made if not why_not_covered(record)]
    guards = [record for record in covered if record.verdict.claim.guard]
    others = [record for record in covered if not record.verdict.claim.guard]
    parts = []
    if others:
        parts.append(f"{quantity(len(others), 'claim')}: {_at_most(math.fsum(map(_chance, others)))} that any is wrong")
    if guards:
        more = " more" if others else ""
        chance = _at_most(math.fsum(map(_chance, guards)))
        given = "if rounds are independent"
        parts.append(f"{quantity(len(guards), 'guard')}: {chance}{more} that any holds wrongly, {given}")
    reasons = [why for record in made if (why := why_not_covered(record))]
    if reasons:
        kinds = ", ".join(f"{reasons.count(why)} {why}" for why in dict.fromkeys(reasons))
        parts.append(f"not covered: {kinds}")
    return "; ".join(parts)


def why_not_covered(record: ClaimRecord) -> str:
    """Why the error of this claim is unknown, as words after a number of claims; empty if it is known."""
    if record.carry_over is not None and record.carry_over.warned:
        return "with carry-over"
    if record.cluster_difference is not None and not record.cluster_difference.source.startswith("measured"):
        return "with a default for equal clusters"
    return ""


def _chance(record: ClaimRecord) -> float:
    """The maximum chance that any try of this claim is wrong, including clusters that differ by more than f."""
    claim, alpha = record.verdict.claim, record.verdict.alpha
    several = record.standings or (claim.of_kind.of_many and not claim.of_kind.composed)
    comparisons = len(record.rounds) - 1 if several else 1
    return record.tries * ((GUARD_LEVEL if claim.guard else alpha) + (comparisons / ONE_IN if claim.apart else 0.0))


def _at_most(chance: float) -> str:
    """A chance for people, rounded up: ``at most .029``; ``no bound`` from 1 on."""
    if chance > 1 - ROUNDING:
        return "no bound on the chance"
    step = 10.0 ** (math.floor(math.log10(chance)) - 1)
    return f"at most {math.ceil(chance / step - ROUNDING) * step:.3g}".replace(" 0.", " .")
