"""Curve: one workload at several values of one field, such as 1, 4 and 16 threads, with claims at each point.

Variants alternate inside a point. Points are measured one after the other. So a claim compares two variants at one
value, and never one value with another. A ``ReleaseCurve`` has releases as its values; their rounds alternate, so it
compares them.
"""

from __future__ import annotations

import dataclasses
import inspect
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pytest_dbcluster import calls, registry
from pytest_dbcluster.claims import wording
from pytest_dbcluster.claims.claim import STATES, Outcome
from pytest_dbcluster.errors import ClaimFailed, ConfigError, Inconclusive
from pytest_dbcluster.formatting import quantity
from pytest_dbcluster.measuring.answer import Answer
from pytest_dbcluster.measuring.measurement import Measurement
from pytest_dbcluster.measuring.series import Series
from pytest_dbcluster.rounds.round import Round

RATIO_BLOCKS = 17  # the first look that bounds a ratio of variants with two instances each
JOINING = ("at", "of", "on", "to")  # words that need the word after them
SAME = ("threads", "concurrency")  # two names of the number of clients: a workload has one of them
RELEASE = "release"  # the field of a curve over releases
BLOCKS = 8  # two opening blocks; a 95 % interval of the median takes 6 rounds or more, see estimators.median_interval


@dataclasses.dataclass(frozen=True)
class Point:
    """One value of the field, and the measurement at this value."""

    value: object
    """The value."""

    measurement: Measurement
    """The measurement."""

    variants: Mapping[str, int] = dataclasses.field(default_factory=dict)
    """The variants of the measurement at this value: shown name -> 0-based number; empty for all of them."""

    @property
    def series(self) -> dict[str, Series]:
        """The series at this value by the name that table and chart show."""
        named = self.variants or {name: number for number, name in enumerate(self.measurement.source.names)}
        return {name: Series(self.measurement, number) for name, number in named.items()}


@dataclasses.dataclass(frozen=True)
class Drawn:
    """What ``draw`` has drawn."""

    blocks: int
    """The rounds of each variant that ``draw`` was asked for; 0 until every point has them."""

    rounds: Sequence[Sequence[Sequence[Round]]]
    """The rounds by point and variant; none if a variant was not reached at a point."""

    def has(self, point: int, blocks: int) -> bool:
        """Whether each variant has ``blocks`` rounds at a point (0-based), or as many as the budget allowed."""
        drawn = min(map(len, self.rounds[point]))
        return drawn > 0 and (self.blocks >= blocks or drawn >= blocks)


class Curve:
    """The points of a sweep. Iterating yields ``(value, series, ...)``; claims about the series draw their rounds."""

    earlier: Drawn | None
    """What the run that this one continues drew for it; None if that no longer counts."""

    drawn: int
    """The rounds of each variant that ``draw`` was asked for; 0 until every point has them."""

    baseline: str
    """The variant that the others are shown relative to; empty for none."""

    kept: list[object]
    """The values that ``draw`` took over from the earlier run."""

    point_drawn: Callable[[Curve], None]
    """Is called after each point."""

    notes: Sequence[str] = ()
    """Remarks for table and chart."""

    reference: str = ""
    """The value that the others are compared with; empty if values are not compared."""

    def __init__(self, load: object, field: str, points: Sequence[Point]) -> None:
        self.load = _shared_words([point.measurement.source.load for point in points]) or type(load).__name__
        self.field = field
        self.points = tuple(points)
        self.earlier = None
        self.drawn = 0
        self.baseline = ""
        self.kept = []
        self.point_drawn = lambda curve: None

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        for point in self.points:
            yield (point.value, *point.series.values())

    def _steps(self) -> Iterator[tuple[Any, ...]]:
        """The value and the series of each claim of ``every``."""
        return iter(self)

    @property
    def _claimed_series(self) -> str:
        """The series that a claim of ``every`` accepts."""
        return f"{len(self.points[0].series)} series, one for each cluster"

    @calls.check_arguments("curve.every(lambda slow, fast: fast.beats(slow))")
    def every(self, claim: Callable[..., Answer]) -> Every:
        """Ask one claim at every point: ``assert curve.every(lambda a, b: b.beats(a))``.

        It draws rounds at every point before it returns, also after a point that fails or is inconclusive. ``claim``
        takes one series per variant. Raises ConfigError if ``claim`` takes another number of arguments, or does not
        return an Answer.
        """
        self._check_claim(claim)
        answers: list[tuple[object, Answer]] = []
        missing: list[tuple[object, str]] = []
        for value, *series in self._steps():
            try:
                answer = claim(*series)
            except Inconclusive as error:
                missing.append((value, str(error)))
                continue
            if not isinstance(answer, Answer):
                raise ConfigError(
                    f"curve.every accepts a function that returns one claim, such as lambda a, b: b.beats(a); at "
                    f"{self.field}={value} it returned {answer!r}"
                )
            answer.report()  # the next point may take minutes
            answers.append((value, answer))
        return Every(self, answers, missing)

    def _check_claim(self, claim: Callable[..., Answer]) -> None:
        _, *series = next(self._steps())
        try:
            inspect.signature(claim).bind(*series)
        except TypeError as error:
            raise ConfigError(
                f"curve.every accepts a function of {self._claimed_series}, such as "
                f"lambda a, b: b.beats(a); got {claim!r}: {error}"
            ) from None

    @calls.check_arguments("curve.draw()")
    def draw(self, blocks: int = BLOCKS, *, relative_to: str = "") -> None:
        """Draw rounds at every point until each variant has ``blocks`` rounds, for table and chart, without a claim.

        relative_to: the short name of a variant; table and chart then show the others as a share of it.

        - From 4 rounds on the first 12 of a variant are drawn four by four. So a point may get up to three more. It
          gets fewer if its budget or the run's time is used.
        - If the test gives the seconds of a round, only the first point has a warm-up.
        - Each point is saved as soon as it is drawn. A run that continues this one does not draw it again.
        - The clusters are checked at the end, and before a point that uses other clusters.

        Raises ConfigError for less than 1 round, and for an unknown variant.
        """
        if isinstance(blocks, bool) or not isinstance(blocks, int) or blocks < 1:
            raise ConfigError(f"curve.draw(blocks={blocks!r}): it draws 1 round of each variant or more at each point")
        if relative_to and relative_to not in (names := list(self.points[0].series)):
            raise registry.unknown("variant of the curve", relative_to, names)
        self.baseline = relative_to
        whole, last = True, None
        for number, point in enumerate(self.points):
            measurement = point.measurement
            if measurement is last:
                continue
            if self.earlier and self.earlier.has(number, blocks) and not measurement.pairs:
                self._take_over(number, self.earlier)
                continue
            if last and not measurement.source.continues(last.source):
                last.drawing.check()
            numbers = range(len(measurement.rounds))
            measurement.drawn_without_claim, drawing = True, measurement.drawing
            warm = last is not None and measurement.source.continues(last.source)
            drawing.prepare_without_claim(blocks, warm=warm)
            while measurement.pairs < blocks and not (measurement.pairs and drawing.stop_reason(numbers)):
                drawing.draw(numbers)
            whole = whole and (measurement.pairs >= blocks or bool(drawing.out_of_budget(numbers)))
            last = measurement
            self.point_drawn(self)
        if last:
            last.drawing.check()
        self.drawn = blocks if whole else 0

    @property
    def untouched(self) -> bool:
        """Whether no round was drawn at any point in this run."""
        return not any(point.measurement.pairs for point in self.points)

    def _take_over(self, number: int, earlier: Drawn) -> None:
        point = self.points[number]
        point.measurement.drawn_without_claim = True
        numbers = [series.number for series in point.series.values()]
        point.measurement.values.taken_over |= dict(zip(numbers, earlier.rounds[number], strict=True))
        self.kept.append(point.value)


class ReleaseCurve(Curve):
    """A workload on the same clusters of several releases of one product, the oldest first.

    All releases are in one measurement, and their rounds alternate. Iterating yields ``(release, series, ...)``.
    Table and chart show the ratio of the speed of each release to that of the newest.
    """

    def __init__(self, load: object, measurement: Measurement, releases: Sequence[str], names: Sequence[str]) -> None:
        each = len(names)
        points = [
            Point(release, measurement, {name: place * each + number for number, name in enumerate(names)})
            for place, release in enumerate(releases)
        ]
        super().__init__(load, RELEASE, points)
        self.reference = releases[-1]

    def _steps(self) -> Iterator[tuple[Any, ...]]:
        """Each release with the series of the release before it and its own, for each cluster."""
        for older, newer in itertools.pairwise(self.points):
            for name, series in newer.series.items():
                yield (newer.value, older.series[name], series)

    @property
    def _claimed_series(self) -> str:
        return "2 series, the older and the newer release"

    @calls.check_arguments("curve.every(lambda older, newer: newer.no_slower_than(older, by=0.1))")
    def every(self, claim: Callable[..., Answer]) -> Every:
        """Ask one claim about each two neighbours: ``assert curve.every(lambda a, b: b.no_slower_than(a, by=0.1))``.

        ``claim`` takes the series of the older and of the newer release; each cluster has separate claims. Otherwise
        as ``Curve.every``.
        """
        return super().every(claim)

    @calls.check_arguments("curve.draw()")
    def draw(self, blocks: int = RATIO_BLOCKS, *, relative_to: str = "") -> None:
        """Draw rounds of every release until each has ``blocks`` rounds, for table and chart, without a claim.

        A ratio has an interval from 17 rounds on, or from 12 on with one cluster of each release. Raises
        ConfigError as ``Curve.draw`` does, and for ``relative_to``.
        """
        if relative_to:
            raise ConfigError(
                f"curve.draw(relative_to={relative_to!r}): a curve over releases is shown relative to the newest, "
                f"{self.reference}"
            )
        super().draw(blocks)


@dataclasses.dataclass(eq=False)
class Every:
    """The answers at all points of a curve, to be used as ``assert curve.every(...)``.

    ``bool`` is True if all claims hold, and never False. It raises ClaimFailed if a claim fails at any point. Otherwise
    it raises Inconclusive if a claim is inconclusive or has no answer. The message has the messages of all such points.
    """

    curve: Curve
    """The curve."""

    answers: Sequence[tuple[object, Answer]]
    """Each value of the field, with its answer."""

    missing: Sequence[tuple[object, str]] = ()
    """Each value of the field without an answer, and why."""

    def __bool__(self) -> bool:
        for _, answer in self.answers:
            answer.read = True
        not_held = [
            (value, answer)
            for value, answer in self.answers
            if answer.asserted and answer.verdict.outcome is not Outcome.HOLDS
        ]
        if not not_held and not self.missing:
            return True
        failed = [point for point in not_held if point[1].verdict.outcome is Outcome.FAILS]
        inconclusive = [point for point in not_held if point not in failed]
        messages = [(value, answer.message) for value, answer in (*failed, *inconclusive)]
        text = self._text([*messages, *self.missing])
        raise ClaimFailed(text) if failed else Inconclusive(text)

    def _text(self, messages: Sequence[tuple[object, str]]) -> str:
        """The number of points of each outcome, then these messages, each with its value."""
        outcomes = [outcome for _, outcome in self._outcomes()]
        counts = [
            wording.state_count(STATES[outcome], outcomes.count(outcome)) for outcome in Outcome if outcome in outcomes
        ]
        head = f"{self.curve.load} at {quantity(len(outcomes), 'value')} of {self.curve.field}: {', '.join(counts)}"
        return "\n".join([head, *(f"{self.curve.field}={value}: {message}" for value, message in messages)])

    def _outcomes(self) -> list[tuple[object, Outcome]]:
        """Value and outcome of each point: answered points first, then points without an answer."""
        answered = [(value, answer.verdict.outcome) for value, answer in self.answers]
        return [*answered, *((value, Outcome.INCONCLUSIVE) for value, _ in self.missing)]

    def __repr__(self) -> str:
        outcomes = ", ".join(f"{value}: {STATES[outcome]}" for value, outcome in self._outcomes())
        return f"<every {self.curve.field} of {self.curve.load}: {outcomes}>"


def loads(load: object, given: Mapping[str, Sequence[object]]) -> tuple[str, list[tuple[object, Any]]]:
    """Return the field of a sweep, and pairs of (value, the workload with this value of the field).

    ``threads`` and ``concurrency`` mean the same: a workload has one of these fields. A mapping as the values is one
    key of a field that is a mapping: ``variables={"customers": (1000, 100000)}``, whose name is that of the curve.

    Raises ConfigError unless there is exactly one known field, with a list of distinct values.
    """
    if len(given) != 1:
        fields = ", ".join(given) or "none"
        raise ConfigError(f"measure.sweep(load, on=[...], threads=(1, 4, 16)) accepts one field, got {fields}")
    [(name, values)] = given.items()
    if isinstance(load, type) or not dataclasses.is_dataclass(load):
        raise ConfigError(f"measure.sweep(workload, on=[...]) accepts a workload, such as SysBench(), got {load!r}")
    known: list[str] = [field.name for field in dataclasses.fields(load)]
    if name in SAME and name not in known:
        name = next((other for other in SAME if other in known), name)
    if name not in known:
        raise registry.unknown(f"field of {load}", name, known)
    key = ""
    if isinstance(values, Mapping):
        key, values = _one_key(load, name, values)
    is_list = isinstance(values, list | tuple | range) and len(values) > 0
    if not is_list or any(value in values[:number] for number, value in enumerate(values)):
        raise ConfigError(f"measure.sweep(..., {key or name}={values!r}) accepts a list of values, each value once")
    before = dict(getattr(load, name) or {}) if key else {}
    return key or name, [
        (value, dataclasses.replace(load, **{name: {**before, key: value} if key else value}))  # type: ignore[type-var]
        for value in values
    ]


def _one_key(load: object, name: str, given: Mapping[Any, Any]) -> tuple[str, Any]:
    """The key and the values of a mapping with one key. Raises ConfigError for others, and for a field that has none.

    A workload whose ``names_in(field)`` lists the keys has no others.
    """
    names_in: Callable[[str], Sequence[str] | None] = getattr(load, "names_in", lambda field: None)
    known = names_in(name)
    if known is None:
        raise ConfigError(f"measure.sweep(..., {name}={given!r}) accepts a list of values, each value once")
    if len(given) != 1:
        raise ConfigError(
            f'measure.sweep(..., {name}={{"key": (1, 2)}}) accepts one key, got {", ".join(given) or "none"}'
        )
    [(key, values)] = given.items()
    if key not in known:
        raise registry.unknown(f"key of {name} of {load}", key, known)
    return key, values


def names(field: str, points: Sequence[tuple[object, object]]) -> list[str]:
    """The name of the workload at each (value, workload); with ``field=value`` when two workloads share a name."""
    workloads = [str(load) for _, load in points]
    if len(set(workloads)) == len(workloads):
        return workloads
    return [f"{workload} {field}={value}" for workload, (value, _) in zip(workloads, points, strict=True)]


def _shared_words(loads: Sequence[str]) -> str:
    """The words that all of these names share; empty when their first words differ."""
    first, *others = [name.split() for name in loads] or [[]]
    kept: list[str] = []
    left_out = False
    for word in first:
        # Leave out a sign together with the number before it, such as "70 %".
        shared = all(word in other for other in others) and (not left_out or any(map(str.isalnum, word)))
        if not shared and not left_out and kept and kept[-1] in JOINING:
            kept.pop()
        kept += [word] if shared else []
        left_out = not shared
    return " ".join(kept) if kept[:1] == first[:1] else ""
