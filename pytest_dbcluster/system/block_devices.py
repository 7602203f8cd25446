"""The disk that a directory lies on, by the kernel's own tables."""

from __future__ import annotations

import dataclasses
import os
import stat
from pathlib import Path

from pytest_dbcluster.errors import Unsupported

MOUNTS = Path("/proc/self/mountinfo")
BLOCK = Path("/sys/dev/block")


@dataclasses.dataclass(frozen=True)
class Mount:
    """One line of proc_pid_mountinfo(5)."""

    root: str
    point: str
    kind: str
    source: str
    options: str


def mounts(text: str | None = None) -> list[Mount]:
    """What is mounted, in order; of two on one point the later one is seen."""
    found = []
    for line in (MOUNTS.read_text() if text is None else text).splitlines():
        before, _, after = line.partition(" - ")
        root, point = before.split(" ")[3:5]
        kind, source, *options = after.split(" ")
        found.append(Mount(_plain(root), _plain(point), kind, _plain(source), options[-1] if options else ""))
    return found


def _plain(path: str) -> str:
    return path.replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n").replace("\\134", "\\")


def mounted(directory: Path, known: list[Mount] | None = None) -> Mount | None:
    """The mount that a directory lies on."""
    place, found = directory.resolve(), None
    for mount in mounts() if known is None else known:
        if place.is_relative_to(mount.point) and (found is None or len(mount.point) >= len(found.point)):
            found = mount
    return found


def whole_disk(directory: Path) -> str:
    """MAJOR:MINOR of the disk under a directory, which need not be made yet: a limit of a partition is none.

    Of a partition it is the disk that it is part of. A device mapper's volume is a disk of its own, to which its users'
    writes are charged. Raises Unsupported where no block device can be named.
    """
    place = directory.resolve()
    while not place.exists():
        place = place.parent
    number = place.stat().st_dev
    if not os.major(number):  # of btrfs, too, the number is its own: the source of the mount has that of the device
        mount = mounted(place)
        try:
            source = Path(mount.source if mount else "").stat()
        except OSError:
            source = None
        if source is None or not stat.S_ISBLK(source.st_mode):
            kind = mount.kind if mount else "its file system"
            raise Unsupported(
                f"{directory} lies on {kind}, which has no disk of its own whose writes could be limited; "
                "DBCLUSTER_DATA_DIR=DIRECTORY takes one on a disk"
            )
        number = source.st_rdev
    return _disk(f"{os.major(number)}:{os.minor(number)}", directory)


def node(directory: Path) -> str:
    """The device file of the disk under a directory, such as ``/dev/vda``. Raises Unsupported."""
    number = whole_disk(directory)
    for line in (BLOCK / number / "uevent").read_text().splitlines():
        if line.startswith("DEVNAME="):
            return f"/dev/{line.partition('=')[2]}"
    raise Unsupported(f"the kernel gives the disk {number} of {directory} no name")


def _disk(number: str, directory: Path, block: Path = BLOCK) -> str:
    try:
        device = (block / number).resolve(strict=True)
        return ((device.parent if (device / "partition").exists() else device) / "dev").read_text().strip()
    except OSError as error:
        raise Unsupported(f"the kernel does not name the disk {number} of {directory}: {error}") from None


def file_system(directory: Path, known: list[Mount] | None = None) -> str:
    """The type of the file system that a directory lies on, ``ext4``; ``unknown`` where the kernel does not say."""
    try:
        mount = mounted(directory, known)
    except OSError:  # no list of what is mounted
        mount = None
    return mount.kind if mount else "unknown"
