"""Grouping: which tests probably share clusters, before they run.

A test has keys: its module with its release, and each ClusterSpec among the constants of its module or its parameters.
A mark ``clusters("name")`` replaces these keys. Tests that share a key form a group; groups that share a test are one
group.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from pytest_dbcluster.spec import ClusterSpec

MARK = "clusters"
MARK_HELP = (
    f"{MARK}(*names): names of the clusters that a measuring test uses, in place of those in its module; tests that "
    "share a name run one after the other, and with -n on one worker"
)
Item = TypeVar("Item")


def keys(item: Any, release: object) -> frozenset[str]:
    """The keys of a test. ``release``: the release of the run, for a test that has no release."""
    on = params(item).get("db_release") or release
    names = [str(name) for mark in item.iter_markers(MARK) for name in mark.args]
    if names:
        return frozenset(f"{name} on {on}" for name in names)
    module = item.nodeid.partition("::")[0]
    return frozenset([f"{module} on {on}", *(_shape(spec, on) for spec in specs(item))])


def specs(item: Any) -> list[ClusterSpec]:
    """The specs among the constants of a test's module and the test's parameters."""
    return list(_specs([*vars(item.module).values(), *params(item).values()]))


def params(item: Any) -> Mapping[str, Any]:
    """The parameters of a test, by name."""
    found: Mapping[str, Any] = getattr(getattr(item, "callspec", None), "params", {})
    return found


def _specs(values: Iterable[Any]) -> Iterator[ClusterSpec]:
    for value in values:
        inside = list(value.values()) if isinstance(value, dict) else value
        if isinstance(inside, list | tuple | set | frozenset):
            yield from (spec for spec in inside if isinstance(spec, ClusterSpec))
        elif isinstance(value, ClusterSpec):
            yield value


@functools.cache
def _shape(spec: ClusterSpec, on: object) -> str:
    """The key of a cluster. It has no server options, because one cluster can switch between them."""
    proxy = " ".join([spec.proxy or "", *(f"{name}={value}" for name, value in spec.proxy_options)])
    return f"{spec.topology} {spec.nodes} {proxy} {spec.needs.without_network} on {spec.release_text or on}"


def groups(keys_of_tests: Sequence[frozenset[str]]) -> list[str]:
    """The group of each test. Its name is the alphabetically first key of all its tests."""
    parent: dict[str, str] = {}  # a union-find: each key -> another key of its group, a root -> itself

    def root(key: str) -> str:
        while parent.setdefault(key, key) != key:
            key = parent[key]
        return key

    for test_keys in keys_of_tests:
        for left, right in itertools.pairwise(sorted(test_keys)):
            first, second = sorted((root(left), root(right)))
            parent[second] = first
    return [root(min(test_keys)) for test_keys in keys_of_tests]


def sort_by_group(items: Sequence[Item], group: Mapping[Item, str]) -> list[Item]:
    """The items, sorted so that those of a group are neighbours; items without a group keep their positions."""
    order = list(dict.fromkeys(group[item] for item in items if item in group))
    grouped = iter(sorted((item for item in items if item in group), key=lambda item: order.index(group[item])))
    return [next(grouped) if item in group else item for item in items]
