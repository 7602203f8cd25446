"""Comparison: what the loads and variants that are measured together share, and how they are told apart."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.rounds import metrics
from pytest_dbcluster.spec import ClusterSpec, HostNeeds
from pytest_dbcluster.testbed.variants import Variant
from pytest_dbcluster.workloads.workload import OpenLoop, Workload

Value = TypeVar("Value")


def metric(loads: Sequence[Workload]) -> str:
    """The metric of loads that are compared, which has to be the same. Raises ConfigError where it differs."""
    return _common(loads, "metric", [load.metric for load in loads])


def rate(loads: Sequence[Workload]) -> float | str | None:
    """The arrival rate of loads that are compared, as ``OpenLoop.rate``. Raises ConfigError where it differs."""
    return _common(loads, "rate", [load.rate if isinstance(load, OpenLoop) else None for load in loads])


def _common(loads: Sequence[Workload], name: str, values: Sequence[Value]) -> Value:
    known = list(dict.fromkeys(values))
    if len(known) > 1:
        shown = ", ".join(map(repr, known))
        raise ConfigError(
            f"{' and '.join(map(str, loads))}: their {name} differs ({shown}), so they are not comparable"
        )
    return known[0]


def tables(load: Workload) -> Workload:
    """What tells whether a cluster holds a load's tables: the load without its rate."""
    return at_rate(load, None)


def at_rate(load: Workload, rate: float | None) -> Workload:
    """The load at this arrival rate, in operations a second; None is the closed loop, which every load can run."""
    return load.at_rate(rate) if isinstance(load, OpenLoop) else load


def refuse(loads: Iterable[Workload], profile: str, metric: str) -> None:
    """Raise ConfigError for a metric or a counter that these loads cannot have in this profile."""
    if metric in metrics.OF_DRAIN and (found := [load for load in loads if load.repeats(profile)]):
        raise ConfigError(metrics.NO_DRAINED.format(metric=metric, load=found[0]))


def left_tables(loads: Iterable[Workload], profile: str) -> tuple[str, ...]:
    """The tables that rounds of these loads leave, which have to be equal on all nodes; each once."""
    left = (load for load in loads if not load.repeats(profile))
    return tuple(dict.fromkeys(table for load in left for table in load.tables))


def check_loads(loads: Mapping[str, Workload], on: Sequence[ClusterSpec]) -> None:
    """Raise ConfigError for a lone load or several specs, and for names that are no texts: files are made of them."""
    if len(on) > 1 or len(loads) < 2:
        raise ConfigError("measure({name: load, ...}, on=[spec]) compares two or more loads on one cluster")
    if wrong := [name for name in loads if not isinstance(name, str) or not name.strip()]:
        raise ConfigError(
            f"measure({{name: load, ...}}, on=[spec]): a name is a text, got {', '.join(map(repr, wrong))}; "
            f'write it as one, such as "{wrong[0] or 16} clients"'
        )


def unique_names(variants: Sequence[Variant]) -> list[str]:
    """The short names; to those that would be the same what tells them apart: release, proxy, needs, else a number."""
    names = [variant.spec.short_name for variant in variants]
    for said in (
        [f"@{variant.release.name}" for variant in variants],
        [f"+{variant.spec.proxy}" if variant.spec.proxy else "" for variant in variants],
        [_needs(variant.spec.needs) for variant in variants],
    ):
        names = [_apart(names, said, number) for number in range(len(names))]
    while len(set(names)) < len(names):
        times = [names[: number + 1].count(name) for number, name in enumerate(names)]
        names = [f"{one}#{time}" if names.count(one) > 1 else one for one, time in zip(names, times, strict=True)]
    return names


def _apart(names: Sequence[str], said: Sequence[str], number: int) -> str:
    """One of the names, with what is said of it where that tells it from another one of the same name."""
    same = {word for name, word in zip(names, said, strict=True) if name == names[number]}
    return names[number] + said[number] if len(same) > 1 else names[number]


def _needs(needs: HostNeeds) -> str:
    return "".join(f"+{re.sub(r'[^a-zA-Z0-9.]+', '_', one)}" for one in str(needs).split(", ") if one)
