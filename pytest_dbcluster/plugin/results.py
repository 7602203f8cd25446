"""The results directory of this run: taken when the tests are known, given back when pytest ends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pytest_dbcluster.plugin import junit, run_file
from pytest_dbcluster.reporting import results_directory, results_lock
from pytest_dbcluster.reporting.allure import allure_results
from pytest_dbcluster.reporting.documents import run_recorder
from pytest_dbcluster.reporting.results_lock import ResultsLock


def begin(config: Any, asked: Path, selected: int) -> ResultsLock:
    """Take the results directory ``asked``, or the next free one, clear it, and start the run's own files there.

    These are ``run.json`` and Allure's results. selected: the number of tests that are to run. Only one process of a
    run calls this. Raises ConfigError for a directory that cannot be written.
    """
    with_allure = allure_results.start(config)
    clear = [results_directory.clear, run_recorder.clear, *([allure_results.clear] if with_allure else [])]
    taken = results_lock.take(asked, clear)
    config.add_cleanup(taken.release)
    run_file.begin(config, taken.directory, selected)
    junit.begin(config)
    if with_allure:
        allure_results.write_into(config, taken.directory)
    return taken
