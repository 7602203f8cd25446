"""The transactions and statements of a workload, in the rounds of a claim."""

import dataclasses

import pytest

from pytest_dbcluster.claims import wording
from pytest_dbcluster.reporting.tables import no_worse, parts
from pytest_dbcluster.rounds import metrics
from pytest_dbcluster.rounds.ledger import Ledger
from tests.support.facts import missing
from tests.support.records import record
from tests.support.results import compared_shop, with_transactions


def compared(made, metric="p95"):
    """The transactions of a claim as rows of a comparison."""
    sides = made.rounds[made.baseline], made.rounds[made.candidate]
    return parts.compare_transactions(sides, metric, made.load, instances=made.instances, alpha=made.verdict.alpha)


def test_each_type_has_the_interval_of_its_latency():
    """It is that of a claim about this type in the same rounds: the candidate is 1.3 times as fast in every type."""
    made = with_transactions(record(faster=1.3, pairs=12), browse=700, order=300)
    low, high = wording.interval(made.verdict).split(" .. ")

    for found, name, milliseconds in zip(compared(made), ("browse", "order"), (10, 20), strict=True):
        ratio, ends = found.ratio.removesuffix(")").split(" (")
        first, second = (float(text.removesuffix(" ms")) for text in found.medians)
        assert found.metric == f"p95:{name}"
        assert first == pytest.approx(milliseconds * 0.5 * 1.95, rel=0.1)
        assert first / second == pytest.approx(1.3, rel=0.1)
        assert float(ratio.removesuffix("x")) == pytest.approx(made.verdict.ratio, rel=0.02)
        assert [float(end) for end in ends.split(" .. ")] == pytest.approx([float(low), float(high)], rel=0.03)


def test_the_most_frequent_type_comes_first():
    """Each has its share of the transactions."""
    found = compared(with_transactions(record(), order=300, browse=699, refund=1))

    assert [(one.metric, one.remark.partition(",")[0]) for one in found] == [
        ("p95:browse", "70 % of the transactions"),
        ("p95:order", "30 % of the transactions"),
        ("p95:refund", "0.1 % of the transactions"),
    ]


def test_a_share_that_differs_is_shown_for_both_variants():
    """The baseline comes first."""
    made = with_transactions(record(), browse=700, order=300)
    fewer = with_transactions(made, browse=700, order=200).rounds[made.candidate]
    found = compared(dataclasses.replace(made, rounds={**made.rounds, made.candidate: fewer}))

    assert found[1].remark == "30 % and 22 % of the transactions"


def test_a_rare_type_has_no_interval():
    """p95 needs 200 transactions a round. With fewer, its figures are over all rounds."""
    made = with_transactions(record(faster=1.3, pairs=12), browse=700, order=30)
    rare = compared(made)[1]
    first, second = (float(text.removesuffix(" ms")) for text in rare.medians)

    assert missing(rare.ratio, "1.", "x (no interval)") == []
    assert rare.remark == "4 % of the transactions, too few a round for an interval"
    assert first / second == pytest.approx(1.3, rel=0.1)


def test_a_type_with_too_few_transactions_in_all_has_no_figures():
    """12 rounds of 10 do not make 200. A type may be missing in a whole round."""
    made = with_transactions(record(pairs=12), browse=700, order=10)
    first = with_transactions(made, browse=700).rounds[made.candidate][:1]
    rare = compared(
        dataclasses.replace(made, rounds={**made.rounds, made.candidate: first + made.rounds[made.candidate][1:]})
    )[1]

    assert (rare.medians, rare.ratio) == (("-", "-"), "-")
    assert rare.remark == "1 % of the transactions, too few for p95"


def test_a_workload_with_a_single_type_has_no_rows():
    """They would repeat the row of the workload."""
    assert compared(with_transactions(record(), order=300)) == ()


def test_transactions_change_no_result():
    """A comparison has the same answer with and without them, and they are rows without a claim."""
    closed, closer, tail = map(no_worse.of_record, compared_shop(browse=700, order=300))
    shop = no_worse.ComparedWorkload("sql shop t8", closed, closer, tail)
    bare = dataclasses.replace(shop, p95=dataclasses.replace(tail, transactions=()))
    rows = no_worse.rows([shop])

    assert len(tail.transactions) == 2
    assert (shop.result, no_worse.sentence([shop], ("a", "b"))) == (bare.result, no_worse.sentence([bare], ("a", "b")))
    assert [row for row in rows if row.result is not None] == no_worse.rows([bare])
    assert [row.text for row in rows[2:]] == [
        "compared (70 % of the transactions)",
        "compared (30 % of the transactions)",
    ]


def test_only_p95_of_own_files_is_divided():
    """A closed loop claims no latency, and the types of tpcc are not the user's."""
    closed, _, tail = compared_shop(browse=700, order=300)
    without_files = dataclasses.replace(tail, content="")

    assert no_worse.of_record(with_transactions(closed, browse=700, order=300)).transactions == ()
    assert no_worse.of_record(without_files).transactions == ()


def test_latencies_of_parts_are_those_of_the_metrics():
    """A lost transaction of an open loop counts for its statements too, as in a claim."""
    made = with_transactions(record(pairs=3), browse=300, order=200)
    [lossy, *rest] = made.rounds[made.candidate]
    entries = dict(lossy.outcome.ledger.entries)
    entries["order"] = dataclasses.replace(entries["order"], failed=20)
    outcome = dataclasses.replace(lossy.outcome, ledger=Ledger(entries), rate=1000.0)
    rounds = (dataclasses.replace(lossy, outcome=outcome), *rest)
    found = {one.part: one for one in parts.latencies({"a": rounds})}

    assert {part: one.count for part, one in found.items()} == {
        "browse": 900,
        "browse:3": 900,
        "order": 620,
        "order:3": 620,
    }
    for part, one in found.items():
        assert one.milliseconds[1] == 1e3 * metrics.latencies(rounds, part).percentile(0.95)
    assert found["order:3"].milliseconds[2] == pytest.approx(2e3 * lossy.seconds, rel=0.02)


@pytest.mark.parametrize(("counts", "statements", "rows"), [({"x": 9}, False, 0), ({"x": 9}, True, 2)])
def test_a_single_type_is_shown_with_statements(counts, statements, rows):
    """Without statements its latencies are those of the workload."""
    assert len(parts.latencies({"a": with_transactions(record(), statements, **counts).rounds["galera3"]})) == rows


def test_rounds_without_a_ledger_have_no_parts():
    """A load that keeps no latencies has no types."""
    assert parts.latencies(record().rounds) == []
