"""A host on a remote machine: a directory there, and an agent that starts its programs."""

from __future__ import annotations

import itertools
import random
import shlex
import signal
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.hosts import agent
from pytest_dbcluster.hosts.agent import Agent
from pytest_dbcluster.hosts.host import (
    IS_STOPPED,
    TELL_SECONDS,
    Completed,
    EndsCommands,
    Falls,
    Host,
    Process,
    result_of,
)
from pytest_dbcluster.hosts.provisioners.ssh import remote_programs
from pytest_dbcluster.hosts.provisioners.ssh.machine import FREE, Machine
from pytest_dbcluster.hosts.provisioners.ssh.programs import Programs
from pytest_dbcluster.hosts.provisioners.ssh.session import Session
from pytest_dbcluster.hosts.provisioners.ssh.usage import Usage, read

COPY_SECONDS = 600.0
LOOK_SECONDS = 5.0
FLUSHES = 50
FRESH_SECONDS = 0.05  # callers share a reading that is not older
FLUSH = "dd if=/dev/zero of=.flush bs=4096 count={count} oflag=dsync conv=notrunc; rm -f .flush"


class SshProcess(Process):
    """A program that the agent of a remote host started."""

    pid = 0  # this machine does not see the process

    def __init__(self, host: SshHost, number: int) -> None:
        self._host = host
        self._agent: Agent = host.session.agent
        self._number = number
        self.inside = self._agent.pid(number)

    def status(self) -> int | None:
        """The exit status: None while the program runs, negative for the signal that ended the program."""
        return self._agent.status(self._number)

    def is_stopped(self) -> bool:
        """Whether a signal has stopped the program. Raises ProvisionError if the host does not answer."""
        return self._agent.holds(IS_STOPPED.format(self.inside), TELL_SECONDS)

    def signal(self, number: int) -> None:
        """Send a signal to the program's process group."""
        self._agent.signal(self._number, signal.Signals(number).name.removeprefix("SIG"))

    def cpu_seconds(self) -> float | None:
        """The CPU time of the program and its children so far, in seconds; None if the machine does not answer."""
        return self._host.current_usage().of_program(self.inside)


class SshHost(Host, Falls, EndsCommands):
    """A directory on a remote machine, with one agent that starts its programs. Hosts of one machine share its address.

    ``session``: the connection, one for each host, so that hosts do not affect each other. ``cluster``: equal for all
    hosts of a cluster; they get the same ports, if these are free on their machines.
    """

    def __init__(
        self, name: str, machine: Machine, session: Session, programs: Programs, run_id: str, *, cluster: str = ""
    ) -> None:
        facts = machine.facts
        self.name = name
        self.address = facts.address
        self.directory = f"{facts.root}/{session.name}"
        self.root = facts.user == 0
        self.machine = machine.target
        self.session = session
        self.connects = session.connect
        self._machine = machine
        self._programs = programs
        self._environment = remote_programs.environment(run_id, session.name)
        self._numbers = itertools.count(1)
        self._cluster = cluster or session.name
        self._draws: dict[int, random.Random] = {}  # of ports, by usual port
        self._looking = threading.Lock()
        self._look = Usage({}, [])
        self._looked = float("-inf")

    def why_lost(self) -> str:
        """Why the machine cannot be reached any more; empty while it can be reached."""
        return self.session.agent.gone

    def limit_reached(self) -> str:
        """A clause if the program ended because the machine is gone; otherwise empty."""
        return self.session.agent.gone

    def _script(
        self, command: Sequence[str], directory: str, environment: Mapping[str, str] | None, **files: str
    ) -> str:
        there = self._machine.there
        variables = {name: there(value) for name, value in {**self._environment, **(environment or {})}.items()}
        return agent.script([there(word) for word in command], directory=directory, environment=variables, **files)

    def run(
        self,
        command: Sequence[str],
        *,
        seconds: float = 60.0,
        environment: Mapping[str, str] | None = None,
        text: str = "",
    ) -> Completed:
        """Run a command on the machine, in one round trip, or two if its input or output is long."""
        began = time.monotonic()
        files = f"{self.directory}/.command-{next(self._numbers)}"
        if text:
            self.push(text.encode(), f"{files}.in")
        source = f"{files}.in" if text else ""
        script = self._script(
            command, self.directory, environment, output=f"{files}.out", errors=f"{files}.err", text=source
        )
        status, stdout, stderr = self.session.run_script(script, files, seconds)
        return result_of(command, status, stdout, stderr, host=self.name, timeout=seconds, began=began)

    def spawn(
        self,
        command: Sequence[str],
        *,
        log: str,
        directory: str,
        environment: Mapping[str, str] | None = None,
    ) -> SshProcess:
        """Start a program, which ends with the host at the latest. Raises ProvisionError."""
        script = self._script(command, directory, environment, output=log)
        return SshProcess(self, self.session.agent.begin(script))

    def push(self, content: bytes, path: str, *, mode: int = 0o600) -> None:
        """Write a file; in it, paths of sent programs become those of the machine."""
        try:
            text = content.decode()
        except UnicodeDecodeError:
            self.session.push(content, path, mode)
        else:
            self.session.push(self._machine.there(text).encode(), path, mode)

    def pull(self, path: str, *, offset: int = 0) -> bytes:
        """The content of a file from byte ``offset`` (0-based) to its end."""
        return self.session.pull(path, offset)

    def bring(self, tree: Path) -> None:
        """Send programs to the machine, unless it has them. Commands still use the paths of this machine."""
        self._programs.bring(tree, self._machine)

    def copy_tree(self, source: str, target: str, *, durable: bool = False) -> None:
        """Copy a directory of this machine, or of the host, to the host. It is sent once to each machine."""
        origin = source if source.startswith(f"{self._machine.facts.root}/") else self._machine.data(Path(source))
        made = shlex.quote(target)
        flush = f" && sync -f {made}" if durable else ""
        self.session.ask(
            f"mkdir -p {made} && cp -a --reflink=auto {shlex.quote(origin)}/. {made}{flush}", seconds=COPY_SECONDS
        )

    def remove_tree(self, path: str) -> None:
        """Remove a directory and everything in it."""
        self.session.ask(f"rm -rf -- {shlex.quote(path)}", seconds=COPY_SECONDS)

    def take_tree(self, source: str, target: Path) -> None:
        """Move a directory to this machine. Raises ProvisionError."""
        target.mkdir(parents=True)
        holes = "--sparse " if self._machine.facts.sparse else ""
        self.session.receive(
            f"tar -C {shlex.quote(source)} {holes}-cf - .", f"tar -C {shlex.quote(str(target))} --no-same-owner -xf -"
        )
        self.remove_tree(source)

    def tree_size(self, path: str) -> int:
        """The size of all files in a directory, in bytes."""
        return int(self.session.ask(f"du -s -b {shlex.quote(path)} | cut -f 1"))

    def flush_seconds(self) -> float:
        """The time of one flush of the machine's disk, in seconds, measured with synchronous writes."""
        done = self.run(["sh", "-c", FLUSH.format(count=FLUSHES)])
        found = done.stderr.replace(",", " ").split()
        try:
            return float(found[found.index("s") - 1]) / FLUSHES
        except (ValueError, IndexError):
            raise ProvisionError(f"cannot time a flush on {self.machine}: dd printed {done.stderr!r}") from None

    def make_room(self, needed: int) -> None:
        """If the machine's disk can grow, make this many bytes free. Raises ProvisionError."""
        self._machine.make_room(needed)

    def free_bytes(self) -> int:
        """The free space for the server's data, in bytes."""
        return 1024 * int(self.session.ask(FREE))

    def port(self, usual: int) -> int:
        """A port that is free on the machine, because several hosts may share its address.

        If possible, it is that of the cluster's other hosts: sysbench connects to several hosts at one port.
        """
        draws = self._draws.setdefault(usual, random.Random(f"{self._cluster} {usual}"))
        return self._machine.port(draws)

    def tunnel(self, port: int) -> str:
        """The path of a socket of this machine that leads to a port of the host."""
        return self.session.forward(self.address, port)

    def command_line(self, command: Sequence[str]) -> list[str]:
        """The command line with which a user runs a program of the host: over ssh, with the keys of the run."""
        return self.session.command_line([self._machine.there(word) for word in command])

    def kill(self) -> None:
        """Kill every program of the host at once. The host stays usable. Raises ProvisionError."""
        self.session.agent.fall()

    def end_commands(self) -> None:
        """Kill the commands that ``run`` has begun."""
        self.session.agent.end_commands()

    def current_usage(self) -> Usage:
        """The machine's counters, at most FRESH_SECONDS old; empty if it does not answer."""
        with self._looking:
            if time.monotonic() - self._looked > FRESH_SECONDS:
                try:
                    self._look = read(self.session.agent.use(LOOK_SECONDS))
                except ProvisionError:
                    self._look = Usage({}, [])
                self._looked = time.monotonic()
            return self._look

    def usage(self) -> Mapping[str, float]:
        """The counters of the whole machine."""
        return self.current_usage().machine

    def cpu_seconds(self) -> float | None:
        """The CPU time of all programs of this host so far, in seconds."""
        return self.current_usage().of_all()
