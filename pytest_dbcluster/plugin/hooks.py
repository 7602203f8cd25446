"""The pytest plugin: its hooks and fixtures, and how the verdict of a claim becomes the outcome of a test."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import sys
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from pytest_dbcluster import errors, wait
from pytest_dbcluster.formatting import ShownMessage, fit_terminal

if TYPE_CHECKING:
    from pytest_dbcluster.measuring.measurement import Measurement
    from pytest_dbcluster.plugin.fixture import Measure
    from pytest_dbcluster.plugin.session import DBSession
    from pytest_dbcluster.plugin.settings import Settings
    from pytest_dbcluster.plugin.xdist import Controller, Worker
    from pytest_dbcluster.reporting.records import ClaimRecord
    from pytest_dbcluster.spec import ReleaseName

SESSION = pytest.StashKey["DBSession"]()
SETTINGS = pytest.StashKey["Settings"]()
MEASUREMENTS = pytest.StashKey["list[list[Measurement]]"]()
FIXTURE = "measure"
INCONCLUSIVE = "dbcluster_inconclusive"
MESSAGE_ONLY = "dbcluster_said"  # the attribute of a report that pytest shows only by our message
MARKS = (
    "published(file, table=N, columns={name: column}, figures={metric: place}, sentence=N): the published measurement "
    "that a test repeats; its ratio and its sentence are printed next to the measured ratio",
    "releases(*names): the releases that a measuring test runs on without --db-release; without names, the specs of "
    "the test name their releases",
    "storage: claims on volumes with a limit of writes per second",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the ``--db-...`` options."""
    from pytest_dbcluster.plugin.command_line import add_options

    add_options(lambda title: parser.getgroup(title).addoption)


def pytest_load_initial_conftests(parser: pytest.Parser, args: list[str]) -> None:
    """Add what to write instead of an unknown option to pytest's error about it."""
    from pytest_dbcluster.plugin.command_line import hints

    parser.extra_info.update(hints(args))


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Register the marks, and the plugin's part for pytest-xdist in this process."""
    from pytest_dbcluster.plugin import benchmarks, grouping
    from pytest_dbcluster.plugin.collection import budgets, expected_time, own_provisioner

    benchmarks.leave_no_directory(config)
    controller = _begin_parallel(config)
    if worker_of(config) is None:
        benchmarks.register(config, lambda: _records(config, controller))
    for text in (budgets.MARK_HELP, expected_time.MARK_HELP, grouping.MARK_HELP, own_provisioner.MARK_HELP, *MARKS):
        config.addinivalue_line("markers", text)


def _records(config: pytest.Config, controller: Controller | None) -> Sequence[ClaimRecord]:
    """The claims of the run so far, in the process that the user started."""
    if controller:
        return controller.report.records if controller.report else ()
    made = config.stash[SESSION].report if SESSION in config.stash else None
    return getattr(made, "records", ())


def _begin_parallel(config: pytest.Config) -> Controller | None:
    """With pytest-xdist, register ``Worker`` in a worker and ``Controller`` in the process that starts the workers.

    Returns the Controller.
    """
    if hasattr(config, "workerinput"):
        from pytest_dbcluster.plugin.xdist import Worker
        from pytest_dbcluster.reporting.sinks import WORKER

        config.pluginmanager.register(Worker(config), WORKER)
    elif getattr(config.option, "tx", None) and config.option.dist != "no" and not config.option.collectonly:
        from pytest_dbcluster.plugin.xdist import Controller

        controller = Controller(config, lambda: settings(config))
        config.pluginmanager.register(controller)
        return controller
    return None


def worker_of(config: pytest.Config) -> Worker | None:
    """The ``Worker`` of this process; None outside a worker of pytest-xdist."""
    if not hasattr(config, "workerinput"):
        return None
    from pytest_dbcluster.reporting.sinks import WORKER

    return config.pluginmanager.get_plugin(WORKER)


def settings(config: pytest.Config) -> Settings:
    """The checked options of this run. Raises UsageError for a wrong option."""
    from pytest_dbcluster.plugin.settings import Settings

    if SETTINGS not in config.stash:
        try:
            checked = Settings.read(config.option, config.rootpath)
        except (errors.ConfigError, errors.Unsupported) as error:
            raise _usage_error(error) from None
        worker = worker_of(config)
        config.stash[SETTINGS] = checked.of_worker(worker.began, worker.directory.parent) if worker else checked
        limit = contextlib.ExitStack()
        limit.enter_context(wait.lock_limit(checked.lock_wait, "--db-wait"))
        config.add_cleanup(limit.close)
    return config.stash[SETTINGS]


def _usage_error(error: Exception | str) -> pytest.UsageError:
    """The error that ends a run before its tests; pytest writes ``ERROR: `` in front of it."""
    return pytest.UsageError(fit_terminal(str(error), "ERROR: "))


def session_of(config: pytest.Config) -> DBSession:
    """The clusters and results of this run; the first test that needs them creates them."""
    from pytest_dbcluster.plugin.session import DBSession

    if SESSION not in config.stash:
        if worker := worker_of(config):
            config.stash[SETTINGS] = dataclasses.replace(settings(config), results=worker.results)
        config.stash[SESSION] = DBSession(settings(config), config)
    return config.stash[SESSION]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Repeat a measuring test for each release of the run or its mark; a single release keeps its id."""
    if FIXTURE not in metafunc.fixturenames:
        return
    with contextlib.suppress(pytest.UsageError):  # raised again after collection, where pytest shows it properly
        names = _releases(metafunc)
        ids = [str(name) for name in names] if len(names) > 1 else [pytest.HIDDEN_PARAM]
        if names:
            metafunc.parametrize("db_release", names, ids=ids, indirect=True, scope="session")


def _releases(metafunc: pytest.Metafunc) -> Sequence[ReleaseName]:
    """The releases for which a test is repeated; none if the run has one release or the test names releases."""
    from pytest_dbcluster.spec import ReleaseName

    mark = metafunc.definition.get_closest_marker("releases")
    if mark and not mark.args:
        return ()
    if mark and not metafunc.config.option.db_release:
        return [ReleaseName.parse(name) for name in mark.args]
    return settings(metafunc.config).releases if len(metafunc.config.option.db_release or ()) > 1 else ()


def _measuring_tests(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    return [item for item in items if FIXTURE in getattr(item, "fixturenames", ())]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Sort tests so that those with shared clusters are neighbours; refuse python -O and reruns.

    With -O, Python skips assert statements. A repeated test would pass at some time by chance. Raises UsageError.
    """
    from pytest_dbcluster.plugin import grouping
    from pytest_dbcluster.plugin.collection import checks

    measuring, worker = _measuring_tests(items), worker_of(config)
    if not measuring:
        return
    try:
        _refuse(config, measuring)
    except pytest.UsageError as error:
        if worker is None:
            raise
        # xdist would replace a worker that raises. So the worker collects nothing, and the controller raises.
        worker.write_collection({}, refused=str(error))
        items.clear()
        return
    release = settings(config).releases[0]
    names = grouping.groups([grouping.keys(item, release) for item in measuring])
    group = dict(zip(measuring, names, strict=True))
    items[:] = grouping.sort_by_group(checks.by_cost(config, settings(config), items, group), group)
    if worker:
        worker.over = settings(config).run_over
        worker.write_collection(
            {item.nodeid: name for item, name in group.items()}, _estimate_lines(config, _measuring_tests(items))
        )


def _refuse(config: pytest.Config, measuring: Sequence[pytest.Item]) -> None:
    from pytest_dbcluster.plugin.collection import checks, own_provisioner

    try:
        if config.option.db_provisioner is None:
            chosen = own_provisioner.choose(measuring)
            config.stash[SETTINGS] = dataclasses.replace(settings(config), provisioner=chosen)
        checks.refuse(config, settings(config), measuring)
    except errors.ConfigError as error:
        raise _usage_error(error) from None


def _estimate_lines(config: pytest.Config, measuring: Sequence[pytest.Item]) -> list[str]:
    from pytest_dbcluster.plugin.collection import checks

    try:
        return checks.estimate_lines(config, settings(config), measuring)
    except errors.ConfigError as error:  # a wrong mark: pytest reports a collection even if it was refused
        raise _usage_error(error) from None


def pytest_report_collectionfinish(config: pytest.Config, items: list[pytest.Item]) -> list[str]:
    """Print the expected time of the measuring tests, and their results directory if another run uses the usual one.

    With ``--db-resume``, also print the existing answers.
    """
    if not (measuring := _measuring_tests(items)):
        return []
    more = [settings(config).moved]
    if config.option.db_resume and not config.option.collectonly:
        from pytest_dbcluster.reporting.resume import earlier

        found = earlier.of(config)
        more.append(found.line if found else "")
    return [fit_terminal(line) for line in (*_estimate_lines(config, measuring), *filter(None, more))]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Lock the results directory and handle signals, in a run that measures; other runs change nothing.

    Raises UsageError for a directory that is not writable. It is the first of these hooks, because another one prints
    the lines of ``pytest_report_collectionfinish``.
    """
    config = session.config
    if not _measuring_tests(session.items) or config.option.collectonly:
        return
    from pytest_dbcluster.plugin import results, signals
    from pytest_dbcluster.reporting.allure import allure_results

    signals.end_as_ctrl_c(config)
    if worker := worker_of(config):
        # The controller locks the directory only when all workers have collected.
        begins = functools.partial(allure_results.write_into, config) if allure_results.start(config) else _ignore
        worker.before_first_test = begins
        return
    try:
        own = settings(config)
        taken = results.begin(config, own.results, [item.nodeid for item in session.items], own.began)
    except errors.ConfigError as error:
        raise _usage_error(error) from None
    config.stash[SETTINGS] = dataclasses.replace(settings(config), results=taken.directory, moved=taken.line)


def _ignore(directory: Path) -> None:
    """Do nothing with the results directory."""


@pytest.fixture(scope="session")
def db_release(request: pytest.FixtureRequest) -> ReleaseName:
    """The release of the run, or of this repetition of the test."""
    asked: ReleaseName | None = getattr(request, "param", None)
    return asked or settings(request.config).releases[0]


@pytest.fixture(scope="session")
def db_profile(request: pytest.FixtureRequest) -> str:
    """The profile of the run, ``quick`` or ``paper``; suites choose their scale by it."""
    return settings(request.config).profile


@pytest.fixture
def measure(request: pytest.FixtureRequest, db_release: ReleaseName) -> Measure:
    """Measures workloads on clusters: one series of rounds for each cluster, and claims about two series.
    slow, fast = measure(workload, on=[spec, other_spec]) gives the series.
    curve = measure.sweep(workload, on=[spec, other_spec], threads=(1, 4, 16)) gives a curve. Assert claims about series
    of one call; the claim draws the rounds:
        fast.beats(slow, by=0.1)                     faster, here by more than 10 %
        new.no_slower_than(old, by=0.05)             slower by less than 5 %
        new.same_as(old, within=0.05)                neither is slower by 5 %
        four.scales(one, at_least=2)                 more than 2 times as fast
        ordered(slow, middle, fast)                  each is faster than the one before it
        fades((one, one_far), (many, many_far))      many_far loses less against many than one_far against one
        new.lower("fsyncs_per_commit", than=old)     a counter is lower
        new.against(old)                             not a claim: measures and prints the ratio; needs no assert
        curve.every(lambda slow, fast: fast.beats(slow))    a claim at each point of a curve
    done = measure.event(workload, Kill("writer"), on=spec, times=11) lets something happen under load:
        done.below("stall", 8)                       half of the stalls are below 8 s
    metric="p95" and the like: see Measure and Series of pytest_dbcluster. Annotate the fixture: measure: Measure.
    """  # noqa: D205  (pytest --fixtures prints the first paragraph)
    from pytest_dbcluster.plugin.fixture import Measure

    asked: list[list[Measurement]] = request.node.stash.setdefault(MEASUREMENTS, [])
    session = session_of(request.config)
    session.test_begins(request.node.nodeid)
    return Measure(session, db_release, request.node, asked)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Check after the body of a test that each measurement has a claim, and each verdict was read.

    Raises ConfigError. If another process keeps a lock for too long, the run ends with exit code 2.
    """
    try:
        result = yield
    except errors.LockHeld as error:
        _end_run(pyfuncitem.config, str(error))
    finally:
        for measurement in itertools.chain(*pyfuncitem.stash.get(MEASUREMENTS, [])):
            measurement.end(interrupted=isinstance(sys.exception(), KeyboardInterrupt))
        if SESSION in pyfuncitem.config.stash:
            pyfuncitem.config.stash[SESSION].test_ends()
    for asked in pyfuncitem.stash.get(MEASUREMENTS, []):
        if not any(measurement.claims.answers or measurement.drawn_without_claim for measurement in asked):
            raise errors.ConfigError(
                f"{pyfuncitem.nodeid} measured {asked[0].source.load} but makes no claim; "
                "add assert a.beats(b) or another claim"
            )
        answers = [answer for measurement in asked for answer in measurement.claims.answers]
        if unread := [answer.text for answer in answers if answer.asserted and not answer.read]:
            raise errors.ConfigError(
                f"{pyfuncitem.nodeid}: the test does not read the verdict of {', '.join(unread)}; assert it"
            )
    return result


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Report an inconclusive claim as skipped, shown as I (with --db-strict as failed), and Unsupported as skipped.

    Errors of the package and failed claims have a message without a traceback.
    """
    report = yield
    if FIXTURE in getattr(item, "fixturenames", ()):
        _tell_release(item, report)
        _tell_outcome(item, call, report)
    if call.excinfo is None or not call.excinfo.errisinstance((errors.ClaimFailed, errors.DBClusterError)):
        return report
    from pytest_dbcluster.plugin import run_file

    shown = run_file.shown_message(item.config, call.excinfo.value)
    strict = call.excinfo.errisinstance(errors.Inconclusive) and settings(item.config).strict
    if call.excinfo.errisinstance((errors.Inconclusive, errors.Unsupported)) and not strict:
        path, line, _ = item.location
        report.outcome = "skipped"
        report.longrepr = (path, (line or 0) + 1, f"Skipped: {shown}")
        if call.excinfo.errisinstance(errors.Inconclusive):
            report.user_properties.append((INCONCLUSIVE, str(call.excinfo.value)))
    else:
        report.longrepr = shown
        setattr(report, MESSAGE_ONLY, True)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(request: pytest.FixtureRequest) -> Generator[None, object, object]:
    """End the run as in a test, if another process keeps a lock for too long while a fixture measures."""
    try:
        return (yield)
    except errors.LockHeld as error:
        _end_run(request.config, str(error))


def _end_run(config: pytest.Config, why: str) -> NoReturn:
    """End the run as Ctrl-C does, so that it writes its results. pytest-xdist does not show the reason of a worker."""
    if worker_of(config):
        session_of(config).report.line(why, "red")
    pytest.exit(why, returncode=pytest.ExitCode.INTERRUPTED)


def _tell_release(item: pytest.Item, report: pytest.TestReport) -> None:
    """Add the release of a test to its report, for the matrix, and to its result of Allure.

    A test that names several releases has no single one.
    """
    from pytest_dbcluster.plugin import grouping
    from pytest_dbcluster.reporting.allure import allure_results
    from pytest_dbcluster.reporting.tables.matrix import RELEASE

    checked = settings(item.config)
    mark = item.get_closest_marker("releases")
    release = ""
    if mark is None or mark.args:
        chosen = grouping.params(item).get("db_release")
        release = str(chosen or checked.releases[0])
        report.user_properties.append((RELEASE, release))
    if report.when == "setup":  # before the body, and also for a test that is skipped
        allure_results.test_begins(item.config, item.nodeid, release, checked.seed)


def _tell_outcome(item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport) -> None:
    """Add the claims of a test to the report of its body, for ``run.json``, and of its teardown, for JUnit."""
    from pytest_dbcluster.plugin import junit, run_file

    claims = [answer for asked in item.stash.get(MEASUREMENTS, []) for one in asked for answer in one.claims.answers]
    made = call.when == "call" and any(answer.asserted and not answer.shown for answer in claims)
    if ended := run_file.outcome(call.excinfo and call.excinfo.value, claims=made):
        report.user_properties.append((run_file.OUTCOME, ended))
    if call.when == "teardown":
        setattr(report, junit.CLAIMS, junit.claims_of(claims))


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Show wrong input of a module, such as a ClusterSpec without nodes, only by file, line and message."""
    report = yield
    call = getattr(report, "call", None)
    if call is None or call.excinfo is None or not call.excinfo.errisinstance(errors.ConfigError):
        return report
    lines = [entry for entry in call.excinfo.traceback if entry.path == collector.path]
    where = f"{lines[-1].path.name}:{lines[-1].lineno + 1}: " if lines else ""
    report.longrepr = f"{where}{call.excinfo.value}"
    setattr(report, MESSAGE_ONLY, True)
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Fit our message to the terminal. It is done here, because workers of pytest-xdist send plain text."""
    _fit(report)


@pytest.hookimpl(tryfirst=True)
def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Fit our message to the terminal."""
    _fit(report)


def _fit(report: pytest.TestReport | pytest.CollectReport) -> None:
    if getattr(report, MESSAGE_ONLY, False):
        shown: Any = ShownMessage(
            str(report.longrepr)
        )  # pytest accepts any object with toterminal; its types do not say so
        report.longrepr = shown


def pytest_assertrepr_compare(op: str, left: object, right: object) -> list[str] | None:
    """Explain ``assert a.beats(b) is True``, which fails for every answer, and ``assert a == b`` of two series."""
    module = sys.modules.get("pytest_dbcluster.measuring.series")
    if module is None:
        return None
    answers = sys.modules.get("pytest_dbcluster.measuring.answer")
    if answers and isinstance(left, answers.Answer):
        return [f"{left!r} {op} {right!r}", "", f"an answer is neither True nor False: write assert {left.text}"]
    if isinstance(left, module.Series) and isinstance(right, module.Series):
        meant = f"{left.name}.same_as({right.name}, within=0.05)"
        return [f"{left!r} {op} {right!r}", "", f"two series are two objects: write a claim, such as assert {meant}"]
    return None


def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, str] | None:
    """Show I for an inconclusive test. The report of a module without collection has no ``user_properties``."""
    if any(name == INCONCLUSIVE for name, _ in getattr(report, "user_properties", ())):
        return "inconclusive", "I", "INCONCLUSIVE"
    return None


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print all verdicts, so that they are not lost, and then make the page."""
    if SESSION in config.stash:
        session = config.stash[SESSION]
        session.report.summary(terminalreporter)
        session.report.last_lines(terminalreporter, session.page())
        for line in session.report.github():
            terminalreporter.write_line(line)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the results, and stop every server of the run, also after an error or Ctrl-C."""
    if SESSION in session.config.stash:
        from pytest_dbcluster.plugin import results

        run = session.config.stash[SESSION]
        try:
            if worker_of(session.config) is None:
                results.measure_anchor(session, settings(session.config), run.report, run.group_ends)
            run.finish()
            results.judge_history(session, run.report)
        finally:
            run.close(ended=session.exitstatus == pytest.ExitCode.INTERRUPTED)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop every server of a run that never reached ``pytest_sessionfinish``."""
    if SESSION in config.stash:
        config.stash[SESSION].close(ended=True)
        del config.stash[SESSION]
