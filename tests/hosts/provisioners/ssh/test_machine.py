"""What a machine elsewhere says of itself, and how trees of this machine are told apart there."""

from __future__ import annotations

import os
import subprocess
import time
import types

import pytest

from pytest_dbcluster.errors import ProvisionError, Unsupported
from pytest_dbcluster.hosts.provisioners.ssh import remote_programs
from pytest_dbcluster.hosts.provisioners.ssh.machine import Facts, Machine, identity
from pytest_dbcluster.releases import shims
from tests.support.facts import missing

HERE = os.uname().machine
SAID = {
    "user": "0", "architecture": HERE, "system": "Linux", "kernel": "6.1.0-18-amd64", "name": "db1", "cpus": "8",
    "cpu": "AMD EPYC 7763 64-Core Processor", "memory": "16384", "ephemeral": "32768\t60999", "clock": "1000.5",
    "clocksource": "kvm-clock", "disk": "ext2/ext3 on /dev/vda1", "root": "/var/tmp/pytest-dbcluster-0",
    "zstd": "/usr/bin/zstd", "tar": "tar (GNU tar) 1.35", "address": "10.0.0.9 51234 10.0.0.1 22",
}  # fmt: skip


def text(**other):
    """What it says, with some of it as given."""
    return "".join(f"{name} {value}\n" for name, value in {**SAID, **other}.items())


def test_the_facts_of_a_machine_are_what_it_said():
    """Memory in bytes, its clock against ours, and the address at which ssh reached it."""
    assert Facts.read(text(), "db1", 998.0) == Facts(
        name="db1", user=0, architecture=HERE, kernel="6.1.0-18-amd64", cpu="AMD EPYC 7763 64-Core Processor", cpus=8,
        memory=16384 * 1024, disk="ext2/ext3 on /dev/vda1", clocksource="kvm-clock", clock_ahead=2.5, zstd=True,
        sparse=True, root="/var/tmp/pytest-dbcluster-0", address="10.0.0.1", ephemeral=(32768, 60999),
    )  # fmt: skip


def test_a_machine_that_ssh_reached_by_ipv6_is_refused():
    """Ports and addresses of clusters are those of IPv4. Another address helps."""
    session = types.SimpleNamespace(target="db1", ask=lambda _: text(address="fe80::2 51234 2001:db8::1 22"))
    with pytest.raises(Unsupported) as caught:
        Machine(session)

    assert missing(str(caught.value), "db1", "2001:db8::1", "AddressFamily inet", "IPV4_ADDRESS") == []
    assert Machine(session, "10.0.0.9").facts.address == "10.0.0.9"


def test_what_a_machine_does_not_know_is_empty():
    """A CPU without a model name (ARM), no clock source (a container), no zstd, a tar without holes."""
    facts = Facts.read(text(cpu="", clocksource="", zstd="", tar="tar (busybox) 1.35.0"), "db1", 1000.5)

    assert (facts.cpu, facts.clocksource, facts.zstd, facts.clock_ahead) == ("", "", False, 0.0)
    assert not facts.sparse


@pytest.mark.parametrize("clock", ["1000", "1000.", "1000.%N", "1000.N"])
def test_a_clock_may_know_whole_seconds_alone(clock):
    """The program `date` of busybox prints what it does not know."""
    assert Facts.read(text(clock=clock), "db1", 998.0).clock_ahead == 2.0


@pytest.mark.parametrize(
    ("said", "what"),
    [
        ({"architecture": "riscv64"}, "Linux on riscv64"),
        ({"system": "Darwin", "architecture": "arm64"}, "Darwin on arm64"),
        ({"system": "FreeBSD", "architecture": HERE}, f"FreeBSD on {HERE}"),
    ],
)
def test_a_machine_of_another_kind_is_refused_by_name(said, what):
    """Before a program is sent to it."""
    with pytest.raises(Unsupported) as caught:
        Facts.read(text(**said), "root@db1", 0.0)
    assert missing(caught.value, f"the machine root@db1 is {what};", "releases", f": Linux on {HERE}") == []


def test_a_machine_that_says_no_address_is_named():
    """Its peers could not reach it."""
    with pytest.raises(ProvisionError) as caught:
        Facts.read(text(address=""), "db1", 0.0)
    assert missing(caught.value, "the machine db1 does not report", "address", "(SSH_CONNECTION)") == []


@pytest.mark.parametrize("lacking", ["memory", "cpus", "root", "ephemeral", "user", "clock", "kernel"])
def test_a_machine_that_lacks_a_fact_is_named_with_it(lacking):
    """One without /proc, or without a common program."""
    for said in (text(**{lacking: ""}), "".join(f"{name} {SAID[name]}\n" for name in SAID if name != lacking)):
        with pytest.raises(ProvisionError) as caught:
            Facts.read(said, "db1", 0.0)
        assert f"the machine db1 does not report its {lacking}: " in str(caught.value)


def test_this_machine_says_all_of_it(tmp_path):
    """The program that machines run, in a directory of a host."""
    place = tmp_path / "host"
    place.mkdir()
    variables = {**os.environ, "SSH_CONNECTION": "10.0.0.9 51234 10.0.0.1 22"}
    done = subprocess.run(
        ["sh", "-c", remote_programs.FACTS], cwd=place, env=variables, capture_output=True, text=True, check=True
    )

    facts = Facts.read(done.stdout, "here", time.time())

    assert (facts.architecture, facts.kernel, facts.name) == (HERE, os.uname().release, os.uname().nodename)
    assert facts.root == str(tmp_path)
    assert facts.user == os.geteuid()
    assert facts.cpus >= 1
    assert facts.memory > 2**20
    assert " on " in facts.disk
    assert abs(facts.clock_ahead) < 60
    assert shims.machine() == facts.architecture


@pytest.fixture
def tree(tmp_path):
    """A tree of programs."""
    made = tmp_path / "some release"
    (made / "bin/deep").mkdir(parents=True)
    (made / "bin/server").write_text("#!/bin/sh\n")
    (made / "bin/deep/file").write_text("words")
    (made / "lib").symlink_to("bin")
    return made


def test_a_tree_has_one_name_as_long_as_it_stays(tree):
    """A plain one, which begins as its own."""
    assert identity(tree) == identity(tree)
    assert identity(tree).startswith("some-release-")


def older(path):
    """Give a file a time of change of its own."""
    os.utime(path, (10**9, 10**9))


CHANGES = {
    "another file": lambda tree: (tree / "bin/deep/new").write_text("x"),
    "an empty file": lambda tree: (tree / "bin/deep/empty").write_text(""),
    "other content": lambda tree: (tree / "bin/deep/file").write_text("other words"),
    "as much content, later": lambda tree: older(tree / "bin/deep/file"),
    "a file less": lambda tree: (tree / "bin/deep/file").unlink(),
    "another name": lambda tree: (tree / "bin/deep/file").rename(tree / "bin/deep/other"),
    "permission to run": lambda tree: (tree / "bin/server").chmod(0o755),
    "another link": lambda tree: ((tree / "lib").unlink(), (tree / "lib").symlink_to("bix")),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_tree_that_has_changed_has_another_name(tree, change):
    """Deep inside as well: the machine would go on with the old programs."""
    before = identity(tree)
    CHANGES[change](tree)

    assert identity(tree) != before


def test_a_tree_at_another_place_has_another_name(tree, tmp_path):
    """Its programs name their place."""
    before = identity(tree)
    moved = tree.rename(tmp_path / "moved")
    moved.rename(tmp_path / "below")

    assert identity(tmp_path / "below").removeprefix("below") != before.removeprefix("some-release")


def test_what_python_compiles_changes_no_name(tree):
    """It appears while programs run."""
    before = identity(tree)
    (tree / "bin/__pycache__").mkdir()
    (tree / "bin/__pycache__/server.pyc").write_bytes(b"compiled")

    assert identity(tree) == before


def test_a_file_alone_is_a_tree(tree):
    """With the same rules."""
    file = tree / "bin/server"
    before = identity(file)
    file.write_text("#!/bin/sh\ntrue\n")

    assert identity(file) != before
    assert identity(file).startswith("server-")
