"""What runs on machines elsewhere, run here by the shells that machines have, without ssh."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import socket
import subprocess
from pathlib import Path

import psutil
import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.hosts import agent
from pytest_dbcluster.hosts.agent import Agent
from pytest_dbcluster.hosts.provisioners.ssh import remote_programs
from pytest_dbcluster.releases import fetched, shims
from pytest_dbcluster.releases.catalogue import STAND_IN_SYSTEM
from tests.support.facts import missing

SHELLS = ["dash", "bash", "busybox"]
NAME = f"{secrets.token_hex(4)}-1-node1"  # a mark that no other run of these tests has


def busybox():
    """A busybox of this machine, or that of stand-in hosts; empty without one."""
    known = shutil.which("busybox")
    system = fetched.lookup(STAND_IN_SYSTEM, "")
    return known or (str(system.bin.parent / shims.ROOT / "usr/bin/busybox") if system else "")


class Running:
    """The command of an ssh session as a login shell runs it, and our end of its line. ``path``: programs found first.

    before: what the login shell does first.
    """

    def __init__(self, base, path, *, name=NAME, exclusive=False, login="sh", before=""):
        self.directory = Path(base, f"pytest-dbcluster-{os.geteuid()}", name)
        self._log = Path(path, f"{name}.log")
        command = remote_programs.session(
            base=str(base), name=name, owner=f"{name[:8]} me@here 2026-11-23", mark=name, exclusive=exclusive
        ).replace("/bin/sh", f"{path}/sh")
        ours, theirs = socket.socketpair()
        variables = {**os.environ, "PATH": f"{path}:{os.environ['PATH']}"}
        with theirs, self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [login, "-c", before + command], stdin=theirs, stdout=theirs, stderr=log, env=variables
            )
        self.agent = Agent(ours, "a machine", console=self.words)

    def words(self):
        """What it said beside the line."""
        return self._log.read_text()

    def done(self, script, seconds=30):
        """The status and the output of a script of the agent."""
        number = self.agent.begin(f"{{ {script}\n}} >words.out 2>&1", "words")
        return self.agent.wait(number, seconds), self.agent.output(number, "out").decode()

    def spawn(self, *command):
        """Start a program as a host does, with the mark of the host. Returns its number."""
        variables = remote_programs.environment("0123abcd", self.directory.name)
        script = agent.script(command, directory=str(self.directory), environment=variables, output="program.log")
        number = self.agent.begin(script)
        self.agent.pid(number)
        return number

    def end(self):
        """Hang up; returns the exit status."""
        self.agent.close()
        return self.process.wait(60)


def sleepers(seconds):
    """The processes of this machine that sleep for so long: a number by which a test knows its own."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.NoSuchProcess):
            if process.name() in ("sleep", "busybox") and process.cmdline()[-1:] == [str(seconds)]:
                found.append(process)
    return found


@pytest.fixture(params=SHELLS)
def path(request, tmp_path):
    """A directory that is searched first, whose ``sh`` is each of the shells, and the only one that works."""
    shell = busybox() if request.param == "busybox" else shutil.which(request.param)
    if not shell:
        pytest.skip(f"there is no {request.param} here")
    made = tmp_path / "first"
    made.mkdir()
    (made / "sh").symlink_to(shell)
    if request.param != "bash":
        (made / "bash").write_text(f"#!{made}/sh\nexit 1\n")
        (made / "bash").chmod(0o755)
    return made


@pytest.fixture
def dash(tmp_path):
    """The same with the shell of this machine alone."""
    made = tmp_path / "first"
    made.mkdir()
    (made / "sh").symlink_to("/bin/sh")
    return made


@pytest.fixture
def run(tmp_path):
    """``run(path)``: a session, which ends with the test."""
    made = []

    def run(path, **how):
        made.append(Running(how.pop("base", tmp_path / "base"), path, **how))
        return made[-1]

    (tmp_path / "base").mkdir()
    yield run
    for one in made:
        one.end()


def refused(session):
    """What a session said that gave up."""
    with pytest.raises(ProvisionError):
        session.agent.wait_ready(30)
    assert session.process.wait(30) == 1
    last = session.words().splitlines()[-1]  # a shell may have said something before
    assert last.startswith(remote_programs.REFUSED)
    return last.removeprefix(remote_programs.REFUSED)


def without_namespaces(path):
    """A machine that permits none."""
    (path / "unshare").write_text("#!/bin/sh\necho 'unshare: unshare failed: Operation not permitted' >&2\nexit 1\n")
    (path / "unshare").chmod(0o755)


def test_the_agent_answers_in_the_directory_of_its_host(path, run):
    """It belongs to us alone, and says who uses it; the output of a script comes back over the line."""
    session = run(path)
    session.agent.wait_ready(30)

    assert session.done("pwd; echo more") == (0, f"{session.directory}\nmore\n")
    assert session.done("echo why >&2; exit 3")[0] == 3
    assert (session.directory / remote_programs.OWNER).read_text() == f"{NAME[:8]} me@here 2026-11-23\n"
    assert session.directory.parent.stat().st_mode & 0o7777 == 0o700
    assert session.directory.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("permitted", [True, False], ids=["namespace", "no-namespace"])
def test_the_end_of_the_line_ends_everything(path, run, permitted):
    """Every program of the host, also one that has left its group and hears no signal; and its directory goes."""
    if not permitted:
        without_namespaces(path)
    session = run(path)
    session.agent.wait_ready(30)
    seconds = 100_000 + os.getpid() * 2 + permitted
    session.spawn("sleep", str(seconds))
    session.spawn("setsid", "sh", "-c", f"trap '' TERM HUP INT; sleep {seconds} & sleep {seconds}")
    wait.until(lambda: [] if len(sleepers(seconds)) == 3 else ["too few"], "three programs", seconds=30)

    status = session.end()

    assert sleepers(seconds) == []
    assert status == 0
    assert not session.directory.exists()
    assert session.directory.parent.exists()  # programs that were brought stay there


@pytest.mark.parametrize("permitted", [True, False], ids=["namespace", "no-namespace"])
def test_a_fall_ends_the_programs_of_its_host_alone(path, run, permitted):
    """All of them at once; the host stays usable, and what others run on the machine goes on."""
    if not permitted:
        without_namespaces(path)
    session, other = run(path), run(path, name="0123abcd-2-node1")
    seconds = 500_000 + os.getpid() * 2 + permitted
    for one in (session, other):
        one.agent.wait_ready(30)
        one.spawn("sh", "-c", f"sleep {seconds} & sleep {seconds}")
    with subprocess.Popen(["sleep", str(seconds)]) as unmarked:
        wait.until(lambda: [] if len(sleepers(seconds)) == 5 else ["too few"], "five programs", seconds=30)

        session.agent.fall()

        wait.until(lambda: [] if len(sleepers(seconds)) == 3 else ["too many"], "the end of two", seconds=30)
        assert unmarked.pid in [process.pid for process in sleepers(seconds)]
        unmarked.kill()
    assert session.agent.status(1) == -9
    assert other.agent.status(1) is None
    assert session.done("echo usable") == (0, "usable\n")


def test_programs_of_a_host_see_no_others_where_the_machine_permits(path, run):
    """The agent is process 1, so what it kills is its own."""
    session = run(path)
    session.agent.wait_ready(30)

    # The shell alone lists them: ls of busybox looks at each of them, and complains of those that have ended.
    status, said = session.done("tr '\\0' ' ' </proc/1/cmdline; echo; cd /proc; set -- [0-9]*; echo $#")

    assert status == 0
    first, number = said.splitlines()
    if (path / "sh").resolve().name == "busybox":  # its own unshare cannot end a namespace with its parent
        assert "dbcluster-agent" not in first
    else:
        assert "dbcluster-agent" in first
        assert int(number) < 10


def test_who_does_not_say_that_he_is_there_is_gone(dash, run, monkeypatch):
    """Beats keep the programs running; without them the machine ends them, though the line is still open."""
    monkeypatch.setattr(remote_programs, "BEAT_SECONDS", 1)
    monkeypatch.setattr(remote_programs, "MISSED", 3)
    session = run(dash)
    session.agent.wait_ready(30)
    seconds = 900_000 + os.getpid()
    session.spawn("sleep", str(seconds))
    beat = session.directory / "beat"
    session.agent.beat()
    wait.until(lambda: [] if beat.read_text() == "1\n" else ["no beat"], "a beat", seconds=30)

    assert session.process.wait(60) == 0
    assert sleepers(seconds) == []
    assert not session.directory.exists()


def test_a_login_shell_may_print(dash, run):
    """With and without an end of its line; it is no answer."""
    session = run(dash, login="bash", before="echo Welcome; printf 'You have mail. '; ")
    session.agent.wait_ready(30)

    assert session.done("echo said") == (0, "said\n")


@pytest.mark.parametrize("shell", ["dash", "bash", "busybox"])
def test_a_script_reaches_sh_through_any_login_shell(shell):
    """Its quotes, dollars, exclamation marks and lines as they were."""
    words = [busybox(), "sh"] if shell == "busybox" else [shutil.which(shell)]
    if not words[0]:
        pytest.skip(f"there is no {shell} here")
    script = "word='it'\"'\"'s `$HOME` !x \\n'\nprintf '%s|' \"$word\" \"two\nlines\""

    done = subprocess.run([*words, "-c", remote_programs.any_shell(script)], capture_output=True, text=True, check=True)

    assert done.stdout == "it's `$HOME` !x \\n|two\nlines|"


def test_hosts_that_begin_at_the_same_time_do_not_disturb_each_other(dash, run):
    """Each tries whether programs can run there, with a file of its own."""
    sessions = [run(dash, name=f"0123abcd-{number}-node1") for number in range(12)]
    for session in sessions:
        session.agent.wait_ready(60)

    assert set(sessions[0].directory.parent.iterdir()) == {one.directory for one in sessions}


def test_a_directory_of_another_user_is_not_used(dash, run, tmp_path):
    """Neither one that he has made beforehand, nor a link to ours."""
    if os.geteuid():
        pytest.skip("giving a directory to another user needs root")
    ours = tmp_path / "base" / "pytest-dbcluster-0"
    ours.mkdir()
    os.chown(ours, 12345, 12345)
    assert refused(run(dash)) == f"{ours} belongs to another user"

    ours.rmdir()
    (tmp_path / "elsewhere").mkdir()
    ours.symlink_to(tmp_path / "elsewhere")
    assert refused(run(dash)) == f"{ours} belongs to another user"
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_directory_that_cannot_be_made_is_named(dash, run, tmp_path):
    """With the reason of the machine."""
    (tmp_path / "file").write_text("")

    said = refused(run(dash, base=tmp_path / "file"))

    root = f"{tmp_path}/file/pytest-dbcluster-{os.geteuid()}"
    assert said.startswith(f"cannot make the directory {root}: ")
    assert "Not a directory" in said


def test_a_file_system_that_runs_no_programs_is_named(dash, run, small):
    """Servers lie there."""
    base = small("16M", "noexec")

    said = refused(run(dash, base=base))

    assert missing(said, f"{base}/pytest-dbcluster-0", "file system", "mounted noexec") == []
    assert list((base / "pytest-dbcluster-0").iterdir()) == []


def test_a_full_disk_is_named_with_what_is_free(dash, run, small):
    """The line of df, whose last word is where the file system is mounted."""
    base = small("64k")
    with contextlib.suppress(OSError), (base / "filler").open("wb", buffering=0) as filler:
        while True:
            filler.write(bytes(4096))

    said = refused(run(dash, base=base))

    assert said.startswith(f"cannot write to {base}/pytest-dbcluster-0: ")
    assert said.endswith(f"100% {base}")


def test_a_machine_serves_one_run_at_a_time(dash, run):
    """A second run that wants it alone gives up and leaves nothing; hosts of the first one are not hindered."""
    first = run(dash, exclusive=True)
    first.agent.wait_ready(30)

    second = run(dash, name="4567cdef-1-machine", exclusive=True)
    assert refused(second) == "busy"
    assert not second.directory.exists()

    host = run(dash, name="0123abcd-2-node1")
    host.agent.wait_ready(30)
    assert first.done("echo there") == (0, "there\n")
    assert first.end() == 0

    third = run(dash, name="89abcdef-1-machine", exclusive=True)
    third.agent.wait_ready(30)
    assert third.done("echo mine") == (0, "mine\n")


def test_a_program_that_stays_does_not_keep_the_lock(dash, run):
    """The lock is the session's alone: what it starts does not inherit it."""
    session = run(dash, exclusive=True)
    session.agent.wait_ready(30)

    status, said = session.done("ls -l /proc/self/fd /proc/1/fd")

    assert status == 0
    assert "pytest-dbcluster.lock" not in said


def said_by(path, command):
    """The answers of a command about sessions, as a login shell of the machine runs it."""
    done = subprocess.run(
        ["sh", "-c", command.replace("/bin/sh", f"{path}/sh")], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stderr == ""
    return [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("token ")]


def test_the_sessions_of_a_machine_are_told_apart(path, run, tmp_path):
    """By any shell: one that lives, and one whose shell is gone, of which nothing stays."""
    session = run(path)
    session.agent.wait_ready(20)
    dead = session.directory.with_name(f"{secrets.token_hex(4)}-1-node1")
    dead.mkdir()
    (dead / "owner").write_text(f"{dead.name[:8]} me@here 2026-11-23\n")
    (dead / "session").write_text(f"{os.getpid()} 1\n")  # another process has the number now
    base = str(session.directory.parent.parent)
    listed = said_by(path, remote_programs.list_command(base=base, token="token"))

    assert {(words[1], words[2], *words[5:]) for words in listed[:-1]} == {
        (NAME, "alive", "me@here", "2026-11-23"),
        (dead.name, "dead", "me@here", "2026-11-23"),
    }
    assert listed[-1] == ["end"]
    reaped = said_by(path, remote_programs.end_command(base=base, token="token"))
    assert [words[:2] for words in reaped] == [["ended", dead.name], ["end"]]
    assert (session.directory.exists(), dead.exists()) == (True, False)


@pytest.mark.parametrize("permitted", [True, False])
def test_a_live_session_that_is_ended_cleans_up(path, run, permitted):
    """Its programs end, with namespaces and without, and its own shell removes the directory; others are not ended."""
    if not permitted:
        without_namespaces(path)
    session = run(path)
    session.agent.wait_ready(20)
    session.spawn("sleep", "3611")
    base = str(session.directory.parent.parent)

    def ended(who):
        return said_by(path, remote_programs.end_command(base=base, token="token", run=NAME[:8], who=who))

    assert ended("you@here") == [["left", NAME, "me@here"], ["end"]]
    assert [words[:2] for words in ended("me@here")] == [["ended", NAME], ["end"]]
    assert not session.directory.exists()
    assert sleepers(3611) == []
