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
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pytest_dbcluster.clusters.servers.node import Node, of_each
from pytest_dbcluster.errors import CommandFailed, ProvisionError, Unsupported
from pytest_dbcluster.hosts.host import Host, Process
from pytest_dbcluster.measuring.why.stacks import Stacks

PERF = "perf"
MOST_SAMPLES, MOST_PER_SECOND = 5000, 499  # of a round; of each core
STACK, MOST_DATA = 16384, 256  # bytes of a thread's stack, which each sample copies; MiB of all samples of a server
# The kernel's clock is there in virtual machines too, whose processors often count no cycles. Without ``-B`` perf keeps
# hard links to the programs in the user's home.
RECORD = ("record", "-B", "-e", "cpu-clock", "--call-graph", f"dwarf,{STACK}")
# A user's programs together may have 516 KiB of such memory (perf_event_mlock_kb), so that of three nodes fits.
MEMORY_OF_USERS = ("-m", "128K")
BEGIN_SECONDS, END_SECONDS, READ_SECONDS = 10.0, 10.0, 120.0
NOT_INSTALLED = "perf is not installed (Debian: linux-perf, Ubuntu: linux-tools-$(uname -r))"
PERMISSION = "/proc/sys/kernel/perf_event_paranoid"
PERMITTED = 1  # the highest value with which users may sample their own processes, in the kernel too
ORDERS, ANSWERS = "perf.orders", "perf.answers"  # pipes to perf and from it, in the directory of the host
ENABLE = 'echo enable >"$1" && read -r answer <"$2"'
PROLOG = ("WARNING", "Error:", "[ perf", "Lowering")  # beginnings of lines of perf that are no reason
SAMPLE, FRAME = re.compile(r"\s*(\d+)\s*$"), re.compile(r"\s+[0-9a-f]+ (.+?) \(((?:/|\[).*)\)$")
NO_NAME, DELETED = "[unknown]", " (deleted)"
# Its callers start the thread. A stack that is deeper than STACK lacks them, and would be drawn apart.
OUTERMOST = "dispatch_command"


def why_not(nodes: Sequence[Node]) -> str:
    """Why these servers cannot be sampled, from a trial on each host; empty if they can."""
    for node in nodes:
        host = node.host
        try:
            if not host.root and (problem := setting_to_change(host.run(["cat", PERMISSION]).stdout)):
                return f"{node.name}: {problem}"
            host.run([PERF, *trial(root=host.root)])
        except CommandFailed as error:
            return f"{node.name}: {refusal(error.returncode, error.stderr)}"
        except ProvisionError as error:
            return f"{node.name}: {str(error).partition(chr(10))[0]}"
    return ""


def trial(*, root: bool) -> list[str]:
    """The arguments of perf that sample a program which ends at once."""
    return [*RECORD, *([] if root else MEMORY_OF_USERS), "-o", "/dev/null", "--", "true"]


def refusal(status: int | None, errors: str) -> str:
    """The reason why perf has ended with this status. errors: what it printed."""
    if status == 127 or (not errors and status is not None and status < 0):
        return NOT_INSTALLED
    lines = [line.strip() for line in errors.splitlines()]
    return next((f"perf: {line}" for line in lines if line and not line.startswith(PROLOG)), NOT_INSTALLED)


def setting_to_change(value: str) -> str:
    """The command that lets a user sample own processes; empty if that is permitted. value: the text of PERMISSION."""
    if not value.strip() or int(value) <= PERMITTED:
        return ""
    return f"kernel.perf_event_paranoid is {value.strip()}; sudo sysctl kernel.perf_event_paranoid={PERMITTED}"


class Recording:
    """The samples of the servers of a cluster in one round. seconds: the usual time of a round."""

    def __init__(self, nodes: Sequence[Node], seconds: float) -> None:
        self._nodes = nodes
        self._seconds = seconds
        self._problem = ""
        self._running: dict[str, Process] = {}  # perf by node

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Sample during the block. The block runs without samples if perf does not do it."""
        with contextlib.ExitStack() as stack:
            try:
                for node in self._nodes:
                    process = self._running[node.name] = self._start(node)
                    stack.callback(_end, process)
                for node in self._nodes:
                    _wait_begun(node.host, self._running[node.name])
            except (Unsupported, ProvisionError, OSError) as error:
                self._problem = str(error).partition("\n")[0]
            yield
            if self.ended and not self._problem:
                self._problem = f"perf of {self.ended[0]} ended before the round did"

    @property
    def ended(self) -> list[str]:
        """The nodes that are not sampled any more."""
        return [name for name, process in self._running.items() if process.status() is not None]

    def read(self) -> Mapping[tuple[str, ...], float]:
        """The stacks of all servers; the samples are removed. Raises Unsupported without whole samples."""
        found: dict[tuple[str, ...], float] = collections.defaultdict(float)
        if self._problem:
            raise Unsupported(self._problem)
        for stacks in of_each(self._nodes, _read):
            for functions, seconds in stacks.items():
                found[functions] += seconds
        if not found:
            raise Unsupported("perf has no sample of the servers")
        return found

    def _start(self, node: Node) -> Process:
        host = node.host
        host.run(["rm", "-f", *_files(host)])
        if host.free_bytes() < 2 * len(self._nodes) * MOST_DATA * 2**20:
            raise Unsupported(f"{node.name}: the disk has too little room for samples")
        often = max(1, min(MOST_PER_SECOND, int(MOST_SAMPLES / max(1.0, host.cores()) / max(0.1, self._seconds))))
        server = host.pull(f"{host.directory}/server.pid").decode().strip()
        command = [PERF, *RECORD, *([] if host.root else MEMORY_OF_USERS), "-F", str(often)]
        # It samples from our word on, because the first samples of a short round would be lost. The pipes have no
        # directory, because a comma in its name would end the name of the first pipe.
        command += ["--delay", "-1", "--control", f"fifo:{ORDERS},{ANSWERS}"]
        command += ["--max-size", f"{MOST_DATA}M", "-p", server, "-o", _data(host)]
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
        status = process.status()
        if status is not None:
            raise Unsupported(refusal(status, _output(host)))
        if time.monotonic() > limit:
            raise Unsupported(f"perf has not begun within {BEGIN_SECONDS:.0f} s")
        time.sleep(0.01)
    try:
        host.run(["sh", "-c", ENABLE, "sh", *_pipes(host)], seconds=BEGIN_SECONDS)
    except CommandFailed:
        raise Unsupported(refusal(None, _output(host))) from None


def _output(host: Host) -> str:
    try:
        return host.pull(_log(host)).decode("utf-8", "replace")
    except FileNotFoundError:
        return ""


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
        if not (found := FRAME.match(frame.replace(DELETED, ""))):
            continue
        name, file = found.groups()
        if name == NO_NAME:
            name = f"[{Path(file).name.strip('[]')}]"
            if file == NO_NAME or names[-1:] == [name]:  # an address outside of any file, or several without a name
                continue
        names = [] if name == OUTERMOST else names
        names.append(name)
    return tuple(names)
