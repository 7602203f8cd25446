"""The expected time of a run, printed before it begins.

If the run has a history, a test takes as long as in earlier runs (``past_runs``). The claims of other tests are unknown
before they run. So a test without the mark ``expected_seconds`` counts as one claim of 30 pairs. At a round CV of 10 %,
about 30 pairs decide a claim "no slower than 10 %". 12 pairs show a gain of half or more. Once a claim has chosen the
length of its rounds, a line of progress corrects its time (``RoundLength.expected``). A test with the mark
``budget`` uses the same share of its budget as a claim of the profile's budget. The factor of a profile is the wall
time of a round / its measured time. A test that calls ``measure.event`` counts by its repetitions: ``event_calls``
finds them in its source. Once the test runs, its events correct this time (``EventTestbed.announce``).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from pytest_dbcluster.formatting import duration, quantity
from pytest_dbcluster.plugin import grouping
from pytest_dbcluster.plugin.collection import budgets, event_calls
from pytest_dbcluster.plugin.settings import BUDGETS
from pytest_dbcluster.rounds.round_length import EXPECTED_PAIRS

MARK = "expected_seconds"
MARK_HELP = f"{MARK}(N): seconds of a measuring test at a round CV of 10 %, for the expected time of the run"
ROUND_SECONDS = 0.5
FACTORS: Mapping[str, float] = MappingProxyType({"quick": 1.5, "paper": 13.0})
CLUSTER_START = 4.0  # seconds
REPETITION_SECONDS = 25.0  # of an event that ends one node; the kind of the event is not known before the test runs


@dataclasses.dataclass(frozen=True)
class Expected:
    """The expected time of a run."""

    tests: int
    """Number of measuring tests that run."""

    known: int
    """Number of these tests whose time the history has."""

    declared: int
    """Number of other tests with the mark ``expected_seconds``."""

    own: Sequence[float]
    """Seconds of each other test with the mark ``budget``."""

    skipped: int
    """Number of further tests, which pytest will skip."""

    starts: int
    """Number of cluster starts of tests whose time is not known."""

    per_test: float
    """Seconds of a test without history and marks."""

    seconds: float
    """Seconds of all tests and starts."""

    factor: float
    """Wall time / measured time."""

    events: int = 0
    """Number of other tests with events."""

    repetitions: int = 0
    """Number of repetitions of these events."""

    @property
    def unknown(self) -> int:
        """Number of tests whose claims count by the model of rounds."""
        return self.tests - self.known - self.declared - len(self.own) - self.events


def estimate(
    items: Sequence[Any],
    profile: str,
    past: Callable[[Any], float | None] = lambda item: None,
    own: Callable[[Any], float | None] = lambda item: None,
    *,
    skipped: int = 0,
) -> Expected:
    """The expected time of these measuring tests.

    Each file and release counts as one cluster. past: the seconds of a test in earlier runs, with the starts of its
    clusters; None if unknown. own: the budget in a test's mark; None without it. skipped: the number of further tests,
    which pytest will skip. Raises ConfigError for a wrong mark.
    """
    factor = FACTORS.get(profile, FACTORS["quick"])
    before = [seconds for item in items if (seconds := past(item)) is not None]
    others = [item for item in items if past(item) is None]
    declared = sum(_mark_seconds(item) is not None for item in others)
    rounds = [item for item in others if _mark_seconds(item) is None and not event_calls.repetitions(item)]
    budgeted = [seconds_of(item, profile, own(item)) for item in rounds if own(item)]
    events = [count for item in others if _mark_seconds(item) is None and (count := event_calls.repetitions(item))]
    starts = len({(item.path, str(grouping.params(item).get("db_release"))) for item in others})
    total = sum(before) + sum(seconds_of(item, profile, own(item)) for item in others) + starts * CLUSTER_START
    known = len(items), len(before), declared, budgeted, skipped, starts, _per_test(profile), total, factor
    return Expected(*known, len(events), sum(events))


def _per_test(profile: str) -> float:
    return EXPECTED_PAIRS * 2 * ROUND_SECONDS * FACTORS.get(profile, FACTORS["quick"])


def seconds_of(item: Any, profile: str, own: float | None = None) -> float:
    """The expected seconds of a test without earlier runs: those of its mark, or those of the model; without starts.

    own: the budget in its mark; None without it. Raises ConfigError for a wrong mark.
    """
    declared = _mark_seconds(item)
    if declared is not None:
        return declared
    if count := event_calls.repetitions(item):
        return count * REPETITION_SECONDS
    usual = BUDGETS.get(profile, BUDGETS["quick"])
    return _per_test(profile) * (own or usual) / usual


def lines(found: Expected, budget: float, own: Sequence[float] = ()) -> list[str]:
    """The lines to print; none without a measuring test.

    budget: maximum measured seconds of a claim. own: those of the tests with the mark ``budget``.
    """
    if not found.tests:
        return []
    parts = []
    if found.known:
        parts.append(f"{quantity(found.known, 'test')} from earlier runs")
    if found.events:
        parts.append(
            f"{quantity(found.events, 'test')} of events, {quantity(found.repetitions, 'repetition')} "
            f"x {REPETITION_SECONDS:g} s"
        )
    if found.unknown:
        parts.append(
            f"{quantity(found.unknown, 'test')} x {found.per_test:.0f} s = {EXPECTED_PAIRS} pairs x 2 rounds "
            f"x {ROUND_SECONDS:g} s x {found.factor:g}"
        )
    if found.own:
        parts.append(f"{quantity(len(found.own), 'test')} by {budgets.NAME}, {duration(sum(found.own))}")
    if found.declared:
        parts.append(f"{quantity(found.declared, 'test')} by mark {MARK}")
    if found.starts:
        parts.append(f"{quantity(found.starts, 'cluster start')} x {CLUSTER_START:g} s")
    if found.skipped:
        parts.append(f"{quantity(found.skipped, 'test')} will be skipped")
    if found.events == found.tests:
        return [f"expected time: about {duration(found.seconds)} ({'; '.join(parts)})"]
    return [
        f"expected time: about {duration(found.seconds)} at a round CV of 10 % ({'; '.join(parts)})",
        f"a claim without a verdict ends after {budget:g} s of measured time (--db-budget){_own_budgets(own)}",
    ]


def _own_budgets(own: Sequence[float]) -> str:
    """The budgets in the marks of tests; empty without such marks."""
    if not own:
        return ""
    least, most = min(own), max(own)
    span = f"{least:g} s" if least == most else f"{least:g} to {most:g} s"
    return f", those of {quantity(len(own), 'test')} after {span} ({budgets.NAME})"


def check_marks(items: Sequence[Any]) -> None:
    """Raise ConfigError for the first of these tests with a wrong mark."""
    for item in items:
        _mark_seconds(item)
        budgets.seconds(item, budgets.MARK)


def _mark_seconds(item: Any) -> float | None:
    return budgets.seconds(item, MARK)
