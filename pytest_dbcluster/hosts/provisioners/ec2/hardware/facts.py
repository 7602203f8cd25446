"""Facts: properties of instances that affect figures, for the fingerprint, and the round trips between zones.

They contain no names of the run or the account, so that equal hardware has equal texts in all runs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.formatting import milliseconds
from pytest_dbcluster.hosts.provisioners.ec2.hardware.instance_type import InstanceType
from pytest_dbcluster.hosts.provisioners.ec2.settings import LOCAL_DISK, Volume

MICROCODE = "sed -n 's/^microcode[[:space:]]*: //p' /proc/cpuinfo | head -n 1"
PINGS = 10
GP2_BURSTS_BELOW, GP2_BURST = 1000, 3000  # GiB; operations/s
PING = f"ping -n -q -c {PINGS} -i 0.2 -w 15 %s 2>&1 | tail -n 1"
# `rtt min/avg/max/mdev = 0.051/0.060/0.070/0.007 ms` of iputils; busybox says round-trip min/avg/max
TIMES = re.compile(r"(?:rtt|round-trip) min/avg/max\S* = [\d.]+/(?P<mean>[\d.]+)/")


def instance(
    facts: Mapping[str, Any], kind: InstanceType, *, zone_id: str, volumes: Sequence[Mapping[str, Any]], microcode: str,
    mode: str = "",
) -> str:  # fmt: skip
    """The description of one instance.

    facts: its entry in the answer of ``DescribeInstances``. volumes: from ``DescribeVolumes``. microcode: from its
    kernel. mode: of its CPU credits; empty for a type without credits.
    """
    placement = facts.get("Placement", {})
    parts = [
        f"{kind.name} in {placement.get('AvailabilityZoneId') or zone_id or placement.get('AvailabilityZone', '?')}",
        "in a cluster placement group" if placement.get("GroupName") else "in no placement group",
        f"{placement.get('Tenancy', 'default')} tenancy",
        facts.get("InstanceLifecycle") or "on demand",
        f"microcode {microcode}" if microcode else "",
        *(volume(one, facts.get("RootDeviceName", "")) for one in sorted(volumes, key=_size, reverse=True)),
        f"its own disks: {kind.disks}" if kind.disks else "",
        _speeds("to volumes", kind.ebs_operations.text("operations/s"), kind.ebs_megabytes.text("MB/s")),
        _speeds("network", kind.network.text("Gbit/s")),
        f"credit mode {mode}" if mode else "",
    ]
    return ", ".join(filter(None, parts))


def _size(one: Mapping[str, Any]) -> int:
    return int(one.get("Size", 0))


def _speeds(what: str, *texts: str) -> str:
    found = "; ".join(filter(None, texts))
    return f"{what} {found}" if found else ""


def volume(facts: Mapping[str, Any], root: str = "") -> str:
    """The description of a volume from ``DescribeVolumes``. root: the name of the system's device."""
    devices = [one.get("Device", "") for one in facts.get("Attachments", [])]
    numbers = ((facts.get("Iops"), "operations/s"), (facts.get("Throughput"), "MiB/s"))
    parts = [
        f"{facts.get('VolumeType', '?')} {facts.get('Size', '?')} GiB",
        *(f"{n} {unit}" for n, unit in numbers if n),
    ]
    return f"{'root' if root and root in devices else 'data'} on {' '.join(parts)}"


def disk(asked: Volume, kind: InstanceType) -> str:
    """The kind of disk with the data, for results: that of --db-ec2-volume."""
    return f"the local disk of {kind.name} ({kind.disks})" if asked.kind == LOCAL_DISK else f"EBS {asked}"


def bursts(types: Iterable[Mapping[str, Any]], asked: Volume) -> tuple[str, ...]:
    """The types and volumes of a launch with burst credits, a line each.

    types: entries in the answer of ``DescribeInstanceTypes``. asked: the data volume of each server. Source of the
    figures of gp2: docs.aws.amazon.com/ebs/latest/userguide/general-purpose.html.
    """
    burstable = sorted(one["InstanceType"] for one in types if one.get("BurstablePerformanceSupported"))
    lines = [
        f"burst credits: {name} is a burstable type, so it can be faster at first than later. Its credit mode is "
        "unlimited: CPU time beyond its credits costs more"
        for name in burstable
    ]
    if asked.kind == "gp2" and asked.gib < GP2_BURSTS_BELOW:
        lines.append(
            f"burst credits: the data volume of each server (gp2, {asked.gib} GiB) is faster at first than later: up "
            f"to {GP2_BURST} operations/s, then {asked.iops}"
        )
    return tuple(lines)


def round_trips(
    zones: Mapping[str, str], addresses: Mapping[str, str], run: Callable[[str, str], str]
) -> dict[tuple[str, str], float]:
    """Seconds between machines in different zones, by pair. The mean of ten packets.

    zones: machine -> zone. addresses: machine -> its private address. run: runs a command on a machine, returns what it
    prints. A pair that lost all packets is missing.
    """
    machines = list(zones)
    found = {}
    for number, first in enumerate(machines):
        for second in machines[number + 1 :]:
            if zones[first] == zones[second]:
                continue
            try:
                times = TIMES.search(run(first, PING % addresses[second]))
            except ProvisionError:
                continue
            if times:
                found[first, second] = float(times["mean"]) / 1000
    return found


def round_trip_line(zones: Mapping[str, str], times: Mapping[tuple[str, str], float]) -> str:
    """The round trips between zones, for the terminal and the fingerprint; empty within one zone."""
    if len(set(zones.values())) < 2:
        return ""
    pairs: dict[tuple[str, ...], list[float]] = {}
    for (first, second), seconds in times.items():
        pairs.setdefault(tuple(sorted((zones[first], zones[second]))), []).append(seconds)
    if not pairs:
        return f"round trips between {', '.join(sorted(set(zones.values())))}: unknown, because all pings were lost"
    texts = [f"{' and '.join(pair)} {_range(seconds)}" for pair, seconds in sorted(pairs.items())]
    return f"round trips between zones: {'; '.join(texts)}"


def _range(seconds: Sequence[float]) -> str:
    low, high = milliseconds(min(seconds)), milliseconds(max(seconds))
    return low if low == high else f"{low} to {high}"
