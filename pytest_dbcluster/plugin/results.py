"""The results directory of this run: locked when the tests are known, released when pytest ends."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_dbcluster.errors import DBClusterError
from pytest_dbcluster.plugin import junit, run_file
from pytest_dbcluster.redaction import redact
from pytest_dbcluster.reporting import results_directory, results_lock
from pytest_dbcluster.reporting.allure import allure_results
from pytest_dbcluster.reporting.documents import run_recorder
from pytest_dbcluster.reporting.results_lock import ResultsLock
from pytest_dbcluster.reporting.resume import earlier
from pytest_dbcluster.system.tracing import recorder
from pytest_dbcluster.system.tracing.recorder import Recorder, span
from pytest_dbcluster.system.tracing.trace_file import TraceFile

if TYPE_CHECKING:
    from pytest_dbcluster.plugin.settings import Settings
    from pytest_dbcluster.reporting.sinks import Sink

TRACE = "--db-trace"
DECIDED = (0, 1)  # exit codes of a run whose tests all ran


def begin(config: Any, asked: Path, selected: Collection[str], began: float) -> ResultsLock:
    """Lock the results directory ``asked``, or the next free one, clear it, and begin ``run.json`` and Allure's files.

    With ``--db-resume`` it keeps files with answers, and does not use another directory. selected: the node ids of the
    tests to run. began: the start of the run by ``time.monotonic``. Only one process of a run calls this. Raises
    ConfigError for a directory or a trace that is not writable, or that the run cannot continue.
    """
    recording = contextlib.ExitStack()
    recording.enter_context(recorder.tracing_to(trace_of(config), TRACE, "pytest", began))
    config.add_cleanup(recording.close)
    with_allure = allure_results.start(config)
    resume = config.option.db_resume
    clear: list[Callable[[Path], None]] = [results_directory.clear, run_recorder.clear]
    if resume:
        clear = [functools.partial(earlier.begin, config)]
    if with_allure:
        clear.append(functools.partial(allure_results.clear, resume=resume))
    taken = results_lock.take(asked, clear, alone=resume)
    config.add_cleanup(taken.release)
    if resume and earlier.of(config) is None:  # on a full disk nothing was prepared, but we can read answers
        earlier.begin(config, taken.directory, tidy=False)
    run_file.begin(config, taken.directory, selected, earlier.of(config))
    junit.begin(config)
    if with_allure:
        allure_results.write_into(config, taken.directory)
    return taken


def trace_of(config: Any) -> Path | None:
    """The file of ``--db-trace``; None without one."""
    return Path(config.option.db_trace) if config.option.db_trace else None


def record_worker(config: Any, worker: str, began: float) -> Recorder:
    """Record the spans of a worker of pytest-xdist until it ends. began: the start of the run."""
    file = trace_of(config)
    recording = contextlib.ExitStack()
    config.add_cleanup(recording.close)
    return recording.enter_context(recorder.recording(TraceFile(file, worker) if file else None, began))


def measure_anchor(session: Any, checked: Settings, report: Any, stop: Callable[[], None] = lambda: None) -> None:
    """Measure the anchor of a run with a history, unless the run was interrupted; an error becomes a line.

    stop: stops the run's servers first, because an idle server that uses CPU time would slow the anchor.
    """
    if not session.config.option.db_history or not report.measured or session.exitstatus not in DECIDED:
        return
    from pytest_dbcluster.testbed import anchor

    stop()
    try:
        with span("anchor"):
            report.anchor = anchor.measure(checked.provisioner, checked.images, report.line)
    except DBClusterError as error:
        report.line(redact(f"no anchor, so the history compares only ratios: {error}"))
    except KeyboardInterrupt:
        report.line("no anchor, so the history compares only ratios: interrupted")


def judge_history(session: Any, report: Sink) -> None:
    """With ``--db-history-strict``, fail a run in which a claim differs from its history."""
    if report.drifted and session.config.option.db_history_strict and not session.exitstatus:
        session.exitstatus = 1  # pytest.ExitCode.TESTS_FAILED
