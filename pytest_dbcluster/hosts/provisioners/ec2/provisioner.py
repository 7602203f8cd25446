"""Provisioner for Amazon EC2: ``--db-provisioner ec2 --db-max-cost USD``.

It launches instances, hands them to the provisioner ssh as machines, and ends them with the run. They are launched once
and stay warm: all variants share them, servers side by side. A cluster that is larger than those before it gets more.
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
from pytest_dbcluster.hosts.provisioner import NO_DISKS, Stay
from pytest_dbcluster.hosts.provisioners.ec2 import user_data, way
from pytest_dbcluster.hosts.provisioners.ec2.aws import Account, AwsError
from pytest_dbcluster.hosts.provisioners.ec2.fleet import Fleet, Instance, Keys, reason
from pytest_dbcluster.hosts.provisioners.ec2.hardware import facts
from pytest_dbcluster.hosts.provisioners.ec2.hardware.of_run import Hardware
from pytest_dbcluster.hosts.provisioners.ec2.money.prices import Prices
from pytest_dbcluster.hosts.provisioners.ec2.money.spending import Spending, cost_of
from pytest_dbcluster.hosts.provisioners.ec2.plan import LOAD, Image, Plan
from pytest_dbcluster.hosts.provisioners.ec2.reaper import INSTANCES, Reaped, Reaper
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

SILENT_SECONDS = 240.0  # for the first packet from an instance: it costs money while we wait
READY_SECONDS = 900.0 + user_data.WRITE_SECONDS  # for the boot of an instance, until it has prepared its disks
GROW_SECONDS = 300.0
CLUSTER_BYTES = 2**30  # free on a volume that can grow, for a new server with its logs
ASK_SECONDS = 60  # for one question whether it has
POLL_SECONDS = 3.0
SPOT_SECONDS = 10.0  # between two questions whether AWS takes spot instances back
NO_COST = (
    "--db-provisioner ec2 launches nothing without the most that it may cost: --db-max-cost USD, such as "
    "--db-max-cost 2"
)
CLI = "pytest_dbcluster.cli.main"  # run as a program of its own
OWN = "instances are used as their type has them"
# Without waiting: what an agent has begun ends with its session.
SHUTDOWN = "{ systemctl poweroff --force || shutdown -P now || poweroff; } >/dev/null 2>&1"


class Ec2Provisioner(SshProvisioner):
    """Hosts on instances that this run launches.

    settings: what it may launch, and for how much. base: the directory of the instances in which ours is made, on the
    data volume. Raises ConfigError.
    """

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
        self._ends = 0.0  # when the last instance ends itself, by the timers of all; 0 as long as nobody asked
        self._expected = 0  # nodes of the largest cluster that comes next
        self._spending = Spending(settings, self._run.directory / "ec2")
        self._failed = ""  # why nothing more is launched
        self._hardware = Hardware(settings, self._account, self._ask, base, self._tell)
        self._image: Image | None = None
        self._written: dict[str, Written] = {}  # of data volumes that have not grown, by machine
        self._made: Account | None = None
        self._remarks: tuple[str, ...] = ()
        self._notice, self._asked = "", float("-inf")  # that AWS takes an instance back, and when that was asked last
        self._cleaned = self._left = False  # whether the supervisor knows what to do, and whether we have done it

    @property
    def missing(self) -> Mapping[str, str]:
        """Why limits and disks are not offered: power -> a clause with the reason."""
        return {**dict.fromkeys(("cores", "memory", "iops", "netem", "root"), OWN), "block-devices": NO_DISKS}

    def expect(self, specs: Sequence[ClusterSpec]) -> None:
        """Say which clusters come next: the next launch is for the largest of them."""
        self._expected = max((spec.nodes for spec in specs), default=0)

    def acquire(self, spec: ClusterSpec) -> Sequence[SshHost]:
        """A host on an instance of its own for each node. Raises Unsupported, ConfigError and ProvisionError."""
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
        """A message with what a cluster needs and the instances have not; empty when they have it."""
        return self._hardware.unmet(spec)

    @property
    def remarks(self) -> Sequence[str]:
        """Which instances and volumes of this run can be faster at first than later."""
        return self._remarks

    def notice(self) -> str:
        """That AWS takes a spot instance back, which it says two minutes before; empty without. Asked now and then."""
        if not self._settings.spot or self._fleet is None:
            return ""
        if not self._notice and time.monotonic() - self._asked > SPOT_SECONDS:
            self._asked = time.monotonic()
            with contextlib.suppress(AwsError):
                names = {instance.id: machine for machine, instance in self._instances.items()}
                taken = [names[one] for one in self._fleet.taken_back(list(names))]
                if taken:
                    self._notice = (
                        f"AWS takes the spot instance of {some(taken)} back: try again later, or leave out "
                        "--db-ec2-spot"
                    )
                    self._tell(self._notice)
        return self._notice

    @property
    def environment(self) -> Mapping[str, str]:
        """What figures depend on: the machines, and what AWS says of their instances."""
        return {**super().environment, **self._hardware.environment}

    def _ask(self, machine: str, script: str) -> str:
        """What a script prints on a machine that is connected. Raises ProvisionError."""
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
        """Let the file system of the data have all of its volume. Raises ProvisionError."""
        written = self._written.pop(machine.target)
        machine.session.ask(f"set -- {shlex.quote(self._base)}\n{user_data.GROW}", seconds=GROW_SECONDS)
        text = f"{written}, and the rest is used too"
        self._hardware.environment[f"data volume {machine.target}"] = text
        self._tell(f"the data need more room: the file system of {machine.target} has all of its volume now ({text})")

    def _grow(self, nodes: int) -> None:
        """Launch what is missing for a cluster of so many nodes, with a load host at first. All or nothing is launched.

        After an error nothing more is launched by this run: each test would pay for the same error.
        """
        with self._growing:
            if nodes <= len(self._targets):
                return
            missing = max(nodes, self._expected) - len(self._targets)
            if self._failed:
                raise ProvisionError(f"nothing more is launched since: {self._failed}")
            try:
                self._launch(self._fleet or self._found(), missing)
            except ConfigError:
                raise
            except DBClusterError as error:
                self._failed = str(error)
                raise

    def _found(self) -> Fleet:
        """The fleet of this run, still without instances."""
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
        self._check_way()
        self._clean_up_later(fleet.account)
        reservation = self._spending.reserve(cost)
        try:
            machines = self._named(fleet.launch(plan))
            self._reach()
            self._wait_ready(list(machines))
            self._tell_written(list(machines))
        except BaseException as error:
            self._undo(plan, reservation, refused=isinstance(error, AwsError))
            raise
        self._targets += tuple(one for one, instance in machines.items() if instance.role != LOAD)
        self._load_targets += tuple(one for one, instance in machines.items() if instance.role == LOAD)
        self._addresses |= {one: instance.private for one, instance in machines.items()}

    def _check_way(self) -> None:
        """See that the jump host can be used, before there is anything behind it. Raises ProvisionError."""
        if self._settings.jump and not self._instances:
            assert self._run.client  # it has made the directory
            self._write_config()
            way.check_jump(self._access, self._settings.jump)

    def _write_config(self) -> None:
        """Write what ssh needs to know of the instances that there are."""
        directory = self._run.directory / "ec2"
        directory.mkdir(mode=0o700, exist_ok=True)
        text = way.config(self._instances, name(self.run_id), directory, self._settings.jump)
        owned_files.write(directory, "config", text)
        self._access = Access(directory / "config", base=self._base)

    def _clean_up_later(self, account: Account) -> None:
        """Let the supervisor of the run end the instances when this process ends in any way."""
        if self._cleaned:
            return
        command = [sys.executable, "-P", "-m", CLI, "reap", "--provisioner", "ec2", "--run", self.run_id]
        package = str(Path(registry.__file__).parents[1])
        self._run.clean_up_by(command, {"AWS_DEFAULT_REGION": account.region, "PYTHONPATH": package})
        self._cleaned = True

    def _named(self, instances: Sequence[Instance]) -> dict[str, Instance]:
        """The instances by the names that machines have in messages and results: ``server1``, ``load``."""
        number = len(self._targets)
        found: dict[str, Instance] = {}
        for instance in instances:
            number += instance.role != LOAD
            found["load" if instance.role == LOAD else f"server{number}"] = instance
        self._instances |= found
        return found

    def _reach(self) -> None:
        """Write what ssh needs to know of the instances: our key, their key and no other, and their addresses."""
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

    def _tell_written(self, machines: Sequence[str]) -> None:
        """Say what the instances have written of their data volumes, for the terminal and the fingerprint."""
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
        patience = READY_SECONDS if ".metal" in instance.type else SILENT_SECONDS  # metal boots for many minutes
        limit = time.monotonic() + patience

        def problems() -> list[str]:
            nonlocal words, limit
            asked = self._access.command("-o", "ControlMaster=no", "-o", "ControlPath=none", machine)
            command = remote_programs.any_shell(user_data.wait_command(ASK_SECONDS))
            try:
                done = subprocess.run(
                    [*asked, command], stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                    timeout=2 * ASK_SECONDS, check=False,
                )  # fmt: skip
            except subprocess.TimeoutExpired:
                return [f"it did not answer within {2 * ASK_SECONDS} s"]
            if done.returncode == 0:
                if why := user_data.problem(done.stdout):
                    raise ProvisionError(f"{machine}: {why}")
                if written := user_data.written(done.stdout):
                    self._written[machine] = written
                return []
            words = done.stderr.strip()[-1000:]
            self._alive(machine)
            if way.FORBIDDEN in words:
                raise ProvisionError(f"--db-ec2-jump {jump} forwards nothing to {instance.address}: {words}")
            if not way.silent(words, jump):
                limit = math.inf
            elif time.monotonic() > limit:
                raise ProvisionError(way.unreached(machine, instance, jump, self._settings.source, words))
            return [words or f"ssh ended with {done.returncode}"]

        try:
            wait.until(problems, f"instance {machine}", seconds=READY_SECONDS, poll=POLL_SECONDS)
        except NotReady:
            raise ProvisionError(self._access.problem(machine, words)) from None

    def _alive(self, machine: str) -> None:
        """Raise ProvisionError with AWS's reason when the instance of a machine has ended."""
        assert self._fleet
        instance = self._instances[machine]
        facts = self._fleet.described([instance.id]).get(instance.id)
        if facts is not None and facts["State"]["Name"] not in ("pending", "running"):
            raise ProvisionError(f"the instance of {machine} has ended: {reason(facts)}")

    def _undo(self, plan: Plan, reservation: str, *, refused: bool) -> None:
        """End what a launch has made, before its error is told. What stays is told beside it, and stays reserved.

        refused: whether AWS has refused a request of the launch, so that perhaps no instance was launched.
        """
        assert self._fleet
        for machine in [one for one in self._instances if one not in (*self._targets, *self._load_targets)]:
            del self._instances[machine]
        reaped = self._ended(launch=str(plan.number) if self._targets else "")
        if reaped is not None and not reaped.left:
            launched = not refused or any(one.startswith(f"ended {INSTANCES.noun}") for one in reaped.done)
            self._spent(reservation, launched=launched)

    def staying(self) -> Stay:
        """The instances of a run that is left stay until they end themselves."""
        assert self._fleet
        region = self._fleet.account.region
        if not self._ends:
            left = [seconds for machine in self._machines.values() if (seconds := _seconds_left(machine)) is not None]
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
                f"the instances could not be marked as kept: {error}; `dbcluster reap --provisioner ec2` on this "
                "machine would end them as those of a dead run"
            )
        self._stay()

    def _tell_kept(self) -> None:
        """Say what stays, where, for how long, and what it costs."""
        stay = self.staying()
        assert stay.ends
        for one in (*self._targets, *self._load_targets):
            instance = self._instances[one]
            login = shlex.join(["ssh", *self._access.files, one])
            private = f", privately {instance.private}" if instance.private != instance.address else ""
            self._tell(f"kept: {instance.type} at {instance.address}{private}; log in with: {login}")
        if self._beside:
            self._tell(
                "the proxies that are kept ask a program of this machine which nodes are healthy: they lead to none "
                "while this machine is off or not connected"
            )
        at = time.strftime("at %Y-%m-%d %H:%M:%S UTC", time.gmtime(stay.ends))
        left = duration(stay.ends - time.time())
        self._tell(f"ec2: what is kept ends itself {at}, in {left}; end it earlier: {stay.command}")
        with contextlib.suppress(ProvisionError):
            self._tell(f"ec2: {self._spending.kept_line(at)}")

    def _ended(self, launch: str = "") -> Reaped | None:
        """End everything of the run in the account, and tell what is left. None when AWS could not be asked."""
        assert self._fleet
        try:
            reaped = Reaper(self._fleet.account, self._tell).end(self.run_id, launch)
        except AwsError as error:
            self._tell(f"the instances could not be ended: {error}")
            return None
        for left in reaped.left:
            self._tell(f"left in the account: {left}; dbcluster reap --provisioner ec2 --run {self.run_id}")
        return reaped

    def _leave_machines(self, machines: Sequence[Machine]) -> None:
        """End the instances, by AWS; where it refuses, each one ends itself, which needs no credentials.

        Those of a run that is left stay.
        """
        if self._fleet is None or not self._cleaned or self._left:  # nothing was launched, or a second call
            return
        if self._run.left:
            self._tell_kept()
        else:
            self._end_instances(machines)
        self._left = True  # set last: after Ctrl-C in the line above, pytest calls close again

    def _end_instances(self, machines: Sequence[Machine]) -> None:
        if (reaped := self._ended()) is not None:
            if not reaped.left:
                self._spent()
            self._tell_spent()
            return
        told = []
        for machine in machines:
            with contextlib.suppress(ProvisionError):
                machine.session.ask(SHUTDOWN)
                told.append(machine.target)
        if told:
            self._tell(f"{some(told)} were told over ssh to end themselves")
        ends = time.strftime("%H:%M", time.localtime(self._expires))
        self._tell(
            f"every instance ends itself by {ends} at the latest; key and groups stay, and cost nothing: "
            f"dbcluster reap --provisioner ec2 --run {self.run_id}, with credentials that are valid"
        )
        self._tell_spent()

    def _spent(self, *reservations: str, launched: bool = True) -> None:
        """Count what launches have cost, without names those of all. Where it cannot be written they stay reserved."""
        try:
            self._spending.ended(*reservations, launched=launched)
        except ProvisionError as error:
            self._tell(str(error))

    def _tell_spent(self) -> None:
        with contextlib.suppress(ProvisionError):
            self._tell(f"ec2: {self._spending.line}")

    def _compare_cpus(self) -> None:
        """Refuse nodes of unlike CPUs: their difference would be one of hardware. Raises ProvisionError."""
        found: dict[str, list[str]] = {}
        for machine in self._nodes():
            found.setdefault(machine.facts.cpu, []).append(machine.target)
        if len(found) > 1:
            listed = "; ".join(f"{', '.join(targets)}: {cpu}" for cpu, targets in found.items())
            self._failed = (
                f"AWS gave instances of one type unlike CPUs ({listed}), and figures of such nodes cannot be compared: "
                "run again, try another --db-ec2-zone, or a type of one CPU model"
            )
            raise ProvisionError(self._failed)


def _seconds_left(machine: Machine) -> float | None:
    """How long an instance lives by its own timer, in seconds; None where it does not say."""
    try:
        ends, now = machine.session.ask(f"cat {user_data.EXPIRES} && date +%s").split()
        return float(ends) - float(now)
    except (ProvisionError, ValueError):
        return None
