"""Effects: what each of several options does, from the same rounds, and the claims about it."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence

from pytest_dbcluster import calls, formatting, registry
from pytest_dbcluster.claims import estimators, kinds
from pytest_dbcluster.claims.claim import EQUAL, Claim
from pytest_dbcluster.claims.factorial import chances, contrasts
from pytest_dbcluster.errors import ConfigError, DBClusterError
from pytest_dbcluster.formatting import quantity
from pytest_dbcluster.measuring import decision
from pytest_dbcluster.measuring.answer import Answer
from pytest_dbcluster.measuring.measurement import Measurement
from pytest_dbcluster.measuring.question import Question

Pair = tuple[str, str]


@dataclasses.dataclass(frozen=True)
class InteractionEstimate:
    """How much the effect of one option differs between the levels of another."""

    options: Pair
    """The names of both options."""

    ratio: float
    """The first one's effect at the second level of the other, divided by its effect at the first level."""

    low: float
    """The lower end of its interval."""

    high: float
    """The upper end of the same interval."""

    claimed: bool
    """Whether the pair was named before the first round. The interval of another pair is no claim."""

    def __str__(self) -> str:
        interval = formatting.interval(self.low, self.high, EQUAL)
        shown = "" if self.claimed else "; only shown: its pair was not named before"
        return f"{' and '.join(self.options)}: {formatting.ratio(self.ratio, EQUAL)} ({interval}){shown}"


@dataclasses.dataclass(frozen=True)
class OptionEffect:
    """The effect of an option, or the interaction of two. No round is drawn before a claim is made.

    The ratio is the speed at the second level divided by that at the first level. It covers all combinations of the
    others. Of two options it is the ratio of the first option's effects at both levels of the second option.

    A claim draws blocks of eight rounds until it is decided. All effects share the rounds. ``Series`` says when it
    stops and what it raises. The options share alpha, so all their claims together err with alpha at most.
    """

    measurement: Measurement = dataclasses.field(repr=False)
    """The measurement that draws the rounds."""

    numbers: tuple[int, ...]
    """The numbers of the compared levels in the measurement: the second level first, then those of another option."""

    @property
    def name(self) -> str:
        """The levels that it compares, such as ``sync_binlog=0 against sync_binlog=1``."""
        names = tuple(self.measurement.source.names[number] for number in self.numbers)
        return kinds.effect_differs().call(names, "", "")

    def __repr__(self) -> str:
        return f"<{self.name}: {quantity(2 * self.measurement.pairs, 'round')}>"

    @calls.check_arguments('effects["sync_binlog"].beats(by=0.05)')
    def beats(self, by: float = 0.0, *, metric: str | None = None) -> Answer:
        """Claim that the second level is faster than the first one by more than the fraction ``by``: ratio > 1 + by."""
        return self._claim(kinds.effect_beats(by), metric)

    @calls.check_arguments('effects["sync_binlog"].same_as(within=0.05)')
    def same_as(self, within: float, *, metric: str | None = None) -> Answer:
        """Guard that neither level is slower than the other one by the fraction ``within``."""
        return self._claim(kinds.effect_same_as(within), metric)

    def _claim(self, claim: Claim, metric: str | None) -> Answer:
        measurement = self.measurement
        metric = measurement.metric if metric is None else metric
        measurement.check_metric(metric)
        question = self.question(claim, metric)
        measurement.claims.declare(question)
        if (known := measurement.take_over(question)) is not None:
            return known
        decision.check_reach(question, measurement)
        measurement.source.permit(question.metric)
        return decision.ask(question, measurement)

    def question(self, claim: Claim, metric: str, *, asserted: bool = True) -> Question:
        """The question of a claim about it."""
        candidate, baseline, *others = self.numbers
        return Question(claim, candidate, baseline, metric, tuple(others), asserted)


@dataclasses.dataclass(frozen=True)
class Effects:
    """The effects of several options. ``effects["sync_binlog"]`` is that of one option, by its name.

    ``effects["sync_binlog", "innodb_io_capacity"]`` is the interaction of two options that ``pairs`` has named.
    """

    measurement: Measurement = dataclasses.field(repr=False)
    """The measurement that draws the rounds; its variants are the levels, two for each option."""

    options: Mapping[str, tuple[str, str]]
    """The two levels of each option, by its name; the first is the baseline."""

    pairs: Sequence[Pair] = ()
    """The pairs of options whose interaction may be claimed."""

    def __post_init__(self) -> None:
        self.measurement.at_end = self._show_rest

    def __iter__(self) -> Iterator[str]:
        return iter(self.options)

    def __len__(self) -> int:
        return len(self.options)

    def __getitem__(self, option: str | Pair) -> OptionEffect:
        names = (option,) if isinstance(option, str) else tuple(option)
        for name in names:
            if name not in self.options:
                raise registry.unknown("option of this measurement", str(name), list(self.options))
        if len(names) > 1 and set(names) not in map(set, self.pairs):
            raise ConfigError(
                f"effects[{', '.join(map(repr, names))}]: a claim about two options has to be planned; name the pair "
                f"before: measure.factorial(..., pairs=[({', '.join(map(repr, names))})])"
            )
        known = list(self.options)
        numbers = [2 * known.index(name) + level for name in names for level in (1, 0)]
        return OptionEffect(self.measurement, tuple(numbers))

    def interactions(self, *, metric: str | None = None) -> list[InteractionEstimate]:
        """Estimate how much each two options depend on each other, from the rounds of the last look; the largest first.

        Only pairs that were named before can be claimed. Empty if an earlier run, which this one continues, has all
        answers. Raises ConfigError before the first claim, which draws rounds.
        """
        measurement = self.measurement
        if not measurement.pairs and measurement.claims.answers:
            return []
        if not measurement.pairs:
            raise ConfigError('effects.interactions(): no round is drawn yet; make a claim first, such as effects["x"]')
        drawn = measurement.values.trial(measurement.metric if metric is None else metric)
        trial = drawn.part(0, chances.last_look(drawn.blocks) or drawn.blocks)
        found, named = [], [set(pair) for pair in self.pairs]
        for one, other in itertools.combinations(range(len(self.options)), 2):
            contrast = contrasts.of(trial, one, other)
            low, high = contrast.interval(measurement.rules.alpha)
            names = list(self.options)[one], list(self.options)[other]
            ends = estimators.factor(contrast.estimate), estimators.factor(low), estimators.factor(high)
            found.append(InteractionEstimate(names, *ends, set(names) in named))
        return sorted(found, key=lambda one: -abs(math.log(one.ratio)) if one.ratio > 0 else 0.0)

    def _show_rest(self) -> None:
        """Report the effects about which no claim was made, as comparisons, so that the results have all of them."""
        measurement = self.measurement
        claimed = {answer.question.variants for answer in measurement.claims.answers}
        for option in self if claimed else ():
            effect = self[option]
            if effect.numbers not in claimed:
                question = effect.question(kinds.effect_differs(), measurement.metric, asserted=False)
                try:
                    if measurement.take_over(question) is None and measurement.pairs:
                        decision.show(question, measurement)
                except DBClusterError:  # the clusters are gone, and the claims have said why
                    return
