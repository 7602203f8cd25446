"""Stacks: the functions in which the servers of two variants spent CPU time, each with those that called it."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Mapping, Sequence

# By functions, each called by the one before it: the CPU seconds of the last one itself.
Stacks = Mapping[tuple[str, ...], float]
LEAST_SHARE = 0.005  # of the CPU time of a variant: a function with less is part of its caller


@dataclasses.dataclass(frozen=True)
class ComparedStack:
    """A function with its callers on both variants, per operation of the workload."""

    functions: tuple[str, ...]
    """The functions, each called by the one before it."""

    baseline: float
    """The CPU seconds in the last function itself, on the baseline."""

    candidate: float
    """The CPU seconds in the last function itself, on the candidate."""


@dataclasses.dataclass(frozen=True)
class FunctionTime:
    """The CPU time of one function itself, whoever called it, per operation of the workload."""

    name: str
    """Its name; that of a file in brackets for functions without a name."""

    baseline: float
    """The CPU seconds on the baseline."""

    candidate: float
    """The CPU seconds on the candidate."""


def compare_stacks(baseline: Stacks, candidate: Stacks) -> tuple[ComparedStack, ...]:
    """The stacks of both variants, in the order of their functions' names.

    A function whose time, with all that it calls, is below LEAST_SHARE on both variants counts for its caller.
    """
    both = (baseline, candidate)
    wholes = [_with_called(stacks) for stacks in both]
    least = [LEAST_SHARE * sum(stacks.values()) for stacks in both]
    found: dict[tuple[str, ...], list[float]] = collections.defaultdict(lambda: [0.0, 0.0])
    for number, stacks in enumerate(both):
        for functions, seconds in stacks.items():
            kept = functions
            while len(kept) > 1 and all(
                whole.get(kept, 0.0) < limit for whole, limit in zip(wholes, least, strict=True)
            ):
                kept = kept[:-1]
            found[kept][number] += seconds
    return tuple(ComparedStack(functions, *found[functions]) for functions in sorted(found))


def _with_called(stacks: Stacks) -> dict[tuple[str, ...], float]:
    """By functions, the time of the last one with all that it called."""
    found: dict[tuple[str, ...], float] = collections.defaultdict(float)
    for functions, seconds in stacks.items():
        for depth in range(1, len(functions) + 1):
            found[functions[:depth]] += seconds
    return found


def function_times(stacks: Sequence[ComparedStack]) -> list[FunctionTime]:
    """The functions of these stacks; the largest difference comes first."""
    found: dict[str, list[float]] = collections.defaultdict(lambda: [0.0, 0.0])
    for one in stacks:
        found[one.functions[-1]][0] += one.baseline
        found[one.functions[-1]][1] += one.candidate
    made = [FunctionTime(name, *seconds) for name, seconds in found.items()]
    return sorted(made, key=lambda one: (-abs(one.candidate - one.baseline), one.name))
