"""The disk of a guest host, where its server keeps its data; without servers."""

from __future__ import annotations

import os
import re
import subprocess
import threading
from pathlib import Path

import pytest

from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.hosts.host import BlockDevice
from pytest_dbcluster.hosts.provisioner import NO_DISKS
from pytest_dbcluster.hosts.provisioners.container.provisioner import ContainerProvisioner
from pytest_dbcluster.hosts.provisioners.local import LocalProvisioner
from pytest_dbcluster.hosts.provisioners.vm.data_disk import DataDisk
from pytest_dbcluster.hosts.provisioners.vm.provisioner import GuestProvisioner
from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.system import probes
from tests.support import guests
from tests.support.facts import missing

SPEC = ClusterSpec("standalone").with_needs(memory="64M")

needs_guests = pytest.mark.skipif(bool(guests.missing()), reason=guests.missing() or "there can be guests")


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """A directory of this machine: 8 MiB in a large file, and a small file in a private directory."""
    made = tmp_path_factory.mktemp("source")
    (made / "large").write_bytes(os.urandom(8 * 2**20))
    (made / "private").mkdir(mode=0o700)
    (made / "private" / "small").write_text("some words")
    return made


@pytest.fixture(scope="module")
def host(provisioner, source):
    """A guest with a copy of that directory on its disk."""
    (made,) = provisioner.acquire(SPEC)
    made.copy_tree(str(source), f"{made.directory}/data", durable=True)
    return made


@pytest.fixture(scope="module")
def other(provisioner):
    """A guest whose disk is not used before the last test that has it."""
    return provisioner.acquire(SPEC)[0]


@needs_guests
def test_data_lies_on_the_disk_of_the_guest(host, source):
    """Not in the directory that it shares with this machine; all else does."""
    assert f"/dev/vda {host.directory}/data ext4 rw,noatime" in host.run(["cat", "/proc/mounts"]).stdout
    assert list(Path(host.directory, "data").iterdir()) == []
    assert isinstance(host, BlockDevice)
    assert host.run(["ls", "data"]).stdout.split() == ["large", "private"]
    assert host.run(["stat", "-c", "%a", "data/private"]).stdout == "700\n"
    expected = subprocess.run(["md5sum", source / "large"], check=True, capture_output=True, text=True).stdout
    assert host.run(["md5sum", "data/large"]).stdout.split()[0] == expected.split()[0]


@needs_guests
def test_files_on_the_disk_are_read_and_written(host):
    """As those of any host: new ones with their directories and modes, parts of them, and missing ones."""
    path = f"{host.directory}/data/made/some.file"
    host.push(b"old", path)
    host.push(b"\x00new\xff", path, mode=0o640)

    assert host.pull(path) == b"\x00new\xff"
    assert host.pull(path, offset=4) == b"\xff"
    assert host.run(["stat", "-c", "%a", path]).stdout == "640\n"
    with pytest.raises(FileNotFoundError):
        host.pull(f"{host.directory}/data/none")
    host.remove_tree(f"{host.directory}/data/made")
    assert host.run(["ls", "data"]).stdout.split() == ["large", "private"]


@needs_guests
def test_data_can_be_taken_from_the_disk(host, tmp_path):
    """A populated data set goes into the cache of this machine."""
    assert host.tree_size(f"{host.directory}/data") >= 8 * 2**20

    host.take_tree(f"{host.directory}/data", tmp_path / "taken")

    assert (tmp_path / "taken" / "private" / "small").read_text() == "some words"
    assert (tmp_path / "taken" / "large").stat().st_size == 8 * 2**20


@needs_guests
def test_a_flush_is_measured_on_the_disk_of_the_guest(host, other, monkeypatch):
    """Not on this machine, and only where data lies on the disk."""
    monkeypatch.setattr(probes, "fsync_seconds", lambda directory: 33.0)

    assert 0 < host.flush_seconds() < 33
    assert host.flush_seconds() == host.flush_seconds()  # measured once
    assert other.flush_seconds() == 33


@needs_guests
def test_other_disks_are_copies_of_the_first_one(host, other, source, monkeypatch):
    """A guest copies the directory once a run; a changed directory and another size are copied again."""
    monkeypatch.setattr(DataDisk, "_make", lambda disk, source: pytest.fail("copied by a guest"))
    other.push(b"a file of this guest alone", f"{other.directory}/my.cnf")

    other.copy_tree(str(source), f"{other.directory}/data")

    assert other.run(["md5sum", "data/large"]).stdout == host.run(["md5sum", "data/large"]).stdout
    assert other.run(["ls", "data"]).stdout == host.run(["ls", "data"]).stdout
    os.utime(source)
    with pytest.raises(pytest.fail.Exception, match="copied by a guest"):
        other.copy_tree(str(source), f"{other.directory}/data")


@needs_guests
def test_a_power_cut_loses_what_was_not_flushed(host):
    """The disk is mounted again, with all that was; the guest's kernel does not write old content back meanwhile."""
    host.run(["sh", "-c", "echo 0 >/proc/sys/vm/dirty_writeback_centisecs; cd data; echo kept >kept; sync -d kept"])
    host.run(["sh", "-c", "cd data; echo lost >lost; cat lost"])

    host.kill()

    assert host.run(["ls", "data"]).stdout.split() == ["kept", "large", "private"]
    assert host.pull(f"{host.directory}/data/kept") == b"kept\n"
    assert host.why_lost() == ""


@needs_guests
def test_no_request_beside_traffic_is_overlooked(host):
    """The kernel of a guest does not notice every answer of its disk that comes with a packet: it is told again."""
    host.spawn(
        ["sh", "-c", "while :; do nc -l -p 5001 >/dev/null; done"],
        log=f"{host.directory}/log",
        directory=host.directory,
    )
    over = threading.Event()

    def send():
        while not over.wait(0.001):
            try:
                with guests.connection(host, 5001, 1) as sending:
                    for _ in range(50):
                        sending.sendall(b"x" * 200)
                        over.wait(0.0003)
            except OSError:
                continue

    sending = threading.Thread(target=send)
    sending.start()
    try:
        written = "cd data; for n in $(seq 100); do echo x >f$n; done; for n in 1 2 3; do sync -d f*; done; rm f*"
        host.run(["sh", "-c", written], seconds=300)
    finally:
        over.set()
        sending.join()


@needs_guests
def test_a_disk_in_memory_flushes_nothing(monkeypatch, source):
    """It is told by the time on this machine: the way to it takes longer than a flush of a blind disk may."""
    monkeypatch.setenv("DBCLUSTER_DATA_DIR", "/dev/shm/dbcluster-test-of-disks")
    made = GuestProvisioner()
    (host,) = made.acquire(SPEC)
    host.copy_tree(str(source), f"{host.directory}/data")

    seconds = host.flush_seconds()
    made.close()
    Path("/dev/shm/dbcluster-test-of-disks").rmdir()

    assert 0 < seconds < probes.BLIND_FSYNC


@needs_guests
def test_a_disk_too_small_is_said(provisioner, source):
    """With its size, that of the data, and what to ask for."""
    (host,) = provisioner.acquire(SPEC.with_needs(disk="8M"))

    with pytest.raises(ProvisionError) as caught:
        host.copy_tree(str(source), f"{host.directory}/data")

    assert re.match(
        r"(?s)cannot copy 8.4 MB of data to the disk of node1, which has 8.4 MB: .*No space left", str(caught.value)
    )
    assert str(caught.value).endswith("ask for a larger disk with disk=")
    provisioner.give_back([host])


@needs_guests
def test_a_full_disk_of_this_machine_is_said(small, monkeypatch, source, request):
    """The guest sees a broken disk; the message names the file and the way out."""
    monkeypatch.setenv("DBCLUSTER_DATA_DIR", str(small("6M")))
    made = GuestProvisioner()
    request.addfinalizer(made.close)
    (host,) = made.acquire(SPEC)

    with pytest.raises(
        ProvisionError, match=r"cannot copy 8.4 MB of data to the disk of node1, the file .*/disk: a write"
    ):
        host.copy_tree(str(source), f"{host.directory}/data", durable=True)

    assert "No space left on device" in host.limit_reached()


@pytest.mark.parametrize("made", [LocalProvisioner, ContainerProvisioner])
def test_hosts_without_disks_say_who_has_them(made):
    """Before anything starts, whatever else the hosts of a user who is not root lack."""
    spec = ClusterSpec("standalone").with_needs(disk="4G")

    assert missing(made().unmet(spec), f"cluster {spec} needs disk=4G", f"does not offer here: {NO_DISKS}") == []
