"""``shorter``: a duration of an event is shorter than with another variant."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pytest_dbcluster.claims.claim import Claim, Outcome, Verdict, register
from pytest_dbcluster.claims.repetitions import permutation
from pytest_dbcluster.claims.repetitions.kind import RepetitionKind
from pytest_dbcluster.claims.repetitions.samples import Repetitions


class Shorter(RepetitionKind):
    """The duration of the candidate is shorter than the baseline's by more than so many ``seconds``.

    Judged by an exact permutation test after each block of seven repetitions of each variant in random order. After
    the first block it holds if all 49 differences exceed the bound: an error of 1 in 3432. The looks after 14 and 21
    repetitions share the rest of alpha. Values below .01 s count as .01 s. It fails like it holds.
    """

    name = "shorter"
    option = "seconds"
    no_margin = True
    variants = 2
    independent = False

    def bounds(self, margin: float) -> tuple[float, float]:
        """The baseline's seconds less the candidate's are above the margin."""
        return margin, math.inf

    def judge(self, claim: Claim, samples: Sequence[Repetitions], times: int, alpha: float) -> Verdict | None:
        """The verdict at the first look that decides, or at the last one that is planned."""
        candidate, baseline = samples
        critical = permutation.critical_values(times // permutation.PER_BLOCK, alpha)
        found = None
        for look, value in zip(self.looks(1), critical, strict=False):
            if look > len(candidate):
                return None
            first = [candidate.first(look), baseline.first(look)]
            ends = permutation.interval(first[0], first[1], value)
            found = self.verdict(claim, first, permutation.estimate(first[0], first[1]), ends, alpha)
            if found.outcome is not Outcome.INCONCLUSIVE:
                return found
        return found

    def refuses(self, claim: Claim, times: int, alpha: float) -> str:
        """That a part of a block decides nothing, and neither do fewer blocks than the error needs."""
        allowed = [look for look in self.looks(1) if permutation.can_decide(look // permutation.PER_BLOCK, alpha)]
        if times in allowed:
            return ""
        return f"times={times}: two variants are compared after {' or '.join(map(str, allowed))} repetitions of each"

    def looks(self, instances: int) -> tuple[int, ...]:
        """After each block."""
        return permutation.LOOKS

    def needed_times(self, verdict: Verdict) -> str:
        """The next number of repetitions, or another bound."""
        larger = [look for look in self.looks(1) if look > verdict.pairs]
        return f"times={larger[0]}, or another bound" if larger else "another bound"

    def call(self, claim: Claim, names: tuple[str, ...], metric: str, usual: str) -> str:
        """``quick.shorter("stall", than=usual, seconds=2)``."""
        arguments = [f'"{metric}"', f"than={names[1]}", *([f"seconds={claim.margin:g}"] if claim.margin else [])]
        return f"{names[0]}.{self.name}({', '.join(arguments)})"

    def says(self, claim: Claim, names: Sequence[str], metric: str, unit: str, *, true: bool = True) -> str:
        """``stall of quick is more than 2 s shorter than that of usual``."""
        by = f"more than {self.bound_text(claim.margin)} " if claim.margin else ""
        return f"{metric} of {names[0]} is {'' if true else 'not '}{by}shorter than that of {names[1]}"

    def headline(self, ratio: str, names: Sequence[str], metric: str, unit: str, *, holds: bool, count: int) -> str:
        """``stall of quick is 2.96 s shorter than that of usual``."""
        return f"{metric} of {names[0]} is {ratio} shorter than that of {names[1]}"


shorter = register(Shorter())
