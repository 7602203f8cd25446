"""The arrival rates of a measurement of capacity: a search for each variant, then the same rates for all."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.formatting import amount
from pytest_dbcluster.rounds.capacity.capacity_curve import CapacityCurve, RatePoint
from pytest_dbcluster.rounds.capacity.objective import Objective

RATES = 5  # of a round
WINDOW = 1.0  # seconds of one rate
LONGEST = 10.0  # seconds of one rate, beyond which no claim fits into a usual budget
WAITS = 10.0  # a rate lasts this many times the objective, so that a growing queue shows
ROOM = 1.2  # factor on the seconds in which enough operations are expected
START = 0.7  # share of the closed loop's speed at which the search begins
UP, DOWN, TRIES = 1.25, 1.6, 6  # factors between two rates of the search, and its longest length
SPREAD = 1.5  # the rates reach so many times beyond the capacities that the search found
DIGITS = 3  # of a rate
PER_THREAD = 20_000  # operations/s of one connection: no client ends one in less than 50 us


def window(objective: Objective, given: float | None) -> float:
    """The seconds of one rate: those of the workload, or by default 1 s, and more for a long objective."""
    return max(WINDOW, WAITS * objective.seconds) if given is None else given


def enough(seconds: float, rate: float, operations: int) -> float:
    """The seconds of one rate, at least so long that a percentile has its operations, and 10 s at most."""
    return max(seconds, min(LONGEST, _seconds_for(rate, operations)))


def _seconds_for(rate: float, operations: int) -> float:
    """The seconds in which so many operations are expected, to a tenth, with some room."""
    return math.ceil(round(10 * ROOM * operations / rate, 6)) / 10


def long_enough(seconds: float, slowest: float, operations: int, percentile: str) -> float:
    """The seconds of one rate, at least so long that the percentile has its operations at the slowest rate.

    operations: those that the percentile needs. Raises ConfigError for more than 10 s.
    """
    if (needed := _seconds_for(slowest, operations)) > LONGEST:
        raise ConfigError(
            f"{percentile} needs {operations} operations, which take {needed:.0f} s at {amount(slowest)}/s, more than "
            f"{LONGEST:.0f} s: use p50, more threads, or a larger objective"
        )
    return max(seconds, needed)


def search(objective: Objective, speed: float, run: Callable[[float], RatePoint]) -> CapacityCurve:
    """Run a few open loops of one variant around its capacity.

    speed: its operations a second in a closed loop. The search ends once one rate meets the objective and one misses
    it, or after six rates.
    """
    rate, points = START * speed, list[RatePoint]()
    while True:
        points.append(run(rate))
        found = CapacityCurve.of(objective, points)
        if found.censored == 0 or len(points) == TRIES:
            return found
        rate = UP * found.points[-1].rate if found.censored > 0 else found.points[0].rate / DOWN


def choose(objective: Objective, found: Sequence[CapacityCurve]) -> tuple[float, ...]:
    """The rates of all rounds, in rising order, from the searches of all variants.

    They are equally far apart on a logarithmic scale. A variant that met the objective at no rate adds none. Raises
    ConfigError if no variant met it.
    """
    known = [curve.value for curve in found if curve.censored >= 0]
    if not known:
        best = min(curve.points[0].latency for curve in found)
        raise ConfigError(
            f"no variant meets a {objective}, even at {amount(min(curve.points[0].rate for curve in found))}/s: the "
            f"lowest {objective.percentile} was {amount(1e3 * best)} ms; use a larger objective"
        )
    low, high = min(known) / SPREAD, SPREAD * max(known)
    step = (high / low) ** (1 / (RATES - 1))
    return tuple(_round_rate(low * step**number) for number in range(RATES))


def _round_rate(rate: float) -> float:
    return float(f"{rate:.{DIGITS}g}")


def beyond_threads(rate: float, threads: int) -> str:
    """The refusal of a rate that these connections cannot start; empty if they can, or are unknown."""
    if not threads or rate <= PER_THREAD * threads:
        return ""
    return (
        f"{amount(rate)}/s is more than {threads} connections can do: one starts at most {PER_THREAD} operations a "
        f"second; use threads={math.ceil(rate / PER_THREAD)} or more"
    )


def expected_seconds(variants: int, seconds: float, pairs: int) -> float:
    """The longest time of so many pairs of rounds, in seconds. seconds: of one rate."""
    return pairs * variants * RATES * seconds
