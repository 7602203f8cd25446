"""Provisioner for remote machines: ``--db-provisioner ssh --db-host USER@ADDRESS`` (repeated).

Each node of a cluster is on a separate machine. The nodes of other clusters are on the same machines, so that variants
share hardware. The load generator has a separate machine if one is named. A run keeps as many machines locked as its
largest cluster so far has nodes, to its end. So other workers of pytest-xdist, and other runs, use other machines, or
wait.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import itertools
import os
import shutil
import statistics
import threading
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from pytest_dbcluster import wait
from pytest_dbcluster.errors import ConfigError, Inconclusive, ProvisionError, Unsupported
from pytest_dbcluster.formatting import duration, gibibytes, quantity
from pytest_dbcluster.hosts.host import Host
from pytest_dbcluster.hosts.local_host import LocalHost
from pytest_dbcluster.hosts.local_run import LocalRun
from pytest_dbcluster.hosts.provisioner import NO_DISKS, Memory, Provisioner
from pytest_dbcluster.hosts.provisioners.ssh import remote_programs
from pytest_dbcluster.hosts.provisioners.ssh.access import BASE, Access, parse_machines
from pytest_dbcluster.hosts.provisioners.ssh.host import SshHost
from pytest_dbcluster.hosts.provisioners.ssh.machine import Machine
from pytest_dbcluster.hosts.provisioners.ssh.programs import Programs
from pytest_dbcluster.hosts.provisioners.ssh.session import MachineBusy, Session, close_all
from pytest_dbcluster.network import node_names
from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.system import machine_lock, shared_directory

SIDE_BY_SIDE = 2  # clusters whose servers share the machines, with equal shares of the memory
WAIT_SECONDS = 2.0  # between two checks for free machines
TELL_SECONDS = 60.0
PORT_TRIES = 5
CLOCK_SECONDS = 5.0  # we report larger differences between clocks


class TunnelledHost(LocalHost):
    """A directory of this machine. The machine of a session reaches its ports at 127.0.0.1."""

    def __init__(self, name: str, directory: Path, run: LocalRun, session: Session) -> None:
        super().__init__(name, directory, run.client, run.ports)
        self._session = session

    def port(self, usual: int) -> int:
        """A port that is free here and there. Raises ProvisionError."""
        for attempt in range(1, PORT_TRIES + 1):
            port = super().port(usual)
            try:
                self._session.offer(port)
            except OSError as error:
                if attempt == PORT_TRIES:
                    raise ProvisionError(f"{error}; the sshd of the machine must permit AllowTcpForwarding") from None
            else:
                return port
        raise AssertionError("unreachable")


class SshProvisioner(Provisioner):
    """Hosts on machines that we reach over ssh.

    machines, load_machines: of nodes and of load generators, as for ``access.parse_machines``. config, keys, base: as
    in ``Access``. Raises ConfigError.
    """

    has_own_system = True
    _no_limits = "the machines of --db-host are used as they are"  # the reason

    def __init__(
        self,
        *,
        keep: bool = False,
        machines: Sequence[str] = (),
        load_machines: Sequence[str] = (),
        config: Path | None = None,
        keys: Path | None = None,
        base: str = BASE,
    ) -> None:
        if keep:
            raise ConfigError(
                "--db-keep: servers on machines of --db-host end with the run; they cannot be left running"
            )
        if not machines:
            raise ConfigError("--db-provisioner ssh needs machines: --db-host USER@ADDRESS, once for each")
        nodes, loads = parse_machines("--db-host", machines), parse_machines("--db-load-host", load_machines)
        if both := set(nodes) & set(loads):
            raise ConfigError(f"--db-load-host {both.pop()} is also a --db-host; a load host cannot run servers")
        self._begin(nodes, loads, Access(config, keys, base))

    def _begin(self, nodes: Mapping[str, str], loads: Mapping[str, str], access: Access, *, keep: bool = False) -> None:
        """Initialize the provisioner. nodes, loads: machine -> private address, from ``access.parse_machines``.

        keep: whether ``_stay`` may leave hosts running.
        """
        self._targets, self._load_targets = tuple(nodes), tuple(loads)
        self._addresses = {**nodes, **loads}
        self._access = access
        self._run = LocalRun(keep=keep)
        self.run_id, self.directory = self._run.run_id, self._run.directory
        self._machines: dict[str, Machine] = {}
        self._joining: list[Session] = []  # of machines that wait for the connections of others
        self._programs = Programs(lambda: list(self._machines.values()), self._tell)
        self._sessions: dict[str, Session] = {}  # of hosts, by directory
        self._numbers = itertools.count(1)
        self._beginning = threading.RLock()
        self._taking = threading.Lock()
        self._over = threading.Event()
        self._files: LocalHost | None = None
        self._beside = False  # whether programs of this machine serve programs of hosts

    def _tell(self, line: str) -> None:
        self.progress(line)  # the caller may set ``progress`` later

    def _nodes(self) -> list[Machine]:
        """The nodes' machines of this run."""
        return [machine for machine in self._machines.values() if machine.target in self._targets]

    def host_type(self, spec: ClusterSpec) -> type[SshHost]:
        """Directories of other machines."""
        return SshHost

    @property
    def offers(self) -> frozenset[str]:
        """No limits: we do not change machines."""
        return frozenset()

    @property
    def missing(self) -> Mapping[str, str]:
        """Why limits and disks are not offered: power -> a clause with the reason."""
        limits = dict.fromkeys(("cores", "memory", "iops", "netem", "root"), self._no_limits)
        return {**limits, "block-devices": NO_DISKS}

    @property
    def environment(self) -> Mapping[str, str]:
        """The machines of this run and of its load generator, for the fingerprint."""
        found = {}
        for target in (*self._targets, *self._load_targets):
            if (machine := self._machines.get(target)) is not None:
                facts = machine.facts
                found[f"machine {target}"] = (
                    f"{facts.cpus} x {facts.cpu or facts.architecture}, {gibibytes(facts.memory)}, "
                    f"Linux {facts.kernel}, {facts.disk}, clock {facts.clocksource}"
                )
        if found:
            found["load"] = ", ".join(self._load_targets) or "on a machine of a node, beside its server"
            nodes = [machine.facts for machine in self._nodes()]
            found["cpu"] = _distinct(f"{facts.cpus} x {facts.cpu or facts.architecture}" for facts in nodes)
            found["memory"] = _distinct(gibibytes(facts.memory) for facts in nodes)
            found["kernel"] = _distinct(facts.kernel for facts in nodes)
        return found

    @property
    def disk(self) -> str:
        """The file system of the machines' data, their CPUs and their memory; servers choose options by these.

        The first call locks a machine. Raises what ``acquire`` raises.
        """
        facts = self._take(1)[0].facts
        return f"{facts.disk}, {facts.cpus} CPUs, {facts.memory} bytes of memory"

    def memory(self) -> Memory:
        """The memory of the smallest machine, times the number of machines."""
        nodes = self._take(1) and self._nodes()
        free = min(machine.available_memory() for machine in nodes)
        return Memory(min(machine.facts.memory for machine in nodes) * len(nodes), free * len(nodes))

    def node_memory(self, spec: ClusterSpec, machine: int) -> int:
        """The memory of one node, in bytes: an equal share for each cluster that runs side by side."""
        nodes = self._nodes()
        return (min(one.facts.memory for one in nodes) if nodes else machine) // SIDE_BY_SIDE

    def most_memory(self, spec: ClusterSpec, machine: int) -> int:
        """The memory of the smallest machine, in bytes."""
        return self.node_memory(spec, machine) * SIDE_BY_SIDE

    def acquire(self, spec: ClusterSpec) -> Sequence[SshHost]:
        """A host on a separate machine for each node.

        Raises Unsupported for more nodes than machines, and ProvisionError.
        """
        if spec.nodes > len(self._targets):
            raise Unsupported(
                f"cluster {spec} has {spec.nodes} nodes, each on a separate machine, but --db-host names "
                f"{len(self._targets)}"
            )
        return self._hosts(self._take(spec.nodes))

    def client(self, spec: ClusterSpec) -> SshHost:
        """A host on the machine of --db-load-host; without one on the last machine of --db-host."""
        nodes = self._take(1)
        load = [machine for machine in self._machines.values() if machine.target in self._load_targets]
        return self._hosts([*load, nodes[-1]][:1])[0]

    def clients(self, spec: ClusterSpec) -> Sequence[SshHost]:
        """A host on each --db-load-host of this process; without one, that of ``client``."""
        self._take(1)
        load = [machine for machine in self._machines.values() if machine.target in self._load_targets]
        return self._hosts(load) if load else [self.client(spec)]

    def workshop(self, spec: ClusterSpec) -> LocalHost:
        """A host of this machine: it has the same programs, and we send its data to each machine once."""
        return self._run.host("node1", self._run.cluster_directory(spec) / "node1")

    def beside(self, host: Host) -> Host:
        """A host of this machine, whose ports the machine of ``host`` reaches through a tunnel."""
        session = self._sessions[host.directory]
        self._beside = True
        return TunnelledHost(host.name, self.directory / "beside" / session.name, self._run, session)

    def give_back(self, hosts: Sequence[Host]) -> None:
        """End every program of these hosts, and remove their directories."""
        with self._beginning:
            ended = [session for host in hosts if (session := self._sessions.pop(host.directory, None))]
        close_all(ended)
        for host in hosts:
            if isinstance(host, LocalHost):
                shutil.rmtree(host.directory, ignore_errors=True)

    def close(self) -> None:
        """End every program of the run on all machines, remove our files there, and release the machines."""
        self._over.set()
        with self._beginning:
            sessions = [*self._sessions.values()]
            own = [*self._machines.values()]
            self._sessions.clear()
            self._machines.clear()
        close_all(sessions)
        self._leave_machines(own)
        close_all([machine.session for machine in own])
        self._run.close()

    def _stay(self) -> None:
        """Let all hosts in use outlive this process, with their programs. Raises ProvisionError."""
        with self._beginning:
            sessions = [*self._sessions.values()]
        for session in sessions:
            session.stay(leads=self._beside)
        self._run.leave()

    def _leave_machines(self, machines: Sequence[Machine]) -> None:
        """A hook after the end of all programs, while the machines can still be reached."""

    def _take(self, nodes: int) -> list[Machine]:
        """The machines of a cluster with this many nodes. Those that this run has already come first.

        The first call also locks the machines of the load generator, and waits while others use what it needs. A later
        call does not wait, because a run that holds machines could wait forever. Raises Unsupported, ProvisionError,
        Inconclusive if the run's time is used, and LockHeld after ``wait.locks`` seconds.
        """
        with self._taking:
            more = nodes - len(self._nodes())
            if more > 0 and (busy := self._try_take(more, load=not self._machines)):
                if self._machines:
                    raise Unsupported(
                        f"a cluster of {quantity(nodes, 'node')} needs {quantity(more, 'more machine')} than this "
                        f"process has, and others use {', '.join(busy)}: name more machines with --db-host, or take "
                        "fewer workers (-n)"
                    )
                with machine_lock.this().waiting():
                    self._wait(more, busy)
            return self._nodes()[:nodes]

    def _wait(self, nodes: int, busy: list[str]) -> None:
        """Wait for machines that others use, and lock them with those of the load generator. Raises as ``_take``."""
        began = told = time.monotonic()
        while busy:
            if reason := self.over():
                raise Inconclusive(f"{reason} while it waited for machines: others use {', '.join(busy)}")
            if time.monotonic() - began >= wait.locks.seconds:
                raise shared_directory.held_error(f"machines that others use: {', '.join(busy)}")
            if time.monotonic() - told >= TELL_SECONDS or told == began:
                told = time.monotonic()
                so_far = f"{duration(told - began)} so far; {shared_directory.limit()}"
                self.progress(f"waiting for machines: another run uses {', '.join(busy)} ({so_far})")
            time.sleep(WAIT_SECONDS)
            busy = self._try_take(nodes, load=True)

    def _try_take(self, nodes: int, *, load: bool) -> list[str]:
        """Lock free machines, either all or nothing. Returns those that others use; empty if it has locked all.

        load: also lock this worker's share of load machines. Raises ProvisionError or Unsupported.
        """
        if self._files is None:
            self._files = self._run.host("ssh", self._run.directory / "ssh")
            threading.Thread(target=self._beat, name="beats of machines", daemon=True).start()
        wanted = [(self._targets, nodes)]
        if load and self._load_targets:
            wanted.append((self._load_targets, max(1, len(self._load_targets) // workers())))
        taken: dict[str, Machine] = {}
        busy: list[str] = []
        try:
            for targets, number in wanted:
                found, others = self._free([target for target in targets if target not in self._machines], number)
                taken |= found
                busy += others if len(found) < number else []
        except BaseException:
            close_all([machine.session for machine in taken.values()])
            raise
        finally:
            with self._beginning:
                self._joining.clear()
        if busy:
            close_all([machine.session for machine in taken.values()])
            return busy
        with self._beginning:
            self._machines |= taken
        self._compare_clocks(taken.values())
        return []

    def _free(self, targets: Sequence[str], number: int) -> tuple[dict[str, Machine], list[str]]:
        """Connect to this number of free machines. Returns these, and those that others use.

        Raises ProvisionError or Unsupported, and then disconnects all.
        """
        left = deque(targets)
        left.rotate(-worker() * number)  # workers start with different machines
        found: dict[str, Machine] = {}
        busy: list[str] = []
        while left and len(found) < number:
            asked = [left.popleft() for _ in range(min(len(left), number - len(found)))]
            with concurrent.futures.ThreadPoolExecutor(len(asked)) as threads:
                futures = {target: threads.submit(self._machine, target) for target in asked}
            found |= {target: future.result() for target, future in futures.items() if not future.exception()}
            for target, future in futures.items():
                if isinstance(error := future.exception(), MachineBusy):
                    busy.append(target)
                elif error:
                    close_all([machine.session for machine in found.values()])
                    raise error
        # In the order of the options, so that nodes do not change their machines between runs.
        return {target: found[target] for target in targets if target in found}, busy

    def _machine(self, target: str) -> Machine:
        session = self._session(target, "machine", exclusive=True)
        with self._beginning:
            self._joining.append(session)
        try:
            return Machine(session, self._addresses[target])
        except BaseException:
            session.close()
            raise

    def _session(self, target: str, what: str, *, exclusive: bool = False) -> Session:
        assert self._files
        number = next(self._numbers)
        name = f"{self.run_id}-{number}-{what}"
        command = remote_programs.session(
            base=self._access.base, name=name, owner=remote_programs.owner(self.run_id), mark=name, exclusive=exclusive
        )
        return Session(self._access, target, self._files, number, name, command)

    def _hosts(self, machines: Sequence[Machine]) -> list[SshHost]:
        """A host on each of these machines, connected concurrently. Raises ProvisionError, and then leaves no host."""
        cluster = f"{self.run_id} {next(self._numbers)}"
        places = list(zip(node_names(len(machines)), machines, strict=True))
        return self._make_all(lambda place: self._host(*place, cluster), places)

    def _host(self, name: str, machine: Machine, cluster: str) -> SshHost:
        if machine.session.agent.gone:
            raise ProvisionError(machine.session.agent.gone)
        session = self._session(machine.target, name)
        host = SshHost(name, machine, session, self._programs, self.run_id, cluster=cluster)
        with self._beginning:
            self._sessions[host.directory] = session
        return host

    def _beat(self) -> None:
        """Send heartbeats to every agent."""
        while not self._over.wait(remote_programs.BEAT_SECONDS):
            with self._beginning:
                machines = [machine.session for machine in self._machines.values()]
                sessions = [*self._sessions.values(), *machines, *self._joining]
            for session in sessions:
                with contextlib.suppress(ProvisionError):
                    session.agent.beat()

    def _compare_clocks(self, machines: Iterable[Machine]) -> None:
        """Report wrong clocks, because times in logs and results would differ."""
        ahead = {machine.target: machine.facts.clock_ahead for machine in machines}
        usual = statistics.median([0.0, *ahead.values()])
        wrong: dict[str, list[str]] = {}
        for target, seconds in ahead.items():
            if abs(seconds - usual) > CLOCK_SECONDS:
                side = "ahead" if seconds > 0 else "behind"
                wrong.setdefault(f"{duration(abs(seconds))} {side}", []).append(target)
        for by, targets in wrong.items():
            self.progress(
                f"the clock of {', '.join(targets)} is {by}; each round is timed by one clock, "
                "but times in the logs differ from ours"
            )


def _distinct(texts: Iterable[str]) -> str:
    return " / ".join(dict.fromkeys(texts))


def worker() -> int:
    """The number of this worker of pytest-xdist, from 0; 0 without workers."""
    return int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))


def workers() -> int:
    """The number of workers of pytest-xdist; 1 without."""
    return int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
