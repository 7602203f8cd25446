"""The trees of control groups: which there are, which of them may be used, and groups that are removed again."""

from __future__ import annotations

import os
import re
import subprocess
import threading
from pathlib import Path

import psutil
import pytest

from pytest_dbcluster.system import cgroups, processes
from pytest_dbcluster.system.cgroups import Tree
from tests.support.facts import missing
from tests.support.run_ids import RUN_ID

MOUNTS = """\
31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 /docker/feed /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw,nsdelegate
"""


@pytest.fixture
def second(monkeypatch):
    """Our group in a real tree of version 2 with a controller that it has, whatever that can limit."""
    points, own = cgroups.mounted_trees(), cgroups.own_groups()
    top = Path(points[""][1]) if "" in points else Path("/missing")
    known = cgroups.read(top / "cgroup.controllers").split()
    files = {"hugetlb": "hugetlb.2MB.max", "pids": "pids.max", "cpu": "cpu.max"}
    controller = next((name for name in files if name in known), None)
    if not controller or not os.access(top / "cgroup.procs", os.W_OK):
        pytest.skip(f"no tree of version 2 here that groups can be made in: {top} has {known or 'no controllers'}")
    monkeypatch.setitem(cgroups.CONTROLLERS[2], "iops", (controller, files[controller]))
    return cgroups._below(*points[""], own[""])


def test_each_controller_is_found_in_its_tree():
    """Those that are mounted together have one; version 2 has all of its own in one."""
    assert cgroups.mounted_trees(MOUNTS) == {
        **dict.fromkeys(("rw", "cpu", "cpuacct"), ("/", "/sys/fs/cgroup/cpu,cpuacct")),
        "rw": ("/docker/feed", "/sys/fs/cgroup/memory"),
        "memory": ("/docker/feed", "/sys/fs/cgroup/memory"),
        "": ("/", "/sys/fs/cgroup/unified"),
    }


def test_our_groups_are_those_of_the_kernel():
    """A line for each tree; the name of version 2 is empty."""
    assert cgroups.own_groups("4:memory:/a/b\n2:cpu,cpuacct:/\n0::/user.slice/x.scope\n") == {
        "memory": "/a/b",
        "cpu": "/",
        "cpuacct": "/",
        "": "/user.slice/x.scope",
    }


@pytest.mark.parametrize(
    ("root", "path", "found"),
    [
        ("/", "/", ""),
        ("/", "/a/b", "/a/b"),
        ("/docker/x", "/docker/x/c", "/c"),
        ("/docker/x", "/", ""),
        ("/", "/..", ""),
    ],
)
def test_a_container_sees_its_part_of_a_tree(root, path, found):
    """What is mounted begins at its own group; a group outside of that is not there for it."""
    assert str(cgroups._below(root, "/cg", path)) == f"/cg{found}"


def test_a_machine_without_control_groups_limits_nothing():
    """Each power says which controller it misses."""
    for name, reason in zip(("cores", "memory", "iops"), cgroups.trees({}, {}), strict=True):
        assert missing(reason, "no tree of control groups", f"controller {name}") == []


def test_a_tree_that_takes_no_groups_says_why():
    """The kernel's refusal, and what it takes."""
    for said in cgroups.trees({"cpu": "/"}, {"cpu": ("/", "/proc/self"), "": ("/", "/proc/self")}):
        assert said.startswith("/proc/self/dbcluster-probe")
        assert said.endswith(cgroups.DELEGATED)


def test_a_group_that_holds_processes_is_left_for_the_one_above(second):
    """Version 2 gives the children of such a group no controllers, except at the top of the tree."""
    inner = second / cgroups.run_name("probe-inner")
    had = cgroups.read(second / "cgroup.subtree_control")
    inner.mkdir()
    try:
        with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:
            cgroups.write(inner / "cgroup.procs", str(process.pid))
            found = cgroups._second(inner, Path(cgroups.mounted_trees()[""][1]), ["iops"])
            process.kill()
    finally:
        cgroups.remove(inner)

    tree = found["iops"]
    assert isinstance(tree, Tree)
    assert (tree.version, tree.powers) == (2, frozenset({"iops"}))
    assert tree.path in inner.parents
    assert cgroups.read(second / "cgroup.subtree_control") == had  # nobody has asked for a limit


def test_a_probe_waits_while_another_process_enables_controllers(second):
    """It would take them back before that one's group relies on them."""
    top = Path(cgroups.mounted_trees()[""][1])
    done = threading.Event()

    def probe():
        cgroups._second(second, top, ["iops"])
        done.set()

    prober = threading.Thread(target=probe)
    with cgroups.enable_lock(second):
        prober.start()
        assert not done.wait(0.3)
    assert done.wait(20)
    prober.join()


def test_nobody_waits_for_ever_to_enable_controllers(tmp_path, monkeypatch):
    """Any user may lock a directory, and a group that is not there is nothing to wait for."""
    monkeypatch.setattr(cgroups, "LOCK_SECONDS", 0.05)
    entered = []
    with cgroups.enable_lock(tmp_path), cgroups.enable_lock(tmp_path), cgroups.enable_lock(tmp_path / "missing"):
        entered.append("all")
    assert entered == ["all"]


def test_probing_leaves_nothing():
    """Neither a group nor a process."""
    children = {child.pid for child in psutil.Process().children()}
    before = set(cgroups.of_runs())  # hosts of other tests in this process may have groups

    cgroups.trees()

    assert {child.pid for child in psutil.Process().children()} == children
    assert [group for group in set(cgroups.of_runs()) - before if f"-{os.getpid()}-" in group.name] == []


def test_the_owner_of_a_group_is_a_process_and_its_birth():
    """A number that was given to another process is not the owner; a name that says nothing is left alone."""
    mine = Path(cgroups.run_name(RUN_ID))

    assert re.fullmatch(rf"dbcluster-{RUN_ID}-t[0-9]+-{os.getpid()}-[0-9]+", mine.name)
    assert not processes.is_orphaned(mine)
    assert processes.is_orphaned(Path(f"dbcluster-{RUN_ID}-{os.getpid()}-1"))
    assert processes.is_orphaned(Path(f"dbcluster-{RUN_ID}-{2**22 + 1}-1"))
    assert not processes.is_orphaned(Path("dbcluster-some-other-thing"))


def test_an_error_of_a_control_file_has_its_name(tmp_path):
    """Python leaves it out of an error of a write."""
    with pytest.raises(FileNotFoundError) as caught:
        cgroups.write(tmp_path / "cpu.max", "1")
    assert caught.value.filename == str(tmp_path / "cpu.max")

    with pytest.raises(OSError) as caught:  # noqa: PT011  (which number is the kernel's choice)
        cgroups.write(Path("/dev/full"), "1")
    assert caught.value.filename == "/dev/full"


def test_a_groups_cpu_time_is_read_in_either_version():
    """Nanoseconds alone in version 1, microseconds in the first line of version 2."""
    assert cgroups.parse_cpu_seconds("2500000000\n") == 2.5
    assert cgroups.parse_cpu_seconds("usage_usec 1500000\nuser_usec 1000000\n") == 1.5


def test_the_cpu_time_of_a_process_that_is_gone_is_not_known():
    """It has no group."""
    assert cgroups.cpu_seconds(2**22 + 1) is None
