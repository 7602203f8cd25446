"""One guest, without a network: its boot, its end, and what is said where it does not boot."""

from __future__ import annotations

import dataclasses
import os
import re
import shutil
import time
from pathlib import Path

import psutil
import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.hosts import agent
from pytest_dbcluster.hosts.guests import guest as module
from pytest_dbcluster.hosts.guests.guest import Guest, GuestHardware
from pytest_dbcluster.hosts.local_run import LocalRun
from pytest_dbcluster.releases import fetched
from pytest_dbcluster.releases.catalogue import GUEST_SYSTEM
from pytest_dbcluster.spec import ClusterSpec

MEMORY = 64 * 2**20
SYSTEM = fetched.lookup(GUEST_SYSTEM, "")

pytestmark = pytest.mark.skipif(SYSTEM is None, reason="the system of guests is not in the cache: dbcluster fetch vm")


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


@pytest.fixture(scope="module")
def shared(files):
    """A guest that shares the directory."""
    made = Guest("node1", SYSTEM, files, GuestHardware(MEMORY, writable=[files.directory]))
    yield made
    made.close()


@pytest.fixture
def guest(shared):
    """The same one, which runs: a test may have ended it."""
    if shared.agent.gone:
        shared.close()
        shared.boot()
    return shared


@pytest.fixture
def other(host):
    """A directory for a guest that does not boot."""
    return host("node2")


def run(guest, files, *command):
    """Status and output of a command in the guest."""
    output = f"{files.directory}/output"
    Path(output).unlink(missing_ok=True)
    number = guest.agent.begin(agent.script(command, directory=files.directory, environment={}, output=output))
    return guest.agent.wait(number, 60), Path(output).read_text()


def test_a_guest_has_its_own_kernel_and_memory(guest, files):
    """Its name, one CPU and its memory are its own; the shared directory lies under the same path."""
    assert run(guest, files, "uname", "-n", "-r") == (0, f"node1 {SYSTEM.version}\n")
    assert run(guest, files, "nproc") == (0, "1\n")
    total = int(run(guest, files, "awk", "/MemTotal/ { print $2 }", "/proc/meminfo")[1]) * 1024
    assert 0.7 * MEMORY < total <= MEMORY
    assert run(guest, files, "cat", f"{files.directory}/.guest/root")[1].startswith("mount -t proc")


@pytest.mark.parametrize("installed", [True, False])
def test_a_guest_has_one_core_if_taskset_is_installed(other, monkeypatch, installed):
    """Its kernel and its programs run there; without ``taskset`` they may run on all cores of this process."""
    if not installed:
        monkeypatch.setattr(module.shutil, "which", lambda program: None)
    elif not shutil.which("taskset"):
        pytest.skip("there is no program taskset here (package util-linux)")
    ours = os.sched_getaffinity(0)
    pinned = Guest("node2", SYSTEM, other, GuestHardware(MEMORY, core=max(ours)))

    assert os.sched_getaffinity(pinned.pid) == ({max(ours)} if installed else ours)
    pinned.close()


def test_a_guest_cannot_change_its_root(guest, files):
    """What it writes there is in its memory: the cache has many users."""
    assert run(guest, files, "sh", "-c", "echo changed >/etc/passwd; cat /etc/passwd") == (0, "changed\n")

    assert (SYSTEM.bin.parent / "root/etc/passwd").read_text().startswith("root:")


def test_a_cut_guest_starts_again_without_its_programs(guest, files):
    """Its memory ends with its power; what programs wrote into the shared directory, this machine has.

    Words of an earlier boot would be taken for the reason of a later end.
    """
    assert run(guest, files, "sh", "-c", "echo words >kept; echo words >/lost; sleep 60 & echo begun") == (0, "begun\n")
    assert Path(files.directory, "kept").read_text() == "words\n"
    guest.cut()
    guest.boot()

    assert run(guest, files, "cat", "kept") == (0, "words\n")
    assert run(guest, files, "ls", "/lost")[0] == 1
    assert "sleep" not in run(guest, files, "ps")[1]
    assert guest.console().count("Linux version") == 1


def test_a_paused_guest_goes_on_later(guest):
    """Nothing in it moves meanwhile."""
    guest.pause()
    number = guest.agent.begin("echo words")
    assert guest.agent.wait(number, 0.3) is None

    guest.resume()

    assert guest.agent.wait(number, 60) == 0


def test_a_guest_ends_with_our_line(guest):
    """Whatever ends this process closes the line; so the guest ends at once, and leaves no process."""
    pids = [guest.pid, *(child.pid for child in psutil.Process(guest.pid).children(recursive=True))]
    began = time.monotonic()
    guest.detach()

    wait.until(lambda: [str(pid) for pid in pids if alive(pid)], "the end of the guest", seconds=30, poll=0.005)
    assert guest.agent.gone == "guest node1 was released"
    assert time.monotonic() - began < 30


def alive(pid):
    """Whether a process runs; its supervisor asks for its status later."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_a_panic_is_said_with_the_last_words_of_the_console(guest):
    """Programs of the guest have ended then, and its host is lost."""
    number = guest.agent.begin("sleep 60")
    guest.agent.pid(number)
    guest.agent.begin("echo 1 >/proc/sys/kernel/sysrq; echo c >/proc/sysrq-trigger")

    with pytest.raises(
        ProvisionError, match=r"guest node1 has ended; its last output: (.|\n)*Kernel panic - not syncing"
    ):
        guest.agent.wait(number, 60)
    assert "sysrq triggered crash" in guest.agent.gone
    assert "Call Trace" not in guest.agent.gone


def test_a_kernel_that_does_not_start_is_said_with_its_last_lines(other):
    """Too little memory is one reason."""
    with pytest.raises(ProvisionError, match=r"^guest node2 has ended; its last output: .") as caught:
        Guest("node2", SYSTEM, other, GuestHardware(2**20))

    assert len(str(caught.value).splitlines()) <= module.LAST_LINES + 1


def test_a_kernel_that_is_no_kernel_says_what_it_printed(other, tmp_path):
    """The words of whatever lies there are in the message."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/linux").write_text("#!/bin/sh\necho this is no kernel\nexit 1\n")
    (tmp_path / "bin/linux").chmod(0o755)
    broken = dataclasses.replace(SYSTEM, bin=tmp_path / "bin")

    with pytest.raises(ProvisionError, match=r"^guest node2 has ended; its last output: this is no kernel$"):
        Guest("node2", broken, other, GuestHardware(MEMORY))


def test_a_path_that_a_kernel_cannot_take_is_refused(other):
    """Spaces and commas separate the words of its command line."""
    with pytest.raises(ProvisionError, match=r"cannot use the directory '/a b': .*; choose others with XDG_CACHE_HOME"):
        Guest("node2", SYSTEM, other, GuestHardware(MEMORY, writable=["/a b"]))


@pytest.mark.parametrize(
    ("room", "options", "text"),
    [
        ("128M", "noexec", "a file of {there}, which is mounted noexec; choose another directory with TMPDIR"),
        (
            "16M",
            "exec",
            "a file of {there}, which has 16 MiB free, but it needs 64 MiB; make that file system larger, ask for less "
            "with memory=, or choose another directory with TMPDIR",
        ),
    ],
)
def test_memory_that_cannot_be_had_is_refused_before_the_boot(other, small, monkeypatch, room, options, text):
    """The kernel would stop, or end in the middle of a round when it takes a page that is not there."""
    there = small(room, options)
    monkeypatch.setenv("TMPDIR", str(there))

    with pytest.raises(ProvisionError, match=re.escape(f"a guest keeps its memory in {text.format(there=there)}")):
        Guest("node2", SYSTEM, other, GuestHardware(MEMORY))
    assert list(there.iterdir()) == []


def test_memory_that_finds_no_room_later_is_said(other, small, monkeypatch):
    """A guest gets it page by page, and ends in the middle of whatever it does."""
    there = small("80M")
    monkeypatch.setenv("TMPDIR", str(there))
    crowded = Guest("node2", SYSTEM, other, GuestHardware(MEMORY))
    with pytest.raises(OSError, match="No space left"):
        (there / "others").write_bytes(bytes(80 * 2**20))

    number = crowded.agent.begin("dd if=/dev/zero of=/dev/shm/large bs=1M count=32")

    with pytest.raises(ProvisionError) as caught:
        crowded.agent.wait(number, 60)
    assert str(caught.value).endswith(
        f"{there} of this machine, where guests keep their memory, was full; make it larger, ask for less with "
        "memory=, or choose another directory with TMPDIR"
    )
    crowded.close()


def test_a_directory_for_memory_that_is_not_there_is_named(other, tmp_path, monkeypatch):
    """The variable that names it is in the message."""
    monkeypatch.setenv("TMPDIR", str(tmp_path / "none"))

    with pytest.raises(ProvisionError, match=r"none: No such file or directory; choose another directory with TMPDIR"):
        Guest("node2", SYSTEM, other, GuestHardware(MEMORY))
