"""How long a run will take, said before it begins.

What a test measures is known only when it runs. So a test that declares nothing counts as one claim about
ordinary rounds: at a round CV of 10 % about 30 pairs decide a claim that says "no slower than 10 %"; a gain
of half and more is seen in 6 to 8. The factor is what a round costs beside what it measures.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.formatting import counted, duration

MARK = "expected_seconds"
MARK_HELP = f"{MARK}(N): how long a measuring test takes at a round CV of 10 %; sums up to what a suite says first"
PAIRS = 30
ROUND_SECONDS = 0.5
FACTORS: Mapping[str, float] = MappingProxyType({"quick": 1.5, "paper": 13.0})
CLUSTER_START = 4.0


@dataclasses.dataclass(frozen=True)
class Expected:
    """The sum over the tests of a run. ``declared`` of the ``tests`` say themselves how long they take."""

    tests: int
    declared: int
    starts: int
    per_test: float
    seconds: float
    factor: float


def expected(items: Sequence[Any], profile: str) -> Expected:
    """The time of these measuring tests; one cluster start for each test file and release. Raises ConfigError."""
    factor = FACTORS.get(profile, FACTORS["quick"])
    per_test = PAIRS * 2 * ROUND_SECONDS * factor
    said = [_declared(item) for item in items]
    starts = len({(item.path, _release(item)) for item in items})
    seconds = sum(per_test if one is None else one for one in said) + starts * CLUSTER_START
    return Expected(len(items), sum(one is not None for one in said), starts, per_test, seconds, factor)


def lines(found: Expected, budget: float) -> list[str]:
    """The words of it; none without a measuring test."""
    if not found.tests:
        return []
    parts = []
    if found.tests > found.declared:
        parts.append(
            f"{counted(found.tests - found.declared, 'test')} x {found.per_test:.0f} s = {PAIRS} pairs x 2 rounds "
            f"x {ROUND_SECONDS:g} s x {found.factor:g}"
        )
    if found.declared:
        parts.append(f"{counted(found.declared, 'test')} as declared")
    parts.append(f"{counted(found.starts, 'cluster start')} x {CLUSTER_START:g} s")
    return [
        f"expected time: about {duration(found.seconds)} at a round CV of 10 % ({'; '.join(parts)})",
        f"a claim that stays open ends after {budget:g} s of measured time (--db-budget)",
    ]


def _declared(item: Any) -> float | None:
    mark = item.get_closest_marker(MARK)
    if mark is None:
        return None
    value = mark.args[0] if len(mark.args) == 1 and not mark.kwargs else None
    if not isinstance(value, int | float) or isinstance(value, bool) or not value > 0:
        given = ", ".join([*map(repr, mark.args), *(f"{name}={found!r}" for name, found in mark.kwargs.items())])
        raise ConfigError(f"{item.nodeid}: {MARK}({given}) takes one number of seconds above 0")
    return float(value)


def _release(item: Any) -> str:
    return str(getattr(item, "callspec", None) and item.callspec.params.get("db_release"))
