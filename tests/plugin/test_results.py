"""Where a run writes its results: a directory that cannot be written, one that is full, and one that is in use."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from pytest_dbcluster.reporting import results_lock
from tests.support import conftests
from tests.support.facts import missing
from tests.support.suites import refusal

FAKE = Path(__file__).parents[1] / "support" / "fake_session.py"
WORDS = ["-p", "no:cacheprovider", "--db-seed=5"]
SUITE = """
    from pytest_dbcluster.spec import ClusterSpec

    ONE = ClusterSpec("galera", nodes=3)
    OTHER = ONE.with_options(lock_wait_timeout=40).named("other")

    def test_faster(measure):
        one, other = measure("mysqlslap write", on=[ONE, OTHER])
        assert other.beats(one)

    def test_slower(measure):
        one, other = measure("mysqlslap read", on=[ONE, OTHER])
        assert one.beats(other)
"""
WORKERS = pytest.mark.parametrize("workers", [[], ["-n1"]], ids=["one process", "a worker"])


@pytest.fixture
def suite(pytester, monkeypatch):
    """A suite on made-up rounds with a claim that holds and one that fails; no charts."""
    monkeypatch.setenv("COLUMNS", "400")  # no line of ours is wrapped
    pytester.makeconftest(FAKE.read_text() + conftests.NO_CHARTS)
    pytester.makepyfile(test_suite=SUITE)
    return pytester


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 128 KiB, mounted writable."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=128k", "none", str(disk)]
    if os.geteuid() or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("only root may mount a file system, and not in every container")
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


def claims(directory):
    """The claims in a results directory, as text."""
    return {json.loads(line)["text"] for line in (directory / "claims.jsonl").read_text().splitlines()}


@pytest.mark.parametrize(
    ("file", "workers"),
    [("reports", []), ("reports/latest", []), ("reports/latest/rounds", []), ("reports/latest/rounds", ["-n1"])],
)
def test_a_file_in_the_way_ends_the_run_before_a_test(suite, file, workers):
    """The error names the file, the directory and the option, and no test runs."""
    path = suite.path / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()

    result = suite.runpytest_inprocess(*WORDS, *workers)

    why = f"cannot write results into {suite.path}/reports/latest: {path} is a file, not a directory"
    assert missing(refusal(result), why, "another", "--db-results DIR") == []
    assert result.parseoutcomes() == {}


def test_a_file_in_the_way_is_nothing_to_tests_that_do_not_measure(suite):
    """They need no results directory."""
    (suite.path / "reports").touch()
    suite.makepyfile(test_suite="def test_plain():\n    pass\n")

    suite.runpytest_inprocess(*WORDS).assert_outcomes(passed=1)


def test_a_read_only_directory_ends_the_run_before_a_test(suite, small_disk):
    """The reason is the system's own."""
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)

    result = suite.runpytest_inprocess(*WORDS, f"--db-results={small_disk}/results")

    why = f"cannot write results into {small_disk}/results: Read-only file system ({small_disk} belongs to root)"
    assert missing(refusal(result), why, "another", "--db-results DIR") == []


@pytest.mark.parametrize(
    ("when", "workers"), [("from the start", []), ("in the middle", []), ("in the middle", ["-n1"])]
)
def test_a_full_disk_loses_no_verdict(suite, when, workers, small_disk):
    """Every test has its outcome, the closing table is whole, and what was not written is said once."""
    results = small_disk / "results"
    filler = "with open({path!r}, 'wb', buffering=0) as file:\n    while True:\n        file.write(bytes(4096))"
    filler = filler.format(path=str(small_disk / "filler"))
    if when == "from the start":
        results.mkdir()
        subprocess.run(["python3", "-c", filler], capture_output=True, check=False)
    else:
        text = "\n\ndef test_between():\n    try:\n" + "".join(f"        {line}\n" for line in filler.splitlines())
        source = (suite.path / "test_suite.py").read_text().replace("\n\ndef test_slower", "\n@@\n\ndef test_slower")
        text += "    except OSError:\n        pass\n"
        (suite.path / "test_suite.py").write_text(source.replace("\n@@\n", text))

    result = suite.runpytest_inprocess(*WORDS, *workers, f"--db-results={results}")

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(passed=1 + (when == "in the middle"), failed=1)
    text = result.stdout.str()
    assert "INTERNALERROR" not in text
    assert "1 holds, 1 refuted" in text
    said = " ".join(text.split()).split("NOT WRITTEN")[1:]  # a long sentence takes several lines
    assert len(said) == 1
    assert "No space left on device" in said[0]
    assert str(results) in said[0]


@WORKERS
def test_a_second_run_takes_another_directory(suite, workers):
    """It says so at its beginning and at its end; the first run's files stay, and Allure's results go with it."""
    latest = suite.path / "reports" / "latest"
    first = results_lock.take(latest)
    (latest / "claims.jsonl").write_text("of the first run\n")
    try:
        result = suite.runpytest_inprocess(*WORDS, "-p", "allure_pytest", *workers)
    finally:
        first.release()

    line = f"another run writes into {latest}, so the results of this run are in {latest}-2"
    # At the end of the run a long sentence takes several lines.
    after = [" ".join(" ".join(result.outlines[number:]).split()) for number in range(len(result.outlines))]
    at = [number for number, text in enumerate(after) if result.outlines[number] and text.startswith(line)]
    tests = [number for number, text in enumerate(result.outlines) if text.startswith(("test_suite.py", "FAILED"))]
    assert at[0] < min(tests, default=len(result.outlines))
    assert at[-1] > result.outlines.index(next(text for text in result.outlines if text.startswith("✓ holds")))
    assert len(at) == 2
    assert (latest / "claims.jsonl").read_text() == "of the first run\n"
    assert not (latest / "allure-results").exists()
    assert claims(latest.with_name("latest-2")) == {"other.beats(galera3)", "galera3.beats(other)"}
    assert len(list((latest.with_name("latest-2") / "allure-results").glob("*-result.json"))) == 2


def test_a_run_gives_its_directory_back(suite):
    """Two runs after each other write into the same directory."""
    for _ in range(2):
        assert suite.runpytest_inprocess(*WORDS).ret == pytest.ExitCode.TESTS_FAILED

    assert [path.name for path in (suite.path / "reports").iterdir()] == ["latest"]
