"""The disk under a directory."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pytest_dbcluster.errors import Unsupported
from pytest_dbcluster.system import block_devices
from tests.support.facts import missing

MOUNTS = """\
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
23 22 0:28 / /sys/fs/cgroup/cpu rw shared:7 - cgroup cgroup rw,cpu,cpuacct
24 22 0:40 /part /data\\040x rw - btrfs /dev/sdz9 rw
25 22 0:41 / /over rw - overlay overlay rw
26 22 0:42 / /over rw - tmpfs tmpfs
"""


class Elsewhere:
    """A directory whose file system has a number of its own, as btrfs, overlay and tmpfs have."""

    st_dev = os.makedev(0, 77)


def test_mounts_are_read_with_their_options():
    """Optional fields are left out, and a space in a path is one."""
    found = block_devices.mounts(MOUNTS)

    assert [mount.point for mount in found] == ["/", "/sys/fs/cgroup/cpu", "/data x", "/over", "/over"]
    assert (found[1].kind, found[1].options) == ("cgroup", "rw,cpu,cpuacct")
    assert (found[2].root, found[2].source) == ("/part", "/dev/sdz9")


def test_a_directory_lies_on_the_innermost_mount():
    """Of two on one point on the later one."""
    found = block_devices.mounts(MOUNTS)

    assert block_devices.mount_of(Path("/data x/run"), found).kind == "btrfs"
    assert block_devices.mount_of(Path("/over/run"), found).kind == "tmpfs"
    assert block_devices.mount_of(Path("/overall"), found).kind == "ext4"


def test_a_partition_is_limited_as_its_disk(tmp_path):
    """Of a disk, or of a volume of the device mapper, it is its own number."""
    disk = tmp_path / "devices" / "sda"
    (disk / "sda2").mkdir(parents=True)
    (disk / "dev").write_text("8:0\n")
    (disk / "sda2" / "dev").write_text("8:2\n")
    (disk / "sda2" / "partition").write_text("2\n")
    for number, place in (("8:0", disk), ("8:2", disk / "sda2")):
        (tmp_path / number).symlink_to(place)

    assert {block_devices._disk(number, Path("/data"), tmp_path) for number in ("8:0", "8:2")} == {"8:0"}
    with pytest.raises(Unsupported, match="the kernel does not list the disk 9:9 of /data"):
        block_devices._disk("9:9", Path("/data"), tmp_path)


def test_a_directory_that_is_not_made_yet_has_a_disk(tmp_path):
    """That of the nearest one above it."""
    try:
        known = block_devices.whole_disk(tmp_path)
    except Unsupported as error:
        pytest.skip(str(error))

    assert block_devices.whole_disk(tmp_path / "a" / "b") == known
    assert Path(block_devices.node(tmp_path)).is_block_device()


@pytest.mark.parametrize(("kind", "source"), [("overlay", "overlay"), ("tmpfs", "tmpfs"), ("nfs4", "/dev/null")])
def test_what_has_no_disk_says_so(tmp_path, monkeypatch, kind, source):
    """With the file system, and what to do."""
    mount = block_devices.Mount("/", str(tmp_path), kind, source, "rw")
    monkeypatch.setattr(block_devices, "mount_of", lambda place: mount)
    real = Path.stat
    monkeypatch.setattr(Path, "stat", lambda self, **how: Elsewhere if self == tmp_path else real(self, **how))

    with pytest.raises(Unsupported) as caught:
        block_devices.whole_disk(tmp_path)
    why = (f"{tmp_path} lies on {kind}", "no disk", "writes cannot be limited")
    assert missing(caught.value, *why, "set DBCLUSTER_DATA_DIR", "a directory on a disk") == []


def test_a_disk_is_described_for_what_depends_on_it(tmp_path, monkeypatch):
    """File system and disk, or that there is none."""
    kind = block_devices.file_system(tmp_path)
    monkeypatch.setattr(block_devices, "whole_disk", lambda directory: "254:0")
    assert block_devices.description(tmp_path) == f"{kind} on 254:0"

    def none(directory):
        raise Unsupported("no disk here")

    monkeypatch.setattr(block_devices, "whole_disk", none)
    assert block_devices.description(tmp_path) == f"{kind} on no disk"
