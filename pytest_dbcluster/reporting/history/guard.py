"""The drift guard: warns about claims of a new run that differ from their history. It changes no verdict."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Sequence

from pytest_dbcluster import formatting
from pytest_dbcluster.claims.claim import Shape
from pytest_dbcluster.reporting.history.drift import LEAST, Drift, DriftPoint, drift
from pytest_dbcluster.reporting.history.entry import Entry
from pytest_dbcluster.reporting.history.history_file import History


@dataclasses.dataclass(frozen=True)
class JudgedClaim:
    """A claim of a new run compared with its history."""

    entry: Entry
    """The claim in the new run."""

    subject: str
    """What is compared: ``ratio``, or a variant's name."""

    drift: Drift
    """The result of the comparison."""

    before: float
    """The level of the earlier runs, as a ratio; nan with too few runs."""

    @property
    def line(self) -> str:
        """A warning in one sentence, with the command that answers it."""
        percent = f"{100 * math.expm1(self.drift.change):+.0f} %"
        kind = self.entry.shown_by
        now, before = (kind.figure_text(value, ()) for value in (self.entry.ratio, self.before))
        runs = f"in the last {self.drift.runs} runs"
        if self.subject == RATIO:
            measured = "the ratio" if kind.is_ratio else self.entry.metric
            what = f"{measured} is {now}, {percent} against {before} {runs}"
        else:
            what = f"the speed of {self.subject} changed by {percent} relative to the anchor, from its level {runs}"
        where = f"{self.entry.load}, {self.entry.release}"
        busy = f"; the machine was busy: {self.entry.busy}" if self.entry.busy else ""
        return f"{self.entry.text} ({where}): {what}{busy}; measure both in one run: {self.entry.repeat}"


RATIO = "ratio"


def judge(history: History, runs: Collection[str]) -> list[JudgedClaim]:
    """Compare each claim of these runs with the earlier runs of its series, and variants' speeds with the anchor.

    runs: the ids of one run and of those that it continued. A claim is judged if one of them is its newest run. Runs on
    a busy machine count only for a run on a busy machine.
    """
    found = []
    for entries in history.series().values():
        level = history.level(entries)
        if not level or level[-1].run not in runs:
            continue
        *earlier, new = level
        earlier = [entry for entry in earlier if new.busy or not entry.busy]
        found.append(_judge(new, RATIO, [entry.point for entry in earlier], new.point))
        for variant in new.medians:
            speeds = [entry.speed(variant) for entry in earlier]
            if new.anchor is not None:
                found.append(_judge(new, variant, speeds, new.speed(variant)))
    return found


def _judge(entry: Entry, subject: str, earlier: Sequence[DriftPoint], new: DriftPoint) -> JudgedClaim:
    result = drift(_level(earlier), new)
    return JudgedClaim(
        entry, subject, result, math.exp(new.value - result.change) if result.has_enough_runs else math.nan
    )


def _level(points: Sequence[DriftPoint]) -> list[DriftPoint]:
    """The runs without those that drifted: until a user accepts a new level, runs are compared with the old one."""
    kept: list[DriftPoint] = []
    for point in points:
        if not drift(kept, point).warns:
            kept.append(point)
    return kept


def lines(found: Sequence[JudgedClaim]) -> list[str]:
    """The warnings, and how many claims have too few runs to be judged."""
    warnings = [f"DRIFT: {item.line}" for item in found if item.drift.warns]
    comparable = [item for item in found if item.subject == RATIO and item.entry.shown_by.shape is not Shape.PROPORTION]
    if few := sum(not item.drift.has_enough_runs for item in comparable):
        warnings.append(
            f"history: {few} of {formatting.quantity(len(comparable), 'claim')} cannot show drift yet, with fewer than "
            f"{LEAST} earlier runs"
        )
    return warnings
