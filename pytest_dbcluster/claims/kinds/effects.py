"""The kinds of claims about the effect of an option: ``effects["sync_binlog"].beats(by=0.05)``, ``same_as``.

Names are those of levels, such as ``sync_binlog=0``: the second level, then the first. A claim about two options has
those of the second option too: the effect of the first one is compared at the levels of the second one.
"""

from __future__ import annotations

from collections.abc import Sequence

from pytest_dbcluster.claims.claim import Claim, Kind, T, by_metric, register
from pytest_dbcluster.claims.factorial import chances
from pytest_dbcluster.claims.factorial.design import PER_LEVEL
from pytest_dbcluster.claims.kinds.beats import Beats
from pytest_dbcluster.claims.kinds.differs import Differs
from pytest_dbcluster.claims.kinds.guards import SameAs


class EffectKind(Kind):
    """What the kinds of claims about an effect have in common."""

    paired = False

    def looks(self, instances: int) -> tuple[int, ...]:
        """The numbers of rounds of each level at which a claim can be judged."""
        return chances.PAIRS

    def earliest(self, level: float) -> int:
        """The rounds of each level at the first look that can decide."""
        return PER_LEVEL * chances.first_look(level)

    def comparisons(self, variants: Sequence[T]) -> list[tuple[T, T]]:
        """The two levels of the option; of two options those of each."""
        return super().comparisons(variants)[::2]

    def call(self, claim: Claim, names: tuple[str, ...], metric: str, usual: str) -> str:
        """``effects["sync_binlog"].beats(by=0.05)``; of two options ``effects["sync_binlog", "flush"].beats()``.

        Without a usual metric, as in an identity, it has the levels: the same option may have others in another call.
        """
        asked = ", ".join(f'"{option_of(name) if usual else name}"' for name in names[::2])
        return f"effects[{asked}].{self.method}({', '.join(self.keywords(claim, metric, usual))})"


class EffectBeats(EffectKind, Beats):
    """The second level of an option is faster than its first one by more than the fraction ``by``: ratio > 1 + by.

    Holds when the sequential interval of the effect lies above 1 + by. Fails when it lies below. The options share
    alpha, so all claims about the effects of one measurement together err with alpha at most. That is exact for an
    option that does nothing in any combination of the others.
    """

    name = "effect_beats"
    method = "beats"

    def says(self, claim: Claim, names: Sequence[str], metric: str, unit: str, *, true: bool = True) -> str:
        """``sync_binlog=0 is more than 5 % faster than sync_binlog=1``."""
        if len(names) == 2:
            return super().says(claim, names, metric, unit, true=true)
        more = f"more than {100 * claim.margin:.4g} % larger" if claim.margin else "larger"
        return f"{_gain(names)} is {'' if true else 'not '}{more} {_between(names, 'than')}{by_metric(metric, unit)}"

    def headline(self, ratio: str, names: Sequence[str], metric: str, unit: str, *, holds: bool, count: int) -> str:
        """``sync_binlog=0 is 1.84x as fast as sync_binlog=1``."""
        return _headline(ratio, names, metric, unit) or super().headline(
            ratio, names, metric, unit, holds=holds, count=count
        )


class EffectSameAs(EffectKind, SameAs):
    """The guard: neither level of an option is slower than the other one by the fraction ``within``.

    Holds when the 90 % interval of the effect lies inside both limits. That is wrong with a chance of at most .05,
    whatever the noise is. Fails when the sequential interval lies outside. Raises ConfigError unless 0 < within < 1.
    """

    name = "effect_same_as"
    method = "same_as"

    def says(self, claim: Claim, names: Sequence[str], metric: str, unit: str, *, true: bool = True) -> str:
        """``sync_binlog=0 and sync_binlog=1 are equally fast within 5 %``."""
        if len(names) == 2:
            return super().says(claim, names, metric, unit, true=true)
        equal = f"{'' if true else 'not '}equal within {100 * claim.margin:.4g} %"
        return f"{_gain(names)} is {equal} {_between(names, 'and')}{by_metric(metric, unit)}"

    def headline(self, ratio: str, names: Sequence[str], metric: str, unit: str, *, holds: bool, count: int) -> str:
        """``sync_binlog=0 is 1.01x as fast as sync_binlog=1``."""
        return _headline(ratio, names, metric, unit) or super().headline(
            ratio, names, metric, unit, holds=holds, count=count
        )


class EffectDiffers(EffectKind, Differs):
    """The two levels of an option are not equally fast. It is shown for every option, and is not a claim."""

    name = "effect_differs"

    def call(self, claim: Claim, names: tuple[str, ...], metric: str, usual: str) -> str:
        """Its name in the table: ``sync_binlog=0 against sync_binlog=1``."""
        by = "" if metric == usual else f" ({metric})"
        return f"{names[0]} against {names[1]}{f' {_between(names)}' if len(names) > 2 else ''}{by}"

    def says(self, claim: Claim, names: Sequence[str], metric: str, unit: str, *, true: bool = True) -> str:
        """``sync_binlog=0 and sync_binlog=1 differ``."""
        if len(names) == 2:
            return super().says(claim, names, metric, unit, true=true)
        return f"{_gain(names)} differs {_between(names, 'and')}{by_metric(metric, unit)}"

    def headline(self, ratio: str, names: Sequence[str], metric: str, unit: str, *, holds: bool, count: int) -> str:
        """``sync_binlog=0 is 1.84x as fast as sync_binlog=1``."""
        return _headline(ratio, names, metric, unit) or super().headline(
            ratio, names, metric, unit, holds=holds, count=count
        )


def option_of(level: str) -> str:
    """The option of a level: ``sync_binlog`` of ``sync_binlog=0``."""
    return level.partition("=")[0]


def _gain(names: Sequence[str]) -> str:
    return f"the gain of {names[0]} over {names[1]}"


def _between(names: Sequence[str], word: str = "and") -> str:
    return f"with {names[2]} {word} with {names[3]}"


def _headline(ratio: str, names: Sequence[str], metric: str, unit: str) -> str:
    """The answer about two options with its ratio; empty for a claim about one."""
    if len(names) == 2:
        return ""
    return f"the gain of {names[0]} is {ratio} as large {_between(names, 'as')}{by_metric(metric, unit)}"


effect_beats = register(EffectBeats())
effect_same_as = register(EffectSameAs())
effect_differs = register(EffectDiffers())
