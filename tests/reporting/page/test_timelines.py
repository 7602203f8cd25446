"""Samples of every second, as the page reads them."""

import json
import math

import pytest

from pytest_dbcluster.reporting.page import timelines

HEAD = "time,seconds,variant,block,position,cpu_node1,steal\n"


@pytest.fixture
def directory(tmp_path):
    """A results directory with one claim and its timeline."""
    (tmp_path / "timeline").mkdir()
    (tmp_path / "claims.jsonl").write_text(json.dumps({"format": 3, "timeline_file": "timeline/01.csv"}) + "\n")
    (tmp_path / "timeline" / "01.csv").write_text(f"{HEAD}17.0,0.0,a,0,1,0.5,\n18.0,1.0,,,,0.25,0\n")
    return tmp_path


def test_each_claim_has_its_samples(directory):
    """By metric; an empty cell is unknown."""
    [samples] = timelines.read_all(directory)

    assert samples.seconds == (0.0, 1.0)
    assert samples.metrics["cpu_node1"] == (0.5, 0.25)
    assert math.isnan(samples.metrics["steal"][0])
    assert set(samples.metrics) == {"cpu_node1", "steal"}


@pytest.mark.parametrize("text", ["", "nonsense\n1\n", f"{HEAD}17.0,0.0,a,0,1,many,\n", HEAD])
def test_a_damaged_file_leaves_out_its_chart(directory, text):
    """Nothing rests on it."""
    (directory / "timeline" / "01.csv").write_text(text)

    assert timelines.read_all(directory) == [None]


def test_a_missing_file_leaves_out_its_chart(directory):
    """It may not have been copied."""
    (directory / "timeline" / "01.csv").unlink()

    assert timelines.read_all(directory) == [None]


def test_older_results_have_none(directory):
    """Their claims name no file."""
    (directory / "claims.jsonl").write_text('{"format": 3}\n')

    assert timelines.read_all(directory) == [None]


def test_no_file_of_somebody_else_is_read(directory):
    """Results of a stranger name files of their own directory alone."""
    outside = directory.parent / f"{directory.name}-other.csv"
    outside.write_text((directory / "timeline" / "01.csv").read_text())

    assert timelines.read(directory, f"../{outside.name}") is None
    assert timelines.read(directory, str(outside)) is None


def test_a_long_timeline_is_averaged(directory):
    """A chart cannot show more samples than it has points."""
    rows = [f"{n},{n},,,,{n % 2},\n" for n in range(1500)]
    (directory / "timeline" / "01.csv").write_text(HEAD + "".join(rows))
    [samples] = timelines.read_all(directory)

    assert len(samples.seconds) == 500
    assert samples.seconds[:2] == (1.0, 4.0)
    assert samples.metrics["cpu_node1"][0] == pytest.approx(1 / 3)
