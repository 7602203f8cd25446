"""A host on a machine elsewhere, a stand-in with a real ssh server: what runs, what lies there, what it uses."""

from __future__ import annotations

import os
import re
import signal
import socket
import sys
import threading
import time
from pathlib import Path

import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.errors import CommandFailed, ProvisionError
from pytest_dbcluster.hosts import agent
from pytest_dbcluster.hosts.host import EndsCommands, Falls
from pytest_dbcluster.hosts.provisioners.ssh.session import SMALL
from pytest_dbcluster.spec import ClusterSpec

ONE = ClusterSpec("standalone")
LARGE = 300_000  # bytes: neither the line's nor a command line's


@pytest.fixture(scope="module")
def host(provisioner):
    """One host that tests leave as they found it."""
    (made,) = provisioner.acquire(ONE)
    yield made
    provisioner.give_back([made])


def ended(process, seconds=30):
    """The exit status of a program, waited for."""
    wait.until(
        lambda: [] if process.status() is not None else ["it runs"], "the end of a program", seconds=seconds, poll=0.02
    )
    return process.status()


def test_a_command_runs_on_the_machine(host, stand_in):
    """With the files, the name and the network of the machine, in the directory of the host."""
    assert host.run(["hostname"]).stdout == "host1\n"
    assert host.run(["pwd"]).stdout == f"{host.directory}\n"
    assert (host.address, host.machine, host.root) == (stand_in["host1"].address, "host1", True)
    assert (stand_in["host1"].root / host.directory.lstrip("/")).is_dir()
    assert not Path(host.directory).exists()


def test_words_and_input_arrive_as_they_are(host):
    """Whatever a shell could make of them."""
    words = ["it's", 'a "word"', "two\nlines", "$HOME `id` !x", "back\\slash", "", "ünï"]

    assert host.run(["printf", "%s|", *words]).stdout == "".join(f"{word}|" for word in words)
    assert host.run(["cat"], text="an input\nof 'lines'").stdout == "an input\nof 'lines'"
    assert host.run(["cat"]).stdout == ""  # the line of the agent is nobody's input


def test_a_program_gets_the_environment_that_it_is_given(host):
    """Beside the marks of its run; nothing of this machine's."""
    given = {"WORD": "x 'y' $Z", "EMPTY": ""}

    said = dict(line.split("=", 1) for line in host.run(["env"], environment=given).stdout.splitlines())

    assert {name: said[name] for name in given} == given
    assert said["LC_ALL"] == "C"
    assert "PYTEST_CURRENT_TEST" not in said


@pytest.mark.parametrize("size", [0, 1, 40_000, LARGE, 5_000_000])
def test_an_output_of_any_size_comes_back_whole(host, size):
    """Over the agent's line, or beside it; input as well."""
    text = "0123456789" * (size // 10) + "x" * (size % 10)

    done = host.run(["tee", "/dev/stderr"], text=text)

    assert done.stdout == text
    assert done.stderr == text


def test_a_status_is_that_of_the_command(host):
    """With the machine's words; a program that is missing is one that failed."""
    with pytest.raises(CommandFailed, match=r"^sh -c echo why >&2; exit 3 on node1 ended with 3: why"):
        host.run(["sh", "-c", "echo why >&2; exit 3"])
    with pytest.raises(CommandFailed, match="ended with 127"):
        host.run(["no-such-program"])


def test_a_command_that_hangs_is_killed_after_its_time(host, monkeypatch):
    """With what it started, and with what it had said until then."""
    monkeypatch.setattr(agent, "KILLED_SECONDS", 30.0)
    mark = 200_000 + os.getpid()
    with pytest.raises(CommandFailed, match=r" on node1 did not end within 5 s: begun$") as caught:
        host.run(["sh", "-c", f"echo begun; sleep {mark} & sleep {mark}"], seconds=5)

    assert caught.value.stdout == "begun\n"
    assert host.run(["sh", "-c", f"pgrep -f '^sleep {mark}' || echo none"]).stdout == "none\n"


def test_commands_that_wait_can_be_ended(host):
    """From another thread, as after Ctrl-C; the host stays usable."""
    failed = []

    def hang():
        try:
            host.run(["sh", "-c", "echo begun >begun; sleep 600"], seconds=600)
        except CommandFailed as error:
            failed.append(error)

    thread = threading.Thread(target=hang)
    thread.start()
    wait.until(lambda: [] if "begun" in host.run(["ls"]).stdout.split() else ["not begun"], "a command", seconds=30)
    assert isinstance(host, EndsCommands)
    host.end_commands()
    thread.join(60)

    assert len(failed) == 1
    host.run(["rm", "begun"])


def test_commands_leave_no_file(host, stand_in):
    """Neither what they said, large or small, nor what they were told."""
    directory = stand_in["host1"].root / host.directory.lstrip("/")
    for size in (3, LARGE):
        host.run(["cat"], text="x" * size)
    with pytest.raises(CommandFailed):
        host.run(["sh", "-c", "cat; exit 1"], text="x" * LARGE)

    def left():
        return [path.name for path in directory.iterdir() if path.name.startswith((".command", ".ask"))]

    wait.until(left, "the removal of all files", seconds=30)


def test_a_program_runs_until_it_is_told_to_end(host):
    """Its output goes into its log; a signal reaches what it has started too."""
    log = f"{host.directory}/program.log"
    process = host.spawn(["sh", "-c", "echo $WORD; sleep 300 & sleep 300"], log=log, directory="/tmp",
                         environment={"WORD": "begun"})  # fmt: skip

    def begun():
        shown = host.run(["sh", "-c", f"cat {log} 2>/dev/null || true"]).stdout  # the log comes with the program
        return [] if shown == "begun\n" else [f"its log has {shown!r}"]

    wait.until(begun, "a program", seconds=30)
    assert (process.status(), process.pid) == (None, 0)

    process.signal(signal.SIGTERM)

    assert ended(process) == -signal.SIGTERM
    assert host.run(["sh", "-c", "pgrep -f '^sleep 300' || echo none"]).stdout == "none\n"
    assert ended(host.spawn(["sh", "-c", "exit 7"], log=log, directory="/")) == 7


@pytest.mark.parametrize("size", [0, 5, SMALL, SMALL + 1, LARGE])
def test_a_file_of_any_size_and_content_is_the_same_there(host, size):
    """Over the agent's line or beside it; whole and from any byte."""
    content, path = os.urandom(size), f"{host.directory}/a b/it's.file"
    host.push(content, path, mode=0o640)

    assert host.pull(path) == content
    assert host.pull(path, offset=size // 2) == content[size // 2 :]
    assert host.pull(path, offset=size) == b""
    assert host.run(["stat", "-c", "%a %s", path]).stdout == f"640 {size}\n"


def test_a_text_of_characters_is_the_same_there(host):
    """With any ends of lines."""
    content = "ünï\r\nlines\n\nwithout an end".encode()
    host.push(content, f"{host.directory}/text")

    assert host.pull(f"{host.directory}/text") == content


def test_a_file_that_cannot_be_written_is_an_error(host):
    """With the machine's words."""
    for content in (b"small", bytes(LARGE)):
        with pytest.raises(ProvisionError, match=r"cannot create directory '/proc/nowhere'"):
            host.push(content, "/proc/nowhere/file")


def test_a_tree_goes_there_and_back(host, tmp_path):
    """With modes, links, empty directories, odd names and files with holes; what was taken is gone there."""
    tree = tmp_path / "tree"
    (tree / "bin/empty").mkdir(parents=True)
    (tree / "bin/run it").write_text("#!/bin/sh\n")
    (tree / "bin/run it").chmod(0o750)
    (tree / "link").symlink_to("bin/run it")
    (tree / "nowhere").symlink_to("/no/such/file")
    (tree / "-dash").write_bytes(os.urandom(100))
    with (tree / "holes").open("wb") as file:
        file.truncate(20 * 2**20)
        file.seek(2**20)
        file.write(b"words")
    there = f"{host.directory}/copied"

    host.copy_tree(str(tree), there, durable=True)
    assert host.tree_size(there) > 20 * 2**20
    host.take_tree(there, tmp_path / "back")

    assert listed(tmp_path / "back") == listed(tree)
    assert host.run(["sh", "-c", f"ls -d {there} 2>/dev/null || echo gone"]).stdout == "gone\n"


def listed(tree):
    """Every entry: its kind with its mode, and what it holds."""
    found = {}
    for path in tree.rglob("*"):
        what = path.readlink() if path.is_symlink() else path.read_bytes() if path.is_file() else None
        mode = 0 if path.is_symlink() else path.stat().st_mode
        found[str(path.relative_to(tree))] = mode, what
    return found


def test_two_copies_of_a_tree_are_apart(host, tmp_path):
    """It is sent once; what is written to one copy is in no other."""
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/file").write_text("words")
    for name in ("first", "second"):
        host.copy_tree(str(tmp_path / "tree"), f"{host.directory}/{name}")
    host.push(b"other", f"{host.directory}/first/file")

    assert host.pull(f"{host.directory}/second/file") == b"words"
    host.copy_tree(str(tmp_path / "tree"), f"{host.directory}/third")
    assert host.pull(f"{host.directory}/third/file") == b"words"


def test_programs_that_were_brought_are_named_by_their_paths_here(host, tmp_path):
    """In command lines, environments and files that are pushed; a path that only begins alike is another one."""
    tree, other = tmp_path / "tools", tmp_path / "tools-2"
    for made in (tree, other):
        (made / "bin").mkdir(parents=True)
        (made / "bin/say").write_text(f'#!/bin/sh\necho {made.name} "$@"\n')
        (made / "bin/say").chmod(0o755)
    host.bring(tree)

    assert host.run([f"{tree}/bin/say", "words"]).stdout == "tools words\n"
    assert host.run(["sh", "-c", "$SAY words"], environment={"SAY": f"{tree}/bin/say"}).stdout == "tools words\n"
    host.push(f"exec {tree}/bin/say pushed\n".encode(), f"{host.directory}/script")
    assert host.run(["sh", "script"]).stdout == "tools pushed\n"
    for path in (f"{other}/bin/say", f"{tree}.d", f"/var{tree}/bin", f"{tree}_"):
        assert host.run(["echo", path]).stdout == f"{path}\n"
    for path in (f"{tree}", f"--at={tree}", f"-L{tree}/lib:{tree}", f"'{tree}'"):
        assert str(tree) not in host.run(["echo", path]).stdout
    with pytest.raises(CommandFailed):
        host.run([f"{other}/bin/say"])

    host.bring(other)
    assert host.run([f"{other}/bin/say", "words"]).stdout == "tools-2 words\n"
    assert host.run([f"{tree}/bin/say", "words"]).stdout == "tools words\n"


def test_a_file_alone_can_be_brought(host, tmp_path):
    """Beside its directory, which stays here."""
    (tmp_path / "one.lua").write_text("one")
    host.bring(tmp_path / "one.lua")

    assert host.run(["cat", str(tmp_path / "one.lua")]).stdout == "one"


def test_what_was_brought_stays_for_later_runs(host, stand_in, tmp_path, provisioner):
    """In a directory of the user, outside of the host's; it is not sent again, until it changes."""
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools/file").write_text("words")
    lines = []
    provisioner.progress = lines.append
    host.bring(tmp_path / "tools")
    (again,) = provisioner.acquire(ONE)
    again.bring(tmp_path / "tools")

    assert lines == ["sending tools to host1"]
    provisioner.give_back([again])
    programs = stand_in["host1"].root / host.directory.lstrip("/") / "../programs"
    assert [path for path in programs.iterdir() if path.name.startswith("tools-")]
    assert not [path for path in programs.iterdir() if ".part-" in path.name]


def test_a_tree_that_cannot_be_sent_is_named(host, tmp_path):
    """Nothing of it is on the machine."""
    with pytest.raises(FileNotFoundError, match=r"/missing"):
        host.copy_tree(str(tmp_path / "missing"), f"{host.directory}/missing")


def test_a_program_uses_the_cpu(host):
    """Its time and that of what it starts counts on; the host's is that of all its programs."""
    log = f"{host.directory}/busy.log"
    busy = host.spawn(["sh", "-c", "(while :; do :; done) & wait"], log=log, directory="/")
    quiet = host.spawn(["sleep", "600"], log=log, directory="/")
    wait.until(
        lambda: [] if (busy.cpu_seconds() or 0) >= 0.5 else ["too little"], "half a second of CPU", seconds=60, poll=0.1
    )

    assert quiet.cpu_seconds() < 0.1
    assert host.cpu_seconds() >= busy.cpu_seconds() - 0.02
    for process in (busy, quiet):
        process.signal(signal.SIGKILL)
        ended(process)
    time.sleep(0.1)  # longer than a look is kept
    assert quiet.cpu_seconds() is None


def test_a_machine_says_what_it_has_used(host):
    """Of the whole machine, and ever more."""
    first = host.usage()
    host.run(["sh", "-c", "n=0; while [ $n -lt 100000 ]; do n=$((n + 1)); done"])
    time.sleep(0.1)  # longer than a look is kept
    second = host.usage()

    assert {"cpu_user", "cpu_system", "cpu_idle", "cpu_iowait", "cpu_steal", "network_packets"} <= set(first)
    counted = set(first) - {"cpu_idle", "cpu_iowait"}  # the kernel may move time from one to the other
    assert all(second[name] >= first[name] for name in counted)
    assert second["cpu_user"] + second["cpu_system"] > first["cpu_user"] + first["cpu_system"]
    assert second["network_sent_bytes"] > first["network_sent_bytes"]


def test_a_machine_says_what_its_disk_does(host):
    """How long a flush takes there, and how much is free."""
    assert 0 < host.flush_seconds() < 10
    free = int(host.run(["df", "-P", "-k", "."]).stdout.splitlines()[1].split()[3]) * 1024
    assert abs(host.free_bytes() - free) < 2**30


def test_a_fall_ends_all_programs_and_the_host_stays(host):
    """As a power cut would; files stay."""
    log = f"{host.directory}/fall.log"
    host.push(b"stays", f"{host.directory}/file")
    programs = [host.spawn(["sleep", "600"], log=log, directory="/") for _ in range(3)]
    assert isinstance(host, Falls)

    host.kill()

    assert [process.status() for process in programs] == [-9] * 3
    assert host.run(["sh", "-c", "pgrep -fx 'sleep 600' || echo none"]).stdout == "none\n"
    assert host.pull(f"{host.directory}/file") == b"stays"


SERVER = """
import socket
import sys
with socket.create_server(("{address}", {port})) as server:
    while True:
        with server.accept()[0] as one:
            one.sendall(b"from " + one.recv(100))
"""


def test_a_port_of_the_host_is_reached_through_ssh(host):
    """By a connection, and by a socket of this machine; nothing of it goes beside ssh."""
    port = host.port(3306)
    process = host.spawn(
        ["python3", "-c", SERVER.format(address=host.address, port=port)],
        log=f"{host.directory}/server.log",
        directory="/",
    )

    def answers():
        try:
            with host.connects(host.address, port, 10) as one:
                one.sendall(b"here")
                return [] if one.recv(100) == b"from here" else ["no answer"]
        except OSError as error:
            return [str(error)]

    wait.until(answers, "a server", seconds=30)
    assert host.tunnel(port) == host.tunnel(port)
    with socket.socket(socket.AF_UNIX) as one:
        directory = os.open(Path(host.tunnel(port)).parent, os.O_PATH)
        one.connect(f"/proc/self/fd/{directory}/{Path(host.tunnel(port)).name}")
        os.close(directory)
        one.sendall(b"a socket")
        assert one.recv(100) == b"from a socket"
    process.signal(signal.SIGKILL)
    ended(process)
    with pytest.raises(OSError), host.connects(host.address, port, 10) as one:  # noqa: PT011, PT012
        one.sendall(b"here")
        if not one.recv(100):
            raise ConnectionResetError


def test_a_program_of_this_machine_is_reached_from_the_machine(host, provisioner):
    """Our Python programs run here; their ports are the same there."""
    beside = provisioner.beside(host)
    port = beside.port(9200)
    log = f"{beside.directory}/server.log"
    text = SERVER.format(address="127.0.0.1", port=port)
    process = beside.spawn([sys.executable, "-c", text], log=log, directory=beside.directory)
    ask = f"exec 3<>/dev/tcp/127.0.0.1/{port}; echo there >&3; head -c 10 <&3"

    def answers():
        try:
            return [] if host.run(["bash", "-c", ask]).stdout == "from there" else ["no answer"]
        except CommandFailed as error:
            return [str(error)]

    wait.until(answers, "a server here", seconds=30)
    process.signal(signal.SIGKILL)


def test_a_host_that_was_given_back_is_gone(provisioner, stand_in):
    """With its programs and files; it says so, and other hosts of the machine stay."""
    gone, stays = provisioner.acquire(ONE)[0], provisioner.acquire(ONE)[0]
    process = gone.spawn(["sleep", "456789"], log=f"{gone.directory}/log", directory="/")

    provisioner.give_back([gone])

    assert re.fullmatch("machine host1 was released", gone.why_lost())
    assert process.status() == -9
    with pytest.raises(ProvisionError, match="machine host1"):
        gone.run(["true"])
    assert not [words for words in stand_in["host1"].processes().values() if "456789" in words]
    assert not (stand_in["host1"].root / gone.directory.lstrip("/")).exists()
    assert stays.why_lost() == ""
    assert stays.run(["echo", "here"]).stdout == "here\n"
    provisioner.give_back([stays])
