"""Needs: whether what a cluster asks of its hosts is what an instance type and its volume have.

A type has its CPUs and its memory; we do not cut it down to others. Fewer writes a second than a volume has are a limit
of ours: a control group of systemd on the instance, as with hosts of this machine.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.hosts.provisioners.ec2.hardware.instance_type import InstanceType
from pytest_dbcluster.hosts.provisioners.ec2.settings import LOCAL_DISK, Volume
from pytest_dbcluster.spec import ClusterSpec, HostNeeds

ANY_VOLUME = 16_000  # operations/s that one gp3 volume can have: docs.aws.amazon.com/ebs, general-purpose.html
LOCAL_PROFILE = "nvme"  # the storage profile of a disk without a limit
FAMILY = re.compile(r"([a-z]+)(\d+)([a-z-]*)\.")
NOT_ON_INSTANCES = {"netem": "delays between instances", "block-devices": "disks for DRBD"}

# The limit of a host's programs: they run in the scope of the ssh session of their agent. $1: operations/s. $2: a
# directory on the volume, of which systemd finds the device. Says what the kernel has taken of it.
LIMIT = r"""
group=$(sed -n 's/^0:://p' /proc/self/cgroup)
unit=${group##*/}
case $unit in *.scope) ;; *) echo "failed its programs are in no scope of systemd: $group"; exit ;; esac
said=$(systemctl set-property --runtime "$unit" "IOWriteIOPSMax=$2 $1" 2>&1) || { echo "failed $said"; exit; }
grep -qs "wiops=$1\b" "/sys/fs/cgroup$group/io.max" || { echo "failed the kernel has not taken the limit"; exit; }
echo limited
"""


def unmet(spec: ClusterSpec, kind: InstanceType, volume: Volume, known: Callable[[], Iterable[InstanceType]]) -> str:
    """A message with what a cluster needs and instances of this type have not; empty when they have all.

    known: the types of the region, asked for when there is something to say.
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
    advice = (
        f"the nearest type is --db-ec2-type {near.name}, with {near.size}" if near else "take another --db-ec2-type"
    )
    return f"{', '.join(asked)} of its hosts, and {kind.name} has {kind.size}: {advice}"


def nearest(known: Iterable[InstanceType], kind: InstanceType, cores: float, memory: int) -> InstanceType | None:
    """The type that is nearest to these CPUs and this memory in bytes, and of equal ones that nearest to ``kind``."""
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
            own[2].removesuffix("d") != variant.removesuffix("d"),  # d: with disks of its own
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
            own = f"{kind.name} has {kind.disks} of its own"
            return f"storage {LOCAL_PROFILE}: {own}, so take --db-ec2-volume {LOCAL_DISK}"
        near = nearest((other for other in known() if other.disks), kind, kind.cpus, kind.memory)
        name = near.name if near else "one with disks"
        return (
            f"storage {LOCAL_PROFILE}, and {kind.name} has no disk of its own: the nearest type is --db-ec2-type "
            f"{name}, with --db-ec2-volume {LOCAL_DISK}"
        )
    if needs.iops is None:
        return ""
    asked = f"storage {needs.storage} (iops={needs.iops})" if needs.storage else f"iops={needs.iops}"
    if needs.storage and volume.kind != "gp3":
        return (
            f"{asked}, which is our limit on a gp3 volume, and --db-ec2-volume is {volume}: take --db-ec2-volume "
            f"gp3:50:{max(3000, needs.iops)}"
        )
    if volume.kind == LOCAL_DISK or needs.iops <= volume.iops:
        return ""
    more = f"take --db-ec2-volume gp3:50:{needs.iops}" if needs.iops <= ANY_VOLUME else "an io2 volume has more"
    return f"{asked}, and --db-ec2-volume {volume} has {volume.iops} operations/s: {more}"


def limit(needs: HostNeeds, volume: Volume) -> int | None:
    """The writes a second to which we limit the programs of a host; None where the volume has just as many."""
    if needs.iops is None or (volume.kind != LOCAL_DISK and needs.iops == volume.iops):
        return None
    return needs.iops


def label(needs: HostNeeds, volume: Volume) -> str:
    """What a storage profile is on these instances, for messages and results; empty where nothing is limited."""
    operations = limit(needs, volume)
    if operations is None:
        return ""
    name = f"{needs.storage} is " if needs.storage else ""
    return f"{name}our limit of {operations} writes/s on {volume.kind}"


def limited(run: Callable[[Sequence[str]], str], operations: int, directory: str, machine: str) -> None:
    """Limit the programs of a host. run: runs a command there, returns what it prints. Raises ProvisionError."""
    said = run(["sh", "-c", LIMIT, "sh", str(operations), directory]).strip()
    if said != "limited":
        raise ProvisionError(
            f"the writes of a host on {machine} cannot be limited to {operations} a second: "
            f"{said.removeprefix('failed ') or 'it said nothing'}; it takes an image with systemd and control groups v2"
        )
