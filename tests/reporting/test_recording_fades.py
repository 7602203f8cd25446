"""How results show ``fades``, whose ratio is that of two ratios."""

import json
import re

import pytest

from pytest_dbcluster.claims import estimators, intervals
from pytest_dbcluster.measuring.drawing.rules import Rules
from pytest_dbcluster.measuring.measurement import Measurement
from pytest_dbcluster.measuring.series import fades, series_of
from pytest_dbcluster.reporting import results_directory, rounds_csv, schema
from pytest_dbcluster.reporting.charts import claim as claim_chart
from pytest_dbcluster.reporting.github import benchmark_entries
from pytest_dbcluster.reporting.page import claim_view, words
from pytest_dbcluster.reporting.recording import Asked, claim_record
from pytest_dbcluster.reporting.tables import entries
from tests.reporting.test_recording import Published, RoundSource
from tests.support.facts import missing
from tests.support.fakes import noisy
from tests.support.records import comparable

NAMES = ("one", "one_far", "many", "many_far")


def faded():
    """A record of ``fades``, whose second pair keeps twice as much of its speed."""
    source = RoundSource(NAMES, noisy(1.0, 5.0, 0.2, 0.5), counters=lambda number: {"drain_seconds": 1.0})
    one, one_far, many, many_far = series_of(Measurement(source, Rules(seed=3, budget=10_000.0)))
    answer = fades((one, one_far), (many, many_far))
    return claim_record(answer, Published(), Asked("test_a", "quick", ""), 1.0)


def test_the_record_of_fades_names_its_second_pair(tmp_path):
    """Nothing that compares two variants alone stands beside its ratio; read from its directory it is the same."""
    record = faded()
    results_directory.Results(tmp_path).add(record)

    assert (record.candidate, record.baseline) == ("many_far", "many")
    assert list(record.rounds) == ["many_far", "many", "one_far", "one"]
    assert (record.kind, record.published, record.drained) == ("fades", None, None)
    assert record.claim_id == 'test_a | fades((one, one_far), (many, many_far), metric="throughput") | fake load'
    assert record.differences == {"which": ("many", "many_far")}
    assert rounds_csv.compared_pairs(record).parts
    estimate = intervals.estimate(rounds_csv.compared_pairs(record))
    assert estimators.factor(estimate) == pytest.approx(record.verdict.ratio)
    assert comparable(schema.read_claims(tmp_path)) == comparable([record])


def test_fades_is_shown_with_both_ratios():
    """In the terminal, in words on the page, in the chart and for GitHub."""
    record = faded()
    entry = entries.of_claim(record)
    [point] = json.loads(benchmark_entries.text([record]))
    shown = claim_chart.svg(record)

    assert entry.headline == "many_far loses less than one_far"
    assert re.fullmatch(r"0\.4\dx v 0\.\d+x", entry.details[0])
    assert entry.details[1].startswith("ratio 2.0")
    sentence = words.sentence(record)
    assert sentence.startswith("many_far loses less")
    assert missing(sentence, "against many ", "one_far against one") == []
    assert point["unit"] == "times the share that is kept"
    assert "second ratio" in shown
    assert claim_view.view(record, "1").measured.startswith("2.0")
