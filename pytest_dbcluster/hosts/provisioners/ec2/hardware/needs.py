"""Needs: compares a cluster's needs with an instance type and its volume.

We do not limit the CPUs and the memory of a type. A cluster may ask for fewer writes per second than the volume has. A
control group of systemd on the instance then limits them, as for hosts of this machine.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.hosts.provisioners.ec2.hardware.instance_type import InstanceType
from pytest_dbcluster.hosts.provisioners.ec2.settings import LOCAL_DISK, Volume
from pytest_dbcluster.spec import ClusterSpec, HostNeeds

ANY_VOLUME = 16_000  # operations/s that one gp3 volume can have: docs.aws.amazon.com/ebs, general-purpose.html
LOCAL_PROFILE = "nvme"  # the storage profile of an unlimited disk
FAMILY = re.compile(r"([a-z]+)(\d+)([a-z-]*)\.")
NOT_ON_INSTANCES = {"netem": "delays between instances", "block-devices": "disks for DRBD"}

# Limits a host's programs, which run in the systemd scope of their agent's ssh session. $1: operations/s. $2: a
# directory on the volume; systemd finds its device. Prints what the kernel has accepted.
LIMIT = r"""
group=$(sed -n 's/^0:://p' /proc/self/cgroup)
unit=${group##*/}
case $unit in *.scope) ;; *) echo "failed its programs are in no scope of systemd: $group"; exit ;; esac
said=$(systemctl set-property --runtime "$unit" "IOWriteIOPSMax=$2 $1" 2>&1) || { echo "failed $said"; exit; }
grep -qs "wiops=$1\b" "/sys/fs/cgroup$group/io.max" || { echo "failed the kernel has not taken the limit"; exit; }
echo limited
"""


def unmet(spec: ClusterSpec, kind: InstanceType, volume: Volume, known: Callable[[], Iterable[InstanceType]]) -> str:
    """A message with a cluster's needs that instances of this type do not meet; empty if they meet all.

    known: returns the types of the region; called only if there is a message.
    """
    needs = spec.needs
    lacks = [f"{what} ({needs.powers[power]})" for power, what in NOT_ON_INSTANCES.items() if power in needs.powers]
    if lacks:
        return f"cluster {spec} needs {' and '.join(lacks)}, which --db-provisioner ec2 does not offer"
    if why := _size(needs, kind, known):
        return f"cluster {spec} needs {why}"
    if why := _storage(needs, kind, volume, known):
        return f"cluster {spec} needs {why}"
    return ""


def _size(needs: HostNeeds, kind: InstanceType, known: Callable[[], Iterable[InstanceType]]) -> str:
    cores = kind.cpus if needs.cores is None else needs.cores
    memory = kind.memory if needs.memory is None else needs.memory
    if (cores, memory) == (kind.cpus, kind.memory):
        return ""
    asked = [text for power, text in needs.powers.items() if power in ("cores", "memory")]
    near = nearest(known(), kind, cores, memory)
    advice = f"the nearest type is --db-ec2-type {near.name}, with {near.size}" if near else "use another --db-ec2-type"
    return f"{', '.join(asked)} of its hosts, but {kind.name} has {kind.size}: {advice}"


def nearest(known: Iterable[InstanceType], kind: InstanceType, cores: float, memory: int) -> InstanceType | None:
    """The type nearest to these CPUs and this memory in bytes; of equal ones, the one most similar to ``kind``."""
    letters, generation, variant = _family(kind)

    def distance(other: InstanceType) -> tuple[float, float, bool, bool, bool, int, bool, str]:
        own = _family(other)
        return (
            abs(other.cpus - cores),
            abs(other.memory - memory),
            other.burstable != kind.burstable,
            bool(other.disks) != bool(kind.disks),
            own[0] != letters,
            abs(own[1] - generation),
            own[2].removesuffix("d") != variant.removesuffix("d"),  # d: with local disks
            other.name,
        )

    same = (other for other in known if set(other.architectures) & set(kind.architectures))
    return min(same, key=distance, default=None)


def _family(kind: InstanceType) -> tuple[str, int, str]:
    """The parts of the name of a family: r6id is r, 6 and id."""
    found = FAMILY.match(kind.name)
    return (found[1], int(found[2]), found[3]) if found else (kind.name, 0, "")


def _storage(needs: HostNeeds, kind: InstanceType, volume: Volume, known: Callable[[], Iterable[InstanceType]]) -> str:
    if needs.storage == LOCAL_PROFILE and volume.kind != LOCAL_DISK:
        if kind.disks:
            own = f"{kind.name} has the local disks {kind.disks}"
            return f"storage {LOCAL_PROFILE}: {own}, so use --db-ec2-volume {LOCAL_DISK}"
        near = nearest((other for other in known() if other.disks), kind, kind.cpus, kind.memory)
        name = near.name if near else "one with disks"
        return (
            f"storage {LOCAL_PROFILE}, but {kind.name} has no local disk: the nearest type is --db-ec2-type "
            f"{name}, with --db-ec2-volume {LOCAL_DISK}"
        )
    if needs.iops is None:
        return ""
    asked = f"storage {needs.storage} (iops={needs.iops})" if needs.storage else f"iops={needs.iops}"
    if needs.storage and volume.kind != "gp3":
        return (
            f"{asked}, which is our limit on a gp3 volume, but --db-ec2-volume is {volume}: use --db-ec2-volume "
            f"gp3:50:{max(3000, needs.iops)}"
        )
    if volume.kind == LOCAL_DISK or needs.iops <= volume.iops:
        return ""
    more = f"use --db-ec2-volume gp3:50:{needs.iops}" if needs.iops <= ANY_VOLUME else "an io2 volume has more"
    return f"{asked}, but --db-ec2-volume {volume} has {volume.iops} operations/s: {more}"


def limit(needs: HostNeeds, volume: Volume) -> int | None:
    """The limit of writes per second for the programs of a host; None if the volume has the same number."""
    if needs.iops is None or (volume.kind != LOCAL_DISK and needs.iops == volume.iops):
        return None
    return needs.iops


def label(needs: HostNeeds, volume: Volume) -> str:
    """The label of a storage profile on these instances, for messages and results; empty without a limit."""
    operations = limit(needs, volume)
    if operations is None:
        return ""
    name = f"{needs.storage} is " if needs.storage else ""
    return f"{name}our limit of {operations} writes/s on {volume.kind}"


def enforce(run: Callable[[Sequence[str]], str], operations: int, directory: str, machine: str) -> None:
    """Limit the programs of a host. run: runs a command there, returns what it prints. Raises ProvisionError."""
    said = run(["sh", "-c", LIMIT, "sh", str(operations), directory]).strip()
    if said != "limited":
        raise ProvisionError(
            f"cannot limit the writes of a host on {machine} to {operations} per second: "
            f"{said.removeprefix('failed ') or 'no output'}; use an image with systemd and control groups v2"
        )
