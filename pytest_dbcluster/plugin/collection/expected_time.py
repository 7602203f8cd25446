"""The expected time of a run, printed before it begins.

A test that ran before takes as long as then, where the run has a history (``past_runs``). What others measure is known
only when they run. So one without the mark ``expected_seconds`` counts as one claim of 30 pairs. At a round CV of 10 %,
about 30 pairs decide a claim "no slower than 10 %"; 8 to 12 pairs show a gain of half or more. The factor of a profile
is the wall time of a round / its measured time.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.formatting import counted, duration
from pytest_dbcluster.plugin.collection.expected_clusters import ExpectedClusters, starts_of

MARK = "expected_seconds"
MARK_HELP = f"{MARK}(N): seconds that a measuring test takes at a round CV of 10 %; added up in the expected time"
PAIRS = 30
ROUND_SECONDS = 0.5
FACTORS: Mapping[str, float] = MappingProxyType({"quick": 1.5, "paper": 13.0})
CLUSTER_START = 4.0  # seconds


@dataclasses.dataclass(frozen=True)
class Expected:
    """The expected time of a run.

    tests: the number of measuring tests that run. known: of these, tests whose time the history has. declared: further
    ones with the mark. skipped: further tests, which will be skipped. starts: cluster starts of tests whose time is not
    known. per_test: seconds of a test without mark and history. seconds: of all tests and starts. factor: wall time /
    measured time.
    """

    tests: int
    known: int
    declared: int
    skipped: int
    starts: int
    per_test: float
    seconds: float
    factor: float


def expected(
    items: Sequence[Any],
    profile: str,
    known: ExpectedClusters | None = None,
    past: Callable[[Any], float | None] = lambda item: None,
) -> Expected:
    """The expected time of these measuring tests, in the order in which they run.

    known: finds the clusters of each test, and the tests that will be skipped; without it each file and release has one
    cluster. past: the seconds of a test in earlier runs, with the starts of its clusters; None where they are not
    known. Raises ConfigError for a wrong mark.
    """
    factor = FACTORS.get(profile, FACTORS["quick"])
    known = known or ExpectedClusters()
    running = [item for item in items if not known.skips(item)]
    before = [seconds for item in running if (seconds := past(item)) is not None]
    others = [item for item in running if past(item) is None]
    declared = sum(_declared(item) is not None for item in others)
    starts = starts_of([keys for item in others for keys in known.of(item)])
    total = sum(before) + sum(seconds_of(item, profile) for item in others) + starts * CLUSTER_START
    skipped = len(items) - len(running)
    return Expected(len(running), len(before), declared, skipped, starts, _per_test(profile), total, factor)


def _per_test(profile: str) -> float:
    return PAIRS * 2 * ROUND_SECONDS * FACTORS.get(profile, FACTORS["quick"])


def seconds_of(item: Any, profile: str) -> float:
    """The expected seconds of a test that never ran: those of its mark, else those of the model; without starts.

    Raises ConfigError for a wrong mark.
    """
    declared = _declared(item)
    return _per_test(profile) if declared is None else declared


def lines(found: Expected, budget: float) -> list[str]:
    """The lines to print; none without a measuring test. ``budget``: maximum measured seconds of a claim."""
    if not found.tests:
        return []
    parts = []
    if found.known:
        parts.append(f"{counted(found.known, 'test')} as in earlier runs")
    if unknown := found.tests - found.known - found.declared:
        parts.append(
            f"{counted(unknown, 'test')} x {found.per_test:.0f} s = {PAIRS} pairs x 2 rounds "
            f"x {ROUND_SECONDS:g} s x {found.factor:g}"
        )
    if found.declared:
        parts.append(f"{counted(found.declared, 'test')} as declared")
    if found.starts:
        parts.append(f"{counted(found.starts, 'cluster start')} x {CLUSTER_START:g} s")
    if found.skipped:
        parts.append(f"{counted(found.skipped, 'test')} will be skipped")
    return [
        f"expected time: about {duration(found.seconds)} at a round CV of 10 % ({'; '.join(parts)})",
        f"a claim without a verdict ends after {budget:g} s of measured time (--db-budget)",
    ]


def check_marks(items: Sequence[Any]) -> None:
    """Raise ConfigError for the first of these tests with a wrong mark."""
    for item in items:
        _declared(item)


def _declared(item: Any) -> float | None:
    mark = item.get_closest_marker(MARK)
    if mark is None:
        return None
    value = mark.args[0] if len(mark.args) == 1 and not mark.kwargs else None
    if not isinstance(value, int | float) or isinstance(value, bool) or not value > 0:
        given = ", ".join([*map(repr, mark.args), *(f"{name}={argument!r}" for name, argument in mark.kwargs.items())])
        raise ConfigError(f"{item.nodeid}: {MARK}({given}) takes one number of seconds above 0")
    return float(value)
