"""Network namespaces of a run. A process of the run holds each of them, so none is left when the run has ended.

A namespace has no name that would outlive it. What is made in it, such as one end of a pair of interfaces, goes with
it, and so does the other end, wherever that one is.
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
from pytest_dbcluster.hosts.host import Process
from pytest_dbcluster.releases import fetched
from pytest_dbcluster.releases.catalogue import GUEST_SYSTEM

Value = TypeVar("Value")

CLONE_NEWNET = 0x40000000  # linux/sched.h
SIOCETHTOOL = 0x8946  # linux/sockios.h
# linux/ethtool.h: checksums, segmentation, receiving in larger pieces. A router that takes packets as they are would
# forward packets without a checksum, and longer than its interface allows.
OFFLOADS = {"sending checksums": 0x17, "TSO": 0x1F, "GSO": 0x24, "GRO": 0x2C}
SYSTEM_PATH = "/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin"
SECONDS = 20.0  # until a namespace is there, and for a command in it
_libc = ctypes.CDLL(None, use_errno=True)


class Spawns(Protocol):
    """What starts the process that holds a namespace: a host of the run."""

    directory: str

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
        raise Unsupported(f"a network for a cluster needs the program {name} of this machine (package {package})")
    return found


@functools.cache
def ahead() -> tuple[str, ...]:
    """The command line that lets a program run before all others of this machine; empty where we may not."""
    command = (program("chrt"), "--rr", "1")
    try:
        done = subprocess.run([*command, program("true")], capture_output=True, check=False, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return ()
    return () if done.returncode else command


def come_first() -> None:
    """Let this thread run before all other programs of this machine, where we may."""
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))


class Namespace:
    """One network namespace and the process that holds it; ``spawns`` starts that process.

    ``of``: the process of somebody else that holds it already, such as a container's first one; None for a new one.
    """

    def __init__(self, spawns: Spawns, name: str, of: int | None = None) -> None:
        self.name = name
        self._holder: Process | None = None
        if of is not None:
            self._enter(of)
            return
        command = [program("unshare"), "--net", program("sleep"), "infinity"]
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
        """What tells the process's namespace from all others; None when the process has ended."""
        try:
            state = os.stat(self.path)  # noqa: PTH116  (a link of the kernel, not a path)
        except OSError:
            return None
        return state.st_dev, state.st_ino

    def lost(self) -> str:
        """Why nobody can enter the namespace any more, as a clause for a message; empty while one can."""
        if self._made and self._now() == self._made:
            return ""
        return f"process {self.pid}, which held the network namespace of {self.name}, has ended"

    def _problems(self, holder: Process, log: str) -> list[str]:
        if (status := holder.status()) is not None:
            raise Unsupported(
                f"cannot make a network namespace: unshare ended with {status}: {Path(log).read_text().strip()}"
            )
        own = os.stat("/proc/self/ns/net")  # noqa: PTH116
        return [] if self._now() != (own.st_dev, own.st_ino) else ["it is that of this process"]

    def entering(self, command: Sequence[str] = ()) -> list[str]:
        """The command line that runs a command in this namespace, without another process in between."""
        return [program("nsenter"), f"--net={self.path}", *command]

    def batch(self, name: str, lines: Sequence[str]) -> None:
        """Give these lines to ``ip`` or ``tc`` in this namespace. Raises ProvisionError with the line it refused."""
        self._batch(self.entering([program(name), "-batch", "-"]), lines)

    def batch_here(self, name: str, lines: Sequence[str]) -> None:
        """Give these lines to ``ip`` in the namespace of this process. Raises ProvisionError."""
        self._batch([program(name), "-batch", "-"], lines)

    def _batch(self, command: Sequence[str], lines: Sequence[str]) -> None:
        try:
            done = subprocess.run(
                command, input="\n".join(lines) + "\n", capture_output=True, text=True, check=False, timeout=SECONDS
            )
        except subprocess.TimeoutExpired:
            raise CommandFailed(command, None, host=self.name, seconds=SECONDS) from None
        if done.returncode:
            raise CommandFailed(command, done.returncode, done.stdout, done.stderr, host=self.name)

    def inside(self, function: Callable[[], Value]) -> Value:
        """The result of a function that is called in this namespace, in a thread of its own."""
        results: list[Value] = []
        errors: list[BaseException] = []

        def enter() -> None:
            try:
                with Path(self.path).open("rb") as file:
                    if _libc.setns(file.fileno(), CLONE_NEWNET):
                        number = ctypes.get_errno()
                        raise OSError(number, os.strerror(number))
                results.append(function())
            except BaseException as error:
                errors.append(error)

        thread = threading.Thread(target=enter)
        thread.start()
        thread.join()
        if errors:
            raise errors[0]
        return results[0]

    def without_offloads(self, interfaces: Sequence[str]) -> None:
        """Let these interfaces send each packet whole and with its checksum. Raises ProvisionError."""
        try:
            self.inside(lambda: _switch_off(interfaces))
        except OSError as error:
            raise ProvisionError(f"cannot turn the offloads of {', '.join(interfaces)} off: {error}") from None

    def set(self, variable: str, value: str) -> None:
        """Set a variable below /proc/sys/net in this namespace. Raises ProvisionError."""
        path = Path("/proc/sys/net", variable)
        try:
            self.inside(lambda: path.write_text(value))
        except OSError as error:
            raise ProvisionError(f"cannot write {value} to {path}: {error.strerror}") from None

    def close(self) -> None:
        """End our process that holds the namespace. The namespace goes when no other process is in it."""
        if self._holder:
            self._holder.signal(signal.SIGKILL)


def _switch_off(interfaces: Sequence[str]) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for interface in interfaces:
            for command in OFFLOADS.values():
                _ethtool(control, interface, command)


def _ethtool(control: socket.socket, interface: str, command: int) -> None:
    """Set a value of an interface's driver to 0."""
    import fcntl

    value: Any = ctypes.create_string_buffer(struct.pack("II", command, 0))
    request = struct.pack("16sP", interface.encode(), ctypes.addressof(value)).ljust(40, b"\0")
    fcntl.ioctl(control.fileno(), SIOCETHTOOL, request)
