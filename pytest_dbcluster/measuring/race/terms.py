"""The terms of a race: which variants it accepts, and by how much its winner may be slower than another one."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from pytest_dbcluster.claims import kinds
from pytest_dbcluster.claims.claim import Claim
from pytest_dbcluster.claims.cluster_difference import ClusterDifference, percent
from pytest_dbcluster.claims.race.rule import MOST
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.measuring.drawing.round_source import RoundSource

SHARED = 0.05  # the default margin if all variants share their clusters
TIMES = 2  # the least margin on separate clusters, in what equal clusters can differ by, as log ratios
INSTANCES = 4  # of each variant on separate clusters, by default


def check(workload: object, on: Sequence[object], by: float | None) -> None:
    """Raise ConfigError for a wrong margin, and for specs that cannot race: one, too many, equal ones, equal names."""
    if isinstance(workload, Mapping):
        raise ConfigError("measure.race accepts one workload, because clusters race")
    if not 2 <= len(on) <= MOST:
        raise ConfigError(f"measure.race accepts 2 to {MOST} clusters, got {len(on)}")
    if equal := next(((one, other) for one, other in itertools.combinations(on, 2) if one == other), None):
        raise ConfigError(f"measure.race: {equal[0]} and {equal[1]} are the same cluster; keep one of them")
    names = [str(spec) for spec in on]
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise ConfigError(f"measure.race: two clusters have the name {twice}; give one another: spec.named(...)")
    if by is not None:
        kinds.race(by)


def of(source: RoundSource, by: float | None, metric: str) -> tuple[Claim, ClusterDifference | None]:
    """The claim of a race with its margin, and how far equal clusters can differ.

    The second is None if all variants share their clusters. by: the margin that the test gives; None for the default.
    Starts nothing. Raises ConfigError for a margin out of range. On separate clusters it raises it also for one below
    twice the difference of equal clusters.
    """
    claim = None if by is None else kinds.race(by)
    pairs = itertools.combinations(range(len(source.names)), 2)
    known = [found for two in pairs if (found := source.cluster_difference(*two, metric=metric))]
    difference = max(known, key=lambda one: one.bound, default=None)
    if difference is None:
        return claim or kinds.race(SHARED), None
    least = _least_margin(difference)
    if claim is not None and claim.margin < least:
        raise ConfigError(
            f"{source.load}: race(by={claim.margin:g}): {_least(least, difference)}; take a larger margin, more "
            f"instances (instances={TIMES * max(difference.instances, INSTANCES)}), or measure it here: "
            f"{difference.command or 'dbcluster calibrate'}"
        )
    return claim or kinds.race(least), difference


def line(claim: Claim, difference: ClusterDifference) -> str:
    """The line about the margin of a race on separate clusters."""
    measure = f"; to measure it here: {difference.command}" if difference.command else ""
    least = _least(_least_margin(difference), difference)
    return f"separate clusters: margin {_share(claim.margin)}; {least}{measure}"


def _least_margin(difference: ClusterDifference) -> float:
    """The least margin on separate clusters, rounded up to the three digits that are printed."""
    least = -math.expm1(-TIMES * difference.bound)
    scale = 10.0 ** (2 - math.floor(math.log10(least)))
    return math.ceil(least * scale - 1e-9) / scale


def _least(least: float, difference: ClusterDifference) -> str:
    means = f", means of {difference.instances} instances" if difference.instances > 1 else ""
    return (
        f"the least margin is {_share(least)}, twice the {percent(difference.bound)} by which equal clusters can "
        f"differ ({difference.source}{means})"
    )


def _share(fraction: float) -> str:
    return f"{100 * fraction:.3g} %"


def differences_of(source: RoundSource, metric: str) -> Callable[[int, int], float]:
    """Returns how far equal clusters of two variants can differ, as a natural log; 0 if they share one."""
    return partial(_difference_of, source, metric)


def _difference_of(source: RoundSource, metric: str, candidate: int, baseline: int) -> float:
    difference = source.cluster_difference(candidate, baseline, metric=metric)
    return difference.bound if difference else 0.0
