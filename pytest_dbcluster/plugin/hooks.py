"""The pytest plugin: options, the ``measure`` fixture, and what a verdict means for a test's outcome."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from pytest_dbcluster import errors

if TYPE_CHECKING:
    from pytest_dbcluster.measuring.measurement import Measurement
    from pytest_dbcluster.plugin.fixture import Measure
    from pytest_dbcluster.plugin.session import DBSession
    from pytest_dbcluster.plugin.settings import Settings
    from pytest_dbcluster.plugin.xdist import Worker
    from pytest_dbcluster.spec import ReleaseName

SESSION = pytest.StashKey["DBSession"]()
SETTINGS = pytest.StashKey["Settings"]()
MEASUREMENTS = pytest.StashKey["list[list[Measurement]]"]()
FIXTURE = "measure"
INCONCLUSIVE = "dbcluster_inconclusive"


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of a run, one group."""
    from pytest_dbcluster.plugin.command_line import add_options

    add_options(parser.getgroup("dbcluster", "performance claims about database clusters"))


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Register the marks, and what a run with several workers needs in this process."""
    from pytest_dbcluster.plugin import expected_time, grouping

    _begin_parallel(config)
    config.addinivalue_line("markers", expected_time.MARK_HELP)
    config.addinivalue_line("markers", grouping.MARK_HELP)
    config.addinivalue_line(
        "markers",
        "published(file, table=N, columns={name: column}, figures={metric: place}): the published measurement that a "
        "test repeats; its ratio is printed beside the measured one",
    )
    config.addinivalue_line(
        "markers",
        "releases(*names): the releases that a measuring test runs on when --db-release names none; without any name "
        "the test names its releases itself",
    )
    config.addinivalue_line("markers", "storage: claims on volumes whose writes a second are limited")


def _begin_parallel(config: pytest.Config) -> None:
    """With pytest-xdist: a worker's part, or that of the process that has workers."""
    if hasattr(config, "workerinput"):
        from pytest_dbcluster.plugin.xdist import Worker
        from pytest_dbcluster.reporting.report import WORKER

        config.pluginmanager.register(Worker(config), WORKER)
    elif getattr(config.option, "tx", None) and config.option.dist != "no" and not config.option.collectonly:
        from pytest_dbcluster.plugin.xdist import Controller

        config.pluginmanager.register(Controller(config, lambda: settings(config).results))


def worker_of(config: pytest.Config) -> Worker | None:
    """The part of a worker of pytest-xdist; None in a process of another kind."""
    if not hasattr(config, "workerinput"):
        return None
    from pytest_dbcluster.reporting.report import WORKER

    return config.pluginmanager.get_plugin(WORKER)


def settings(config: pytest.Config) -> Settings:
    """The checked options of this run; wrong ones are a usage error."""
    from pytest_dbcluster.plugin.settings import Settings

    if SETTINGS not in config.stash:
        try:
            found = Settings.read(config.option, config.rootpath)
        except (errors.ConfigError, errors.Unsupported) as error:
            raise pytest.UsageError(str(error)) from None
        worker = worker_of(config)
        config.stash[SETTINGS] = dataclasses.replace(found, began=worker.began) if worker else found
    return config.stash[SETTINGS]


def session_of(config: pytest.Config) -> DBSession:
    """The run's clusters and results; made when a test first needs them."""
    from pytest_dbcluster.plugin.session import DBSession

    if SESSION not in config.stash:
        config.stash[SESSION] = DBSession(settings(config), config)
    return config.stash[SESSION]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Repeat measuring tests for each release of the run or of their mark; a single one leaves the test ids alone."""
    if FIXTURE not in metafunc.fixturenames:
        return
    with contextlib.suppress(pytest.UsageError):  # raised again after collection, where pytest shows it as one
        names = _releases(metafunc)
        ids = [str(name) for name in names] if len(names) > 1 else [pytest.HIDDEN_PARAM]
        if names:
            metafunc.parametrize("db_release", names, ids=ids, indirect=True, scope="session")


def _releases(metafunc: pytest.Metafunc) -> Sequence[ReleaseName]:
    """What a test is repeated for; nothing where the run's one release will do, or the test names its own."""
    from pytest_dbcluster.spec import ReleaseName

    mark = metafunc.definition.get_closest_marker("releases")
    if mark and not mark.args:
        return ()
    if mark and not metafunc.config.option.db_release:
        return [ReleaseName.parse(name) for name in mark.args]
    return settings(metafunc.config).releases if len(metafunc.config.option.db_release or ()) > 1 else ()


def _measuring(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    return [item for item in items if FIXTURE in getattr(item, "fixturenames", ())]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put tests that share clusters together, and refuse what would make a verdict a lie: python -O and reruns."""
    from pytest_dbcluster.plugin import grouping

    measuring, worker = _measuring(items), worker_of(config)
    if not measuring:
        return
    try:
        _refuse(config, measuring)
        said = _expected(config, measuring)
    except pytest.UsageError as error:
        if worker is None:
            raise
        # Only workers collect, and one that raised would be replaced by another: it finds nothing, and says why.
        worker.collected({}, refused=str(error))
        items.clear()
        return
    release = settings(config).releases[0]
    names = grouping.groups([grouping.keys(item, release) for item in measuring])
    group = dict(zip(measuring, names, strict=True))
    items[:] = grouping.together(items, group)
    if worker:
        worker.collected({item.nodeid: name for item, name in group.items()}, said)


def _refuse(config: pytest.Config, measuring: Sequence[pytest.Item]) -> None:
    settings(config)
    if not __debug__:
        raise pytest.UsageError("python -O removes assert statements, so no claim would be read: run without -O")
    for item in measuring:
        if item.get_closest_marker("flaky") or getattr(config.option, "reruns", None):
            raise pytest.UsageError(
                f"{item.nodeid}: a measuring test is not rerun until it is green; drop the flaky mark or --reruns"
            )


def _expected(config: pytest.Config, measuring: Sequence[pytest.Item]) -> list[str]:
    """How long the measuring tests will take."""
    from pytest_dbcluster.plugin import expected_time

    try:
        return expected_time.lines(expected_time.expected(measuring, settings(config).profile), settings(config).budget)
    except errors.ConfigError as error:
        raise pytest.UsageError(str(error)) from None


def pytest_report_collectionfinish(config: pytest.Config, items: list[pytest.Item]) -> list[str]:
    """Say how long the measuring tests will take."""
    measuring = _measuring(items)
    return _expected(config, measuring) if measuring else []


def pytest_collection_finish(session: pytest.Session) -> None:
    """A run that measures begins with no results of the one before, and writes Allure's; nothing else does so."""
    config = session.config
    if _measuring(session.items) and not config.option.collectonly:
        from pytest_dbcluster.reporting import allure, results_directory

        directory, in_front = settings(config).results, not hasattr(config, "workerinput")
        if in_front:
            results_directory.clear(directory)
        allure.start(config, directory, clean=in_front)


@pytest.fixture(scope="session")
def db_release(request: pytest.FixtureRequest) -> ReleaseName:
    """The release of the run, or of this repetition."""
    asked: ReleaseName | None = getattr(request, "param", None)
    return asked or settings(request.config).releases[0]


@pytest.fixture(scope="session")
def db_profile(request: pytest.FixtureRequest) -> str:
    """The profile of the run, quick or paper: a suite chooses its scales by it."""
    return settings(request.config).profile


@pytest.fixture
def measure(request: pytest.FixtureRequest, db_release: ReleaseName) -> Measure:
    """``measure(workload, on=[spec, ...])``: a lazy series for each spec; claims about them draw the rounds.

    ``measure.sweep(workload, on=[spec, ...], threads=(1, 4, 16))`` is a curve of them. More in ``fixture.Measure``.
    """
    from pytest_dbcluster.plugin.fixture import Measure

    asked: list[list[Measurement]] = request.node.stash.setdefault(MEASUREMENTS, [])
    session = session_of(request.config)
    session.test_begins(db_release)
    return Measure(session, db_release, request.node, asked)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """After the test's own body: what was measured must have been claimed, and every verdict read."""
    try:
        result = yield
    finally:
        if SESSION in pyfuncitem.config.stash:
            pyfuncitem.config.stash[SESSION].test_ends()
    for asked in pyfuncitem.stash.get(MEASUREMENTS, []):
        if not any(measurement.answers or measurement.drawn_without_claim for measurement in asked):
            raise errors.ConfigError(
                f"{pyfuncitem.nodeid} measured {asked[0].source.load} and claims nothing; "
                "end it with assert a.beats(b) or another claim"
            )
        answers = [answer for measurement in asked for answer in measurement.answers]
        if unread := [answer.text for answer in answers if answer.asserted and not answer.read]:
            raise errors.ConfigError(f"{pyfuncitem.nodeid}: nobody read the verdict of {', '.join(unread)}; assert it")
    return result


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """An inconclusive claim is neither pass nor failure: skipped, shown as I; what this machine lacks is a skip."""
    report = yield
    if FIXTURE in getattr(item, "fixturenames", ()):
        _tell_release(item, report)
    if call.excinfo is None or (call.excinfo.errisinstance(errors.Inconclusive) and settings(item.config).strict):
        return report
    if call.excinfo.errisinstance((errors.Inconclusive, errors.Unsupported)):
        path, line, _ = item.location
        report.outcome = "skipped"
        report.longrepr = (path, (line or 0) + 1, f"Skipped: {call.excinfo.value}")
        if call.excinfo.errisinstance(errors.Inconclusive):
            report.user_properties.append((INCONCLUSIVE, str(call.excinfo.value)))
    elif call.excinfo.errisinstance((errors.ClaimFailed, errors.DBClusterError)):
        report.longrepr = str(call.excinfo.value)
    return report


def _tell_release(item: pytest.Item, report: pytest.TestReport) -> None:
    """The release that a test measures, for the matrix; a test that names its releases itself has no one of them."""
    from pytest_dbcluster.reporting.tables.matrix import RELEASE

    mark = item.get_closest_marker("releases")
    if mark is None or mark.args:
        chosen = getattr(getattr(item, "callspec", None), "params", {}).get("db_release")
        report.user_properties.append((RELEASE, str(chosen or settings(item.config).releases[0])))


def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, str] | None:
    """I for inconclusive. A module that could not be collected has a report of another kind."""
    if any(name == INCONCLUSIVE for name, _ in getattr(report, "user_properties", ())):
        return "inconclusive", "I", "INCONCLUSIVE"
    return None


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """The closing table."""
    if SESSION in config.stash:
        config.stash[SESSION].report.summary(terminalreporter)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the results, and end every server of the run, whatever ended the tests."""
    if SESSION in session.config.stash:
        try:
            session.config.stash[SESSION].finish()
        finally:
            session.config.stash[SESSION].close()


def pytest_unconfigure(config: pytest.Config) -> None:
    """The same for a run that did not come to its end."""
    if SESSION in config.stash:
        config.stash[SESSION].close()
        del config.stash[SESSION]
