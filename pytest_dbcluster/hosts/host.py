"""Host: a machine, a container or a directory where commands run.

All input and output for a cluster goes through a host. Unit tests of the layers above use a fake host. ``Pauses``,
``Partitions``, ``Falls``, ``LimitsWrites``, ``BlockDevice`` and ``EndsCommands`` are optional protocols that only some
hosts implement. Test for them with ``isinstance``.
"""

from __future__ import annotations

import abc
import concurrent.futures
import dataclasses
import errno
import functools
import os
import select
import shutil
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

from pytest_dbcluster import wait
from pytest_dbcluster.errors import CommandFailed

# Connects over TCP to an address and a port, with a timeout in seconds. Raises OSError.
Connects = Callable[[str, int, float], socket.socket]
Item = TypeVar("Item")
Answer = TypeVar("Answer")
MOST_ASKED = 256  # concurrent queries, with nested ones
# A test of the shell on a host: whether a signal has stopped the process with this id.
IS_STOPPED = "{{ read -r state </proc/{}/stat && case ${{state##*) }} in [Tt]*) ;; *) false ;; esac; }} 2>/dev/null"
TELL_SECONDS = 5.0  # timeout for the answer of a remote host to such a test
DATA = "data"  # in the directory of a host: the data of its server
LOOK_SECONDS = 1.0  # between two checks of a host or server while we wait for it


def connect_socket(
    address: str, port: int, seconds: float, look: Callable[[], None], made: socket.socket
) -> socket.socket:
    """Connect a new socket. Raises TimeoutError after ``seconds``, another OSError, and what ``look`` raises.

    It calls ``look`` once a second, because a host that is gone does not even refuse connections.
    """
    limit = time.monotonic() + seconds
    try:
        made.setblocking(False)
        error = made.connect_ex((address, port))
        poll = select.poll()
        poll.register(made, select.POLLOUT)
        while error == errno.EINPROGRESS:
            left = limit - time.monotonic()
            if poll.poll(1000 * max(0.0, min(LOOK_SECONDS, left))):
                error = made.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            elif left <= 0:
                raise TimeoutError("timed out")
            else:
                wait.raise_if_interrupted()
                look()
        if error:
            raise OSError(error, os.strerror(error))
        made.settimeout(seconds)
    except BaseException:
        made.close()
        raise
    return made


def through_socket(path: str) -> Connects:
    """Connect through a Unix socket of this machine. Its path may be longer than 107 bytes (unix(7))."""

    def connect(address: str, port: int, seconds: float) -> socket.socket:
        directory = os.open(Path(path).parent, os.O_PATH)
        stream = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            stream.settimeout(seconds)
            stream.connect(f"/proc/self/fd/{directory}/{Path(path).name}")
        except BaseException:
            stream.close()
            raise
        finally:
            os.close(directory)
        return stream

    return connect


@dataclasses.dataclass(frozen=True, slots=True)
class Completed:
    """The output and the duration of a command that exited with status 0."""

    stdout: str
    """The standard output."""

    stderr: str
    """The standard error output."""

    seconds: float
    """Duration in seconds."""


def result_of(
    command: Sequence[str], status: int | None, stdout: str, stderr: str, *, host: str, timeout: float, began: float
) -> Completed:
    """The result of a command with status 0. Raises CommandFailed for another status.

    status: None if the command was killed after ``timeout`` seconds. began: its start, by ``time.monotonic``.
    """
    if status != 0:
        raise CommandFailed(command, status, stdout, stderr, host=host, seconds=timeout if status is None else None)
    return Completed(stdout, stderr, time.monotonic() - began)


class Process(abc.ABC):
    """A long-lived program on a host."""

    @property
    @abc.abstractmethod
    def pid(self) -> int:
        """The process id on this machine; 0 if this machine cannot see the process."""

    @abc.abstractmethod
    def status(self) -> int | None:
        """The exit status: None while the program runs, negative for the signal that ended the program."""

    def cpu_seconds(self) -> float | None:
        """The CPU time of the program and its ended children so far, in seconds; None if it is unknown.

        The default reads the process of this machine with the id ``pid``. It is None after the end of the program.
        """
        from pytest_dbcluster.system import processes  # psutil comes with it, which collecting tests does without

        return processes.cpu_seconds(self.pid)

    def is_stopped(self) -> bool:
        """Whether a signal such as SIGSTOP has stopped the program. Raises ProvisionError if its host does not answer.

        The default reads the process of this machine with the id ``pid``.
        """
        from pytest_dbcluster.system import processes

        return processes.is_stopped(self.pid)

    @abc.abstractmethod
    def signal(self, number: int) -> None:
        """Send a signal to the program and its child processes. Does nothing after the program has ended."""


class Host(abc.ABC):
    """A place where commands run, programs start and files are stored.

    All paths are absolute paths on the host. Reading a missing file raises FileNotFoundError.
    """

    name: str
    """The name of the host in its cluster, such as ``node1``."""

    address: str
    """The address that peers and clients connect to."""

    connects: Connects | None = None
    """Connects our process to the host; None if this machine is in the host's network."""

    directory: str
    """The directory for our files on the host."""

    root: bool
    """Whether commands run as root on the host."""

    patience: float = 1.0
    """The factor on timeouts after which a server counts as hanging; 1 for this machine."""

    machine: str = ""
    """The machine of the host, equal for all its hosts; empty for this machine."""

    @abc.abstractmethod
    def run(
        self,
        command: Sequence[str],
        *,
        seconds: float = 60.0,
        environment: Mapping[str, str] | None = None,
        text: str = "",
    ) -> Completed:
        """Run a command and wait for its end. ``text`` is its standard input, ``seconds`` its timeout.

        Raises CommandFailed for a non-zero exit status, after the timeout, and for a missing program.
        """

    @abc.abstractmethod
    def spawn(
        self,
        command: Sequence[str],
        *,
        log: str,
        directory: str,
        environment: Mapping[str, str] | None = None,
    ) -> Process:
        """Start a long-lived program and append its output to the file ``log``. Raises ProvisionError."""

    @abc.abstractmethod
    def push(self, content: bytes, path: str, *, mode: int = 0o600) -> None:
        """Write a file; missing parent directories are created. ``mode``: the permissions of the file."""

    def push_once(self, content: bytes, path: str) -> None:
        """Write a file, unless this method wrote the same content there last. Only this method may write or remove it.

        It saves a round trip to a remote host in every round.
        """
        pushed: dict[str, bytes] = self.__dict__.setdefault("_pushed", {})
        if pushed.get(path) != content:
            self.push(content, path)
            pushed[path] = content

    @abc.abstractmethod
    def pull(self, path: str, *, offset: int = 0) -> bytes:
        """The content of a file from byte ``offset`` (0-based) to its end."""

    @abc.abstractmethod
    def copy_tree(self, source: str, target: str, *, durable: bool = False) -> None:
        """Copy a local directory to the host. The user who runs the servers there owns the copy.

        ``durable``: the copy is on disk when this method returns. Raises ProvisionError.
        """

    @abc.abstractmethod
    def remove_tree(self, path: str) -> None:
        """Remove a directory and everything in it. A missing directory is not an error."""

    def take_tree(self, source: str, target: Path) -> None:
        """Move an unused directory of the host to a path of this machine. Raises ProvisionError.

        The default is for hosts whose files have the same path on this machine.
        """
        try:
            Path(source).rename(target)
        except OSError:  # the target is on another file system
            self.copy_tree(source, str(target), durable=True)

    def tree_size(self, path: str) -> int:
        """The size of all files in a directory of the host, in bytes. The default reads them on this machine."""
        from pytest_dbcluster.system import cache  # imports psutil, which slows the collection of tests

        return cache.size(Path(path))

    def bring(self, tree: Path) -> None:  # noqa: B027  (most hosts see the files of this machine)
        """Copy a local directory or file to the host, under the same path, for programs that run there.

        Nobody changes the copy there. A second call for the same tree returns quickly. The default does nothing,
        because the host sees the files of this machine. Raises ProvisionError.
        """

    def make_room(self, needed: int) -> None:  # noqa: B027  (most disks are as large as they are)
        """If the host's disk can grow, make this many bytes free for its data. Raises ProvisionError."""

    def free_bytes(self) -> int:
        """The free space for the host's data, in bytes. The default reads its directory on this machine."""
        return shutil.disk_usage(self.directory).free

    def cores(self) -> float:
        """How many CPUs the programs of the host may use; the default is the number that we may use here."""
        from pytest_dbcluster.system import probes

        return probes.usable_cores()

    def flush_seconds(self) -> float:
        """The time of one flush to the disk with the server's data, in seconds.

        The default measures it on this machine, in the directory of the host. Raises ConfigError or ProvisionError.
        """
        from pytest_dbcluster.system import probes

        return probes.fsync_seconds(self.directory)

    def port(self, usual: int) -> int:
        """The port for a program whose default port is ``usual``.

        A host with its own address returns ``usual``. Hosts that share an address return a different free port at each
        call. No other run uses this port while this run lives.
        """
        return usual

    def tunnel(self, port: int) -> str:
        """The path of a socket of this machine that leads to a port of the host.

        Empty if programs of this machine can reach the host at its address. Raises OSError.
        """
        return ""

    def limit_reached(self) -> str:
        """Which limit of the host ended a program, as a clause for a message; empty if no limit did."""
        return ""

    def why_lost(self) -> str:
        """Why the host cannot be used any more, as a clause for a message; empty while it can be used."""
        return ""

    def cpu_seconds(self) -> float | None:
        """The CPU time of all programs of this host so far, in seconds; None if it is unknown."""
        return None

    def running_cpu_seconds(self) -> float | None:
        """As ``cpu_seconds``, always with the programs that still run."""
        return self.cpu_seconds()

    def usage(self) -> Mapping[str, float]:
        """The counters of the host's kernel; empty if the host uses the kernel of this machine.

        ``cpu_user``, ``cpu_system``, ``cpu_iowait``, ``cpu_idle`` in CPU seconds; ``disk_read_bytes``,
        ``disk_write_bytes``; ``network_received_bytes``, ``network_sent_bytes``.

        If the host has a ``machine``, the counters are those of the whole machine. If its kernel counts them, there are
        also ``cpu_steal``, ``disk_writes`` and ``network_packets`` (sent). There are ``pressure_cpu``, ``pressure_io``
        and ``pressure_memory`` in seconds in which some task waited. Empty if they cannot be read.
        """
        return {}

    def command_line(self, command: Sequence[str]) -> list[str]:
        """The command line that runs a program of the host, for a user at a shell of this machine.

        Empty if the host uses this machine's programs, or if this machine has no client program for it.
        """
        return []


def at_once(items: Sequence[Item], ask: Callable[[Item], Answer], hosts: Sequence[Host]) -> list[Answer]:
    """Query all items and return the answers in order. ``hosts``: the hosts that answer.

    An answer of another machine, or of a network that this machine is not connected to, takes a round trip. If a host
    is there, each query runs in a separate thread. On this machine queries run one after the other, because threads
    cost more CPU than the answers take. Raises the first error, after all queries have ended.
    """
    if len(items) < 2 or not any(host.machine or host.connects for host in hosts):
        return [ask(item) for item in items]
    over = threading.Event()

    def ask_interruptibly(item: Item) -> Answer:
        with wait.interruptible_by(over):
            return ask(item)

    answers = [_query_threads().submit(ask_interruptibly, item) for item in items]
    try:
        concurrent.futures.wait(answers)
    except BaseException:  # Ctrl-C: let no query run while the caller ends the hosts
        over.set()
        concurrent.futures.wait(answers)
        raise
    return [answer.result() for answer in answers]


@functools.cache
def _query_threads() -> concurrent.futures.ThreadPoolExecutor:
    """The threads for queries. They stay for the next queries, because starting seven takes longer than their queries.

    There are more than enough, because a query may start others.
    """
    return concurrent.futures.ThreadPoolExecutor(MOST_ASKED, thread_name_prefix="dbcluster-each")


def ask_both(one: Callable[[], Item], other: Callable[[], Answer], hosts: Sequence[Host]) -> tuple[Item, Answer]:
    """The answers to two independent queries; they run in this order or concurrently, as in ``at_once``."""
    asks: list[Callable[[], Any]] = [one, other]
    answers = at_once(asks, lambda ask: ask(), hosts)
    return answers[0], answers[1]


@runtime_checkable
class Pauses(Protocol):
    """An optional protocol: freeze every process of the host, as on a machine that stalls."""

    def pause(self) -> None:
        """Freeze every process. Raises ProvisionError."""

    def resume(self) -> None:
        """Let the processes continue. Raises ProvisionError."""


@runtime_checkable
class Partitions(Protocol):
    """An optional protocol: cut the host off from all other hosts and from this machine."""

    def partition(self) -> None:
        """Disconnect the host from its network. Raises ProvisionError."""

    def heal(self) -> None:
        """Connect the host to its network again, with the same address. Raises ProvisionError."""


@runtime_checkable
class Falls(Protocol):
    """An optional protocol: kill every process of the host at once, as a power cut does."""

    def kill(self) -> None:
        """Kill every process. The files stay, and the host stays usable. Raises ProvisionError."""


@runtime_checkable
class LimitsWrites(Protocol):
    """An optional protocol: a limit on the writes of the host's programs can change while they run."""

    def write_limit(self) -> int | None:
        """The write operations/s that the kernel allows; None without a limit."""

    def limit_writes(self, iops: int) -> None:
        """Change an existing limit to so many write operations/s. Raises ProvisionError."""


@runtime_checkable
class BlockDevice(Protocol):
    """An optional protocol: the host has a separate disk, a block device that only its programs write to.

    ``Host.copy_tree`` to the directory ``DATA`` of the host does ``place`` and ``mount`` with this device. Code that
    puts another device on top of it (DRBD) does these steps itself. The end of the disk stays free for the metadata of
    such a device: a byte of 16384, and 1 MiB.
    """

    device: str
    """The path of the device on the host."""

    def place(self, source: str, *, durable: bool = False) -> None:
        """Make a file system on the disk, with a copy of a directory of this machine. It is not mounted afterwards.

        ``durable``: the copy is on disk when this method returns. Raises ProvisionError, also for a disk too small.
        """

    def copy_disk(self, other: Host, *, durable: bool = False) -> None:
        """Copy the disk of another host of the same cluster, bit by bit. Both disks must be unmounted.

        ``durable``: as in ``place``. Raises ProvisionError.
        """

    def mount(self, device: str) -> None:
        """Mount a device with such a file system at the directory ``DATA`` of the host. Raises ProvisionError.

        If ``self.device`` was mounted, the host mounts it again after a power cut.
        """

    def unmount(self) -> None:
        """Undo ``mount``, after the end of the server. Raises ProvisionError."""


@runtime_checkable
class ReplicationLink(Protocol):
    """An optional protocol: a second network interface to the other nodes of the cluster, only for replication."""

    replication_address: str
    """The address of that interface; empty if the topology of the cluster does not ask for one."""


def replication_address(host: Host) -> str:
    """The address at which the other nodes replicate with a host: that of its replication link, if it has one."""
    return (host.replication_address if isinstance(host, ReplicationLink) else "") or host.address


@runtime_checkable
class EndsCommands(Protocol):
    """An optional protocol: end the running commands of ``run`` from another thread."""

    def end_commands(self) -> None:
        """Kill the commands; their callers get CommandFailed. Does nothing on a lost host."""
