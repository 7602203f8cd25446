"""Runs pytest; when at most three tests fail, each runs three times alone, and the run is green if all of these pass.

``python -m tests.support.unsteady REPORT ARGUMENTS...`` calls pytest with the arguments. Tests that failed first and
passed three times are named in the file REPORT, one line each, with their first failure. Such a test has to be
repaired: this only keeps it from hiding the steps that follow. A claim of ``suites/`` is never repeated, because a
claim that is asked until it holds has no error probability; neither are tests of leaks, kills and harm, where one
failure is a finding. The check of pull requests repeats nothing.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

MOST = 3
TIMES = 3
FAILURES = "DBCLUSTER_TEST_FAILURES"
ONCE = re.compile(
    r"^suites/|leak|kill|harm|death|dies|chaos|signal|ctrl_c|surviv|outliv|reap|orphan|hostile|stranger|escape|attack"
    r"|left|stays|remain|owned|cleanup|clean_up|password|secret|redact|cnf_judge|cnf_file|of_my_cnf|host_options|path_options",
    re.IGNORECASE,
)


class Recorder:
    """Keeps the first failure of each test, and writes all of them at the end. It runs beside no worker of xdist."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.failures: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the failure of a test."""
        if report.failed:
            self.failures.setdefault(report.nodeid, said(report))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Keep the failure of a file that does not load."""
        if report.failed:
            self.failures.setdefault(report.nodeid, said(report))

    def pytest_sessionfinish(self) -> None:
        """Write the failures."""
        self.path.write_text(json.dumps(self.failures))


def said(report: pytest.TestReport | pytest.CollectReport) -> str:
    """The phase, place and first line of a failure."""
    crash = getattr(report.longrepr, "reprcrash", None)
    lines = (crash.message if crash else report.longreprtext).strip().splitlines() or ["no message"]
    place = f"{crash.path}:{crash.lineno}: " if crash else ""
    return f"{report.when}: {place}{lines[0]}"


def pytest_configure(config: pytest.Config) -> None:
    """Record the failures of the whole run, not those of a worker."""
    if (path := os.environ.pop(FAILURES, None)) and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Recorder(Path(path)))


def repeatable(failures: Sequence[str]) -> bool:
    """Whether these tests, and no more than these, may run again: few, and each one that a failure may be forgiven."""
    return 0 < len(failures) <= MOST and all("::" in test and not ONCE.search(test) for test in failures)


def run(arguments: Sequence[str]) -> tuple[int, dict[str, str]]:
    """Run pytest. Returns its exit status and the first failure of each test that failed, by node id."""
    with tempfile.TemporaryDirectory(prefix="dbcluster-unsteady-") as directory:
        path = Path(directory) / "failures.json"
        command = [sys.executable, "-m", "pytest", "-p", __spec__.name, *arguments]
        status = subprocess.run(command, env=os.environ | {FAILURES: str(path)}, check=False).returncode
        return status, json.loads(path.read_text()) if path.exists() else {}


def main(report: str, *arguments: str) -> int:
    """Run the tests, and again what failed. Returns the exit status of the whole."""
    # Ctrl-C reaches pytest too, which stops its servers: we wait for that.
    signal.signal(signal.SIGINT, lambda *_: None)
    status, failures = run(arguments)
    if status != pytest.ExitCode.TESTS_FAILED or not repeatable(list(failures)):
        return status
    for test in failures:
        for time in range(1, TIMES + 1):
            print(f"\nunsteady: {test} alone, {time} of {TIMES}", flush=True)
            if run([test])[0] != pytest.ExitCode.OK:
                return status
    with Path(report).open("a") as file:
        file.writelines(f"UNSTABLE {test}: passed {TIMES} times alone; first: {failures[test]}\n" for test in failures)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
