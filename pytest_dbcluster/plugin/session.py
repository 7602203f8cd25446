"""DBSession: one run with its provisioner, its clusters and its results."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import math
import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pytest_dbcluster import redaction
from pytest_dbcluster.clusters import kept
from pytest_dbcluster.clusters.dialects.lookup import numbers
from pytest_dbcluster.errors import ConfigError, DBClusterError, ProvisionError, Unsupported
from pytest_dbcluster.hosts import runs
from pytest_dbcluster.hosts.kept_logs import KeptLogs
from pytest_dbcluster.hosts.provisioner import Keeps
from pytest_dbcluster.measuring.answer import Answer
from pytest_dbcluster.measuring.capacity.capacity_series import AtRate
from pytest_dbcluster.measuring.curve import Curve
from pytest_dbcluster.measuring.drawing.levels import LevelPlan
from pytest_dbcluster.measuring.drawing.rules import Rules
from pytest_dbcluster.measuring.event_series import plan as event_plan
from pytest_dbcluster.measuring.measurement import Measurement
from pytest_dbcluster.plugin import run_file
from pytest_dbcluster.plugin import settings as run_settings
from pytest_dbcluster.plugin.calls.measure_call import MeasureCall
from pytest_dbcluster.plugin.collection import budgets
from pytest_dbcluster.plugin.fixture import Done
from pytest_dbcluster.plugin.settings import Settings
from pytest_dbcluster.reporting import report, results_directory, schema, sinks
from pytest_dbcluster.reporting.documents.machine import machine
from pytest_dbcluster.reporting.documents.run_document import MachineDocument
from pytest_dbcluster.reporting.published import Published
from pytest_dbcluster.reporting.recording import About, Asked, Curves, claim_record, fingerprint, releases
from pytest_dbcluster.reporting.records import CurveRecord
from pytest_dbcluster.reporting.resume import earlier
from pytest_dbcluster.reporting.resume.digests import Conditions
from pytest_dbcluster.reporting.resume.earlier_tries import EarlierTries
from pytest_dbcluster.reporting.resume.recall import CurveRecall, Recall, earlier_rounds
from pytest_dbcluster.rounds.capacity.objective import Objective
from pytest_dbcluster.spec import ClusterSpec, ReleaseName
from pytest_dbcluster.system.tracing.recorder import span
from pytest_dbcluster.testbed import comparability
from pytest_dbcluster.testbed.capacity.capacity_testbed import CapacityTestbed
from pytest_dbcluster.testbed.capacity.objective_testbed import check_rate_free
from pytest_dbcluster.testbed.capacity.rate_testbed import RateTestbed
from pytest_dbcluster.testbed.events import event_testbed
from pytest_dbcluster.testbed.events.event_testbed import EventTestbed
from pytest_dbcluster.testbed.options.level_testbed import LevelTestbed
from pytest_dbcluster.testbed.options.levels import specs as level_specs
from pytest_dbcluster.testbed.pool import LEAVE_SECONDS, open_pool
from pytest_dbcluster.testbed.resolution import ReleaseLacks
from pytest_dbcluster.testbed.testbed import Testbed
from pytest_dbcluster.testbed.variants import Variant
from pytest_dbcluster.testbed.why.why_testbed import ServerComparer
from pytest_dbcluster.workloads.workload import Setting, Workload

# pytest-xdist kills workers 10 s after it asks them to end (EXIT_TIMEOUT of xdist/workermanage.py).
WORKER_LEAVE_SECONDS = 5.0
ENDED_LEAVE_SECONDS = 3.0  # the same for a run that Ctrl-C or a signal has ended


class DBSession:
    """The provisioner, the pool of clusters and the report of one run."""

    def __init__(self, settings: Settings, config: Any) -> None:
        self.settings = settings
        if config.option.db_resume and hasattr(config, "workerinput"):  # the controller has tidied
            earlier.begin(config, settings.results, tidy=False)
        self.earlier = earlier.of(config)
        self.report = report.of(config, settings.results)
        self._config = config
        self._closed = False
        self._ended = False  # by Ctrl-C or a signal
        self._testbeds: list[Testbed] = []  # of the test that runs
        self._claimed: dict[str, set[tuple[str, str]]] = {}  # by test
        self._curves = Curves(self._tell_curve, self.report.keep_curve, self._about, self.report.point_drawn)
        self.pool = open_pool(
            settings.provisioner,
            images=settings.images,
            machines=settings.elsewhere,
            keep=settings.keep,
            progress=self.report.line,
            over=settings.run_over,
            fragments=settings.fragments,
            below=settings.below,
            root=settings.cnf_root,
            parity_profile=settings.parity,
        )
        self.provisioner, self.resolution = self.pool.provisioner, self.pool.resolution
        self.provisioner.progress, self.provisioner.over = self.report.line, settings.run_over
        self.provisioner.logs = self._logs = KeptLogs(settings.results / results_directory.LOGS)
        if settings.keep and not isinstance(self.provisioner, Keeps):
            raise ConfigError(f"--db-keep: the provisioner {settings.provisioner} cannot leave servers running")
        if worker := config.pluginmanager.get_plugin(sinks.WORKER):
            worker.group_ends = self.group_ends

    def measurement(self, call: MeasureCall) -> Measurement:
        """The measurement of one workload, or of several ones (name -> workload), on each of these specs.

        Checks everything and starts nothing; claims draw the rounds. Raises ConfigError for a wrong argument, and for
        variants that cannot be compared.
        """
        workload, on, item = call.workload, call.on, call.item
        _check(on, call.instances)
        if not isinstance(call.across_durability, bool):
            raise ConfigError(f"measure(..., across_durability={call.across_durability!r}): it accepts True or False")
        loads: list[Workload] = [workload] * len(on) if not isinstance(workload, Mapping) else []
        if isinstance(workload, Mapping):
            comparability.check_loads(workload, on)
            loads = [each for each in workload.values() for _ in on]  # in the order of the testbed's variants
            on = [*on] * len(workload)
        testbed = self._testbed_of(call, on)
        loads = loads * len(testbed.names) if call.options else loads
        if call.race:
            testbed.prepare_race(call.instances)
        testbed.load = call.called or testbed.load
        self._testbeds.append(testbed)
        number = max(len(call.events), len(loads))
        events = zip(itertools.islice(itertools.cycle(call.events), number), itertools.cycle(loads))
        recall = self._recall(testbed, list(events) or loads, call)
        plan = event_plan(len(testbed.names), call.times) if call.times else None
        return Measurement(
            testbed,
            self._rules(call),
            self.report.progress,
            self._recorder(recall, item),
            test=item.nodeid,
            release=releases(testbed.resolved),
            number=call.number,
            claimed=self._claimed.setdefault(item.nodeid, set()),
            recall=recall,
            tries=EarlierTries(recall, self._config.rootpath),
            plan=LevelPlan() if call.options else plan,
            compare_servers=self._comparer(testbed, call),
        )

    def _comparer(self, testbed: Testbed, call: MeasureCall) -> ServerComparer | None:
        """The object that compares servers after a verdict (``--db-why``); None if nothing compares them."""
        compares = self.settings.why and not call.times and not call.options and call.capacity is None
        return ServerComparer(testbed, self.settings.run_over) if compares else None

    def _testbed_of(self, call: MeasureCall, on: Sequence[ClusterSpec]) -> Testbed:
        """The testbed of a call. on: the spec of each variant."""
        if call.event is not None:
            return self._event_testbed(call)
        if call.options:
            return self._level_testbed(call)
        if call.capacity is not None:
            return self._capacity_testbed(call, call.capacity)
        return self.testbed(
            call.workload, on, call.release, across_durability=call.across_durability, instances=call.instances
        )

    def _rules(self, call: MeasureCall) -> Rules:
        """The options that limit the drawing of rounds. The budget of a claim does not limit ``times``.

        The claims about options share alpha.
        """
        rules = budgets.rules(call.item, self.settings)
        rules = dataclasses.replace(rules, alpha=rules.alpha / call.parts)
        return rules if not call.times else dataclasses.replace(rules, budget=math.inf, cap=call.times)

    def _event_testbed(self, call: MeasureCall) -> EventTestbed:
        """The testbed of repetitions of an event. Raises ConfigError for what cannot have them."""
        assert call.event is not None
        loads = list(call.workload.values()) if isinstance(call.workload, Mapping) else [call.workload]
        comparability.check_workloads(loads)
        self.pool.provisioner.expect(call.on)
        each = list(call.on) * (len(call.events) // len(call.on) * len(loads))
        first = [event_testbed.outliving(load) for load in loads]
        made = EventTestbed(
            call.workload,
            call.event,
            [self._variant(spec, call.release, () if number else first) for number, spec in enumerate(each)],
            self.pool,
            self.settings.profile,
            self.report.line,
            seed=self.settings.seed,
            across_durability=call.across_durability,
        )
        made.announce(call.times * len(each), self.settings.event_budget)
        return made

    def _level_testbed(self, call: MeasureCall) -> LevelTestbed:
        """The testbed of several options. Raises ConfigError for options that it cannot switch."""
        comparability.check_workloads([call.workload])
        assert not isinstance(call.workload, Mapping)
        [on] = call.on
        self.pool.provisioner.expect(call.on)
        named = on.on_release(call.release).on_storage(self.settings.storage)
        usual = self.resolution.defaults(self.resolution.resolve(named, switched=False, client_of=[call.workload]))
        specs = level_specs(on, call.options, usual)
        return LevelTestbed(
            call.options,
            call.workload,
            [self._variant(spec, call.release, () if number else [call.workload]) for number, spec in enumerate(specs)],
            self.pool,
            self.settings.profile,
            self.report.line,
            sampled=True,
        )

    def _capacity_testbed(self, call: MeasureCall, asked: Objective | AtRate) -> Testbed:
        """The testbed of a measurement of capacity, or of one rate. Raises ConfigError for what cannot have one."""
        assert not isinstance(call.workload, Mapping)
        check_rate_free(call.workload)
        self.pool.provisioner.expect(call.on)
        if isinstance(asked, AtRate):
            variant, load = self._variant(call.on[0], call.release, [call.workload]), call.workload
            settings = self.pool, self.settings.profile, self.report.line
            return RateTestbed(load, asked.objective, asked.rate, asked.times, variant, *settings)
        return CapacityTestbed(
            call.workload,
            asked,
            [
                self._variant(spec, call.release, () if number else [call.workload])
                for number, spec in enumerate(call.on)
            ],
            self.pool,
            self.settings.profile,
            self.report.line,
            seed=self.settings.seed,
            across_durability=call.across_durability,
            instances=call.instances,
        )

    def _recall(self, testbed: Testbed, loads: Sequence[object], call: MeasureCall) -> Recall:
        """The object that looks up the claims of a measurement in the run that this one continues."""
        own, item = self.settings, call.item
        asked = Asked(item.nodeid, own.profile, self._repeat(item), own.provisioner, call.swept)
        options: tuple[object, ...] = (own.profile, own.provisioner, own.alpha, own.max_pairs, budgets.of(item, own))
        options += (*own.machines, *([call.times, own.event_budget] if call.times else []))
        options += (*call.options.items(), call.parts) if call.options else ()
        options += (repr(call.capacity),) if call.capacity else ()
        return Recall(testbed, loads, asked, Conditions(options, self._machine), self.earlier, self.report)

    @functools.cached_property
    def _machine(self) -> MachineDocument:
        return machine(runs.directory())

    def _recorder(self, recall: Recall, item: Any) -> Callable[[Answer], None]:
        """Return the function that records and reports each answer about this testbed."""
        published = Published.of(item, self._config.rootpath)
        began = time.monotonic()

        def record_answer(answer: Answer) -> None:
            record = claim_record(answer, published, recall.asked, time.monotonic() - began)
            record = dataclasses.replace(record, depends_on=recall.of_answer(answer))
            with self.pool.turns.finishing(), span("chart"):  # drawing a chart uses a core
                self.report.claim(record, recall.source.timeline(schema.claim_rounds(record)))

        return record_answer

    def testbed(
        self,
        workload: Workload | Mapping[str, Workload],
        on: Sequence[ClusterSpec],
        release: ReleaseName,
        *,
        across_durability: bool = False,
        instances: int | None = None,
    ) -> Testbed:
        """The testbed that runs the rounds of this workload. Raises ConfigError for specs that cannot be compared."""
        loads = list(workload.values()) if isinstance(workload, Mapping) else [workload]
        comparability.check_workloads(loads)
        self.pool.provisioner.expect(on)
        return Testbed(
            workload,
            [self._variant(spec, release, () if number else loads) for number, spec in enumerate(on)],
            self.pool,
            self.settings.profile,
            self.report.line,
            across_durability=across_durability,
            instances=instances,
            sampled=True,
        )

    def _variant(self, spec: ClusterSpec, release: ReleaseName, client_of: Sequence[Workload]) -> Variant:
        named = spec.on_release(release).on_storage(self.settings.storage)
        try:
            return self.resolution.resolve(named, client_of=client_of)
        except ReleaseLacks as error:
            # If the run's release lacks a topology, the test is skipped. If the spec names the release, it is wrong.
            if spec.release is None:
                raise
            raise ConfigError(f"{spec} names the release {spec.release_text}: {error}") from error

    def available(
        self, releases: Sequence[ReleaseName], on: Sequence[ClusterSpec]
    ) -> tuple[list[ReleaseName], list[str]]:
        """The releases that can run these clusters here, the oldest first, and a line for each other one.

        Fetches them if needed. Raises ConfigError for an unknown release, for clusters that name one, and for clusters
        with equal names.
        """
        _check(on, None)
        names = [str(spec) for spec in on]
        if fixed := next((spec for spec in on if spec.release), None):
            raise ConfigError(f"measure.sweep(..., release=...): {fixed} names a release, {fixed.release_text}")
        if len(set(names)) < len(names):
            raise ConfigError(f"measure.sweep(..., release=...): give the clusters different names: {', '.join(names)}")
        versions: dict[ReleaseName, tuple[int, ...]] = {}
        missing = []
        for name in releases:
            try:
                for spec in on:
                    versions[name] = numbers(self.resolution.programs(spec.on_release(name)).version)
            except (Unsupported, ProvisionError) as error:
                versions.pop(name, None)
                missing.append(f"{name} is left out: {error}")
                self.report.line(missing[-1])
        return sorted(versions, key=versions.__getitem__), missing

    def use(self, load: Workload, spec: ClusterSpec, release: ReleaseName, does: Callable[[Setting], Done]) -> Done:
        """Call ``does`` on a cluster with the tables of a workload, and return its result."""
        testbed = self.testbed(load, [spec], release)
        self._testbeds.append(testbed)
        return testbed.use(does)

    def curve_begins(self, curve: Curve) -> None:
        """Note a curve that the test declares, and its points from the run that this one continues."""
        recall = CurveRecall(curve, self._curves.count)
        curve.earlier = earlier_rounds(curve, recall.before, self.report.line)
        self._curves.begin(curve, recall.depends_on, recall.before)

    def test_begins(self, test: str) -> None:
        """Keep logs of failed clusters under the name of this test, and note it; ``test``: its node id."""
        self._logs.test = test
        self.provisioner.note_test(test)

    def test_ends(self) -> None:
        """After the body of a test, end the samples and the live display, and write the curves."""
        self.provisioner.note_test("")
        for testbed in self._testbeds:
            testbed.end()
        self._testbeds = []
        self.report.end_live()
        self._curves.end()

    def _about(self) -> About:
        return About(self.settings.profile, self.settings.seed, fingerprint(self.pool.environment))

    def _tell_curve(self, record: CurveRecord) -> None:
        with self.pool.turns.finishing(), span("chart"):
            self.report.curve(record)

    def _repeat(self, item: Any) -> str:
        asked = self._config.invocation_params
        options = run_settings.without_paths(self.settings.repeat_options(asked.args), asked.dir, self._config.rootpath)
        return shlex.join(["pytest", item.nodeid, *options])

    def finish(self) -> None:
        """Write the results of the whole run."""
        not_run = run_file.not_run_lines(self._config)
        self.report.finish([*self.resolution.overridden, *filter(None, [self.settings.moved]), *not_run])

    def close(self, *, ended: bool = False) -> None:
        """Stop every server, or with ``--db-keep`` print how to connect to them. A second call does nothing.

        ended: Ctrl-C or a signal has ended the run, so it waits only for a short time for other runs.
        """
        self._ended = self._ended or ended
        if self._closed:
            return
        if self.settings.keep and self._leave_running():
            self._closed = True
            with self._errors_as_lines():
                self.provisioner.close()
            return
        # Stopping servers writes to the disk, so wait for other runs to end their block, but not for long.
        seconds = WORKER_LEAVE_SECONDS if hasattr(self._config, "workerinput") else LEAVE_SECONDS
        seconds = ENDED_LEAVE_SECONDS if self._ended else seconds
        with self._errors_as_lines():
            self.pool.leave(seconds)
        run_file.note_time(self._config)
        self._closed = True  # set last: after Ctrl-C in the lines above, pytest calls close again

    def _leave_running(self) -> bool:
        """Leave the clusters running, and print how to connect to them. False if no cluster remains."""
        assert isinstance(self.provisioner, Keeps)  # otherwise the run would not have begun
        left = False
        for cluster in self.pool.clusters:
            try:
                self.report.line(kept.describe(kept.write(cluster, self.provisioner)))
                left = True
            except DBClusterError as error:
                self.report.line(redaction.redact(f"cannot keep {cluster.spec.short_name}: {error}"), "red")
        return left

    def page(self) -> str:
        """Make the page of the run, after its servers have stopped; return the line with its path."""
        if hasattr(self._config, "workerinput"):  # the controller makes it
            return ""
        # Drawing charts uses a core. After the run's time, the page is made without a turn.
        seconds = 0.0 if self._ended else LEAVE_SECONDS
        with contextlib.suppress(DBClusterError), self.pool.turns.building(most=seconds):
            return self.report.page()
        return self.report.page()

    def group_ends(self) -> None:
        """Stop the clusters of a finished group of tests: another worker may need their memory, the anchor the CPU."""
        if self.pool.clusters and not self.settings.keep:
            with self._errors_as_lines(), self.pool.turns.finishing(), span("close"):
                self.pool.close()

    @contextlib.contextmanager
    def _errors_as_lines(self) -> Iterator[None]:
        """Print an error as a line, because no test runs. The supervisor or a later run ends remaining servers."""
        try:
            yield
        except DBClusterError as error:
            self.report.line(redaction.redact(f"could not stop every server of the run: {error}"), "red")


def _check(on: object, instances: object) -> None:
    """Raise ConfigError unless ``on`` is a list of specs and ``instances`` is None or 1 or more."""
    if not isinstance(on, list | tuple) or not on or not all(isinstance(spec, ClusterSpec) for spec in on):
        raise ConfigError(f"measure(workload, on=[...]) accepts a list of ClusterSpec; got {on!r}")
    if instances is not None and (not isinstance(instances, int) or instances < 1):
        raise ConfigError(
            f"measure(..., instances={instances!r}): it accepts the number of clusters of a variant, from 1"
        )
