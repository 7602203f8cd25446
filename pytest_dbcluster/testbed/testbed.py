"""``Testbed``: runs the rounds of a measurement on running clusters, and checks the clusters afterwards.

``Testbed.round`` prepares, switches, resets and settles the cluster. ``round_runner.run_round`` runs the round itself.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TypeVar

from pytest_dbcluster import wait
from pytest_dbcluster.claims import block_order
from pytest_dbcluster.claims.cluster_difference import ClusterDifference
from pytest_dbcluster.clusters.cluster import Cluster, trace_row
from pytest_dbcluster.errors import DBClusterError, SeriesVoid
from pytest_dbcluster.formatting import Report, quantity
from pytest_dbcluster.measuring.drawing.round_source import RoundSource
from pytest_dbcluster.measuring.evidence import Evidence
from pytest_dbcluster.measuring.question import Question
from pytest_dbcluster.measuring.race.terms import INSTANCES as RACING_INSTANCES
from pytest_dbcluster.network import CLIENT, REST
from pytest_dbcluster.releases.release import Release
from pytest_dbcluster.rounds import busy_machine, metrics, open_loop
from pytest_dbcluster.rounds.round import Round
from pytest_dbcluster.rounds.round_length import RoundLength
from pytest_dbcluster.system.tracing.recorder import span
from pytest_dbcluster.testbed import calibrations, comparability, names, round_runner
from pytest_dbcluster.testbed.datasets import read_whole
from pytest_dbcluster.testbed.evidence import blind_spots, durability
from pytest_dbcluster.testbed.evidence.gather import Gatherer
from pytest_dbcluster.testbed.pool import Pool, Running
from pytest_dbcluster.testbed.timeline import Timeline
from pytest_dbcluster.testbed.variants import Variant, share_path, unequal_sharing
from pytest_dbcluster.workloads.workload import Setting, Workload

T = TypeVar("T")
INSTANCES = 2  # clusters for each variant, if variants differ in topology or release
FIT_SECONDS = 60.0
TURN = 3  # rounds that count for each start, if clusters run one at a time
LINE = 200  # characters of a server's log line in a message


class Testbed(RoundSource):
    """The ``RoundSource`` of real clusters: one workload on several variants, or several workloads on each variant.

    - workload: one workload for all variants, or a mapping of names to workloads. With n workloads, ``variants`` has
      the same specs n times, first for the first workload.
    - profile: ``quick`` or ``paper``.
    - instances: clusters for each variant; None chooses.
    - across_durability: allow variants with different durability.
    - sampled: take a sample of every second, for ``timeline``.

    Raises ConfigError for variants with different durability, unless ``across_durability`` is set. If only the
    topologies decide, this raises it before any cluster starts; otherwise the first round raises it.
    """

    __test__ = False  # so that pytest does not collect this class as a test because of its name

    def __init__(
        self,
        workload: Workload | Mapping[str, Workload],
        variants: Sequence[Variant],
        pool: Pool,
        profile: str,
        progress: Report,
        *,
        across_durability: bool = False,
        instances: int | None = None,
        sampled: bool = False,
    ) -> None:
        self._workloads, self.names = names.pairs(workload, variants)
        self.mode = "" if isinstance(workload, Mapping) else workload.mode_name
        self._describe_workloads()
        self.load = " and ".join(dict.fromkeys(map(str, self._workloads)))
        self.metric = comparability.metric(self._workloads)
        self.arrival_rate = open_loop.ArrivalRate.of(comparability.rate(self._workloads))
        self.round_seconds, self.free_length = comparability.seconds(self._workloads)
        each = zip(share_path(variants), self._workloads, strict=True)
        self.variants = [variant.with_data_set_of(workload) for variant, workload in each]
        comparability.check_tables(self._workloads, self.variants)
        # All variants have the same client release; clients of either vendor reach servers of both.
        self.client: Release = self.variants[0].release
        # Variants of one topology and release can share an instance; instances of others differ (calibrations.py).
        several = len({(variant.spec.topology, variant.release_name) for variant in variants}) > 1
        self.instances = (INSTANCES if several else 1) if instances is None else instances
        self._pool, self._profile, self._progress = pool, profile, progress
        self._across_durability = across_durability
        self._changes = [pool.resolution.changes(variant) for variant in self.variants]
        self._repeat, self._of_pair, self.is_used = 1, len(self.names), True
        self._timeline = Timeline() if sampled else None
        self._gatherer = Gatherer(self.names, self.variants, pool, self.client, self._switch_cluster)
        self._network, self.resolved = self._gatherer.network, self._gatherer.resolved
        self._compared = set[int]()  # variants whose durability was compared
        self._excused = set[Cluster]()  # after a void round
        self._racing = list(range(len(self.variants)))  # without those that left a race
        self._used: Cluster | None = None  # the cluster of the last round
        durability.compare_promises(self.names, self.variants, pool.resolution.defaults, allowed=across_durability)

    def _describe_workloads(self) -> None:
        """Set what claims, records and ids have of the workloads besides their names."""
        self.data = comparability.data_texts(self.names, self._workloads)
        self.files = comparability.files(self.names, self._workloads)
        self.content = "-".join(dict.fromkeys(one.content_hash for one in self._workloads if one.content_hash))
        self.parts = comparability.parts(self._workloads)

    def _compare_labels(self, variant: int) -> None:
        """Compare all durability labels before the first round; one at a time, before each variant's first round."""
        if variant in self._compared:
            return
        numbers = [variant] if self.one_at_a_time else range(len(self.variants))
        with span("evidence"):
            self._gatherer.compare_labels(numbers, allowed=self._across_durability)
        self._compared.update(numbers)

    @functools.cached_property
    def one_at_a_time(self) -> bool:
        """Whether clusters run one at a time, because memory cannot hold all: each turn is a start and TURN rounds."""
        clusters = {variant.cluster_key for variant in self._all_instances}
        if len(clusters) == 1 or self._pool.room_for_all(self._all_instances):
            return False
        self._progress(
            f"{self.load}: not enough memory to run all clusters together; they start one at a time, and {TURN} rounds "
            "per start count as one value"
        )
        return True

    def _variants_needed(self, variant: int) -> list[Variant]:
        return [self.variants[variant]] if self.one_at_a_time else self._all_instances

    @property
    def _all_instances(self) -> list[Variant]:
        """All variants on the first instance, then all variants on the next one; without those that left a race."""
        running = [self.variants[number] for number in self._racing]
        return [one.on_instance(one.spec.instance + number) for number in range(self.instances) for one in running]

    def _cluster_of(self, variant: int, instance: int = 0) -> Running:
        clusters = self._pool.running(self._variants_needed(variant), self)
        if self.one_at_a_time:
            return clusters[0]
        return clusters[instance * len(self._racing) + self._racing.index(variant)]

    def _setting(self, running: Running) -> Setting:
        path = running.cluster.path
        hosts = [path.host(CLIENT)] if path and path.has_host(CLIENT) else self._pool.clients(self.client)
        self._pool.bring(self.client, hosts[0])
        return Setting(running.cluster, hosts[0], self.client, self._profile, self._progress, others=tuple(hosts[1:]))

    def _prepare(self, variant: int, instance: int) -> Running:
        workload, tables = self._workloads[variant], comparability.tables(self._workloads[variant])
        alike = [number for number, other in enumerate(self._workloads) if comparability.tables(other) == tables]
        cold: list[Cluster] = []
        for number, running in enumerate(self._pool.running(self._variants_needed(variant), self)):
            # A cluster with the data set of another workload never runs this one.
            mine = self.one_at_a_time or self._racing[number % len(self._racing)] in alike
            first = running.data is None
            if mine and running.lacks(comparability.data(workload), tables):
                row = trace_row(running.cluster.spec)
                with self._pool.turns.building(), span("load", row), self._mark_dirty_on_error(running.cluster):
                    self._load(running, workload)
                    if first and not self.one_at_a_time and unequal_sharing(self.variants):
                        cold.append(running.cluster)
                    running.cluster.settle(round_runner.DRAIN_SECONDS)
                running.prepared.add(tables)
        if cold:
            with self._pool.turns.building(), span("load"), contextlib.ExitStack() as marked:
                for cluster in cold:
                    marked.enter_context(self._mark_dirty_on_error(cluster))
                read_whole(cold, workload.tables, self._progress)
        return self._cluster_of(variant, instance)

    def _load(self, running: Running, workload: Workload) -> None:
        """Give a cluster the tables of a workload."""
        if running.cluster.path:
            running.cluster.path.shape(REST)
        running.cluster.topology.apply({}, running.cluster.nodes)
        with running.cluster.ending_loads((setting := self._setting(running)).clients):
            workload.prepare(setting)

    def round(self, variant: int, *, block: int, position: int) -> Round:
        """Run one round of a variant (0-based) and return it.

        The steps: start and populate the cluster if needed, switch, reset, settle, measure, drain.
        Blocks alternate the instances; all variants of a block use the same instance. An error or Ctrl-C during the
        round marks the cluster as dirty, so no later round uses it. The first round raises ConfigError for variants
        with different durability, unless ``across_durability`` is set.
        """
        self._begin(variant)
        return self._draw(variant, block, position, time.monotonic())

    def continues(self, other: RoundSource) -> bool:
        """Whether both run on the same clusters with one data set, so that they differ only in the workload."""
        if not isinstance(other, Testbed) or self.one_at_a_time or self.instances != other.instances:
            return False
        own, others = ([one.cluster_key for one in of.variants if one.data_set_of] for of in (self, other))
        return own == others and len(own) == len(self.variants)

    def prepare_race(self, instances: int | None) -> None:
        """Refuse equal variants; separate clusters get four instances each, unless the test says how many."""
        comparability.refuse_equal(self.names, self.variants)
        if instances is None:
            self.instances = RACING_INSTANCES if len({one.cluster_key for one in self.variants}) > 1 else 1

    def leave(self, numbers: Collection[int], lines: Sequence[str]) -> None:
        """``RoundSource.leave``: clusters that only these variants use are checked and ended."""
        for line in lines:
            self._progress(f"{self.load}: {line}")
        before = [] if self.one_at_a_time else self._all_instances  # each turn has checked its cluster
        self._racing = [number for number in self._racing if number not in numbers]
        kept = {one.cluster_key for one in self._all_instances}
        gone = [one.cluster_key not in kept for one in before]
        if any(gone):
            with self._pool.turns.finishing():
                self._check(*itertools.compress(self._pool.running(before, self), gone))
                self._pool.end_keys([one.cluster_key for one in itertools.compress(before, gone)])

    @property
    def rounds_of_value(self) -> int:
        """``RoundSource.rounds_of_value``: a fresh cluster has several rounds that count as one value."""
        return TURN if self.one_at_a_time else 1

    def instances_in_turn(self) -> int:
        """The number of instances of each variant. Clusters that run one at a time have one, which starts fresh."""
        return 1 if self.instances == 1 or self.one_at_a_time else self.instances

    @contextlib.contextmanager
    def exclusive(self) -> Iterator[None]:
        """Lock the machine for a few rounds, one of each variant: no other run builds or measures meanwhile.

        Clusters that run one at a time start between the rounds; then each turn locks the machine.
        """
        if self.one_at_a_time:
            yield
            return
        self._begin(0)
        self._prepare(self._racing[0], 0)
        with self._pool.measuring():
            yield

    def _begin(self, variant: int) -> None:
        """Before the first round, compare durability and find an arrival rate that is a share of the capacity."""
        self._compare_labels(variant)
        if self.arrival_rate and self.arrival_rate.rate is None:
            self._find_rate(self.arrival_rate)

    def _find_rate(self, wanted: open_loop.ArrivalRate) -> None:
        """Measure the capacity of each variant in a closed loop.

        The slowest variant's capacity turns a share into the arrival rate of all variants, or a rate into its share.
        """
        workloads = self._workloads
        self._progress(f"{self.load}: measuring the capacity of each variant in a closed loop")
        self._workloads = [comparability.at_rate(workload, None) for workload in workloads]
        try:
            orders = block_order.block_orders(len(workloads), 0)
            draw = functools.partial(self._draw, began=time.monotonic())
            with span("capacity"):
                self.arrival_rate = wanted.with_capacities(open_loop.capacities(self.names, orders, draw))
            if wanted.rate is None:
                workloads = [comparability.at_rate(workload, self.arrival_rate.rate) for workload in workloads]
        finally:
            self._workloads = workloads
        self._progress(f"{self.load}: {self.arrival_rate.line}")

    def lower_rate(self, why: str, done: float) -> bool:
        """Lower the arrival rate of all variants, once and only if it is a share of the capacity; return success."""
        if self.arrival_rate is None or (lower := self.arrival_rate.lower(why, done)) is None:
            return False
        self.arrival_rate = lower
        self._workloads = [comparability.at_rate(workload, lower.rate) for workload in self._workloads]
        self._progress(f"{self.load}: {lower.line}; all rounds begin again")
        return True

    def set_length(self, length: RoundLength) -> None:
        """Set the length of all later rounds, of all variants."""
        self._workloads = [comparability.with_seconds(workload, length.seconds) for workload in self._workloads]
        self._progress(f"{self.load}: {length.line}; {length.expected_time(self._of_pair)}")

    def set_repeat(self, times: int) -> None:
        """Let all later rounds repeat their work so many times, if a workload has a fixed amount of work."""
        self._repeat = times

    def _take_turn(self, variant: int, block: int) -> Running:
        running = self._prepare(variant, block % self.instances)
        if self.one_at_a_time and running.warm:
            self._pool.end(self._variants_needed(variant))  # otherwise two clusters are compared, and not two variants
            running = self._prepare(variant, 0)
        return running

    def _draw(self, variant: int, block: int, position: int, began: float) -> Round:
        running = self._take_turn(variant, block)
        warm = running.is_warm(block)
        self.is_used = self.one_at_a_time or (self.is_used and warm)  # each turn has a warm-up
        queued = time.monotonic()
        with self._pool.measuring(), self._mark_dirty_on_error(running.cluster):
            began += time.monotonic() - queued  # a round does not include the wait for the machine
            if not self.one_at_a_time:
                return self._round(running, variant, block, position, began)
            with span("warm-up"):  # the first round after a start
                self._round(running, variant, block, position, began)
            done = round_runner.merge([self._round(running, variant, block, position, began) for _ in range(TURN)])
            if not done.void:
                self._check(running)
            return done

    def _round(self, running: Running, variant: int, block: int, position: int, began: float) -> Round:
        """One round; void if the nodes' network, or a host, was lost. Then no later round uses the cluster."""
        cluster = running.cluster
        phase = "round" if block >= 0 else "warm-up"
        try:
            with span(phase, self.names[variant], load=self.load, block=block, position=position) as timed:
                done = self._on_path(running, variant, block, position, began)
                timed.details |= {"measured": done.seconds, "void": done.void}
        except DBClusterError:
            if cluster.path is None or not (lost := cluster.path.why_lost()):
                raise
            done = round_runner.void_round(lost, variant=self.names[variant], block=block, position=position)
        if cluster.path and (lost := cluster.path.why_lost()):
            cluster.dirty, done = lost, dataclasses.replace(done, void=lost)
        cluster.dirty = cluster.dirty or (cluster.lost_host if done.void else "")
        return done

    def _on_path(self, running: Running, variant: int, block: int, position: int, began: float) -> Round:
        cluster, workload = running.cluster, self._workloads[variant]
        self._used = cluster
        setting = self._setting(running)
        setting = dataclasses.replace(setting, variant=self.names[variant], block=block, repeat=self._repeat)
        with self._fit(cluster):
            with span("switch"):
                self._switch(running, variant)
                self._network.before(self.names[variant], cluster.path, self.variants[variant].network)
            with span("reset"):
                late, settled = round_runner.reset(workload, setting)
        whole = functools.partial(self._run_round, workload, setting)
        measured: Callable[..., Round] = functools.partial(round_runner.void_round, late) if late else whole
        done = measured(variant=self.names[variant], block=block, position=position)
        if void := done.void:
            self._excused.add(cluster)
            logged = cluster.new_errors()
            void += f"; {len(logged)} [ERROR] lines, the first: {logged[0][:LINE]}" if logged else ""
        return dataclasses.replace(done, settled=settled, wall=time.monotonic() - began, void=void)

    def _run_round(self, workload: Workload, setting: Setting, *, variant: str, block: int, position: int) -> Round:
        """``round_runner.run_round`` with the timeline."""
        run = functools.partial(round_runner.run_round, workload, setting, timeline=self._timeline)
        return run(variant=variant, block=block, position=position)

    def _switch_cluster(self, variant: int) -> Cluster:
        running = self._cluster_of(variant)
        self._switch(running, variant)
        return running.cluster

    def _switch(self, running: Running, variant: int) -> None:
        """Switch a cluster and its network to a variant, with the same statements for any current variant."""
        self._shape(running, variant)
        key = self.variants[variant].cluster_key
        sharing = [number for number, other in enumerate(self.variants) if other.cluster_key == key]
        running.switch.to(self._changes[variant], among={name for n in sharing for name in self._changes[n]})

    def _shape(self, running: Running, variant: int) -> None:
        """Give a cluster the network and the topology's options of a variant."""
        if running.cluster.path:
            running.cluster.path.shape(self.variants[variant].network or REST)
        running.cluster.topology.apply(dict(self.variants[variant].settings), running.cluster.nodes)

    @contextlib.contextmanager
    def _fit(self, cluster: Cluster) -> Iterator[None]:
        """Wait until the cluster is healthy again after a void round, and ignore [ERROR] lines since then.

        The block prepares it for a round. Raises NotReady after FIT_SECONDS, and SeriesVoid for any other [ERROR] line.
        """
        with cluster.fit(FIT_SECONDS) as logged:
            excused = cluster in self._excused
            self._excused.discard(cluster)
            yield
        if logged and not excused:
            raise SeriesVoid(f"cluster {cluster.spec} failed before a round: {'; '.join(logged)}")

    def use(self, does: Callable[[Setting], T]) -> T:
        """Call ``does``, which is not a round, on the first variant's prepared cluster, under the machine's lock.

        Raises what it raises; then no later round uses the cluster. The servers may log errors meanwhile.
        """
        running = self._prepare(0, 0)
        with self._pool.measuring(), self._mark_dirty_on_error(running.cluster):
            with self._fit(running.cluster):
                self._switch(running, 0)
            self._network.before(self.names[0], running.cluster.path, self.variants[0].network)
            done = does(self._setting(running))
            self._excused.add(running.cluster)
        return done

    def permit(self, metric: str) -> None:
        """Raise ConfigError before any round for a metric or counter that these workloads do not have.

        Measures the capacity of the variants for the first claim that needs it.
        """
        comparability.refuse(self._workloads, self._profile, metric)
        if self.arrival_rate and metrics.needs_capacity(metric, self.arrival_rate):
            self._compare_labels(0)
            self._find_rate(self.arrival_rate)

    def check(self) -> None:
        """Check that every cluster is ready and drained, with equal tables on all nodes and no new [ERROR] line.

        Checks the conditions of the workload too. Raises SeriesVoid for the first check that fails.
        """
        self.end()
        if self.one_at_a_time:  # each turn has checked its cluster, and only the last cluster still runs
            return
        with self._pool.turns.finishing(), span("check"):
            used = {id(running): running for running in self._pool.running(self._all_instances, self)}
            if any(type(one).violations is not Workload.violations for one in self._workloads):  # seconds for TPC-C
                self._progress(f"{self.load}: checking the tables of {quantity(len(used), 'cluster')}")
            self._check(*used.values())

    def end(self) -> None:
        """End the thread that samples every second; the next round starts it again."""
        if self._timeline:
            self._timeline.stop()

    def timeline(self, rounds: Sequence[Round]) -> str:
        """The samples of every second of these rounds as CSV (``timeline.Timeline.as_csv``); empty without rounds."""
        return self._timeline.as_csv(rounds) if self._timeline else ""

    def _check(self, *several: Running) -> None:
        """Check clusters: the delays first, while nothing else runs, then all clusters at once."""
        for running in several:
            with self._keep_logs_on_error(running.cluster):
                self._network.after(running.cluster.path)
        with wait.threads(len(several)) as threads:
            list(threads.map(self._check_one, several))

    def _check_one(self, running: Running) -> None:
        cluster, workloads = running.cluster, dict.fromkeys(map(comparability.tables, self._workloads))
        with span("check", trace_row(cluster.spec)), self._keep_logs_on_error(cluster):
            cluster.check(comparability.tables_to_check(workloads, self._profile))
            for workload in workloads:
                if violations := workload.violations(cluster):
                    cluster.dirty = "; ".join(violations)
                    raise SeriesVoid(f"{workload} on {cluster.spec}: the workload's check failed: {cluster.dirty}")

    @contextlib.contextmanager
    def _mark_dirty_on_error(self, cluster: Cluster) -> Iterator[None]:
        """Mark a cluster as dirty if an error ends a round early: its tables may be half changed. Keep its logs."""
        with self._keep_logs_on_error(cluster):
            try:
                yield
            except BaseException as error:
                cluster.dirty = f"a round ended early: {type(error).__name__}"
                raise

    @contextlib.contextmanager
    def _keep_logs_on_error(self, cluster: Cluster) -> Iterator[None]:
        """Keep the logs of a cluster that fails in the block, because its end removes its files."""
        try:
            yield
        except DBClusterError as error:
            cluster.keep_logs(self._pool.provisioner.logs, error)
            raise

    def cluster_difference(self, *numbers: int, metric: str) -> ClusterDifference | None:
        """How far equal clusters can differ, if neighbours of these variants run on separate clusters; otherwise None.

        The result is the largest of all neighbours. It is None for clusters that run one at a time: each turn is a
        fresh cluster, so their differences are part of the noise that the interval shows.
        """
        alone, setup = self.one_at_a_time, self._setup
        return None if alone else calibrations.largest_difference(numbers, setup, self.instances, metric)

    @property
    def _setup(self) -> calibrations.Setup:
        return calibrations.Setup(self.variants, self._workloads, self._pool.provisioner)

    def learn(self, rounds: Sequence[Sequence[Round]]) -> None:
        """``RoundSource.learn``, if the machine was not busy; each cluster is in one pair of a calibration."""
        if self.instances_in_turn() > 1 and not busy_machine.reason(dict(zip(self.names, rounds, strict=True))):
            calibrations.learn(rounds, self.instances, self._setup, self._pool.calibrated)

    def blind_spot(self, *numbers: int, by_size: bool = False) -> str:
        """Why this machine cannot decide a claim about these variants (0-based); empty if it can."""
        variants, offers = [self.variants[number] for number in numbers], self._pool.provisioner.offers
        if shared := blind_spots.scaling([one.spec for one in variants], offers, by_size=by_size):
            return shared
        with self._pool.turns.building(), span("evidence"):  # it may start a client's container, and measures the disk
            hosts = [self._pool.data_host(variant, self.client) for variant in variants]
            return blind_spots.flushing(variants, hosts)

    def notice(self) -> str:
        """Why the hosts will soon be gone; empty while they stay."""
        return self._pool.provisioner.notice()

    def evidence(self, question: Question) -> Evidence:
        """The evidence about the clusters of a question. Starts missing clusters."""
        with span("evidence"):
            return self._gatherer.evidence(question, self._workloads, self._used, self.mode)
