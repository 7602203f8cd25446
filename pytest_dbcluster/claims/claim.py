"""Claims, outcomes and verdicts as values.

A log ratio is log(candidate / baseline) of one pair of rounds. It compares speeds, where higher is better; for
``lower`` it compares the counter that the claim names. Theta is the true log ratio.

Every claim makes the same promise. The chance of a wrong verdict is at most ``alpha`` towards each side, over all
looks together: .0005 (1 in 2000), or .0001 with ``--db-alpha``. It rests on the random order of the rounds alone, so it
holds for any noise that is the same for both variants. It also holds where independent rounds of the two variants have
the same centre and different spreads: log differences that are symmetric about the bound, so not skewed ones. An
autocorrelation or a drift of one variant alone, and carry-over, cannot be told from an effect. A guard
(``no_slower_than``, ``same_as``) fails at ``alpha`` as well, but may hold at .05 where rounds are independent, and at
.1 where they are not and both variants have the same noise. A verdict is about the running instances under the load
that was given, in the time of the measurement. ``verdict`` decides by comparing intervals with ``Claim.bounds``.
"""

from __future__ import annotations

import dataclasses
import enum
import math
from dataclasses import dataclass

from pytest_dbcluster.claims.critical_values import ALPHAS, GUARD_LEVEL, LOOKS
from pytest_dbcluster.errors import ConfigError

FADES = "fades"  # compares the ratios of two pairs of variants
GUARDS = ("no_slower_than", "same_as")
FASTER = 2.0  # a margin of ``beats`` lies below it: 2 would be 200 %, and mostly is a mistake for 2 %
OPTIONS = {"no_slower_than": "by", "same_as": "within", "scales": "at_least", "ordered": "step"}


@dataclass(frozen=True)
class Claim:
    """A statement about theta, the log ratio of candidate and baseline.

    kind: name of the function below that makes the claim. margin: a fraction (``by``, ``within``, ``step``); for
    ``scales`` the ratio ``at_least``. apart: how far two equal clusters can differ (``cluster_difference``), as a
    natural log, where the variants run on separate clusters; else 0.
    """

    kind: str
    margin: float
    apart: float = 0.0

    @property
    def guard(self) -> bool:
        """Whether the claim says that nothing got worse. Such a claim may hold at the level .05."""
        return self.kind in GUARDS

    @property
    def candidate_last(self) -> bool:
        """Whether a test writes the variants in the reverse order: the baseline, or the slowest, first."""
        return self.kind in ("ordered", FADES)

    @property
    def bounds(self) -> tuple[float, float]:
        """The open range of theta, in natural logs, in which the claim is true.

        For ``differs`` both ends are 0, the only point at which the claim is false.
        """
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

    @property
    def hold_bounds(self) -> tuple[float, float]:
        """The range in which the interval must lie for the claim to hold: ``bounds``, narrower by ``apart``."""
        low, high = self.bounds
        return low + self.apart, high - self.apart

    @property
    def fail_bounds(self) -> tuple[float, float]:
        """The range outside of which the interval must lie for the claim to fail: ``bounds``, wider by ``apart``."""
        low, high = self.bounds
        return low - self.apart, high + self.apart

    @property
    def ratios(self) -> tuple[float, ...]:
        """The finite ends of ``bounds`` as ratios, in rising order."""
        return tuple(sorted({as_ratio(math.exp(bound)) for bound in self.bounds if math.isfinite(bound)}))

    @property
    def limits(self) -> tuple[float, ...]:
        """The ratios at which the answer changes: the finite ends of the three ranges above, in rising order.

        On which side of them a ratio lies is what its text must show, so no number is rounded across one.
        """
        ranges = (self.bounds, self.hold_bounds, self.fail_bounds)
        ends = {math.exp(end) for some in ranges for end in some if math.isfinite(end)}
        return tuple(sorted({as_ratio(end) for end in ends}))

    @property
    def margins(self) -> list[float]:
        """The margins of speed or time, as absolute log ratios; none for a claim without one or about a counter."""
        if self.kind == "lower":
            return []
        return [abs(bound) for bound in self.bounds if math.isfinite(bound) and bound]

    def hold_level(self, alpha: float) -> float:
        """The maximum chance that the claim holds wrongly: .05 for a guard exactly on its margin, else ``alpha``.

        For a guard this is the chance where rounds are independent.
        """
        return GUARD_LEVEL if self.guard else alpha

    def call(self, names: tuple[str, ...], metric: str, usual: str = "throughput") -> str:
        """The claim as a test writes it: ``flush_2.beats(default, by=0.1)``.

        names: candidate and baseline, all variants of an order, slowest first, or the two pairs of ``fades``, each with
        its baseline first. usual: the default metric of the workload, which the text leaves out. A comparison without a
        claim (``differs``) gets its name in the table.
        """
        if self.kind == "differs":
            return f"{names[0]} against {names[1]}" + ("" if metric == usual else f" ({metric})")
        option = OPTIONS.get(self.kind, "by")
        keywords = [f"{option}={self.margin:g}"] if self.margin else []
        if self.kind != "lower" and metric != usual:
            keywords.append(f'metric="{metric}"')
        if self.kind == "ordered":
            return f"ordered({', '.join([*names, *keywords])})"
        if self.kind == FADES:
            return f"fades({', '.join([f'({names[0]}, {names[1]})', f'({names[2]}, {names[3]})', *keywords])})"
        first = [f'"{metric}"', f"than={names[1]}"] if self.kind == "lower" else [names[1]]
        return f"{names[0]}.{self.kind}({', '.join([*first, *keywords])})"

    def identity(self, names: tuple[str, ...], metric: str) -> str:
        """The claim without its margin, and with its metric: the same for all claims that share one history.

        names: as in ``call``.
        """
        return dataclasses.replace(self, margin=0.0).call(names, metric, usual="")


def as_ratio(value: float) -> float:
    """The ratio without the last digits, which are wrong where it is the exponential of a logarithm."""
    return float(f"{value:.12g}")


class Outcome(enum.Enum):
    """The three possible outcomes of a claim."""

    HOLDS = "holds"
    FAILS = "fails"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True)
class Verdict:
    """The outcome of a claim, with every figure that its message shows. ``bool(verdict)`` is always True.

    Ratios are candidate / baseline. Figures that the pairs cannot give are nan. The verdict on an order gives the
    figures of its smallest step.

    pairs: the pairs drawn. ratio: the Hodges-Lehmann estimate, of a counter the median of the pairs. low, high: the
    sequential interval of the ratio, valid at all looks together (99.9 %; 99.98 % with alpha .0001). decided_low,
    decided_high: the interval that lets the claim hold (90 % for a guard, else the same as low and high). reason: why
    the drawing ended. detectable: the smallest fraction that this many pairs show with power .8; detectable_most: the
    end of its range, where the pairs do not tell their noise, else None. needed_pairs, needed_margin: what would decide
    an inconclusive claim; the margin is a fraction, for guards only. pair_sd: standard deviation of a log ratio; below
    2 pairs pair_sd and detectable are infinite. halves: the ratio of the first and of the second half of the pairs.
    order_effect: the fraction by which pairs that ran AB (baseline first) lie above pairs that ran BA. lag1:
    correlation of each log ratio with the next. stalls: stalled rounds of (baseline, candidate). alpha: the maximum
    chance of a wrong verdict per side. neighbours: of an order, the verdicts on its steps, slowest first. void: void
    rounds of (baseline, candidate), which were drawn again. total: of a counter the ratio of the totals of all rounds.
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
    void: tuple[int, int] = (0, 0)
    total: float | None = None
    detectable_most: float | None = None

    @property
    def look(self) -> int:
        """The number of the look that decided, 1-based; 0 before the first look."""
        return sum(look <= self.pairs for look in LOOKS)


def beats(by: float = 0.0) -> Claim:
    """The candidate is faster than the baseline by more than the fraction ``by``: ratio > 1 + by.

    Holds when the whole sequential interval of the ratio (99.9 % at alpha .0005) lies above 1 + by, and fails when it
    lies below. Either verdict is wrong with a chance of at most alpha. Raises ConfigError unless 0 <= by < 2, because
    ``scales`` claims more.
    """
    return _claim("beats", "by", by, 0.0, FASTER, zero=True)


def no_slower_than(by: float) -> Claim:
    """The guard: the candidate is slower than the baseline by less than the fraction ``by``: ratio > 1 - by.

    Holds when the 90 % interval lies above 1 - by, wrong with a chance of at most .05 where rounds are independent (.1
    if they are not). Fails when the sequential interval (99.9 %) lies below. Raises ConfigError unless 0 < by < 1.
    """
    return _claim("no_slower_than", "by", by, 0.0, 1.0)


def same_as(within: float) -> Claim:
    """The guard: neither variant is slower by the fraction ``within``: ratio and 1 / ratio are above 1 - within.

    Holds when the 90 % interval lies inside both limits, wrong with a chance of at most .05 where rounds are
    independent (.1 if they are not). Fails when the sequential interval (99.9 %) lies outside. Raises ConfigError
    unless 0 < within < 1.
    """
    return _claim("same_as", "within", within, 0.0, 1.0)


def scales(at_least: float) -> Claim:
    """The candidate is more than ``at_least`` times as fast as the baseline; judged like ``beats``.

    Raises ConfigError unless ``at_least`` is above 0.
    """
    return _claim("scales", "at_least", at_least, 0.0, math.inf)


def lower(by: float = 0.0) -> Claim:
    """The candidate's counter is lower than the baseline's by more than the fraction ``by``; judged like ``beats``.

    In a typical round (``counts``): in more than half of the pairs that counted anything. Inconclusive if the totals
    of all rounds say otherwise. Raises ConfigError unless 0 <= by < 1.
    """
    return _claim("lower", "by", by, 0.0, 1.0, zero=True)


def ordered(step: float = 0.0) -> Claim:
    """Each variant is faster than the variant before it by more than the fraction ``step``; see ``judge_ordered``.

    Raises ConfigError unless 0 <= step < 2.
    """
    return _claim("ordered", "step", step, 0.0, FASTER, zero=True)


def fades(by: float = 0.0) -> Claim:
    """The second of two pairs of variants loses less than the first one, by more than the fraction ``by``.

    Of each pair candidate / baseline is what it keeps. What the second keeps / what the first keeps > 1 + by; judged
    like ``beats``, from 17 pairs on (``pairs.of_losses``). Raises ConfigError unless 0 <= by < 2.
    """
    return _claim(FADES, "by", by, 0.0, FASTER, zero=True)


def differs() -> Claim:
    """The two variants are not equally fast. The outcome is that it holds or is inconclusive; it never fails."""
    return Claim("differs", 0.0)


def _claim(kind: str, option: str, margin: float, minimum: float, below: float, *, zero: bool = False) -> Claim:
    """Return the claim when its margin is in range; else raise ConfigError that names the range."""
    sign = "<=" if zero else "<"
    allowed = f"{minimum:g} {sign} {option} < {below:g}"
    if not isinstance(margin, int | float) or isinstance(margin, bool):
        hint = "; a guard needs its margin, .05 and .10 are usual" if kind in GUARDS else ""
        raise ConfigError(f"{kind}({option}={margin!r}): {option} must be a number, {allowed}{hint}")
    if not (minimum < margin < below or (zero and margin == minimum)):
        raise ConfigError(f"{kind}({option}={margin!r}): {option} is out of range, {allowed}{_percent(kind, margin)}")
    return Claim(kind, float(margin))


def _percent(kind: str, margin: float) -> str:
    """What a margin of 1 or more means, for people who meant per cent; empty for other margins."""
    if kind == "scales" or not 1 <= margin < math.inf:
        return ""
    times = f", {1 + margin:g} times as fast," if kind in ("beats", "ordered") else ""
    more = f"; {1 + margin:g} times as fast is scales(..., at_least={1 + margin:g})" if kind == "beats" else ""
    return f"; it is a fraction: {margin:g} means {100 * margin:g} %{times} and {margin:g} % is {margin / 100:g}{more}"
