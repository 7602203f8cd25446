"""Views of histories: table, CSV and charts, with the changes in them."""

from __future__ import annotations

import csv
import dataclasses
import io
import re

import pytest

from pytest_dbcluster.reporting.charts import drawing
from pytest_dbcluster.reporting.history import views
from pytest_dbcluster.reporting.history.history_file import History
from tests.support.histories import CLAIM, entries, healthy

STEPPED = [*healthy(12), *healthy(12, seed=2, level=1.5)]


def test_the_table_has_a_row_for_each_claim_and_release():
    """With the newest ratio, the level before it, and whether it drifts."""
    history = History((*entries([*healthy(8), 1.2]), *entries([1.5], release="mariadb:11.8")))
    head, drifted, other = views.table(history).splitlines()

    assert head.split() == ["claim", "release", "runs", "last", "ratio", "before", "change"]
    assert drifted.startswith(f"{CLAIM}  mariadb:10.11  9 ")
    assert " 1.8" in drifted
    assert drifted.endswith(" % DRIFT")
    assert other.endswith("-       too few runs")


def test_the_table_judges_all_claims_at_once(monkeypatch):
    """Its time grows with the lines of the history, not with their square."""
    asked, judge = [], views.judge
    monkeypatch.setattr(views, "judge", lambda *given: asked.append(given) or judge(*given))
    history = History((*entries([1.5]), *entries([1.5], release="mysql:8.4")))

    assert len(views.table(history).splitlines()) == 3
    assert len(asked) == 1


def test_a_stall_has_a_trend_in_seconds():
    """The table and the axis of the chart have its unit."""
    history = History(tuple(entries([6.1, 6.2], metric="stall", low=6.0, high=6.3)))
    _, row = views.table(history).splitlines()

    assert " 6.20 s (6.00 .. 6.30 s) " in row
    if drawing.available():
        assert ">stall, s<" in views.claims(history)[0].svg("history1")


def test_a_step_is_found_and_said_with_its_commit():
    """The first run after it is named."""
    (item,) = views.claims(History(tuple(entries(STEPPED))))
    (change,) = item.changes
    (sentence,) = item.sentences()

    assert change.first == 12
    assert sentence.startswith(f"new level since {views.day(item.entries[12])} (commit 4fd14fd+): -1")
    assert sentence.endswith(" % (chance 0.0002 without a change)")


def test_runs_on_a_busy_machine_are_no_new_level():
    """They are not compared with quiet ones. If the newest is one of them, all count."""
    quiet, noisy = entries(healthy(8)), entries(healthy(6, seed=2, level=1.4), first=8, busy="1.5 of 2 cores")
    late = entries(healthy(2, seed=3), first=14)
    (item,) = views.claims(History((*quiet, *noisy, *late)))
    (busy,) = views.claims(History((*quiet, *noisy)))

    assert item.changes == ()
    assert [change.first for change in busy.changes] == [8]


def test_another_machine_is_no_change_of_level():
    """It is said by itself; change points are searched in the runs of the newest machine."""
    made = [*entries(healthy(12), machine="old"), *entries(healthy(12, level=1.5), first=12, machine="new")]
    (item,) = views.claims(History(tuple(made)))

    assert (item.changes, item.machines) == ((), (12,))
    assert list(item.sentences()) == [f"another machine since {views.day(item.entries[12])}: new"]


@pytest.mark.parametrize(
    ("apart", "form"),
    [
        (86400, r"\d{4}-\d\d-\d\d"),
        (3600, r"\d\d-\d\d \d\d:\d\d"),
        (7, r"\d\d-\d\d \d\d:\d\d:\d\d"),
    ],
)
def test_the_times_of_runs_differ(apart, form):
    """Three runs of one day have their time of day; of one minute, also seconds."""
    made = [dataclasses.replace(one, time=1.7e9 + apart * number) for number, one in enumerate(entries([1.8] * 3))]
    (item,) = views.claims(History(tuple(made)))

    assert len(set(item.times())) == 3
    assert all(re.fullmatch(form, text) for text in item.times())


def test_csv_has_every_run(tmp_path):
    """With the medians of both variants as columns; Apache Otava and pandas read it."""
    rows = list(csv.DictReader(io.StringIO(views.as_csv(History(tuple(entries([1.8, 1.9])))))))

    assert [row["ratio"] for row in rows] == ["1.8", "1.9"]
    assert [row["run"] for row in rows] == ["run00", "run01"]
    assert float(rows[0]["candidate_median"]) > float(rows[0]["baseline_median"]) > 0


@pytest.mark.skipif(not drawing.available(), reason=drawing.MISSING)
def test_the_chart_shows_runs_and_changes():
    """A line for the change and one for the machine, each in the legend; one run alone gives no chart."""
    made = [*entries([1.8], machine="old"), *entries(STEPPED, first=1)]
    (item,) = views.claims(History(tuple(made)))
    svg = item.svg("history1")

    assert "new level" in svg
    assert "another machine" in svg
    assert views.claims(History(tuple(made[:1])))[0].svg("history1") is None


@pytest.mark.skipif(not drawing.available(), reason=drawing.MISSING)
def test_each_chart_has_another_file():
    """The names of files are cut, and two releases may differ in nothing else."""
    made = [*entries([1.8, 1.7]), *entries([1.8, 1.7], release="mysql:9.7")]
    names = [name for name, _ in views.charts(History(tuple(made)))]

    assert len(set(names)) == 2
    assert any("mysql" in name for name in names)


def test_a_part_of_an_id_chooses_claims():
    """None is chosen by a text that no id has."""
    history = History(tuple(entries([1.8])))

    assert len(views.claims(history, "[write]")) == 1
    assert views.claims(history, "[read]") == []
