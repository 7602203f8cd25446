"""The expected time of a run, printed before it begins.

A test that ran before takes as long as then, where the run has a history (``past_runs``). What others measure is known
only when they run. So one without the mark ``expected_seconds`` counts as one claim of 30 pairs. At a round CV of 10 %,
about 30 pairs decide a claim "no slower than 10 %"; 12 pairs show a gain of half or more. A claim whose test has a
budget of its own uses the same share of it as that claim of the profile's. The factor of a profile is the wall time of
a round / its measured time.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from pytest_dbcluster.formatting import duration, quantity
from pytest_dbcluster.plugin import grouping
from pytest_dbcluster.plugin.collection import budgets
from pytest_dbcluster.plugin.settings import BUDGETS

MARK = "expected_seconds"
MARK_HELP = f"{MARK}(N): seconds that a measuring test takes at a round CV of 10 %; added up in the expected time"
PAIRS = 30
ROUND_SECONDS = 0.5
FACTORS: Mapping[str, float] = MappingProxyType({"quick": 1.5, "paper": 13.0})
CLUSTER_START = 4.0  # seconds


@dataclasses.dataclass(frozen=True)
class Expected:
    """The expected time of a run."""

    tests: int
    """The number of measuring tests that run."""

    known: int
    """Of these, tests whose time the history has."""

    declared: int
    """Further ones with the mark."""

    own: Sequence[float]
    """The seconds of each further one with a budget of its own."""

    skipped: int
    """Further tests, which will be skipped."""

    starts: int
    """Cluster starts of tests whose time is not known."""

    per_test: float
    """Seconds of a test without any of these."""

    seconds: float
    """Of all tests and starts."""

    factor: float
    """Wall time / measured time."""


def expected(
    items: Sequence[Any],
    profile: str,
    past: Callable[[Any], float | None] = lambda item: None,
    own: Callable[[Any], float | None] = lambda item: None,
    *,
    skipped: int = 0,
) -> Expected:
    """The expected time of these measuring tests.

    Each file and release counts as one cluster. past: the seconds of a test in earlier runs, with the starts of its
    clusters; None if they are not known. own: the budget of a test's own, None if it has none. skipped: the number of
    further tests, which will be skipped. Raises ConfigError for a wrong mark.
    """
    factor = FACTORS.get(profile, FACTORS["quick"])
    before = [seconds for item in items if (seconds := past(item)) is not None]
    others = [item for item in items if past(item) is None]
    declared = sum(_declared(item) is not None for item in others)
    budgeted = [seconds_of(item, profile, own(item)) for item in others if own(item) and _declared(item) is None]
    starts = len({(item.path, str(grouping.params(item).get("db_release"))) for item in others})
    total = sum(before) + sum(seconds_of(item, profile, own(item)) for item in others) + starts * CLUSTER_START
    return Expected(len(items), len(before), declared, budgeted, skipped, starts, _per_test(profile), total, factor)


def _per_test(profile: str) -> float:
    return PAIRS * 2 * ROUND_SECONDS * FACTORS.get(profile, FACTORS["quick"])


def seconds_of(item: Any, profile: str, own: float | None = None) -> float:
    """The expected seconds of a test that never ran: those of its mark, else those of the model; without starts.

    own: the budget of its own, None where it has none. Raises ConfigError for a wrong mark.
    """
    declared = _declared(item)
    if declared is not None:
        return declared
    usual = BUDGETS.get(profile, BUDGETS["quick"])
    return _per_test(profile) * (own or usual) / usual


def lines(found: Expected, budget: float, own: Sequence[float] = ()) -> list[str]:
    """The lines to print; none without a measuring test.

    budget: maximum measured seconds of a claim. own: those of the tests that have a budget of their own.
    """
    if not found.tests:
        return []
    parts = []
    if found.known:
        parts.append(f"{quantity(found.known, 'test')} as in earlier runs")
    if unknown := found.tests - found.known - found.declared - len(found.own):
        parts.append(
            f"{quantity(unknown, 'test')} x {found.per_test:.0f} s = {PAIRS} pairs x 2 rounds "
            f"x {ROUND_SECONDS:g} s x {found.factor:g}"
        )
    if found.own:
        parts.append(f"{quantity(len(found.own), 'test')} by {budgets.NAME}, {duration(sum(found.own))}")
    if found.declared:
        parts.append(f"{quantity(found.declared, 'test')} as declared")
    if found.starts:
        parts.append(f"{quantity(found.starts, 'cluster start')} x {CLUSTER_START:g} s")
    if found.skipped:
        parts.append(f"{quantity(found.skipped, 'test')} will be skipped")
    return [
        f"expected time: about {duration(found.seconds)} at a round CV of 10 % ({'; '.join(parts)})",
        f"a claim without a verdict ends after {budget:g} s of measured time (--db-budget){_own_budgets(own)}",
    ]


def _own_budgets(own: Sequence[float]) -> str:
    """The budgets that tests have of their own; empty for none."""
    if not own:
        return ""
    least, most = min(own), max(own)
    span = f"{least:g} s" if least == most else f"{least:g} to {most:g} s"
    return f", those of {quantity(len(own), 'test')} after {span} ({budgets.NAME})"


def check_marks(items: Sequence[Any]) -> None:
    """Raise ConfigError for the first of these tests with a wrong mark."""
    for item in items:
        _declared(item)
        budgets.seconds(item, budgets.MARK)


def _declared(item: Any) -> float | None:
    return budgets.seconds(item, MARK)
