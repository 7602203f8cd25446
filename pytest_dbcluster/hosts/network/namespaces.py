"""Network namespaces of a run. A process of the run holds each of them, so they end with the run.

A namespace has no name that could outlive it. Objects in it, such as one end of a pair of interfaces, end with it. So
does the other end of the pair.

Without root, all namespaces of a cluster are in a user namespace. Its parent network then plays the host's role.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import shutil
import signal
import socket
import struct
import subprocess
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from pytest_dbcluster import wait
from pytest_dbcluster.errors import CommandFailed, ProvisionError, Unsupported
from pytest_dbcluster.hosts.guests.user_namespace import UserNamespace
from pytest_dbcluster.hosts.host import Process
from pytest_dbcluster.releases import fetched
from pytest_dbcluster.releases.catalogue import GUEST_SYSTEM

Value = TypeVar("Value")

CLONE_NEWNET = 0x40000000  # linux/sched.h
SIOCETHTOOL = 0x8946  # linux/sockios.h
# linux/ethtool.h: checksums, segmentation, large receive. With these offloads, a router would forward packets without a
# checksum, and packets that are too long for its interface.
OFFLOADS = {"sending checksums": 0x17, "TSO": 0x1F, "GSO": 0x24, "GRO": 0x2C}
SYSTEM_PATH = "/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin"
SECONDS = 20.0  # timeout for a namespace, and for a command in it
_libc = ctypes.CDLL(None, use_errno=True)


class Spawns(Protocol):
    """Starts the process that holds a namespace: a host of the run."""

    directory: str
    """The directory for our files on the host."""

    def spawn(self, command: Sequence[str], *, log: str, directory: str) -> Process:
        """Start a program that ends with the run."""


def program(name: str) -> str:
    """The path of a program of this machine, or of the release with the tools of guests. Raises Unsupported."""
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:{SYSTEM_PATH}")
    tools = None if found else fetched.lookup(GUEST_SYSTEM, "")
    if tools and (tools.bin / name).exists():
        return str(tools.bin / name)
    if not found:
        package = {"ip": "iproute2", "tc": "iproute2"}.get(name, "util-linux")
        raise Unsupported(f"a network for a cluster needs the program {name} on this machine (package {package})")
    return found


@functools.cache
def ahead() -> tuple[str, ...]:
    """The command line that gives a program priority over all others of this machine; empty if we may not."""
    command = (program("chrt"), "--rr", "1")
    try:
        done = subprocess.run([*command, program("true")], capture_output=True, check=False, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return ()
    return () if done.returncode else command


def come_first() -> None:
    """Give this thread priority over all other programs of this machine, if we may."""
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))


class Namespace:
    """One network namespace and the process that holds it; ``spawns`` starts that process.

    ``of``: an existing process that holds it, such as a container's first one; None for a new namespace.
    ``user``: the user namespace that contains it; None for that of this process.
    """

    def __init__(self, spawns: Spawns, name: str, of: int | None = None, user: UserNamespace | None = None) -> None:
        self.name = name
        self.user = user
        self._holder: Process | None = None
        if of is not None:
            self._enter(of)
            return
        command = self._beside([program("unshare"), "--net", program("sleep"), "infinity"])
        log = f"{spawns.directory}/{name}.log"
        self._holder = holder = spawns.spawn(command, log=log, directory=spawns.directory)
        self._enter(holder.pid)
        problems = functools.partial(self._problems, holder, log)
        wait.until(problems, f"the network namespace of {name}", seconds=SECONDS, poll=0.002)
        self._made = self._now()

    def _enter(self, pid: int) -> None:
        self.pid = pid
        self.path = f"/proc/{pid}/ns/net"
        self._made = self._now()

    def _now(self) -> tuple[int, int] | None:
        """The identity of the process's namespace; None if the process has ended."""
        try:
            state = os.stat(self.path)  # noqa: PTH116  (a link of the kernel, not a path)
        except OSError:
            return None
        return state.st_dev, state.st_ino

    def why_lost(self) -> str:
        """Why the namespace cannot be entered any more, as a clause for a message; empty while it can."""
        if self._made and self._now() == self._made:
            return ""
        return f"process {self.pid}, which held the network namespace of {self.name}, has ended"

    def _problems(self, holder: Process, log: str) -> list[str]:
        if (status := holder.status()) is not None:
            raise Unsupported(
                f"cannot make a network namespace: unshare ended with {status}: {Path(log).read_text().strip()}"
            )
        others = [os.stat(f"/proc/{pid}/ns/net") for pid in ("self", self.outside)]  # noqa: PTH116  (links, no paths)
        if self._now() in [(other.st_dev, other.st_ino) for other in others]:
            return ["it is still that of another process"]
        return []

    @property
    def outside(self) -> int:
        """A process in the network that this process can reach: its own, or that of the user namespace."""
        return self.user.pid if self.user else os.getpid()

    def _beside(self, command: Sequence[str]) -> list[str]:
        """The command line that runs a command in the network that this process can reach."""
        return self.user.command_inside(command) if self.user else list(command)

    def command_inside(self, command: Sequence[str] = ()) -> list[str]:
        """The command line that runs a command in this namespace, without an intermediate process."""
        return [program("nsenter"), *(self.user.options if self.user else ()), f"--net={self.path}", *command]

    def batch(self, name: str, lines: Sequence[str]) -> None:
        """Run these lines with ``ip`` or ``tc`` in this namespace. Raises ProvisionError with the refused line."""
        self._batch(self.command_inside([program(name), "-batch", "-"]), lines)

    def batch_here(self, name: str, lines: Sequence[str]) -> None:
        """Run these lines with ``ip`` in the network that this process can reach. Raises ProvisionError."""
        self._batch(self._beside([program(name), "-batch", "-"]), lines)

    def output(self, name: str, arguments: Sequence[str]) -> str:
        """The output of ``ip`` or ``tc`` in this namespace. Raises ProvisionError."""
        return self._run(self.command_inside([program(name), *arguments]))

    def _batch(self, command: Sequence[str], lines: Sequence[str]) -> None:
        self._run(command, "\n".join(lines) + "\n")

    def _run(self, command: Sequence[str], text: str = "") -> str:
        try:
            done = subprocess.run(command, input=text, capture_output=True, text=True, check=False, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            raise CommandFailed(command, None, host=self.name, seconds=SECONDS) from None
        if done.returncode:
            raise CommandFailed(command, done.returncode, done.stdout, done.stderr, host=self.name)
        return done.stdout

    def make_socket(self, family: int, kind: int, protocol: int = 0) -> socket.socket:
        """A new socket in this namespace; it stays there whichever process uses it. Raises OSError."""
        if self.user:
            return self.user.make_socket(family, kind, protocol, of=self.pid)

        def make_socket() -> socket.socket:
            with Path(self.path).open("rb") as file:
                if _libc.setns(file.fileno(), CLONE_NEWNET):
                    number = ctypes.get_errno()
                    raise OSError(number, os.strerror(number))
            return socket.socket(family, kind, protocol)

        return in_new_thread(make_socket)

    def without_offloads(self, interfaces: Sequence[str]) -> None:
        """Make these interfaces send undivided packets with checksums. Raises ProvisionError."""
        try:
            with self.make_socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
                _switch_off(control, interfaces)
        except OSError as error:
            raise ProvisionError(f"cannot turn off the offloads of {', '.join(interfaces)}: {error}") from None

    def set(self, variable: str, value: str) -> None:
        """Set a variable below /proc/sys/net in this namespace. Raises ProvisionError."""
        self._run(self.command_inside([program("tee"), f"/proc/sys/net/{variable}"]), value)

    def close(self) -> None:
        """End our process that holds the namespace. The namespace ends when no other process is in it."""
        if self._holder:
            self._holder.signal(signal.SIGKILL)


def in_new_thread(function: Callable[[], Value]) -> Value:
    """The result of a function, called in a new thread."""
    results: list[Value] = []
    errors: list[BaseException] = []

    def call() -> None:
        try:
            results.append(function())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]


def _switch_off(control: socket.socket, interfaces: Sequence[str]) -> None:
    for interface in interfaces:
        for command in OFFLOADS.values():
            _ethtool(control, interface, command)


def _ethtool(control: socket.socket, interface: str, command: int) -> None:
    """Set a value of an interface's driver to 0."""
    import fcntl

    value: Any = ctypes.create_string_buffer(struct.pack("II", command, 0))
    request = struct.pack("16sP", interface.encode(), ctypes.addressof(value)).ljust(40, b"\0")
    fcntl.ioctl(control.fileno(), SIOCETHTOOL, request)
