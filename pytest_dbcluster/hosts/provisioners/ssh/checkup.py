"""What a machine elsewhere can do for a run, for ``dbcluster doctor``: it tries a session like those of a run."""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
from collections.abc import Iterator

from pytest_dbcluster.errors import CommandFailed, ProvisionError, Unsupported
from pytest_dbcluster.hosts.local_host import LocalHost
from pytest_dbcluster.hosts.local_run import LocalRun
from pytest_dbcluster.hosts.provisioners.ssh import remote_programs
from pytest_dbcluster.hosts.provisioners.ssh.access import CONNECT_SECONDS
from pytest_dbcluster.hosts.provisioners.ssh.host import SshHost
from pytest_dbcluster.hosts.provisioners.ssh.leftovers import Leftovers
from pytest_dbcluster.hosts.provisioners.ssh.machine import Facts, Machine
from pytest_dbcluster.hosts.provisioners.ssh.programs import Programs
from pytest_dbcluster.hosts.provisioners.ssh.session import MachineBusy, Session

GREETING = b"SSH-"  # the first bytes of an ssh server (RFC 4253, 4.2)


@dataclasses.dataclass(frozen=True)
class Checkup:
    """What was found on one machine.

    free, available: bytes of disk and memory.
    """

    target: str
    problem: str = ""
    """Why it cannot be used; then nothing else is known."""

    busy: bool = False
    """Another run uses it, so nothing was tried there."""

    key: str = ""
    """The type and fingerprint of its host key, which ssh knows."""

    facts: Facts | None = None
    namespaces: bool = False
    """Whether the programs of a host have PID namespaces; otherwise they are found by a mark."""

    flush: float = 0.0
    """Seconds of one."""

    free: int = 0
    available: int = 0
    forwards: str = ""
    """Why no port of the machine can be reached through ssh; empty when it can."""

    offers: str = ""
    """The same of a port of ours for the machine."""

    one_session: bool = False
    """Sshd permits one session on a connection."""


class Checkups:
    """Tries the machines of a command, all at once."""

    def __init__(self, leftovers: Leftovers) -> None:
        self._access = leftovers.access
        self._targets = leftovers.targets
        self._run = LocalRun()

    def results(self) -> list[Checkup]:
        """What was found, in the order of the options. Nothing of it stays on a machine."""
        with contextlib.closing(self._run), concurrent.futures.ThreadPoolExecutor(len(self._targets)) as threads:
            files = self._run.host("ssh", self._run.directory / "ssh")
            return list(threads.map(lambda one: self._checkup(files, *one), enumerate(self._targets, 1)))

    def _checkup(self, files: LocalHost, number: int, target: str) -> Checkup:
        try:
            with self._session(files, number, target) as session:
                machine = Machine(session)
                return self._tried(machine)
        except MachineBusy:
            return Checkup(target, busy=True)
        except (ProvisionError, Unsupported) as error:
            return Checkup(target, problem=str(error))

    @contextlib.contextmanager
    def _session(self, files: LocalHost, number: int, target: str) -> Iterator[Session]:
        name = f"{self._run.run_id}-{number}-doctor"
        owner = remote_programs.owner(self._run.run_id)
        command = remote_programs.session(base=self._access.base, name=name, owner=owner, mark=name, exclusive=True)
        with contextlib.closing(Session(self._access, target, files, number, name, command)) as session:
            yield session

    def _tried(self, machine: Machine) -> Checkup:
        session = machine.session
        host = SshHost("doctor", machine, session, Programs(lambda: [machine], lambda _: None), self._run.run_id)
        return Checkup(
            machine.target,
            key=self._access.fingerprint(machine.target),
            facts=machine.facts,
            namespaces=not session.ask('echo "$fall"').strip(),
            flush=host.flush_seconds(),
            free=machine.free_bytes(),
            available=machine.available_memory(),
            forwards=forwards(session),
            offers=offers(session, machine),
            one_session=not session.shares(),
        )


def forwards(session: Session) -> str:
    """Why no port of the machine is reached through the connection; empty when its ssh server is reached so."""
    port = int(session.ask('echo "${SSH_CONNECTION##* }"'))
    try:
        with session.connect("127.0.0.1", port, CONNECT_SECONDS) as stream:
            stream.settimeout(CONNECT_SECONDS)
            if stream.recv(len(GREETING)) == GREETING:
                return ""
    except OSError as error:
        return str(error)
    return f"port {port} does not answer through it"


def offers(session: Session, machine: Machine) -> str:
    """Why no port of this machine is offered to the other one; empty when it is."""
    try:
        session.offer(machine.port())
    except (OSError, CommandFailed) as error:
        return str(error)
    return ""
