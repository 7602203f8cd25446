"""Pairs: the rounds of two variants, matched one to one, with the order in which they ran. The data of a claim."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Sequence

from pytest_dbcluster.claims.block_order import OPENINGS, PER_OPENING

LARGEST_LOG = 700.0  # exp(709) is near the largest float


@dataclasses.dataclass(frozen=True)
class Pairs:
    """Pairs of rounds, one of each variant, in the order of ``block_order``: the opening blocks come first."""

    candidate: tuple[float, ...]
    """The natural log of each speed of the candidate, or of its counter; -inf for 0."""

    baseline: tuple[float, ...]
    """The same of the baseline."""

    baseline_first: tuple[bool, ...]
    """Whether the baseline's round of each pair ran first."""

    openings: int = OPENINGS
    """The number of opening blocks, drawn or to be drawn; each has four pairs."""

    instances: int = 1
    """The instances of each variant, which the blocks use in turn."""

    void: tuple[tuple[int, bool], ...] = ()
    """Each void round of the two variants: (the number of pairs drawn before it, whether it was the candidate's)."""

    counts: bool = False
    """Whether the values are a counter, which ``counts`` compares, and not speeds."""

    rounding: tuple[float, ...] = ()
    """The possible error of each log ratio, because the tool prints times in steps; empty if it does not."""

    parts: tuple[Pairs, ...] = ()
    """The two comparisons that pairs of ``of_losses`` consist of; empty for pairs of rounds."""

    censored: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    """For the values of (candidate, baseline): 1 if the true value is higher, -1 if it is lower, 0 if it is known.

    None if values cannot be censored. Claims about such pairs compare ``at_worst``.
    """

    centred: bool = True
    """Whether signed ranks remove what the position in a pair does. Any centre is exact, 0 too."""

    @classmethod
    def of(
        cls,
        candidate: Sequence[float],
        baseline: Sequence[float],
        baseline_first: Sequence[bool],
        *,
        openings: int = OPENINGS,
        instances: int = 1,
        void: Sequence[tuple[int, bool]] = (),
        counts: bool = False,
    ) -> Pairs:
        """Pairs of these values of at least 0, such as operations/s.

        Raises ValueError for a negative value or nan, and for different numbers of rounds.
        """
        if not len(candidate) == len(baseline) == len(baseline_first):
            raise ValueError(
                f"pairs need as many rounds of each variant: {len(candidate)}, {len(baseline)}, {len(baseline_first)}"
            )
        logs = (tuple(map(log, candidate)), tuple(map(log, baseline)))
        return cls(*logs, tuple(baseline_first), openings, instances, tuple(void), counts)

    def __len__(self) -> int:
        return len(self.candidate)

    @functools.cached_property
    def ratios(self) -> tuple[float, ...]:
        """The natural log of candidate / baseline of each pair.

        If a counter is 0 somewhere, half of its smallest other value is added to all values for display.
        """
        if self.counts and -math.inf in (every := (*self.candidate, *self.baseline)):
            least = math.exp(min((log for log in every if log > -math.inf), default=0.0)) / 2
            more = [[math.log(math.exp(log) + least) for log in logs] for logs in (self.candidate, self.baseline)]
            return tuple(map(log_difference, *more))
        return tuple(map(log_difference, self.candidate, self.baseline))

    @functools.cached_property
    def signs(self) -> tuple[int, ...]:
        """+1 for each pair whose baseline ran first, else -1: what the draw of the order decided."""
        return tuple(1 if first else -1 for first in self.baseline_first)

    @functools.cached_property
    def rising_ratios(self) -> tuple[Sequence[float], Sequence[float]]:
        """The log ratios in rising order: of the pairs whose baseline ran first, and of the others."""
        both = [*zip(self.ratios, self.baseline_first, strict=True)]
        return sorted(ratio for ratio, first in both if first), sorted(ratio for ratio, first in both if not first)

    @functools.cached_property
    def blur(self) -> float:
        """The possible error of any log ratio by rounding, and so of an estimate and its interval."""
        return max(self.rounding, default=0.0)

    @property
    def whole_openings(self) -> int:
        """The number of opening blocks that are drawn."""
        return min(self.openings, len(self) // PER_OPENING)

    def cross_differences(self) -> list[float]:
        """The log ratios of all 16 combinations of a candidate's and a baseline's round in each opening block."""
        found = []
        for start in range(0, PER_OPENING * self.whole_openings, PER_OPENING):
            rounds = slice(start, start + PER_OPENING)
            found += [log_difference(c, b) for c in self.candidate[rounds] for b in self.baseline[rounds]]
        return found

    def at_worst(self, *, above: bool) -> Pairs:
        """The pairs in the worst case for the claim that their ratio is above a bound, or below it.

        Each censored value takes the end of its range that contradicts the claim. So a pair that is censored on both
        sides counts for neither variant. Without a centre the statistic rises with each ratio. So it is at most that of
        the true values, and so is the error.
        """
        if self.censored is None:
            return self
        low, high = (self.candidate, self.baseline) if above else (self.baseline, self.candidate)
        censored = self.censored if above else self.censored[::-1]
        low = tuple(-math.inf if end < 0 else value for value, end in zip(low, censored[0], strict=True))
        high = tuple(math.inf if end > 0 else value for value, end in zip(high, censored[1], strict=True))
        candidate, baseline = (low, high) if above else (high, low)
        return dataclasses.replace(self, candidate=candidate, baseline=baseline, censored=None, centred=False)

    def first(self, count: int) -> Pairs:
        """The first ``count`` pairs, with the void rounds before them."""
        if count >= len(self):
            return self
        if self.parts:
            return of_losses(*(part.first(count) for part in self.parts))
        return dataclasses.replace(
            self,
            candidate=self.candidate[:count],
            baseline=self.baseline[:count],
            baseline_first=self.baseline_first[:count],
            void=tuple(void for void in self.void if void[0] < count),
            rounding=self.rounding[:count],
            censored=self.censored and (self.censored[0][:count], self.censored[1][:count]),
        )

    def exact(self) -> Pairs:
        """The same pairs as if their times were not rounded."""
        return dataclasses.replace(self, rounding=())

    def void_rounds(self) -> tuple[int, int]:
        """The number of void rounds of (baseline, candidate); of several parts those of the most unlike one."""
        if self.parts:
            return max((part.void_rounds() for part in self.parts), key=lambda found: abs(found[1] - found[0]))
        of_candidate = sum(candidate for _, candidate in self.void)
        return len(self.void) - of_candidate, of_candidate


def of_losses(after: Pairs, before: Pairs) -> Pairs:
    """For ``fades``: each pair has the ratio of ``after`` as candidate and that of ``before`` as baseline.

    Why signed ranks are exact here, under the sharp hypothesis that both losses differ by the bound in each round:

    - Let a variant change each log time of its workload by theta. Then the log ratio of a pair is theta + s e. s is +1
      or -1, the coin of the draw: which of the two ran first. e is the difference of the two rounds without theta, and
      no draw moves it. The same place of ``before`` has a separate coin t and a separate e'.
    - So the difference of the two log ratios is (theta - theta') + s (e - s t e'). If both coins are flipped, s t stays
      and the last part changes its sign.
    - The order that was drawn and the one with both coins flipped are equally likely, separately for each place. So s
      is a fair coin, whatever e, e' and s t are. That holds even if theta' is not known. Ties only lower the chance.

    As for every claim, a variant with other noise is not covered. The looks inside of opening blocks (before 14 pairs)
    compare rounds of several pairs. There theta' does not cancel, so they do not decide. The exact chances of all looks
    add up to less than the level.
    """
    return Pairs(
        candidate=after.ratios,
        baseline=before.ratios,
        baseline_first=after.baseline_first,
        openings=0,
        instances=after.instances,
        rounding=tuple(a + b for a, b in itertools.zip_longest(after.rounding, before.rounding, fillvalue=0.0)),
        parts=(after, before),
    )


def log(value: float) -> float:
    """The natural log of a value of at least 0; -inf for 0. Raises ValueError for a negative value or nan."""
    if math.isnan(value):
        raise ValueError("a value is not a number; was a round without a result given to a claim?")
    if value < 0:
        raise ValueError(f"a ratio needs values of at least 0, not {value:g}")
    return math.log(value) if value else -math.inf


def log_difference(candidate: float, baseline: float) -> float:
    """The log ratio of two logs, limited to +-700 so that its exponential is a float: two zeros give 0.

    Raises ValueError for nan.
    """
    return 0.0 if candidate == baseline else clamp(candidate - baseline)


def clamp(value: float) -> float:
    """The log ratio, limited to +-700. Raises ValueError for nan."""
    if math.isnan(value):
        raise ValueError("a log ratio is not a number; was a round without a result given to a claim?")
    return max(-LARGEST_LOG, min(LARGEST_LOG, value))
