"""Comparison: what the loads and variants that are measured together share, and how they are told apart."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

from pytest_dbcluster import metrics
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.variants import Variant
from pytest_dbcluster.workload import Paced, Repeats, Workload


def common(loads: Sequence[Workload], name: str) -> Any:
    """An attribute of loads that are compared, which has to be the same; None where they do not have it."""
    found = list(dict.fromkeys(getattr(load, name, None) for load in loads))
    if len(found) > 1:
        said = ", ".join(map(repr, found))
        raise ConfigError(f"{' and '.join(map(str, loads))}: their {name} differs ({said}), so they are not comparable")
    return found[0]


def tables(load: Workload) -> Workload:
    """What tells whether a cluster holds a load's tables: the load without its rate."""
    return cast(Paced, load).at_rate(None) if hasattr(load, "at_rate") else load


def repeats(load: Workload, profile: str) -> bool:
    """Whether the load's program makes and drops its tables by itself in this profile, several times in a round."""
    return hasattr(load, "repeats") and cast(Repeats, load).repeats(profile)


def refuse(loads: Iterable[Workload], profile: str, metric: str) -> None:
    """Raise ConfigError for a metric or a counter that these loads cannot have in this profile."""
    if metric in metrics.OF_DRAIN and (found := [load for load in loads if repeats(load, profile)]):
        raise ConfigError(metrics.NO_DRAINED.format(metric=metric, load=found[0]))


def left_tables(loads: Iterable[Workload], profile: str) -> tuple[str, ...]:
    """The tables that rounds of these loads leave, which have to be equal on all nodes; each once."""
    left = (load for load in loads if not repeats(load, profile))
    return tuple(dict.fromkeys(table for load in left for table in load.tables))


def unique_names(variants: Sequence[Variant]) -> list[str]:
    """The short names; with the release added to those that would be the same."""
    names = [variant.spec.short_name for variant in variants]
    return [
        f"{name}@{variant.release.name}" if names.count(name) > 1 else name
        for name, variant in zip(names, variants, strict=True)
    ]
