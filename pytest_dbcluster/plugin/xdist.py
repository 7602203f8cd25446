"""Scheduling: pytest-xdist with measuring tests. Every cluster on one worker, one report in the process in front.

A worker collects, and leaves what it knows of its tests in a file before xdist hears of them; the controller collects
nothing, and reads that. While a test runs its worker sends messages as test reports of a kind of their own, which is
the one way on which xdist has no opinion.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import secrets
import shutil
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

from pytest_dbcluster.reporting import allure, results_directory, schema
from pytest_dbcluster.reporting.report import Report
from pytest_dbcluster.system import machine_lock, worker_files

INPUT = "dbcluster"  # what a worker is given
OVERRIDDEN, HELD = "dbcluster_overridden", "dbcluster_held"  # what it gives at its end
WHEN = "dbcluster"  # of a report that is a message


@dataclasses.dataclass
class Collected:
    """What a worker knows of the tests that it has collected.

    group: of each measuring test, by node id. expected: the lines about the time that they take. refused: why the run
    cannot begin.
    """

    group: Mapping[str, str]
    expected: Sequence[str] = ()
    refused: str = ""


class Worker:
    """The part of a worker."""

    def __init__(self, config: pytest.Config) -> None:
        given: Mapping[str, Any] = config.workerinput[INPUT]  # type: ignore[attr-defined]
        name: str = config.workerinput["workerid"]  # type: ignore[attr-defined]
        self.directory = Path(given["directory"]) / name
        self.began: float = given["began"]
        self.overridden: list[str] = []
        self.group_ends: Callable[[], None] = lambda: None  # called between the tests of two groups
        self._config = config
        self._item: pytest.Item | None = None
        self._group: Mapping[str, str] = {}
        self._held: list[bytes] = []  # messages while no test runs
        config.option.db_seed = given["seed"]
        if hasattr(config.option, "clean_alluredir"):
            config.option.clean_alluredir = (
                False  # https://github.com/allure-framework/allure-python: each worker would
            )

    def collected(self, group: Mapping[str, str], expected: Sequence[str] = (), *, refused: str = "") -> None:
        """Tell the controller, which looks when xdist has the node ids of this worker."""
        self._group = group
        found = Collected(group, expected, refused)
        self.directory.with_suffix(".json").write_text(json.dumps(dataclasses.asdict(found)))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> Generator[None, object, object]:
        """Messages belong to the test that runs; one that does not measure takes a turn beside those that do."""
        self._item = item
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
        """The machine's: any test takes cores, which the rounds of other workers need."""
        return machine_lock.this().turn(machine_lock.BUILDING, progress=self._line)

    def _line(self, text: str) -> None:
        self.send(schema.message(schema.Message("line", text)))

    def send(self, message: bytes) -> None:
        """A message to the controller. Between two tests it waits for the next one, or for the end.

        After a test's own end junitxml would take it for the beginning of another test.
        """
        if self._item is None:
            self._held.append(message)
            return
        report = pytest.TestReport(self._item.nodeid, self._item.location, {}, "passed", None, WHEN)  # type: ignore[arg-type]
        report.__dict__[INPUT] = message
        self._config.hook.pytest_runtest_logreport(report=report)

    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """A message is no result."""
        return ("", "", "") if report.when == WHEN else None

    def pytest_sessionfinish(self) -> None:
        """What xdist takes along at the end; the lists are filled until then."""
        self._config.workeroutput |= {OVERRIDDEN: self.overridden, HELD: self._held}  # type: ignore[attr-defined]


class Controller:
    """The part of the process that the user started."""

    def __init__(self, config: pytest.Config, results: Callable[[], Path]) -> None:
        self.report: Report | None = None
        self._config = config
        self._results = results
        self._seed = secrets.randbelow(10**6) if config.option.db_seed is None else config.option.db_seed
        self._began = time.monotonic()
        self._directory = worker_files.make()
        self._group: Mapping[str, str] | None = None
        self._overridden: list[str] = []

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """One seed and one beginning for all workers; a directory that they share."""
        given = {"directory": str(self._directory), "began": self._began, "seed": self._seed}
        node.workerinput[INPUT] = given

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any) -> None:
        """The first worker that has collected says what is going to be measured. Raises UsageError when it refuses."""
        if self._group is not None:
            return
        said = self._directory / f"{node.gateway.id}.json"
        found = Collected(**json.loads(said.read_text())) if said.exists() else Collected({})
        if found.refused:
            raise pytest.UsageError(found.refused)
        self._group = found.group
        if found.group:
            self.report = Report(self._config, self._results())
            results_directory.clear(self._results())
            allure.start(self._config, self._results())
            for line in found.expected:
                self.report.line(line)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> Any:
        """Ours for ``-n`` alone; who says ``--dist`` wants something else."""
        if config.getvalue("dist") != "load":
            return None
        others = config.pluginmanager.subset_hook_caller("pytest_xdist_make_scheduler", [self])
        ours = ClusterScheduling(config, log, lambda: self._group or {})
        return Chosen(ours, others(config=config, log=log), lambda: bool(self._group))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A message of a worker."""
        if report.when == WHEN and self.report:
            self.report.received(report.node.gateway.id, report.__dict__[INPUT])
            report.__dict__[INPUT] = b""

    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """A message is no result."""
        return ("", "", "") if getattr(report, "when", None) == WHEN else None

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """What a worker gives at its end; one that crashed gives nothing."""
        given = getattr(node, "workeroutput", None) or {}
        self._overridden += given.get(OVERRIDDEN, [])
        if self.report:
            for message in given.get(HELD, []):
                self.report.received(node.gateway.id, message)

    def pytest_sessionfinish(self) -> None:
        """Write the results of all workers."""
        if self.report:
            self.report.sort(list(self._group or ()))
            self.report.finish(self._overridden)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """The closing table."""
        if self.report:
            self.report.summary(terminalreporter)

    def pytest_unconfigure(self) -> None:
        """Nothing is left of the shared directory."""
        shutil.rmtree(self._directory, ignore_errors=True)


class ClusterScheduling(LoadScopeScheduling):  # type: ignore[misc]
    """Tests of a group go to one worker; each of the others is a group of its own."""

    def __init__(self, config: pytest.Config, log: Any, group: Callable[[], Mapping[str, str]]) -> None:
        super().__init__(config, log)
        self._group = group

    def _split_scope(self, nodeid: str) -> str:
        return self._group().get(nodeid, nodeid)

    def remove_node(self, node: Any) -> str | None:
        """A worker is gone: its tests go to others, but for the one that it was at.

        xdist 3.8 gives that one to the next worker as well, which then crashes in its turn.
        """
        work: dict[str, dict[str, bool]] = self.assigned_work.pop(node)
        left = [(unit, nodeid) for unit in work.values() for nodeid, done in unit.items() if not done]
        if not left:
            return None
        unit, crashed = left[0]
        unit[crashed] = True
        self.workqueue.update({scope: tests for scope, tests in work.items() if not all(tests.values())})
        for other in self.assigned_work:
            self._reschedule(other)
        return crashed


class Chosen:
    """A scheduler that is chosen when the tests are known: ours where any of them measures, else the usual one."""

    def __init__(self, ours: Any, usual: Any, measures: Callable[[], bool]) -> None:
        self._ours, self._usual, self._measures = ours, usual, measures
        self._both = [usual, ours]

    def add_node(self, node: Any) -> None:
        """A worker is there."""
        for one in self._both:
            one.add_node(node)

    def add_node_collection(self, node: Any, collection: Sequence[str]) -> None:
        """A worker has collected."""
        for one in self._both:
            one.add_node_collection(node, collection)

    def remove_node(self, node: Any) -> str | None:
        """A worker is gone; the test that it was at."""
        said: dict[int, str | None] = {id(one): one.remove_node(node) for one in self._both}
        return said[id(self._current)]

    def schedule(self) -> None:
        """All have collected: from now on there is one scheduler."""
        if len(self._both) > 1:
            self._both = [self._current]
        self._current.schedule()

    @property
    def _current(self) -> Any:
        return self._ours if self._measures() else self._usual

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """The name of it is shown with -v."""
        return type(self._current)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._current, name)
