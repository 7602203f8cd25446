"""How far equal clusters can differ, for a variant and its workload: a calibration on this machine, or a default.

``dbcluster calibrate`` measures pairs of fresh equal clusters and keeps a ``Calibration`` in the cache. Its key is made
of the machine, the provisioner, the cluster and the kind of workload. A measurement with several instances of a variant
adds its pairs (``learn``). A pair of clusters has a difference for each metric of its rounds. Without a calibration for
a metric, ``look_up`` returns a default of ``DEFAULTS``. ``claims.cluster_difference`` explains the figure.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import itertools
import json
import math
import os
import re
import shlex
import statistics
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import psutil

from pytest_dbcluster import formatting
from pytest_dbcluster.claims import intervals
from pytest_dbcluster.claims.block_order import PER_OPENING
from pytest_dbcluster.claims.cluster_difference import ASSUMED, LEAST_PAIRS, ClusterDifference, combine, upper
from pytest_dbcluster.errors import ConfigError, ProvisionError
from pytest_dbcluster.hosts.provisioner import Provisioner, name_of
from pytest_dbcluster.rounds import counters, metrics
from pytest_dbcluster.rounds.round import DRAINED, SPEEDS, Round
from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.system import cache, probes
from pytest_dbcluster.testbed.variants import Variant
from pytest_dbcluster.workloads.workload import OpenLoop, Workload

FORMAT = 3  # of a calibration in the cache; increase it if its fields change
FOLDER = "calibrations"
LEARN = "DBCLUSTER_LEARN"
LEAST_ROUNDS = 2 * PER_OPENING  # of each cluster: one opening block for either half
MOST_PAIRS = 200  # the latest pairs of a calibration count
OPEN_LOOP = ", open loop"  # ends the kind of a workload with an arrival rate
LOCAL = "local"
SPEED = "speed"  # the name of all of SPEEDS in DEFAULTS
CALIBRATED = ("tpcc", "sysbench", "mysqlslap")  # tools that the command accepts

PairDifference = tuple[
    float, float
]  # how two clusters differ in a metric, and the standard error of it from the rounds


@dataclasses.dataclass(frozen=True)
class Default:
    """The difference of equal clusters without a calibration."""

    fraction: float
    """How much faster one of two equal clusters can be (1 in 200)."""

    date: str
    """Date of the measurement."""

    on: str
    """Clusters and machine of the measurement."""

    pairs: int = 0
    """Measured pairs of clusters; 0 for an assumption."""

    @property
    def difference(self) -> ClusterDifference:
        """The same as a ClusterDifference."""
        how = f"default, measured elsewhere: {self.pairs} pairs of clusters" if self.pairs else f"default, {ASSUMED}"
        return ClusterDifference(math.log1p(self.fraction), f"{how}, {self.on}, {self.date}".rstrip(", "), self.pairs)


# By kind of workload (``mysqlslap:key``) or only the tool, then by metric or by ``family_of``. Measured on pairs of
# fresh equal Galera clusters of 3 nodes, under write, key, oltp_read_write and one warehouse. The figures are upper
# limits from the pairs, less the noise of their rounds (``cluster_difference.upper``).
# Speeds:
# - mysqlslap: 48 rounds of each cluster, key 56, on an idle machine. The rounds' noise was 2.4 % (key 1.2 %). Half of
#   the pairs differed by less than 1.6 % (1.1 %), the largest by 3.7 % (2.3 %).
# - oltp_point_select: 16 rounds, idle too. The noise was 1.5 %. Half of the pairs differed by less than 1.0 %, the
#   largest by 5.0 %.
# - Other scripts and TPC-C: on a busier machine. The noise was 5.6 and 5.2 %, no less than the differences (3.1 and
#   5.2 %), so a calibration with more rounds can give smaller figures.
# Other metrics: 12 pairs with 24 rounds of each cluster, on a machine with five times as many runnable tasks as cores.
# The workloads were write (rounds of .3 s) and oltp_read_write in an open loop (.5 s). ``work`` is the largest figure
# of such a counter (log_bytes); row_lock_waits had 8 pairs. For ``drain_seconds`` and latencies, the rounds' noise (10
# to 26 %) was as large as the differences, so a calibration can give smaller figures. The cluster that we started first
# was neither faster nor slower: the means of the signed differences were -.2, -.3 and .6 %, with standard errors of .8,
# .7 and .8 %. So clusters do not exchange places half-way. More instances lower the difference.
_ON = "galera of 3 nodes on one machine of 2 cores"
_BUSY = f"{_ON}, busy"


def _busy(**fractions: float) -> dict[str, Default]:
    """Defaults from 12 pairs of clusters on a busy machine."""
    return {metric: Default(fraction, "2026-11-24", _BUSY, 12) for metric, fraction in fractions.items()}


_WRITE = _busy(
    work=0.041,
    fsyncs=0.01,
    fsyncs_per_commit=0.01,
    log_writes=0.01,
    log_writes_per_commit=0.01,
    drain_seconds=0.632,
    paused_ns=0.356,
    paused_share=0.228,
    flow_control_sent=0.141,
)
_READ_WRITE = _busy(
    p50=0.344,
    p95=0.466,
    p99=0.330,
    p999=0.360,
    work=0.429,
    fsyncs=0.016,
    fsyncs_per_commit=0.013,
    drain_seconds=0.728,
)
_LOCKS = {"row_lock_waits": Default(2.727, "2026-11-24", _BUSY, 8)}
DEFAULTS: Mapping[str, Mapping[str, Default]] = MappingProxyType(
    {
        "mysqlslap": {SPEED: Default(0.051, "2026-11-23", _ON, 12), **_WRITE},
        "mysqlslap:key": {SPEED: Default(0.030, "2026-11-23", _ON, 13)},
        "sysbench": {SPEED: Default(0.068, "2026-11-23", _ON, 24), **_READ_WRITE, **_LOCKS},
        "sysbench:oltp_point_select": {SPEED: Default(0.055, "2026-11-24", _ON, 12)},
        "tpcc": {SPEED: Default(0.076, "2026-11-23", _ON, 48)},
    }
)
# Assumptions by family, larger than the figures of all workloads above.
_ASSUMED = {
    SPEED: 0.10,
    "p50": 0.50,
    "p95": 0.50,
    "p99": 0.50,
    "p999": 0.50,
    "work": 0.45,
    "timing": 3.00,
}
UNKNOWN = {family: Default(fraction, "", "for this kind of workload") for family, fraction in _ASSUMED.items()}
ELSEWHERE = {family: Default(fraction, "", "for hosts on other machines") for family, fraction in _ASSUMED.items()}


@dataclasses.dataclass(frozen=True)
class CalibrationKey:
    """What a calibration is valid for."""

    machine: str
    """CPUs and memory, as text (``machine``)."""

    provisioner: str
    """Name of the provisioner."""

    topology: str
    """Name of the topology."""

    nodes: int
    """Number of nodes."""

    release: str
    """Name of the release, such as ``mariadb:10.11``."""

    proxy: str
    """Name of the proxy; empty for none."""

    kind: str
    """Kind of the workload (``kind_of``)."""

    @classmethod
    def of(cls, variant: Variant, workload: Workload, provisioner: Provisioner) -> CalibrationKey:
        """The key of a variant under a workload, on hosts of this provisioner."""
        return cls.of_spec(variant.spec, variant.release_name, workload, provisioner)

    @classmethod
    def of_spec(cls, spec: ClusterSpec, release: str, workload: Workload, provisioner: Provisioner) -> CalibrationKey:
        """The key of a cluster that is not resolved yet. release: such as ``mariadb:10.11``."""
        proxy, kind = spec.proxy or "", kind_of(workload)
        return cls(
            machine(provisioner.environment), name_of(provisioner), spec.topology, spec.nodes, release, proxy, kind
        )

    @property
    def path(self) -> Path:
        """The file of this calibration in the cache."""
        text = json.dumps([FORMAT, *dataclasses.astuple(self)])
        name = f"{self.topology}{self.nodes}-{re.sub(r'[^a-z0-9_]+', '-', self.kind)}"
        return cache.root() / FOLDER / f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:16]}.json"

    def command(self, option: str = "") -> str:
        """The command that calibrates it; empty for a workload that the command does not accept.

        option: ``Workload.option``, the value of ``--workload`` for files of the user.
        """
        workload = self.kind.removesuffix(OPEN_LOOP)
        if not option and workload.partition(":")[0] not in CALIBRATED:
            return ""
        accepted = shlex.quote(option) if option else workload
        options = {"nodes": str(self.nodes), "release": self.release, "workload": accepted, "proxy": self.proxy}
        if self.provisioner != LOCAL:
            options["provisioner"] = self.provisioner
        given = " ".join(f"--{name} {value}" for name, value in options.items() if value)
        return f"dbcluster calibrate {self.topology} {given}{' --open-loop' if self.kind.endswith(OPEN_LOOP) else ''}"

    def __str__(self) -> str:
        behind = f" behind {self.proxy}" if self.proxy else ""
        return f"{self.topology} of {self.nodes} x {self.release}{behind}, {self.kind}, {self.provisioner}"


@dataclasses.dataclass(frozen=True)
class Calibration:
    """The measured pairs of fresh equal clusters for a key."""

    key: CalibrationKey
    """What the calibration is valid for."""

    pairs: tuple[Mapping[str, PairDifference], ...] = ()
    """For each pair of clusters, by metric: their log ratio, and its standard error from the rounds."""

    date: str = ""
    """Date of the last pair, such as ``2026-11-22``."""

    def with_pair(self, found: Mapping[str, PairDifference]) -> Calibration:
        """The same calibration with one more pair of clusters, measured today."""
        return Calibration(self.key, (*self.pairs, found)[-MOST_PAIRS:], time.strftime("%Y-%m-%d"))

    def differences(self, metric: str) -> list[float]:
        """The differences of the pairs of clusters that have this metric."""
        return [pair[metric][0] for pair in self.pairs if metric in pair]

    def noise(self, metric: str) -> float:
        """The standard error of a difference from its rounds: the root mean square of all pairs."""
        squares = [pair[metric][1] ** 2 for pair in self.pairs if metric in pair]
        return math.sqrt(math.fsum(squares) / max(1, len(squares)))

    def difference(self, metric: str) -> ClusterDifference | None:
        """The difference of equal clusters in a metric; None if too few pairs of clusters have it."""
        found = self.differences(metric)
        if len(found) < LEAST_PAIRS:
            return None
        f, source = upper(found, self.noise(metric)), f"measured on {len(found)} pairs of clusters, {self.date}"
        return ClusterDifference(f, source, len(found))

    def write(self) -> None:
        """Write it to the cache in one step. Raises OSError."""
        path = self.key.path
        path.parent.mkdir(parents=True, exist_ok=True)
        cache.write_manifest(path, {"format": FORMAT, **dataclasses.asdict(self)})


def read(key: CalibrationKey) -> Calibration:
    """The calibration of a key in the cache; without pairs if the cache has none of this format."""

    def parse(fields: Any) -> Calibration | None:
        if fields["format"] != FORMAT or fields["key"] != dataclasses.asdict(key):
            return None
        pairs = [{metric: (float(f), float(noise)) for metric, (f, noise) in pair.items()} for pair in fields["pairs"]]
        if not all(math.isfinite(value) for pair in pairs for found in pair.values() for value in found):
            return None
        return Calibration(key, tuple(pairs), str(fields["date"]))

    return cache.read_manifest(key.path, parse) or Calibration(key)


def add(key: CalibrationKey, found: Mapping[str, PairDifference]) -> Calibration:
    """Add a pair of clusters to the calibration in the cache, and return it. Raises OSError, ProvisionError.

    Concurrent runs add their pairs one after the other.
    """
    key.path.parent.mkdir(parents=True, exist_ok=True)
    lock = key.path.with_name(f"{key.path.name}.add.lock")
    with cache.hold_file(lock, progress=lambda _: None, waits_for=str(key)):
        known = read(key).with_pair(found)
        known.write()
    return known


def rounds_difference(first: Sequence[Round], second: Sequence[Round], load: str) -> dict[str, PairDifference]:
    """The difference of two equal clusters by metric: second / first as a log ratio, with its standard error.

    Round n of both is a pair. Half of the difference between both halves of the rounds estimates the standard error.
    This needs no model of the dependence between rounds. The result has no server gauges and no latencies of a
    closed loop. It has no counters that one of the clusters never counted.
    """
    found = {}
    half = len(first) // 2
    halves = (slice(None), slice(half), slice(half, None))
    for metric in _metrics_of(first[0]):
        try:
            for rounds in (first, second):
                metrics.require_operations(rounds, metric, load)
            values = [[metrics.ratio_value(done, metric, load) for done in rounds] for rounds in (first, second)]
        except ConfigError:
            continue
        whole, *parts = (_log_ratio(values[0][part], values[1][part], metric) for part in halves)
        if all(map(math.isfinite, (whole, *parts))):
            found[metric] = (whole, abs(parts[0] - parts[1]) / 2)
    return found


def _metrics_of(done: Round) -> list[str]:
    """The metrics of a round that claims can compare across clusters."""
    speeds = [name for name in SPEEDS if done.outcome.span is None or name in DRAINED]
    ledger = done.outcome.ledger
    types = list(ledger.entries) if ledger else []
    statements = list(done.outcome.statements)
    quantiles = list(metrics.QUANTILES) if ledger and done.outcome.rate is not None else []
    of_types = [f"{name}:{kind}" for name in ("goodput", *quantiles) for kind in types]
    of_types += [f"{name}:{statement}" for name in quantiles for statement in statements]
    counted = [name for name in done.counters if name in counters.NAMES and not counters.not_across(name)]
    return [*speeds, *quantiles, *of_types, *counted]


def _log_ratio(first: Sequence[float], second: Sequence[float], metric: str) -> float:
    """The log ratio of two clusters. A counter has the median of the rounds that counted; nan if no pair did."""
    if metrics.is_counter(metric):
        both = [math.log(b / a) for a, b in zip(first, second, strict=True) if a > 0 and b > 0]
        return statistics.median(both) if both else math.nan
    if min(*first, *second) <= 0:
        return math.nan
    return intervals.hodges_lehmann([math.log(b / a) for a, b in zip(first, second, strict=True)])


@dataclasses.dataclass(frozen=True)
class Setup:
    """The variants of a measurement, their workloads and their provisioner."""

    variants: Sequence[Variant]
    """All variants."""

    workloads: Sequence[Workload]
    """The workload of each variant."""

    provisioner: Provisioner
    """The provisioner of their hosts."""


def learn(rounds: Sequence[Sequence[Round]], instances: int, given: Setup, used: set[tuple[object, ...]]) -> int:
    """Add the differences between the instances of each variant to its calibration; return the number of new pairs.

    rounds: the rounds of each variant. used: the clusters that are in a pair already; this call adds its clusters, so
    that pairs are independent. A pair needs ``LEAST_ROUNDS`` rounds of each instance. If the cache is not writable,
    this adds nothing, because no claim depends on it. It also adds nothing if the environment variable ``LEARN`` is 0.
    """
    added = 0
    if os.environ.get(LEARN) == "0":
        return added
    for variant, workload, drawn in zip(given.variants, given.workloads, rounds, strict=True):
        key = CalibrationKey.of(variant, workload, given.provisioner)
        for number in range(0, instances - 1, 2):
            both = [variant.on_instance(variant.spec.instance + number + side).cluster_key for side in (0, 1)]
            pair = [[done for done in drawn if done.block % instances == number + side] for side in (0, 1)]
            least = min(map(len, pair))
            if least < LEAST_ROUNDS or used & {(key, *cluster) for cluster in both}:
                continue
            used |= {(key, *cluster) for cluster in both}
            with contextlib.suppress(OSError, ProvisionError):
                add(key, rounds_difference(pair[0][:least], pair[1][:least], str(workload)))
                added += 1
    return added


def of(variant: Variant, workload: Workload, provisioner: Provisioner, metric: str) -> ClusterDifference:
    """How far two fresh clusters of this variant can differ under a workload: from a calibration, or the default."""
    return look_up(CalibrationKey.of(variant, workload, provisioner), provisioner.offers, metric, workload.option)


def look_up(key: CalibrationKey, offers: frozenset[str], metric: str, option: str = "") -> ClusterDifference:
    """The difference for a key on hosts with these powers: from a calibration, or the default.

    option: as in ``CalibrationKey.command``.
    """
    calibrated = read(key).difference(metric)
    return calibrated or dataclasses.replace(default(key.kind, offers, metric), command=key.command(option))


def default(kind: str, offers: frozenset[str], metric: str) -> ClusterDifference:
    """The default of a metric under a kind of workload, on hosts with these powers. Hosts elsewhere share no cores."""
    family = family_of(metric)
    if "shared-cores" not in offers:
        return ELSEWHERE[family].difference
    closed = kind.removesuffix(OPEN_LOOP)
    rows = (DEFAULTS.get(closed, {}), DEFAULTS.get(closed.partition(":")[0], {}))
    found = (row[name] for row in rows for name in (metric, family) if name in row)
    return next(found, UNKNOWN[family]).difference


def family_of(metric: str) -> str:
    """The name under which DEFAULTS has a metric: ``SPEED``, a latency, or the nature of a counter."""
    name = metric.partition(":")[0]
    if name in metrics.QUANTILES:
        return name
    return SPEED if name in SPEEDS else counters.NATURES[name].name.lower()


def kind_of(workload: Workload) -> str:
    """The kind of a workload, as ``dbcluster calibrate --workload`` accepts it: ``mysqlslap:write``, ``tpcc``.

    Files of the user have their name and digest: ``sqlfiles:shop@0b813aadf6``. Values of variables are not a part.
    With an arrival rate it ends with ``OPEN_LOOP``: latencies of an open and a closed loop have little in common.
    """
    own = f"{workload.own_name}@{workload.content_hash}" if workload.content_hash else ""
    mode = own or workload.mode_name or str(getattr(workload, "script", ""))
    tool = type(workload).__name__.lower()
    loop = OPEN_LOOP if isinstance(workload, OpenLoop) and workload.rate is not None else ""
    return f"{tool}:{mode}{loop}" if mode else f"{tool}{loop}"


def machine(hosts: Mapping[str, str]) -> str:
    """The key of the machine that servers run on: its CPUs and memory.

    hosts: ``Provisioner.environment``, which has ``cpu`` and ``memory`` if the hosts are not on this machine.
    """
    cpu = hosts.get("cpu") or f"{psutil.cpu_count()} x {probes.cpu_model()}"
    return f"{cpu}, {hosts.get('memory') or formatting.gibibytes(psutil.virtual_memory().total)}"


def largest_difference(numbers: Sequence[int], given: Setup, instances: int, metric: str) -> ClusterDifference | None:
    """How far equal clusters can differ, if two neighbours of these variants run on separate clusters; otherwise None.

    The result is the largest difference of all such neighbours, each variant with its workload, for this number of
    instances. ``numbers`` are those of the variants.
    """
    keys = [variant.cluster_key for variant in given.variants]
    apart = [(a, b) for a, b in itertools.pairwise(numbers) if keys[a] != keys[b]]
    each = zip(given.variants, given.workloads, strict=True)
    one = [of(variant, workload, given.provisioner, metric) for variant, workload in each] if apart else []
    found = max((combine(one[a], one[b]) for a, b in apart), key=lambda each: each.log_ratio, default=None)
    return found and dataclasses.replace(found, instances=instances)
