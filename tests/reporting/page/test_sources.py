"""Results directories, and everything that is none."""

import pytest

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.reporting.page import sources
from tests.support.records import failed, record
from tests.support.results import results


@pytest.fixture(autouse=True)
def _no_charts(monkeypatch):
    """Charts have their own tests."""
    from pytest_dbcluster.reporting.charts import claim as claim_chart

    monkeypatch.setattr(claim_chart, "svg", lambda made: None)


@pytest.fixture
def run(tmp_path):
    """The results directory of a run with two claims."""
    return results(tmp_path / "run", [record(), failed()])


def test_results_are_read_whole(run):
    """Claims and the run; nothing is missing."""
    read = sources.read(run)

    assert [made.text for made in read.claims] == ["flush_2.beats(galera3)"] * 2
    assert [test.test for test in read.tests("broken")] == ["test_flush.py::test_nodes"]
    assert read.notes == ()


def test_results_of_a_killed_run_are_read(run):
    """A last line without its end is left out, and a note says so."""
    lines = (run / "claims.jsonl").read_bytes()
    (run / "claims.jsonl").write_bytes(lines[:-200])
    read = sources.read(run)

    assert len(read.claims) == 1
    (note,) = read.notes
    assert "last line of claims.jsonl" in note


def test_a_run_without_its_document_is_read(run):
    """Older versions wrote none."""
    (run / "run.json").unlink()

    assert sources.read(run).run is None
    assert "run.json is missing" in sources.read(run).notes[0]


@pytest.mark.parametrize(
    ("changes", "note"),
    [
        ({"cut_short": "SIGTERM", "selected": 9}, "the run was cut short (SIGTERM): 6 of 9 tests ended"),
        ({"ended": None, "selected": 9}, "the run was killed, or is still running: 6 of 9 tests ended"),
    ],
)
def test_a_run_that_was_cut_short_says_so(tmp_path, changes, note):
    """Readers must know that tests are missing."""
    assert sources.read(results(tmp_path / "run", [record()], **changes)).notes == (note,)


def test_tests_without_a_claim_are_a_report(tmp_path):
    """A run in which everything broke is worth a page."""
    assert sources.read(results(tmp_path / "run", [])).claims == ()


def test_a_run_in_which_nothing_ended_has_no_report(tmp_path):
    """There is nothing to show yet."""
    with pytest.raises(ConfigError, match="no test of this run has ended, so there is nothing to report"):
        sources.read(results(tmp_path / "run", [], tests=()))


def test_a_missing_directory_is_named(tmp_path):
    """It says what creates one."""
    with pytest.raises(ConfigError, match="none: there is no such results directory; a measuring run creates one"):
        sources.read(tmp_path / "none")


def test_a_directory_of_something_else_is_refused(tmp_path, run):
    """The message names the files that are missing, and the results inside of it."""
    with pytest.raises(
        ConfigError, match=r"it has none of claims\.jsonl, curves\.jsonl, run\.json; it has results in run"
    ):
        sources.read(tmp_path)


def test_a_directory_of_allure_is_named_as_such(run):
    """Ours is the one above."""
    theirs = run / "allure-results"
    theirs.mkdir()

    with pytest.raises(ConfigError, match=rf"this is a directory of Allure; name the results.*such as {run}"):
        sources.read(theirs)


def test_results_of_another_format_are_refused(run):
    """The message says which format, and what to do."""
    text = (run / "claims.jsonl").read_text()
    (run / "claims.jsonl").write_text(text.replace('"format":3', '"format":99', 1))

    with pytest.raises(ConfigError, match=r"claims\.jsonl, line 1: it has format 99.*update pytest-dbcluster"):
        sources.read(run)


def test_a_directory_that_is_named_twice_is_refused(run):
    """Its claims would count twice."""
    with pytest.raises(ConfigError, match="it is named twice"):
        sources.read_all([run, run.parent / "." / "run"])
