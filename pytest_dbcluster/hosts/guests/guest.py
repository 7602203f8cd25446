"""A guest: a kernel that runs as a process of this machine, with an agent as its first process.

Its root is the directory of the release ``vm``, read-only, with an overlay in its memory. It sees directories of this
machine under the same paths, so programs of the cache run in it unchanged. The agent listens on a serial line, which is
one end of a socket pair. When our end closes for any reason, the guest ends.
"""

from __future__ import annotations

import contextlib
import dataclasses
import ipaddress
import os
import re
import shutil
import signal
import socket
import time
from collections.abc import Sequence
from pathlib import Path

from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.formatting import mebibytes
from pytest_dbcluster.hosts.agent import Agent
from pytest_dbcluster.hosts.guests import boot_scripts
from pytest_dbcluster.hosts.guests.disk import Disk, ServedDisk
from pytest_dbcluster.hosts.local_host import LocalHost, LocalProcess
from pytest_dbcluster.releases import guest_system
from pytest_dbcluster.releases.release import Release

BOOT_SECONDS = 60.0  # a guest boots in one second, on a busy machine in several
END_SECONDS = 10.0
FIGURES = "figures"
DIRECTORY = ".guest"  # in the host's directory: scripts, console and sockets of the guest
CONSOLE = "console.log"
LAST_LINES = 15
NO_ROOM = "Bus error - the host"  # the kernel's message if this machine has no space for a page of the guest's memory
MIB = 2**20
OTHER = "choose another directory with TMPDIR"
# The characters of paths that we use in mount options and on a kernel's command line.
PATH = re.compile(r"[A-Za-z0-9_./+@:~-]+")


def memory_directory() -> Path:
    """The directory for a kernel's memory file: that of these variables, otherwise /dev/shm."""
    named = next((path for name in ("TMPDIR", "TMP", "TEMP") if (path := os.environ.get(name))), None)
    return Path(named or ("/dev/shm" if os.path.ismount("/dev/shm") else "/tmp"))


def free_memory() -> int:
    """The free bytes for the memory of guests. Raises OSError."""
    state = os.statvfs(memory_directory())
    return state.f_bavail * state.f_frsize


def no_memory(needed: int) -> str:
    """Why a guest cannot have ``needed`` bytes of memory here; empty if it can."""
    directory = memory_directory()
    try:
        noexec, free = os.statvfs(directory).f_flag & os.ST_NOEXEC, free_memory()
    except OSError as error:
        return f"a guest keeps its memory in a file of {directory}: {error.strerror}; {OTHER}"
    if noexec:
        return f"a guest keeps its memory in a file of {directory}, which is mounted noexec; {OTHER}"
    if free < needed:
        return (
            f"a guest keeps its memory in a file of {directory}, which has {mebibytes(free)} free, but it needs "
            f"{mebibytes(needed)}; make that file system larger, ask for less with memory=, or {OTHER}"
        )
    return ""


# Without it the kernel of a guest drops every packet that the sender's network card should divide.
LARGE_PACKETS = ("gro=1",)


@dataclasses.dataclass(frozen=True)
class GuestHardware:
    """The hardware of a guest."""

    memory: int
    """Size of the memory, in bytes."""

    interfaces: Sequence[tuple[str, ipaddress.IPv4Interface]] = ()
    """(interface of this machine, address in the guest), in order."""

    enter: Sequence[str] = ()
    """The beginning of a command line that runs a command in the network namespace of the interfaces."""

    read_only: Sequence[str] = ()
    """Directories of this machine that the guest can read."""

    writable: Sequence[str] = ()
    """Directories of this machine that the guest can write."""

    disks: Sequence[Disk] = ()
    """The disks /dev/vda, /dev/vdb ... of the guest."""

    keep: bool = False
    """Whether the guest outlives our process."""

    core: int | None = None
    """The core of this machine that runs the guest, as the kernel numbers it; None: any.

    The kernel of a guest and its programs are two processes. They take turns at each system call of a program. On two
    cores one of them wakes the other core up each time. In a virtual machine this makes a guest 2 to 4 times slower.
    """

    more: Sequence[str] = LARGE_PACKETS
    """Further parameters of every interface, such as ``mtu=9000``."""


class Guest:
    """A running guest. Raises ProvisionError if it does not boot.

    ``files``: the host of this machine that starts it. Its directory contains the guest's console and scripts.
    """

    agent: Agent
    """Our connection to the first process of the guest."""

    def __init__(self, name: str, system: Release, files: LocalHost, machine: GuestHardware) -> None:
        self.name = name
        self._system = system
        self._files = files
        self._machine = machine
        self._directory = Path(files.directory, DIRECTORY)
        self._process: LocalProcess | None = None
        self._lost_disk = ""
        self._printed = 0  # bytes on the console before this boot
        self.disks = [ServedDisk(disk, files, self._directory, number) for number, disk in enumerate(machine.disks)]
        for path in (str(self._root), files.directory, *machine.read_only, *machine.writable):
            if not PATH.fullmatch(path):
                raise ProvisionError(
                    f"a guest cannot use the directory {path!r}: its kernel accepts letters, digits and _./+@:~-; "
                    "choose others with XDG_CACHE_HOME and DBCLUSTER_DATA_DIR"
                )
        if reason := no_memory(machine.memory):
            raise ProvisionError(reason)
        self.boot()

    @property
    def _root(self) -> Path:
        return self._system.bin.parent / "root"

    def boot(self) -> None:
        """Start the guest, for the first time or after ``cut``, and wait for its agent. Raises ProvisionError."""
        self._push_scripts()
        self._lost_disk = ""
        with contextlib.suppress(FileNotFoundError):
            self._printed = (self._directory / CONSOLE).stat().st_size
        ours, theirs = socket.socketpair()
        with contextlib.ExitStack() as ends:
            ends.enter_context(theirs)
            directory = os.open(self._directory, os.O_PATH)
            ends.callback(os.close, directory)
            try:
                for disk in self.disks:
                    disk.serve(self._lose_disk)
                self._process = self._files.spawn(
                    self._command(),
                    log=str(self._directory / CONSOLE),
                    directory="/",
                    inherits=[theirs.fileno(), directory],
                )
            except BaseException:
                ours.close()
                self._end_disks()
                raise
        # About 1 in 40 requests that follow a packet closely waits in the serial line until more input arrives.
        self.agent = Agent(
            ours,
            f"guest {self.name}",
            ended="has ended",
            console=self.last_words,
            nudges=True,
            figures=self._directory / FIGURES,
        )
        try:
            self.agent.wait_ready(BOOT_SECONDS)
        except BaseException:
            self.close()
            raise

    def _push_scripts(self) -> None:
        """Write the scripts of the guest's first process."""
        machine = self._machine
        scripts = {
            "root": boot_scripts.ROOT,
            "system": boot_scripts.system(
                self.name,
                read_only=machine.read_only,
                writable=machine.writable,
                addresses=[address for _, address in machine.interfaces],
                disks=bool(machine.disks),
                keep=machine.keep,
                figures=str(self._directory / FIGURES),
            ),
        }
        for name, text in scripts.items():
            self._files.push(text.encode(), str(self._directory / name))

    def _command(self) -> list[str]:
        machine = self._machine
        more = "".join(f",{parameter}" for parameter in machine.more)
        vectors = [
            f"vec{number}:transport=raw,ifname={name},mac={_mac(number, address)}{more}"
            for number, (name, address) in enumerate(machine.interfaces)
        ]
        return [
            *machine.enter,
            *(["taskset", "-c", str(machine.core)] if machine.core is not None and shutil.which("taskset") else []),
            str(self._system.program(guest_system.KERNEL)),
            f"mem={machine.memory // MIB}M",
            "seccomp=on",
            "rootfstype=hostfs",
            f"rootflags={self._root}",
            "ro",
            "init=/bin/busybox",
            f"uml_dir={self._directory}",
            "con=null",
            "con0=null,fd:1",
            "ssl=null",
            "ssl1=fd:{0}",
            *vectors,
            *(disk.parameter("/proc/self/fd/{1}") for disk in self.disks),
            "--",
            "sh",
            "-c",
            f'"mount -t hostfs -o {self._directory} none /mnt && . /mnt/root"',
        ]

    def _lose_disk(self, disk: ServedDisk) -> None:
        """End the guest because the program that serves its disk has ended: its programs would wait forever."""
        why = f": {disk.log[-1]}" if disk.log else ""
        path = disk.disk.path
        self._lost_disk = f"the program of this machine that serves the disk {path} of the guest has ended{why}"
        if self._process:
            with contextlib.suppress(ProvisionError):  # the supervisor has ended, and with it the guest
                self._process.signal(signal.SIGKILL)

    def disk_words(self) -> str:
        """Why requests to a disk failed on this machine, as a clause for a message; empty if all succeeded."""
        words = [(disk.disk.path, line) for disk in self.disks for line in disk.words().splitlines()[-1:]]
        return "; ".join(f"the disk of the guest, {path}: {line}" for path, line in words)

    def last_words(self) -> str:
        """The last lines of the console and the failures of disks and memory, for a message; or empty."""
        return "\n".join(filter(None, [self._last_lines(), self.memory_words(), self.disk_words(), self._lost_disk]))

    def memory_words(self) -> str:
        """Why the guest could not get more memory, as a clause for a message; otherwise empty."""
        if NO_ROOM in self.console():
            return (
                f"{memory_directory()} of this machine, where guests keep their memory, was full; make it larger, ask "
                f"for less with memory=, or {OTHER}"
            )
        if "Out of memory" in self.console():
            return f"the guest's memory of {mebibytes(self._machine.memory)} was used up"
        return ""

    def _last_lines(self) -> str:
        lines = self.console().splitlines()
        # A panic ends with its stack, which does not help users.
        panic = next((number for number, line in enumerate(lines) if "Kernel panic" in line), None)
        return "\n".join(lines[-LAST_LINES:] if panic is None else lines[max(0, panic - LAST_LINES) : panic + 1])

    def console(self) -> str:
        """The guest's output since it was powered on."""
        with contextlib.suppress(FileNotFoundError):
            content = self._files.pull(str(self._directory / CONSOLE), offset=self._printed)
            return content.decode("utf-8", "replace")
        return ""

    @property
    def pid(self) -> int:
        """The process id of the kernel on this machine."""
        assert self._process
        return self._process.pid

    def pause(self) -> None:
        """Freeze the guest. Raises ProvisionError."""
        assert self._process
        self._process.signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let the guest continue. Raises ProvisionError."""
        assert self._process
        self._process.signal(signal.SIGCONT)

    def cut(self) -> None:
        """End the guest as a power cut does: the contents of its memory are lost. Raises ProvisionError."""
        assert self._process
        self._process.signal(signal.SIGKILL)
        self.agent.close()
        limit = time.monotonic() + END_SECONDS
        while self._process.status() is None:
            if time.monotonic() > limit:
                raise ProvisionError(f"guest {self.name} (process {self.pid}) has not ended within {END_SECONDS:g} s")
            time.sleep(0.005)
        self._end_disks()

    def _end_disks(self) -> None:
        for disk in self.disks:
            disk.end()

    def detach(self) -> None:
        """Close our connection. The guest then ends, unless it is kept."""
        self.agent.close()

    def close(self) -> None:
        """End the guest. It is not an error if it has ended already."""
        with contextlib.suppress(ProvisionError):
            self.cut()


def _mac(number: int, address: ipaddress.IPv4Interface) -> str:
    """The hardware address of an interface. It is the same after a restart, because peers keep using it.

    Its first bits mark it as locally administered.
    """
    return ":".join(f"{byte:02x}" for byte in (2, number, *address.ip.packed))
