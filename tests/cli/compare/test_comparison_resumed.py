"""A comparison that is continued, on made-up rounds: which of its answers are taken over."""

from __future__ import annotations

import dataclasses
import math
import random
import time
import types

import pytest

from pytest_dbcluster.cli.compare import comparison
from pytest_dbcluster.cli.compare.comparison import Comparison, ComparisonResults
from pytest_dbcluster.measuring.evidence import Evidence
from pytest_dbcluster.reporting import schema
from pytest_dbcluster.reporting.recording import Asked
from pytest_dbcluster.reporting.resume import earlier
from pytest_dbcluster.rounds.histogram import Histogram, bucket
from pytest_dbcluster.rounds.ledger import Ledger, LedgerEntry
from pytest_dbcluster.rounds.round import RunResult
from pytest_dbcluster.workloads.sysbench import SysBench
from tests.support.fakes import FakeSource
from tests.support.resolved import resolved

POINTS = SysBench("oltp_point_select", threads=2)
NAMES = ("old", "new")


@dataclasses.dataclass(frozen=True)
class Machine:
    """What made-up servers can do, in operations a second."""

    speeds: tuple[float, float] = (1000.0, 1000.0)
    """Of each variant in a closed loop."""

    can: float = math.inf
    """In an open loop, of both."""

    counts: bool = True
    """Whether the load generator counts what it should have started, so that a rate can be too high."""

    sd: float = 0.001
    """The scatter of the speeds."""

    options: str = "1"
    """An option of the second variant."""


def compare(place, monkeypatch, machine, *, resume=False, seconds=1e6):
    """Compare on such a machine; return the lines of progress, the number of rounds and the answer."""
    said, sources, noise = [], [], random.Random(1)

    def testbed(workload, *_, **__):
        length = workload.seconds or 1.0

        def outcome(variant, _):
            rate = source.arrival_rate.rate if source.arrival_rate else None
            speed = machine.speeds[variant] * math.exp(noise.gauss(0, machine.sd))
            number = round(length * (speed if rate is None else min(rate, machine.can)))
            latencies = Histogram({bucket(0.01 * math.exp(noise.gauss(0, 0.001))): number})
            ledger = Ledger({"point": LedgerEntry(committed=number, latencies=latencies)})
            offered = round(rate * length) if rate and machine.counts else number
            return RunResult(length, number, number, good=number, ledger=ledger, rate=rate, offered=offered)

        def lower_rate(why, done):
            lower = source.arrival_rate.lower(why, done)
            source.arrival_rate = lower or source.arrival_rate
            return lower is not None

        source = FakeSource(NAMES, lambda _: length, outcome=outcome, load=str(workload), metric="goodput")
        source.lower_rate, source.resolved = lower_rate, [resolved("old"), resolved("new", sync_binlog=machine.options)]
        specs = dict(zip(NAMES, source.resolved, strict=True))
        source.evidence = lambda question: Evidence(specs=specs)
        sources.append(source)
        return source

    monkeypatch.setattr(comparison, "Testbed", testbed)
    monkeypatch.setenv("XDG_CACHE_HOME", str(place / "cache"))
    before = earlier.read(place / "results") if resume else None
    asked = Asked("dbcluster compare", "quick", "dbcluster compare --cnf old.cnf --cnf new.cnf")
    kept = ComparisonResults(place / "results", asked, 1, (), before, said.append)
    pool = types.SimpleNamespace(turns=types.SimpleNamespace(clock=time.monotonic))
    variants = [types.SimpleNamespace(cluster_key=1)] * 2
    end = time.monotonic() + seconds
    made = Comparison(variants, pool, end=end, seconds=seconds, seed=1, progress=said.append, kept=kept)
    (answer,) = made.workloads([POINTS])
    return said, sum(len(source.rounds) for source in sources), answer


MACHINES = {
    "kept": Machine(),
    "lowered": Machine(can=600.0),
    "lowered, then longer": Machine(speeds=(100.0, 100.0), can=50.0),
    "longer": Machine(speeds=(100.0, 100.0), can=40.0, counts=False),
    "more rounds for the guard": Machine(speeds=(1000.0, 930.0), sd=0.03),
}


@pytest.mark.parametrize("name", MACHINES)
def test_a_finished_comparison_is_taken_over_whole(tmp_path, monkeypatch, name):
    """Nothing is drawn again, also where the rate of p95 was lowered or its rounds became longer, and with little time.

    The name of each machine says what happens on it.
    """
    machine, results = MACHINES[name], tmp_path / "results"
    _, drawn, first = compare(tmp_path, monkeypatch, machine)
    guard, closer, p95 = schema.read_claims(results)

    assert drawn > 0
    assert [guard.metric, closer.metric, p95.metric] == ["goodput", "goodput", "p95"]
    assert bool(p95.arrival_rate.lowered) is ("lowered" in name)
    assert (max(done.seconds for rounds in p95.rounds.values() for done in rounds) > 300 / 70) is ("longer" in name)
    assert (closer.verdict.pairs < guard.verdict.pairs) is ("guard" in name)
    for seconds in (1e6, 10.0):
        said, again, second = compare(tmp_path, monkeypatch, machine, resume=True, seconds=seconds)
        taken = [line for line in said if line.startswith("taken over: ")]
        assert taken == [f"taken over: {claim.text} ({claim.load})" for claim in (guard, closer, p95)]
        assert again == 0
        assert schema.read_claims(results) == [guard, closer, p95]
        assert (second.p95.verdict, second.p95.medians) == (first.p95.verdict, first.p95.medians)


def test_changed_options_leave_one_answer_about_p95(tmp_path, monkeypatch):
    """The earlier p95 was measured at another rate, which is in its name; it goes, and the line says why."""
    compare(tmp_path, monkeypatch, Machine())
    said, drawn, _ = compare(tmp_path, monkeypatch, Machine(speeds=(2000.0, 2000.0), options="0"), resume=True)
    claims = schema.read_claims(tmp_path / "results")

    assert drawn > 0
    assert [claim.metric for claim in claims] == ["goodput", "goodput", "p95"]
    assert claims[-1].arrival_rate.rate > 1300
    assert [line for line in said if "p95" in line and line.startswith("measured again (its arrival rate changed)")]
