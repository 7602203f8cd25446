"""A sweep over a variable of SQL files on a real server: each value has its own tables."""

from __future__ import annotations

from pytest_dbcluster.measuring import curve
from pytest_dbcluster.measuring.curve import Curve, Point
from pytest_dbcluster.measuring.drawing.rules import Rules
from pytest_dbcluster.measuring.measurement import Measurement
from pytest_dbcluster.testbed import datasets
from pytest_dbcluster.workloads.sql import SQLFiles
from tests.support.testbeds import ONE, OTHER, source
from tests.workloads.sql.directories import directory

MANIFEST = 'rows = {items = ":items", sales = 10}\nvariables = {items = 100}\n'
COUNT = "SELECT COUNT(*), MAX(id) FROM dbcluster_sized.items"


def test_a_sweep_over_a_variable_measures_at_each_value(pool, tmp_path, monkeypatch):
    """Both variants run on the tables of the value, which are loaded once and copied."""
    monkeypatch.setattr(datasets, "datasets_directory", lambda: tmp_path / "stored")
    workload = SQLFiles(directory(tmp_path / "sized", {"workload.toml": MANIFEST}), threads=2, seconds=0.1)
    field, loads = curve.loads(workload, {"variables": {"items": (50, 200)}})
    testbeds = {value: source(pool, load, ONE, OTHER) for value, load in loads}
    made = Curve(workload, field, [Point(value, Measurement(each, Rules(seed=7))) for value, each in testbeds.items()])
    made.draw(1)
    counts = {}
    for value, testbed in testbeds.items():
        testbed.round(0, block=99, position=0)
        counts[value] = pool.clusters[-1].nodes[0].query(COUNT)  # of the cluster that was used last

    assert field == "items"
    assert all(series.rounds for _, *several in made for series in several)
    assert counts == {50: [(50, 50)], 200: [(200, 200)]}
    assert {data_set.name for data_set in datasets.datasets()} == {load.data_set for _, load in loads}
