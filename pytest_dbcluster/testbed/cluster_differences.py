"""How far equal clusters can differ, for a variant and its workload: calibrated on this machine, or a default.

``dbcluster calibrate`` measures pairs of fresh equal clusters and keeps a ``Calibration`` in the cache, under the key
of the machine, the provisioner, the cluster and the kind of workload. Without one, ``of`` gives a default of
``DEFAULTS``.
``claims.cluster_difference`` says what the figure means and how it is computed.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import psutil

from pytest_dbcluster import formatting
from pytest_dbcluster.claims.cluster_difference import ASSUMED, LEAST_PAIRS, ClusterDifference, together, upper
from pytest_dbcluster.hosts.provisioner import Provisioner, name_of
from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.system import cache, probes
from pytest_dbcluster.testbed.variants import Variant
from pytest_dbcluster.workloads.workload import Workload

FORMAT = 2  # of a calibration in the cache; raised when its fields change
FOLDER = "calibrations"


@dataclasses.dataclass(frozen=True)
class Default:
    """The difference of equal clusters where none was measured.

    fraction: how much faster one of two equal clusters can be (1 in 200). date, on: when, and on what, it was measured.
    pairs: the pairs of clusters that were measured; 0 where it is assumed.
    """

    fraction: float
    date: str
    on: str
    pairs: int = 0

    @property
    def difference(self) -> ClusterDifference:
        """The same as a ClusterDifference."""
        how = f"default of {self.pairs} pairs of clusters" if self.pairs else ASSUMED
        return ClusterDifference(math.log1p(self.fraction), f"{how}, {self.on}, {self.date}".rstrip(", "), self.pairs)


# By kind of workload, in full (``mysqlslap:key``) or the tool alone: pairs of fresh equal Galera clusters of 3 nodes,
# under write, key, oltp_read_write and one warehouse. The figures are what the pairs do not exclude, less the noise of
# their rounds (``cluster_difference.upper``). mysqlslap: 48 rounds of each cluster, key 56, on an idle machine. The
# rounds' noise was 2.4 % (key 1.2 %), half of the pairs differed by less than 1.6 % (1.1 %), the largest by 3.7 %
# (2.3 %). oltp_point_select: 16 rounds, idle too; the noise was 1.5 %, half of the pairs differed by less than 1.0 %,
# the largest by 5.0 %. Other scripts and TPC-C: on a busier machine the noise was 5.6 and 5.2 %, no less than the
# differences (3.1 and 5.2 %), so a calibration with more rounds can give smaller figures.
# No exchange of places half-way is offered: the cluster that was started first was neither faster nor slower (means of
# the signed differences -.2, -.3 and .6 %, standard errors .8, .7 and .8 %). More instances lower the difference.
_ON = "galera of 3 nodes on one machine of 2 cores"
DEFAULTS: Mapping[str, Default] = MappingProxyType(
    {
        "mysqlslap": Default(0.051, "2026-11-23", _ON, 12),
        "mysqlslap:key": Default(0.030, "2026-11-23", _ON, 13),
        "sysbench": Default(0.068, "2026-11-23", _ON, 24),
        "sysbench:oltp_point_select": Default(0.055, "2026-11-24", _ON, 12),
        "tpcc": Default(0.076, "2026-11-23", _ON, 48),
    }
)
UNKNOWN = Default(0.10, "", "for this kind of workload")
ELSEWHERE = Default(0.10, "", "for hosts on other machines")


@dataclasses.dataclass(frozen=True)
class Key:
    """What a calibration is valid for. kind: of the workload (``kind_of``). release: such as ``mariadb:10.11``."""

    machine: str
    provisioner: str
    topology: str
    nodes: int
    release: str
    proxy: str
    kind: str

    @classmethod
    def of(cls, variant: Variant, workload: Workload, provisioner: Provisioner) -> Key:
        """The key of a variant under a workload, on hosts of this provisioner."""
        return cls.of_spec(variant.spec, variant.release.name, workload, provisioner)

    @classmethod
    def of_spec(cls, spec: ClusterSpec, release: str, workload: Workload, provisioner: Provisioner) -> Key:
        """The key of a cluster that is not resolved yet. release: such as ``mariadb:10.11``."""
        proxy, kind = spec.proxy or "", kind_of(workload)
        return cls(
            machine(provisioner.environment), name_of(provisioner), spec.topology, spec.nodes, release, proxy, kind
        )

    @property
    def path(self) -> Path:
        """The file of this calibration in the cache."""
        text = json.dumps([FORMAT, *dataclasses.astuple(self)])
        name = f"{self.topology}{self.nodes}-{self.kind.replace(':', '-')}"
        return cache.root() / FOLDER / f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:16]}.json"

    def __str__(self) -> str:
        behind = f" behind {self.proxy}" if self.proxy else ""
        return f"{self.topology} of {self.nodes} x {self.release}{behind}, {self.kind}, {self.provisioner}"


@dataclasses.dataclass(frozen=True)
class Calibration:
    """The pairs of fresh equal clusters that were measured for a key.

    differences: for each pair of clusters the log ratio of their speeds. noise: for each half of the difference between
    the log ratios of the first and of the second half of its rounds; its square estimates the variance that comes from
    the rounds. date: of the last pair, such as ``2026-11-22``.
    """

    key: Key
    differences: tuple[float, ...] = ()
    noise: tuple[float, ...] = ()
    date: str = ""

    def with_pair(self, difference: float, noise: float) -> Calibration:
        """The same calibration with one pair of clusters more, measured today."""
        today = time.strftime("%Y-%m-%d")
        return Calibration(self.key, (*self.differences, difference), (*self.noise, noise), today)

    @property
    def difference(self) -> ClusterDifference | None:
        """What it says; None for too few pairs of clusters."""
        pairs = len(self.differences)
        if pairs < LEAST_PAIRS:
            return None
        source = f"measured on {pairs} pairs of clusters, {self.date}"
        return ClusterDifference(upper(self.differences, self.noise_in_all), source, pairs)

    @property
    def noise_in_all(self) -> float:
        """The standard error of a difference that comes from its rounds: the root of the mean square of all pairs."""
        return math.sqrt(math.fsum(value * value for value in self.noise) / max(1, len(self.noise)))

    def write(self) -> None:
        """Keep it in the cache, at once and complete. Raises OSError."""
        path = self.key.path
        path.parent.mkdir(parents=True, exist_ok=True)
        cache.write_manifest(path, {"format": FORMAT, **dataclasses.asdict(self)})


def read(key: Key) -> Calibration:
    """The calibration of a key in the cache; one without pairs where there is none, or one of another format."""

    def parse(fields: Any) -> Calibration | None:
        differences, noise = (tuple(map(float, fields[name])) for name in ("differences", "noise"))
        if fields["format"] != FORMAT or fields["key"] != dataclasses.asdict(key) or len(differences) != len(noise):
            return None
        if not all(map(math.isfinite, (*differences, *noise))):
            return None
        return Calibration(key, differences, noise, str(fields["date"]))

    return cache.read_manifest(key.path, parse) or Calibration(key)


def of(variant: Variant, workload: Workload, provisioner: Provisioner) -> ClusterDifference:
    """How far two fresh clusters of this variant can differ under a workload: as calibrated here, else the default."""
    return known(Key.of(variant, workload, provisioner), provisioner.offers)


def known(key: Key, offers: frozenset[str]) -> ClusterDifference:
    """What is known of a key on hosts with these powers: as calibrated, else the default."""
    return read(key).difference or default(key.kind, offers)


def default(kind: str, offers: frozenset[str]) -> ClusterDifference:
    """The default of a kind of workload on hosts with these powers. Hosts elsewhere share no cores."""
    if "shared-cores" not in offers:
        return ELSEWHERE.difference
    return (DEFAULTS.get(kind) or DEFAULTS.get(kind.partition(":")[0]) or UNKNOWN).difference


def kind_of(workload: Workload) -> str:
    """The kind of a workload, as ``dbcluster calibrate --workload`` takes it: ``mysqlslap:write``, ``tpcc``."""
    mode = workload.mode_name or str(getattr(workload, "script", ""))
    tool = type(workload).__name__.lower()
    return f"{tool}:{mode}" if mode else tool


def machine(hosts: Mapping[str, str]) -> str:
    """The key of the machine that servers run on: its CPUs and memory.

    hosts: ``Provisioner.environment``, which has ``cpu`` and ``memory`` where the hosts are not on this machine.
    """
    cpu = hosts.get("cpu") or f"{psutil.cpu_count()} x {probes.cpu_model()}"
    return f"{cpu}, {hosts.get('memory') or formatting.gibibytes(psutil.virtual_memory().total)}"


def apart(numbers: Sequence[int], variants: Sequence[Variant]) -> list[tuple[int, int]]:
    """The neighbours among these variants, by their numbers, that run on clusters of their own."""
    return [(a, b) for a, b in itertools.pairwise(numbers) if variants[a].cluster_key != variants[b].cluster_key]


def largest(
    neighbours: Sequence[tuple[int, int]],
    variants: Sequence[Variant],
    workloads: Sequence[Workload],
    provisioner: Provisioner,
) -> ClusterDifference:
    """The largest difference of such neighbours, each variant with its workload."""
    one = [of(variant, workload, provisioner) for variant, workload in zip(variants, workloads, strict=True)]
    return max((together(one[a], one[b]) for a, b in neighbours), key=lambda known: known.log_ratio)
