"""What kernels of machines elsewhere count, from the words of their files."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess

import pytest

from pytest_dbcluster.hosts.provisioners.ssh import remote_programs
from pytest_dbcluster.hosts.provisioners.ssh.usage import Ran, Usage, read

# Linux 6.1 of a virtual machine with a virtio disk; the host of the CPU had stolen time.
NEW = """\
cpu  1000 10 300 50000 200 5 15 40 7 0
disk  254       0 vda 900 30 8000 500 700 20 16000 900 0 800 1400 5 0 80 2 60 1
disk  254       1 vda1 890 30 7900 490 690 20 15900 890 0 790 1390 5 0 80 2 60 1
disk    7       0 loop0 10 0 80 1 0 0 0 0 0 4 1 0 0 0 0 0 0
net Inter-|   Receive                                                |  Transmit
net face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier
net     lo: 500000    900    0    0    0     0          0         0   500000  900    0    0    0     0     0    0
net   eth0: 1000    20    0    0    0     0          0         0     3000   30    0    0    0     0     0    0
net eth1 5    2    0    0    0     0          0         0     7      4    0    0    0     0       0          0
pressure cpu 2500000
pressure io 1500
pressure memory 0
"""
# Linux 3.10 of a bare machine: fewer columns for disks, no pressure, and a name that fills its column.
OLD = """\
cpu  100 0 50 900 25 0 3 0 0 0
disk    8       0 sda 100 1 2000 30 50 2 4000 60 0 70 90
disk    8       1 sda1 100 1 2000 30 50 2 4000 60 0 70 90
disk    8      16 sdb 10 0 200 3 5 0 400 6 0 7 9
disk  253       0 dm-0 100 1 2000 30 50 2 4000 60 0 70 90
net enp0s31f6:123456789 20 0 0 0 0 0 0 987654321 30 0 0 0 0 0 0
"""


def test_a_new_kernel_says_everything():
    """In seconds, bytes and numbers; the CPU's time by kind, interrupts are the system's."""
    assert dict(read(NEW).machine) == {
        "cpu_user": 10.1, "cpu_system": 3.2, "cpu_iowait": 2.0, "cpu_idle": 500.0, "cpu_steal": 0.4,
        "disk_read_bytes": 8000 * 512, "disk_write_bytes": 16000 * 512, "disk_writes": 700,
        "network_received_bytes": 1005, "network_sent_bytes": 3007, "network_packets": 34,
        "pressure_cpu": 2.5, "pressure_io": 0.0015, "pressure_memory": 0.0,
    }  # fmt: skip


def test_an_old_kernel_says_what_it_has():
    """Without pressure; each disk is counted once, not again with what lies on it."""
    assert dict(read(OLD).machine) == {
        "cpu_user": 1.0, "cpu_system": 0.53, "cpu_iowait": 0.25, "cpu_idle": 9.0, "cpu_steal": 0.0,
        "disk_read_bytes": 2200 * 512, "disk_write_bytes": 4400 * 512, "disk_writes": 55,
        "network_received_bytes": 123456789, "network_sent_bytes": 987654321, "network_packets": 30,
    }  # fmt: skip


def test_a_kernel_without_stolen_time_has_none():
    """Linux before 2.6.11."""
    assert read("cpu  100 0 50 900 25 0 3\n").machine["cpu_steal"] == 0


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("sda", True), ("sdaa", True), ("sda1", False), ("sdaa12", False), ("hda3", False), ("xvda", True),
        ("xvda1", False), ("vdb", True), ("nvme0n1", True), ("nvme10n2", True), ("nvme0n1p3", False),
        ("mmcblk0", True), ("mmcblk0p1", False), ("loop0", False), ("dm-3", False), ("md127", False),
        ("ram0", False), ("zram0", False),
    ],
)  # fmt: skip
def test_a_partition_is_a_part_of_its_disk(name, counts):
    """Its bytes are those of the disk, which are counted; so are those of what is made of other disks."""
    found = read(f"disk 8 0 {name} 1 0 8 1 1 0 16 1 0 1 1").machine

    assert found == ({"disk_read_bytes": 4096, "disk_write_bytes": 8192, "disk_writes": 1} if counts else {})


def stat(number, parent, *ticks, name="mariadbd"):
    """A line of a process, with its time as user and system and that of its ended children."""
    mine = " ".join(map(str, ticks))
    return f"process {number} ({name}) S {parent} {number} {number} 0 -1 4194560 900 80 0 0 {mine} 20 0 9 0 5 6 7\n"


def test_a_program_has_the_time_of_what_it_started():
    """Of children and theirs, in whatever order the kernel lists them, and of those that have ended."""
    text = stat(40, 30, 1, 2, 4, 8) + stat(20, 10, 100, 0, 0, 0) + stat(30, 20, 0, 200, 0, 0) + stat(50, 10, 0, 0, 3, 0)

    found = read(text)

    assert found.of_program(20) == pytest.approx(3.15)
    assert found.of_program(30) == pytest.approx(2.15)
    assert found.of_program(50) == pytest.approx(0.03)
    assert found.of_all() == pytest.approx(3.18)
    assert found.of_program(10) is None


@pytest.mark.parametrize("name", ["a b", "x) S 1 (y", "(sd-pam)", "kworker/0:1", ")", ""])
def test_a_program_may_have_any_name(name):
    """Names have spaces and brackets; the last bracket ends them."""
    assert read(stat(7, 3, 1, 2, 3, 4, name=name)).processes == [Ran(7, 3, 0.1)]


def test_a_machine_that_says_nothing_has_used_nothing_known():
    """Unknown is not zero."""
    empty = read("")

    assert empty == Usage({}, [])
    assert (empty.of_all(), empty.of_program(1)) == (None, None)


@pytest.mark.parametrize("part", ["cpu", "disk 8 0 sda 1", "disk", "net eth0 12", "net", "pressure cpu", "process 7 (x",
                                  "process", "cpu x y", "cpu0 1 2", "motd of today", "pressure cpu x"])  # fmt: skip
def test_a_line_that_is_not_understood_is_left_out(part):
    """What is cut in the middle, or printed by something else, spoils no figure of the other lines."""
    assert read(f"{part}\n{OLD}{part}\n") == read(OLD)


@pytest.mark.parametrize("shell", ["dash", "bash", "bash --posix -p"])
@pytest.mark.parametrize("marked", [False, True], ids=["namespace", "no-namespace"])
def test_this_machine_is_read_by_the_same_words(tmp_path, shell, marked):
    """The shell of machines finds all that a kernel of today has, without starting a program for it.

    Names of programs stand there as they are. Without a namespace it looks for what has the mark of the host.
    """
    odd, mark = r"a\nb ) c", f"{secrets.token_hex(4)}-1-node1"
    (tmp_path / odd).symlink_to(shutil.which("sleep"))
    variables = {"PATH": os.environ["PATH"], "mark": mark, "fall": "end_marked" if marked else ""}
    with subprocess.Popen([tmp_path / odd, "100"], env={remote_programs.HOST_VARIABLE: mark}) as program:
        command = [*shell.split(), "-c", f"{remote_programs.USE}\nuse 7"]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=variables)
        program.kill()
    *lines, last = done.stdout.splitlines()
    found = read("\n".join(line.removeprefix("used 7 ") for line in lines))

    assert last == "used 7"
    assert {"cpu_user", "cpu_system", "cpu_idle", "cpu_steal"} <= set(found.machine)
    assert found.machine["cpu_idle"] > 0
    assert all(value >= 0 for value in found.machine.values())
    assert found.of_program(program.pid) is not None
    assert any(f"process {program.pid} ({odd})" in line for line in lines)
    assert (len(found.processes) == 2) is marked  # the marked one and the shell itself, or all of this machine
    assert done.stderr == ""


@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_disks_are_the_same_where_sys_is_hidden(tmp_path, shell):
    """Then they are read from /proc/diskstats."""

    def disks(program):
        done = subprocess.run([shell, "-c", f"{program}\nuse 7"], capture_output=True, text=True, check=True)
        found = read("\n".join(line.removeprefix("used 7 ") for line in done.stdout.splitlines())).machine
        return {name: value for name, value in found.items() if name.startswith("disk_")}

    known = disks(remote_programs.USE)
    hidden = disks(remote_programs.USE.replace("/sys/block", str(tmp_path)))

    assert list(hidden) == list(known)
    assert all(value >= known[name] for name, value in hidden.items())
