"""pytest-benchmark on rounds of clusters: saved, compared, drawn, and silent where nothing is asked of it."""

from __future__ import annotations

import importlib.util
import json
import statistics
from pathlib import Path

import pytest

from pytest_dbcluster.reporting import schema
from tests.support import conftests

pytest.importorskip("pytest_benchmark")

FAKE = Path(__file__).parents[1] / "support" / "fake_session.py"
WORDS = ["-p", "no:cacheprovider", "-p", "benchmark", "--db-seed=5"]
SUITE = """
    from pytest_dbcluster.spec import ClusterSpec

    ONE = ClusterSpec("galera", nodes=3)
    OTHER = ONE.with_options(lock_wait_timeout=40).named("other")

    def test_faster(measure):
        one, other = measure("mysqlslap write", on=[ONE, OTHER])
        assert other.beats(one)
"""

# Without it pytest-benchmark starts programs that describe the machine, which take longer than the run.
MACHINE = """
def pytest_benchmark_generate_machine_info(config):
    return {"node": "a machine", "cpu": {"brand_raw": "a CPU"}}
"""


@pytest.fixture
def suite(pytester, monkeypatch):
    """A suite on made-up rounds with one claim that holds."""
    monkeypatch.setenv("COLUMNS", "200")
    pytester.makeconftest(FAKE.read_text() + conftests.NO_CHARTS + MACHINE)
    pytester.makepyfile(test_suite=SUITE)
    return pytester


@pytest.mark.parametrize("workers", [[], ["-n1"]], ids=["one process", "a worker"])
def test_every_variant_is_a_result_with_its_rounds(suite, workers):
    """The seconds are those of the rounds; claim, ratio and release are in extra_info.

    Pytest-benchmark makes .benchmarks when it is configured; a run that stores nothing leaves none.
    """
    result = suite.runpytest_inprocess(*WORDS, "--benchmark-json=out.json", *workers)
    result.assert_outcomes(passed=1)
    assert not list(suite.path.rglob(".benchmarks"))
    (record,) = schema.read_claims(suite.path / "reports" / "latest")
    found = {one["name"]: one for one in json.loads((suite.path / "out.json").read_text())["benchmarks"]}

    assert set(found) == {"test_faster mysqlslap write other", "test_faster mysqlslap write galera3"}
    for name, rounds in record.rounds.items():
        one = found[f"test_faster mysqlslap write {name}"]
        assert one["stats"]["data"] == pytest.approx([done.seconds for done in rounds])
        assert one["stats"]["median"] == pytest.approx(statistics.median(done.seconds for done in rounds))
        assert one["extra_info"]["claim"] == "other.beats(galera3)"
        assert one["extra_info"]["unit"] == "seconds per round"
    result.stdout.fnmatch_lines(["*benchmark*2 tests*", "test_faster mysqlslap write other *"])


def test_a_saved_run_is_compared_with_the_next_one(suite):
    """Each variant is found again by its name."""
    suite.runpytest_inprocess(*WORDS, "--benchmark-save=first")
    result = suite.runpytest_inprocess(*WORDS, "--benchmark-compare")

    result.stdout.fnmatch_lines(["test_faster mysqlslap write other (0001_first)*"])
    result.stdout.fnmatch_lines(["test_faster mysqlslap write other (NOW)*"])


@pytest.mark.parametrize(
    "workers", [[], pytest.param(["-n1"], marks=pytest.mark.thorough)], ids=["one process", "a worker"]
)
def test_a_histogram_shows_both_variants(suite, workers):
    """A file for each test and workload. A run with --benchmark-save has .benchmarks."""
    # Not imported here: importlib_metadata, which comes with it, takes the finder of later in-process runs away.
    if importlib.util.find_spec("pygal") is None:
        pytest.skip("pygal is not installed")
    result = suite.runpytest_subprocess(*WORDS, "--benchmark-histogram=hist", "--benchmark-save=first", *workers)

    result.assert_outcomes(passed=1)
    (drawn,) = suite.path.glob("hist-*.svg")
    assert all(f"test_faster mysqlslap write {name}" in drawn.read_text() for name in ("other", "galera3"))
    assert list(suite.path.glob(".benchmarks/*/0001_first.json"))


def test_a_histogram_that_cannot_be_drawn_is_refused_before_a_test(suite):
    """pytest-benchmark itself finds it out when all is measured, and ends with an internal error."""
    suite.makepyfile(no_pygal="import sys\n\nsys.modules['pygal'] = None\n")
    result = suite.runpytest_subprocess(*WORDS, "-p", "no_pygal", "--benchmark-histogram=hist")
    (line,) = [line for line in result.errlines if line.startswith("ERROR: ")]

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "--benchmark-histogram needs pygal" in line
    assert "pip install 'pytest-benchmark[histogram]'" in line


def test_its_line_goes_where_nothing_is_asked_of_it(suite):
    """The header has it when it is used, and nothing of it is at the end when it is not."""
    silent = suite.runpytest_inprocess(*WORDS)
    silent.stdout.no_fnmatch_line("benchmark: *")
    silent.stdout.no_fnmatch_line("*Min*Max*Mean*")
    asked = suite.runpytest_inprocess(*WORDS, "--benchmark-enable", "--collect-only")

    asked.stdout.fnmatch_lines(["benchmark: *"])
