"""The real testbed: runs the rounds of one load on running clusters, and checks them afterwards."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from pytest_dbcluster import wait
from pytest_dbcluster.claims import block_order
from pytest_dbcluster.clusters.cluster import Cluster
from pytest_dbcluster.clusters.servers.galera_options import differing
from pytest_dbcluster.errors import SeriesVoid
from pytest_dbcluster.formatting import Report
from pytest_dbcluster.measuring.round_source import RoundSource
from pytest_dbcluster.releases.release import Release
from pytest_dbcluster.rounds import metrics, open_loop
from pytest_dbcluster.rounds.round import Round
from pytest_dbcluster.testbed import blind_spots, comparability, durability, round_runner
from pytest_dbcluster.testbed.durability import Durability, Labelled
from pytest_dbcluster.testbed.pool import Pool, Running
from pytest_dbcluster.testbed.remarks import differing_line, hosts_line, shapes_line
from pytest_dbcluster.testbed.variants import Variant
from pytest_dbcluster.workloads.workload import Setting, Workload

INSTANCES = 2  # of clusters that differ in more than options
SETTLE_SECONDS = 1.0
FIT_SECONDS = 60.0
JITTER = 0.1  # of a round, and of the servers' longest timer (innodb_flush_log_at_timeout, 1 s) where that is shorter
TURN = 3  # rounds a start, where clusters take turns
LINE = 200  # characters of a line that a server logged


class Testbed(RoundSource):
    """One load on several variants, each on the running cluster that serves it; or a load for each variant, by name.

    Raises ConfigError, before anything is started where that can be known, for variants whose commits are not worth
    the same, unless ``across_durability`` says that this is meant.
    """

    __test__ = False  # no test class, whatever its name begins with: pytest collects what a test module imports

    def __init__(
        self,
        load: Workload | Mapping[str, Workload],
        variants: Sequence[Variant],
        pool: Pool,
        profile: str,
        progress: Report,
        *,
        across_durability: bool = False,
        instances: int | None = None,
    ) -> None:
        if isinstance(load, Mapping):
            self._loads, self.names, self.mode = list(load.values()), list(load), ""
        else:
            self._loads, self.names = [load] * len(variants), comparability.unique_names(variants)
            self.mode = load.mode_name
        self.load = " and ".join(dict.fromkeys(map(str, self._loads)))
        self.metric = comparability.metric(self._loads)
        self.arrival_rate = open_loop.ArrivalRate.of(comparability.rate(self._loads))
        self.variants = [variant.with_data_set_of(each) for variant, each in zip(variants, self._loads, strict=True)]
        # One client binary for all variants of a comparison: either vendor's reaches the other's servers.
        self.client: Release = self.variants[0].release
        # Settings of one server need one instance; servers of two kinds differ by their place too (floor.py).
        kinds = {(variant.spec.topology, variant.release.name) for variant in variants}
        self.instances = (INSTANCES if len(kinds) > 1 else 1) if instances is None else instances
        self._pool = pool
        self._profile = profile
        self._progress = progress
        self._across_durability = across_durability
        self._changes = [pool.resolution.changes(variant) for variant in self.variants]
        self._coin = random.Random(0)
        self._last = 0.0
        self._variables: dict[int, dict[str, str]] = {}
        self._labels: dict[int, Durability] = {}
        self._excused: set[Cluster] = set()
        self._compare_promises()

    def _compare_promises(self) -> None:
        """Compare acknowledgement guarantees before any cluster starts; they follow mainly from the topology."""
        if self._across_durability or len({variant.spec.topology for variant in self.variants}) == 1:
            return
        found = []
        for name, variant in zip(self.names, self.variants, strict=True):
            variables = self._pool.resolution.defaults(variant)
            found.append(Labelled(name, variant, Durability.of(variant.topology, variables, variant.spec.nodes)))
        durability.compare(found, ("acknowledged",))

    def _compare_labels(self, variant: int) -> None:
        """Compare all labels before the first round; in turns each one before the first round of its own."""
        if variant in self._labels:
            return
        with self._pool.turns.building():
            for number in [variant] if self.in_turns else range(len(self.variants)):
                self.durability(number)
        if not self._across_durability:
            known = sorted(self._labels.items())
            durability.compare([Labelled(self.names[n], self.variants[n], label) for n, label in known])

    @functools.cached_property
    def in_turns(self) -> bool:
        """Whether memory holds one of the clusters at a time only: then each turn is a start and several rounds."""
        several = len({variant.cluster_key for variant in self._everywhere}) > 1
        if not several or self._pool.room_for_all(self._everywhere):
            return False
        self._progress(f"{self.load}: no memory for all clusters at once: in turns, {TURN} rounds a start, one value")
        return True

    def _needed(self, variant: int) -> list[Variant]:
        return [self.variants[variant]] if self.in_turns else self._everywhere

    @functools.cached_property
    def _everywhere(self) -> list[Variant]:
        """Each variant in each of its instances: those of the first instance, then those of the next."""
        return [variant.on_instance(number) for number in range(self.instances) for variant in self.variants]

    def _serving(self, variant: int, instance: int = 0) -> Running:
        found = self._pool.running(self._needed(variant))
        return found[0] if self.in_turns else found[instance * len(self.variants) + variant]

    def _setting(self, running: Running) -> Setting:
        return Setting(running.cluster, self._pool.client(self.client), self.client, self._profile, self._progress)

    def _ready(self, variant: int, instance: int) -> Running:
        load, tables = self._loads[variant], comparability.tables(self._loads[variant])
        for running in self._pool.running(self._needed(variant)):
            if running.prepared != tables:
                with self._pool.turns.building(), _marked_when_ended(running.cluster):
                    load.prepare(self._setting(running))
                    running.cluster.settle(round_runner.DRAIN_SECONDS)
                running.prepared = tables
        return self._serving(variant, instance)

    def round(self, variant: int, *, block: int, position: int) -> Round:
        """Switch, reset, settle; then measure between two readings of the counters; then drain.

        Blocks go to the instances of the clusters in turn, all variants of a block to the same one.
        Anything that ends it early, Ctrl-C included, marks the cluster as not to be reused. Raises ConfigError
        before the first round when commits of the variants are not worth the same and nobody said that this is meant.
        """
        self._begin(variant)
        return self._drawn(variant, block, position, time.monotonic())

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """A whole block of rounds, between which no other run builds or measures. What they need is built before.

        Clusters that take turns are started between the rounds: then each turn has the machine for itself.
        """
        if self.in_turns:
            yield
            return
        self._begin(0)
        self._ready(0, 0)
        with self._pool.turns.measuring():
            yield

    def _begin(self, variant: int) -> None:
        """What comes before the first round."""
        self._compare_labels(variant)
        if self.arrival_rate and self.arrival_rate.rate is None:
            self._find_rate(self.arrival_rate)

    def _find_rate(self, asked: open_loop.ArrivalRate) -> None:
        """What the slowest variant can do in a closed loop gives all of them their rate, or the rate its share."""
        loads = self._loads
        self._progress(f"{self.load}: measuring what each variant can do in a closed loop")
        self._loads = [comparability.at_rate(load, None) for load in loads]
        try:
            orders = block_order.block_orders(len(loads), 0)
            draw = functools.partial(self._drawn, began=time.monotonic())
            self.arrival_rate = asked.found(open_loop.capacities(self.names, orders, draw))
            if asked.rate is None:
                loads = [comparability.at_rate(load, self.arrival_rate.rate) for load in loads]
        finally:
            self._loads = loads
        self._progress(f"{self.load}: {self.arrival_rate.line}")

    def _drawn(self, variant: int, block: int, position: int, began: float) -> Round:
        running = self._ready(variant, block % self.instances)
        asked = time.monotonic()
        with self._pool.turns.measuring(), _marked_when_ended(running.cluster):
            began += time.monotonic() - asked  # waiting for the machine is no part of a round
            if not self.in_turns:
                return self._round(running, variant, block, position, began)
            # The first round after a start is a warm-up of its own.
            several = [self._round(running, variant, block, position, began) for _ in range(TURN + 1)][1:]
            done = round_runner.merged(several)
            if not done.void:
                self._check(running)
            return done

    def _round(self, running: Running, variant: int, block: int, position: int, began: float) -> Round:
        cluster, load = running.cluster, self._loads[variant]
        setting = dataclasses.replace(self._setting(running), block=block)
        self._wait_fit(cluster)
        running.switch.to(self._changes[variant])
        late = round_runner.reset(load, setting)
        settled = not late and cluster.settle(SETTLE_SECONDS)
        time.sleep(self._coin.uniform(0, JITTER) * min(1.0, self._last))
        measured: Callable[..., Round] = functools.partial(round_runner.measured, load, setting)
        measured = functools.partial(round_runner.unmeasured, late) if late else measured
        done = measured(variant=self.names[variant], block=block, position=position)
        self._last = done.seconds
        if void := done.void:
            self._excused.add(cluster)
            logged = cluster.logged()
            void += f"; {len(logged)} [ERROR] lines, the first: {logged[0][:LINE]}" if logged else ""
        return dataclasses.replace(done, settled=settled, wall=time.monotonic() - began, void=void)

    def _wait_fit(self, cluster: Cluster) -> None:
        """Wait until what made a round void is over. Errors that were logged because of it are excused, others not.

        Raises NotReady, or SeriesVoid for an [ERROR] line.
        """
        wait.until(cluster.problems, f"cluster {cluster.spec} for the next round", seconds=FIT_SECONDS)
        logged, excused = cluster.logged(), cluster in self._excused
        self._excused.discard(cluster)
        if logged and not excused:
            raise SeriesVoid(f"cluster {cluster.spec} failed before a round: {'; '.join(logged)}")

    def permit(self, metric: str) -> None:
        """Raise ConfigError for a metric or counter that no claim about these loads can have, before any round.

        Of what capacity a rate is a share is measured for the first claim that has to know it.
        """
        comparability.refuse(self._loads, self._profile, metric)
        if self.arrival_rate and metrics.needs_capacity(metric, self.arrival_rate):
            self._compare_labels(0)
            self._find_rate(self.arrival_rate)

    def check(self) -> None:
        """Every cluster ready and drained, tables equal on all nodes, no new [ERROR] line, the load's own conditions.

        Raises SeriesVoid.
        """
        if self.in_turns:  # each turn ended with its check, and only the last cluster still runs
            return
        with self._pool.turns.building():
            for running in {id(item): item for item in self._pool.running(self._everywhere)}.values():
                self._check(running)

    def _check(self, running: Running) -> None:
        loads = dict.fromkeys(map(comparability.tables, self._loads))
        running.cluster.check(comparability.left_tables(loads, self._profile))
        for load in loads:
            if found := load.violations(running.cluster):
                running.cluster.dirty = "; ".join(found)
                raise SeriesVoid(f"{load} on {running.cluster.spec}: its own check failed: {'; '.join(found)}")

    def blind_spot(self, kind: str, *numbers: int) -> str:
        """Claims about flushing say nothing where a flush costs nothing, nor do those about nodes that share cores."""
        variants = [self.variants[number] for number in numbers]
        shared = blind_spots.scaling(kind, [variant.spec for variant in variants], self._pool.provisioner.offers)
        if shared:
            return shared
        with self._pool.turns.building():  # the first client may be a container, and the disk's speed is measured
            return blind_spots.flushing(variants, self._pool.client(self.client).directory)

    def differences(self, candidate: int, baseline: int) -> dict[str, tuple[str, str]]:
        """The effective server variables on which two variants differ, as baseline and candidate have them."""
        return differing(self._effective(baseline), self._effective(candidate))

    def _effective(self, variant: int) -> dict[str, str]:
        """All global variables of the variant's first writer, read once: each switch proves them anew."""
        if variant not in self._variables:
            with self._pool.turns.building():
                running = self._serving(variant)
                running.switch.to(self._changes[variant])
                self._variables[variant] = running.cluster.writers[0].variables()
        return self._variables[variant]

    def durability(self, variant: int) -> str:
        """What a commit of a variant that has returned is worth."""
        if variant not in self._labels:
            known, variables = self.variants[variant], self._effective(variant)
            self._labels[variant] = Durability.of(known.topology, variables, known.spec.nodes)
        return str(self._labels[variant])

    def notes(self, *numbers: int) -> list[str]:
        """Durability of all, the effective variables on which neighbours differ, and the client of several releases."""
        labels = "; ".join(f"{self.names[number]} {self.durability(number)}" for number in numbers)
        specs = {self.names[number]: self.variants[number].spec for number in numbers}
        needs = {name: spec.needs for name, spec in specs.items()}
        lines = [f"durability: {labels}", *shapes_line(specs), *hosts_line(needs)]
        for candidate, baseline in itertools.pairwise(numbers):
            found = self.differences(candidate, baseline)
            lines.append(differing_line(self.names[baseline], self.names[candidate], found))
        if len({(variant.release.name, variant.release.version) for variant in self.variants}) > 1:
            lines.append(f"client of all variants: that of {self.client.name} {self.client.version}")
        return lines


@contextlib.contextmanager
def _marked_when_ended(cluster: Cluster) -> Iterator[None]:
    """Nobody uses a cluster again whose tables were left in the middle of something."""
    try:
        yield
    except BaseException as error:
        cluster.dirty = f"a round ended early: {type(error).__name__}"
        raise
