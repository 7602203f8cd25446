"""Checks of remote machines for ``dbcluster doctor``, with a session like those of a run."""

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
    """The results of one machine."""

    target: str
    """The machine as the user names it."""

    problem: str = ""
    """Why the machine cannot be used; then the other fields are empty."""

    busy: bool = False
    """Whether another run uses it; then we try nothing there."""

    key: str = ""
    """The type and fingerprint of its known host key."""

    facts: Facts | None = None
    """The properties of the machine; None if it is busy or cannot be used."""

    namespaces: bool = False
    """Whether the programs of a host have PID namespaces; otherwise we find them by a mark."""

    flush: float = 0.0
    """Duration of a flush, in seconds."""

    free: int = 0
    """Free disk space, in bytes."""

    available: int = 0
    """Available memory, in bytes."""

    forwards: str = ""
    """Why ssh cannot forward to a port of the machine; empty if it can."""

    offers: str = ""
    """Why ssh cannot forward from the machine to a port of ours; empty if it can."""

    one_session: bool = False
    """Whether sshd permits only one session per connection."""


class Checkups:
    """Checks the machines of a command concurrently."""

    def __init__(self, leftovers: Leftovers) -> None:
        self._access = leftovers.access
        self._targets, self._addresses = leftovers.targets, leftovers.addresses
        self._run = LocalRun()

    def results(self) -> list[Checkup]:
        """The results, in the order of the options. Leaves nothing on a machine."""
        with contextlib.closing(self._run), concurrent.futures.ThreadPoolExecutor(len(self._targets)) as threads:
            files = self._run.host("ssh", self._run.directory / "ssh")
            return list(threads.map(lambda one: self._checkup(files, *one), enumerate(self._targets, 1)))

    def _checkup(self, files: LocalHost, number: int, target: str) -> Checkup:
        try:
            with self._session(files, number, target) as session:
                machine = Machine(session, self._addresses[target])
                return self._try(machine)
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

    def _try(self, machine: Machine) -> Checkup:
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
    """Why we cannot reach a port of the machine through the connection; empty if its ssh server answers."""
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
    """Why ssh cannot offer a port of this machine to the other one; empty if it can."""
    try:
        session.offer(machine.port())
    except (OSError, CommandFailed) as error:
        return str(error)
    return ""
