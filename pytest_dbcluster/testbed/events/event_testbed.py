"""``EventTestbed``: the round source of a measurement of events. Its rounds are repetitions."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import random
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence

from pytest_dbcluster import formatting
from pytest_dbcluster.claims import block_order
from pytest_dbcluster.claims.cluster_difference import ClusterDifference
from pytest_dbcluster.claims.repetitions.kind import BUDGET
from pytest_dbcluster.clusters.cluster import Cluster
from pytest_dbcluster.clusters.events.event import Event, Stage
from pytest_dbcluster.clusters.events.nothing import Nothing
from pytest_dbcluster.errors import ConfigError, SeriesVoid
from pytest_dbcluster.formatting import Report
from pytest_dbcluster.rounds.round import Round
from pytest_dbcluster.system.tracing.recorder import span
from pytest_dbcluster.testbed import round_runner
from pytest_dbcluster.testbed.events import event_runner
from pytest_dbcluster.testbed.pool import Pool, Running
from pytest_dbcluster.testbed.testbed import Testbed
from pytest_dbcluster.testbed.variants import Variant
from pytest_dbcluster.workloads.until_stopped import RunsUntilStopped
from pytest_dbcluster.workloads.workload import Workload

ONLY_WRITER = ("writer", "reader")  # values of ``to`` of a workload without a proxy: one endpoint


class EventTestbed(Testbed):
    """One workload and one event for each variant, or several events or workloads (name -> it) on each spec.

    variants: as for Testbed; with n events the same specs n times, first for the first event. seed: of the moments of
    the events. Raises ConfigError for a workload, an event or a cluster that cannot have repetitions, before anything
    starts.
    """

    __test__ = False

    def __init__(
        self,
        workload: Workload | Mapping[str, Workload],
        event: Event | Mapping[str, Event],
        variants: Sequence[Variant],
        pool: Pool,
        profile: str,
        progress: Report,
        *,
        seed: int,
        across_durability: bool = False,
    ) -> None:
        loads: Workload | Mapping[str, Workload]
        if isinstance(workload, Mapping):
            loads = {name: outliving(load) for name, load in workload.items()}
        else:
            loads = dict.fromkeys(event, outliving(workload)) if isinstance(event, Mapping) else outliving(workload)
        events = list(event.values()) if isinstance(event, Mapping) else [event]
        variants = [variant.with_static([name for name, _ in variant.dynamic]) for variant in variants]  # for restarts
        super().__init__(loads, variants, pool, profile, progress, across_durability=across_durability, instances=1)
        each = [one for one in events for _ in range(len(variants) // len(events))]
        self._seed = seed
        self._planned = 0
        self._violated: list[str] = []  # of each repetition after which a condition of the workload did not hold
        self.load = self.load if isinstance(event, Mapping) else f"{self.load}, {event}"
        if self.arrival_rate and self.arrival_rate.rate is None:
            raise ConfigError(f"{self.load}: measure.event needs a rate in operations a second, not a share")
        for one, variant, load in zip(each, self.variants, self._workloads, strict=True):
            one.check(variant.spec, variant.topology)
            one.check_hosts(variant.spec, pool.provisioner)
            _check_proxy(one, variant)
            _check_endpoint(one, variant, load)
        self._events = [_equip(one, variant, pool) for one, variant in zip(each, self.variants, strict=True)]
        self._expected = [_expected_seconds(one, variant) for one, variant in zip(each, self.variants, strict=True)]
        self._lasted: list[float] = []  # seconds of the load from each event to its recovery
        longest = max(self._expected)
        self._expected = [
            longest if one == Nothing() else own for one, own in zip(self._events, self._expected, strict=True)
        ]
        self.usual_seconds = statistics.fmean(self._expected)

    def announce(self, repetitions: int, budget: float) -> None:
        """Print the expected time of so many repetitions, and again after the first one. budget: their maximum."""
        self._planned = repetitions
        expected = formatting.duration(self.usual_seconds * repetitions)
        most = "" if math.isinf(budget) else f", at most {formatting.duration(budget)} ({BUDGET})"
        each = f" ({repetitions // len(self.names)} each; {self._variants_text})" if len(self.names) > 1 else ""
        self._progress(f"{self.load}: {formatting.quantity(repetitions, 'repetition')}{each}, about {expected}{most}")
        if not all(event.reusable for event in self._events):
            self._progress(f"{self.load}: each repetition of an event that changes its cluster begins with a fresh one")

    @property
    def _variants_text(self) -> str:
        """``kill: kill other; none: nothing`` for several events, otherwise ``usual; quick``."""
        several = len(set(self._events)) > 1
        named = zip(self.names, self._events, strict=True)
        return "; ".join(f"{name}: {event}" if several else name for name, event in named)

    def _learn_seconds(self, variant: int, seconds: float) -> None:
        """Print the expected time of the other repetitions after the first one, which took so many seconds."""
        planned, self._planned = self._planned, 0
        if planned > 1:
            others = (planned * self.usual_seconds - self._expected[variant]) * seconds / self._expected[variant]
            left = f"{seconds:.0f} s; the other {planned - 1} take about {formatting.duration(others)}"
            self._progress(f"{self.load}: the first repetition took {left}")

    def ways_back(self, variant: int) -> Sequence[str]:
        """Those of its topology."""
        return self.variants[variant].topology.ways_back

    @contextlib.contextmanager
    def exclusive(self) -> Iterator[None]:
        """As of Testbed. An event that changes its cluster for good has a fresh one, whose start belongs to it."""
        if all(event.reusable for event in self._events):
            with super().exclusive():
                yield
        else:
            self._begin(0)
            yield

    def _draw(self, variant: int, block: int, position: int, began: float) -> Round:
        """One repetition. A cluster that runs alone has no other rounds before it.

        A cluster that an event changes for good starts for each repetition, which includes the start.
        """
        running, reusable = self._take_turn(variant, block), self._events[variant].reusable
        queued, running.warm = time.monotonic(), True
        with self._pool.measuring(), self._mark_dirty_on_error(running.cluster):
            began = time.monotonic() if reusable else began + time.monotonic() - queued
            done = self._round(running, variant, block, position, began)
            if self.one_at_a_time and not done.void and reusable and not running.cluster.dirty:
                self._check(running)
            return done

    def cluster_difference(self, *numbers: int, metric: str) -> ClusterDifference | None:
        """As for ``Testbed``. None for events that change their clusters for good: each repetition has a fresh one."""
        lasting = any(self._events[number].reusable for number in numbers)
        return super().cluster_difference(*numbers, metric=metric) if lasting else None

    def _on_path(self, running: Running, variant: int, block: int, position: int, began: float) -> Round:
        """One repetition; void if the cluster did not become whole, which then serves no other."""
        cluster, workload = running.cluster, self._workloads[variant]
        self._used = cluster
        setting = dataclasses.replace(self._setting(running), block=block)
        with self._fit(cluster):
            with span("switch"):
                self._switch(running, variant)
                self._network.before(self.names[variant], cluster.path, self.variants[variant].network)
            with span("reset"):
                round_runner.reset(workload, setting)
        coin = random.Random(block_order.seed_of(self._seed, "event", variant, block, position))
        name = self.names[variant]
        try:
            with span("event", event=str(self._events[variant])):
                done = event_runner.repeat(
                    workload, setting, self._event(variant), coin, variant=name, block=block, position=position
                )
        except event_runner.NotWhole as error:
            cluster.dirty = str(error)
            done = round_runner.void_round(str(error), variant=name, block=block, position=position)
        else:
            if done.outage and self._events[variant] != Nothing():
                self._lasted.append(max(0.0, done.outage.observed_seconds - event_runner.RECOVERED_SECONDS))
            cluster.events += self._events[variant] != Nothing()
            self._keep_violations(done, cluster, workload)
            self._check_changed(running, self._events[variant])
        done = dataclasses.replace(done, wall=time.monotonic() - began)
        self._learn_seconds(variant, done.wall)
        return done

    def _keep_violations(self, done: Round, cluster: Cluster, workload: Workload) -> None:
        """Keep the conditions that do not hold after a repetition for ``check``. The cluster serves no other one."""
        if done.outage and done.outage.violations:
            cluster.dirty = f"after the event {done.outage.event}: {'; '.join(done.outage.violations)}"
            self._violated.append(f"{workload} on {cluster.spec}: the workload's check failed: {cluster.dirty}")

    def _event(self, variant: int) -> Event:
        """The event of a variant. The control lasts as long as the longest event so far, or as one is expected to."""
        event, expected = self._events[variant], max(self._expected) - event_runner.CONTROL_SECONDS
        return Nothing(max(self._lasted, default=expected) or None) if event == Nothing() else event

    def _check_changed(self, running: Running, event: Event) -> None:
        """Check a cluster that an event has changed for good; it serves no other repetition."""
        if not event.reusable and not running.cluster.dirty:
            self._check(running)
            running.cluster.dirty = f"the event {event} has changed it for good"

    def check(self) -> None:
        """Check the clusters as ``Testbed.check`` does. Each one that an event changed for good is checked already.

        Raises SeriesVoid too if a condition of the workload did not hold after a repetition.
        """
        if self._violated:
            self.end()
            raise SeriesVoid(self._violated[0])
        if not self.one_at_a_time and any(event.reusable for event in self._events):
            for number in range(len(self.variants)):
                self._prepare(number, 0)  # starts a cluster that is missing since then
            super().check()
        self.end()


def outliving(workload: Workload) -> Workload:
    """The workload, if it outlives an event. Raises ConfigError otherwise."""
    if not isinstance(workload, RunsUntilStopped):
        raise ConfigError(f"measure.event needs a workload that outlives an event, such as TPCC; got {workload!r}")
    return workload


def _check_proxy(event: Event, variant: Variant) -> None:
    """Raise ConfigError if the proxy would not follow the writes to another node."""
    proxy, topology = variant.proxy_class, variant.topology
    if proxy is None or not event.moves_writes(topology) or not topology.has_primary(variant.asked):
        return
    if reason := proxy.misses_elections(topology, variant.release):
        raise ConfigError(f'{event} on {variant.spec}: {reason}; use ClusterSpec(..., proxy="haproxy")')


def _equip(event: Event, variant: Variant, pool: Pool) -> Event:
    """The event with the programs and options of its stages. Raises ConfigError for a stage that cannot be."""
    specs = event.stages(variant.spec)
    return event.equip(_stage(variant), [_stage(pool.resolution.resolve(spec, switched=False)) for spec in specs])


def _expected_seconds(event: Event, variant: Variant) -> float:
    return event_runner.CONTROL_SECONDS + event.expected_seconds(variant.spec, variant.topology)


def _stage(variant: Variant) -> Stage:
    return Stage(variant.releases or (variant.release,) * variant.spec.nodes, variant.options)


def _check_endpoint(event: Event, variant: Variant, workload: Workload) -> None:
    """Raise ConfigError if the load would have no server until it ends."""
    alone = variant.spec.proxy is None and getattr(workload, "to", None) in ONLY_WRITER
    if not event.leaves_load(variant.spec, variant.topology, only_writer=alone):
        restart = ', or restart="at once"' if hasattr(event, "restart") else ""
        raise ConfigError(
            f"{event} on {variant.spec}: the load connects only to this node, and would commit nothing until its end; "
            f'use ClusterSpec(..., proxy="haproxy"), a workload with to="all"{restart}'
        )
