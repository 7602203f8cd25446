"""Which rounds become results of pytest-benchmark, and in which unit."""

from __future__ import annotations

import dataclasses

import pytest

from pytest_dbcluster.claims import kinds
from pytest_dbcluster.reporting.pytest_benchmark import variants
from pytest_dbcluster.rounds.histogram import Histogram
from pytest_dbcluster.rounds.ledger import Ledger, LedgerEntry
from tests.support.records import record


def test_a_variant_of_two_claims_is_one_result_with_most_rounds():
    """Claims of a test share rounds; the longer one has all of them."""
    short, long = record(pairs=8), record(kinds.no_slower_than(0.1), pairs=20)
    found = {one.name: one for one in variants([short, long, record(pairs=12)])}

    assert {name: len(one.seconds) for name, one in found.items()} == {"flush_2": 20, "galera3": 20}
    assert found["flush_2"].extra_info["claim"].startswith("flush_2.no_slower_than(galera3")


def test_rounds_of_a_fixed_time_give_seconds_for_each_operation():
    """The time of such a round is the same for all variants."""
    made = record(pairs=8)
    ledger = Ledger({"x": LedgerEntry(latencies=Histogram.of([0.001]))})
    timed = {
        name: tuple(dataclasses.replace(one, outcome=dataclasses.replace(one.outcome, ledger=ledger)) for one in rounds)
        for name, rounds in made.rounds.items()
    }
    one = variants([dataclasses.replace(made, rounds=timed)])[0]

    assert one.seconds == pytest.approx([done.seconds / 1000 for done in one.rounds])
    assert one.extra_info["unit"] == "seconds per operation"


def test_a_claim_without_rounds_gives_no_result():
    """It was void, or out of time."""
    made = record(pairs=8)

    assert variants([dataclasses.replace(made, rounds={"flush_2": (), "galera3": ()})]) == []
