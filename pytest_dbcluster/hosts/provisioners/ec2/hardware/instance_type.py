"""InstanceType: what AWS says of a type of instances (``DescribeInstanceTypes``), as far as figures depend on it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from pytest_dbcluster.formatting import gibibytes

MEGA = 10**6
GIGABIT = 125  # MB


@dataclasses.dataclass(frozen=True)
class Speed:
    """A speed that an instance has for ever, and the one that it has while it lasts; both 0 where AWS says nothing."""

    baseline: float = 0.0
    burst: float = 0.0

    @property
    def bursts(self) -> bool:
        """Whether the instance has the higher one for some time only."""
        return 0 < self.baseline < self.burst

    def text(self, unit: str) -> str:
        """Both, for the fingerprint: ``3600 operations/s, for a time 40000``; empty where AWS says nothing."""
        if not self.burst and not self.baseline:
            return ""
        return f"{self.baseline:g} {unit}" + (f", for a time {self.burst:g}" if self.bursts else "")


@dataclasses.dataclass(frozen=True)
class InstanceType:
    """A type."""

    name: str
    cpus: int
    cores: int
    memory: int
    """Bytes."""

    ebs_operations: Speed
    """Of EBS volumes, per second."""

    ebs_megabytes: Speed
    """MB/s of them."""

    network: Speed
    """Gbit/s in each direction."""

    burstable: bool
    """Whether the CPUs have burst credits (t2, t3, t3a, t4g)."""

    disks: str
    """The disks of the instance itself, as text; empty for none."""

    architectures: tuple[str, ...]
    """AWS's names."""

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> InstanceType:
        """A type from its entry in the answer of ``DescribeInstanceTypes``."""
        cpus = facts.get("VCpuInfo", {})
        return cls(
            name=facts["InstanceType"],
            cpus=cpus.get("DefaultVCpus", 0),
            cores=cpus.get("DefaultCores", 0),
            memory=facts.get("MemoryInfo", {}).get("SizeInMiB", 0) * 2**20,
            ebs_operations=_ebs(facts, "Iops"),
            ebs_megabytes=_ebs(facts, "ThroughputInMBps"),
            network=_network(facts),
            burstable=bool(facts.get("BurstablePerformanceSupported")),
            disks=_disks(facts),
            architectures=tuple(facts.get("ProcessorInfo", {}).get("SupportedArchitectures", ())),
        )

    @property
    def size(self) -> str:
        """CPUs and memory, as users ask for them: ``2 CPUs and 16.0 GiB``."""
        return f"{self.cpus} CPUs and {gibibytes(self.memory)}"


def _ebs(facts: Mapping[str, Any], what: str) -> Speed:
    known = facts.get("EbsInfo", {}).get("EbsOptimizedInfo", {})
    return Speed(known.get(f"Baseline{what}", 0.0), known.get(f"Maximum{what}", 0.0))


def _network(facts: Mapping[str, Any]) -> Speed:
    cards = facts.get("NetworkInfo", {}).get("NetworkCards", [])
    # Our instances have one interface, which is on the first card.
    card = cards[0] if cards else {}
    return Speed(card.get("BaselineBandwidthInGbps", 0.0), card.get("PeakBandwidthInGbps", 0.0))


def _disks(facts: Mapping[str, Any]) -> str:
    disks = facts.get("InstanceStorageInfo", {}).get("Disks", [])
    return ", ".join(
        f"{disk.get('Count', 1)} x {disk.get('SizeInGB', '?')} GB {disk.get('Type', '')}" for disk in disks
    )
