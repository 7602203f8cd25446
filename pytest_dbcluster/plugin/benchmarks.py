"""Benchmarks: gives the rounds of a run to pytest-benchmark, if it is installed and an option asks for results."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from pytest_dbcluster.formatting import fit_terminal

if TYPE_CHECKING:
    from pytest_dbcluster.reporting.records import ClaimRecord

NAME = "dbcluster_benchmarks"
DRAWS = "pygal"  # the library that draws its histogram
NO_HISTOGRAM = (
    f"--benchmark-histogram needs {DRAWS}, which is not installed: pip install 'pytest-benchmark[histogram]', or "
    "remove the option"
)
HEADER = "benchmark: "  # the beginning of pytest-benchmark's line at the top of a run
STORES = ("save", "autosave", "save_data", "compare")  # its options that use its directory of results
# Its options that ask for results. Others change the timing of functions, or switch it off.
ASKS = ("save", "autosave", "json", "compare", "compare_fail", "histogram", "enable", "only")


def wants_results(config: pytest.Config) -> bool:
    """Whether an option of pytest-benchmark asks for results."""
    return _has_option(config, ASKS)


def _has_option(config: pytest.Config, names: Sequence[str]) -> bool:
    return any(getattr(config.option, f"benchmark_{name}", None) not in (None, False, []) for name in names)


def leave_no_directory(config: pytest.Config) -> None:
    """Keep pytest-benchmark from making its directory ``.benchmarks`` in a run that stores nothing there.

    pytest-benchmark makes its storage at the start, but not if the path is a file.
    """
    if config.pluginmanager.hasplugin("benchmark") and not _has_option(config, STORES):
        config.option.benchmark_storage = f"file://{os.devnull}"


class Benchmarks:
    """The plugin that works beside pytest-benchmark. records: returns the claims of the run so far."""

    def __init__(self, config: pytest.Config, records: Callable[[], Sequence[ClaimRecord]]) -> None:
        self._config = config
        self._records = records

    @pytest.hookimpl(wrapper=True)
    def pytest_report_header(self) -> Generator[None, list[Any], list[Any]]:
        """Remove the line of pytest-benchmark if no option asks for results: its timer does not measure rounds."""
        lines = yield
        return lines if wants_results(self._config) else [line for line in lines if not str(line).startswith(HEADER)]

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self) -> Generator[None, object, object]:
        """Add the rounds before pytest-benchmark saves and compares its results."""
        if wants_results(self._config) and (records := self._records()):
            from pytest_dbcluster.reporting import pytest_benchmark

            pytest_benchmark.feed(self._config, records)
        return (yield)


def register(config: pytest.Config, records: Callable[[], Sequence[ClaimRecord]]) -> None:
    """Register the plugin if pytest-benchmark is active.

    Raises UsageError for a histogram without its library; otherwise pytest-benchmark would fail at the end of the run.
    """
    if config.pluginmanager.hasplugin("benchmark"):
        if getattr(config.option, "benchmark_histogram", None) and importlib.util.find_spec(DRAWS) is None:
            raise pytest.UsageError(fit_terminal(NO_HISTOGRAM, "ERROR: "))
        config.pluginmanager.register(Benchmarks(config, records), NAME)
