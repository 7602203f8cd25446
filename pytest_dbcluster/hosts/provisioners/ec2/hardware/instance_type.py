"""InstanceType: the properties of an instance type (``DescribeInstanceTypes``) that affect figures."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from pytest_dbcluster.formatting import gibibytes


@dataclasses.dataclass(frozen=True)
class Speed:
    """The speed of an instance; 0 if AWS does not publish it."""

    baseline: float = 0.0
    """The speed that the instance always has, in the unit of the field that holds it."""

    burst: float = 0.0
    """The maximum speed, in the same unit."""

    @property
    def bursts(self) -> bool:
        """Whether the burst speed is limited by credits."""
        return 0 < self.baseline < self.burst

    def text(self, unit: str) -> str:
        """Both speeds, for the fingerprint: ``3600 operations/s, for a time 40000``; empty if unknown."""
        if not self.burst and not self.baseline:
            return ""
        return f"{self.baseline:g} {unit}" + (f", for a time {self.burst:g}" if self.bursts else "")


@dataclasses.dataclass(frozen=True)
class InstanceType:
    """An instance type."""

    name: str
    """The name of the type, such as ``r6i.large``."""

    cpus: int
    """Number of vCPUs; 0 if unknown."""

    cores: int
    """Number of cores; 0 if unknown."""

    memory: int
    """Size of the memory, in bytes."""

    ebs_operations: Speed
    """Operations per second of EBS volumes."""

    ebs_megabytes: Speed
    """Throughput of EBS volumes, in MB/s."""

    network: Speed
    """Network speed in each direction, in Gbit/s."""

    burstable: bool
    """Whether the CPUs have burst credits (t2, t3, t3a, t4g)."""

    disks: str
    """The local disks of the instance, as text; empty if it has no disks."""

    architectures: tuple[str, ...]
    """Its architectures, by AWS's names."""

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
        """CPUs and memory, in the users' terms: ``2 CPUs and 16.0 GiB``."""
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
