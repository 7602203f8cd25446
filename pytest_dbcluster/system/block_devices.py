"""The disk and the file system of a directory, from the kernel's tables."""

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
    """The directory of the file system that is mounted."""

    point: str
    """The mount point."""

    kind: str
    """The type of the file system, such as ext4."""

    source: str
    """The device, or what the file system reports instead of one."""

    options: str
    """The options of the file system, separated by commas."""


def mounts(text: str | None = None) -> list[Mount]:
    """All mounts, in order. Of two mounts on one mount point, the later one is visible."""
    parsed = []
    for line in (MOUNTS.read_text() if text is None else text).splitlines():
        before, _, after = line.partition(" - ")
        root, point = before.split(" ")[3:5]
        kind, source, *options = after.split(" ")
        parsed.append(Mount(_plain(root), _plain(point), kind, _plain(source), options[-1] if options else ""))
    return parsed


def _plain(path: str) -> str:
    return path.replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n").replace("\\134", "\\")


def mount_of(directory: Path, known: list[Mount] | None = None) -> Mount | None:
    """The mount of a directory; None if there is no such mount."""
    path, best = directory.resolve(), None
    for mount in mounts() if known is None else known:
        if path.is_relative_to(mount.point) and (best is None or len(mount.point) >= len(best.point)):
            best = mount
    return best


def whole_disk(directory: Path) -> str:
    """MAJOR:MINOR of the whole disk of a directory. The directory need not exist yet.

    The kernel ignores limits for partitions, so for a partition it is the disk of the partition. A device mapper
    volume counts as a disk, because the kernel counts its writes. Raises Unsupported if there is no block device.
    """
    existing = directory.resolve()
    while not existing.exists():
        existing = existing.parent
    number = existing.stat().st_dev
    if not os.major(number):  # btrfs, for example, has its own device numbers; the source of the mount is the device
        mount = mount_of(existing)
        try:
            source = Path(mount.source if mount else "").stat()
        except OSError:
            source = None
        if source is None or not stat.S_ISBLK(source.st_mode):
            kind = mount.kind if mount else "its file system"
            raise Unsupported(
                f"{directory} lies on {kind}, which has no disk, so writes cannot be limited; "
                "set DBCLUSTER_DATA_DIR to a directory on a disk"
            )
        number = source.st_rdev
    return _disk(f"{os.major(number)}:{os.minor(number)}", directory)


def node(directory: Path) -> str:
    """The device file of the disk under a directory, such as ``/dev/vda``. Raises Unsupported."""
    number = whole_disk(directory)
    for line in (BLOCK / number / "uevent").read_text().splitlines():
        if line.startswith("DEVNAME="):
            return f"/dev/{line.partition('=')[2]}"
    raise Unsupported(f"the kernel has no name for the disk {number} of {directory}")


def _disk(number: str, directory: Path, block: Path = BLOCK) -> str:
    try:
        device = (block / number).resolve(strict=True)
        return ((device.parent if (device / "partition").exists() else device) / "dev").read_text().strip()
    except OSError as error:
        raise Unsupported(f"the kernel does not list the disk {number} of {directory}: {error}") from None


def file_system(directory: Path, known: list[Mount] | None = None) -> str:
    """The type of a directory's file system, such as ``ext4``; ``unknown`` if the kernel does not list it."""
    try:
        mount = mount_of(directory, known)
    except OSError:  # the kernel's list of mounts cannot be read
        mount = None
    return mount.kind if mount else "unknown"


def description(directory: Path) -> str:
    """File system and disk of a directory, such as ``ext4 on 254:0``; ``no disk`` if it has none."""
    try:
        disk = whole_disk(directory)
    except Unsupported:
        disk = "no disk"
    return f"{file_system(directory)} on {disk}"
