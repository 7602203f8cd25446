"""What the doctor finds, and what it says that each finding rules out."""

from __future__ import annotations

import contextlib
import dataclasses
import resource
import types
from pathlib import Path

import pytest

from pytest_dbcluster.cli import main
from pytest_dbcluster.cli.doctor import findings as doctor
from pytest_dbcluster.cli.doctor.findings import GIB, Finding
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.hosts.provisioners.container import engine, images
from pytest_dbcluster.hosts.provisioners.ssh.checkup import Checkup
from pytest_dbcluster.hosts.provisioners.ssh.machine import Facts
from pytest_dbcluster.system import block_devices, probes
from pytest_dbcluster.system.cgroups import POWERS, Limits, Tree
from pytest_dbcluster.system.probes import CpuReading
from tests.support import engines, stand_ins
from tests.support.facts import missing
from tests.support.stand_ins import StandIns

MOUNTS = """\
22 1 254:0 / / rw - ext4 /dev/vda rw
23 22 0:41 / /tmp rw - tmpfs tmpfs rw
24 23 254:16 / /tmp/real\\040disk rw - xfs /dev/vdb rw
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """Everything about this machine."""
    return doctor.findings(tmp_path_factory.mktemp("data"))


def test_every_subject_is_answered(found):
    """Each property of the machine that matters for measurements has one line with a value."""
    names = [each.name for each in found]

    assert names == [
        "cores", "memory", "kernel", "data directory", "fsync", "containers", "netem", "guests", "perf",
        "host limits", "ip_local_port_range", "listening", "open files", "Python", "control driver", "packages", "load",
    ]  # fmt: skip
    assert all(each.value for each in found)


@pytest.mark.parametrize(("busy", "ruled_out"), [(0.1, False), (3.0, True)])
def test_a_busy_machine_is_named(monkeypatch, busy, ruled_out):
    """With the load, and the cores that others took of those that may be used."""
    monkeypatch.setattr(probes, "usable_cores", lambda: 2.0)
    monkeypatch.setattr(CpuReading, "now", classmethod(lambda cls: CpuReading(12.0, busy, 0.0)))
    monkeypatch.setattr(doctor, "LOOK_SECONDS", 0.0)
    finding = doctor.load(CpuReading(10.0, 0.0, 0.0))

    assert finding.value.endswith(f"; other programs took {busy / 2:.1f} of 2 cores")
    assert bool(finding.rules_out) == ruled_out


def test_it_says_who_listens_beyond_this_machine():
    """XCom of Group Replication cannot listen on one address; the finding names it, and whom it lets in."""
    finding = doctor.listeners()

    assert (finding.name, finding.rules_out) == ("listening", "")
    assert "only on 127.0.0.1" in finding.value
    assert "Group Replication (XCom) listens on every address" in finding.value


def test_the_data_directory_is_made(tmp_path):
    """A data directory that does not exist yet is created, so that its own disk is measured."""
    doctor.findings(tmp_path / "cache" / "runs")

    assert (tmp_path / "cache" / "runs").is_dir()
    assert not list((tmp_path / "cache" / "runs").iterdir())


def test_a_data_directory_that_cannot_be_made_is_said(tmp_path):
    """A data directory that cannot be created raises ConfigError that names it and the variable to set."""
    (tmp_path / "file").touch()

    with pytest.raises(
        ConfigError, match=r"^cannot create the data directory .*/file/runs: Not a directory; .*DATA_DIR"
    ):
        doctor.findings(tmp_path / "file" / "runs")


def test_the_driver_is_pure_python(found):
    """The finding names the driver that carries the control connection."""
    assert "pure Python" in next(each.value for each in found if each.name == "control driver")


def test_an_fsync_takes_time(tmp_path):
    """The time of an fsync is above 0."""
    assert probes.fsync_seconds(tmp_path) > 0


def test_an_fsync_is_measured_once(tmp_path, monkeypatch):
    """The second call returns the cached result of the first one."""
    first = probes.fsync_seconds(tmp_path)
    monkeypatch.setattr(probes.os, "fdatasync", lambda file: pytest.fail("measured again"))

    assert probes.fsync_seconds(tmp_path) == first


def test_measuring_an_fsync_leaves_no_file(tmp_path):
    """The file is gone when its time is known."""
    probes.fsync_seconds(str(tmp_path))

    assert not list(tmp_path.iterdir())


def test_a_directory_that_is_not_there_is_named(tmp_path):
    """The error says which directory could not be measured, and why."""
    with pytest.raises(ConfigError, match=r"cannot measure an fsync in .*/missing: No such file or directory"):
        probes.fsync_seconds(tmp_path / "missing")


def test_a_fast_fsync_rules_out_claims_about_flushing():
    """An fsync below 50 us did not reach a disk, so claims about flushing are inconclusive."""
    assert "claims about flushing are inconclusive" in doctor.fsync(20e-6, Path("/x")).rules_out
    slow = doctor.fsync(700e-6, Path("/x"))
    assert (slow.name, slow.rules_out) == ("fsync", "")
    assert missing(slow.value, "700 us", "4 KiB", "median", "/x") == []


@pytest.mark.parametrize("count", [2, 64])
def test_shared_cores_rule_out_claims_about_scaling(count, tmp_path, monkeypatch):
    """Three nodes share the cores that a single server may use alone; the finding has their number."""
    monkeypatch.setattr(probes, "CGROUP", tmp_path)
    rules_out = f"nodes share {count} cores: a claim about node scaling means nothing here"

    assert doctor.cores(count) == Finding("cores", str(count), rules_out)


def test_a_quota_counts_as_cores(tmp_path, monkeypatch):
    """A cgroup limit of 1.5 cores counts, whatever the number of CPUs."""
    (tmp_path / "cpu.max").write_text("150000 100000\n")
    monkeypatch.setattr(probes, "CGROUP", tmp_path)

    assert missing(doctor.cores(64).value, "64", "limited to 1.5", "cgroup") == []
    assert "1.5 cores" in doctor.cores(64).rules_out


def test_no_quota_limits_nothing(tmp_path, monkeypatch):
    """The cgroup says "max" where it sets none."""
    (tmp_path / "cpu.max").write_text("max 100000\n")
    monkeypatch.setattr(probes, "CGROUP", tmp_path)

    assert (doctor.cores(64).value, probes.usable_cores(64)) == ("64", 64.0)


def test_little_memory_is_named(tmp_path, monkeypatch):
    """A cgroup limit below the memory of the machine counts."""
    (tmp_path / "memory.max").write_text(f"{2 * GIB}\n")
    monkeypatch.setattr(probes, "CGROUP", tmp_path)
    finding = doctor.memory(64 * GIB)

    assert missing(finding.value, "64.0 GiB", "limited to 2.0 GiB", "cgroup") == []
    assert "side by side" in finding.rules_out


@pytest.mark.parametrize(
    ("directory", "kind"), [("/home/x", "ext4"), ("/tmp/x", "tmpfs"), ("/tmp/real disk/x", "xfs"), ("/", "ext4")]
)
def test_the_deepest_mount_holds_a_directory(directory, kind):
    """The file system is that of the longest mount point above it, blanks in its name included."""
    assert block_devices.file_system(Path(directory), block_devices.mounts(MOUNTS)) == kind


def test_an_unknown_file_system_is_unknown(tmp_path, monkeypatch):
    """A kernel without a list of mounts is no error."""
    assert block_devices.file_system(Path("/x"), []) == "unknown"
    monkeypatch.setattr(block_devices, "MOUNTS", tmp_path / "missing")
    assert block_devices.file_system(Path("/x")) == "unknown"


def test_tmpfs_rules_out_claims_about_flushing(tmp_path, monkeypatch):
    """On a file system in memory, the finding says why flushing cannot be measured, and how to choose a disk."""
    monkeypatch.setattr(block_devices, "file_system", lambda directory: "tmpfs")
    rules_out = doctor.data_directory(tmp_path).rules_out

    assert "InnoDB makes no fsync" in rules_out
    assert "DBCLUSTER_DATA_DIR" in rules_out


def test_a_container_engine_is_named_with_its_images():
    """The finding has the engine's name, version and socket, and our images in it."""
    if reason := engines.missing():
        pytest.skip(reason)
    with contextlib.closing(engine.connect()) as reached:
        named = f"{reached.name} {reached.version} on {reached.socket}"
        before = {image.tag for image in images.list_images(reached) if image.tag}
        finding = doctor.containers()
        made = [image.tag for image in images.list_images(reached) if image.tag in before]

    assert missing(finding.value, named, *(made or ["images: none of ours"])) == []
    assert bool(finding.rules_out) is not bool(made)


def test_without_a_container_engine_its_places_are_named(tmp_path, monkeypatch):
    """Containers are ruled out when no engine listens on a known socket."""
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    monkeypatch.setattr(engine, "socket_paths", lambda: [f"{tmp_path}/one", f"{tmp_path}/two"])
    finding = doctor.containers()

    assert missing(finding.value, "no engine", f"{tmp_path}/one, {tmp_path}/two") == []
    assert missing(finding.rules_out, "--db-provisioner container", "cannot run") == []


def test_an_engine_that_does_not_answer_says_why(tmp_path, monkeypatch):
    """A missing daemon, one without permission and one on another machine are reported in the engine's own words."""
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nowhere")
    assert f"{tmp_path}/nowhere does not exist" in doctor.containers().value

    monkeypatch.setenv("DOCKER_HOST", "tcp://10.0.0.1:2375")
    finding = doctor.containers()
    assert "is an engine on another machine" in finding.value
    assert missing(finding.rules_out, "--db-provisioner container", "cannot run") == []


def test_netem_is_unknown_without_a_network_namespace(monkeypatch):
    """The reason says what forbids one."""
    monkeypatch.setattr(doctor.local_paths, "why_not", lambda: "something forbids it")

    finding = doctor.netem()

    assert missing(finding.value, "unknown", "no network namespace") == []
    assert missing(finding.rules_out, "no RTT claims", "something forbids it") == []


@pytest.mark.parametrize(
    ("reason", "facts"), [("", ("yes",)), ("unknown qdisc", ("no (unknown qdisc)", "a guest delays packets"))]
)
def test_netem_is_what_the_kernel_says(monkeypatch, reason, facts):
    """Without it nothing is ruled out."""
    monkeypatch.setattr(doctor.local_paths, "why_not", lambda: "")
    monkeypatch.setattr(doctor.kernel_router, "why_not", lambda: reason)

    finding = doctor.netem()
    assert (finding.name, finding.rules_out) == ("netem", "")
    assert missing(finding.value, *facts) == []


@pytest.fixture
def tried(tmp_path, monkeypatch):
    """``tried(body, setting, user)``: what is found of a perf with this body, where the kernel has this setting."""

    def found(body, setting="1", user=1000):
        for name, text in (("perf", f"#!/bin/sh\n{body}\n"), ("paranoid", f"{setting}\n")):
            (tmp_path / name).write_text(text)
        (tmp_path / "perf").chmod(0o755)
        monkeypatch.setattr(doctor.cpu_stacks, "PERF", str(tmp_path / "perf"))
        monkeypatch.setattr(doctor.cpu_stacks, "PERMISSION", str(tmp_path / "paranoid"))
        monkeypatch.setattr(doctor.os, "geteuid", lambda: user)
        return doctor.perf()

    return found


@pytest.mark.parametrize(
    ("setting", "user", "facts"),
    [("2", 1000, ("is 2", "sudo sysctl kernel.perf_event_paranoid=1")), ("1", 1000, ()), ("4", 0, ())],
)
def test_perf_may_sample_where_the_kernel_permits_it(tried, setting, user, facts):
    """Root always may; for others the setting decides, and its command is given."""
    finding = tried("exit 0", setting, user)

    assert (finding.value, missing(finding.rules_out, *facts)) == ("no" if facts else "yes", [])


def test_a_perf_that_fails_has_its_own_reason(tried):
    """It is tried, because a wrapper of that name may be there without the program."""
    finding = tried("echo 'WARNING: perf not found for kernel 6.8' >&2; echo 'install linux-tools-6.8' >&2; exit 2")

    assert (finding.value, missing(finding.rules_out, "--db-why", "perf: install linux-tools-6.8")) == ("no", [])


def test_a_missing_perf_names_its_package(monkeypatch):
    """It rules out only the part of ``--db-why`` that needs it."""
    monkeypatch.setattr(doctor.cpu_stacks, "PERF", "no-such-perf")
    finding = doctor.perf()

    assert (finding.value, missing(finding.rules_out, "--db-why", "linux-perf")) == ("no", [])


def test_guests_without_a_kernel_name_the_command_that_fetches_it(tmp_path, monkeypatch):
    """The first run in guests fetches it too, so nothing is ruled out; what else they need is shown."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(doctor.network, "why_not", lambda: "")
    shown = doctor.guests()
    monkeypatch.setattr(doctor.network, "why_not", lambda: "guests need something")

    ruled_out = doctor.guests()
    facts = ("no kernel in the cache", "first run in guests fetches it", "`dbcluster fetch vm`")
    assert missing(shown.value, *facts, ", started ") == []
    assert shown.rules_out == ""
    assert shown.value.startswith(ruled_out.value)
    assert missing(ruled_out.value, *facts) == []
    monkeypatch.setenv("PATH", "/nonexistent")
    assert missing(doctor.guests().value, "no kernel in the cache; `dbcluster fetch vm` needs Debian or Ubuntu") == []
    assert "started" not in ruled_out.value
    assert missing(ruled_out.rules_out, "--db-provisioner vm", "cannot run", "guests need something") == []


@pytest.mark.parametrize(("root", "mode"), [(True, "by root"), (False, "without root, in a user namespace")])
def test_guests_are_shown_with_kernel_mode_and_memory(monkeypatch, tmp_path, root, mode):
    """What they lack is said: a network namespace, or a directory in which their memory fits."""
    system = types.SimpleNamespace(version="7.2.7")
    monkeypatch.setattr(doctor.fetched, "lookup", lambda product, version: system)
    monkeypatch.setattr(doctor.network, "why_not", lambda: "")
    monkeypatch.setattr(doctor.user_namespace, "root", lambda: root)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    shown = doctor.guests()
    monkeypatch.setattr(doctor.network, "why_not", lambda: "guests need something")

    assert shown.value.startswith(f"user-mode Linux 7.2.7, started {mode}, memory in {tmp_path} (")
    ruled_out = doctor.guests()
    assert ruled_out.value == "user-mode Linux 7.2.7"
    assert missing(ruled_out.rules_out, "--db-provisioner vm", "cannot run", "guests need something") == []


def test_guests_without_a_directory_for_their_memory_name_the_variable(monkeypatch, tmp_path):
    """It is no error of the doctor."""
    monkeypatch.setattr(doctor.network, "why_not", lambda: "")
    monkeypatch.setenv("TMPDIR", str(tmp_path / "none"))

    memory = (f"{tmp_path}/none: No such file or directory", "another directory with TMPDIR")
    assert missing(doctor.guests().rules_out, "--db-provisioner vm", "cannot run", *memory) == []


def test_what_hosts_may_be_limited_to_is_listed():
    """Each missing limit has its reason; without iops, slower disks cannot be simulated."""
    trees = {power: Tree(Path("/sys/fs/cgroup"), 2, frozenset(POWERS)) for power in POWERS}

    every = doctor.limits(Limits(trees, {}, "254:0"))
    one = doctor.limits(Limits({"cores": trees["cores"]}, {"memory": "not here", "iops": "tmpfs"}))

    assert (every.name, every.rules_out) == ("host limits", "")
    assert missing(every.value, "cores, memory, iops", "control groups, version 2") == []
    assert missing(one.value, "cores", "control groups, version 2") == []
    assert missing(one.value, "memory", "iops") == ["memory", "iops"]
    reasons = ("no memory=: not here", "no iops=: tmpfs", "iops=3000", "--db-storage gp3", "cannot be simulated")
    assert missing(one.rules_out, *reasons) == []
    assert doctor.limits(Limits({}, dict.fromkeys(POWERS, "no"))).value == "none"


def test_a_kernel_that_takes_all_ports_leaves_none():
    """The finding names the kernel setting."""
    assert "net.ipv4.ip_local_port_range" in doctor.port_range((1024, 65535)).rules_out
    assert doctor.port_range((32768, 60999)).rules_out == ""


def test_a_low_limit_of_open_files_is_named():
    """A proxy needs two open files for each connection."""
    assert missing(doctor.open_files(1024, 1024).rules_out, "a proxy", "fewer than 2048 connections") == []
    assert doctor.open_files(1024, resource.RLIM_INFINITY) == Finding("open files", "1024 to unlimited")


def test_a_host_without_apt_fetches_nothing(monkeypatch):
    """The finding names a missing program, a tarball and an image."""
    monkeypatch.setenv("PATH", "/nonexistent")

    assert doctor.packages().value == "this system has no apt-get"
    facts = ("--db-release NAME:VERSION=TARBALL", "--db-image NAME:VERSION=IMAGE")
    assert missing(doctor.packages().rules_out, *facts) == []


def test_the_text_puts_consequences_under_findings():
    """Each finding has one line, and a second line marked ``!`` for what it rules out."""
    shown = doctor.text([Finding("cores", "2", "no scaling"), Finding("apt", "yes")])

    assert shown == "cores  2\n       ! no scaling\napt    yes"


def test_no_finding_is_no_text():
    """Without findings the text is empty."""
    assert doctor.text([]) == ""


FACTS = Facts(
    name="db1", user=0, architecture="x86_64", kernel="6.1", cpu="EPYC", cpus=2, memory=4 * GIB,
    disk="ext2/ext3 on /dev/vda",
    clocksource="tsc", clock_ahead=0.2, zstd=True, sparse=True, root="/var/tmp/pytest-dbcluster-0", address="10.0.0.1",
    ephemeral=(32768, 60999),
)  # fmt: skip
GOOD = Checkup(
    "root@db1", key="ssh-ed25519 SHA256:x", facts=FACTS, namespaces=True, flush=0.001, free=10 * GIB, available=3 * GIB
)


def found_of(checkup):
    """The value and what it rules out, by name."""
    return {one.name: (one.value, one.rules_out) for one in doctor.machine_findings(checkup)}


def test_a_machine_with_everything_rules_nothing_out():
    """Each subject of a machine elsewhere has a line, the machine's name first."""
    found = doctor.machine_findings(GOOD)

    assert [one.name for one in found] == [
        "machine", "host key", "cores", "memory", "data directory", "fsync", "programs", "forwarding", "zstd", "clock",
    ]  # fmt: skip
    assert found[0].value == "root@db1: db1, Linux 6.1 x86_64"
    assert {one.rules_out for one in found} == {""}
    assert found_of(GOOD)["clock"][0] == "0.2 s ahead of ours"


@pytest.mark.parametrize(
    ("changes", "name", "said"),
    [
        ({"flush": 1e-6}, "fsync", "claims about flushing are inconclusive"),
        ({"free": GIB}, "data directory", "choose another directory with --db-host-directory DIR"),
        (
            {"forwards": "refused"},
            "forwarding",
            "servers are unreachable; the sshd of the machine has to permit",
        ),
        ({"offers": "refused"}, "forwarding", "no proxy with a health check: refused"),
        (
            {"facts": dataclasses.replace(FACTS, disk="tmpfs on tmpfs")},
            "data directory",
            "on tmpfs InnoDB makes no",
        ),
        ({"facts": dataclasses.replace(FACTS, clock_ahead=-3600.0)}, "clock", "times in its logs differ from ours"),
    ],
)
def test_what_a_machine_lacks_rules_something_out(changes, name, said):
    """The finding says what, and what to change."""
    assert said in found_of(dataclasses.replace(GOOD, **changes))[name][1]


def test_what_only_takes_longer_rules_nothing_out():
    """No namespaces, no zstd, and one session on a connection."""
    facts = dataclasses.replace(FACTS, zstd=False)
    found = found_of(dataclasses.replace(GOOD, facts=facts, namespaces=False, one_session=True))

    assert "we use a mark" in found["programs"][0]
    assert found["zstd"][0].startswith("no: ")
    assert "MaxSessions 1" in found["forwarding"][0]
    assert {rules_out for _, rules_out in found.values()} == {""}


def test_a_machine_that_cannot_be_tried_has_one_line():
    """It says why."""
    assert found_of(Checkup("m1", problem="no key")) == {"machine": ("m1: unusable", "no key")}
    assert found_of(Checkup("m1", busy=True))["machine"][0] == "m1: another run uses it"


def test_the_doctor_tries_machines(tmp_path, data, capsys):
    """Each by a session of its own, of which nothing stays; one with a strange key is not used, and the code is 1."""
    if reason := stand_ins.missing():
        pytest.skip(reason)
    with StandIns(tmp_path / "client", 2) as hosts:
        hosts["host1"].configure("AllowTcpForwarding no", "MaxSessions 1")
        hosts["host2"].change_host_key()
        words = ["doctor", "--provisioner", "ssh", "--db-host", "host1", "--db-host", "host2"]

        assert main.main([*words, "--db-ssh-config", str(hosts.config)]) == 1
        told = capsys.readouterr().out
        assert f"known, ssh-ed25519 {hosts['host1'].fingerprint}" in told
        assert "! servers are unreachable; the sshd of the machine has to permit AllowTcpForwarding" in told
        assert "host2: unusable" in told
        assert "has another host key than the known one, so we sent nothing to it. " in told
        assert f"It shows ssh-ed25519 {hosts['host2'].fingerprint}" in told
        assert not list((hosts["host1"].root / "var/tmp/pytest-dbcluster-0").iterdir())
