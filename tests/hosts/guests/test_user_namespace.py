"""Network namespaces without root of this machine: how this process connects into them, and what forbids them."""

from __future__ import annotations

import errno
import os
import socket
import sys

import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.hosts.guests import user_namespace
from pytest_dbcluster.hosts.guests.user_namespace import UserNamespace
from pytest_dbcluster.hosts.local_run import LocalRun
from pytest_dbcluster.spec import ClusterSpec
from tests.support import users
from tests.support.facts import missing
from tests.support.users import ALICE

MODULE = ("pytest_dbcluster.hosts.guests.user_namespace",)
SERVER = """
import socket, sys
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
while True:
    connection, _ = server.accept()
    connection.sendall(connection.recv(100).upper())
    connection.close()
"""


@pytest.fixture
def files(data):
    """A directory of a run."""
    run = LocalRun()
    yield run.host("network", run.cluster_directory(ClusterSpec("standalone")) / "network")
    run.close()


@pytest.fixture
def namespace(files):
    """A user namespace; root may make one too."""
    if said := user_namespace._error_of(user_namespace.AS_USER):
        pytest.skip(user_namespace.why_forbidden(said))
    made = UserNamespace(files, "network")
    yield made
    made.close()


def serve(namespace, files):
    """A program in the namespace that answers on its own 127.0.0.1, and its port."""
    files.run(["ip", "link", "set", "lo", "up"])
    log = f"{files.directory}/server.log"
    files.spawn([sys.executable, "-c", SERVER], log=log, directory=files.directory)
    wait.until(lambda: [] if files.pull(log).endswith(b"\n") else ["no port"], "a server", seconds=60)
    return int(files.pull(log))


def test_this_process_connects_to_what_is_in_the_namespace(namespace, files):
    """No byte passes another process; the address 127.0.0.1 is that of the namespace."""
    files.enters = namespace.command_inside()
    port = serve(namespace, files)

    with namespace.connect("127.0.0.1", port, 20) as connection:
        connection.sendall(b"words")
        assert connection.recv(100) == b"WORDS"
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), 20)


def test_a_connection_that_cannot_be_made_is_an_oserror(namespace, files):
    """As without a namespace: nobody listens, or no way leads there."""
    files.enters = namespace.command_inside()
    files.run(["ip", "link", "set", "lo", "up"])

    with pytest.raises(ConnectionRefusedError):
        namespace.connect("127.0.0.1", 1, 20)
    with pytest.raises(OSError, match="unreachable"):
        namespace.connect("192.0.2.1", 1, 20)


def test_programs_in_it_are_root_there_and_nowhere_else(namespace, files):
    """They see its interfaces alone; files that they make belong to the user."""
    files.enters = namespace.command_inside()

    assert files.run(["id", "-u"]).stdout == "0\n"
    assert files.run(["ls", "/proc/self/net/dev_snmp6"]).stdout == "lo\n"
    assert files.run(["cat", "/proc/self/uid_map"]).stdout.split() == ["0", str(os.geteuid()), "1"]


def test_a_socket_of_a_kind_that_is_none_is_said(namespace):
    """With the error of the kernel."""
    with pytest.raises(OSError, match=os.strerror(errno.EINVAL)):
        namespace.make_socket(socket.AF_INET, 77)


def test_it_makes_sockets_in_other_namespaces_of_its_own(namespace, files):
    """Each one by a process in it; a process that is not there is an error."""
    files.enters = namespace.command_inside(["unshare", "--net"])
    log = f"{files.directory}/other.log"
    program = "import os; print(os.stat('/proc/self/ns/net').st_ino, flush=True); input()"
    other = files.spawn(
        ["sh", "-c", f'sleep 600 | {sys.executable} -c "{program}"'], log=log, directory=files.directory
    )
    wait.until(lambda: [] if files.pull(log).endswith(b"\n") else ["not there"], "the other", seconds=60)

    with (
        namespace.make_socket(socket.AF_INET, socket.SOCK_STREAM, of=other.pid) as made,
        namespace.make_socket(socket.AF_INET, socket.SOCK_STREAM) as own,
    ):
        assert network_of(made) == int(files.pull(log)) != network_of(own)
    with pytest.raises(FileNotFoundError):
        namespace.make_socket(socket.AF_INET, socket.SOCK_STREAM, of=2**22 + 1)


def network_of(made):
    """The network namespace of a socket, by its number."""
    import fcntl

    descriptor = fcntl.ioctl(made.fileno(), 0x894C)  # SIOCGSKNS
    try:
        return os.fstat(descriptor).st_ino
    finally:
        os.close(descriptor)


def test_a_holder_that_has_gone_is_said(namespace):
    """It is an error of the connection, as of a network that is not there."""
    namespace._holder.signal(9)
    wait.until(lambda: [] if namespace._holder.status() is not None else ["it runs"], "its end", seconds=20)

    with pytest.raises(OSError, match=r"Broken pipe|Connection reset|holds the user namespace of the run is gone"):
        namespace.connect("127.0.0.1", 1, 5)


def test_a_namespace_that_cannot_be_made_is_said(files, monkeypatch):
    """With the words of the program that makes it."""
    monkeypatch.setattr(user_namespace, "AS_USER", ("unshare", "--user", "--map-users=bad"))

    with pytest.raises(ProvisionError, match=r"^cannot make a user namespace: unshare: "):
        UserNamespace(files, "network")


APPARMOR = "kernel.apparmor_restrict_unprivileged_userns"
REFUSED = "unshare: unshare failed: Operation not permitted"


@pytest.mark.parametrize(
    ("settings", "words", "facts"),
    [
        (
            {"kernel.unprivileged_userns_clone": "0", APPARMOR: "0"},
            REFUSED,
            (
                "kernel.unprivileged_userns_clone=0 forbids",
                "as root",
                "`sysctl -w kernel.unprivileged_userns_clone=1`",
            ),
        ),
        (
            {APPARMOR: "1", "user.max_user_namespaces": "0"},
            REFUSED,
            (
                f"user.max_user_namespaces=0 and {APPARMOR}=1 forbid",
                "as root",
                f"`sysctl -w user.max_user_namespaces=10000 {APPARMOR}=0`",
            ),
        ),
        (
            {"user.max_user_namespaces": "31"},
            "unshare: unshare failed: No space left on device",
            (
                "the kernel refuses (unshare: unshare failed: No space left on device)",
                "user.max_user_namespaces=31",
                "around a container",
                "used up",
            ),
        ),
        (
            {"kernel.unprivileged_userns_clone": "1", "user.max_user_namespaces": "96365"},
            REFUSED,
            (
                f"the kernel refuses ({REFUSED}): no sysctl forbids",
                "a container (its seccomp profile), a chroot or a security module",
                "outside of it",
                "as root",
            ),
        ),
    ],
)
def test_the_setting_that_forbids_is_named_with_the_command_that_allows(settings, words, facts):
    """Where no setting forbids it, something around this process does."""
    text = user_namespace.why_forbidden(words, lambda name: settings.get(name, ""))

    assert missing(text, "needs root on this machine, or a user namespace", *facts) == []


# In a user namespace that has all users of this machine root may set limits of its own; ALICE in it may not lift them.
LIMITED = """
import ctypes, os, sys
from pathlib import Path
from pytest_dbcluster.hosts.guests import user_namespace

(made, says_made), (mapped, says_mapped) = os.pipe(), os.pipe()
child = os.fork()
if child:
    os.read(made, 1)
    for name in ("uid_map", "gid_map"):
        Path(f"/proc/{child}/{name}").write_text("0 0 65536")
    os.write(says_mapped, b"x")
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
ctypes.CDLL(None).unshare(0x10000000)  # CLONE_NEWUSER
os.write(says_made, b"x")
os.read(mapped, 1)
Path("/proc/sys/user", sys.argv[2]).write_text(sys.argv[3])
os.setgroups([])
os.setgid(int(sys.argv[1]))
os.setuid(int(sys.argv[1]))
print(user_namespace.root(), user_namespace.why_not())
"""


@pytest.mark.parametrize(
    ("limit", "number"), [("max_user_namespaces", 0), ("max_net_namespaces", 0), ("max_user_namespaces", 100)]
)
def test_a_limit_of_the_kernel_forbids_it(limit, number):
    """For a user who is not root, by a real limit."""
    if reason := users.missing():
        pytest.skip(reason)
    if refused := user_namespace._error_of(user_namespace.AS_USER):
        pytest.skip(user_namespace.why_forbidden(refused))

    printed = users.program(LIMITED, ALICE, limit, number)

    forbids = f"user.{limit}=0 forbids; as root type `sysctl -w user.{limit}=10000`"
    reason = "" if number else f"it needs root on this machine, or a user namespace, which {forbids}"
    assert printed == f"False {reason}\n"


INSIDE = """
import ctypes
from pathlib import Path
from pytest_dbcluster.hosts.guests import user_namespace

ctypes.CDLL(None).prctl(4, 1)  # PR_SET_DUMPABLE, which a change of the user has taken
ctypes.CDLL(None).unshare(0x10000000)  # CLONE_NEWUSER
Path("/proc/self/setgroups").write_text("deny")
for name in ("uid_map", "gid_map"):
    Path("/proc/self", name).write_text(f"0 {uid} 1")
print(os.geteuid(), user_namespace.root(), user_namespace.why_not())
"""


def test_root_of_a_user_namespace_alone_is_not_root_of_the_network():
    """A shell of ``unshare --user --map-root-user`` has a uid of 0, and a network that is not its own."""
    if reason := users.missing():
        pytest.skip(reason)
    if refused := user_namespace._error_of(user_namespace.AS_USER):
        pytest.skip(user_namespace.why_forbidden(refused))

    assert users.run(ALICE, INSIDE, loads=MODULE) == "0 False \n"


def test_a_missing_program_is_named_with_its_package(monkeypatch):
    """Nothing is tried then."""
    monkeypatch.setattr(user_namespace.shutil, "which", lambda name: None if name == "nsenter" else name)
    user_namespace.why_not.cache_clear()

    assert missing(user_namespace.why_not(), "the program nsenter is missing", "(package util-linux)") == []
    user_namespace.why_not.cache_clear()
