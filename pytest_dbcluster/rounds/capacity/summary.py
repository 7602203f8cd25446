"""The lines of a message about capacities: the rates, the latencies at each rate, and the censored rounds."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from pytest_dbcluster.formatting import amount
from pytest_dbcluster.rounds.capacity.capacity_curve import CapacityCurve

ENDS = {1: "above the highest rate", -1: "below the lowest rate"}
ORDER_ONLY = "such a round counts only by its order, and a pair of two such rounds for neither variant"


def lines(curves: Mapping[str, Sequence[CapacityCurve]]) -> list[str]:
    """The lines about the rounds of each variant; none for rounds without capacities."""
    known = {name: several for name, several in curves.items() if several}
    if not known:
        return []
    first = next(iter(known.values()))[0]
    what = f"median {first.percentile} in ms by rate (objective {amount(1e3 * first.seconds)} ms)"
    found = [f"{name}: {what}: {_by_rate(several)}" for name, several in known.items()]
    return [*found, *(line for name, several in known.items() for line in _beyond_rates(name, several))]


def medians(curves: Mapping[str, Sequence[CapacityCurve]]) -> list[str]:
    """One line with the median capacity of each variant; none for rounds without capacities."""
    known = [(name, several) for name, several in curves.items() if several]
    shown = [f"{name} {amount(statistics.median(one.value for one in several))}/s" for name, several in known]
    objective = f"{known[0][1][0].percentile} of {amount(1e3 * known[0][1][0].seconds)} ms" if known else ""
    return [f"capacity at a {objective}: {', '.join(shown)}"] if shown else []


def median_latencies(curves: Sequence[CapacityCurve]) -> dict[float, float]:
    """By rate in rising order, the median of the percentile over these rounds, in seconds."""
    by_rate: dict[float, list[float]] = {}
    for curve in curves:
        for point in curve.points:
            by_rate.setdefault(point.rate, []).append(point.latency)
    return {rate: statistics.median(values) for rate, values in sorted(by_rate.items())}


def rates_that_ended_early(curves: Sequence[CapacityCurve]) -> set[float]:
    """The rates at which a round ended early, because it had to miss the objective; its latency says no more."""
    return {point.rate for curve in curves for point in curve.points if point.ended_early}


def _by_rate(curves: Sequence[CapacityCurve]) -> str:
    early, found = rates_that_ended_early(curves), median_latencies(curves)
    return ", ".join(f"{amount(rate)}/s {amount(1e3 * value)}{'*' * (rate in early)}" for rate, value in found.items())


def _beyond_rates(name: str, curves: Sequence[CapacityCurve]) -> list[str]:
    """A line for each end beyond which the capacity of a round lies."""
    counts = {end: sum(curve.censored == end for curve in curves) for end in ENDS}
    return [
        f"the capacity of {name} is {ENDS[end]} in {count} of {len(curves)} rounds: {ORDER_ONLY}"
        for end, count in counts.items()
        if count
    ]
