"""The page's history: charts of claims over their runs, from the results directory alone."""

from __future__ import annotations

import pytest

from pytest_dbcluster.reporting.history import history_file
from pytest_dbcluster.reporting.page import history_view, report_page, sources
from pytest_dbcluster.reporting.results_directory import HISTORY
from tests.support.histories import entries, healthy
from tests.support.results import results

pytestmark = pytest.mark.skipif(bool(report_page.missing()), reason=report_page.missing() or "there")


@pytest.fixture
def directory(tmp_path):
    """The results of a run whose claim has a history with a step."""
    made = results(tmp_path / "run", [])
    history_file.add(made / HISTORY, entries([*healthy(12), *healthy(12, seed=2, level=1.5)]))
    return made


def test_the_page_shows_the_runs_of_a_claim_and_what_changed(directory):
    """With the date of the first run of the new level."""
    text = report_page.html(sources.read_all([directory]))

    assert '<section id="history">' in text
    assert "flush_2.beats(galera3), mysqlslap write c50, mariadb:10.11" in text
    assert "24 runs" in text
    assert "New level since 20" in text


def test_two_directories_show_their_runs_once(directory, tmp_path):
    """Both have the history of the same claim."""
    other = results(tmp_path / "other", [])
    (other / HISTORY).write_bytes((directory / HISTORY).read_bytes())
    (one,) = history_view.view(sources.read_all([directory, other]))

    assert len(one.history.entries) == 24


def test_a_torn_history_is_a_note_on_the_page(directory):
    """The rest is shown."""
    with (directory / HISTORY).open("a") as file:
        file.write("{")
    (source,) = sources.read_all([directory])

    assert any("line 25: it is incomplete" in note for note in source.notes)


def test_a_run_without_history_has_no_such_section(tmp_path):
    """The others stay."""
    assert '<section id="history">' not in report_page.html(sources.read_all([results(tmp_path / "run", [])]))
