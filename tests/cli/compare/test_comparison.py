"""The measurements of ``dbcluster compare``: margins, time, and what its lines say of its answers."""

from __future__ import annotations

import dataclasses
import itertools
import math
import random
import re
import time
import types

import pytest

from pytest_dbcluster.claims import claim as claims
from pytest_dbcluster.claims.cluster_difference import ClusterDifference
from pytest_dbcluster.cli.compare import command as compare
from pytest_dbcluster.cli.compare import comparison
from pytest_dbcluster.cli.compare.comparison import Comparison, rules_of
from pytest_dbcluster.cli.compare.guards import closer, no_slower, tail_cap
from pytest_dbcluster.errors import (
    ConfigError,
    Inconclusive,
    LockHeld,
    NodeDied,
    ProvisionError,
    SeriesVoid,
    Unsupported,
)
from pytest_dbcluster.measuring.drawing.rules import Rules
from pytest_dbcluster.measuring.measurement import Measurement
from pytest_dbcluster.measuring.series import series_of
from pytest_dbcluster.reporting.tables import no_worse
from pytest_dbcluster.reporting.tables.no_worse import WIDEST, ComparedWorkload, Result, certain_margin, is_slower
from pytest_dbcluster.rounds.histogram import Histogram, bucket
from pytest_dbcluster.rounds.ledger import Ledger, LedgerEntry
from pytest_dbcluster.rounds.round import RunResult
from pytest_dbcluster.rounds.round_length import RoundLength
from pytest_dbcluster.workloads.sysbench import SysBench
from pytest_dbcluster.workloads.tpcc import TPCC
from tests.reporting.resume.test_earlier_tries import FakeRecall
from tests.support import capacities
from tests.support.facts import missing
from tests.support.fakes import FakeSource, noisy
from tests.support.results import compared_shop


@pytest.mark.parametrize(("percent", "margin"), [(None, 0.05), (3.9, 0.05), (5.5, 0.10)])
def test_the_margin_is_one_that_clusters_can_decide(percent, margin):
    """Where equal clusters can differ by 5 %, the guard is asked for 10 %."""
    assert no_slower(apart_by(percent), None).claim.margin == margin


def test_clusters_that_differ_by_10_per_cent_decide_nothing():
    """The candidate is unknown, with the reason; nothing is drawn."""
    measurement = apart_by(12.0)

    with pytest.raises(Inconclusive) as raised:
        no_slower(measurement, None)
    facts = ("12.0 % (1 in 200; assumed)", "slower by 10 % at most", "run dbcluster calibrate")
    assert missing(raised.value, *facts) == []
    assert measurement.source.rounds == []


@pytest.mark.parametrize(
    ("times", "outcome"), [(1.0, claims.Outcome.HOLDS), (3.0, claims.Outcome.FAILS), (1 / 3, claims.Outcome.HOLDS)]
)
def test_a_second_metric_that_clusters_differ_in_shows_large_differences(times, outcome):
    """Equal times are not known to be no worse. Three times as long is worse, and a third is no worse."""
    measurement = apart_by(40.0)
    measurement.source.seconds = noisy(1.0, times, sd=0.01)
    found = no_slower(measurement, "drained_throughput").verdict

    assert found.outcome is outcome
    assert (certain_margin(found) <= WIDEST) is (times < 1)
    assert is_slower(found) is (times > 1)


def test_a_used_time_is_named_by_the_option_of_the_command():
    """The texts of a comparison name ``--seconds``; ``--db-budget`` is an option of a test run."""
    source = FakeSource(("old", "new"), noisy(1.0, 1.0, sd=0.5))
    answer = no_slower(Measurement(source, rules_of(1, 16.0, str, seconds_in_all=60.0)), None)

    assert answer.verdict.reason.startswith(
        "budget of 16 s of measured time (its share of --seconds): its next 4 pairs"
    )
    assert "--db-" not in answer.message


@pytest.mark.parametrize("length", [5.0, None], ids=["known before", "measured"])
def test_a_time_without_a_first_look_says_how_much_it_takes(length):
    """Of two workloads each gets half of the time, and a quarter of it is for p95."""
    source = FakeSource(("old", "new"), noisy(5.0, 5.0, sd=0.001))
    source.round_seconds = length
    measurement = Measurement(source, rules_of(1, 18.0, str, seconds_in_all=60.0, workloads=2))

    with pytest.raises(Inconclusive) as raised:
        no_slower(measurement, None)
    assert "more than its budget of 18 s of measured time; the smallest budget is 8" in str(raised.value)
    assert re.search(r" 8\d s, with about --seconds 2[34]0$", str(raised.value))
    assert len(source.rounds) == (0 if length else 4)


def test_shortened_rounds_name_the_option_of_the_command():
    """The line about the length of the rounds is progress of the comparison."""
    line = RoundLength(0.4, shortened=True, budget=rules_of(1, 9.0, str, seconds_in_all=60.0).budget_name).line

    assert missing(line, "rounds of 0.4 s", "budget", "share of --seconds") == []


@pytest.mark.parametrize(("percent", "cap"), [(None, 160), (3.9, 160), (40.0, 12)])
def test_p95_of_clusters_that_differ_is_soon_given_up(percent, cap):
    """With equal clusters that differ by 40 %, only a larger difference can be shown."""
    assert tail_cap(apart_by(percent)) == cap


@pytest.mark.parametrize(("seconds", "pairs"), [(1.0, 12), (4.0, 8)])
def test_the_ratio_gets_its_interval_if_that_takes_seconds(seconds, pairs):
    """After a guard with 8 pairs, four more are drawn if they take 15 s at most."""
    measurement = Measurement(FakeSource(("old", "new"), noisy(seconds, seconds / 2, sd=0.01)), Rules(seed=1))
    assert no_slower(measurement, None).verdict.pairs == 8

    assert closer(measurement).verdict.pairs == pairs


@pytest.mark.parametrize(
    ("faster", "percent", "pairs"), [(1, None, 8), (1.3, None, 12), (1.3, 9.0, 12), (1.06, 9.0, 8)]
)
def test_the_ratio_gets_its_interval_if_that_may_exclude_1(faster, percent, pairs):
    """Pairs that disagree about the faster variant, or within what equal clusters differ by, are not continued."""
    measurement = apart_by(percent)
    measurement.source.seconds = noisy(1.0, 1 / faster, sd=0.01, seed=2)
    assert no_slower(measurement, None).verdict.pairs == 8

    assert closer(measurement).verdict.pairs == pairs


def test_the_ratio_has_its_interval_if_only_the_guard_is_taken_over():
    """A comparison that is continued has no rounds then, so those of the first look are drawn."""
    measurement = Measurement(FakeSource(("old", "new"), noisy(4.0, 2.0, sd=0.01)), Rules(seed=1))

    assert closer(measurement).verdict.pairs == 12


def apart_by(percent):
    """Two equally fast variants on clusters that can differ by this; None for one cluster."""
    source = FakeSource(("old", "new"), noisy(1.0, 1.0, sd=0.01))
    known = None if percent is None else ClusterDifference(math.log1p(percent / 100), "assumed")
    source.cluster_difference = lambda *numbers, metric: known
    return Measurement(source, Rules(seed=1))


def answered(*seconds, sd=0.01, budget=40.0):
    """The answer on variants whose rounds take so many seconds."""
    source = FakeSource(("old", "new"), noisy(*seconds, sd=sd))
    return no_worse.of_answer(no_slower(Measurement(source, Rules(seed=1, budget=budget)), None))


UNKNOWN = answered(1.0, 1.05, sd=0.5, budget=16.0)


@pytest.mark.parametrize(
    ("throughput", "p95", "expected"),
    [
        (answered(1.0, 1.0), UNKNOWN, Result.NO_WORSE),
        (answered(1.0, 1.0), answered(1.0, 1.6), Result.WORSE),
        (UNKNOWN, answered(1.0, 1.0), Result.UNKNOWN),
        (answered(1.0, 1.6), answered(1.0, 1.0), Result.WORSE),
    ],
    ids=["p95 unknown", "p95 worse", "throughput unknown", "throughput worse"],
)
def test_every_answer_is_shown_and_raises_nothing(throughput, p95, expected):
    """An answer that fails or is inconclusive is a result of the comparison, and no error."""
    item = ComparedWorkload("tpcc", throughput, throughput, p95)

    assert UNKNOWN.verdict.outcome is claims.Outcome.INCONCLUSIVE
    assert item.result is expected
    assert any(line.startswith("tpcc") for line in compare.table([item], ("old", "new")))
    assert "tpcc" in no_worse.sentence([item], ("old", "new"))


def test_a_throughput_that_could_not_be_told_is_an_answer_that_p95_goes_on_from():
    """Its truth is not asked for: that raises for an answer that is inconclusive."""
    (line,) = compare.missing_answers(
        [ComparedWorkload("tpcc", UNKNOWN, UNKNOWN, None, "99 operations a round")], "dbcluster compare"
    )

    assert line.startswith("no answer yet: p95 of tpcc;")


@pytest.mark.parametrize(
    ("seconds", "p95", "said"),
    [
        ((1.0, 0.8), answered(1.0, 1.0), r"new is no worse than old: no slower on tpcc \(measured 1\.2\dx\)"),
        ((1.0, 0.8), UNKNOWN, r"new is no worse than old: no slower on tpcc \(measured 1\.2\dx\), p95 not known"),
        (
            (1.0, 1.01),
            None,
            r"new is no worse than old: no difference of 5 % or more on tpcc \(measured (0\.99|1\.00|1\.01)\d*x\)",
        ),
        (
            (1.0, 0.97),
            None,
            r"new is no worse than old: no slower on tpcc \(measured 1\.0\dx\)",
        ),
    ],
    ids=["faster", "p95 unknown", "equal", "a little faster"],
)
def test_the_sentence_does_not_read_like_a_loss(seconds, p95, said):
    """The bound of the guard is named only where the candidate may be slower; what is not known is said."""
    throughput = answered(*seconds)

    assert re.fullmatch(
        said, no_worse.sentence([ComparedWorkload("tpcc", throughput, throughput, p95)], ("old", "new"))
    )


def test_a_candidate_that_is_certainly_faster_is_called_that():
    """The closer look decides it; its interval lies above 1."""
    throughput = answered(1.0, 0.8)
    measurement = Measurement(FakeSource(("old", "new"), noisy(1.0, 0.8, sd=0.01)), Rules(seed=1))
    old, new = series_of(measurement)
    closer = no_worse.of_answer(new.against(old))

    assert re.fullmatch(
        r"new is no worse than old: 1\.2\dx as fast on tpcc",
        no_worse.sentence([ComparedWorkload("tpcc", throughput, closer)], ("old", "new")),
    )


def test_transactions_have_rows_below_p95():
    """The workload is named once, and each transaction by its metric."""
    throughput, closer, p95 = map(no_worse.of_record, compared_shop(browse=700, order=300))
    _, head, *lines = compare.table([ComparedWorkload("sql shop t8", throughput, closer, p95)], ("old", "new"))

    assert head.split() == ["workload", "old", "new", "ratio", "(99.9", "%)"]
    assert [line.split("  ")[0] for line in lines if "shop" in line] == ["sql shop t8"]
    assert [line.split()[0] for line in lines if " ms " in line] == ["p95", "p95:browse", "p95:order"]
    assert lines[2].endswith("compared (70 % of the transactions)")


class Made(Comparison):
    """A comparison on made-up rounds: each workload does ``speed`` operations a second."""

    def __init__(self, speed, wrong=None):
        turns = types.SimpleNamespace(clock=time.monotonic)
        kept = types.SimpleNamespace(records=[], continues=True, rate_of_tail=lambda *_: None)
        pool = types.SimpleNamespace(turns=turns)
        self.said = []
        super().__init__(
            [], pool, end=time.monotonic() + 1e6, seconds=1e6, seed=1, progress=self.said.append, kept=kept
        )
        self.speed, self.wrong, self.lengths, self.given = speed, wrong, [], []

    def _measurement(self, workload, test, seconds, arrival_rate=None, *, after=None):
        if self.wrong and str(workload) in self.wrong:
            raise self.wrong[str(workload)]
        length = workload.seconds or 1.0
        self.lengths.append(length)
        self.given.append(seconds)
        noise = random.Random(1)

        def outcome(variant, seconds):
            number = round(self.speed * length)
            latencies = Histogram({bucket(0.01 * math.exp(noise.gauss(0, 0.001))): number})
            entry = LedgerEntry(committed=number, latencies=latencies)
            return RunResult(seconds, number, number, good=number, ledger=Ledger({"point": entry}))

        source = FakeSource(("base", "next"), lambda _: length, outcome=outcome, arrival_rate=arrival_rate)
        return Measurement(source, Rules(1, budget=seconds))


def test_rounds_with_too_few_operations_for_p95_are_lengthened():
    """The rounds of the first try have a third of what p95 needs; those of the second have enough, and it is said."""
    made = Made(100.0)
    closed = made._measurement(SysBench("oltp_point_select", threads=2), "test", 100.0)
    claims_of = series_of(closed)
    claims_of[1].no_slower_than(claims_of[0], by=0.05)
    made.speed, made.lengths = 23.0, []  # a rate that was lowered

    answer = made._tail(SysBench("oltp_point_select", threads=2), "test", closed, time.monotonic() + 1e5, 1e5)

    assert answer.metric == "p95"
    assert len(made.lengths) == 2
    assert made.lengths[1] * 23 >= 200 > made.lengths[0] * 23
    assert any("p95" in line for line in made.said)


def test_rounds_that_cannot_be_lengthened_cost_p95_alone():
    """The time that is left does not suffice: the reason has what p95 needs."""
    made = Made(100.0)
    closed = made._measurement(SysBench("oltp_point_select", threads=2), "test", 100.0)
    claims_of = series_of(closed)
    claims_of[1].no_slower_than(claims_of[0], by=0.05)
    made.speed = 23.0

    with pytest.raises(Inconclusive, match="p95 needs rounds of"):
        made._tail(SysBench("oltp_point_select", threads=2), "test", closed, time.monotonic() + 60, 60)


@pytest.mark.parametrize(("share", "given"), [(100.0, 100.0), (1.0, 77.3)], ids=["its share", "a first look"])
def test_p95_has_its_share_of_the_time_however_much_is_left(share, given):
    """It has at least the time of a first look: 8 pairs of rounds with 260 operations."""
    made = Made(100.0)
    closed = made._measurement(SysBench("oltp_point_select", threads=2), "test", 100.0)
    claims_of = series_of(closed)
    claims_of[1].no_slower_than(claims_of[0], by=0.05)

    made._tail(SysBench("oltp_point_select", threads=2), "test", closed, time.monotonic() + 1e5, share)

    assert made.given[-1] == pytest.approx(given, rel=0.01)


def test_a_throughput_that_was_interrupted_is_shown_and_still_to_measure():
    """Its ratio stands in the table; the command that goes on names it."""
    kept = dataclasses.replace(UNKNOWN, interrupted=True)
    item = ComparedWorkload("tpcc", kept, None, None, "waited 30 min for pid 7")

    assert any("x (" in line for line in compare.table([item], ("old", "new")))
    (line,) = compare.missing_answers([item], "dbcluster compare")
    assert line.startswith("no answer yet: tpcc;")


class NothingKnown(FakeRecall):
    """What looks up answers, and finds none."""

    def __call__(self, question):
        """No earlier answer."""


def test_a_comparison_that_decided_nothing_is_a_try_of_the_next(monkeypatch, tmp_path):
    """The second one says so, with the chance of an error that both have together; a verdict forgets the first."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    noise = [0.5]
    monkeypatch.setattr(
        comparison, "Testbed", lambda *_, **__: FakeSource(("old", "new"), noisy(1.0, 0.8, sd=noise[-1]))
    )
    kept = types.SimpleNamespace(recall=lambda *_: NothingKnown(), recorder=lambda _: lambda answer: None)
    pool = types.SimpleNamespace(turns=types.SimpleNamespace(clock=time.monotonic))
    made = Comparison(
        [types.SimpleNamespace(cluster_key=1)], pool, end=0.0, seconds=60.0, seed=1, progress=str, kept=kept
    )
    asked = [no_slower(made._measurement(TPCC(), "test", 20.0), None) for _ in range(2)]
    noise.append(0.01)
    decided, fresh = [no_slower(made._measurement(TPCC(), "test", 90.0), None) for _ in range(2)]

    assert {answer.verdict.outcome for answer in asked} == {claims.Outcome.INCONCLUSIVE}
    assert [answer.tries for answer in (*asked, decided, fresh)] == [1, 2, 3, 1]
    assert "second try" in asked[1].message


def test_a_loss_of_about_5_per_cent_is_measured_until_10_are_excluded(monkeypatch, tmp_path):
    """With the margin of 5 % alone it is given up before. The same goes for p95."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(comparison, "Testbed", lambda *_, **__: FakeSource(("old", "new"), lossy()))
    kept = types.SimpleNamespace(recall=lambda *_: NothingKnown(), recorder=lambda _: lambda answer: None)
    pool = types.SimpleNamespace(turns=types.SimpleNamespace(clock=time.monotonic))
    variants = [types.SimpleNamespace(cluster_key=1)]
    made = Comparison(variants, pool, end=0.0, seconds=200.0, seed=1, progress=str, kept=kept)
    measured = made._measurement(TPCC(), "test", 200.0)
    alone = no_slower(Measurement(FakeSource(("old", "new"), lossy()), Rules(seed=1, budget=200.0)), None)
    found = no_slower(measured, None)

    assert certain_margin(alone.verdict) > WIDEST >= certain_margin(found.verdict) > no_worse.MARGIN
    assert made._rules(60.0, measured).wider == WIDEST


def lossy():
    """The seconds of a candidate with .95 of the throughput."""
    return noisy(1.0, 1 / 0.95, sd=0.1, seed=22)


def test_a_line_of_progress_names_the_claim_and_the_time():
    """Which metric is decided, how long the comparison has run, and how long all of it takes."""
    source, said = FakeSource(("old", "new"), noisy(1.0, 1.05, sd=0.1, seed=2)), []
    lines = comparison._Lines(said.append, lambda: 48.0, 300.0)
    no_slower(Measurement(source, Rules(seed=1), lines), None)
    no_slower(Measurement(source, Rules(seed=1), lines), "drained_throughput")

    assert said[1].startswith(f"{source.load}: no_slower_than, pair ")
    assert said[-1].startswith(f"{source.load}: no_slower_than drained_throughput, pair ")
    assert {line.partition("; ")[2] for line in said} == {"48 s of about 5 min"}


def test_a_line_of_progress_comes_every_ten_seconds_too():
    """From the warm-up on, so that nobody waits without a line until the first look."""
    source, said, clock = FakeSource(("old", "new"), noisy(1.0, 1.05, sd=0.1, seed=2)), [], itertools.count(0, 2.0)
    no_slower(Measurement(source, Rules(seed=1), comparison._Lines(said.append, lambda: next(clock), 300.0)), None)

    assert [line.removeprefix(f"{source.load}: ") for line in said[:3]] == [
        "warm-up; 2 s of about 5 min",
        "no_slower_than, pair 1; 14 s of about 5 min",
        "no_slower_than, pair 4; 26 s of about 5 min",
    ]


def test_what_fails_later_does_not_cost_what_was_measured():
    """A workload whose servers fail has a reason, where another one has an answer; alone it is an error."""
    error = ProvisionError("node db1 died")
    made = Made(100.0, {str(TPCC()): error})
    made._kept.records.append("an answer")

    (compared,) = made.workloads([TPCC()])
    assert (compared.throughput, compared.reason, compared.result) == (None, "node db1 died", Result.BROKEN)
    made._kept.records.clear()
    with pytest.raises(ProvisionError):
        made.workloads([TPCC()])


@pytest.mark.parametrize(
    ("error", "result", "said"),
    [
        (
            NodeDied("node1", "SIGKILL", "log", []),
            Result.BROKEN,
            "could not measure whether new is worse than old: sys",
        ),
        (SeriesVoid("tables differ"), Result.BROKEN, "could not measure whether new is worse than old"),
        (Inconclusive("no time"), Result.NO_WORSE, "new is no worse than old: "),
    ],
)
def test_an_error_in_p95_is_no_answer_about_the_candidate(monkeypatch, error, result, said):
    """Its server may have died of the candidate's options. A p95 that had no time changes nothing."""
    made = Made(100.0)
    made._kept.records.append("an answer")

    def tail(*_):
        raise error

    monkeypatch.setattr(made, "_tail", tail)
    compared = made.workloads([SysBench("oltp_point_select", threads=2)])

    assert (compared[0].result, no_worse.overall(compared)) == (result, result)
    assert no_worse.sentence(compared, ("old", "new")).startswith(said)


@pytest.mark.parametrize(
    ("error", "failed"),
    [(NodeDied("node1", "SIGKILL", "log", []), True), (ConfigError("no time"), False), (Unsupported("memory"), False)],
)
def test_a_loss_that_was_measured_stands_after_an_error(monkeypatch, error, failed):
    """The rounds for its ratio failed, and its record says that the candidate is worse."""
    source = FakeSource(("old", "new"), noisy(1.0, 1.6, sd=0.01))
    worse = no_slower(Measurement(source, Rules(seed=1, budget=40.0)), None)

    def closer(measurement):
        raise error

    monkeypatch.setattr(comparison.guards, "no_slower", lambda *_: worse)
    monkeypatch.setattr(comparison.guards, "closer", closer)
    made = Made(100.0)
    made._kept.records.append("an answer")
    (compared,) = made.workloads([TPCC()])

    assert (compared.result, compared.failed) == (Result.WORSE, failed)


def test_worse_is_worse_after_an_error_too():
    """What was measured before it stands."""
    slower = answered(1.0, 1.6)
    compared = [
        ComparedWorkload("a", slower, slower, reason="node db1 died", failed=True),
        ComparedWorkload("b", None, reason="node db1 died", failed=True),
    ]

    assert [one.result for one in compared] == [Result.WORSE, Result.BROKEN]
    assert no_worse.overall(compared) is Result.WORSE


def test_a_machine_that_stays_busy_ends_the_comparison_with_what_it_has():
    """Later workloads do not wait again; their reason names who has the machine."""
    made = Made(100.0, {str(TPCC()): LockHeld("waited 1 s for pid 7")})
    made._kept.records.append("an answer")

    first, second = made.workloads([TPCC(), SysBench("oltp_point_select")])
    assert first.reason == second.reason == "waited 1 s for pid 7"
    assert made.lengths == []


def test_an_objective_takes_the_place_of_throughput_and_p95(monkeypatch, tmp_path):
    """There is one answer, about the capacity at the objective, and it has all of the time."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    asked = []
    monkeypatch.setattr(
        comparison, "CapacityTestbed", lambda *given, **__: asked.append(given[:2]) or capacities.source(1000.0, 700.0)
    )
    kept = types.SimpleNamespace(
        recall=lambda *_: NothingKnown(), recorder=lambda _: lambda answer: None, continues=False, records=[]
    )
    pool = types.SimpleNamespace(turns=types.SimpleNamespace(clock=time.monotonic))
    variants = [types.SimpleNamespace(cluster_key=1)]
    given = {"seconds": 90.0, "seed": 1, "progress": str, "kept": kept}
    made = Comparison(variants, pool, end=time.monotonic() + 90, **given)
    (compared,) = made.workloads([SysBench()], capacities.OBJECTIVE)

    assert asked == [(SysBench(), capacities.OBJECTIVE)]
    assert compared.workload == "sysbench oltp_read_write t16, capacity at a p95 of 20 ms"
    assert (compared.throughput.metric, compared.p95, compared.result) == ("capacity", None, Result.WORSE)
    assert no_worse.rows([compared])[0].figures[0].endswith("/s")
    assert compare.missing_answers([compared], "dbcluster compare") == []
