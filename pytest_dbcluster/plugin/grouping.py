"""Grouping: which tests share clusters, as far as that can be known before they run.

A test is known by its module and its release, and by the clusters that its module names: constants that are a
ClusterSpec, or parameters that are. Two tests that share one of these belong together, and so do all who belong
together with one of them. A mark ``clusters("name")`` says it instead.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from pytest_dbcluster.spec import ClusterSpec

MARK = "clusters"
MARK_HELP = (
    f"{MARK}(*names): names of the clusters that a measuring test uses, instead of what its module says; tests that "
    "share one run together, and with -n on one worker"
)
Item = TypeVar("Item")


def keys(item: Any, release: object) -> frozenset[str]:
    """What a test may share with others. ``release`` is that of the run, where the test has none of its own."""
    params: Mapping[str, Any] = getattr(getattr(item, "callspec", None), "params", {})
    on = params.get("db_release") or release
    names = [str(name) for mark in item.iter_markers(MARK) for name in mark.args]
    if names:
        return frozenset(f"{name} on {on}" for name in names)
    specs = _specs([*vars(item.module).values(), *params.values()])
    module = item.nodeid.partition("::")[0]
    return frozenset([f"{module} on {on}", *(_shape(spec, on) for spec in specs)])


def _specs(values: Iterable[Any]) -> Iterator[ClusterSpec]:
    for value in values:
        inside = list(value.values()) if isinstance(value, dict) else value
        if isinstance(inside, list | tuple | set | frozenset):
            yield from (one for one in inside if isinstance(one, ClusterSpec))
        elif isinstance(value, ClusterSpec):
            yield value


def _shape(spec: ClusterSpec, on: object) -> str:
    """What a cluster is that can be switched between options: those that differ in more are told apart."""
    return f"{spec.topology} {spec.nodes} {spec.proxy or ''} {spec.needs} on {spec.release or on}"


def groups(several: Sequence[frozenset[str]]) -> list[str]:
    """The group of each test, named by the first of all keys that its tests have, in alphabetical order."""
    above: dict[str, str] = {}

    def top(key: str) -> str:
        while above.setdefault(key, key) != key:
            key = above[key]
        return key

    for mine in several:
        for one, other in itertools.pairwise(sorted(mine)):
            first, second = sorted((top(one), top(other)))
            above[second] = first
    return [top(min(mine)) for mine in several]


def together(items: Sequence[Item], group: Mapping[Item, str]) -> list[Item]:
    """The items with those of a group one after the other, from the place of the first; others keep their places."""
    order = list(dict.fromkeys(group[item] for item in items if item in group))
    sorted_ones = iter(sorted((item for item in items if item in group), key=lambda item: order.index(group[item])))
    return [next(sorted_ones) if item in group else item for item in items]
