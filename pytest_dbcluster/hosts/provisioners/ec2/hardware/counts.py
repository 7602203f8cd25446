"""What an instance has used since its boot, as its kernel counts it: of CPUs, of EBS volumes and of the network."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.hosts.provisioners.ssh.usage import SECTOR, TICKS, VIRTUAL

IO_SIZE = 256 * 1024  # bytes of the largest operation of an SSD volume: docs.aws.amazon.com/ebs/latest/userguide/
OWN_MODEL = "Amazon EC2 NVMe Instance Storage"  # what a disk of the instance itself says; all others are volumes
NO_DISKS = (*VIRTUAL, "sr", "fd", "nbd")
BUSY = slice(0, 3), slice(5, 8)  # user nice system, irq softirq steal, of the first line of /proc/stat (proc(5))

# One line each; "end" says that it is the whole answer.
SCRIPT = r"""
echo "up $(cut -d ' ' -f 1 /proc/uptime)"
echo "cpu $(sed -n '1s/^cpu *//p' /proc/stat)"
for disk in /sys/block/*; do
    echo "disk ${disk##*/} $(cat "$disk/stat") : $(cat "$disk/device/model")"
done 2>/dev/null
sed -n 's/^ *\([^ :]*\): *\([0-9]*\) .*/\1 &/p' /proc/net/dev | sed 's/:/ /; s/^/net /'
echo "end"
"""


@dataclasses.dataclass(frozen=True)
class Used:
    """What was done on a disk. operations: as EBS counts them, 256 KiB each at most. volume: whether it is of EBS."""

    operations: float
    size: float
    volume: bool


@dataclasses.dataclass(frozen=True)
class Counts:
    """Since the boot. up: seconds. cpu: seconds of all CPUs together. disks: by name. received, sent: bytes."""

    up: float
    cpu: float
    disks: Mapping[str, Used]
    received: float
    sent: float

    @classmethod
    def read(cls, text: str, machine: str) -> Counts:
        """The counts from the lines of ``SCRIPT``. Raises ProvisionError for an answer that is no whole one.

        A machine without any disk is none: what it has used of its volumes could not be seen.
        """
        up = cpu = received = sent = 0.0
        disks = {}
        try:
            for line in text.splitlines():
                kind, _, rest = line.partition(" ")
                words = rest.split()
                if kind == "up":
                    up = float(words[0])
                elif kind == "cpu":
                    cpu = sum(sum(map(int, words[part])) for part in BUSY) / TICKS
                elif kind == "disk" and not words[0].startswith(NO_DISKS):
                    disks[words[0]] = _used(rest)
                elif kind == "net" and words[0] != "lo":
                    received, sent = received + int(words[2]), sent + int(words[10])
        except (ValueError, IndexError):
            up = 0.0
        if not up or not disks or not text.rstrip().endswith("end"):
            raise ProvisionError(f"the machine {machine} does not say what it has used; it said {text[-200:]!r}")
        return cls(up, cpu, disks, received, sent)

    @property
    def volumes(self) -> list[Used]:
        """The disks that are volumes of EBS."""
        return [disk for disk in self.disks.values() if disk.volume]


def _used(text: str) -> Used:
    """A line of a disk: reads, merged reads, sectors read, ms, writes, merged writes, sectors written, ..."""
    figures, _, model = text.partition(" : ")
    words = figures.split()[1:]
    size = (int(words[2]) + int(words[6])) * SECTOR
    # A larger operation of the kernel is several of EBS; how large each one was, nobody has written down.
    return Used(max(int(words[0]) + int(words[4]), size / IO_SIZE), size, model.strip() != OWN_MODEL)
