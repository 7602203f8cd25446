"""The curves of a run: made into values, and told when the test that declared them has ended."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Callable, Mapping

from pytest_dbcluster.claims import estimators
from pytest_dbcluster.measuring.curve import Curve, Point
from pytest_dbcluster.reporting.records import CurvePoint, CurveRecord
from pytest_dbcluster.rounds import load_generator


@dataclasses.dataclass(frozen=True)
class About:
    """What the curves of a run share."""

    profile: str
    seed: int
    fingerprint: Mapping[str, str]


class Curves:
    """The curves of a run. Those of a test are told when its body has ended, however it ended."""

    def __init__(self, tell: Callable[[CurveRecord], None], about: About) -> None:
        self._tell = tell
        self._about = about
        self._begun: list[Curve] = []

    def begin(self, curve: Curve) -> None:
        """A test has declared it."""
        self._begun.append(curve)

    def end(self) -> None:
        """Tell what was measured of the curves of this test."""
        begun, self._begun = self._begun, []
        for curve in begun:
            if made := record(curve, self._about):
                self._tell(made)


def record(curve: Curve, about: About) -> CurveRecord | None:
    """A curve as a value; None of one that has no round."""
    points = [found for point in curve.points for found in _points(point)]
    if not points:
        return None
    first = curve.points[0].measurement
    return CurveRecord(
        test=first.test,
        load=curve.load,
        field=curve.field,
        metric=first.metric,
        release=first.release,
        profile=about.profile,
        seed=about.seed,
        fingerprint=about.fingerprint,
        points=points,
        notes=[*_blind(curve), *_marks(curve)],
    )


def _points(point: Point) -> list[CurvePoint]:
    found = []
    for one in point.measurement.series:
        if one.rounds:
            values = one.values(point.measurement.metric)
            low, high = estimators.median_interval(values) or (None, None)
            rounds = tuple(one.rounds)
            found.append(CurvePoint(point.value, one.name, rounds, statistics.median(values), low, high))
    return found


def _blind(curve: Curve) -> list[str]:
    """Why the variants cannot be compared here, where they cannot."""
    laboratory = curve.points[0].measurement.laboratory
    why = laboratory.blind("differs", *range(len(laboratory.names)))
    return [why] if why else []


def _marks(curve: Curve) -> list[str]:
    """At which values the load generator was the limit."""
    rounds = {point.value: {one.name: one.rounds for one in point.measurement.series} for point in curve.points}
    return [f"{curve.field}={value}: {said}" for value, many in rounds.items() if (said := load_generator.mark(many))]
