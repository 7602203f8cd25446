"""What ledgers say in a message: conflicts, outcomes and latencies."""

from __future__ import annotations

import dataclasses

from pytest_dbcluster.rounds import ledger_summary
from pytest_dbcluster.rounds.histogram import Histogram
from pytest_dbcluster.rounds.ledger import Ledger, LedgerEntry
from pytest_dbcluster.rounds.round import Round, RunResult
from tests.support.facts import missing

PAYMENT = LedgerEntry({1: 60, 2: 8, 5: 2}, 68, 0, 1, 1, 0.5, Histogram.of([0.01] * 68))
NEW_ORDER = LedgerEntry({1: 30}, 29, 1, 0, 0, 0.0, Histogram.of([0.1] * 30))
ERRORS = {(1213, "node2"): 9, (1205, "node1"): 5, (1213, "node1"): 1, (1047, "node3"): 1, (1020, "node1"): 1}


def one_round(entries, errors=None, *, rate=None):
    """A round of 2 s."""
    ledger = Ledger(entries, errors or {})
    total = ledger.total
    outcome = RunResult(2.0, total.tried, total.committed, good=total.good, ledger=ledger, rate=rate)
    return Round("a", 0, 0, outcome, 0.0, 0.0)


def test_a_message_has_the_conflicts_of_all_variants():
    """Goodput and attempts apart, tries, errors by code and node, outcomes with unknown ones apart, time lost."""
    both = one_round({"payment": PAYMENT, "new_order": NEW_ORDER}, ERRORS)
    quiet = one_round({"payment": PAYMENT, "new_order": NEW_ORDER})
    goodput, tries, errors, outcomes, *_ = ledger_summary.lines({"all": [both, both], "one": [quiet]})

    assert goodput.startswith("goodput of attempts: all 49 of 58/s, abort share 16 %; one 49 of 58/s")
    assert tries.startswith("attempts of a transaction: all 180 at the first, 16 at the second, 4 later; one 90 ")
    of_all = "1213 on node2 x 18, 1205 on node1 x 10, 1020 on node1 x 2, 1047 on node3 x 2, 2 others"
    assert missing(errors, "errors by node: ", f"all {of_all}; one none") == []
    assert outcomes.startswith(
        "outcomes: all 194 committed, 2 rolled back by design, 2 failed, 2 unknown, "
        "1 s lost in aborted attempts and the waits after them; one "
    )


def test_latencies_of_a_closed_loop_claim_nothing():
    """They are those of all rounds together, and the line says what they are worth."""
    [line] = [one for one in ledger_summary.lines({"a": [one_round({"x": NEW_ORDER})]}) if one.startswith("latency")]
    assert missing(line, "p50 / p95 / p99 / p99.9 in ms", "closed loop: shown, not claimed") == []
    assert line.endswith(": a 101 / 101 / 101 / 101")

    [line] = [
        one
        for one in ledger_summary.lines({"a": [one_round({"x": LedgerEntry()}, rate=9)]})
        if one.startswith("latency")
    ]
    assert missing(line, "p50 / p95 / p99 / p99.9 in ms", "from the intended start") == []
    assert line.endswith(": a -")


def test_latencies_of_an_open_loop_count_what_was_lost():
    """As the claims about them do: what failed or never ended took twice its round; a tail without it looks better."""
    done = one_round({"payment": PAYMENT, "new_order": NEW_ORDER}, rate=60)
    done = dataclasses.replace(done, outcome=dataclasses.replace(done.outcome, offered=done.outcome.done + 20))
    [line] = [one for one in ledger_summary.lines({"a": [done, done]}) if one.startswith("latency")]
    *_, types = ledger_summary.lines({"a": [done]})

    assert line.endswith(": a 10 / 3995 / 3995 / 3995")
    assert types.endswith("payment 34/s 10 / 10 / 3995 / 3995, new_order 15/s 101 / 101 / 101 / 101")


def test_each_type_has_its_own_figures():
    """A line for each variant, where its load has more than one."""
    lines = ledger_summary.lines({"a": [one_round({"payment": PAYMENT, "new_order": NEW_ORDER})]})

    payment, new_order = "payment 34/s 10 / 10 / 10 / 10", "new_order 15/s 101 / 101 / 101 / 101"
    assert missing(lines[-1], "a by type", "goodput and latencies", f": {payment}, {new_order}") == []
    assert not any("by type" in line for line in ledger_summary.lines({"a": [one_round({"x": PAYMENT})]}))


def test_what_a_load_is_known_by_comes_first():
    """The median over the rounds of each variant."""
    fast, slow = (
        [dataclasses.replace(made, outcome=dataclasses.replace(made.outcome, figures={"tpmC": value}))
         for made in [one_round({"new_order": NEW_ORDER})] for value in values]
        for values in ((900, 1200, 1000), (500,))
    )  # fmt: skip

    assert ledger_summary.lines({"fast": fast, "slow": slow})[0] == "tpmC (medians): fast 1000; slow 500"


def test_a_load_without_a_ledger_has_no_lines():
    """It has nothing to tell."""
    assert ledger_summary.lines({"a": [Round("a", 0, 0, RunResult(1.0, 100), 0.0, 0.0)]}) == []


def test_the_statements_that_take_the_most_time_are_named_first():
    """Four of them, over all rounds; a workload without latencies of statements has no such line."""
    times = {f"order:{line}": Histogram.of([line / 1000] * 10) for line in range(1, 7)}
    done = one_round({"order": NEW_ORDER})
    with_statements = dataclasses.replace(done, outcome=dataclasses.replace(done.outcome, statements=times))
    *_, line = ledger_summary.lines({"a": [with_statements, with_statements]})

    assert line.startswith("a by statement, share of their time and latencies: order:6 29 % 6.0")
    assert [name for name in times if name in line] == ["order:3", "order:4", "order:5", "order:6"]
    assert not any("by statement" in one for one in ledger_summary.lines({"a": [done]}))
