"""The file that github-action-benchmark reads with its tool customBiggerIsBetter."""

from __future__ import annotations

import dataclasses
import json
import math

from pytest_dbcluster.claims import kinds
from pytest_dbcluster.reporting.github import benchmark_entries
from tests.support.records import failed, record


def entries(*records):
    """The entries of these claims."""
    return json.loads(benchmark_entries.text(records))


def test_each_claim_about_speed_is_a_value_of_which_more_is_better():
    """The name is the same in each run; interval and verdict are shown beside the value."""
    made = record(faster=1.84, sd=0.01, pairs=20, claim_id="test_flush::test_flush_2[write] | flush_2.beats(galera3)")
    (entry,) = entries(made)

    assert set(entry) == {"name", "unit", "value", "range", "extra"}
    assert entry["name"] == f"{made.claim_id} | mariadb:10.11"
    assert entry["value"] == made.verdict.ratio
    assert entry["range"].count("x") == 2
    assert entry["extra"] == f"holds after 20 pairs\n{made.repeat}"


def test_a_refuted_claim_has_its_ratio_too():
    """It is a measurement like any other."""
    assert entries(failed())[0]["value"] < 1
    assert entries(failed())[0]["extra"].startswith("refuted after ")


def test_what_has_no_larger_and_better_value_is_left_out():
    """Of a counter less is better, and a claim without an estimate has no value: JSON has no nan."""
    made = record()
    unknown = dataclasses.replace(made, verdict=dataclasses.replace(made.verdict, ratio=math.nan))
    lower = dataclasses.replace(record(kinds.lower()), metric="fsyncs_per_commit")

    assert entries(unknown, lower) == []
