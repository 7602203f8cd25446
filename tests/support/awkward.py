"""Results that are hard to show: long names, counters of 0, wide ranges, many runs of one claim, gaps in a timeline."""

import dataclasses
import random

from pytest_dbcluster.claims import kinds
from pytest_dbcluster.claims.verdict import Terms, judge
from pytest_dbcluster.reporting import rounds_csv
from pytest_dbcluster.reporting.history import history_file
from pytest_dbcluster.reporting.results_directory import HISTORY
from tests.support.curves import curve, point
from tests.support.histories import entries, healthy
from tests.support.records import beside, record
from tests.support.results import results

LONG = {
    "candidate": "innodb_flush_log_at_trx_commit_2_innodb_io_capacity_3000",
    "baseline": "galera3_with_the_default_configuration_of_the_vendor",
}


def counted(metric, candidate, baseline, *, pairs=14, **changes):
    """A claim that a counter is lower, with its true verdict. candidate, baseline: make a value of a random source."""
    source = random.Random(3)
    made = record(kinds.lower(), metric=metric, pairs=pairs, **changes)
    makes = {made.candidate: candidate, made.baseline: baseline}
    many = {
        name: tuple(dataclasses.replace(one, counters={metric: makes[name](source)}) for one in rounds)
        for name, rounds in made.rounds.items()
    }
    made = dataclasses.replace(made, rounds=many, text=made.verdict.claim.call(tuple(makes), metric))
    found = judge(
        made.verdict.claim, rounds_csv.pairs(made, made.candidate, made.baseline), Terms(out_of_budget="budget")
    )
    return dataclasses.replace(made, verdict=found)


def counters():
    """Claims about counters: 0 in one variant or the other, far apart, of large numbers, and with few pairs."""
    return [
        counted("fsyncs_per_commit", lambda source: 0.0, lambda source: 3 + source.random() / 10),
        counted("semisync_wait_us_per_commit", lambda source: 9e4 + source.random(), lambda source: 1e5, load="TPC-C"),
        counted("bf_aborts_per_commit", lambda source: source.random() / 50, lambda source: 0.0),
        counted("log_bytes_per_commit", lambda source: 1e6 * (1 + source.random()), lambda source: 3.0),
        counted("abort_share", lambda source: source.choice([0, 0, 0.01]), lambda source: source.random() / 20),
        counted("paused_share", lambda source: 0.0, lambda source: 0.0, pairs=8),
    ]


def order():
    """A claim about an order of three variants with long names, that holds."""
    made = record(pairs=14, sd=0.01, load="sysbench oltp_update_index t4", **LONG)
    third = "async_replication2_without_semisync"
    places = [one.position for one in made.rounds[made.baseline]]  # so that the third is before the candidate as often
    fast = [
        dataclasses.replace(
            one,
            variant=third,
            position=place,
            outcome=dataclasses.replace(one.outcome, seconds=0.2 + 0.001 * (number % 3)),
        )
        for number, (one, place) in enumerate(zip(made.rounds[made.candidate], places, strict=True))
    ]
    made = dataclasses.replace(made, rounds={third: tuple(fast), **made.rounds})
    steps = [rounds_csv.pairs(made, *step) for step in rounds_csv.steps(made)[::-1]]
    names = (made.baseline, made.candidate, third)
    verdict = judge(kinds.ordered(), steps, Terms(out_of_budget="budget"))
    return dataclasses.replace(made, verdict=verdict, text=verdict.claim.call(names, "throughput"))


def sweep():
    """A sweep of five variants with long names over eight large values."""
    names = [f"{LONG['candidate']}_{number}" for number in range(5)]
    values = [1000 * 2**number for number in range(8)]
    return curve([point(value, name) for value in values for name in names], load="sysbench oltp_read_write")


def awkward(directory):
    """Write the results directory of a run with all of this, and with a history of its first claim."""
    guard = record(kinds.same_as(0.1), faster=1.02, sd=0.2, pairs=40, load="mysqlslap key c50", **LONG)
    noisy = record(faster=1.05, sd=0.3, pairs=160, load="mysqlslap write c50", published=7.41)
    results(directory, [*counters(), order(), guard, noisy, beside()], sweeps=[sweep()], timelines=True)
    history_file.add(directory / HISTORY, entries([*healthy(12), *healthy(12, seed=2, level=1.5)], low=1.2, high=2.2))
    return directory
