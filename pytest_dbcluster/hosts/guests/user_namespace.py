"""Network namespaces without root: they are in a user namespace, in which their user is root.

Such a network has no connection to that of this machine. We start the programs that need it inside it. Our process gets
its sockets from a small process inside it.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import functools
import os
import shutil
import signal
import socket
import subprocess
import sys
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path

from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.hosts.guests import socket_maker
from pytest_dbcluster.hosts.host import connect_socket
from pytest_dbcluster.hosts.local_host import LocalHost

SECONDS = 20.0  # timeout for a namespace, and for a socket
PROGRAMS = ("unshare", "nsenter")
GONE = "the process that holds the user namespace of the run is gone"
# The beginning of a command line that runs a command in a new network namespace.
AS_ROOT = ("unshare", "--net")
AS_USER = ("unshare", "--user", "--map-root-user", "--net")
NS_GET_USERNS = 0xB701  # linux/nsfs.h
# Kernel settings that forbid user namespaces to ordinary users: name, forbidding value, allowing value.
SWITCHES = (
    ("kernel.unprivileged_userns_clone", "0", "1"),  # Debian's kernels
    ("user.max_user_namespaces", "0", "10000"),
    ("user.max_net_namespaces", "0", "10000"),
    ("kernel.apparmor_restrict_unprivileged_userns", "1", "0"),  # Ubuntu's kernels
)


@functools.cache
def root() -> bool:
    """Whether this process may make network namespaces and connect them with this machine's network."""
    return os.geteuid() == 0 and _own_network() and not _error_of(AS_ROOT)


def _own_network() -> bool:
    """Whether root here is also root of this network; not so in a user namespace of an ordinary user."""
    with contextlib.suppress(OSError), Path("/proc/self/ns/net").open("rb") as network:
        owner = fcntl.ioctl(network, NS_GET_USERNS)
        try:
            return os.path.samestat(os.fstat(owner), os.stat("/proc/self/ns/user"))  # noqa: PTH116  (no path)
        finally:
            os.close(owner)
    return False


@functools.cache
def why_not() -> str:
    """Why this process cannot make a network namespace, as a clause; empty if it can."""
    if absent := [program for program in PROGRAMS if not shutil.which(program)]:
        return f"the program {' and '.join(absent)} is missing here (package util-linux)"
    if root() or not (said := _error_of(AS_USER)):
        return ""
    return why_forbidden(said)


def _error_of(words: Sequence[str]) -> str:
    """The error output of a command that failed; empty if it succeeded."""
    try:
        done = subprocess.run([*words, "true"], capture_output=True, text=True, check=False, timeout=SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return (done.stderr.strip() or f"{words[0]} ended with {done.returncode}") if done.returncode else ""


def setting(name: str) -> str:
    """The value of a kernel setting (sysctl); empty if there is no such setting."""
    try:
        return Path("/proc/sys", *name.split(".")).read_text().strip()
    except OSError:
        return ""


def why_forbidden(said: str, setting: Callable[[str], str] = setting) -> str:
    """Which setting forbids a user namespace, and what to type, as a clause. said: the error message."""
    off = [(name, value, allows) for name, value, allows in SWITCHES if setting(name) == value]
    if off:
        named = " and ".join(f"{name}={value}" for name, value, _ in off)
        typed = " ".join(f"{name}={allows}" for name, _, allows in off)
        why = f"{named} {'forbids' if len(off) == 1 else 'forbid'}; as root type `sysctl -w {typed}`"
    elif os.strerror(errno.ENOSPC) in said:  # the kernel's error for too many namespaces
        limit = SWITCHES[1][0]
        why = f"the kernel refuses ({said}): {limit}={setting(limit)}, or that around a container, is used up"
    else:
        why = (
            f"the kernel refuses ({said}): no sysctl forbids it, so a container (its seccomp profile), a chroot or a "
            "security module does; run outside of it, or as root"
        )
    return f"it needs root on this machine, or a user namespace, which {why}"


class UserNamespace:
    """A user namespace, and a network namespace in it. ``files``: the host that starts the process that holds both.

    Raises ProvisionError.
    """

    def __init__(self, files: LocalHost, name: str) -> None:
        self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._line.settimeout(SECONDS)
        weakref.finalize(self, self._line.close)
        log = f"{files.directory}/{name}.log"
        command = [*AS_USER, sys.executable, "-I", "-S", socket_maker.__file__, "{0}"]
        with theirs:
            self._holder = files.spawn(command, log=log, directory=files.directory, inherits=[theirs.fileno()])
        self.pid = self._holder.pid
        try:
            self.make_socket(socket.AF_INET, socket.SOCK_STREAM).close()
        except OSError as error:
            said = Path(log).read_text(errors="replace").strip() or str(error)
            self.detach()
            raise ProvisionError(f"cannot make a user namespace: {said}") from None

    @property
    def options(self) -> list[str]:
        """The options of nsenter that make a command root of the user namespace."""
        return [f"--user=/proc/{self.pid}/ns/user", "--preserve-credentials"]

    def command_inside(self, command: Sequence[str] = ()) -> list[str]:
        """The command line that runs a command in both namespaces."""
        return ["nsenter", *self.options, f"--net=/proc/{self.pid}/ns/net", *command]

    def make_socket(self, family: int, kind: int, protocol: int = 0, *, of: int = 0) -> socket.socket:
        """A new socket in the network namespace, or in that of the process ``of`` in it. Raises OSError."""
        ours, theirs = socket.socketpair()
        with ours:
            with theirs:
                message = f"{of or self.pid} {family:d} {kind:d} {protocol:d}"
                socket.send_fds(self._line, [message.encode()], [theirs.fileno()])
            ours.settimeout(SECONDS)
            said, files, _, _ = socket.recv_fds(ours, socket_maker.LENGTH, 1)
        if said == socket_maker.MADE:
            return socket.socket(fileno=files[0])
        if not said:
            raise ConnectionError(GONE)
        raise OSError(int(said), os.strerror(int(said)))

    def connect(self, address: str, port: int, seconds: float) -> socket.socket:
        """Connect over TCP to an address in the network. seconds: the timeout. Raises OSError."""
        made = self.make_socket(socket.AF_INET, socket.SOCK_STREAM)
        return connect_socket(address, port, seconds, self._look, made)

    def _look(self) -> None:
        if self._holder.status() is not None:
            raise ConnectionError(GONE)

    def detach(self) -> None:
        """Make no more sockets. The process that holds the namespaces sleeps from now on."""
        self._line.close()

    def close(self) -> None:
        """End the process that holds the namespaces. They disappear when no other process is in them."""
        self.detach()
        with contextlib.suppress(ProvisionError):
            self._holder.signal(signal.SIGKILL)
