"""Stand-in hosts: what tests of ssh rest on is a machine of its own, of which nothing stays."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.hosts import supervisor
from pytest_dbcluster.system import cache
from tests.support import stand_ins
from tests.support.stand_ins import StandIns

ROOT = Path(__file__).parents[2]
CUT = ("-o", "ConnectTimeout=1")
MODULE = [sys.executable, "-m", "tests.support.stand_ins"]


@pytest.fixture(scope="module")
def hosts(tmp_path_factory):
    """Two hosts and one for the load, whose own network this machine does not reach. Tests leave them as they were."""
    if reason := stand_ins.missing():
        pytest.skip(reason)
    with StandIns(tmp_path_factory.mktemp("client"), 2, load=1, private=True) as made:
        yield made


def said(host, *words, **how):
    """What a command line on a host prints, which ends with 0."""
    done = host.ssh(*words, **how)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_ssh_reaches_each_host(hosts):
    """With the configuration alone; root by key, and an ordinary user who cannot become root."""
    assert [said(host, "hostname; id -u") for host in hosts] == [f"{name}\n0\n" for name in ("host1", "host2", "load")]
    assert said(hosts["host1"], "id -un; pwd", user="plain") == "plain\n/home/plain\n"
    refused = hosts["host1"].ssh("sudo -n true || cat ~root/.ssh/authorized_keys", user="plain")
    assert "sudo: command not found" in refused.stderr
    assert "Permission denied" in refused.stderr


def test_a_host_sees_no_file_of_this_machine(hosts, tmp_path):
    """Neither the checkout, nor the cache, nor /tmp, nor the roots of its own processes."""
    (tmp_path / "ours").touch()
    host = hosts["host1"]
    ours = [ROOT, cache.root(), tmp_path, host.root, sys.executable]
    tries = "; ".join(f"ls -d {prefix}{path}" for path in ours for prefix in ("", "/proc/1/root", "/proc/self/cwd/.."))

    found = host.ssh(tries)

    assert found.stdout == ""
    assert found.stderr.count("No such file or directory") == 3 * len(ours)
    assert said(host, "ls -A /tmp /srv; cat /etc/hostname") == "/srv:\n\n/tmp:\nhost1\n"


def test_a_host_has_files_processes_and_addresses_of_its_own(hosts):
    """What one writes the other does not see; ports of this machine are nobody's there."""
    first, second = hosts["host1"], hosts["host2"]
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert first.ssh(f"exec 3<>/dev/tcp/127.0.0.1/{port}").returncode != 0
    said(first, "echo mine >/srv/file")
    assert second.ssh("cat /srv/file").returncode != 0
    assert (first.root / "srv/file").read_text() == "mine\n"
    (first.root / "srv/file").unlink()
    programs = said(first, "ps -e -o comm=").split()
    assert programs[:2] == ["sh", "sshd"]
    assert "python3" not in programs
    assert said(first, "id -u nobody; touch /usr/file || echo refused") == "65534\nrefused\n"


def test_a_host_has_the_programs_of_an_ordinary_one(hosts):
    """Those that a host elsewhere may be asked for, with a shell that prefers them to busybox's."""
    wanted = "bash tar zstd ip ps ss flock setsid setpriv unshare awk sed grep find python3 ssh"

    assert (
        hosts["load"].ssh(f"for name in {wanted}; do command -v $name >/dev/null || echo no $name; done").stdout == ""
    )
    assert said(
        hosts["load"], "cd /srv && echo a | zstd -q | zstd -qd; unshare --fork --pid --mount-proc ps -e -o pid="
    ) == ("a\n      1\n")


def test_programs_of_a_host_are_no_programs_of_a_run_here(hosts):
    """Whoever ends all programs with the mark of a run on this machine, reaches none there."""
    host = hosts["host1"]
    said(host, f"{supervisor.RUN_VARIABLE}=feed0002 setsid sleep 60 >/dev/null 2>&1 </dev/null & disown")
    wait.until(lambda: [] if "sleep 60" in host.processes().values() else ["it has not begun"], "sleep", seconds=20)
    (pid,) = [pid for pid, words in host.processes().items() if words == "sleep 60"]

    assert supervisor.kill_marked("feed0002") == 0
    assert psutil.Process(pid).is_running()

    said(host, "pkill sleep")
    wait.until(lambda: [str(pid)] * (pid in host.processes()), "the end of sleep", seconds=20)


def test_hosts_reach_each_other_at_private_addresses(hosts):
    """And not at those at which this machine reaches them, while this machine reaches no private address."""
    first, second, load = hosts
    knock = "; ".join(f"exec 3<>/dev/tcp/{other.private_address}/22; head -c 8 <&3" for other in (second, load))

    assert said(first, knock) == 2 * "SSH-2.0-"
    assert first.ssh(f"ping -c 1 -W 1 {second.address}").returncode == 1
    with contextlib.closing(socket.socket()) as ours:
        ours.settimeout(1)
        assert ours.connect_ex((second.private_address, 22)) in (errno.EAGAIN, errno.EHOSTUNREACH)


def test_a_wrong_key_of_a_host_is_refused(hosts, tmp_path):
    """By ssh itself, with the fingerprint of the key that it saw."""
    first, second = hosts["host1"], hosts["host2"]
    known = tmp_path / "known_hosts"
    known.write_text(f"{first.address} {second.host_key}\n")
    (tmp_path / "config").write_text(stand_ins.client_config(first, hosts.directory / "key", known))

    done = first.ssh("true", config=tmp_path / "config")

    assert done.returncode == 255
    assert first.fingerprint in done.stderr
    assert "Host key verification failed." in done.stderr


def test_a_host_may_get_another_key(tmp_path):
    """As after a new installation: ssh refuses it until the new key is known."""
    if reason := stand_ins.missing():
        pytest.skip(reason)
    with StandIns(tmp_path) as hosts:
        host, before = hosts["host1"], hosts["host1"].fingerprint
        host.change_host_key()

        assert "IDENTIFICATION HAS CHANGED" in host.ssh("true").stderr
        assert host.fingerprint != before
        hosts.write_config()
        assert said(host, "hostname") == "host1\n"

        host.kill()
        assert host.ssh(*CUT, "true").returncode == 255


def test_a_cut_link_is_cut_until_it_is_healed(hosts):
    """Nothing comes back, also from the other hosts; then the connection of before goes on."""
    first, second = hosts["host1"], hosts["host2"]
    knock = f"ping -c 1 -W 1 {second.private_address}"
    command = ["ssh", "-F", hosts.config, "host2", "cat"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as open_one:
        open_one.stdin.write("before\n")
        assert open_one.stdout.readline() == "before\n"

        second.cut()
        assert subprocess.run(["ssh", "-F", hosts.config, *CUT, "host2", "true"], check=False).returncode == 255
        assert first.ssh(knock).returncode != 0
        open_one.stdin.write("after\n")

        second.heal()
        assert open_one.stdout.readline() == "after\n"
        assert first.ssh(knock).returncode == 0


def test_ssh_may_take_a_long_way(tmp_path):
    """A question and its answer take at least the round trip; what goes through is whole."""
    if reason := stand_ins.missing():
        pytest.skip(reason)
    with StandIns(tmp_path, round_trip=0.05) as hosts:
        command = ["ssh", "-F", hosts.config, "host1", "cat"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as slow:
            slow.stdin.write(b"begun\n")
            slow.stdin.flush()
            assert slow.stdout.readline() == b"begun\n"
            began = time.monotonic()
            slow.stdin.write(b"question\n")
            slow.stdin.flush()
            assert slow.stdout.readline() == b"question\n"
            assert time.monotonic() - began >= 0.05

            content = os.urandom(3_000_000)
            assert slow.communicate(content)[0] == content


def test_a_server_takes_other_settings(hosts):
    """They come before its own, and end with the file."""
    host = hosts["load"]
    host.configure("ForceCommand echo forced")
    assert said(host, "hostname") == "forced\n"

    host.configure()
    assert said(host, "hostname") == "load\n"


def everything(process):
    """Every process below one of ours, with those of its hosts."""
    return [one for one in psutil.Process(process.pid).children(recursive=True) if one.is_running()]


def names_of(processes):
    """The names of processes, without those that end meanwhile."""
    names = set()
    for one in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            names.add(one.name())
    return names


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_nothing_stays_of_hosts(tmp_path, how):
    """After Ctrl-C, or a death of the owner that nobody announced: processes, directories and interfaces are gone."""
    if reason := stand_ins.missing():
        pytest.skip(reason)
    environment = {**os.environ, "DBCLUSTER_DATA_DIR": str(tmp_path)}
    interfaces = {name for _, name in socket.if_nameindex()}
    command = [*MODULE, "up", "--hosts", "1", "--load", "1"]
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as owner:
        try:
            options = shlex.split(owner.stdout.readline())
            assert options[:-1] == ["--db-host", "host1", "--db-load-host", "load", "--db-ssh-config"]
            config = Path(options[-1])
            slow = ["ssh", "-F", config, "host1", "setsid sleep 100 >/dev/null 2>&1 </dev/null & echo begun"]
            assert subprocess.check_output(slow, text=True) == "begun\n"
            wait.until(lambda: {"sshd", "sleep"} - names_of(everything(owner)), "sleep", seconds=20)
            ours = everything(owner)
            (own,) = {name for _, name in socket.if_nameindex() if name.endswith(config.parts[-3])}
            owner.send_signal(how)
            owner.wait(30)
        finally:
            owner.kill()

    def left():
        names = [name for _, name in socket.if_nameindex() if name == own]
        return [*map(str, tmp_path.glob("*")), *names, *(str(one) for one in ours if one.is_running())]

    wait.until(left, "the end of the hosts", seconds=30)
    assert own not in interfaces


def test_a_command_runs_with_the_options_of_the_hosts():
    """After its own words; its status is that of all."""
    if reason := stand_ins.missing():
        pytest.skip(reason)
    program = (
        "import subprocess, sys; print(sys.argv[1:4], flush=True); "
        "sys.exit(subprocess.call(['ssh', '-F', sys.argv[5], 'host1', 'exit 3']))"
    )
    command = [*MODULE, "run", "--hosts", "1", "--load", "0", "--private", "--", sys.executable, "-c", program, "own"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)

    assert done.returncode == 3, done.stderr
    assert re.fullmatch(r"\['own', '--db-host', 'host1=10\.[\d.]+'\]\n", done.stdout)


def test_what_is_missing_is_named(monkeypatch, tmp_path):
    """The program with its package, or the release with the command that fetches it; no host is made."""
    if reason := stand_ins.missing():
        pytest.skip(reason)
    monkeypatch.setattr(stand_ins.shutil, "which", lambda name: None)
    assert stand_ins.missing.__wrapped__().startswith("there is no program ssh here (package openssh-client")
    monkeypatch.undo()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert stand_ins.missing.__wrapped__().endswith("is not in the cache: dbcluster fetch stand-in")
    monkeypatch.setattr(stand_ins, "missing", stand_ins.missing.__wrapped__)
    with pytest.raises(ProvisionError, match=r"dbcluster fetch stand-in$"):
        StandIns(tmp_path)
