"""Series: the rounds of one variant, and the claims that a test makes about them.

Every claim draws its own rounds when it is called, and returns an ``Answer`` for ``assert``. ``claims.kinds`` says
what each claim promises, ``claims.verdict`` decides it.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from pytest_dbcluster import calls, registry
from pytest_dbcluster.claims import kinds
from pytest_dbcluster.claims.claim import KINDS, Claim, Kind
from pytest_dbcluster.claims.critical_values import MAX_STEPS
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.formatting import quantity
from pytest_dbcluster.measuring.question import Question
from pytest_dbcluster.rounds import counters
from pytest_dbcluster.rounds.round import Round

if TYPE_CHECKING:
    from pytest_dbcluster.measuring.answer import Answer
    from pytest_dbcluster.measuring.measurement import Measurement

COMPARISON_PAIRS = 20  # the maximum that ``against`` draws


@dataclasses.dataclass(frozen=True)
class Series:
    """The rounds of one variant, and the claims about it. No round is drawn before a claim is made.

    All claims follow the same rules:

    - A claim draws blocks of rounds until it is decided. It stops at 160 pairs (``--db-max-pairs``), or when its
      measured time is used (``--db-budget``).
    - The chance of a wrong verdict is at most .0005 (``--db-alpha``) towards each side, over all looks together.
      A guard may hold wrongly with .05 if rounds are independent, else with .1.
    - That is the chance of a claim that you chose before you saw its rounds. If you claim the best of five variants
      afterwards, it is wrong up to five times as often.
    - ``assert answer`` passes if the claim holds, raises ClaimFailed if it fails, and Inconclusive otherwise.

    Making a claim raises one of these errors:

    - ConfigError for a wrong margin or metric, and for rounds too long for the budget. Also for series that are the
      same or were not measured together.
    - SeriesVoid if rounds are void too often (a tenth of the pairs), or a check of the clusters fails.
    - Inconclusive if the run's time, or the budget, ends before the first look.
    """

    measurement: Measurement = dataclasses.field(repr=False)
    """The measurement that draws the rounds."""

    number: int
    """The number of the variant in the measurement, 0-based."""

    @property
    def rounds(self) -> Sequence[Round]:
        """The rounds that count so far; if this run drew none, those of an answer of an earlier run."""
        return self.measurement.values.rounds(self.number)

    @property
    def name(self) -> str:
        """The variant's short name."""
        return self.measurement.source.names[self.number]

    def __repr__(self) -> str:
        return f"<{self.name}: {quantity(len(self.rounds), 'round')}>"

    @calls.check_arguments("fast.beats(slow, by=0.1)")
    def beats(self, other: Series, by: float = 0.0, *, metric: str | None = None) -> Answer:
        """Claim that this variant is faster than the other by more than the fraction ``by``: ratio > 1 + by.

        Draws blocks of rounds now, until the claim is decided; the first look comes after 12 pairs. Holds when the
        sequential interval of the ratio (99.9 % at alpha .0005) lies above 1 + by. Fails when it lies below. Either
        verdict is wrong with a chance of at most alpha. ``Series`` lists the errors that are raised.

        metric: by default the metric of the workload, throughput or goodput. ``drained_throughput`` and
        ``drained_goodput`` include the time until all nodes are equal. In an open loop also the latencies ``p50``,
        ``p95``, ``p99`` and ``p999``: the lower latency is the faster. A latency can be that of one type of transaction
        (``p95:new_order``), or of one statement: ``p95:order:7`` is line 7 of order.sql.
        """
        return self._claim(kinds.beats(by), other, metric)

    @calls.check_arguments("candidate.no_slower_than(baseline, by=0.05)")
    def no_slower_than(self, other: Series, by: float, *, metric: str | None = None) -> Answer:
        """Guard that this variant is slower than the other by less than the fraction ``by``: ratio > 1 - by.

        Holds when the 90 % interval lies above 1 - by, fails when the sequential interval lies below.
        """
        return self._claim(kinds.no_slower_than(by), other, metric)

    @calls.check_arguments("candidate.same_as(baseline, within=0.05)")
    def same_as(self, other: Series, within: float, *, metric: str | None = None) -> Answer:
        """Guard that neither variant is slower than the other by the fraction ``within``.

        Holds when the 90 % interval lies within both limits, fails when the sequential interval lies outside.
        """
        return self._claim(kinds.same_as(within), other, metric)

    @calls.check_arguments("four.scales(one, at_least=2)")
    def scales(self, other: Series, at_least: float, *, metric: str | None = None) -> Answer:
        """Claim that this variant is more than ``at_least`` times as fast as the other."""
        return self._claim(kinds.scales(at_least), other, metric)

    @calls.check_arguments('candidate.lower("fsyncs_per_commit", than=baseline)')
    def lower(self, counter: str, than: Series, by: float = 0.0) -> Answer:
        """Claim that a counter of this variant is lower than the other's by more than the fraction ``by``.

        It shows the cause of a difference: ``flush_2.lower("fsyncs_per_commit", than=default)``. Pairs of
        rounds are compared; a pair that counted nothing is not evidence. An unknown counter is an error with the names.
        """
        if counter not in counters.NAMES:
            raise registry.unknown("counter", counter, counters.NAMES)
        return self._claim(kinds.lower(by), than, counter)

    @calls.check_arguments("candidate.against(baseline)")
    def against(self, other: Series, *, metric: str | None = None) -> Answer:
        """Measure and print the ratio to the other variant without a claim; ``bool`` of the answer is always True.

        Draws 20 pairs at most, and fewer when the interval excludes equal speed. Pairs that are there count, also more.
        """
        claim, cap = kinds.differs(), min(max(COMPARISON_PAIRS, self.measurement.pairs), self.measurement.rules.cap)
        return self._claim(claim, other, metric, cap=cap, asserted=False)

    def _claim(
        self, claim: Claim, other: Series, metric: str | None, *, cap: int | None = None, asserted: bool = True
    ) -> Answer:
        metric = self.measurement.metric if metric is None else metric
        if not claim.counts:
            self.measurement.check_metric(metric)
        if not isinstance(other, Series) or other.measurement is not self.measurement:
            raise ConfigError(
                f"{self.name} and {other!r} were not measured together; give both to one measure(..., on=[...])"
            )
        if other.number == self.number:
            raise ConfigError(f"{self.name} is compared with itself; a claim needs two variants")
        question = Question(claim, self.number, other.number, metric, asserted=asserted)
        return ask_or_recall(question, self.measurement, cap=cap)

    @calls.check_arguments('candidate.values("throughput")')
    def values(self, metric: str) -> list[float]:
        """One value per round drawn so far: operations/s, milliseconds of a latency, or a counter.

        Raises ConfigError before the first claim, which draws the rounds, and for an unknown metric.
        """
        if not self.rounds:
            raise ConfigError(
                f"{self.name}.values({metric!r}): no round is drawn yet; a claim draws them, so make it first, such as "
                f"assert fast.beats(slow), or a comparison without a claim: {self.name}.against(other)"
            )
        return self.measurement.values.to_print(self.number, metric)

    def _of_kind(self, kind: Kind, other: Series, *, metric: str | None = None, **margin: float) -> Answer:
        """A claim of a kind without a method here. The kind names its margin."""
        if wrong := [name for name in margin if name != kind.option]:
            raise ConfigError(f"{kind.name}({wrong[0]}=...): its margin is {kind.option}=")
        return self._claim(kind(margin.get(kind.option)), other, metric)

    if not TYPE_CHECKING:  # so mypy goes on refusing ``fast > slow``

        def _refuse_order(self, other: object) -> NoReturn:
            raise ConfigError(
                f"{self.name} is compared with <, <=, > or >=, but a series is not a number: make a claim, such as "
                f"assert {self.name}.beats({getattr(other, 'name', 'other')})"
            )

        def __getattr__(self, name: str) -> object:
            if name in KINDS and KINDS[name].is_ratio and KINDS[name].paired and not KINDS[name].of_many:
                return functools.partial(self._of_kind, KINDS[name])
            # Also called for what Python and pytest look for, so the error has to be an AttributeError.
            known = [claim for claim, value in vars(Series).items() if callable(value) and not claim.startswith("_")]
            raise AttributeError(f"a series has no {name!r}; known: {', '.join(known)}")

        __lt__ = __le__ = __gt__ = __ge__ = _refuse_order


def series_of(measurement: Measurement) -> list[Series]:
    """One series per variant of a measurement, in the order of the variants."""
    return [Series(measurement, number) for number in range(len(measurement.rounds))]


@calls.check_arguments("ordered(slow, middle, fast, step=0.05)")
def ordered(*slowest_first: Series, step: float = 0.0, metric: str | None = None) -> Answer:
    """Claim that each of 2 to 5 series is faster than the one before by more than the fraction ``step``.

    Holds when every step holds at alpha (.0005), fails when one step fails at alpha / number of steps. Draws and
    raises as ``Series`` says.
    """
    measurements = {id(item.measurement) if isinstance(item, Series) else None for item in slowest_first}
    if len(slowest_first) < 2 or len(measurements) > 1 or None in measurements:
        raise ConfigError("ordered(...) accepts two or more series of one measure(..., on=[...]), the slowest first")
    if len(slowest_first) > MAX_STEPS + 1:
        raise ConfigError(f"ordered accepts 2 to {MAX_STEPS + 1} variants, not {len(slowest_first)}")
    if twice := next((series for k, series in enumerate(slowest_first) if series in slowest_first[:k]), None):
        raise ConfigError(f"{twice.name} is compared with itself; a claim needs two variants")
    return _answer_last_first(kinds.ordered(step), slowest_first, metric)


@calls.check_arguments("fades((one, one_far), (many, many_far), by=0.1)")
def fades(
    first: tuple[Series, Series], second: tuple[Series, Series], *, by: float = 0.0, metric: str | None = None
) -> Answer:
    """Claim that the second pair of series loses a smaller share of its speed than the first pair.

    In ``fades((one, one_far), (many, many_far))`` one_far / one is what one client keeps of its speed over the
    distance. many_far / many is what many clients keep. It holds when the second ratio / the first > 1 + by. All four
    come from one measure({"one": load, "many": other_load}, on=[near, far]). Judged like ``beats``, from 17 blocks on,
    with an order drawn for each pair. That there is a loss at all is a separate claim. Draws and raises as ``Series``
    says.
    """
    return _answer_of_two_pairs(kinds.fades(by), first, second, metric)


def _answer_of_two_pairs(claim: Claim, first: object, second: object, metric: str | None) -> Answer:
    """The answer of a claim about two pairs of series, each with its baseline first."""
    four = [*_pair(claim.kind, first), *_pair(claim.kind, second)]
    if len({id(series.measurement) for series in four}) > 1:
        raise ConfigError(f"{claim.kind}(...) accepts four series of one measure(..., on=[...])")
    if twice := next((series for k, series in enumerate(four) if series in four[:k]), None):
        raise ConfigError(f"{claim.kind}(...): {twice.name} is in it twice; it accepts four series, two pairs of two")
    return _answer_last_first(claim, four, metric)


def _pair(kind: str, pair: object) -> tuple[Series, Series]:
    """The two series of a pair. Raises ConfigError for anything else."""
    if isinstance(pair, tuple | list) and len(pair) == 2 and all(isinstance(one, Series) for one in pair):
        return pair[0], pair[1]
    raise ConfigError(
        f"{kind}(...) accepts two pairs of series, the slowed one last in each: "
        f"{kind}((one, one_far), (many, many_far)); got {pair!r}"
    )


def _answer_last_first(claim: Claim, series: Sequence[Series], metric: str | None) -> Answer:
    """The answer of a claim about series of one measurement; a test writes the candidate last."""
    measurement = series[0].measurement
    metric = measurement.metric if metric is None else metric
    measurement.check_metric(metric)
    candidate, baseline, *others = (one.number for one in reversed(series))
    return ask_or_recall(Question(claim, candidate, baseline, metric, tuple(others)), measurement)


def ask_or_recall(question: Question, measurement: Measurement, *, cap: int | None = None) -> Answer:
    """The answer of a claim: that of the run that this one continues, else a new one. Raises as ``ask`` does."""
    from pytest_dbcluster.measuring import decision  # not before, since a test module may import ``ordered``

    measurement.claims.declare(question)
    if (known := measurement.take_over(question)) is not None:
        return known
    decision.check_reach(question, measurement)
    decision.add_cluster_difference(question, measurement)
    measurement.source.permit(question.metric)
    return decision.ask(question, measurement, cap=cap)
