"""The script that sees to a container engine: what it installs and starts, and what it says where it may not."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.support.facts import missing

ROOT = Path(__file__).parents[2]
ANSWERS = '[[ -e answers ]] && exit; echo "dbcluster: no container engine: no socket" >&2; exit 1'
DAEMON = ": >answers; while :; do sleep 0.1; done"
SUDO = 'shift; exec "$@"'
APT = """
echo "$*" >>"${0%/*}/asked"
for name in "$@"; do
    case $name in docker.io) cp spare "${0%/*}/dockerd" ;; mmdebstrap) cp spare "${0%/*}/mmdebstrap" ;; esac
done
"""


@pytest.fixture
def machine(tmp_path):
    """``machine(uid, dockerd=..., sudo=...)``: runs the script where only the programs given exist."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("bash", "sh", "cat", "chmod", "cp", "dirname", "mktemp", "nohup", "rm", "setsid", "sleep", "tail"):
        (programs / name).symlink_to(shutil.which(name))
    (tmp_path / "scripts").mkdir()
    # The script looks where a user's PATH does not reach; this machine's own daemon must not be found there.
    text = (ROOT / "scripts" / "engine.sh").read_text().replace("PATH=$PATH:/usr/sbin:/sbin\n", "")
    (tmp_path / "scripts" / "engine.sh").write_text(text)
    shutil.copy(ROOT / "scripts" / "root.sh", tmp_path / "scripts")

    def write(path, body):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)  # it may be a link to the program of this machine
        path.write_text(f"#!{shutil.which('bash')}\n{body}\n")
        path.chmod(0o755)

    write(tmp_path / ".venv/bin/dbcluster", ANSWERS)
    write(tmp_path / "spare", DAEMON)

    def run(uid, *arguments, socket="unix:///nowhere/docker.sock", systemd="/nowhere", **stubs):
        for name, body in {"id": f"echo {uid}", "pgrep": "exit 1", "true": "exit 0", **stubs}.items():
            write(programs / name.replace("_", "-"), body)
        variables = {"PATH": str(programs), "DOCKER_HOST": socket, "DBCLUSTER_SYSTEMD": systemd}
        variables |= {"TMPDIR": str(tmp_path), "DBCLUSTER_ENGINE_PID": str(tmp_path / "pid")}
        command = [programs / "bash", tmp_path / "scripts/engine.sh", *arguments]
        return subprocess.run(command, env=variables, capture_output=True, text=True, check=False, timeout=60)

    yield run
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)


def test_an_engine_that_answers_is_left_alone(machine, tmp_path):
    """Nothing is said, started or installed, and nothing is there to be ended."""
    (tmp_path / "answers").touch()

    done = machine(1000, mmdebstrap="exit 0")

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not (tmp_path / "pid").exists()


@pytest.mark.parametrize(("uid", "sudo"), [(0, "exit 1"), (1000, SUDO)])
def test_the_daemon_is_started_and_ended(machine, tmp_path, uid, sudo):
    """As root, or with a sudo that needs no password; it outlives the script, and `end` ends that one process."""
    done = machine(uid, dockerd=DAEMON, mmdebstrap="exit 0", sudo=sudo)
    pid = int((tmp_path / "pid").read_text())

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"engine: started dockerd (process {pid}, log {tmp_path}/dbcluster-dockerd.")
    assert "--host\0unix:///nowhere/docker.sock" in Path(f"/proc/{pid}/cmdline").read_text()
    assert machine(uid, "end", sudo=sudo).returncode == 0
    assert not Path(f"/proc/{pid}").exists()
    assert not (tmp_path / "pid").exists()


def test_root_makes_the_log_that_root_writes(machine):
    """In /tmp, which all may write to, the kernel keeps root from adding to another user's file."""
    made = f'[[ -v AS_ROOT ]] && exec {shutil.which("mktemp")} "$@"; echo "made by the user" >&2; exit 1'
    done = machine(1000, dockerd=DAEMON, mmdebstrap="exit 0", sudo=f"export AS_ROOT=1; {SUDO}", mktemp=made)

    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(("words", "shown"), [(None, ""), ("engine: a\nengine: no iptables\n", "engine: no iptables")])
def test_what_was_not_tested_is_said_last(tmp_path, words, shown):
    """With its reason, and without making anything red; nothing is said when containers were tested."""
    if words:
        (tmp_path / "why").write_text(words)
    done = subprocess.run([ROOT / "scripts/untested.sh", tmp_path / "why"], capture_output=True, text=True, check=True)

    assert (f"NOT TESTED: clusters in containers. {shown}\n" in done.stdout) == bool(words)
    assert bool(done.stdout) == bool(words)


def test_a_process_that_is_no_daemon_is_never_ended(machine, tmp_path):
    """The number of a daemon that is gone may belong to another process by now."""
    (tmp_path / "pid").write_text(str(os.getpid()))

    assert machine(0, "end", kill="exit 9").returncode == 0
    assert not (tmp_path / "pid").exists()


def test_what_is_missing_is_installed(machine, tmp_path):
    """Docker's package and mmdebstrap in one go, and then the daemon is started."""
    done = machine(0, apt_get=APT)

    assert done.returncode == 0
    assert (tmp_path / "bin/asked").read_text().splitlines() == [
        "--simulate install docker.io mmdebstrap",
        "install --yes --no-install-recommends docker.io mmdebstrap",
    ]
    assert "started dockerd" in done.stdout


def test_with_a_service_manager_the_service_is_started(machine, tmp_path):
    """It owns the daemon, and nothing of it is ours to end."""
    done = machine(0, dockerd="exit 9", mmdebstrap="exit 0", systemctl=': >answers; echo "$*"', systemd=str(tmp_path))

    assert done.returncode == 0
    line, asked = done.stdout.splitlines()
    assert missing(line, "engine: ", "no container engine answers", "systemctl start docker") == []
    assert asked == "start docker"
    assert not (tmp_path / "pid").exists()


@pytest.mark.parametrize(
    ("stubs", "said"),
    [
        ({"sudo": "exit 1"}, "sudo sh -c 'DEBIAN_FRONTEND=noninteractive apt-get install --yes"),
        ({}, "su -c 'DEBIAN_FRONTEND=noninteractive apt-get install --yes"),
    ],
)
def test_a_user_who_may_not_install_gets_the_one_command(machine, stubs, said):
    """The script never waits for a password; what needs no container can go on."""
    done = machine(1000, apt_get=APT, **stubs)

    assert done.returncode == 1
    assert done.stderr.startswith("engine: docker.io mmdebstrap missing, and fixing it needs root.")
    assert f"For tests in containers run:  {said} --no-install-recommends docker.io mmdebstrap'" in done.stderr


def test_a_daemon_that_ends_at_once_is_told_with_its_last_words(machine):
    """And with the place of its log."""
    done = machine(0, dockerd='echo "failed to start: no iptables"; exit 1', mmdebstrap="exit 0")

    assert done.returncode == 1
    assert "engine: dockerd ended: failed to start: no iptables (log: " in done.stderr


def test_an_engine_of_another_machine_is_not_replaced(machine):
    """A daemon of this machine would not be the one that was named."""
    done = machine(0, socket="tcp://elsewhere:2375", dockerd="exit 9", mmdebstrap="exit 0")

    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert missing(done.stderr, "engine: ", "no container engine", "no socket") == []


def test_the_check_ends_the_daemon_that_it_has_started(tmp_path):
    """However it ends itself, with the status of its tests."""
    for path, body in (
        ("scripts/engine.sh", 'echo "$1" "$DBCLUSTER_ENGINE_PID" >ended; rm "$DBCLUSTER_ENGINE_PID"'),
        ("bin/make", '[[ -e $DBCLUSTER_ENGINE_PID ]] && echo "make $* $CI"; exit 3'),
    ):
        (tmp_path / path).parent.mkdir()
        (tmp_path / path).write_text(f"#!{shutil.which('bash')}\n{body}\n")
        (tmp_path / path).chmod(0o755)
    (tmp_path / ".ci").mkdir()
    script = shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci")
    variables = {"PATH": f"{tmp_path}/bin:{os.environ['PATH']}", "TMPDIR": str(tmp_path)}
    done = subprocess.run([script], env=variables, capture_output=True, text=True, check=False, timeout=60)

    assert (done.returncode, done.stdout) == (3, "make test true\n")
    assert (tmp_path / "ended").read_text().startswith(f"end {tmp_path}/tmp.")
