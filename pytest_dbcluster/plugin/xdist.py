"""Measuring tests with pytest-xdist: each group of tests runs on one worker, and one report is in the controller.

The controller is the process that the user started; it does not collect tests. A worker collects, and writes the groups
of its tests to a file before xdist gets the node ids. The controller reads this file. While a test runs, its worker
sends messages as test reports with another ``when``. xdist passes such reports on unchanged.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import queue
import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.formatting import fit_terminal
from pytest_dbcluster.plugin import results, run_file, settings, signals
from pytest_dbcluster.plugin.settings import Settings
from pytest_dbcluster.plugin.signals import EndingSignals
from pytest_dbcluster.reporting import unwritten
from pytest_dbcluster.reporting.documents import messages
from pytest_dbcluster.reporting.report import Report
from pytest_dbcluster.reporting.resume import earlier
from pytest_dbcluster.system import machine_lock, worker_files
from pytest_dbcluster.system.tracing import recorder
from pytest_dbcluster.system.tracing.recorder import Recorder

INPUT = "dbcluster"  # key of ``workerinput``, and of the message in a report
OVERRIDDEN, HELD, UNWRITTEN, SECONDS = (
    "dbcluster_overridden",
    "dbcluster_held",
    "dbcluster_unwritten",
    "dbcluster_seconds",
)  # keys of ``workeroutput``
RESULTS = "results"  # the file in the shared directory that names the results directory
WHEN = "dbcluster"  # the ``when`` of a report that is a message
EQUAL = "\0"  # stands before the number that distinguishes tests with equal node ids


@dataclasses.dataclass
class CollectedTests:
    """The tests that a worker collected."""

    group: Mapping[str, str]
    """Node id of each measuring test -> the name of its group."""

    expected: Sequence[str] = ()
    """The lines about the expected time."""

    refused: str = ""
    """Why the run cannot begin; empty if it can."""


class Worker:
    """The plugin in a worker process."""

    def __init__(self, config: pytest.Config) -> None:
        given: Mapping[str, Any] = config.workerinput[INPUT]  # type: ignore[attr-defined]
        name: str = config.workerinput["workerid"]  # type: ignore[attr-defined]
        self.directory = Path(given["directory"]) / name
        self.began: float = given["began"]
        self.overridden: list[str] = []
        self.group_ends: Callable[[], None] = lambda: None  # called after the last test of a group
        self.over: Callable[[], str] = lambda: ""  # returns why the run must not wait any more
        # Called with the results directory of the run, before the first test.
        self.before_first_test: Callable[[Path], None] = lambda _: None
        self._config = config
        self._item: pytest.Item | None = None
        self._group: Mapping[str, str] = {}
        self._held: list[bytes] = []  # messages to send when the next test runs
        self._begun = False
        self._recorded: Recorder | None = None
        config.option.db_seed = given["seed"]
        setattr(config.option, settings.DRAWN_SEED, not given["fixed_seed"])
        if hasattr(config.option, "clean_alluredir"):
            config.option.clean_alluredir = (
                False  # each worker would clean it: https://github.com/allure-framework/allure-python
            )

    @property
    def results(self) -> Path:
        """The results directory of the run; it exists when the first test begins."""
        return Path((self.directory.parent / RESULTS).read_text())

    def write_collection(self, group: Mapping[str, str], expected: Sequence[str] = (), *, refused: str = "") -> None:
        """Write the file that the controller reads when xdist has the node ids of this worker."""
        self._group = group
        collected = CollectedTests(group, expected, refused)
        self.directory.with_suffix(".json").write_text(json.dumps(dataclasses.asdict(collected)))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> Generator[None, object, object]:
        """Send the held messages with this test, and end the clusters after the last test of a group.

        If other tests of the run measure, a test that does not measure waits for its turn.
        """
        self._item = item
        if self._group and not self._begun:
            self._begun = True
            self._recorded = results.record_worker(self._config, self.directory.name, self.began)
            self.before_first_test(self.results)
        held, self._held[:] = list(self._held), []
        for message in held:
            self.send(message)
        group = self._group.get(item.nodeid)
        try:
            with self._turn() if self._group and group is None else contextlib.nullcontext():
                result = yield
        finally:
            self._item = None
        if group is not None and nextitem is not None and self._group.get(nextitem.nodeid) != group:
            self.group_ends()
        return result

    def _turn(self) -> AbstractContextManager[None]:
        """The machine's lock for a test that does not measure, because it uses cores that rounds need."""
        return machine_lock.Turns(machine_lock.this(), progress=self._line, over=self.over).finishing()

    def _line(self, text: str) -> None:
        self.send(messages.encode(messages.Message("line", text)))

    def send(self, message: bytes) -> None:
        """Send a message to the controller; between two tests, hold it until the next one or the worker's end.

        junitxml would treat a report after the end of a test as the beginning of another test.
        """
        if self._item is None:
            self._held.append(message)
            return
        report = pytest.TestReport(self._item.nodeid, self._item.location, {}, "passed", None, WHEN)  # type: ignore[arg-type]
        report.__dict__[INPUT] = message
        self._config.hook.pytest_runtest_logreport(report=report)

    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """A message is not a result."""
        return ("", "", "") if report.when == WHEN else None

    def pytest_sessionfinish(self) -> None:
        """Give xdist the held messages, overridden options and unwritten files, for the controller."""
        output = {OVERRIDDEN: self.overridden, HELD: self._held, UNWRITTEN: unwritten.of(self._config).reasons}
        output[SECONDS] = (
            self._recorded.seconds if self._recorded else {}
        )  # xdist reads it after the servers have stopped
        self._config.workeroutput |= output  # type: ignore[attr-defined]


class Controller:
    """The plugin in the controller, the process that the user started."""

    def __init__(self, config: pytest.Config, checked: Callable[[], Settings]) -> None:
        self.report: Report | None = None
        self._config = config
        self._settings = checked
        self._fixed_seed = config.option.db_seed is not None
        self._seed = config.option.db_seed if self._fixed_seed else settings.random_seed()
        self._began = time.monotonic()
        self._directory = worker_files.make()
        self._group: Mapping[str, str] | None = None
        self._overridden: list[str] = []
        self._signals: EndingSignals | None = None
        self._nodes: list[Any] = []

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Give each worker the same seed, the same start time and the shared directory."""
        given = {"directory": str(self._directory), "began": self._began, "seed": self._seed}
        given["fixed_seed"] = self._fixed_seed
        node.workerinput[INPUT] = given
        self._nodes.append(node)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: Sequence[str]) -> None:
        """Read the groups from the file of the first worker that has collected. Raises UsageError if it refuses."""
        if self._group is not None:
            return
        path = self._directory / f"{node.gateway.id}.json"
        collected = CollectedTests(**json.loads(path.read_text())) if path.exists() else CollectedTests({})
        if collected.refused:
            raise pytest.UsageError(collected.refused)
        self._group = collected.group
        if collected.group:
            self._signals = signals.end_as_ctrl_c(self._config)
            try:
                taken = results.begin(self._config, self._settings().results, ids, self._began)
            except ConfigError as error:
                raise pytest.UsageError(fit_terminal(str(error), "ERROR: ")) from None
            (self._directory / RESULTS).write_text(str(taken.directory))
            self.report = Report(self._config, taken.directory)
            moved = [taken.line] if taken.line else []
            self._overridden += moved
            found = earlier.of(self._config)
            for line in (*collected.expected, *moved, *([found.line] if found else [])):
                self.report.line(line)

    @pytest.hookimpl(tryfirst=True)
    def pytest_keyboard_interrupt(self) -> None:
        """Pass SIGTERM and SIGHUP on to the workers, which end their tests and servers.

        Ctrl-C at a terminal reaches them without us. xdist itself would wait 5 s before it interrupts them.
        """
        if self._signals is None or not self._signals.name:
            return
        for node in self._nodes:
            process = getattr(getattr(node.gateway, "_io", None), "popen", None)  # None for a worker on another machine
            if process is not None and process.poll() is None:
                process.send_signal(signal.SIGTERM)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> Any:
        """Our scheduler for ``-n`` without ``--dist``; another ``--dist`` chooses another scheduler."""
        if config.getvalue("dist") != "load":
            return None
        if self._settings().run_budget is not None:  # xdist would begin with the largest groups
            config.option.loadscopereorder = False
        others = config.pluginmanager.subset_hook_caller("pytest_xdist_make_scheduler", [self])
        ours = ClusterScheduling(config, log, lambda: self._group or {})
        return SchedulerChoice(ours, others(config=config, log=log), lambda: bool(self._group))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Pass a worker's message on to the report."""
        if report.when == WHEN and self.report:
            with self._signals.hold() if self._signals else contextlib.nullcontext():
                self.report.receive(report.node.gateway.id, report.__dict__[INPUT])
            report.__dict__[INPUT] = b""

    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """A message is not a result."""
        return ("", "", "") if getattr(report, "when", None) == WHEN else None

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Read the ``workeroutput`` of a worker that ended; a worker that crashed has none."""
        given = getattr(node, "workeroutput", None) or {}
        self._overridden += given.get(OVERRIDDEN, [])
        unwritten.of(self._config).reasons |= given.get(UNWRITTEN, {})
        if recorded := recorder.current():
            recorded.add_worker(given.get(SECONDS, {}))
        if self.report:
            for message in given.get(HELD, []):
                self.report.receive(node.gateway.id, message)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the results of all workers. xdist has already ended them and received their reports."""
        self._receive_late()
        if self.report:
            for node in self._nodes:
                self.report.collect(self._directory / node.gateway.id)
            self.report.sort(list(self._group or ()))
            results.measure_anchor(session, self._settings(), self.report)
            run_file.finish(session)
            self.report.finish([*self._overridden, *run_file.not_run_lines(self._config)])
            results.judge_history(session, self.report)
            run_file.note_time(self._config)

    def _receive_late(self) -> None:
        """Pass on the reports in xdist's queue: xdist does not read them after an interruption of the run."""
        late = getattr(self._config.pluginmanager.getplugin("dsession"), "queue", None)
        while late is not None:
            try:
                event, given = late.get_nowait()
            except queue.Empty:
                return
            if event == "testreport":
                given["rep"].node = given["node"]
                self._config.hook.pytest_runtest_logreport(report=given["rep"])
            elif event == "workerfinished":
                self.pytest_testnodedown(given["node"])

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print all verdicts; then make the page."""
        if self.report:
            self.report.summary(terminalreporter)
            self.report.last_lines(terminalreporter, self.report.page())
            for line in self.report.github():
                terminalreporter.write_line(line)

    def pytest_unconfigure(self) -> None:
        """Remove the shared directory."""
        shutil.rmtree(self._directory, ignore_errors=True)


class ClusterScheduling(LoadScopeScheduling):  # type: ignore[misc]
    """Schedules all tests of a group on one worker; each other test is a separate group."""

    def __init__(self, config: pytest.Config, log: Any, group: Callable[[], Mapping[str, str]]) -> None:
        super().__init__(config, log)
        self._group = group

    def add_node_collection(self, node: Any, collection: Sequence[str]) -> None:
        """Number equal node ids, because xdist would run only one test of them."""
        seen: Counter[str] = Counter()
        numbered = []
        for nodeid in collection:
            numbered.append(f"{nodeid}{EQUAL}{seen[nodeid]}" if seen[nodeid] else nodeid)
            seen[nodeid] += 1
        super().add_node_collection(node, numbered)

    def _split_scope(self, nodeid: str) -> str:
        return self._group().get(nodeid, nodeid)

    def remove_node(self, node: Any) -> str | None:
        """Give the tests of a lost worker to others, except the test that it was running, and return that test.

        xdist 3.8 would give the running test to the next worker, which would crash too. A worker that was interrupted,
        or that waited for too long, did not crash: its tests have no result.
        """
        work: dict[str, dict[str, bool]] = self.assigned_work.pop(node)
        left = [(unit, nodeid) for unit in work.values() for nodeid, done in unit.items() if not done]
        ended = getattr(node, "workeroutput", None) or {}
        if not left or ended.get("exitstatus") == pytest.ExitCode.INTERRUPTED:
            return None
        unit, crashed = left[0]
        unit[crashed] = True
        self.workqueue.update({scope: tests for scope, tests in work.items() if not all(tests.values())})
        for other in self.assigned_work:
            self._reschedule(other)
        return crashed.partition(EQUAL)[0]


class SchedulerChoice:
    """Chooses the scheduler when the tests are known: ours if a test measures, otherwise the usual scheduler."""

    def __init__(self, ours: Any, usual: Any, measures: Callable[[], bool]) -> None:
        self._ours, self._usual, self._measures = ours, usual, measures
        self._both = [usual, ours]

    def add_node(self, node: Any) -> None:
        """Tell both schedulers about a new worker."""
        for scheduler in self._both:
            scheduler.add_node(node)

    def add_node_collection(self, node: Any, collection: Sequence[str]) -> None:
        """Tell both schedulers about the tests that a worker collected."""
        for scheduler in self._both:
            scheduler.add_node_collection(node, collection)

    def remove_node(self, node: Any) -> str | None:
        """Remove a lost worker; return the test that it was running."""
        running: dict[int, str | None] = {id(scheduler): scheduler.remove_node(node) for scheduler in self._both}
        return running[id(self._current)]

    def schedule(self) -> None:
        """Start the tests; all workers have collected, so keep only the chosen scheduler."""
        if len(self._both) > 1:
            self._both = [self._current]
        self._current.schedule()

    @property
    def _current(self) -> Any:
        return self._ours if self._measures() else self._usual

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """The class of the chosen scheduler; pytest shows its name with -v."""
        return type(self._current)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._current, name)
