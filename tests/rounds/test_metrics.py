"""Metrics: what a claim can be about, and that "faster" is a ratio above 1 in all of them."""

from __future__ import annotations

import dataclasses
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_dbcluster.errors import ClaimFailed, ConfigError, Inconclusive
from pytest_dbcluster.measuring.drawing.rules import Rules
from pytest_dbcluster.measuring.measurement import Measurement
from pytest_dbcluster.measuring.series import ordered, series_of
from pytest_dbcluster.rounds import metrics
from pytest_dbcluster.rounds.histogram import Histogram
from pytest_dbcluster.rounds.ledger import Ledger, LedgerEntry
from pytest_dbcluster.rounds.open_loop import ArrivalRate
from pytest_dbcluster.rounds.round import Round, RunResult
from tests.support import golden
from tests.support.fakes import FakeSource, noisy

PACE = ArrivalRate("70 %", 700.0, {"slow": 1000.0, "fast": 1500.0})


def entry(latencies, **fields):
    """Transactions that ended well after these seconds."""
    return LedgerEntry({1: len(latencies)}, committed=len(latencies), latencies=Histogram.of(latencies), **fields)


def one_round(*, rate=None, statements=None, **latencies):
    """A round of 2 s whose types of transactions, and statements, took these seconds."""
    entries = {kind: entry(many) for kind, many in latencies.items()}
    good = sum(one.good for one in entries.values())
    kept = {name: Histogram.of(many) for name, many in (statements or {}).items()}
    outcome = RunResult(2.0, good + 10, good, good=good, ledger=Ledger(entries), rate=rate, statements=kept)
    return Round("a", 0, 0, outcome, wall=3.0, started=0.0, counters={"abort_share": 0.1})


def open_loop(*scales, number=300, seed=3, **fields):
    """A source of two variants in an open loop: latencies of a log-normal with a long tail, times these scales."""
    source = random.Random(seed)

    def outcome(variant, seconds):
        mood = source.lognormvariate(0, 0.05)
        many = [0.004 * mood * scales[variant] * source.lognormvariate(0, 0.7) for _ in range(number)]
        half = number // 2
        ledger = Ledger({"payment": entry(many[:half]), "new_order": entry(many[half:])})
        return RunResult(seconds, number, number, good=number, ledger=ledger, rate=number / seconds)

    given = {"arrival_rate": PACE, "outcome": outcome, "metric": "goodput", **fields}
    return FakeSource(("slow", "fast"), lambda variant: 2.0, **given)


def series(source):
    """Both of them."""
    return series_of(Measurement(source, Rules(seed=5)))


def test_goodput_leaves_out_what_a_conflict_ended():
    """Throughput counts every attempt; a load that knows of no other has all of them good."""
    done = one_round(payment=[0.01] * 90)

    assert (done.goodput, done.throughput, done.drained_goodput) == (45.0, 50.0, 45.0)
    assert Round("a", 0, 0, RunResult(2.0, 90), 0.0, 0.0).goodput == 45.0


def test_the_goodput_of_one_type_is_its_own():
    """New-Orders a second are what tpmC counts by the minute."""
    done = one_round(payment=[0.01] * 90, new_order=[0.02] * 60)

    assert metrics.display_value(done, "goodput:new_order", "tpcc") == 30.0


def test_the_goodput_of_a_rare_type_is_no_evidence():
    """Rounds without any operation of the type are equal, whatever the servers do; the message says how long to run."""
    few, enough = ([one_round(payment=[0.01] * 90, delivery=[0.02] * number)] * 8 for number in (4, 10))

    metrics.require_operations(enough, "goodput:delivery", "tpcc")
    metrics.require_operations(few, "goodput", "tpcc")
    assert metrics.seconds_needed(few, "goodput:delivery", "tpcc") == pytest.approx(1.2 * 10 / 4 * few[0].seconds)
    with pytest.raises(ConfigError, match=r"needs 10 good operations a round; rounds of 2 s had 4: use rounds of sec"):
        metrics.require_operations(few, "goodput:delivery", "tpcc")


def test_a_latency_is_shown_in_milliseconds_and_compared_as_a_speed():
    """Of all types together, or of one."""
    done = one_round(payment=[0.010] * 90, new_order=[0.100] * 10)

    assert metrics.display_value(done, "p50", "tpcc") == pytest.approx(10, rel=0.011)
    assert metrics.display_value(done, "p95", "tpcc") == pytest.approx(100, rel=0.011)
    assert metrics.display_value(done, "p95:payment", "tpcc") == pytest.approx(10, rel=0.011)
    assert metrics.ratio_value(done, "p95", "tpcc") == pytest.approx(10, rel=0.011)
    assert metrics.unit("p95:payment") == "ms"


PARTS = ("browse", "order", "browse:2", "order:4", "order:7")


def test_a_latency_of_one_statement_has_its_own_times():
    """All attempts of the statement count, whatever the transaction waited for between statements."""
    done = one_round(order=[0.1] * 50, statements={"order:7": [0.02] * 55, "order:4": [0.001] * 50})

    assert metrics.display_value(done, "p95:order:7", "shop") == pytest.approx(20, rel=0.011)
    assert metrics.ratio_value(done, "p95:order:7", "shop") == pytest.approx(50, rel=0.011)
    assert metrics.display_value(done, "p95:order", "shop") == pytest.approx(100, rel=0.011)
    assert metrics.unit("p95:order:7") == "ms"


def test_a_lost_transaction_makes_the_tails_of_its_statements_long():
    """Otherwise a server that loses connections would look fast. Statements of other types have no loss."""
    fast = one_round(rate=50.0, order=[0.1] * 50, browse=[0.1] * 50, statements={"order:7": [0.02], "browse:2": [0.02]})
    entries = dict(fast.outcome.ledger.entries)
    entries["order"] = entry([0.1] * 50, failed=9)
    lossy = dataclasses.replace(fast, outcome=dataclasses.replace(fast.outcome, ledger=Ledger(entries)))

    assert metrics.display_value(lossy, "p95:order:7", "shop") == pytest.approx(4000, rel=0.011)
    assert metrics.display_value(lossy, "p95:browse:2", "shop") == pytest.approx(20, rel=0.011)


def test_a_rare_statement_is_no_evidence():
    """A percentile needs ten executions beyond it, as for transactions."""
    few, enough = ([one_round(order=[0.1], statements={"order:7": [0.02] * number})] for number in (100, 200))

    metrics.require_operations(enough, "p95:order:7", "shop")
    with pytest.raises(ConfigError, match=r"it needs 200 good operations a round, 10 of them beyond it; rounds of 2 s"):
        metrics.require_operations(few, "p95:order:7", "shop")


@pytest.mark.parametrize(
    ("metric", "words"),
    [
        ("p95:ordr", "unknown type of transaction 'ordr'; known: browse, order; did you mean order?"),
        ("p95:order:8", "unknown statement 'order:8'; known: order:4, order:7; did you mean order:"),
        ("p95:history:2", "unknown statement 'history:2'; known: browse:2, order:4, order:7"),
        (
            "goodput:order:7",
            "metric 'goodput:order:7': metrics of one statement are p50, p95, p99, p999; write goodput:",
        ),
    ],
)
def test_an_unknown_part_of_a_workload_is_refused_before_a_round(metric, words):
    """A workload that names its transactions and statements lists them."""
    with pytest.raises(ConfigError) as caught:
        metrics.check(metric, PACE, "shop", PARTS)
    assert str(caught.value).startswith(words)


@pytest.mark.parametrize("metric", ["p95", "p95:order", "p999:order:7", "goodput:browse"])
def test_parts_of_a_workload_are_accepted(metric):
    """They are its types of transactions, and its statements."""
    metrics.check(metric, PACE, "shop", PARTS)


def test_a_claim_about_an_unknown_statement_draws_no_round():
    """The source names the parts of its workload."""
    source = open_loop(1.0, 1.0, parts=PARTS)
    slow, fast = series(source)

    with pytest.raises(ConfigError, match="unknown statement 'order:8'"):
        fast.beats(slow, metric="p95:order:8")
    assert source.rounds == []


@given(
    st.lists(st.floats(1e-5, 10), min_size=20, max_size=60),
    st.floats(1.1, 100),
    st.sampled_from([*metrics.QUANTILES, "p50:x", "p999:x"]),
)
def test_whoever_waits_less_is_faster(seconds, slower, metric):
    """Whatever the latencies: with all of them longer by a factor, the speed that is compared is lower by it."""
    fast, slow = (one_round(x=[scale * one for one in seconds]) for scale in (1.0, slower))
    ratio = metrics.ratio_value(fast, metric, "load") / metrics.ratio_value(slow, metric, "load")

    assert ratio == pytest.approx(slower, rel=0.025)
    assert metrics.display_value(fast, metric, "load") < metrics.display_value(slow, metric, "load")


@pytest.mark.parametrize("metric", ["p50", "p95", "p95:new_order"])
def test_a_claim_about_a_tail_has_the_direction_of_its_words(metric):
    """``fast.beats(slow, metric="p95")`` says that the p95 of fast is lower; the ratio is that of the speeds."""
    slow, fast = series(open_loop(1.5, 1.0, number=500))
    answer = fast.beats(slow, metric=metric)

    assert answer
    assert answer.verdict.ratio == pytest.approx(1.5, rel=0.12)
    assert answer.text == f'fast.beats(slow, metric="{metric}")'
    assert fast.values(metric)[0] < slow.values(metric)[0]
    with pytest.raises(ClaimFailed, match=rf"(?s), fast [0-9.]+ ms; this .* metric {metric}, compared as a speed "):
        bool(slow.beats(fast, metric=metric))
    assert ordered(slow, fast, step=0.1, metric=metric)
    assert fast.no_slower_than(slow, by=0.05, metric=metric)


def test_a_load_names_the_metric_of_its_claims():
    """Then a claim that names none is about that, and its text names it neither."""
    source = FakeSource(("slow", "fast"), noisy(1.0, 0.5), metric="goodput")
    slow, fast = series(source)

    assert fast.beats(slow).metric == "goodput"
    assert fast.beats(slow).text == "fast.beats(slow)"
    assert fast.beats(slow, metric="throughput").text == 'fast.beats(slow, metric="throughput")'
    assert fast.against(slow, metric="throughput").text == "fast against slow (throughput)"
    assert "\n  fast.beats(slow)   metric goodput" in fast.beats(slow).message


def test_a_claim_about_goodput_is_not_one_about_attempts():
    """The variant that tries more often and fails more often is faster in one and slower in the other."""
    good = (100, 80)

    def outcome(variant, seconds):
        return RunResult(seconds, (110, 160)[variant], 1, good=good[variant])

    source = FakeSource(("quiet", "eager"), noisy(1.0, 1.0), outcome=outcome, metric="goodput")
    quiet, eager = series(source)

    assert quiet.beats(eager)
    assert eager.beats(quiet, metric="throughput")


def test_a_closed_loop_claims_no_latency():
    """Refused before a round is drawn, with what to do."""
    source = open_loop(1.5, 1.0, arrival_rate=None)
    slow, fast = series(source)

    with pytest.raises(ConfigError) as caught:
        fast.beats(slow, metric="p95")
    assert 'rate="70 %"' in str(caught.value)
    assert source.rounds == []


def test_a_share_near_capacity_claims_no_tail():
    """Above 70 % of the slowest variant's capacity it is mostly queueing; the error says so."""
    metrics.check("p95", PACE, "load")
    metrics.check("throughput", ArrivalRate("80 %"), "load")

    with pytest.raises(ConfigError, match=r'at 80 % .*rate="70 %"'):
        metrics.check("p95", ArrivalRate("80 %"), "load")


NEAR = ArrivalRate(600, 600.0, {"slow": 800.0, "fast": 1000.0})


def test_a_share_that_was_measured_is_no_error():
    """The next measurement may find another one; the reason says the share and what to do."""
    metrics.check("p95", NEAR, "load")

    reason = metrics.near_capacity("p95:payment", NEAR)
    assert [fact for fact in ("600/s", "75 %", 'rate="70 %"') if fact not in reason] == []
    for metric, pace in (
        ("p95", ArrivalRate(700, 700.0, {"slow": 1000.0})),
        ("p95", ArrivalRate(900, 900.0)),
        ("p95", PACE),
        ("p95", None),
        ("throughput", NEAR),
        ("retries", NEAR),
    ):
        assert metrics.near_capacity(metric, pace) == ""


def test_near_capacity_a_claim_about_a_tail_stays_open():
    """However clear the ratio and however many pairs; one about speed, and one beside, are as they are anywhere."""
    slow, fast = series(open_loop(3.0, 1.0, arrival_rate=NEAR))
    for answer in (fast.beats(slow, metric="p95"), ordered(slow, fast, metric="p95")):
        assert answer.verdict.reason.startswith("600/s was measured to be 75 % of the slowest variant's capacity")
        with pytest.raises(Inconclusive):
            bool(answer)

    assert fast.against(slow, metric="p95")
    assert fast.same_as(slow, within=0.1, metric="throughput")


@pytest.mark.parametrize(
    ("metric", "pace", "needed"),
    [
        ("p95", ArrivalRate(500, 500.0), True),
        ("p99:payment", ArrivalRate(500, 500.0), True),
        ("p95", ArrivalRate(500, 500.0, {"slow": 1000.0}), False),
        ("goodput", ArrivalRate(500, 500.0), False),
        ("p95", ArrivalRate("70 %"), False),
        ("p95", None, False),
    ],
)
def test_a_claim_about_a_tail_needs_to_know_the_capacity(metric, pace, needed):
    """Unless it is known, or the rate is a share of it anyway."""
    assert metrics.needs_capacity(metric, pace) is needed


@pytest.mark.parametrize(("metric", "least"), [("p50", 20), ("p95", 200), ("p99", 1000), ("p999", 10000)])
def test_a_tail_needs_operations_beyond_it(metric, least):
    """Ten of a round; with fewer the error says how long rounds would have to be."""
    metrics.require_operations([one_round(x=[0.01] * least)], metric, "load")

    with pytest.raises(ConfigError) as caught:
        metrics.require_operations([one_round(x=[0.01] * (least // 2))], metric, "load")
    assert str(caught.value).startswith(f"metric {metric!r} of load: it needs {least} good operations a round")
    assert str(caught.value).endswith(f"rounds of 2 s had {least // 2}: use rounds of seconds=5")


def test_rounds_that_are_too_short_end_the_claim_with_the_first_one():
    """Nobody measures for minutes before hearing it; of one type there are fewer than of all."""
    source = open_loop(1.5, 1.0, number=300)
    slow, fast = series(source)

    with pytest.raises(ConfigError, match=r"'p95:payment' .* needs 200 .* had 150: use rounds of seconds=4"):
        fast.beats(slow, metric="p95:payment")
    assert {block for _, block, _ in source.rounds if block >= 0} == {0}


def test_one_short_round_among_long_ones_is_no_error():
    """Starts that come at random are sometimes a few fewer."""
    metrics.require_operations([one_round(x=[0.01] * number) for number in (199, 201, 202)], "p95", "load")


@pytest.mark.parametrize(
    ("metric", "words"),
    [
        ("p96", "unknown metric 'p96'; known: throughput, goodput, drained_throughput, drained_goodput, p50, p95, p99"),
        ("throughput:x", "metric 'throughput:x': metrics of one type of transaction are goodput, p50, p95, p99, p999"),
        ("p96:x", "unknown metric 'p96:x'; known: "),
    ],
)
def test_an_unknown_metric_lists_the_known_ones(metric, words):
    """Before a round is drawn."""
    with pytest.raises(ConfigError) as caught:
        metrics.check(metric, PACE, "load")
    assert str(caught.value).startswith(words)


def test_an_unknown_type_lists_the_types_of_the_load():
    """They are known from its first round on."""
    with pytest.raises(ConfigError, match=r"^unknown type of transaction 'paymnt'; known: new_order, payment; did you"):
        metrics.display_value(one_round(payment=[1.0], new_order=[1.0]), "p95:paymnt", "tpcc")


def test_a_load_without_a_ledger_has_no_latencies():
    """The error names the load."""
    with pytest.raises(ConfigError, match=r"^metric 'p95': mysqlslap keeps no ledger of its operations$"):
        metrics.display_value(Round("a", 0, 0, RunResult(1.0, 1, rate=1.0), 0.0, 0.0), "p95", "mysqlslap")


def test_golden_messages_about_metrics():
    """They are those of the golden file."""
    short = [one_round(x=[0.01] * 100)]
    repeated = Round("a", 0, 0, RunResult(0.5, 1000, span=6.0), 0.0, 0.0)
    error = golden.message_of
    golden.compare(
        "metrics",
        {
            "closed loop": error(metrics.check, "p95", None, "load"),
            "near the capacity": error(metrics.check, "p95", ArrivalRate("80 %"), "load"),
            "measured near the capacity": metrics.near_capacity("p95", NEAR),
            "unknown": error(metrics.check, "p96", PACE, "load"),
            "no type": error(metrics.check, "throughput:x", PACE, "load"),
            "an unknown type": error(metrics.display_value, one_round(payment=[1.0]), "p95:paymnt", "tpcc"),
            "no ledger": error(metrics.display_value, repeated, "p95", "mysqlslap"),
            "drained repetitions": error(metrics.display_value, repeated, "drained_goodput", "slap"),
            "too few operations": error(metrics.require_operations, short, "p95", "load"),
            "no operations": error(metrics.require_operations, [one_round(x=[])], "p95", "load"),
        },
    )


def test_what_the_ledger_counts_can_be_lower():
    """Shares and retries are counters like those of the servers."""

    def counted(variant):
        return {"abort_share": (0.2, 0.02)[variant], "retries_per_commit": (0.3, 0.02)[variant]}

    slow, fast = series(FakeSource(("slow", "fast"), noisy(1.0, 1.0), counters=counted))

    assert fast.lower("abort_share", than=slow, by=0.5)
    assert fast.lower("retries_per_commit", than=slow, by=0.5)


def test_what_drained_after_all_repetitions_is_no_speed_of_one():
    """Refused with what to claim instead; the throughput is that of one repetition."""
    done = Round("a", 0, 0, RunResult(0.5, 1000, 60_000, span=6.0), 0.0, 0.0, counters={"drain_seconds": 0.5})

    assert metrics.display_value(done, "throughput", "slap") == 2000.0
    for metric in ("drained_throughput", "drained_goodput", "drain_seconds"):
        with pytest.raises(ConfigError, match=rf"^metric '{metric}' of slap: in the profile paper its program "):
            metrics.display_value(done, metric, "slap")


def losing(rate):
    """A round of 2 s that was to do 1000 and did 970 in 10 ms each; 20 failed, 10 never began."""
    ledger = Ledger({"payment": entry([0.01] * 900, failed=20), "delivery": entry([0.01] * 70)})
    outcome = RunResult(2.0, 990, 970, good=970, ledger=ledger, rate=rate, offered=1000 if rate else None)
    return Round("a", 0, 0, outcome, wall=3.0, started=0.0)


@pytest.mark.parametrize(
    ("metric", "seconds"), [("p95", 0.01), ("p99", 4.0), ("p95:payment", 0.01), ("p99:payment", 4.0)]
)
def test_what_never_ended_belongs_to_the_tail_of_an_open_loop(metric, seconds):
    """A variant that loses its slowest operations is not faster for that."""
    assert metrics.display_value(losing(500.0), metric, "tpcc") == pytest.approx(1e3 * seconds, rel=0.011)


def test_what_never_began_has_no_type():
    """The deliveries that were done are all that is known of them; in a closed loop nothing was to begin."""
    assert metrics.display_value(losing(500.0), "p999:delivery", "tpcc") == pytest.approx(10, rel=0.011)
    assert metrics.display_value(losing(None), "p999", "tpcc") == pytest.approx(10, rel=0.011)


def test_every_metric_has_a_meaning():
    """One sentence each."""
    assert tuple(metrics.MEANINGS) == metrics.ALL
    assert [name for name, text in metrics.MEANINGS.items() if not text.endswith(".")] == []
