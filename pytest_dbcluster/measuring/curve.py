"""Curve: one load at several values of one of its fields, such as 1, 4 and 16 threads; claims are made at each point.

Variants alternate inside a point; points are measured one after the other, so a claim compares variants at a value and
never one value with another.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pytest_dbcluster import registry
from pytest_dbcluster.claims.claim import Outcome
from pytest_dbcluster.errors import ClaimFailed, ConfigError, Inconclusive
from pytest_dbcluster.measuring.answer import Answer
from pytest_dbcluster.measuring.measurement import Measurement
from pytest_dbcluster.measuring.series import series_of

JOINING = ("at", "of", "on", "to")  # what says nothing without the word after it
SAME = ("threads", "concurrency")  # two names of one thing: a load has the one or the other
BLOCKS = 6  # the fewest whose extremes are a 95 % interval of the median


@dataclasses.dataclass(frozen=True)
class Point:
    """One value of the field, and what was measured there."""

    value: object
    measurement: Measurement


class Curve:
    """The points of a sweep. Iterating yields ``(value, series, ...)``: claims draw what they need at that value."""

    def __init__(self, load: object, field: str, points: Sequence[Point]) -> None:
        self.load = _shared([point.measurement.source.load for point in points]) or type(load).__name__
        self.field = field
        self.points = tuple(points)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        for point in self.points:
            yield (point.value, *series_of(point.measurement))

    def every(self, claim: Callable[..., Answer]) -> Every:
        """One claim at every point: ``curve.every(lambda a, b: b.beats(a))``. All points are measured, then it answers.

        An open or failed point loses no other, nor does one that the run had no time for. Raises ConfigError for a
        function that answers with no claim.
        """
        answers: list[tuple[object, Answer]] = []
        missing: list[tuple[object, str]] = []
        for value, *series in self:
            try:
                answer = claim(*series)
            except Inconclusive as error:
                missing.append((value, str(error)))
                continue
            if not isinstance(answer, Answer):
                raise ConfigError(
                    f"curve.every takes a function that returns one claim, such as lambda a, b: b.beats(a), and at "
                    f"{self.field}={value} it returned {answer!r}"
                )
            answers.append((value, answer))
        return Every(self, answers, missing)

    def draw(self, blocks: int = BLOCKS) -> None:
        """Draw so many blocks at every point where there are fewer, for the table and the chart; nothing is claimed."""
        if isinstance(blocks, bool) or not isinstance(blocks, int) or blocks < 1:
            raise ConfigError(f"curve.draw(blocks={blocks!r}): it draws 1 block or more at each point")
        for point in self.points:
            found = point.measurement
            found.drawn_beside = True
            everybody = range(len(found.rounds))
            while found.pairs < blocks and not (found.pairs and found.over(everybody)):
                found.draw(everybody)
            found.check()


@dataclasses.dataclass(eq=False)
class Every:
    """The answers at all points of a curve. True when all hold, and never False.

    An answer that fails raises ClaimFailed; else one that is open raises Inconclusive. The message has all of them.
    missing: why a point has no answer.
    """

    curve: Curve
    answers: Sequence[tuple[object, Answer]]
    missing: Sequence[tuple[object, str]] = ()

    def __bool__(self) -> bool:
        for _, answer in self.answers:
            answer.read = True
        others = [one for one in self.answers if one[1].asserted and one[1].verdict.outcome is not Outcome.HOLDS]
        if not others and not self.missing:
            return True
        failed = [one for one in others if one[1].verdict.outcome is Outcome.FAILS]
        shown = [*failed, *(one for one in others if one not in failed)]
        text = self._text([*((value, answer.message) for value, answer in shown), *self.missing])
        raise ClaimFailed(text) if failed else Inconclusive(text)

    def _text(self, shown: Sequence[tuple[object, str]]) -> str:
        """How many points say what, then the messages of those that do not hold."""
        outcomes = [outcome for _, outcome in self._outcomes()]
        counts = [f"{outcomes.count(one)} {one.value}" for one in Outcome if one in outcomes]
        head = f"{self.curve.load} at {len(outcomes)} values of {self.curve.field}: {', '.join(counts)}"
        return "\n".join([head, *(f"{self.curve.field}={value}: {message}" for value, message in shown)])

    def _outcomes(self) -> list[tuple[object, Outcome]]:
        """In the order of the points, of which the last ones can be those without an answer."""
        answered = [(value, answer.verdict.outcome) for value, answer in self.answers]
        return [*answered, *((value, Outcome.INCONCLUSIVE) for value, _ in self.missing)]

    def __repr__(self) -> str:
        said = ", ".join(f"{value}: {outcome.value}" for value, outcome in self._outcomes())
        return f"<every {self.curve.field} of {self.curve.load}: {said}>"


def loads(load: object, given: Mapping[str, Sequence[object]]) -> tuple[str, list[tuple[object, Any]]]:
    """The field that a sweep goes over, and the load at each of its values. Raises ConfigError.

    ``threads`` and ``concurrency`` are the same: a load has the one or the other.
    """
    if len(given) != 1:
        said = ", ".join(given) or "none"
        raise ConfigError(f"measure.sweep(load, on=[...], threads=(1, 4, 16)) goes over one field, got {said}")
    [(name, values)] = given.items()
    known: list[str] = [field.name for field in dataclasses.fields(load)] if dataclasses.is_dataclass(load) else []
    if name in SAME and name not in known:
        name = next((other for other in SAME if other in known), name)
    if name not in known:
        raise registry.unknown(f"field of {load}", name, known)
    several = isinstance(values, list | tuple | range) and len(values) > 0
    if not several or len(set(values)) < len(values):
        raise ConfigError(f"measure.sweep(..., {name}={values!r}) takes the values one after the other, each once")
    return name, [(value, dataclasses.replace(load, **{name: value})) for value in values]  # type: ignore[type-var]


def names(field: str, several: Sequence[tuple[object, object]]) -> list[str]:
    """What the load is called at each value: with ``field=value`` where the loads themselves are called alike."""
    said = [str(load) for _, load in several]
    if len(set(said)) == len(said):
        return said
    return [f"{one} {field}={value}" for one, (value, _) in zip(said, several, strict=True)]


def _shared(loads: Sequence[str]) -> str:
    """The words that all of these names have; empty where they do not begin alike."""
    first, *others = [name.split() for name in loads] or [[]]
    kept: list[str] = []
    left_out = False
    for word in first:
        # A sign goes with the number before it, as that of "70 %" does.
        shared = all(word in other for other in others) and (not left_out or any(map(str.isalnum, word)))
        if not shared and not left_out and kept and kept[-1] in JOINING:
            kept.pop()
        kept += [word] if shared else []
        left_out = not shared
    return " ".join(kept) if kept[:1] == first[:1] else ""
