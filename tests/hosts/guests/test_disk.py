"""Disks of guests: what they hold after a power cut, and who may have them."""

from __future__ import annotations

import os
import re
import shutil
import signal
import stat
import subprocess
from pathlib import Path

import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.hosts import agent
from pytest_dbcluster.hosts.guests.disk import Disk
from pytest_dbcluster.hosts.guests.guest import CONSOLE, DIRECTORY, Guest, GuestHardware
from pytest_dbcluster.hosts.local_run import LocalRun
from pytest_dbcluster.releases import fetched
from pytest_dbcluster.releases.catalogue import GUEST_SYSTEM
from pytest_dbcluster.spec import ClusterSpec
from tests.support.facts import missing

MEMORY = 64 * 2**20
SIZE = 64 * 2**20
MOUNT = "mkdir /disk && mount /dev/vda /disk"
SYSTEM = fetched.lookup(GUEST_SYSTEM, "")

needs_kernel = pytest.mark.skipif(SYSTEM is None, reason="the system of guests is not in the cache: dbcluster fetch vm")


@pytest.fixture(scope="module")
def host():
    """``host("node1")``: a directory of a run."""
    run = LocalRun()
    directory = run.cluster_directory(ClusterSpec("standalone"))
    yield lambda name: run.host(name, directory / name)
    run.close()


@pytest.fixture(scope="module")
def files(host):
    """The directory of the guest that tests share."""
    return host("node1")


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


@pytest.fixture(scope="module")
def disk(tmp_path_factory):
    """A disk that no guest has."""
    return Disk(tmp_path_factory.mktemp("disks") / "disk", SIZE)


@pytest.fixture(scope="module")
def guest(files, disk):
    """A guest with a file system on that disk, mounted at /disk; tests leave it so."""
    made = Guest("node1", SYSTEM, files, GuestHardware(MEMORY, writable=[files.directory], disks=[disk]))
    assert run(made, files, f"/sbin/mke2fs -q -t ext4 /dev/vda && {MOUNT} && sync") == (0, "")
    yield made
    made.close()


@needs_kernel
def test_a_second_guest_cannot_have_the_disk_of_another(guest, files, disk, host):
    """Its kernel is not started; the first one goes on."""
    second = host("node2")
    with pytest.raises(ProvisionError) as caught:
        Guest("node2", SYSTEM, second, GuestHardware(MEMORY, writable=[second.directory], disks=[disk]))

    why = (f"the disk {disk.path} belongs to another guest", "still runs", "two kernels", "would destroy it")
    assert missing(caught.value, *why, "End the other run", "use another file") == []
    assert not Path(second.directory, DIRECTORY, CONSOLE).exists()
    assert run(guest, files, "echo words >/disk/words && sync && cat /disk/words && rm /disk/words") == (0, "words\n")


@needs_kernel
def test_a_power_cut_keeps_what_was_flushed_and_no_more(guest, files, disk):
    """The guest's kernel loses what it had not written; the disk belongs to the guest until then.

    Content of many pages is read from the disk as it was written, before and after.
    """
    _, written = run(guest, files, "dd if=/dev/urandom of=/disk/large bs=64k count=300 2>/dev/null; md5sum /disk/large")
    read = "echo 3 >/proc/sys/vm/drop_caches; md5sum /disk/large"
    assert run(guest, files, f"sync; {read}") == (0, written)
    flushed = "echo kept | dd of=/disk/kept conv=fsync 2>/dev/null; echo lost >/disk/lost; ls /disk"
    assert run(guest, files, flushed) == (0, "kept\nlarge\nlost\nlost+found\n")
    guest.cut()
    os.close(disk.open())

    guest.boot()

    assert run(guest, files, f"{MOUNT} && cat /disk/kept && cat /disk/lost 2>/dev/null")[1] == "kept\n"
    assert run(guest, files, read) == (0, written)


FLUSHES = "for n in $(seq 20); do echo x | dd of=/disk/file conv=fsync 2>/dev/null; done"


@needs_kernel
def test_a_flush_in_the_guest_flushes_the_file(guest, files):
    """Each one; a write that nobody flushes is none."""
    (served,) = guest.disks
    before = served.counters()
    assert run(guest, files, "for n in $(seq 20); do echo x >/disk/file; done") == (0, "")
    between = served.counters()

    assert run(guest, files, FLUSHES) == (0, "")

    after = served.counters()
    assert between.flushes - before.flushes <= 2  # the journal's own, every 5 s
    assert after.flushes - between.flushes >= 20
    assert len(after.latest) == min(after.flushes, 256)
    assert min(after.latest) > 0


@needs_kernel
@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")
def test_this_machine_sees_each_flush(guest, files, tmp_path):
    """What the disk counts are calls of fdatasync, which came back without an error."""
    (served,) = guest.disks
    calls = tmp_path / "calls"
    trace = ["strace", "-qq", "-e", "trace=fdatasync", "-o", str(calls), "-p", str(served.pid)]
    with subprocess.Popen(trace) as tracer:
        wait.until(lambda: [] if _traced(served.pid) else ["not yet"], "strace", seconds=60)
        before = served.counters()
        assert run(guest, files, FLUSHES) == (0, "")
        after = served.counters()
        tracer.terminate()

    seen = [line for line in calls.read_text().splitlines() if line.startswith("fdatasync(") and line.endswith("= 0")]
    assert len(seen) >= after.flushes - before.flushes >= 20


def _traced(pid):
    return "TracerPid:\t0\n" not in Path(f"/proc/{pid}/status").read_text()


@needs_kernel
def test_a_full_disk_of_this_machine_is_said(host, small):
    """The guest sees a broken disk; the reason is on this machine."""
    full, files = Disk(small("16M") / "disk", SIZE), host("node3")
    guest = Guest("node3", SYSTEM, files, GuestHardware(MEMORY, writable=[files.directory], disks=[full]))
    assert run(guest, files, f"/sbin/mke2fs -q -t ext4 /dev/vda && {MOUNT}") == (0, "")
    status, _ = run(guest, files, "dd if=/dev/zero of=/disk/file bs=64k count=320 conv=fsync 2>/dev/null")
    guest.close()

    assert status
    # The kernel of the guest also writes zeros, for tables of its file system.
    reason = r"a write (of zeros )?at byte \d+ failed: No space left on device"
    assert re.fullmatch(rf"the disk of the guest, {full.path}: {reason}", guest.disk_words())


@needs_kernel
def test_a_disk_whose_program_ends_ends_the_guest(guest, disk):
    """What runs on it would wait for ever; the message names the disk. No test after this one has the guest."""
    number = guest.agent.begin("sleep 60")
    guest.agent.pid(number)
    os.kill(guest.disks[0].pid, signal.SIGKILL)

    with pytest.raises(
        ProvisionError, match=rf"guest node1 has ended; its last output: (.|\n)*serves the disk {disk.path} of"
    ):
        guest.agent.wait(number, 60)
