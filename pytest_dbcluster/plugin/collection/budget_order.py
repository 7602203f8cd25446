"""The order of tests in a run with a budget (``--db-run-budget``): what is cheap and undecided comes first."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

Item = TypeVar("Item")


def cheapest_first(
    items: Sequence[Item],
    group: Mapping[Item, str],
    seconds: Callable[[Item], float],
    decided: Callable[[Item], bool],
) -> list[Item]:
    """The items in the order in which they spend a budget best; those without a group keep their positions.

    Tests whose claims no earlier run has decided come first, of these the cheap ones. Tests of one group stay together,
    because they share clusters. group: of the tests that measure. seconds: the expected time of a test. decided:
    whether its claims were all decided in the last run that the history has.
    """
    members: dict[str, list[Item]] = {}
    for item in items:
        if item in group:
            members.setdefault(group[item], []).append(item)

    def rank(item: Item) -> tuple[bool, float]:
        return (decided(item), seconds(item))

    def rank_of_group(tests: Sequence[Item]) -> tuple[bool, float]:
        undecided = [test for test in tests if not decided(test)]
        return (not undecided, statistics.fmean(seconds(test) for test in undecided or tests))

    groups = sorted(members.values(), key=rank_of_group)
    ordered = iter([item for tests in groups for item in sorted(tests, key=rank)])
    return [next(ordered) if item in group else item for item in items]
