"""The real laboratory: runs the rounds of one load on running clusters, and checks them afterwards."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import random
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from pytest_dbcluster import counters, doctor, wait
from pytest_dbcluster.cluster import Cluster
from pytest_dbcluster.errors import NotReady
from pytest_dbcluster.options import differences
from pytest_dbcluster.pool import Pool, Running
from pytest_dbcluster.sampler import Sampler
from pytest_dbcluster.variants import Variant, is_identity
from pytest_dbcluster.workload import Outcome, Round, Setting, Workload

SETTLE_SECONDS = 1.0
DRAIN_SECONDS = 30.0
JITTER = 0.1  # of a round, and of the servers' longest timer (innodb_flush_log_at_timeout, 1 s) where that is shorter
TURN = 3  # rounds a start, where clusters take turns
FLUSHING = ("innodb_flush_log_at_trx_commit", "sync_binlog", "innodb_flush_method", "innodb_doublewrite")


class ClusterLaboratory:
    """One load on several variants, each on the running cluster that serves it."""

    def __init__(
        self, load: Workload, variants: Sequence[Variant], pool: Pool, profile: str, progress: Callable[[str], None]
    ) -> None:
        self.names = unique_names(variants)
        self.load = str(load)
        self.mode = str(getattr(load, "mode", ""))
        self.variants = list(variants)
        self._load = load
        self._pool = pool
        self._profile = profile
        self._progress = progress
        self._changes = [pool.changes(variant) for variant in variants]
        self._coin = random.Random(0)
        self._last = 0.0
        self._variables: dict[int, dict[str, str]] = {}

    @functools.cached_property
    def in_turns(self) -> bool:
        """Whether memory holds one of the clusters at a time only: then each turn is a start and several rounds."""
        several = len({variant.cluster_key for variant in self.variants}) > 1
        if not several or self._pool.room_for_all(self.variants):
            return False
        self._progress(f"{self.load}: no memory for all clusters at once: in turns, {TURN} rounds a start, one value")
        return True

    def _needed(self, variant: int) -> list[Variant]:
        return [self.variants[variant]] if self.in_turns else self.variants

    def _serving(self, variant: int) -> Running:
        found = self._pool.running(self._needed(variant))
        return found[0] if self.in_turns else found[variant]

    def _setting(self, running: Running) -> Setting:
        # One client binary for all variants of a comparison: the first variant's.
        return Setting(running.cluster, self._pool.client(), self.variants[0].release, self._profile, self._progress)

    def _ready(self, variant: int) -> Running:
        for running in self._pool.running(self._needed(variant)):
            if running.prepared != self._load:
                with _marked_when_ended(running.cluster):
                    self._load.prepare(self._setting(running))
                    running.cluster.settle(DRAIN_SECONDS)
                running.prepared = self._load
        return self._serving(variant)

    def round(self, variant: int, *, block: int, position: int) -> Round:
        """Switch, reset, settle; then measure between two readings of the counters; then drain.

        Anything that ends it early, Ctrl-C included, marks the cluster as not to be reused.
        """
        began = time.monotonic()
        running = self._ready(variant)
        with _marked_when_ended(running.cluster):
            if not self.in_turns:
                return self._round(running, variant, block, position, began)
            # The first round after a start is a warm-up of its own.
            rounds = [self._round(running, variant, block, position, began) for _ in range(TURN + 1)][1:]
            self._effective(variant)
            running.cluster.check(self._tables())
            return merged(rounds)

    def _round(self, running: Running, variant: int, block: int, position: int, began: float) -> Round:
        cluster, setting = running.cluster, self._setting(running)
        running.switch.to(self._changes[variant])
        if self._load.writes:
            self._load.reset(setting)
        settled = cluster.settle(SETTLE_SECONDS)
        time.sleep(self._coin.uniform(0, JITTER) * min(1.0, self._last))
        before = counters.read(cluster.nodes)
        started = time.time()
        with Sampler({node.name: node.process.pid for node in cluster.nodes if node.process}) as sampler:
            outcome = self._load.run(setting)
        drained = _drain(cluster)
        found = counters.deltas(before, counters.read(cluster.nodes), seconds=outcome.seconds, commits=outcome.commits)
        self._last = outcome.seconds
        return Round(
            variant=self.names[variant],
            block=block,
            position=position,
            outcome=outcome,
            wall=time.monotonic() - began,
            started=started,
            settled=settled,
            counters={**found, "drain_seconds": drained},
            samples=sampler.rates(),
        )

    def check(self) -> None:
        """Every cluster ready and drained, tables equal on all nodes, no new [ERROR] line."""
        if self.in_turns:  # each turn ended with its check, and only the last cluster still runs
            return
        for running in {id(item): item for item in self._pool.running(self.variants)}.values():
            running.cluster.check(self._tables())

    def _tables(self) -> Sequence[str]:
        return () if self._profile == "paper" else self._load.tables

    def blind(self, candidate: int, baseline: int) -> str:
        """Claims about flushing say nothing where a flush costs nothing."""
        differ = differences(self.variants[candidate].options, self.variants[baseline].options)
        if not any(name in FLUSHING for name in differ):
            return ""
        directory = self._pool.client().directory
        seconds = doctor.fsync_seconds(directory)
        if seconds >= doctor.BLIND_FSYNC:
            return ""
        return f"an fsync takes {seconds * 1e6:.0f} us in {directory}: this disk cannot show what flushing costs"

    def differences(self, candidate: int, baseline: int) -> dict[str, tuple[str, str]]:
        """The effective server variables on which two variants differ, as baseline and candidate have them."""
        found = differences(self._effective(baseline), self._effective(candidate))
        return {name: both for name, both in found.items() if not is_identity(name)}

    def _effective(self, variant: int) -> dict[str, str]:
        """All global variables of the variant's first node, read once: each switch proves them anew."""
        if variant not in self._variables:
            running = self._serving(variant)
            running.switch.to(self._changes[variant])
            self._variables[variant] = running.cluster.nodes[0].variables()
        return self._variables[variant]

    def durability(self, variant: int) -> str:
        """Who has what on disk when a commit returns."""
        return durability_label(self._effective(variant), self.variants[variant].spec.topology)

    def notes(self, candidate: int, baseline: int) -> list[str]:
        """Durability of both, and the effective variables on which they differ."""
        differ = self.differences(candidate, baseline)
        shown = ", ".join(f"{name}: {old} -> {new}" for name, (old, new) in differ.items()) or "none"
        return [
            f"durability: {self.names[candidate]} {self.durability(candidate)}; "
            f"{self.names[baseline]} {self.durability(baseline)}",
            f"variables that differ ({self.names[baseline]} -> {self.names[candidate]}): {shown}",
        ]


@contextlib.contextmanager
def _marked_when_ended(cluster: Cluster) -> Iterator[None]:
    """Nobody uses a cluster again whose tables were left in the middle of something."""
    try:
        yield
    except BaseException as error:
        cluster.dirty = f"a round ended early: {type(error).__name__}"
        raise


def merged(rounds: Sequence[Round]) -> Round:
    """The rounds of one start as one: times, operations and commits added up, the rest as means."""
    outcomes = [item.outcome for item in rounds]
    commits = [one.commits for one in outcomes if one.commits is not None]
    return dataclasses.replace(
        rounds[-1],
        outcome=Outcome(
            seconds=sum(one.seconds for one in outcomes),
            operations=sum(one.operations for one in outcomes),
            commits=sum(commits) if commits else None,
        ),
        started=rounds[0].started,
        settled=all(item.settled for item in rounds),
        counters=_means([item.counters for item in rounds]),
        samples=_means([item.samples for item in rounds]),
    )


def _means(many: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {name: statistics.fmean(one[name] for one in many if name in one) for name in many[0]}


def durability_label(variables: Mapping[str, str], topology: str) -> str:
    """``flush=1, binlog off, certified on all nodes``."""
    log = f"flush={variables.get('innodb_flush_log_at_trx_commit', '?')}"
    binlog = "binlog off"
    if variables.get("log_bin") == "ON":
        binlog = f"sync_binlog={variables.get('sync_binlog', '?')}"
    holders = {"galera": "certified on all nodes", "standalone": "one server"}.get(topology, topology)
    return f"{log}, {binlog}, {holders}"


def unique_names(variants: Sequence[Variant]) -> list[str]:
    """The short names; with the release added to those that would be the same."""
    names = [variant.spec.short_name for variant in variants]
    return [
        f"{name}@{variant.release.name}" if names.count(name) > 1 else name
        for name, variant in zip(names, variants, strict=True)
    ]


def _drain(cluster: Cluster) -> float:
    """Seconds until every node has applied what the round wrote."""
    backlog = getattr(cluster.topology, "backlog", None)
    if backlog is None:
        return 0.0
    try:
        return wait.until(lambda: backlog(cluster.nodes), "drain after a round", seconds=DRAIN_SECONDS, poll=0.01)
    except NotReady:
        return DRAIN_SECONDS
