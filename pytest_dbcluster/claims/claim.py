"""Claims, outcomes and verdicts as values.

A log ratio is log(candidate / baseline) of one pair of rounds. It compares speeds, where higher is better; for
``lower`` it compares the counter that the claim names. Theta is the true log ratio.

Every claim makes the same promise. The chance of a wrong verdict is at most ``alpha`` towards each side, over all looks
together: .0005 (1 in 2000), or .0001 with ``--db-alpha``. The promise rests only on the random order of the rounds. So
it holds for any noise that is the same for both variants. It also holds for independent rounds with one centre and
different spreads, if log differences are symmetric about the bound.

A guard (``no_slower_than``, ``same_as``) also fails at ``alpha``. It may hold wrongly at .05 if rounds are independent.
If they are not and both variants have the same noise, it may at .1.

The order cannot distinguish an effect from an autocorrelation or a drift of only one variant, or from carry-over. A
verdict is about the running instances under the given workload, in the time of the measurement. ``verdict`` decides: it
compares intervals with ``Claim.bounds``.
"""

from __future__ import annotations

import abc
import dataclasses
import enum
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from pytest_dbcluster import formatting
from pytest_dbcluster.claims import critical_values
from pytest_dbcluster.claims.critical_values import ALPHAS, GUARD_LEVEL
from pytest_dbcluster.claims.pairs import Pairs
from pytest_dbcluster.errors import ConfigError

T = TypeVar("T")
AnyKind = TypeVar("AnyKind", bound="Kind")
UNDECIDED = "not decided: "  # how the sentence of an inconclusive claim begins
EQUAL = (1.0,)  # the ratio of what does not differ


class Shape(enum.Enum):
    """What a claim compares."""

    RATIO = "ratio"
    """Speeds, or latencies as speeds."""

    COUNTER = "counter"
    """What the servers count in a round; a lower count is not a higher speed."""

    DURATION = "duration"
    """Seconds of an event, such as a stall, or milliseconds of a latency."""

    PROPORTION = "proportion"
    """The share of the repetitions of an event in which something happened."""


class Outcome(enum.Enum):
    """The three possible outcomes of a claim."""

    HOLDS = "holds"
    FAILS = "fails"
    INCONCLUSIVE = "inconclusive"


# The words for the outcomes of claims wherever people read.
STATES = {Outcome.HOLDS: "holds", Outcome.FAILS: "refuted", Outcome.INCONCLUSIVE: "inconclusive"}
KINDS: dict[str, Kind] = {}  # the kinds that are known, by name


class Kind(abc.ABC):
    """A kind of claim, one file of ``claims.kinds``. Claims of this kind are made by calling it with their margin."""

    name: ClassVar[str]
    """The name of the method or function with which a test makes the claim, unless ``method`` has it."""

    method: ClassVar[str] = ""
    """The name of the method, if another kind has it, too; empty if it is ``name``."""

    option: ClassVar[str] = "by"
    """The name of the margin."""

    shape: ClassVar[Shape] = Shape.RATIO
    """What it compares."""

    minimum: ClassVar[float] = 0.0
    """The margin is larger than this, or equal to it with ``no_margin``."""

    below: ClassVar[float] = math.inf
    """The margin is smaller than this."""

    no_margin: ClassVar[bool] = False
    """Whether the margin may be left out; it is ``minimum`` then."""

    guard: ClassVar[bool] = False
    """Whether it says that nothing got worse. Such a claim may hold at the level .05."""

    claims_nothing: ClassVar[bool] = False
    """Whether it only asks if the variants differ, so that it never fails."""

    candidate_last: ClassVar[bool] = False
    """Whether a test writes the variants in the reverse order: the baseline, or the slowest, first."""

    composed: ClassVar[bool] = False
    """Whether its ratio is that of two measured ratios, so that no medians of two variants belong to it."""

    of_many: ClassVar[bool] = False
    """Whether it is about more than two variants, so that it is no method of a series."""

    about_size: ClassVar[bool] = False
    """Whether it is about the number of nodes, also between different topologies."""

    looks_from: ClassVar[int] = 0
    """The number of pairs before which no look decides."""

    paired: ClassVar[bool] = True
    """Whether its ratio is that of pairs of rounds of two series; an effect of an option is not."""

    sides: ClassVar[int] = 2
    """The ends of its interval, each of which errs with alpha."""

    @property
    def is_ratio(self) -> bool:
        """Whether the verdict has the ratio of two variants; otherwise it is about repetitions, such as of an event."""
        return self.shape in (Shape.RATIO, Shape.COUNTER)

    @property
    def has_history(self) -> bool:
        """Whether its ratio compares the same variants in every run."""
        return self.is_ratio

    @abc.abstractmethod
    def bounds(self, margin: float) -> tuple[float, float]:
        """The open range of theta, in natural logs, in which the claim is true."""

    @abc.abstractmethod
    def says(self, claim: Claim, names: Sequence[str], metric: str, unit: str, *, true: bool = True) -> str:
        """What the claim says in words, or with ``true=False`` the opposite; arguments as in ``sentence``."""

    def __call__(self, margin: float | None = None) -> Claim:
        """The claim with this margin. Raises ConfigError for one that is out of range, and names the range."""
        margin = self.minimum if margin is None and self.no_margin else margin
        called, sign = self.method or self.name, "<=" if self.no_margin else "<"
        allowed = f"{self.minimum:g} {sign} {self.option} < {self.below:g}"
        if not isinstance(margin, int | float) or isinstance(margin, bool):
            hint = "; a guard needs its margin, .05 and .10 are usual" if self.guard else ""
            raise ConfigError(f"{called}({self.option}={margin!r}): {self.option} must be a number, {allowed}{hint}")
        if not (self.minimum < margin < self.below or (self.no_margin and margin == self.minimum)):
            why = f"{self.option} is out of range, {allowed}{self.hint(margin)}"
            raise ConfigError(f"{called}({self.option}={margin!r}): {why}")
        return Claim(self.name, float(margin))

    def hint(self, margin: float) -> str:
        """What a margin of 1 or more means, for people who meant per cent; empty for other margins."""
        if not 1 <= margin < math.inf:
            return ""
        return f"; it is a fraction: {margin:g} means {100 * margin:g} % and {margin:g} % is {margin / 100:g}"

    def comparisons(self, variants: Sequence[T]) -> list[tuple[T, T]]:
        """The comparisons, each with candidate and baseline: of all neighbours. variants: the candidate first."""
        return [*itertools.pairwise(variants)]

    def subclaims(self, claim: Claim, parts: Sequence[Pairs], apart: Sequence[float]) -> list[tuple[Claim, Pairs]]:
        """The claims that are judged together: this one holds if all of them hold, and fails if one fails.

        parts: the pairs of each comparison, in the order in which a test writes them. apart: of each comparison as in
        ``Claim``; empty if all variants share a cluster.
        """
        (pairs,) = parts
        return [(claim, pairs)]

    def call(self, claim: Claim, names: tuple[str, ...], metric: str, usual: str) -> str:
        """The claim as a test writes it; see ``Claim.call``."""
        return f"{names[0]}.{self.name}({', '.join([names[1], *self.keywords(claim, metric, usual)])})"

    def keywords(self, claim: Claim, metric: str, usual: str) -> list[str]:
        """The keyword arguments of the call: margin and metric, without those that have their default."""
        margin = [f"{self.option}={claim.margin:g}"] if claim.margin else []
        return margin if metric == usual else [*margin, f'metric="{metric}"']

    def range_text(self, claim: Claim) -> str:
        """The range that the claim asserts: ``more than 1.50x``, ``less than 1.00x``, ``-10 % .. +11 %``."""
        low, high = map(self.value, claim.bounds)
        if math.isinf(high):
            return f"more than {self.bound_text(low)}"
        if not low or math.isinf(low):
            return f"less than {self.bound_text(high)}"
        return f"{formatting.change(low)} .. {formatting.change(high)}"

    def value(self, theta: float) -> float:
        """A point of the scale of ``bounds`` as it is shown: the ratio of a natural log."""
        return as_ratio(math.exp(theta))

    def figure_text(self, value: float, limits: Sequence[float]) -> str:
        """An estimate as text, ``1.84x``. limits: as in ``formatting.ratio``."""
        return formatting.ratio(value, limits)

    def interval_text(self, low: float, high: float, limits: Sequence[float]) -> str:
        """An interval as text, ``1.18 .. 3.08``. limits: as in ``formatting.ratio``."""
        return formatting.interval(low, high, limits)

    def bound_text(self, bound: float) -> str:
        """A bound as text, ``1.50x``."""
        return formatting.bound(bound)

    def looks(self, instances: int) -> tuple[int, ...]:
        """The numbers of pairs at which a claim can be judged. instances: as in ``critical_values.looks``."""
        return critical_values.looks(instances)

    def earliest(self, level: float) -> int:
        """The pairs before which no look decides at this level, for kinds with separate looks; 0 for others."""
        return 0

    def needs(self, verdict: Verdict) -> str:
        """What would decide an inconclusive claim, for kinds that do not compare pairs; empty for others."""
        return ""

    def word(self, outcome: Outcome) -> str:
        """The outcome in one or two words."""
        return STATES[outcome]

    def sentence(self, claim: Claim, outcome: Outcome, names: Sequence[str], metric: str, unit: str) -> str:
        """The answer as a sentence; see ``Claim.sentence``."""
        if outcome is Outcome.INCONCLUSIVE:
            return f"{UNDECIDED}whether {self.says(claim, names, metric, unit)}"
        return self.says(claim, names, metric, unit, true=outcome is Outcome.HOLDS)

    def headline(self, ratio: str, names: Sequence[str], metric: str, unit: str, *, holds: bool, count: int) -> str:
        """The answer of a decided claim with its ratio; empty if it would be too long for a line.

        names: of all variants, the candidate first. count: of the pairs or repetitions.
        """
        return f"{names[0]} is {ratio} as fast as {names[1]}{by_metric(metric, unit)}"

    def figure(self, ratio: str) -> str:
        """The ratio with what it is; empty if the headline has it."""
        return ""

    def of_level(self, level: str, interval: str) -> str:
        """An interval beside a headline, ``99.9 %: 6.04 .. 6.26 s``."""
        return f"{level}: {interval}"


@dataclass(frozen=True)
class Claim:
    """A statement about theta, the log ratio of candidate and baseline."""

    kind: str
    """``Kind.name``."""

    margin: float
    """A fraction (``by``, ``within``, ``step``); for ``scales`` the ratio ``at_least``."""

    share: float = 0.5
    """The share of the repetitions of an event that the claim is about; .5 is their median."""

    rate: float = 0.0
    """The arrival rate that the claim is about, in operations a second; 0 for any other claim."""

    apart: float = 0.0
    """How far two equal clusters can differ (``cluster_difference``), as a natural log; 0 on a shared cluster."""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"unknown kind of claim {self.kind!r}; known: {', '.join(sorted(KINDS))}")

    @property
    def of_kind(self) -> Kind:
        """What all claims of this kind have in common."""
        return KINDS[self.kind]

    @property
    def guard(self) -> bool:
        """Whether the claim says that nothing got worse. Such a claim may hold at the level .05."""
        return self.of_kind.guard

    @property
    def counts(self) -> bool:
        """Whether the claim is about a counter, not about speeds or latencies."""
        return self.of_kind.shape is Shape.COUNTER

    @property
    def bounds(self) -> tuple[float, float]:
        """The open range of theta, in natural logs, in which the claim is true.

        For ``differs`` both ends are 0, the only point at which the claim is false.
        """
        return self.of_kind.bounds(self.margin)

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
        """The finite ends of ``bounds`` as ratios, or seconds of a duration, in rising order."""
        return tuple(sorted({self.of_kind.value(bound) for bound in self.bounds if math.isfinite(bound)}))

    @property
    def limits(self) -> tuple[float, ...]:
        """The ratios at which the answer changes: the finite ends of the three ranges above, in rising order.

        The text of a ratio must show on which side of them it lies, so no rounding crosses one.
        """
        ranges = (self.bounds, self.hold_bounds, self.fail_bounds)
        return tuple(sorted({self.of_kind.value(end) for some in ranges for end in some if math.isfinite(end)}))

    @property
    def margins(self) -> list[float]:
        """The margins of speed or time, as absolute log ratios; none for a claim without one or about a counter."""
        if self.of_kind.shape is not Shape.RATIO:
            return []
        return [abs(bound) for bound in self.bounds if math.isfinite(bound) and bound]

    def hold_level(self, alpha: float) -> float:
        """The maximum chance that the claim holds wrongly: .05 for a guard exactly on its margin, else ``alpha``.

        For a guard this is the chance if rounds are independent.
        """
        return GUARD_LEVEL if self.guard else alpha

    def call(self, names: tuple[str, ...], metric: str, usual: str = "throughput") -> str:
        """The claim as a test writes it: ``flush_2.beats(default, by=0.1)``.

        names: candidate and baseline, or all variants of an order, slowest first. For ``fades`` the two pairs, each
        with its baseline first. usual: the default metric of the workload, which the text leaves out. A comparison
        without a claim (``differs``) gets its name in the table.
        """
        return self.of_kind.call(self, names, metric, usual)

    def sentence(self, outcome: Outcome, names: Sequence[str], metric: str, unit: str) -> str:
        """The answer as a sentence without its full stop: ``flush_2 is not faster than galera3``.

        names: as in ``call``. metric, unit: of the claim; the unit is ``/s`` for speeds, ``ms`` for latencies, and
        empty for counters.
        """
        return self.of_kind.sentence(self, outcome, names, metric, unit)

    def identity(self, names: tuple[str, ...], metric: str) -> str:
        """The claim without its margin, and with its metric: the same for all claims that share one history.

        names: as in ``call``.
        """
        return dataclasses.replace(self, margin=0.0).call(names, metric, usual="")


def register(kind: AnyKind) -> AnyKind:
    """Add a kind to those that are known, and return it."""
    KINDS[kind.name] = kind
    return kind


def as_ratio(value: float) -> float:
    """The ratio without the last digits, which are wrong if it is the exponential of a logarithm."""
    return float(f"{value:.12g}")


def by_metric(metric: str, unit: str) -> str:
    """The metric, if it is not simply the speed: ``, by p95``."""
    return "" if unit == "/s" and metric == "throughput" else f", by {metric}"


@dataclass(frozen=True)
class Verdict:
    """The outcome of a claim, with every figure that its message shows. ``bool(verdict)`` is always True.

    Ratios are candidate / baseline. A figure is nan if the pairs cannot give it. The verdict on an order has the
    figures of its smallest step.
    """

    outcome: Outcome
    """Holds, fails or inconclusive."""

    claim: Claim
    """The claim, with the difference that equal clusters can have."""

    pairs: int
    """The pairs drawn; the repetitions of an event for each variant; of ``meets`` the rounds."""

    ratio: float
    """The Hodges-Lehmann estimate; of a counter the median of the pairs.

    Of an event it is the estimate in seconds, or the share of the repetitions that lost a transaction. Of ``meets`` it
    is the median of a percentile, in milliseconds.
    """

    low: float
    """The lower end of the sequential interval of the ratio, valid at all looks together.

    Its level is 99.9 %, with alpha .0001 99.98 %.
    """

    high: float
    """The upper end of the same interval."""

    decided_low: float
    """The lower end of the interval that lets the claim hold: 90 % for a guard, else the same as ``low``."""

    decided_high: float
    """The upper end of the same interval."""

    reason: str
    """Why the drawing ended."""

    detectable: float
    """The smallest fraction that this many pairs show with power .8; infinite below 2 pairs."""

    needed_pairs: int | None
    """The pairs that would decide an inconclusive claim; None if no number is known."""

    pair_sd: float
    """The standard deviation of a log ratio; infinite below 2 pairs."""

    halves: tuple[float, float]
    """The ratio of the first and of the second half of the pairs."""

    order_effect: float
    """The fraction by which pairs that ran AB (baseline first) lie above pairs that ran BA."""

    lag1: float
    """The correlation of each log ratio with the next."""

    stalls: tuple[int, int] | None = None
    """The stalled rounds of (baseline, candidate)."""

    alpha: float = ALPHAS[0]
    """The maximum chance of a wrong verdict per side."""

    needed_margin: float | None = None
    """The margin, a fraction, with which an inconclusive guard would hold; None for other claims."""

    neighbours: tuple[Verdict, ...] = ()
    """The verdicts on the steps of an order, slowest first."""

    void: tuple[int, int] = (0, 0)
    """The void rounds of (baseline, candidate), which were drawn again."""

    total: float | None = None
    """The ratio of the totals of all rounds, for a claim about a counter."""

    detectable_most: float | None = None
    """The other end of ``detectable``, if the pairs do not show their noise well enough; else None."""

    @property
    def look(self) -> int:
        """The number of the look that decided, 1-based; 0 before the first look."""
        return sum(look <= self.pairs for look in self.claim.of_kind.looks(1))
