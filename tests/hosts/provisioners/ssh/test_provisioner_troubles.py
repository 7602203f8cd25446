"""Machines elsewhere in trouble: links, keys, disks, shells and clocks that are not as they should be.

The machines are stand-in hosts. The clock of one is not really wrong, because the kernel has one clock of the day for
all namespaces: their program ``date`` is.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.errors import ProvisionError, Unsupported
from pytest_dbcluster.hosts.provisioners.ssh import remote_programs
from pytest_dbcluster.hosts.provisioners.ssh.provisioner import SshProvisioner
from pytest_dbcluster.spec import ClusterSpec
from tests.support import stand_ins
from tests.support.stand_ins import PLAIN, StandIns

pytestmark = pytest.mark.remote

ROOT = Path(__file__).parents[4]
ONE, TWO = ClusterSpec("standalone"), ClusterSpec("galera", nodes=2)
CUT_SECONDS = 8
KNOWN_SECONDS = 30  # 20 s, and 10 s for a busy machine
ENDED_SECONDS = 60
SOON = 20.0
LARGE = 3_000_000  # bytes: more than goes over an agent's line
OWNER = """
import sys, time
from pathlib import Path
from pytest_dbcluster.hosts.provisioners.ssh.provisioner import SshProvisioner
from pytest_dbcluster.spec import ClusterSpec

made = SshProvisioner(machines=["host1", "host2"], config=Path(sys.argv[1]))
for host in made.acquire(ClusterSpec("galera", nodes=2)):
    host.spawn(["setsid", "sleep", "1000"], log=f"{host.directory}/log", directory=host.directory)
print("begun", flush=True)
time.sleep(1000)
"""


@pytest.fixture(scope="module")
def hosts():
    """Two machines. Tests leave them as they were."""
    if reason := stand_ins.missing():
        pytest.skip(reason)
    with StandIns(count=2) as made:
        yield made


@pytest.fixture
def ssh(hosts):
    """``ssh("host1", base="/srv")``: a provisioner for these machines; ``told`` has what it said."""
    made = []

    def ssh(*machines, **how):
        provisioner = SshProvisioner(machines=machines, **{"config": hosts.config, **how})
        provisioner.told = []
        provisioner.progress = provisioner.told.append
        made.append(provisioner)
        return provisioner

    yield ssh
    for provisioner in made:
        provisioner.close()


@pytest.fixture
def does(hosts):
    """``does("host1", "mount ...", undo="umount ...")``: a command on a machine; what undoes it runs after the test."""
    undone = []

    def does(name, command, undo="true"):
        done = hosts[name].ssh(command)
        assert done.returncode == 0, done.stderr
        undone.append((name, undo))
        return done.stdout

    yield does
    for name, undo in reversed(undone):
        done = hosts[name].ssh(undo)
        assert done.returncode == 0, done.stderr


def test_a_machine_that_waits_for_another_gets_heartbeats(ssh, monkeypatch):
    """Otherwise its watchdog would end what runs there, if the other one connects slowly."""
    monkeypatch.setattr(remote_programs, "BEAT_SECONDS", 1)
    made, sessions, connect = ssh("host1", "host2"), [], SshProvisioner._session

    def session(self, target, what, **how):
        if target == "host2" and what == "machine":
            wait.until(lambda: [] if sessions and sessions[0].agent._beats > 2 else ["none"], "beats", seconds=60)
        sessions.append(connect(self, target, what, **how))
        return sessions[-1]

    monkeypatch.setattr(SshProvisioner, "_session", session)
    runs(*made.acquire(TWO))


def programs(host):
    """What runs on a machine beside its ssh server."""
    return [words[:200] for words in host.processes().values() if not words.startswith(("'sshd: ", "/usr/sbin/sshd"))]


def runs(*hosts):
    """Every host runs commands, and takes and gives files of any size."""
    content = os.urandom(LARGE)
    for host in hosts:
        assert host.run(["echo", "here"]).stdout == "here\n"
        for name, written in (("small", b"a\0b\n"), ("large", content)):
            host.push(written, f"{host.directory}/{name}")
            assert host.pull(f"{host.directory}/{name}") == written


def sleeping(host, seconds=1000):
    """Begin a program of a host that leaves its session."""
    host.spawn(["setsid", "sleep", str(seconds)], log=f"{host.directory}/log", directory=host.directory)


def test_a_link_that_is_cut_for_a_while_is_survived(hosts, ssh):
    """Programs go on, no host is lost, and the command that was sent meanwhile is done."""
    (host,) = ssh("host1").acquire(ONE)
    process = host.spawn(["sleep", "1000"], log=f"{host.directory}/log", directory=host.directory)
    answers = []
    asking = threading.Thread(target=lambda: answers.append(host.run(["echo", "late"]).stdout))

    hosts["host1"].cut()
    asking.start()
    time.sleep(CUT_SECONDS)
    assert answers == []
    hosts["host1"].heal()
    asking.join()

    assert (answers, process.status(), host.why_lost()) == (["late\n"], None, "")


def test_a_link_that_is_cut_for_good_ends_the_host_on_both_sides(hosts, ssh):
    """Here it is known within 20 s; there nothing is left after 60 s. The other machine is no worse for it."""
    provisioner = ssh("host1", "host2")
    first, second = provisioner.acquire(TWO)
    sleeping(first)

    try:
        hosts["host1"].cut()
        began = time.monotonic()
        wait.until(lambda: [] if first.why_lost() else ["it is not lost"], "the loss", seconds=KNOWN_SECONDS)
        with pytest.raises(ProvisionError, match="machine host1 cannot be reached any more"):
            first.run(["true"])
        left = ENDED_SECONDS - (time.monotonic() - began)
        wait.until(lambda: programs(hosts["host1"]), "the end of the programs there", seconds=left)
    finally:
        hosts["host1"].heal()

    runs(second)
    provisioner.close()
    runs(*ssh("host1").acquire(ONE))


def test_nothing_is_left_there_when_we_are_killed(hosts):
    """No program, and no directory of a host; the machines are free for the next run at once."""
    command = [sys.executable, "-c", OWNER, str(hosts.config)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as owner:
        try:
            assert owner.stdout.readline() == "begun\n"
            wait.until(
                lambda: [host.name for host in hosts if "sleep 1000" not in programs(host)], "sleep", seconds=SOON
            )
        finally:
            owner.kill()

    for host in hosts:
        wait.until(lambda host=host: programs(host), f"the end of the programs on {host.name}", seconds=SOON)
        wait.until(lambda host=host: directories(host), f"the end of the files on {host.name}", seconds=SOON)


def directories(host, user=0):
    """What lies in our directory of a machine, without the programs that serve later runs."""
    place = host.root / f"var/tmp/pytest-dbcluster-{user}"
    return [path.name for path in place.glob("*") if path.name != "programs"]


def test_a_changed_host_key_is_refused(hosts, ssh):
    """With the fingerprint of the key that the machine shows; nothing is sent to it."""
    host = hosts["host1"]
    host.change_host_key()
    try:
        with pytest.raises(ProvisionError) as caught:
            ssh("host1").acquire(ONE)
    finally:
        hosts.write_config()

    assert str(caught.value).startswith(
        "the machine host1 has another host key than the known one, so we sent nothing to it. It shows ssh-ed25519 "
        f"{host.fingerprint}. "
    )
    wait.until(lambda: programs(host), "the end of the programs of tests before", seconds=SOON)
    runs(*ssh("host1").acquire(ONE))


def test_an_unknown_host_key_is_refused(hosts, ssh, tmp_path):
    """With its fingerprint; with the file of keys that has it, the machine is used."""
    keys = tmp_path / "keys"
    keys.touch()
    with pytest.raises(ProvisionError) as caught:
        ssh("host1", keys=keys).acquire(ONE)

    assert str(caught.value).startswith(
        "the machine host1 has an unknown host key, so we sent nothing to it. It shows ssh-ed25519 "
        f"{hosts['host1'].fingerprint}. "
    )
    keys.write_text(f"{hosts['host1'].address} {hosts['host1'].host_key}\n")
    runs(*ssh("host1", keys=keys).acquire(ONE))


def test_a_full_disk_is_named(hosts, ssh, does):
    """A machine that has no room for a first file is refused; nothing is left there."""
    does("host1", "mkdir /srv/full && mount -t tmpfs -o size=64k none /srv/full", "umount /srv/full && rmdir /srv/full")
    does("host1", "dd if=/dev/zero of=/srv/full/fill bs=4k 2>/dev/null; true")

    with pytest.raises(
        ProvisionError, match=r"^host1: cannot (write to|make the directory) /srv/full/pytest-dbcluster-0"
    ):
        ssh("host1", base="/srv/full").acquire(ONE)
    wait.until(lambda: programs(hosts["host1"]), "the end of the programs there", seconds=SOON)


def test_programs_that_do_not_fit_are_not_left_there(ssh, does, tmp_path):
    """The error says what was sent where and how much room there is; half a tree is none."""
    does(
        "host1",
        "mkdir /srv/small && mount -t tmpfs -o size=2m none /srv/small",
        "umount -l /srv/small && rmdir /srv/small",
    )
    tree = tmp_path / "release"
    tree.mkdir()
    (tree / "program").write_bytes(os.urandom(LARGE))
    (host,) = ssh("host1", base="/srv/small").acquire(ONE)

    with pytest.raises(
        ProvisionError, match=r"cannot send .*/release to /srv/small/.* on host1: .*; disk of the machine: \d MiB free"
    ):
        host.bring(tree)

    assert does("host1", "find /srv/small -name 'release*'") == ""
    assert host.run(["echo", "usable"]).stdout == "usable\n"


def test_a_home_that_cannot_be_written_is_not_needed(hosts, ssh, does):
    """Nothing of ours lies in it."""
    does("host1", "mount --bind /root /root && mount -o remount,bind,ro /root", "umount -l /root")
    assert hosts["host1"].ssh("touch ~/file").returncode != 0

    runs(*ssh("host1").acquire(ONE))


def test_a_login_shell_that_prints_disturbs_nothing(hosts, ssh):
    """Neither commands nor files; on both of its outputs, and without the end of a line."""
    host = hosts["host1"]
    before = (host.root / "root/.bashrc").read_text()
    try:
        host.write("root/.bashrc", "echo welcome; echo be careful >&2; printf '%s' 'no end'\n")
        assert host.ssh("true").stdout == "welcome\nno end"
        (one,) = ssh("host1").acquire(ONE)
        runs(one)
    finally:
        host.write("root/.bashrc", before)


def test_one_session_a_connection_is_enough(hosts, ssh, tmp_path):
    """Where MaxSessions is 1, large files and programs take connections of their own."""
    host = hosts["host1"]
    (tmp_path / "program").write_text("#!/bin/sh\necho brought\n")
    (tmp_path / "program").chmod(0o755)
    try:
        host.configure("MaxSessions 1")
        (one,) = ssh("host1").acquire(ONE)
        runs(one)
        one.bring(tmp_path)
        assert one.run([str(tmp_path / "program")]).stdout == "brought\n"
    finally:
        host.configure()


def test_a_clock_that_is_an_hour_off_is_said(ssh, does):
    """The machine is used all the same: each round is timed by one clock."""
    script = '#!/bin/sh\\nexec /srv/date -d "1 hour" "$@"\\n'
    does("host1", "cp /usr/bin/date /srv/date", "rm /srv/date")
    does("host1", f"printf '{script}' >/srv/wrong && chmod 755 /srv/wrong", "rm /srv/wrong")
    does("host1", "mount --bind /srv/wrong /usr/bin/date", "umount /usr/bin/date")
    provisioner = ssh("host1", "host2")

    runs(*provisioner.acquire(TWO))

    (said,) = [line for line in provisioner.told if "clock" in line]
    assert said.startswith("the clock of host1 is 60 min ahead; each round is timed by one clock")


def test_an_agent_that_is_killed_takes_its_host_with_it(hosts, ssh):
    """Its programs end, its error is said, and the other host of the machine goes on."""
    provisioner = ssh("host1")
    (first,), (second,) = provisioner.acquire(ONE), provisioner.acquire(ONE)
    sleeping(first, 1001)
    sleeping(second, 1002)
    machine = hosts["host1"]
    (agent,) = [
        pid
        for pid, words in machine.processes().items()
        if words.endswith(" dbcluster-agent") and first_there(pid) and mark_of(pid) == Path(first.directory).name
    ]

    os.kill(agent, signal.SIGKILL)

    wait.until(lambda: [] if first.why_lost() else ["it is not lost"], "the loss", seconds=SOON)
    with pytest.raises(ProvisionError, match="machine host1 cannot be reached any more"):
        first.run(["true"])
    wait.until(lambda: [one for one in programs(machine) if one == "sleep 1001"], "the end of sleep", seconds=SOON)
    wait.until(
        lambda: [] if Path(first.directory).name not in directories(machine) else ["it is there"],
        "the end of the files",
        seconds=SOON,
    )
    assert "sleep 1002" in programs(machine)
    provisioner.give_back([first])
    runs(second, *provisioner.acquire(ONE))


def mark_of(pid):
    """The host to which an agent of a machine belongs."""
    variables = dict(one.split("=", 1) for one in Path(f"/proc/{pid}/environ").read_text().split("\0") if "=" in one)
    return variables["mark"]


def first_there(pid):
    """Whether a process is the first one of a PID namespace. One that has ended meanwhile is not."""
    try:
        state = Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return next(line.split()[-1] for line in state.splitlines() if line.startswith("NSpid:")) == "1"


def test_nothing_of_ours_stays_at_the_end(hosts, ssh, tmp_path):
    """Neither in /tmp nor in the home, nor a program; only programs that serve the next run lie in /var/tmp."""
    (tmp_path / "file").write_text("a")
    listing = "find /tmp /root /home /srv /run/user /dev/shm 2>/dev/null | sort"
    before = [host.ssh(listing).stdout for host in hosts]
    provisioner = ssh("host1", "host2")
    made = provisioner.acquire(TWO)
    for host in made:
        runs(host)
        sleeping(host)
        host.bring(tmp_path)
        host.copy_tree(str(tmp_path), f"{host.directory}/copy")

    provisioner.close()

    assert [host.ssh(listing).stdout for host in hosts] == before
    for host in hosts:
        assert (directories(host), programs(host)) == ([], [])


def test_an_ordinary_user_is_enough(hosts, ssh):
    """Without root and without sudo; nothing of the run stays."""
    provisioner = ssh(f"{PLAIN}@host1")
    (host,) = provisioner.acquire(ONE)
    runs(host)
    sleeping(host)
    assert (host.root, host.run(["id", "-un"]).stdout) == (False, f"{PLAIN}\n")

    provisioner.close()

    assert (directories(hosts["host1"], 1000), programs(hosts["host1"])) == ([], [])


def test_another_architecture_is_refused_by_name(ssh, does):
    """The programs of releases are those of this machine."""
    script = '#!/bin/sh\\n[ "$*" = -m ] && echo sparc64 || exec /srv/uname "$@"\\n'
    does("host1", "cp /usr/bin/uname /srv/uname", "rm /srv/uname")
    does("host1", f"printf '{script}' >/srv/other && chmod 755 /srv/other", "rm /srv/other")
    does("host1", "mount --bind /srv/other /usr/bin/uname", "umount /usr/bin/uname")

    with pytest.raises(
        Unsupported, match=r"^the machine host1 is Linux on sparc64; releases have programs for this machine: "
    ):
        ssh("host1").acquire(ONE)


def test_a_second_run_waits_for_the_machine(ssh):
    """It says what it waits for, and has the machine when the first run gives it free."""
    first, second = ssh("host1"), ssh("host1")
    first.acquire(ONE)
    made = []
    waiting = threading.Thread(target=lambda: made.extend(second.acquire(ONE)), daemon=True)
    waiting.start()
    wait.until(lambda: [] if second.told else ["nothing is said"], "what it waits for", seconds=SOON)
    assert "another run uses host1" in second.told[0]
    assert made == []

    first.close()
    waiting.join(SOON)

    runs(*made)
    assert len(made) == 1
