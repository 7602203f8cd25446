"""Disks of guests: what they hold after a power cut, and who may have them."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.hosts import agent
from pytest_dbcluster.hosts.guests.disk import Disk
from pytest_dbcluster.hosts.guests.guest import DISKS, Guest, Machine
from pytest_dbcluster.hosts.local_run import LocalRun
from pytest_dbcluster.releases import fetched
from pytest_dbcluster.releases.catalogue import GUEST_SYSTEM
from pytest_dbcluster.spec import ClusterSpec

MEMORY = 64 * 2**20
SIZE = 64 * 2**20
SYSTEM = fetched.lookup(GUEST_SYSTEM, "")

needs_kernel = pytest.mark.skipif(SYSTEM is None, reason="the system of guests is not in the cache: dbcluster fetch vm")


@pytest.fixture
def files(data):
    """A directory of a run."""
    run = LocalRun()
    yield run.host("node1", run.cluster_directory(ClusterSpec("standalone")) / "node1")
    run.close()


def run(guest, files, line):
    """Status and output of a line of shell in the guest."""
    output = f"{files.directory}/output"
    Path(output).unlink(missing_ok=True)
    text = agent.script(["sh", "-c", line], directory=files.directory, environment={}, output=output)
    return guest.agent.wait(guest.agent.begin(text), 60), Path(output).read_text()


def test_a_new_disk_takes_no_space(tmp_path):
    """It is a sparse file that nobody else can read."""
    os.close(Disk(tmp_path / "disk", 2**30).open())

    state = (tmp_path / "disk").stat()
    assert (state.st_size, stat.S_IMODE(state.st_mode)) == (2**30, 0o600)
    assert state.st_blocks * 512 < 2**20


def test_a_disk_has_one_owner(tmp_path):
    """The second is refused by the name of the file; it may have it after the end of the first."""
    disk = Disk(tmp_path / "disk", 2**20)
    first = disk.open()
    with pytest.raises(ProvisionError, match=rf"^the disk {tmp_path}/disk belongs to another guest, which still runs"):
        disk.open()

    os.close(first)

    os.close(disk.open())


def test_a_disk_that_cannot_be_made_is_named(tmp_path):
    """With the reason of the system."""
    with pytest.raises(
        ProvisionError, match=r"cannot open the disk .*/none/disk of a guest: No such file or directory"
    ):
        Disk(tmp_path / "none" / "disk", 2**20).open()


@needs_kernel
def test_a_power_cut_keeps_what_was_flushed_and_no_more(files, tmp_path):
    """The guest's kernel loses what it had not written; the disk belongs to the guest until then."""
    disk = Disk(tmp_path / "disk", SIZE)
    guest = Guest("node1", SYSTEM, files, Machine(MEMORY, writable=[files.directory], disks=[disk]))
    made = "/sbin/mke2fs -q -t ext4 /dev/ubda && mkdir /disk && mount /dev/ubda /disk && sync"
    assert run(guest, files, made) == (0, "")
    flushed = "echo kept | dd of=/disk/kept conv=fsync 2>/dev/null; echo lost >/disk/lost; ls /disk"
    assert run(guest, files, flushed) == (0, "kept\nlost\nlost+found\n")
    with pytest.raises(ProvisionError, match=f"the disk {tmp_path}/disk belongs to another guest"):
        disk.open()
    guest.cut()
    os.close(disk.open())

    guest.boot()

    mounted = "mkdir /disk && mount /dev/ubda /disk && cat /disk/kept && cat /disk/lost 2>/dev/null"
    assert run(guest, files, mounted)[1] == "kept\n"
    guest.close()


@needs_kernel
def test_more_disks_than_a_guest_has_names_for_are_refused(files, tmp_path):
    """Its kernel would ignore the others."""
    disks = [Disk(tmp_path / str(number), 2**20) for number in range(len(DISKS) + 1)]

    with pytest.raises(ProvisionError, match="guest node1 asks for 9 disks: a guest has at most 8"):
        Guest("node1", SYSTEM, files, Machine(MEMORY, disks=disks))
