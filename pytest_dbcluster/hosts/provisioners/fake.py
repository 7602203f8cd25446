"""Fake provisioner for unit tests: its hosts record commands without running them, and answer from a table."""

from __future__ import annotations

import dataclasses
import fnmatch
import shlex
import types
from collections.abc import Mapping, Sequence
from pathlib import Path

from pytest_dbcluster.hosts.host import Completed, Host, Process
from pytest_dbcluster.hosts.provisioner import Provisioner
from pytest_dbcluster.network import node_names
from pytest_dbcluster.spec import ClusterSpec

FIRST_PORT = 20_001
PORTS = 100  # per host; all hosts have one address


@dataclasses.dataclass
class FakeProcess(Process):
    """A program that was never started."""

    pid: int = 1
    """The process id."""

    ends: int | None = None
    """The exit status; None while the program "runs"."""

    cpu: float | None = None
    """The used CPU time, in seconds; None if unknown."""

    signals: list[int] = dataclasses.field(default_factory=list)
    """The numbers of the received signals, in order."""

    def status(self) -> int | None:
        """The value of ``ends``."""
        return self.ends

    def is_stopped(self) -> bool:
        """Always False: it does not run."""
        return False

    def cpu_seconds(self) -> float | None:
        """The value of ``cpu``."""
        return self.cpu

    def signal(self, number: int) -> None:
        """Record the signal and end the program with it."""
        self.signals.append(number)
        self.ends = -number


class FakeHost(Host):
    """Records commands and keeps files in a dictionary.

    ``answers``: a pattern for a whole command line (``*--only-print``) -> the output of the command, or an exception
    that ``run`` raises. A command without a matching pattern prints nothing. ``brought``: the arguments of ``bring``.
    ``free``: the free bytes of its disk.
    """

    root = False

    def __init__(
        self,
        name: str = "node1",
        *,
        address: str = "127.0.0.1",
        directory: str = "/fake",
        answers: Mapping[str, str | Exception] | None = None,
    ) -> None:
        self.name = name
        self.address = address
        self.directory = directory
        self.answers = dict(answers or {})
        self.commands: list[list[str]] = []
        self.spawned: list[list[str]] = []
        self.files: dict[str, bytes] = {}
        self.brought: list[Path] = []
        self.free = 2**40
        self.next_port = FIRST_PORT
        self.next_process = FakeProcess(1)

    def run(
        self,
        command: Sequence[str],
        *,
        seconds: float = 60.0,
        environment: Mapping[str, str] | None = None,
        text: str = "",
    ) -> Completed:
        """Record the command and return its answer."""
        self.commands.append(list(command))
        line = shlex.join(command)
        answers = (answer for pattern, answer in self.answers.items() if fnmatch.fnmatchcase(line, pattern))
        answer = next(answers, "")
        if isinstance(answer, Exception):
            raise answer
        return Completed(answer, "", 0.0)

    def spawn(
        self,
        command: Sequence[str],
        *,
        log: str,
        directory: str,
        environment: Mapping[str, str] | None = None,
    ) -> FakeProcess:
        """Record the command and return ``next_process``."""
        self.spawned.append(list(command))
        return self.next_process

    def push(self, content: bytes, path: str, *, mode: int = 0o600) -> None:
        """Store the file."""
        self.files[path] = content

    def pull(self, path: str, *, offset: int = 0) -> bytes:
        """The content of the file from byte ``offset`` on."""
        try:
            return self.files[path][offset:]
        except KeyError:
            raise FileNotFoundError(path) from None

    def bring(self, tree: Path) -> None:
        """Record the tree."""
        self.brought.append(tree)

    def free_bytes(self) -> int:
        """The value of ``free``."""
        return self.free

    def port(self, usual: int) -> int:
        """Consecutive ports."""
        self.next_port += 1
        return self.next_port - 1

    def copy_tree(self, source: str, target: str, *, durable: bool = False) -> None:
        """Copy the stored files below ``source``."""
        inside = f"{source.rstrip('/')}/"
        for path, content in list(self.files.items()):
            if path.startswith(inside):
                self.files[f"{target}/{path.removeprefix(inside)}"] = content

    def remove_tree(self, path: str) -> None:
        """Remove the stored files below ``path``."""
        inside = f"{path.rstrip('/')}/"
        self.files = {name: content for name, content in self.files.items() if not name.startswith(inside)}


class FakeProvisioner(Provisioner):
    """Makes fake hosts. ``hosts``: those that were not released yet."""

    offers: frozenset[str] = frozenset()
    missing: Mapping[str, str] = types.MappingProxyType({})

    def __init__(self, *, keep: bool = False, offers: frozenset[str] = frozenset()) -> None:
        self.offers = offers
        self.keep = keep
        self.hosts: list[Host] = []
        self._clusters = 0

    def acquire(self, spec: ClusterSpec) -> Sequence[FakeHost]:
        """One fake host for each node."""
        self._clusters += 1
        directory = f"/fake/{self._clusters}"
        hosts = [FakeHost(name, directory=f"{directory}/{name}") for name in node_names(spec.nodes)]
        for number, host in enumerate(hosts, len(self.hosts)):
            host.next_port += PORTS * number
        self.hosts += hosts
        return hosts

    def give_back(self, hosts: Sequence[Host]) -> None:
        """Remove these hosts from ``hosts``."""
        self.hosts = [host for host in self.hosts if host not in hosts]


PROVISIONER = FakeProvisioner
