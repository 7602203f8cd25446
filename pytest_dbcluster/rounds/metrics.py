"""Metrics: the speeds, latencies and counters of rounds that a claim can compare.

A metric has two values in a round: messages print ``display_value``, ratios use ``ratio_value``. A latency is printed
in milliseconds and compared as a speed, 1 / seconds. So "faster" is a ratio above 1 in every claim.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from pytest_dbcluster import registry
from pytest_dbcluster.claims.repetitions.samples import Repetitions
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.formatting import amount, quantity
from pytest_dbcluster.rounds import counters
from pytest_dbcluster.rounds.histogram import PERCENTILES, Histogram, bucket
from pytest_dbcluster.rounds.ledger import LedgerEntry
from pytest_dbcluster.rounds.open_loop import CLAIMED_SHARE, ArrivalRate, percent
from pytest_dbcluster.rounds.round import DRAINED, SPEEDS, Round

QUANTILES = PERCENTILES
NAMES = (*SPEEDS, *QUANTILES)
CAPACITY = "capacity"  # of a measurement of capacity, whose claims have no other metric
# Metrics of a repetition of an event (``Outage``), with their unit. Only claims about events have them.
OF_EVENTS: Mapping[str, str] = MappingProxyType(
    {
        "stall": "s",
        "without_commit": "s",
        "read_stall": "s",
        "below_half": "s",
        "missing": "s",
        "returned": "s",
        "without_redundancy": "s",
        "speed_after": "%",
        "lost": "",
        "returned_by": "",
    }
)
NEED_CONTROL = ("below_half", "missing")  # they depend on how steady the load is, so only two variants compare them
NO_FIGURE: Mapping[str, str] = MappingProxyType(  # why a repetition has no such figure
    {
        **dict.fromkeys(("stall", "without_commit"), "no transaction of the load writes; use read_stall"),
        "read_stall": "no transaction of the load only reads",
        **dict.fromkeys((*NEED_CONTROL, "speed_after"), "the load had no usual rate before the event"),
        **dict.fromkeys(
            ("returned", "without_redundancy", "returned_by"), "no node left the cluster, or none came back"
        ),
    }
)
ALL = (*NAMES, CAPACITY, *OF_EVENTS)
# Metric -> its meaning in one sentence, for the reference.
MEANINGS: Mapping[str, str] = MappingProxyType(
    {
        "throughput": "Operations a second.",
        "goodput": "Operations a second that ended as intended, without those that ended in a conflict.",
        "drained_throughput": "Operations a second until every node has applied them, so that a backlog counts.",
        "drained_goodput": "Goodput until every node has applied the operations.",
        "p50": "The median latency of an open loop, from the intended start of an operation.",
        "p95": "The latency of an open loop that 95 % of the operations do not exceed.",
        "p99": "The latency of an open loop that 99 % of the operations do not exceed.",
        "p999": "The latency of an open loop that 99.9 % of the operations do not exceed.",
        "capacity": "The arrival rate at which a latency percentile crosses its objective.",
        "stall": "The longest time between two commits of writing transactions, from the event on.",
        "without_commit": "The sum of all times between two such commits of at least .1 s and five usual ones.",
        "read_stall": "The longest time between two commits of transactions that only read, from the event on.",
        "below_half": "The time with less than half of the usual rate, from the event on.",
        "missing": "Commits that are missing until the usual rate is back, in seconds of the usual load.",
        "returned": "The time from the start of the node that left until the cluster was whole again.",
        "without_redundancy": "The time from the moment when a node is gone until the cluster was whole again.",
        "speed_after": "The rate in the last 2 s of the load, as a percentage of the usual rate before the event.",
        "lost": "Acknowledged transactions that are missing after the event, and transactions that nobody wrote.",
        "returned_by": "Whether the node came back in the way after the colon, such as `returned_by:IST`.",
    }
)
RETURNED_BY = "returned_by"  # with the way after a colon: "returned_by:IST"
BY_TYPE = ("goodput", *QUANTILES)  # metrics that can be limited to one type of transaction: "p95:new_order"
BY_STATEMENT = tuple(QUANTILES)  # metrics that can be limited to one statement: "p95:order:7" is line 7 of order.sql
LATENCY = "ms"
BEYOND = 10  # operations that must lie beyond a percentile: 200 operations a round for p95, 1000 for p99
ROOM = 1.2  # factor on the recommended seconds of a round
OF_DRAIN = (*DRAINED.values(), "drain_seconds")  # unknown if more than the measured operations drained
NO_DRAINED = (
    "metric {metric!r} of {load}: in the profile paper its program populates its table again for each repetition, "
    "and the drain includes that; claim throughput, or use the profile quick"
)
NO_LEDGER = "{load} keeps no ledger of its operations"


def check(metric: str, arrival_rate: ArrivalRate | None, load: str, parts: Sequence[str] = ()) -> None:
    """Raise ConfigError for an unknown metric, and for a latency that cannot be claimed at this arrival rate.

    parts: the workload's types of transactions and its statements, to which a metric can be limited. Empty if they are
    known only from the rounds.

    A claim about latencies needs an open loop at 70 % of capacity or less. For a rate in operations/s the capacity is
    measured, and may differ in the next run. So a rate above 70 % makes that claim inconclusive; see ``near_capacity``.
    """
    name, _, part = str(metric).partition(":")
    if name not in NAMES:
        raise registry.unknown("metric", metric, NAMES)
    if part and name not in BY_TYPE:
        raise ConfigError(f"metric {metric!r}: metrics of one type of transaction are {', '.join(BY_TYPE)}")
    if ":" in part and name not in BY_STATEMENT:
        raise ConfigError(
            f"metric {metric!r}: metrics of one statement are {', '.join(BY_STATEMENT)}; "
            f"write {name}:{type_of(part)} for its transaction"
        )
    if part and parts and part not in parts:
        raise unknown_part(part, parts)
    if name not in QUANTILES:
        return
    if arrival_rate is None:
        raise ConfigError(
            f"metric {metric!r} of {load}: in a closed loop a stalled server gets no operations, so latencies are "
            'printed but cannot be claimed; give the workload rate="70 %"'
        )
    if (arrival_rate.share or 0.0) > CLAIMED_SHARE:
        asked = arrival_rate.asked
        raise ConfigError(
            f"metric {metric!r} of {load}: at {asked} of the slowest variant's capacity, a tail latency is mostly "
            f'queueing; claims about it need rate="{100 * CLAIMED_SHARE:.0f} %" or less'
        )


def type_of(part: str) -> str:
    """The type of transaction of a type or a statement: both ``order`` and ``order:7`` belong to ``order``."""
    return part.partition(":")[0]


def unknown_part(part: str, known: Sequence[str]) -> ConfigError:
    """A ConfigError for a type of transaction, or a statement, that a workload does not have."""
    alike = [one for one in known if (":" in one) == (":" in part)]
    of_one = [one for one in alike if ":" in one and type_of(one) == type_of(part)]
    return registry.unknown("statement" if ":" in part else "type of transaction", part, of_one or alike)


def near_capacity(metric: str, arrival_rate: ArrivalRate | None) -> str:
    """Why a latency at this rate says little about the servers; empty if it says enough, or if unknown.

    Above 70 % of the slowest variant's capacity, a tail latency is mostly queueing.
    """
    if arrival_rate is None or unit(metric) != LATENCY or (arrival_rate.of_capacity or 0.0) <= CLAIMED_SHARE:
        return ""
    maximum = f"{100 * CLAIMED_SHARE:.0f} %"
    share = percent(arrival_rate.of_capacity or 0.0)
    return (
        f"{amount(arrival_rate.rate or 0.0)}/s was measured to be {share} of the slowest variant's capacity, and "
        f'above {maximum} a tail latency is mostly queueing: set a lower rate, or rate="{maximum}", which follows the '
        "capacity"
    )


def needs_capacity(metric: str, arrival_rate: ArrivalRate | None) -> bool:
    """Whether a claim about this metric needs the variants' capacities, and nobody has measured them yet."""
    return arrival_rate is not None and arrival_rate.of_capacity is None and unit(metric) == LATENCY


def unit(metric: str) -> str:
    """The unit of ``display_value``: ``/s`` for speeds, ``ms`` for latencies, empty for a counter.

    Metrics of events have ``s``, ``%`` or none.
    """
    name = metric.partition(":")[0]
    if name in OF_EVENTS:
        return OF_EVENTS[name]
    return "/s" if name in (*SPEEDS, CAPACITY) else LATENCY if name in QUANTILES else ""


def of_seconds(metric: str) -> bool:
    """Whether this is operations by the measured seconds of a round, so that the resolution of the time matters."""
    return unit(metric) == "/s"


def is_counter(metric: str) -> bool:
    """Whether this is a counter, which is compared by typical rounds (``claims.counts``)."""
    return not unit(metric)


def label(metric: str) -> str:
    """The metric with its unit, for an axis."""
    of = unit(metric)
    return "operations / s" if of == "/s" else f"{metric}, {of}" if of else metric


def display_value(done: Round, metric: str, load: str) -> float:
    """The value of a round that messages print: operations/s, milliseconds, or a counter.

    ``load`` is the name of the workload. Raises ConfigError for a metric that this round does not have.
    """
    name, _, kind = metric.partition(":")
    if name in OF_EVENTS:
        return of_event(done, metric, load)
    if name == CAPACITY:
        return _capacity(done, load)
    if name in QUANTILES:
        return 1e3 * _latencies(done, kind, metric, load).percentile(QUANTILES[name])
    if kind:
        return entry(done, kind, metric, load).good / done.seconds
    if name in OF_DRAIN and done.outcome.span is not None:
        raise ConfigError(NO_DRAINED.format(metric=metric, load=load))
    if name in SPEEDS:
        return float(getattr(done, name))
    return counters.value(done.counters, metric, load=load)


def _capacity(done: Round, load: str) -> float:
    if done.capacity is None:
        raise ConfigError(f"metric {CAPACITY!r} of {load}: only rounds of measure.capacity have it")
    return done.capacity.value


def of_event(done: Round, metric: str, load: str) -> float:
    """The value of a repetition of an event: seconds, transactions, or 1 and 0 for yes and no; nan without a value.

    Raises ConfigError for another round.
    """
    if done.outage is None:
        raise ConfigError(f"metric {metric!r} of {load}: no event happened in this round; use measure.event")
    return done.outage.figure(metric)


def samples(rounds: Sequence[Round], metric: str, load: str) -> Repetitions:
    """The values of the repetitions of an event, or milliseconds of rounds at one arrival rate.

    Raises ConfigError as ``of_event``, and if one has no value.
    """
    if unit(metric) == LATENCY:
        early = tuple(done.outcome.ended_early for done in rounds)
        return Repetitions(tuple(display_value(done, metric, load) for done in rounds), early if any(early) else ())
    values, name = tuple(of_event(done, metric, load) for done in rounds), metric.partition(":")[0]
    found = [done.outage for done in rounds if done.outage]
    if any(map(math.isnan, values)):
        why = NO_FIGURE.get(name, "it is unknown")
        raise ConfigError(f"metric {name!r} of {load}: a repetition has no such value: {why}")
    censored = tuple(one.is_lower_bound(name) for one in found)
    texts = tuple(f"{one.node} {one.way_back}".strip() for one in found) if name == RETURNED_BY else ()
    return Repetitions(values, censored if any(censored) else (), texts)


def latencies(rounds: Sequence[Round], part: str = "") -> Histogram:
    """The latencies of these rounds in one histogram: of a type of transaction, of a statement, or of all types.

    An empty part means all types. Rounds without the part add nothing.
    """
    total = Histogram()
    for done in rounds:
        if ledger := done.outcome.ledger:
            transactions = ledger.entries.get(type_of(part), LedgerEntry()) if part else ledger.total
            total += latencies_with_losses(done, _with_latencies_of(done, transactions, part), part)
    return total


def _latencies(done: Round, part: str, metric: str, load: str) -> Histogram:
    """The latencies of a round: of one type of transaction, of one statement, or, for an empty part, of all types.

    A statement has the lost operations of its transaction. Raises ConfigError as ``entry`` does.
    """
    transactions = entry(done, part, metric, load)
    return latencies_with_losses(done, _with_latencies_of(done, transactions, part), part)


def _with_latencies_of(done: Round, transactions: LedgerEntry, part: str) -> LedgerEntry:
    """These transactions; of a statement with its latencies in place of theirs."""
    statement = done.outcome.statements.get(part)
    return transactions if statement is None else dataclasses.replace(transactions, latencies=statement)


def latencies_with_losses(done: Round, transactions: LedgerEntry, kind: str) -> Histogram:
    """The latencies of a round, in an open loop with its lost operations, which belong to the tail.

    A lost operation counts as twice the length of the round, the longest time that a run waits for it. The type of
    operations that never began is unknown, so they count only if ``kind`` is empty.
    """
    outcome = done.outcome
    if outcome.rate is None:
        return transactions.latencies
    not_good = transactions.failed + transactions.unknown
    lost = not_good if kind or outcome.offered is None else outcome.offered - outcome.done
    return transactions.latencies + Histogram({bucket(2 * done.seconds): lost}) if lost > 0 else transactions.latencies


def ratio_value(done: Round, metric: str, load: str) -> float:
    """The value of a round for ratios: a speed in operations/s, 1 / seconds of a latency, or a counter.

    A latency without operations is 0. Raises ConfigError as ``display_value`` does.
    """
    if unit(metric) == LATENCY:
        latency = display_value(done, metric, load)
        return 0.0 if math.isnan(latency) else 1e3 / latency
    return display_value(done, metric, load)


def entry(done: Round, kind: str, metric: str, load: str) -> LedgerEntry:
    """The transactions of one type in a round, of a statement's type, or of all types for an empty kind.

    Raises ConfigError for a round without a ledger, and for a type or a statement that it does not have.
    """
    ledger, statements = done.outcome.ledger, done.outcome.statements
    if ledger is None:
        raise ConfigError(f"metric {metric!r}: {NO_LEDGER.format(load=load)}")
    if kind and kind not in ledger.entries and kind not in statements:
        raise unknown_part(kind, [*sorted(ledger.entries), *statements])
    return ledger.entries.get(type_of(kind), LedgerEntry()) if kind else ledger.total


class TooFewOperations(ConfigError):
    """The rounds are too short for a percentile: too few good operations in the median round."""


def require_operations(rounds: Sequence[Round], metric: str, load: str) -> None:
    """Raise TooFewOperations if the median round has too few good operations for the metric.

    A percentile needs 10 operations beyond it. The goodput of one type needs 10 operations, because rounds without any
    are equal for all servers.
    """
    minimum, operations, seconds = _operations(rounds, metric, load)
    if operations >= minimum:
        return
    longer = f"rounds of seconds={math.ceil(ROOM * minimum / operations * seconds)}" if operations else "longer rounds"
    beyond = f", {BEYOND} of them beyond it" if minimum > BEYOND else ""
    raise TooFewOperations(
        f"metric {metric!r} of {load}: it needs {minimum} good operations a round{beyond}; "
        f"rounds of {seconds:.2g} s had {operations:.0f}: use {longer}"
    )


def values_above_zero(rounds: Sequence[Round], metric: str, load: str) -> list[float]:
    """The value of each round for logarithms, as ``ratio_value``.

    Raises TooFewOperations as ``require_operations`` does, and if a value is 0.
    """
    require_operations(rounds, metric, load)
    values = [ratio_value(done, metric, load) for done in rounds]
    if zeros := values.count(0):
        raise TooFewOperations(
            f"metric {metric!r} of {load}: it is 0 in {zeros} of {quantity(len(rounds), 'round')}: use longer rounds"
        )
    return values


def seconds_needed(rounds: Sequence[Round], metric: str, load: str) -> float:
    """The estimated seconds of a round that has enough good operations for the metric, with some room.

    0 for a metric that needs no operations, and without rounds. Infinite if these rounds had no such operation.
    """
    minimum, operations, seconds = _operations(rounds, metric, load)
    return ROOM * minimum * seconds / operations if operations else math.inf if minimum else 0.0


def _operations(rounds: Sequence[Round], metric: str, load: str) -> tuple[int, float, float]:
    """Good operations that a round needs for a metric, the number in the median round, and its seconds."""
    name, _, kind = metric.partition(":")
    if not rounds or not (kind or name in QUANTILES):
        return 0, 0.0, 0.0
    minimum = operations_needed(metric)
    operations = statistics.median(_count_latencies(done, kind, metric, load) for done in rounds)
    return minimum, operations, statistics.median(done.seconds for done in rounds)


def operations_needed(metric: str) -> int:
    """The good operations that a latency needs, or the goodput of one type: 200 for p95, 1000 for p99."""
    name = metric.partition(":")[0]
    return math.ceil(BEYOND / (1 - QUANTILES[name]) - 1e-6) if name in QUANTILES else BEYOND


def _count_latencies(done: Round, part: str, metric: str, load: str) -> int:
    """The number of latencies of a type of transaction or a statement in a round, without lost operations."""
    transactions = entry(done, part, metric, load)
    return done.outcome.statements.get(part, transactions.latencies).total
