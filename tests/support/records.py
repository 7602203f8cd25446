"""Records of claims about made-up rounds, for the tests of everything that shows them."""

import dataclasses
import functools
import math
import random
from collections.abc import Mapping

from pytest_dbcluster.claims import kinds
from pytest_dbcluster.claims.verdict import Terms, judge
from pytest_dbcluster.measuring import remarks
from pytest_dbcluster.reporting.records import ClaimRecord
from pytest_dbcluster.rounds.pairing import pairs_of
from pytest_dbcluster.rounds.round import Round, RunResult
from tests.support.pairs import placed


def rounds(variant, seconds, fsyncs, number=0):
    """Rounds of 1000 operations with these times, pair by pair. number: 1 for a candidate, 0 for a baseline."""
    return [
        Round(
            variant=variant,
            block=block,
            position=places[number],
            outcome=RunResult(value, 1000, 1000),
            wall=value * 1.4,
            started=1_700_000_000.0 + 10 * block + places[number],
            counters={"fsyncs_per_commit": fsyncs},
            samples={"client_cpu": 0.5},
        )
        for value, (block, *places) in zip(seconds, placed(1, len(seconds)), strict=True)
    ]


@functools.lru_cache
def verdict(claim, fast, slow, out_of_budget):
    """The verdict on pairs of rounds with these times; many tests show the same ones."""
    made = rounds("candidate", fast, 0.1, 1), rounds("baseline", slow, 3.0)
    speeds = [1 / value for value in fast], [1 / value for value in slow]
    return judge(claim, pairs_of(*made, speeds), Terms(out_of_budget=out_of_budget))


def record(
    claim=None,
    *,
    faster=1.3,
    sd=0.05,
    pairs=12,
    candidate="flush_2",
    baseline="galera3",
    load="mysqlslap write c50",
    published=None,
    asserted=True,
    release="mariadb:10.11 10.11.19",
    out_of_budget="budget of 120 s of measured time used (--db-budget)",
    seed=1,
    **changes,
):
    """A claim about ``pairs`` pairs of a candidate that is ``faster`` times as fast, with its true verdict."""
    claim = claim or kinds.beats()
    source = random.Random(seed)
    slow = [0.5 * math.exp(source.gauss(0, sd)) for _ in range(pairs)]
    fast = [0.5 / faster * math.exp(source.gauss(0, sd)) for _ in range(pairs)]
    made = {candidate: rounds(candidate, fast, 0.1, 1), baseline: rounds(baseline, slow, 3.0)}
    found = verdict(claim, tuple(fast), tuple(slow), out_of_budget)
    text = claim.call((candidate, baseline), "throughput") if asserted else f"{candidate} against {baseline}"
    given = {
        "test": "suites/galera/test_flush.py::test_flush_2[write]",
        "text": text,
        "load": load,
        "candidate": candidate,
        "baseline": baseline,
        "metric": "throughput",
        "verdict": found,
        "message": f"{found.outcome.name} {text}\n  all of the message",
        "published": published,
        "asserted": asserted,
        "measured_seconds": sum(slow) + sum(fast),
        "wall_seconds": 12.0,
        "seed": 813,
        "release": release,
        "profile": "quick",
        "durability": {candidate: "flush=2", baseline: "flush=1"},
        "differences": {"innodb_flush_log_at_trx_commit": ("1", "2")},
        "fingerprint": {"cpu": "2 x model", "memory": "8 GiB"},
        "repeat": "pytest suites/galera --db-seed=813",
        "rounds": made,
        "void_rounds": (),
        "instances": 1,
        "published_seconds": {},
        "drains": {},
        "drained": None,
        "arrival_rate": None,
        "limited": "",
        "cluster_difference": None,
    }
    return ClaimRecord(**{**given, **changes})


def drained(**changes):
    """A claim about rounds after which the candidate's nodes took half a second to be equal."""
    made = record(faster=1.3)
    many = {
        name: [
            dataclasses.replace(one, counters={**one.counters, "drain_seconds": seconds}) for one in made.rounds[name]
        ]
        for name, seconds in (("flush_2", 0.5), ("galera3", 0.0))
    }
    given = {"drains": remarks.drains(many), "drained": remarks.drained_ratio(many), "rounds": many}
    return dataclasses.replace(made, **{**given, **changes})


def undecided(**changes):
    """A claim that the budget ended."""
    return record(**{"faster": 1.05, "sd": 0.2, "pairs": 20, "load": "mysqlslap mixed c50", **changes})


def failed(**changes):
    """A claim that is refuted."""
    return record(**{"faster": 0.8, "sd": 0.03, "pairs": 20, "load": "mysqlslap update c50", **changes})


def beside(**changes):
    """A comparison that claims nothing."""
    return record(kinds.differs(), **{"asserted": False, "faster": 1.0, "pairs": 20, **changes})


def comparable(value):
    """The value with a word for what is not a number, which equals nothing."""
    if dataclasses.is_dataclass(value):
        fields = {field.name: comparable(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return type(value), fields
    if isinstance(value, Mapping):
        return {name: comparable(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(comparable, value))
    return "not a number" if isinstance(value, float) and math.isnan(value) else (type(value), value)
