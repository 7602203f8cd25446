"""The order of tests in a run with a budget (``--db-run-budget``): cheap and undecided tests come first."""

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
    """The items in the order that spends a budget best; those without a group keep their positions.

    Tests without decided claims come first, cheap ones before others. Tests of one group stay together, because they
    share clusters. group: the group of each measuring test. seconds: the expected time of a test. decided: whether the
    last run in the history decided all its claims.
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
