"""The results directory of this run: taken when the tests are known, given back when pytest ends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pytest_dbcluster.reporting import allure, results_directory, results_lock
from pytest_dbcluster.reporting.results_lock import ResultsLock


def begin(config: Any, asked: Path) -> ResultsLock:
    """Take the results directory ``asked``, or the next free one, clear it, and start Allure's results there.

    Only one process of a run calls this. Raises ConfigError for a directory that cannot be written.
    """
    with_allure = allure.start(config)
    taken = results_lock.take(asked, (results_directory.clear, *([allure.clear] if with_allure else [])))
    config.add_cleanup(taken.release)
    if with_allure:
        allure.write_into(config, taken.directory)
    return taken
