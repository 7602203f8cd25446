"""Unique names for variants, and for workloads on variants."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.spec import HostNeeds
from pytest_dbcluster.testbed.variants import Variant
from pytest_dbcluster.workloads.workload import Workload


def unique_names(variants: Sequence[Variant]) -> list[str]:
    """The short name of each variant. Equal names get a suffix: release, proxy, host needs, or a number."""
    names = [variant.spec.short_name for variant in variants]
    for suffixes in (
        [f"@{variant.release_name}" for variant in variants],
        [f"+{variant.spec.proxy}" if variant.spec.proxy else "" for variant in variants],
        [_needs(variant.spec.needs) for variant in variants],
    ):
        names = [_add_suffix(names, suffixes, number) for number in range(len(names))]
    while len(set(names)) < len(names):
        times = [names[: number + 1].count(name) for number, name in enumerate(names)]
        names = [f"{name}#{time}" if names.count(name) > 1 else name for name, time in zip(names, times, strict=True)]
    return names


def pairs(workload: Workload | Mapping[str, Workload], variants: Sequence[Variant]) -> tuple[list[Workload], list[str]]:
    """The workload of each variant, and its name, from the workload and variants of ``Testbed``."""
    if not isinstance(workload, Mapping):
        return [workload] * len(variants), unique_names(variants)
    each = len(variants) // len(workload)
    return [load for load in workload.values() for _ in range(each)], pair_names(workload, variants[:each])


def pair_names(workloads: Iterable[str], variants: Sequence[Variant]) -> list[str]:
    """The names of every workload on every variant, the variants of the first workload first: ``many on galera3``.

    On a single variant, a workload keeps its name. Raises ConfigError if two pairs would have the same name.
    """
    if len(variants) == 1:
        return list(workloads)
    names = [f"{workload} on {name}" for workload in workloads for name in unique_names(variants)]
    if twice := next((name for number, name in enumerate(names) if name in names[:number]), ""):
        raise ConfigError(f"two pairs of a workload and a cluster have the name {twice!r}; rename the workload")
    return names


def _add_suffix(names: Sequence[str], suffixes: Sequence[str], number: int) -> str:
    """The name of this number (0-based), with its suffix if variants of the same name have different suffixes."""
    same_name = {suffix for name, suffix in zip(names, suffixes, strict=True) if name == names[number]}
    return names[number] + suffixes[number] if len(same_name) > 1 else names[number]


def _needs(needs: HostNeeds) -> str:
    return "".join(f"+{re.sub(r'[^a-zA-Z0-9.]+', '_', need)}" for need in str(needs).split(", ") if need)
