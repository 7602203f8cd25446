"""What can be said about two variants, and what can be answered: claims, outcomes and verdicts as values.

A log ratio is log(candidate / baseline) of one pair of rounds: of speed, where higher is better, and for
``lower`` of the counter it names.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass

from pytest_dbcluster.claims.critical_values import ALPHAS, GUARD_LEVEL, LOOKS
from pytest_dbcluster.errors import ConfigError

STALLS = "no_more_stalls_than"  # about rounds that took twice their median, and no ratio
GUARDS = ("no_slower_than", "same_as")
OPTIONS = {"no_slower_than": "by", "same_as": "within", "scales": "at_least", "ordered": "step"}


@dataclass(frozen=True)
class Claim:
    """A statement about theta, the log ratio of candidate and baseline; made by the functions of its kind.

    ``margin`` is a fraction (``by``, ``within``, ``step``), and for ``scales`` the ratio asked for.
    """

    kind: str
    margin: float

    @property
    def guard(self) -> bool:
        """Whether the claim says that nothing got worse: such a claim may hold at .05."""
        return self.kind in GUARDS

    @property
    def bounds(self) -> tuple[float, float]:
        """The open range of theta in which the claim is true; of ``differs`` the point at which it is not."""
        match self.kind:
            case "no_slower_than":
                return math.log1p(-self.margin), math.inf
            case "same_as":
                return math.log1p(-self.margin), -math.log1p(-self.margin)
            case "scales":
                return math.log(self.margin), math.inf
            case "lower":
                return -math.inf, math.log1p(-self.margin)
            case "differs":
                return 0.0, 0.0
        return math.log1p(self.margin), math.inf

    def hold_level(self, alpha: float) -> float:
        """The chance to hold wrongly: .05 of a guard, and that only exactly on its margin; else ``alpha``."""
        return GUARD_LEVEL if self.guard else alpha

    def call(self, names: tuple[str, ...], metric: str, usual: str = "throughput") -> str:
        """The claim as a test writes it; ``names``: candidate and baseline, or all variants of an order.

        ``usual`` is the metric that a claim about this load need not name. A comparison beside claims nothing, and is
        called what the table calls it.
        """
        if self.kind == "differs":
            return f"{names[0]} against {names[1]}" + ("" if metric == usual else f" ({metric})")
        option = OPTIONS.get(self.kind, "by")
        says = [f"{option}={self.margin:g}"] if self.margin else []
        if self.kind != "lower" and metric != usual:
            says.append(f'metric="{metric}"')
        if self.kind == "ordered":
            return f"ordered({', '.join([*names, *says])})"
        first = [f'"{metric}"', f"than={names[1]}"] if self.kind == "lower" else [names[1]]
        return f"{names[0]}.{self.kind}({', '.join([*first, *says])})"


class Outcome(enum.Enum):
    """The three answers to a claim."""

    HOLDS = "holds"
    FAILS = "fails"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True)
class Verdict:
    """The answer to a claim, with all that its message shows. A plain value: it is true whatever it says.

    Ratios are candidate / baseline. ``low`` and ``high`` bound the ratio at all looks together (99.9 %, with alpha
    .0001 99.98 %), ``decided_low`` and ``decided_high`` are the interval that may let the claim hold (90 % for a
    guard). ``detectable`` and ``needed_margin`` are fractions, ``pair_sd`` is a log (below 2 pairs nothing is
    detectable, and both are infinite), and ``order_effect`` is the fraction by which AB pairs lie above BA pairs.
    What the pairs do not tell is not a number. ``needed_pairs`` and ``needed_margin`` belong to an inconclusive
    verdict. ``stalls`` counts (baseline, candidate) rounds. The verdict on an order is that on its weakest
    neighbours.
    """

    outcome: Outcome
    claim: Claim
    pairs: int
    ratio: float
    low: float
    high: float
    decided_low: float
    decided_high: float
    reason: str
    detectable: float
    needed_pairs: int | None
    pair_sd: float
    halves: tuple[float, float]
    order_effect: float
    lag1: float
    stalls: tuple[int, int] | None = None
    alpha: float = ALPHAS[0]
    needed_margin: float | None = None
    neighbours: tuple[Verdict, ...] = ()

    @property
    def look(self) -> int:
        """Which look the verdict rests on, from 1; 0 before the first."""
        return sum(look <= self.pairs for look in LOOKS)


def beats(by: float = 0.0) -> Claim:
    """The candidate is faster than the baseline by more than the fraction ``by``."""
    return _claim("beats", "by", by, 0.0, math.inf, zero=True)


def no_slower_than(by: float) -> Claim:
    """The candidate is slower than the baseline by less than the fraction ``by``."""
    return _claim("no_slower_than", "by", by, 0.0, 1.0)


def same_as(within: float) -> Claim:
    """Neither is slower than the other by the fraction ``within``."""
    return _claim("same_as", "within", within, 0.0, 1.0)


def scales(at_least: float) -> Claim:
    """The candidate is more than ``at_least`` times as fast as the baseline."""
    return _claim("scales", "at_least", at_least, 0.0, math.inf)


def lower(by: float = 0.0) -> Claim:
    """The candidate's counter is lower than the baseline's by more than the fraction ``by``."""
    return _claim("lower", "by", by, 0.0, 1.0, zero=True)


def ordered(step: float = 0.0) -> Claim:
    """Of variants from slowest to fastest, each is faster than the one before by more than ``step``."""
    return _claim("ordered", "step", step, 0.0, math.inf, zero=True)


def differs() -> Claim:
    """The two are not equally fast; this holds or stays open, and never fails."""
    return Claim("differs", 0.0)


def _claim(kind: str, option: str, margin: float, least: float, below: float, *, zero: bool = False) -> Claim:
    """A claim whose margin is a number inside its range; ConfigError that names the range otherwise."""
    sign = "<=" if zero else "<"
    allowed = f"{least:g} {sign} {option} < {below:g}"
    if not isinstance(margin, int | float) or isinstance(margin, bool):
        hint = "; a guard needs its margin, .05 and .10 are usual" if kind in GUARDS else ""
        raise ConfigError(f"{kind}({option}={margin!r}): {option} must be a number, {allowed}{hint}")
    if not (least < margin < below or (zero and margin == least)):
        raise ConfigError(f"{kind}({option}={margin!r}): {option} is out of range, {allowed}")
    return Claim(kind, float(margin))
