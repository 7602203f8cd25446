"""The shell program on a host, and our end of its pipe; on this machine's own shells, without an engine."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import threading
import time

import psutil
import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.hosts import agent
from pytest_dbcluster.hosts.agent import Agent
from pytest_dbcluster.hosts.provisioners.container.host import FRAME, OUTPUT, frames

SHELLS = [shell for shell in ("/bin/dash", "/bin/bash") if shutil.which(shell)]


def relay(program, ours):
    """What an engine does between a container and whoever is attached to it."""

    def forward():
        with contextlib.suppress(OSError):
            while data := ours.recv(4096):
                os.write(program.stdin.fileno(), data)
        with contextlib.suppress(OSError):
            program.stdin.close()

    def answer():
        with contextlib.suppress(OSError):
            while data := os.read(program.stdout.fileno(), 4096):
                ours.sendall(FRAME.pack(OUTPUT, len(data)) + data)
            ours.shutdown(socket.SHUT_RDWR)

    threads = [threading.Thread(target=one) for one in (forward, answer)]
    for thread in threads:
        thread.start()
    return threads


def end(shell):
    """Kill it with all that it has started, as the end of a container's first process does."""
    with contextlib.suppress(psutil.NoSuchProcess):
        for process in [*psutil.Process(shell.pid).children(recursive=True), psutil.Process(shell.pid)]:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()


@pytest.fixture(params=SHELLS)
def shell(request, tmp_path):
    """The agent's program in each of the shells that images have as theirs."""
    pipe, variables = subprocess.PIPE, {**os.environ, "figures": str(tmp_path / "figures")}
    program = [request.param, "-c", agent.PROGRAM]
    with subprocess.Popen(program, stdin=pipe, stdout=pipe, bufsize=0, env=variables) as started:
        yield started
        end(started)


@pytest.fixture
def host(shell, tmp_path):
    """Our end of its pipe."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        threads = relay(shell, theirs)
        made = Agent(ours, "a host", parts=frames, figures=tmp_path / "figures")
        made.wait_ready(10)
        yield made
        made.close()
        end(shell)
        for thread in threads:
            thread.join()


@pytest.fixture
def deaf(shell):
    """The agent behind a line that keeps each request until more comes over it."""
    ours, theirs = socket.socketpair()
    program = shell

    def forward():
        kept = b""
        with contextlib.suppress(OSError):
            while data := theirs.recv(4096):
                os.write(program.stdin.fileno(), kept)
                kept = data
        with contextlib.suppress(OSError):
            program.stdin.close()

    def answer():
        with contextlib.suppress(OSError):
            while data := os.read(program.stdout.fileno(), 4096):
                theirs.sendall(data)
            theirs.shutdown(socket.SHUT_RDWR)

    with ours, theirs:
        threads = [threading.Thread(target=one) for one in (forward, answer)]
        for thread in threads:
            thread.start()
        made = Agent(ours, "a host", nudges=True)
        yield made
        end(shell)
        made.close()
        for thread in threads:
            thread.join()


def script(command, tmp_path, **more):
    """The script of a command that writes into files of the test's."""
    return agent.script(command, directory=str(tmp_path), environment={}, output=str(tmp_path / "out"), **more)


def test_a_command_runs_to_its_end(host, tmp_path):
    """Its words, with quotes, lines and spaces as they were, reach it, and its status comes back."""
    words = ["it's", 'a "word"', "two\nlines", "$HOME `id`", "back\\slash"]
    number = host.begin(script(["printf", "%s|", *words], tmp_path))

    assert host.wait(number, 10) == 0
    assert (tmp_path / "out").read_text() == "".join(f"{word}|" for word in words)


def test_a_status_is_that_of_the_command(host, tmp_path):
    """An error is its number, and the end by a signal a negative one."""
    assert host.wait(host.begin(script(["sh", "-c", "exit 3"], tmp_path)), 10) == 3
    assert host.wait(host.begin(script(["sh", "-c", "kill -9 $$"], tmp_path)), 10) == -signal.SIGKILL
    missing = str(tmp_path / "no-such-program")  # by its path: one on PATH may be in a directory that is closed to us
    assert host.wait(host.begin(script([missing], tmp_path)), 10) == 127
    assert "no-such-program" in (tmp_path / "out").read_text()


def test_the_environment_and_the_input_reach_a_command(host, tmp_path):
    """Variables are exported as they are; the input is a file."""
    (tmp_path / "in").write_text("from a file")
    text = agent.script(
        ["sh", "-c", 'cat; echo " and $WORD"; pwd'],
        directory=str(tmp_path),
        environment={"WORD": "a 'quoted' one"},
        output=str(tmp_path / "out"),
        errors=str(tmp_path / "err"),
        text=str(tmp_path / "in"),
    )

    assert host.wait(host.begin(text), 10) == 0
    assert (tmp_path / "out").read_text() == f"from a file and a 'quoted' one\n{tmp_path}\n"


def written(host, tmp_path, content, *, text=True):
    """What comes to us of an output with this content, and the line's files that are left."""
    (tmp_path / "content").write_bytes(content)
    files = f"{tmp_path}/files"
    number = host.begin(f"exec cat {tmp_path}/content >{files}.out 2>{files}.err", files, text=text)
    assert host.wait(number, 10) == 0
    return host.output(number, "out")


@pytest.mark.parametrize("text", [True, False])
@pytest.mark.parametrize(
    "content",
    [
        b"one line\n",
        b"no end of line",
        b"  spaces before, tabs\tbetween\t, and after  \n\n\n",
        b"C:\\new\\table %s $HOME `id` * \r\n\x1b[1mred\x1b[0m\n",
        "Größe über 5 µs\n".encode(),
        b"\xff\xfe not UTF-8\n",
        b"x" * 999 + b"\n",
        b"x" * 3000 + b"\nlast",
        b"many lines\n" * 2000,
        b"",
    ],
)
def test_what_a_script_wrote_comes_as_it_was(host, tmp_path, content, text):
    """Byte by byte, short or long, with or without an end of line; as text, and as any bytes."""
    assert written(host, tmp_path, content, text=text) == content


def test_bytes_of_zero_come_unless_the_output_is_text(host, tmp_path):
    """A shell cannot keep them in a variable."""
    assert written(host, tmp_path, b"a\0b\n", text=False) == b"a\0b\n"


def test_what_a_script_wrote_is_removed(host, tmp_path):
    """Soon after its end; the two files were the host's."""
    written(host, tmp_path, b"words\n")

    wait.until(lambda: [str(path) for path in tmp_path.glob("files.*")], "files of the host", seconds=10, poll=0.01)


def test_a_test_is_answered_by_the_shell_itself(host, tmp_path):
    """True and false, also for paths that need quotes; it goes on to serve."""
    (tmp_path / "it is there").touch()

    assert host.holds(f"[ -e '{tmp_path}/it is there' ]", 10)
    assert not host.holds(f"[ -e '{tmp_path}/it is not' ] || [ -d '{tmp_path}/it is there' ]", 10)
    assert host.wait(host.begin("exit 4"), 10) == 4


def test_several_programs_run_at_once(host, tmp_path):
    """One that waits delays no other, and each has its own number and status."""
    slow = host.begin(script(["sleep", "30"], tmp_path))
    fast = [host.begin(script(["sh", "-c", f"exit {n}"], tmp_path)) for n in range(10)]

    assert [host.wait(number, 10) for number in fast] == list(range(10))
    assert host.status(slow) is None
    assert host.wait(slow, 0.01) is None
    host.signal(slow, "KILL")


def test_a_signal_reaches_the_children_of_a_program(host, tmp_path):
    """A program is a process group: what it has started ends with it."""
    number = host.begin(script(["sh", "-c", "sleep 77 & echo $!; wait"], tmp_path))
    host.pid(number)
    while not (tmp_path / "out").exists() or not (tmp_path / "out").read_text().strip():
        time.sleep(0.01)
    child = (tmp_path / "out").read_text().strip()
    host.signal(number, "TERM")

    assert host.wait(number, 10) == -signal.SIGTERM
    wait.until(lambda: [child] if psutil.pid_exists(int(child)) else [], "the end of the child", seconds=60)


def test_a_signal_to_what_has_ended_does_nothing(host, tmp_path):
    """Its number may be another program's by now."""
    number = host.begin(script(["true"], tmp_path))
    assert host.wait(number, 10) == 0

    host.signal(number, "KILL")

    assert host.status(number) == 0


def test_the_end_of_our_pipe_ends_the_agent(shell, host):
    """Whatever ends this process closes its end, so nothing outlives it."""
    host.close()

    shell.wait(10)


def test_the_end_of_the_agent_is_told(shell, host, tmp_path):
    """Its programs have ended with their host, and another cannot be started."""
    number = host.begin(script(["sleep", "30"], tmp_path))
    host.pid(number)
    end(shell)

    with pytest.raises(ProvisionError, match="a host has ended"):
        host.wait(number, 10)
    assert host.status(number) == -signal.SIGKILL
    with pytest.raises(ProvisionError, match="a host"):
        host.wait(host.begin(script(["true"], tmp_path)), 10)


def test_what_is_no_agent_says_what_it_printed():
    """The words of a broken image are in the message."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(FRAME.pack(2, 27) + b"exec /bin/sh: no such file\n")
        theirs.shutdown(socket.SHUT_RDWR)

        with pytest.raises(ProvisionError, match="exec /bin/sh: no such file"):
            Agent(ours, "a host", parts=frames).wait_ready(10)


@pytest.mark.parametrize("shell", SHELLS)
def test_one_that_is_to_stay_outlives_the_end_of_its_input(shell):
    """Some engines end the input with the connection to it, whatever they were told; any other one ends there."""
    pipe = subprocess.PIPE
    quick = agent.PROGRAM + agent.STAYS.replace("3600", "0.01; echo stays")
    with subprocess.Popen([shell, "-c", agent.PROGRAM], stdin=pipe) as ends:
        ends.stdin.close()
        assert ends.wait(10) == 0
    with subprocess.Popen([shell, "-c", quick], stdin=pipe, stdout=pipe) as stays:
        stays.stdin.close()
        try:
            assert [stays.stdout.readline() for _ in range(2)] == [b"stays\n", b"stays\n"]
        finally:
            end(stays)


def test_an_overlooked_request_is_answered(deaf, tmp_path):
    """Empty lines follow a request until its answer is here: of a start, of a signal, and of the end of everything."""
    number = deaf.begin(script(["sleep", "60"], tmp_path))
    assert deaf.pid(number) > 0

    deaf.signal(number, "TERM")
    assert deaf.wait(number, 10) == -15

    last = deaf.begin(script(["sleep", "60"], tmp_path))
    assert deaf.pid(last) > 0
    deaf.signal(last, "KILL")
    assert deaf.wait(last, 10) == -9


def test_a_look_counts_on(host):
    """What the kernel has counted: CPU time, and the disk and the link of a guest, which this machine may not have."""
    first = host.look(20)
    host.begin("n=0; while [ $n -lt 200000 ]; do n=$((n + 1)); done")
    wait.until(lambda: [] if host.status(1) == 0 else ["it runs"], "the end of the loop", seconds=60)
    second = host.look(20)

    assert list(first)[:6] == list(agent.COUNTED[:6])
    counted = set(first) - {"idle", "iowait"}  # the kernel may move time from one to the other
    assert all(second[name] >= first[name] for name in counted)
    assert second["user"] + second["system"] > first["user"] + first["system"]


def test_a_look_that_is_not_answered_is_said(host, shell):
    """A host that is paused has no figures; the next answer is that of the next question."""
    host.look(20)
    shell.send_signal(signal.SIGSTOP)
    with pytest.raises(ProvisionError, match=r" did not answer a request for its usage within 0\.1 s$"):
        host.look(0.1)
    shell.send_signal(signal.SIGCONT)

    assert host.look(20)["idle"] > 0


def test_what_a_look_has_written_is_read():
    """Links add up. Disk and links are missing where a host has none; a file that is written anew says nothing."""
    cpu, rest = "cpu  10 1 20 300 5 2 3 0 0 0\ncpu0 10 1 20 300 5 2 3 0 0 0\n", "softirq 9 1\n"
    disk = "   7   0   56   1   9   0   72   1   0   1   1\n"
    link = "Inter-|   Receive  |  Transmit\n face |bytes packets |bytes packets\n" + "".join(
        f"{name:>6}: {received:7} 9 0 0 0 0 0 0 {sent:8} {packets:7} 0 0 0 0 0 0\n"
        for name, received, sent, packets in (("vec1", 1, 2, 3), ("lo", 7, 7, 7), ("vec0", 1000, 2000, 30))
    )
    counted = agent._parse_counters(cpu + rest + disk + link)

    assert dict(counted) == {
        "user": 11, "system": 25, "iowait": 5, "idle": 300, "read": 56, "written": 72, "received": 1001, "sent": 2002,
        "packets": 33,
    }  # fmt: skip
    assert "packets" not in agent._parse_counters(cpu + rest + disk)
    assert agent._parse_counters(cpu + rest + link)["written"] == 0
    assert agent._parse_counters("") == agent._parse_counters("cpu  10 1") == {}
