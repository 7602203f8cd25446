"""CPU stacks: the functions that the servers of a cluster were in, sampled by ``perf`` of Linux on their hosts.

Names are those that a program exports, so a release without debug symbols has names too. The callers come from its
tables for exceptions, which all releases have.
"""

from __future__ import annotations

import collections
import contextlib
import re
import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from pytest_dbcluster.clusters.servers.node import Node, of_each
from pytest_dbcluster.errors import CommandFailed, ProvisionError, Unsupported
from pytest_dbcluster.hosts.host import Host, Process
from pytest_dbcluster.measuring.why.stacks import Stacks

PERF = "perf"
MOST_SAMPLES, LEAST_PER_SECOND, MOST_PER_SECOND = 5000, 29, 499  # of a round; of each core
STACK, MOST_DATA = 16384, "256M"  # bytes: of a thread's stack, which each sample copies; of all samples of a host
BEGIN_SECONDS, END_SECONDS, READ_SECONDS = 10.0, 10.0, 120.0
NOT_INSTALLED = "perf is not installed (Debian: linux-perf, Ubuntu: linux-tools-generic)"
PERMISSION = "/proc/sys/kernel/perf_event_paranoid"
PERMITTED = 2  # the highest value with which users may sample their own processes
ORDERS, ANSWERS = "perf.orders", "perf.answers"  # pipes to perf and from it, in the directory of the host
ENABLE = 'echo enable >"$1" && read -r answer <"$2"'
SAMPLE, FRAME = re.compile(r"\s*(\d+)\s*$"), re.compile(r"\s+[0-9a-f]+ (.+) \((.*)\)$")
NO_NAME = "[unknown]"
# Its callers start the thread. A stack that is deeper than STACK lacks them, and would be drawn apart.
OUTERMOST = "dispatch_command"


def why_not(nodes: Sequence[Node]) -> str:
    """Why these servers cannot be sampled; empty if it can be tried."""
    for node in nodes:
        try:
            node.host.run([PERF, "--version"])
        except CommandFailed:
            return f"{node.name}: {NOT_INSTALLED}"
    return ""


def setting_to_change(value: int, *, root: bool) -> str:
    """The command that lets a user sample own processes; empty if that is permitted. value: that of PERMISSION."""
    if root or value <= PERMITTED:
        return ""
    return f"kernel.perf_event_paranoid is {value}; sudo sysctl kernel.perf_event_paranoid={PERMITTED}"


class Recording:
    """The samples of the servers of a cluster in one round. seconds: the usual time of a round."""

    def __init__(self, nodes: Sequence[Node], seconds: float) -> None:
        self._nodes = nodes
        self._seconds = seconds
        self._processes: list[Process] = []
        self.stacks: dict[tuple[str, ...], float] = collections.defaultdict(float)

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Sample during the block, and read ``stacks`` after it. Raises Unsupported if perf does not do it."""
        try:
            for node in self._nodes:
                self._processes.append(self._start(node))
            for node, process in zip(self._nodes, self._processes, strict=True):
                _wait_begun(node.host, process)
            yield
        finally:
            for process in self._processes:
                _end(process)
        for stacks in of_each(self._nodes, _read):
            for functions, seconds in stacks.items():
                self.stacks[functions] += seconds
        if not self.stacks:
            raise Unsupported("perf has no sample of the servers")

    def _start(self, node: Node) -> Process:
        host = node.host
        often = MOST_SAMPLES / max(1.0, host.cores()) / max(0.1, self._seconds)
        often = min(MOST_PER_SECOND, max(LEAST_PER_SECOND, int(often)))
        server = host.pull(f"{host.directory}/server.pid").decode().strip()
        # The kernel's clock is there in virtual machines too, whose processors often count no cycles.
        command = [PERF, "record", "-q", "-e", "cpu-clock", "-F", str(often), "--call-graph", f"dwarf,{STACK}"]
        # It samples from our word on, because the first samples of a short round would be lost.
        # The pipes have no directory, because a comma in its name would end the name of the first pipe.
        command += ["--delay", "-1", "--control", f"fifo:{ORDERS},{ANSWERS}"]
        command += ["--max-size", MOST_DATA, "-p", server, "-o", _data(host)]
        host.run(["rm", "-f", *_files(host)])
        host.run(["mkfifo", "-m", "600", *_pipes(host)])
        return host.spawn(command, log=_log(host), directory=host.directory)


def _data(host: Host) -> str:
    return f"{host.directory}/perf.data"


def _log(host: Host) -> str:
    return f"{host.directory}/perf.log"


def _pipes(host: Host) -> list[str]:
    return [f"{host.directory}/{name}" for name in (ORDERS, ANSWERS)]


def _files(host: Host) -> list[str]:
    return [_data(host), _log(host), *_pipes(host)]


def _wait_begun(host: Host, process: Process) -> None:
    """Wait for the first output of perf, which it writes after it has opened all counters; then let it sample."""
    limit = time.monotonic() + BEGIN_SECONDS
    while True:
        with contextlib.suppress(FileNotFoundError):
            if host.pull(_data(host)):
                break
        if process.status() is not None:
            raise Unsupported(f"perf does not sample: {_refusal(host)}")
        if time.monotonic() > limit:
            raise Unsupported(f"perf has not begun within {BEGIN_SECONDS:.0f} s")
        time.sleep(0.01)
    try:
        host.run(["sh", "-c", ENABLE, "sh", *_pipes(host)], seconds=BEGIN_SECONDS)
    except CommandFailed:
        raise Unsupported(f"perf does not sample: {_refusal(host)}") from None


def _refusal(host: Host) -> str:
    """The setting of the host's kernel that forbids sampling; without it the message of perf."""
    with contextlib.suppress(OSError, ValueError, ProvisionError):
        if reason := setting_to_change(int(host.run(["cat", PERMISSION]).stdout), root=host.root):
            return reason
    with contextlib.suppress(FileNotFoundError):
        lines = host.pull(_log(host)).decode("utf-8", "replace").splitlines()
        return next((line.strip() for line in lines if line.strip() not in ("", "Error:")), "it has no message")
    return "it has no message"


def _end(process: Process) -> None:
    """Ask perf to end; kill it if it does not."""
    for number in (signal.SIGINT, signal.SIGKILL):
        process.signal(number)
        limit = time.monotonic() + END_SECONDS
        while process.status() is None and time.monotonic() < limit:
            time.sleep(0.01)


def _read(node: Node) -> Stacks:
    """The stacks of a server; its samples are removed."""
    host = node.host
    command = [PERF, "script", "--no-inline", "-F", "period,ip,sym,dso", "-i", _data(host)]
    try:
        return stacks_of(host.run(command, seconds=READ_SECONDS).stdout)
    except CommandFailed as error:
        raise Unsupported(f"perf does not read its samples: {str(error).partition(chr(10))[0]}") from None
    finally:
        host.run(["rm", "-f", *_files(host)])


def stacks_of(text: str) -> Stacks:
    """The stacks of samples that ``perf script`` has printed, in CPU seconds.

    Functions without a name have that of their file in brackets; several in a row are one.
    """
    found: dict[tuple[str, ...], float] = collections.defaultdict(float)
    for sample in text.split("\n\n"):
        head, _, frames = sample.lstrip("\n").partition("\n")
        names = _functions(frames.splitlines())
        if names and (period := SAMPLE.match(head)):
            found[names] += int(period[1]) / 1e9
    return found


def _functions(frames: Sequence[str]) -> tuple[str, ...]:
    """The names of the functions of a sample, the outermost first."""
    names: list[str] = []
    for frame in reversed(frames):
        if not (found := FRAME.match(frame)):
            continue
        name, file = found.groups()
        if name == NO_NAME:
            name = f"[{Path(file).name}]"
            if file == NO_NAME or names[-1:] == [name]:  # an address outside of any file, or several without a name
                continue
        names = [] if name == OUTERMOST else names
        names.append(name)
    return tuple(names)
