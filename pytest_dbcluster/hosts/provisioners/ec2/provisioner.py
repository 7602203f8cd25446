"""Provisioner for Amazon EC2: ``--db-provisioner ec2 --db-max-cost USD``.

It launches instances, uses them as machines of the provisioner ssh, and ends them with the run. They are launched once
and stay warm: all variants share them, with servers side by side. For a larger cluster it launches more instances.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import functools
import math
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from pytest_dbcluster import registry, wait
from pytest_dbcluster.errors import ConfigError, DBClusterError, NotReady, ProvisionError, Unsupported
from pytest_dbcluster.formatting import duration, some
from pytest_dbcluster.hosts.provisioner import Stay
from pytest_dbcluster.hosts.provisioners.ec2 import user_data, way
from pytest_dbcluster.hosts.provisioners.ec2.aws import Account, AwsError
from pytest_dbcluster.hosts.provisioners.ec2.fleet import Fleet, Instance, Keys, reason
from pytest_dbcluster.hosts.provisioners.ec2.hardware import facts
from pytest_dbcluster.hosts.provisioners.ec2.hardware.of_run import Hardware
from pytest_dbcluster.hosts.provisioners.ec2.money.prices import Prices
from pytest_dbcluster.hosts.provisioners.ec2.money.spending import Spending, cost_of
from pytest_dbcluster.hosts.provisioners.ec2.plan import LOAD, Image, Plan
from pytest_dbcluster.hosts.provisioners.ec2.reaper import INSTANCES, SECONDS, Reaped, Reaper
from pytest_dbcluster.hosts.provisioners.ec2.settings import PLACE, ZONE, EC2Settings
from pytest_dbcluster.hosts.provisioners.ec2.tags import name
from pytest_dbcluster.hosts.provisioners.ec2.user_data import DIRECTORY, HostKey, Written
from pytest_dbcluster.hosts.provisioners.ssh import access, remote_programs
from pytest_dbcluster.hosts.provisioners.ssh.access import Access
from pytest_dbcluster.hosts.provisioners.ssh.host import SshHost
from pytest_dbcluster.hosts.provisioners.ssh.machine import Machine
from pytest_dbcluster.hosts.provisioners.ssh.provisioner import SshProvisioner
from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.system import owned_files

SILENT_SECONDS = 240.0  # timeout for the first packet from an instance, which costs money meanwhile
READY_SECONDS = 900.0 + user_data.WRITE_SECONDS  # timeout for an instance to boot and prepare its disks
GROW_SECONDS = 300.0
CLUSTER_BYTES = 2**30  # free space for a new server with its logs, on a volume that can grow
ASK_SECONDS = 60  # timeout of one check whether it has
CALLS_SECONDS = 60.0  # of a reaper, beside the time that AWS takes for the end of its resources
POLL_SECONDS = 3.0
SPOT_SECONDS = 10.0  # between two checks whether AWS interrupts spot instances
NO_COST = "--db-provisioner ec2 launches nothing without a maximum cost: --db-max-cost USD, such as --db-max-cost 2"
CLI = "pytest_dbcluster.cli.main"  # run as a separate program
# In the background, because an agent's programs end with its session.
SHUTDOWN = "{ systemctl poweroff --force || shutdown -P now || poweroff; } >/dev/null 2>&1"


class Ec2Provisioner(SshProvisioner):
    """Hosts on instances that this run launches.

    settings: what it may launch, with the cap. base: the parent of our directory on the instances, on the data volume.
    Raises ConfigError.
    """

    _no_limits = "instances are not limited below their type"  # the reason

    def __init__(self, *, keep: bool = False, settings: EC2Settings | None = None, base: str = DIRECTORY) -> None:
        if settings is None or settings.max_cost is None:
            raise ConfigError(NO_COST)
        self._settings = settings
        self._base = base
        self._begin({}, {}, Access(base=base), keep=keep)
        self._growing = threading.RLock()
        self._fleet: Fleet | None = None
        self._instances: dict[str, Instance] = {}  # by the name of the machine
        self._expires = 0.0
        self._ends = 0.0  # when the last instance ends itself, from all timers; 0 before they are read
        self._expected = 0  # nodes of the largest announced cluster
        self._spending = Spending(settings, self._run.directory / "ec2")
        self._failed = ""  # why we launch nothing more
        self._hardware = Hardware(settings, self._account, self._ask, base, self._tell)
        self._image: Image | None = None
        self._written: dict[str, Written] = {}  # machine -> its data volume, if that has not grown
        self._made: Account | None = None
        self._remarks: tuple[str, ...] = ()
        self._notice, self._asked = "", float("-inf")  # AWS's interruption notice, and when we checked last
        self._cleaned = self._left = (
            False  # whether the supervisor has the clean-up command, and whether we have cleaned up
        )

    def expect(self, specs: Sequence[ClusterSpec]) -> None:
        """Announce the next clusters: the next launch is for the largest of them."""
        self._expected = max((spec.nodes for spec in specs), default=0)

    def acquire(self, spec: ClusterSpec) -> Sequence[SshHost]:
        """A host on a separate instance for each node. Raises Unsupported, ConfigError and ProvisionError."""
        if reason := self.unmet(spec):
            raise Unsupported(reason)
        self._grow(spec.nodes)
        hosts = super().acquire(spec)
        try:
            self._hardware.limit(spec, [(host.machine, host) for host in hosts])
            for host in hosts:
                host.make_room(CLUSTER_BYTES)
        except BaseException:
            self.give_back(hosts)
            raise
        return hosts

    def unmet(self, spec: ClusterSpec) -> str:
        """A message with a cluster's needs that the instances do not meet; empty if they meet all."""
        return self._hardware.unmet(spec)

    @property
    def remarks(self) -> Sequence[str]:
        """The instances and volumes of this run with burst credits."""
        return self._remarks

    def notice(self) -> str:
        """AWS's notice, two minutes ahead, that it interrupts a spot instance; or empty. Checked at intervals."""
        if not self._settings.spot or self._fleet is None:
            return ""
        if not self._notice and time.monotonic() - self._asked > SPOT_SECONDS:
            self._asked = time.monotonic()
            with contextlib.suppress(AwsError):
                names = {instance.id: machine for machine, instance in self._instances.items()}
                taken = [names[one] for one in self._fleet.interruptions(list(names))]
                if taken:
                    self._notice = (
                        f"AWS interrupts the spot instance of {some(taken)}: try again later, or leave out "
                        "--db-ec2-spot"
                    )
                    self._tell(self._notice)
        return self._notice

    @property
    def environment(self) -> Mapping[str, str]:
        """The machines, and AWS's descriptions of their instances, for the fingerprint."""
        return {**super().environment, **self._hardware.environment}

    def _ask(self, machine: str, script: str) -> str:
        """The output of a script on a connected machine. Raises ProvisionError."""
        known = self._machines.get(machine)
        if known is None:
            raise ProvisionError(f"the machine {machine} is not connected any more")
        return known.session.ask(script)

    def _take(self, nodes: int) -> list[Machine]:
        self._grow(nodes)
        taken = super()._take(nodes)
        self._compare_cpus()
        if self._image:
            connected = {one: instance for one, instance in self._instances.items() if one in self._machines}
            self._hardware.join(connected, self._image)
        for machine in taken:
            if machine.grow is None and machine.target in self._written:
                machine.grow = functools.partial(self._grow_volume, machine)
        return taken

    def _grow_volume(self, machine: Machine) -> None:
        """Grow the file system of the data to its whole volume. Raises ProvisionError."""
        written = self._written.pop(machine.target)
        machine.session.ask(f"set -- {shlex.quote(self._base)}\n{user_data.GROW}", seconds=GROW_SECONDS)
        text = f"{written}, and the rest is used too"
        self._hardware.environment[f"data volume {machine.target}"] = text
        self._tell(f"the data need more space: the file system of {machine.target} now fills its volume ({text})")

    def _grow(self, nodes: int) -> None:
        """Launch the missing instances for a cluster of so many nodes; the first launch adds a load host.

        It launches all or nothing. After an error this run launches nothing more, because each test would pay for the
        same error.
        """
        with self._growing:
            if nodes <= len(self._targets):
                return
            missing = max(nodes, self._expected) - len(self._targets)
            if self._failed:
                raise ProvisionError(f"this run launches nothing more after an error: {self._failed}")
            try:
                self._launch(self._fleet or self._make_fleet(), missing)
            except ConfigError:
                raise
            except DBClusterError as error:
                self._failed = str(error)
                raise

    def _make_fleet(self) -> Fleet:
        """The fleet of this run, made without instances."""
        access.program()
        account = self._account()
        self._expires = time.time() + self._settings.ttl
        self._fleet = Fleet(account, self._settings, self.run_id, Keys(HostKey.new(), HostKey.new()), self._base)
        return self._fleet

    def _account(self) -> Account:
        """The account, made when it is first needed. Raises ConfigError."""
        with self._growing:
            if self._made is None:
                zones = [found["region"] for zone in self._settings.zones if (found := ZONE.fullmatch(zone))]
                self._made = Account(zones[0] if zones else "")
            return self._made

    def _launch(self, fleet: Fleet, servers: int) -> None:
        plan = fleet.plan(servers, load=not self._load_targets, expires=self._expires)
        self._image = plan.image
        cost = cost_of(plan, self._settings, fleet.account.region, Prices(self._settings.prices))
        self._remarks = facts.bursts(plan.types.values(), self._settings.volume)
        for line in (cost.line, *self._remarks):
            self._tell(line)
        self._check_jump()
        self._clean_up_later(fleet.account)
        reservation = self._spending.reserve(cost)
        try:
            machines = self._by_name(fleet.launch(plan))
            self._reach()
            self._wait_ready(list(machines))
            self._report_writes(list(machines))
        except BaseException as error:
            self._undo(plan, reservation, refused=isinstance(error, AwsError))
            raise
        self._targets += tuple(one for one, instance in machines.items() if instance.role != LOAD)
        self._load_targets += tuple(one for one, instance in machines.items() if instance.role == LOAD)
        self._addresses |= {one: instance.private for one, instance in machines.items()}

    def _check_jump(self) -> None:
        """Raise ProvisionError if the jump host cannot be used, before the launch."""
        if self._settings.jump and not self._instances:
            assert self._run.client  # the run has its directory
            self._write_config()
            way.check_jump(self._access, self._settings.jump)

    def _write_config(self) -> None:
        """Write the ssh configuration of the existing instances."""
        directory = self._run.directory / "ec2"
        directory.mkdir(mode=0o700, exist_ok=True)
        text = way.config(self._instances, name(self.run_id), directory, self._settings.jump)
        owned_files.write(directory, "config", text)
        self._access = Access(directory / "config", base=self._base)

    def _clean_up_later(self, account: Account) -> None:
        """Make the supervisor of the run end the instances if this process ends for any reason."""
        if self._cleaned:
            return
        command = [sys.executable, "-P", "-m", CLI, "reap", "--provisioner", "ec2", "--run", self.run_id]
        package = str(Path(registry.__file__).parents[1])
        environment = {"AWS_DEFAULT_REGION": account.region, "PYTHONPATH": package}
        self._run.clean_up_by(command, environment, seconds=SECONDS + CALLS_SECONDS)
        self._cleaned = True

    def _by_name(self, instances: Sequence[Instance]) -> dict[str, Instance]:
        """Name of the machine in messages and results, ``server1`` or ``load`` -> the instance."""
        number = len(self._targets)
        found: dict[str, Instance] = {}
        for instance in instances:
            number += instance.role != LOAD
            found["load" if instance.role == LOAD else f"server{number}"] = instance
        self._instances |= found
        return found

    def _reach(self) -> None:
        """Write the files of ssh: our key, the instances' only host key, and their addresses."""
        assert self._fleet
        keys, directory = self._fleet.keys, self._run.directory / "ec2"
        directory.mkdir(mode=0o700, exist_ok=True)
        owned_files.write(directory, "key", keys.user.private)
        owned_files.write(directory, "known_hosts", f"{name(self.run_id)} {keys.host.public}\n")
        self._write_config()

    def _wait_ready(self, machines: Sequence[str]) -> None:
        """Wait until every instance has booted and prepared its disks. Raises ProvisionError."""
        with concurrent.futures.ThreadPoolExecutor(len(machines)) as threads:
            for future in [threads.submit(self._ready, one) for one in machines]:
                future.result()

    def _report_writes(self, machines: Sequence[str]) -> None:
        """Report how much of their data volumes the instances have written, for the terminal and the fingerprint."""
        alike: dict[str, list[str]] = {}
        seconds = 0
        for machine in machines:
            if written := self._written.get(machine):
                alike.setdefault(str(written), []).append(machine)
                seconds = max(seconds, written.seconds)
                self._hardware.environment[f"data volume {machine}"] = str(written)
        for text, those in alike.items():
            self._tell(f"data volumes of {some(those)}: {text}, in {duration(seconds)}")

    def _ready(self, machine: str) -> None:
        words, jump = "", self._settings.jump
        instance = self._instances[machine]
        patience = READY_SECONDS if ".metal" in instance.type else SILENT_SECONDS  # metal takes many minutes to boot
        limit = time.monotonic() + patience

        def problems() -> list[str]:
            nonlocal words, limit
            command = remote_programs.any_shell(user_data.wait_command(ASK_SECONDS))
            try:
                done = self._access.run(machine, command, seconds=2 * ASK_SECONDS)
            except subprocess.TimeoutExpired:
                return [f"it did not answer within {2 * ASK_SECONDS} s"]
            if done.returncode == 0:
                if why := user_data.problem(done.stdout):
                    raise ProvisionError(f"{machine}: {why}")
                if written := user_data.parse_written(done.stdout):
                    self._written[machine] = written
                return []
            words = done.stderr.strip()[-1000:]
            self._alive(machine)
            if way.FORBIDDEN in words:
                raise ProvisionError(f"--db-ec2-jump {jump} does not forward to {instance.address}: {words}")
            if not way.silent(words, jump):
                limit = math.inf
            elif time.monotonic() > limit:
                raise ProvisionError(way.unreachable(machine, instance, jump, self._settings.source, words))
            return [words or f"ssh ended with {done.returncode}"]

        try:
            wait.until(problems, f"instance {machine}", seconds=READY_SECONDS, poll=POLL_SECONDS)
        except NotReady:
            raise ProvisionError(self._access.problem(machine, words)) from None

    def _alive(self, machine: str) -> None:
        """Raise ProvisionError with AWS's reason if the instance of a machine has ended."""
        assert self._fleet
        instance = self._instances[machine]
        facts = self._fleet.describe([instance.id]).get(instance.id)
        if facts is not None and facts["State"]["Name"] not in ("pending", "running"):
            raise ProvisionError(f"the instance of {machine} has ended: {reason(facts)}")

    def _undo(self, plan: Plan, reservation: str, *, refused: bool) -> None:
        """End the instances of a failed launch. We report what is left, and keep its cost reserved.

        refused: whether AWS refused a request of the launch, so that perhaps there is no instance.
        """
        assert self._fleet
        for machine in [one for one in self._instances if one not in (*self._targets, *self._load_targets)]:
            del self._instances[machine]
        reaped = self._end_all(launch=str(plan.number) if self._targets else "")
        if reaped is not None and not reaped.left:
            launched = not refused or any(one.startswith(f"ended {INSTANCES.noun}") for one in reaped.done)
            self._settle(reservation, launched=launched)

    def describe_stay(self) -> Stay:
        """After ``leave`` the instances stay until they end themselves."""
        assert self._fleet
        region = self._fleet.account.region
        if not self._ends:
            remaining = map(_remaining_seconds, self._machines.values())
            left = [seconds for seconds in remaining if seconds is not None]
            self._ends = time.time() + max(left) if left else self._expires
        command = f"dbcluster down {self.run_id} --provisioner ec2 --region {region}"
        return Stay(command, f"{PLACE}{region}", self._ends)

    def leave(self) -> None:
        """Leave instances and servers running, until the instances end themselves. Raises ProvisionError."""
        if self._run.left:
            return
        assert self._fleet
        try:
            self._fleet.keep()
        except AwsError as error:
            self._tell(
                f"cannot mark the instances as kept: {error}; `dbcluster reap --provisioner ec2` on this "
                "machine would end them as instances of a dead run"
            )
        self._stay()

    def _report_kept(self) -> None:
        """Report the kept instances, their time to live, and their cost."""
        stay = self.describe_stay()
        assert stay.ends
        for one in (*self._targets, *self._load_targets):
            instance = self._instances[one]
            login = shlex.join(["ssh", *self._access.files, one])
            private = f", privately {instance.private}" if instance.private != instance.address else ""
            self._tell(f"kept: {instance.type} at {instance.address}{private}; log in with: {login}")
        if self._beside:
            self._tell(
                "the kept proxies ask a program of this machine which nodes are healthy: they route to no node "
                "while this machine is off or disconnected"
            )
        at = time.strftime("at %Y-%m-%d %H:%M:%S UTC", time.gmtime(stay.ends))
        left = duration(stay.ends - time.time())
        self._tell(f"ec2: the kept instances end themselves {at}, in {left}; to end them earlier: {stay.command}")
        with contextlib.suppress(ProvisionError):
            self._tell(f"ec2: {self._spending.kept_line(at)}")

    def _end_all(self, launch: str = "") -> Reaped | None:
        """End everything of the run in the account, and report what is left. None if AWS does not answer."""
        assert self._fleet
        try:
            reaped = Reaper(self._fleet.account, self._tell).end(self.run_id, launch)
        except AwsError as error:
            self._tell(f"cannot end the instances: {error}")
            return None
        for left in reaped.left:
            self._tell(f"left in the account: {left}; dbcluster reap --provisioner ec2 --run {self.run_id}")
        return reaped

    def _leave_machines(self, machines: Sequence[Machine]) -> None:
        """End the instances through AWS. If it refuses, make each one end itself, which needs no credentials.

        After ``leave`` they stay.
        """
        if self._fleet is None or not self._cleaned or self._left:  # it launched nothing, or this is a second call
            return
        if self._run.left:
            self._report_kept()
        else:
            self._end_instances(machines)
        self._left = True  # set last, because pytest calls close again after Ctrl-C in the line above

    def _end_instances(self, machines: Sequence[Machine]) -> None:
        if (reaped := self._end_all()) is not None:
            if not reaped.left:
                self._settle()
            self._report_spending()
            return
        told = []
        for machine in machines:
            with contextlib.suppress(ProvisionError):
                machine.session.ask(SHUTDOWN)
                told.append(machine.target)
        if told:
            self._tell(f"sent a shutdown over ssh to {some(told)}")
        ends = time.strftime("%H:%M", time.localtime(self._expires))
        self._tell(
            f"every instance ends itself by {ends}; key and groups stay, and cost nothing. To remove them with valid "
            f"credentials: dbcluster reap --provisioner ec2 --run {self.run_id}"
        )
        self._report_spending()

    def _settle(self, *reservations: str, launched: bool = True) -> None:
        """Record the cost of launches; without names, of all. If that fails, it stays reserved."""
        try:
            self._spending.record_end(*reservations, launched=launched)
        except ProvisionError as error:
            self._tell(str(error))

    def _report_spending(self) -> None:
        with contextlib.suppress(ProvisionError):
            self._tell(f"ec2: {self._spending.line}")

    def _compare_cpus(self) -> None:
        """Raise ProvisionError for nodes with different CPUs, which would be a difference in hardware."""
        found: dict[str, list[str]] = {}
        for machine in self._nodes():
            found.setdefault(machine.facts.cpu, []).append(machine.target)
        if len(found) > 1:
            listed = "; ".join(f"{', '.join(targets)}: {cpu}" for cpu, targets in found.items())
            self._failed = (
                f"AWS gave instances of one type different CPUs ({listed}), so their figures cannot be compared: "
                "run again, try another --db-ec2-zone, or a type with one CPU model"
            )
            raise ProvisionError(self._failed)


def _remaining_seconds(machine: Machine) -> float | None:
    """The remaining time of an instance by its timer, in seconds; None if it does not answer."""
    try:
        ends, now = machine.session.ask(f"cat {user_data.EXPIRES} && date +%s").split()
        return float(ends) - float(now)
    except (ProvisionError, ValueError):
        return None
