"""Metrics: what a claim can be about. Speeds, latencies and counters of rounds, and which of two values is better.

A metric has two faces: the values that are shown, and those that a ratio is made of. A latency is shown in
milliseconds and compared as a speed, the inverse of its seconds, so that "faster" is a ratio above 1 in every claim.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from pytest_dbcluster import registry
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.rounds import counters
from pytest_dbcluster.rounds.histogram import Histogram, bucket
from pytest_dbcluster.rounds.ledger import LedgerEntry
from pytest_dbcluster.rounds.open_loop import CLAIMED_SHARE, ArrivalRate, percent
from pytest_dbcluster.rounds.round import DRAINED, SPEEDS, Round

QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p999": 0.999}
NAMES = (*SPEEDS, *QUANTILES)
BY_TYPE = ("goodput", *QUANTILES)  # those that can be of one type of transactions: "p95:new_order"
LATENCY = "ms"
BEYOND = 10  # operations beyond a percentile make it a figure: 200 of a round for p95, 1000 for p99
ROOM = 1.2
OF_DRAIN = (*DRAINED.values(), "drain_seconds")  # what says nothing where more drained than was measured
NO_DRAINED = (
    "metric {metric!r} of {load}: in the profile paper its program fills its table anew for each of its repetitions, "
    "and what drains after them is all of that; claim throughput there, or this in the profile quick"
)
NO_LEDGER = "{load} keeps no ledger of its operations"


def check(metric: str, arrival_rate: ArrivalRate | None, load: str) -> None:
    """Raise ConfigError for a metric that does not exist, or that this load cannot have claimed at its arrival_rate.

    Of what capacity a rate in numbers is a share is measured, and another run may find another one: that makes claims
    inconclusive and is no error, see ``near_capacity``.
    """
    name, of_type, _ = metric.partition(":")
    if name not in NAMES:
        raise registry.unknown("metric", metric, NAMES)
    if of_type and name not in BY_TYPE:
        raise ConfigError(f"metric {metric!r}: of one type of transactions there are {', '.join(BY_TYPE)}")
    if name not in QUANTILES:
        return
    if arrival_rate is None:
        raise ConfigError(
            f"metric {metric!r} of {load}: in a closed loop a server that stands still is asked nothing, so its "
            'latencies are shown and not claimed; give the load rate="70 %"'
        )
    if (arrival_rate.share or 0.0) > CLAIMED_SHARE:
        asked = arrival_rate.asked
        raise ConfigError(
            f"metric {metric!r} of {load}: at {asked} of the slowest variant's capacity a tail is mostly queue; "
            f'claims about it take rate="{100 * CLAIMED_SHARE:.0f} %" or less'
        )


def near_capacity(metric: str, arrival_rate: ArrivalRate | None) -> str:
    """Why a latency says little of the servers at a rate in numbers; empty where it does, or its share is unknown."""
    if arrival_rate is None or unit(metric) != LATENCY or (arrival_rate.of_capacity or 0.0) <= CLAIMED_SHARE:
        return ""
    most = f"{100 * CLAIMED_SHARE:.0f} %"
    share = percent(arrival_rate.of_capacity or 0.0)
    return (
        f"{arrival_rate.rate:.4g}/s was measured to be {share} of the slowest variant's capacity, and "
        f'above {most} a tail is mostly queue: a lower rate would do, or rate="{most}", which follows the capacity'
    )


def needs_capacity(metric: str, arrival_rate: ArrivalRate | None) -> bool:
    """Whether a claim about this metric has to know first of what capacity the rate is a share."""
    return arrival_rate is not None and arrival_rate.of_capacity is None and unit(metric) == LATENCY


def unit(metric: str) -> str:
    """The unit of the values that are shown; empty for a counter."""
    name = metric.partition(":")[0]
    return "/s" if name in SPEEDS else LATENCY if name in QUANTILES else ""


def label(metric: str) -> str:
    """The metric with its unit, for an axis."""
    return {"/s": "operations / s", LATENCY: f"{metric}, ms"}.get(unit(metric), metric)


def shown(one: Round, metric: str, load: str) -> float:
    """The value of a round in the metric's unit. Raises ConfigError for a metric that this round does not have."""
    name, _, kind = metric.partition(":")
    if name in QUANTILES:
        return 1e3 * with_lost(one, entry(one, kind, metric, load), kind).percentile(QUANTILES[name])
    if kind:
        return entry(one, kind, metric, load).good / one.seconds
    if name in OF_DRAIN and one.outcome.span is not None:
        raise ConfigError(NO_DRAINED.format(metric=metric, load=load))
    if name in SPEEDS:
        return float(getattr(one, name))
    return counters.value(one.counters, metric, load=load)


def latencies(rounds: Sequence[Round], kind: str = "") -> Histogram:
    """The latencies of all these rounds together, of all types of transactions or of one, as claims count them."""
    found = Histogram()
    for one in rounds:
        if ledger := one.outcome.ledger:
            found += with_lost(one, ledger.entries.get(kind, LedgerEntry()) if kind else ledger.total, kind)
    return found


def with_lost(one: Round, of: LedgerEntry, kind: str) -> Histogram:
    """Latencies of a round; in an open loop with the operations that never ended as asked, or a tail would look better.

    Each counts as having taken twice the round, for which a run waits at the most. Which type those have that never
    began is not known, so they count among all types alone.
    """
    said = one.outcome
    if said.rate is None:
        return of.latencies
    lost = of.failed + of.unknown if kind or said.offered is None else said.offered - said.done
    return of.latencies + Histogram({bucket(2 * one.seconds): lost}) if lost > 0 else of.latencies


def compared(one: Round, metric: str, load: str) -> float:
    """The value of a round that ratios are made of: of what is timed a speed, of a counter the counter itself."""
    if unit(metric) == LATENCY:
        latency = shown(one, metric, load)
        return 0.0 if math.isnan(latency) else 1e3 / latency
    if unit(metric):
        return shown(one, metric, load)
    return counters.comparable(one.counters, metric, load=load, commits=one.outcome.commits)


def entry(one: Round, kind: str, metric: str, load: str) -> LedgerEntry:
    """The transactions of one type of a round, or all; ConfigError without a ledger, or for a type it does not have."""
    ledger = one.outcome.ledger
    if ledger is None:
        raise ConfigError(f"metric {metric!r}: {NO_LEDGER.format(load=load)}")
    if kind and kind not in ledger.entries:
        raise registry.unknown("type of transactions", kind, sorted(ledger.entries))
    return ledger.entries[kind] if kind else ledger.total


def enough(rounds: Sequence[Round], metric: str, load: str) -> None:
    """Raise ConfigError when half of these rounds have too few good operations for the percentile."""
    name, _, kind = metric.partition(":")
    if name not in QUANTILES or not rounds:
        return
    least = math.ceil(BEYOND / (1 - QUANTILES[name]) - 1e-6)
    seen = statistics.median(entry(one, kind, metric, load).latencies.total for one in rounds)
    if seen >= least:
        return
    seconds = statistics.median(one.seconds for one in rounds)
    wanted = f"rounds of seconds={math.ceil(ROOM * least / seen * seconds)} would do" if seen else "there were none"
    raise ConfigError(
        f"metric {metric!r} of {load}: it needs {least} good operations a round, {BEYOND} of them beyond it; "
        f"rounds of {seconds:.2g} s had {seen:.0f}: {wanted}"
    )
