"""Limits of a host: what is written for them, and what the kernel makes of it with real programs and servers."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.errors import NodeDied, ProvisionError, Unsupported
from pytest_dbcluster.hosts import runs
from pytest_dbcluster.hosts.provisioners.local import LocalProvisioner
from pytest_dbcluster.spec import ClusterSpec, HostNeeds
from pytest_dbcluster.system import cgroups
from pytest_dbcluster.system.cgroups import POWERS, Limits, Tree
from tests.support import groups
from tests.support.clusters import bring_up
from tests.support.facts import missing
from tests.support.run_ids import RUN_ID

ONE = ClusterSpec("standalone")
ALL = HostNeeds(cores=1.5, memory=2**26, iops=300)
BUSY = "while True: pass"
OWNER = """
import sys, time
from pytest_dbcluster.hosts.provisioners.local import LocalProvisioner
from pytest_dbcluster.spec import ClusterSpec
local = LocalProvisioner()
(host,) = local.acquire(ClusterSpec("standalone").with_needs(cores=1))
program = host.spawn(["sleep", "600"], log=host.directory + "/log", directory=host.directory)
print(host.group.paths[0].parent, program.pid, local._run.client._process.pid, flush=True)
time.sleep(600)
"""


@pytest.fixture
def local(tmp_path, monkeypatch):
    """A run on a disk of this machine whose limits may be set here."""
    monkeypatch.setenv("DBCLUSTER_DATA_DIR", str(tmp_path / "runs"))
    made = LocalProvisioner()
    if lacking := set(POWERS) - made.offers:
        pytest.skip("; ".join(f"no {power}: {made.missing[power]}" for power in sorted(lacking)))
    yield made
    made.close()


def setting(host, name):
    """A limit of a host as the kernel has it; empty where it has no such file."""
    return "".join(cgroups.read(place / name) for place in host.group.paths).strip()


def groups_of(run):
    """The groups of a run that are there now."""
    return [place for place in cgroups.of_runs() if place.name.split("-")[1] == run]


@pytest.mark.parametrize(
    ("version", "written"),
    [
        (
            1,
            [
                ("cpu.cfs_period_us", "100000"),
                ("cpu.cfs_quota_us", "150000"),
                ("memory.limit_in_bytes", "67108864"),
                ("memory.memsw.limit_in_bytes", "67108864"),
                ("blkio.throttle.write_iops_device", "254:0 300"),
            ],
        ),
        (
            2,
            [
                ("cpu.max", "150000 100000"),
                ("memory.max", "67108864"),
                ("memory.swap.max", "0"),
                ("io.max", "254:0 wiops=300"),
            ],
        ),
    ],
)
def test_limits_are_written_as_each_version_has_them(version, written):
    """All of them where a tree has all controllers, and only what was asked for."""
    tree = Tree(Path("/cg"), version, frozenset(POWERS))

    assert cgroups.settings(tree, ALL, "254:0") == written
    assert cgroups.settings(tree, HostNeeds(rtt=1.0), "254:0") == []
    assert len(cgroups.settings(Tree(Path("/cg"), version, frozenset({"iops"})), ALL, "254:0")) == 1


@pytest.mark.parametrize(
    ("file", "text", "written"),
    [
        ("blkio.throttle.write_iops_device", "254:0 500\n", "254:0 50"),
        ("io.max", "254:0 rbps=max wbps=max riops=max wiops=500\n", "254:0 wiops=50"),
    ],
)
def test_a_limit_on_writes_can_change(tmp_path, file, text, written):
    """Of the device that has one, as each version of control groups writes it. The kernel keeps its other limits."""
    (tmp_path / file).write_text(text)
    group = cgroups.Group((tmp_path,), HostNeeds(iops=500))
    before = group.write_limit()
    group.limit_writes(50)

    assert before == 500
    assert (tmp_path / file).read_text()[: len(written)] == written


def test_a_group_without_a_limit_on_writes_gets_none(tmp_path):
    """A limit of all processes in it would reach others."""
    group = cgroups.Group((tmp_path,), HostNeeds(cores=1))
    (tmp_path / "io.max").write_text("")

    assert group.write_limit() is None
    with pytest.raises(ProvisionError, match="no limit on writes that could change"):
        group.limit_writes(50)


def test_what_may_not_be_limited_is_unsupported():
    """Each power with its reason; nothing is made."""
    nothing = Limits({}, {"cores": "no tree", "iops": "no disk"})

    with pytest.raises(Unsupported) as caught:
        nothing.group(RUN_ID, "1-one-node1", HostNeeds(cores=1, iops=5))
    asked = "cannot limit 1-one-node1 to cores=1, iops=5 here"
    assert missing(caught.value, asked, "no cores: no tree", "no iops: no disk") == []


def test_a_limit_that_the_kernel_refuses_leaves_nothing(tmp_path):
    """The file and the kernel's word are in the error."""
    plain = Limits({"cores": Tree(tmp_path, 1, frozenset({"cores"}))}, {})  # no tree of control groups at all

    with pytest.raises(ProvisionError, match=r"^cannot limit host to cores=1 with a control group: .*No such file"):
        plain.group(RUN_ID, "host", HostNeeds(cores=1))
    assert not list(tmp_path.glob("*/host"))


def test_memory_has_no_disk(monkeypatch):
    """On tmpfs writes cannot be limited, and a spec that asks for it is told so; the rest is offered as ever."""
    if not Path("/dev/shm").is_dir():
        pytest.skip("no /dev/shm here")
    monkeypatch.setenv("DBCLUSTER_DATA_DIR", "/dev/shm/dbcluster-test")
    local = LocalProvisioner()

    assert "iops" not in local.offers
    assert "iops" in local.missing
    assert local.offers - {"netem", "root", "shared-cores"} == cgroups.find(Path("/root")).offers - {"iops"}


def test_programs_of_a_limited_host_are_in_its_group(local):
    """From their first instruction on, with the limits; when the host is given back nothing of it is left."""
    limited, free = local.acquire(ONE.with_needs(cores=1.5, memory="64M", iops=300))[0], local.acquire(ONE)[0]
    words = ["sh", "-c", "cat /proc/self/cgroup; exec sleep 600"]
    inside, outside = (
        host.spawn(words, log=f"{host.directory}/log", directory=host.directory) for host in (limited, free)
    )
    wait.until(lambda: [] if limited.pull(f"{limited.directory}/log") else ["nothing printed"], "it", seconds=60)
    said = limited.pull(f"{limited.directory}/log").decode()

    assert all(place.name in said for place in limited.group.paths)
    assert setting(limited, "cpu.cfs_quota_us") + setting(limited, "cpu.max") in ("150000", "150000 100000")
    assert setting(limited, "memory.limit_in_bytes") + setting(limited, "memory.max") == str(2**26)
    assert "300" in setting(limited, "blkio.throttle.write_iops_device") + setting(limited, "io.max")
    assert free.group is None
    local.give_back([limited])
    assert not any(place.exists() for place in limited.group.paths)
    assert not psutil.pid_exists(inside.pid) or inside.status() == -signal.SIGKILL
    assert outside.status() is None


def test_a_host_has_no_more_cores_than_it_needs(local):
    """A busy program gets a tenth of a CPU, and the kernel has held it back."""
    (host,) = local.acquire(ONE.with_needs(cores=0.1))
    begun = time.monotonic()
    process = host.spawn([sys.executable, "-c", BUSY], log=f"{host.directory}/log", directory=host.directory)

    def problems():
        held = [line for line in setting(host, "cpu.stat").splitlines() if line.startswith("nr_throttled ")]
        return [] if held and int(held[0].split()[1]) >= 5 else ["not held back yet"]

    wait.until(problems, "the program", seconds=20)
    used = psutil.Process(process.pid).cpu_times()
    assert used.user + used.system < 0.3 * (time.monotonic() - begun)


def test_a_server_that_needs_more_memory_names_the_limit(local, mariadb):
    """The kernel killed it; the error says why instead of leaving a riddle."""
    with pytest.raises(NodeDied) as caught:
        bring_up(ONE.with_needs(memory="48M"), mariadb, local, options={})

    words = "node node1 was ended by SIGKILL: the host's memory limit of 48 MiB was reached; the last lines of its "
    assert str(caught.value).startswith(words)
    assert not [place for group in groups_of(local.run_id) for place in group.glob("*/cgroup.procs")]


def test_a_limited_server_flushes_less_often(local, mariadb):
    """At 50 writes a second its commits are a third of an unlimited one's, or fewer; the log is flushed at each."""
    done = {}
    for spec, duration in ((ONE, 0.4), (ONE.with_needs(iops=50), 1.0)):  # seconds
        cluster = bring_up(spec, mariadb, local, options={"innodb_flush_log_at_trx_commit": "1"})
        node = cluster.nodes[0]
        node.query("CREATE DATABASE ours")
        node.query("CREATE TABLE ours.t (id INT AUTO_INCREMENT PRIMARY KEY)")
        before, begun = int(node.status("Innodb_data_fsyncs")["innodb_data_fsyncs"]), time.monotonic()
        while time.monotonic() - begun < duration:
            node.query("INSERT INTO ours.t VALUES ()")
        seconds = time.monotonic() - begun
        done[spec] = (int(node.status("Innodb_data_fsyncs")["innodb_data_fsyncs"]) - before) / seconds
        cluster.close()
        local.give_back(cluster.hosts)

    unlimited, limited = done.values()
    if unlimited < 165:
        pytest.skip(f"this disk makes {unlimited:.0f} fsyncs a second by itself: no room for a factor of 3")
    assert 0 < limited < unlimited / 3
    assert limited <= 55


@pytest.mark.parametrize("supervised", [True, False], ids=["owner", "owner and supervisor"])
def test_no_group_outlives_a_killed_owner(data, supervised):
    """The supervisor removes them; when that was killed too, the next run does."""
    if "cores" not in cgroups.find(runs.directory()).offers:
        pytest.skip(f"no cores: {cgroups.find(runs.directory()).missing['cores']}")
    with subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE, text=True) as owner:
        place, program, supervisor = owner.stdout.readline().split()
        group = Path(place)
        assert int(program) in cgroups.members(group)
        if not supervised:
            os.kill(int(supervisor), signal.SIGKILL)
        owner.kill()
    if not supervised:
        wait.until(lambda: ["runs"] if psutil.pid_exists(int(program)) else [], "the program", seconds=10)
        runs.reap()  # unless another run of this machine has been quicker

    wait.until(lambda: [str(group)] if group.exists() else [], "the end of the group", seconds=10)
    assert not psutil.pid_exists(int(program))


def test_reaping_leaves_the_groups_of_living_runs(local):
    """Whether they hold a program or not yet."""
    (host,) = local.acquire(ONE.with_needs(cores=1))

    runs.reap()

    assert all(place.is_dir() for place in host.group.paths)


def test_a_process_that_joins_a_group_while_it_is_reaped_lives(local, monkeypatch):
    """The group was empty when it was looked at; the kernel removes no group with a process."""
    place = next(iter(cgroups.find(local.directory.parent).trees.values())).path
    group = place / f"dbcluster-{RUN_ID}-{2**22 + 3}-1"
    with subprocess.Popen(["sleep", "600"]) as process:
        try:
            groups.fill(group, process.pid)
            monkeypatch.setattr(cgroups, "members", lambda path: [])
            cgroups.reap()
            monkeypatch.undo()
            assert (process.poll(), group.exists()) == (None, True)
        finally:
            process.kill()
            process.wait(10)
            cgroups.remove(group)


def test_a_group_whose_runs_directory_is_gone_is_reaped(local):
    """It is found by its name in the trees; one that holds a program belongs to somebody."""
    place = next(iter(cgroups.find(local.directory.parent).trees.values())).path
    names = [f"dbcluster-{RUN_ID}-{2**22 + number}-1" for number in (1, 2)]
    empty, full = (place / name for name in names)
    with subprocess.Popen(["sleep", "600"]) as process:
        try:
            groups.fill(full, process.pid)
            empty.mkdir(exist_ok=True)
            cgroups.reap()
            assert (empty.exists(), full.exists()) == (False, True)
        finally:
            cgroups.remove(full)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)
            ended = process.poll()  # None if the removal did not end it
            process.kill()
    assert ended == -signal.SIGKILL
    assert not full.exists()


def test_a_kept_run_keeps_its_limits_until_it_is_ended(data):
    """Its programs outlive us in their group; `dbcluster down` removes both."""
    local = LocalProvisioner(keep=True)
    if "cores" not in local.offers:
        pytest.skip(f"no cores: {local.missing['cores']}")
    (host,) = local.acquire(ONE.with_needs(cores=1))
    process = host.spawn(["sleep", "600"], log=f"{host.directory}/log", directory=host.directory)
    local.leave()
    local.close()

    runs.reap()
    assert cgroups.members(host.group.paths[0]) == [process.pid]
    (run,) = runs.list_runs()
    runs.end(run)
    assert not any(place.parent.exists() for place in host.group.paths)
    assert not psutil.pid_exists(process.pid) or psutil.Process(process.pid).status() == psutil.STATUS_ZOMBIE


def test_ending_a_run_removes_the_groups_that_it_wrote_down(tmp_path):
    """Wherever in the trees they are; those of a run without limits are none."""
    directory, tree = tmp_path / RUN_ID, tmp_path / "tree" / f"dbcluster-{RUN_ID}-1-1"
    directory.mkdir()
    tree.mkdir(parents=True)
    group = cgroups.Group((tree / "one", tree / "two"), HostNeeds())

    assert cgroups.recorded_groups(directory) == []
    assert cgroups.record(directory, group) == [tree]
    assert cgroups.record(directory, group) == []
    runs.end(runs.Run(directory, 0, 0.0, kept=False))
    assert not tree.exists()
