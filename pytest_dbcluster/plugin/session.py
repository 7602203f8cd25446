"""One run: its provisioner, its clusters, its results, and who is told about them."""

from __future__ import annotations

import contextlib
import functools
import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pytest_dbcluster import redaction
from pytest_dbcluster.clusters import kept
from pytest_dbcluster.errors import ConfigError, DBClusterError
from pytest_dbcluster.hosts.provisioner import Keeps, provisioner_class
from pytest_dbcluster.measuring.answer import Answer
from pytest_dbcluster.measuring.instance_floor import InstanceFloor, Twins
from pytest_dbcluster.measuring.measurement import Measurement
from pytest_dbcluster.measuring.series import series_of
from pytest_dbcluster.plugin.settings import Settings
from pytest_dbcluster.reporting import allure, report
from pytest_dbcluster.reporting.published import Published
from pytest_dbcluster.reporting.records import (
    About,
    Asked,
    CurveRecord,
    Curves,
    claim_record,
    fingerprint,
    releases,
)
from pytest_dbcluster.spec import ClusterSpec, ReleaseName
from pytest_dbcluster.testbed import comparability
from pytest_dbcluster.testbed.pool import Pool
from pytest_dbcluster.testbed.resolution import ReleaseLacks, Resolution
from pytest_dbcluster.testbed.testbed import Testbed
from pytest_dbcluster.testbed.variants import Variant
from pytest_dbcluster.workloads.workload import Workload

LEAVE_SECONDS = 20.0  # of waiting for a turn to end in
# pytest-xdist kills workers 10 s after it has asked them to end (EXIT_TIMEOUT of xdist/workermanage.py).
WORKER_LEAVE_SECONDS = 5.0


class DBSession:
    """Everything that lives as long as the run."""

    def __init__(self, settings: Settings, config: Any) -> None:
        self.settings = settings
        self.report = report.of(config, settings.results)
        self._config = config
        self._closed = False
        self._begun = False  # what takes cores and the disk, and therefore turns
        self._floors: dict[object, InstanceFloor] = {}
        self._resolved: set[tuple[ClusterSpec, ReleaseName]] = set()
        self.curves = Curves(self._tell_curve, About(settings.profile, settings.seed, fingerprint()))
        self.provisioner = provisioner_class(settings.provisioner)(keep=settings.keep, **_chosen(settings))
        if settings.keep and not isinstance(self.provisioner, Keeps):
            raise ConfigError(f"--db-keep: the provisioner {settings.provisioner} cannot leave servers running")
        self.resolution = Resolution(
            self.provisioner,
            fragments=settings.fragments,
            below=settings.below,
            progress=self.report.line,
            parity_profile=settings.parity,
        )
        self.pool = Pool(self.resolution)
        if worker := config.pluginmanager.get_plugin(report.WORKER):
            worker.group_ends = self.group_ends

    def measurement(
        self,
        workload: Workload | Mapping[str, Workload],
        on: Sequence[ClusterSpec],
        release: ReleaseName,
        item: Any,
        *,
        across_durability: bool = False,
        instances: int | None = None,
        called: str = "",
    ) -> Measurement:
        """A measurement of one load on these specs, or of loads by name on one spec; ``called``: what it is named.

        Everything is checked here; rounds are drawn by claims.
        """
        _check(on, instances)
        if isinstance(workload, Mapping):
            comparability.check_loads(workload, on)
            on = [*on] * len(workload)
        testbed = self.testbed(workload, on, release, across_durability=across_durability, instances=instances)
        testbed.load = called or testbed.load
        # Clusters that take turns are fresh at each turn: there are no two instances to compare.
        several = testbed.instances > 1 and not testbed.in_turns
        floor = functools.partial(self._floor, testbed, workload) if several else None
        return Measurement(
            testbed,
            self.settings.rules(),
            self.report.progress,
            self._finished(testbed, item),
            test=item.nodeid,
            floor=floor,
            release=releases(testbed.variants),
        )

    def _finished(self, testbed: Testbed, item: Any) -> Callable[[Answer], None]:
        """What keeps and shows each answer about this testbed."""
        published = Published.of(item, self._config.rootpath)
        asked = Asked(item.nodeid, self.settings.profile, self._repeat(item))
        began = time.monotonic()

        def finished(answer: Answer) -> None:
            record = claim_record(answer, testbed, published, asked, time.monotonic() - began)
            with self.pool.turns.building():  # a chart takes a core
                self.report.claim(record)

        return finished

    def _floor(
        self, testbed: Testbed, workload: Workload | Mapping[str, Workload], number: int, metric: str
    ) -> InstanceFloor:
        """How far two instances of a variant differ under this load in this metric, measured once a run."""
        load = list(workload.values())[number] if isinstance(workload, Mapping) else workload
        variant = testbed.variants[number]
        key = (load, variant.cluster_key, variant.dynamic, metric)
        if key not in self._floors:
            twins = Twins(testbed, number, testbed.instances)
            self.report.line(f"{testbed.load}: measuring {' against '.join(reversed(twins.names))}")
            first, second = series_of(Measurement(twins, self.settings.rules(), self.report.progress))
            found = second.against(first, metric=metric).verdict
            self._floors[key] = InstanceFloor(testbed.names[number], found.ratio, found.pairs)
            self.report.line(self._floors[key].line)
        return self._floors[key]

    def testbed(
        self,
        workload: Workload | Mapping[str, Workload],
        on: Sequence[ClusterSpec],
        release: ReleaseName,
        *,
        across_durability: bool = False,
        instances: int | None = None,
    ) -> Testbed:
        """What runs the rounds of this load on these specs. Raises ConfigError for specs that are not comparable."""
        self._begun = True
        wanted = {(spec, release) for spec in on}
        # Fetching programs, and asking servers what their options do, is needed once for each of these.
        with contextlib.nullcontext() if wanted <= self._resolved else self.pool.turns.building():
            made = Testbed(
                workload,
                [self._variant(spec, release) for spec in on],
                self.pool,
                self.settings.profile,
                self.report.line,
                across_durability=across_durability,
                instances=instances,
            )
        self._resolved |= wanted
        return made

    def _variant(self, spec: ClusterSpec, release: ReleaseName) -> Variant:
        try:
            return self.resolution.resolve(spec.on_release(release).on_storage(self.settings.storage))
        except ReleaseLacks as error:
            if spec.release is None:
                raise  # of the run's release the suite may have nothing to say
            # One that the test itself names is its mistake.
            raise ConfigError(f"{spec} asks for {spec.release} by name: {error}") from error

    def test_begins(self, release: ReleaseName) -> None:
        """A test asked for ``measure``; said before it measures, so that a failure is reported alike."""
        allure.test_begins(self._config, release, self.settings.seed)

    def test_ends(self) -> None:
        """A test's body is over, in whatever way: the screen belongs to others, and its curves are what they are."""
        self.report.end_live()
        self.curves.end()

    def _tell_curve(self, record: CurveRecord) -> None:
        with self.pool.turns.building():
            self.report.curve(record)

    def _repeat(self, item: Any) -> str:
        return shlex.join(["pytest", item.nodeid, *self.settings.said(self._config.invocation_params.args)])

    def finish(self) -> None:
        """Write what a reader wants of the whole run."""
        self.report.finish(self.resolution.overridden)

    def close(self) -> None:
        """End every server, or with ``--db-keep`` say how to connect to them; a second call does nothing."""
        if self._closed:
            return
        if self.settings.keep and self.pool.clusters:
            self._closed = True
            assert isinstance(self.provisioner, Keeps)  # else the run would not have begun
            for cluster in self.pool.clusters:
                self.report.line(kept.describe(kept.write(cluster, self.provisioner)))
            return
        # Ending servers writes much. Who measures has done a block soon; nobody waits for long who wants to leave.
        most = WORKER_LEAVE_SECONDS if hasattr(self._config, "workerinput") else LEAVE_SECONDS
        with self._told(), contextlib.ExitStack() as ends:
            ends.enter_context(self.pool.turns.building(most=most) if self._begun else contextlib.nullcontext())
            ends.callback(self.provisioner.close)
            ends.callback(self.pool.close)
        self._closed = True  # not before: Ctrl-C in the middle is followed by another call

    def group_ends(self) -> None:
        """Tests that share clusters are over: these end, for another worker may need their memory."""
        if self.pool.clusters and not self.settings.keep:
            with self._told(), self.pool.turns.building():
                self.pool.close()

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """No test is running, so that an error is a line. What is left ends with its supervisor, or is reaped."""
        try:
            yield
        except DBClusterError as error:
            self.report.line(redaction.redact(f"the end of the run's servers: {error}"), "red")


def _check(on: object, instances: object) -> None:
    """Raise ConfigError for what is no list of specs, or no number of clusters."""
    if not isinstance(on, list | tuple) or not on or not all(isinstance(spec, ClusterSpec) for spec in on):
        raise ConfigError(f"measure(workload, on=[...]) takes a list of ClusterSpec, got {on!r}")
    if instances is not None and (not isinstance(instances, int) or instances < 1):
        raise ConfigError(f"measure(..., instances={instances!r}): each variant has 1 fresh cluster or more")


def _chosen(settings: Settings) -> dict[str, Any]:
    """What the provisioner of the run is told beside ``keep``."""
    return {"chosen": dict(settings.images)} if settings.images else {}
