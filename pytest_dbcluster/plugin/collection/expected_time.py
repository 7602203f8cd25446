"""The expected time of a run, printed before it begins.

If the run has a history, a test takes as long as in earlier runs (``past_runs``). The claims of other tests are unknown
before they run. So a test without the mark ``expected_seconds`` counts as one claim of 30 pairs. At a round CV of 10 %,
about 30 pairs decide a claim "no slower than 10 %". 12 pairs show a gain of half or more. Once a claim has chosen the
length of its rounds, a line of progress corrects its time (``RoundLength.expected``). A test with the mark
``budget`` uses the same share of its budget as a claim of the profile's budget. The factor of a profile is the wall
time of a round / its measured time.
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
from pytest_dbcluster.rounds.round_length import EXPECTED_PAIRS

MARK = "expected_seconds"
MARK_HELP = f"{MARK}(N): seconds of a measuring test at a round CV of 10 %, for the expected time of the run"
ROUND_SECONDS = 0.5
FACTORS: Mapping[str, float] = MappingProxyType({"quick": 1.5, "paper": 13.0})
CLUSTER_START = 4.0  # seconds


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
    budgeted = [seconds_of(item, profile, own(item)) for item in others if own(item) and _mark_seconds(item) is None]
    starts = len({(item.path, str(grouping.params(item).get("db_release"))) for item in others})
    total = sum(before) + sum(seconds_of(item, profile, own(item)) for item in others) + starts * CLUSTER_START
    return Expected(len(items), len(before), declared, budgeted, skipped, starts, _per_test(profile), total, factor)


def _per_test(profile: str) -> float:
    return EXPECTED_PAIRS * 2 * ROUND_SECONDS * FACTORS.get(profile, FACTORS["quick"])


def seconds_of(item: Any, profile: str, own: float | None = None) -> float:
    """The expected seconds of a test without earlier runs: those of its mark, or those of the model; without starts.

    own: the budget in its mark; None without it. Raises ConfigError for a wrong mark.
    """
    declared = _mark_seconds(item)
    if declared is not None:
        return declared
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
    if unknown := found.tests - found.known - found.declared - len(found.own):
        parts.append(
            f"{quantity(unknown, 'test')} x {found.per_test:.0f} s = {EXPECTED_PAIRS} pairs x 2 rounds "
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
