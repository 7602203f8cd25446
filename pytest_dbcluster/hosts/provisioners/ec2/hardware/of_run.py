"""Hardware: the properties of a run's instances that affect figures, from AWS and from the machines.

If AWS does not answer a request that only describes something, the description is missing, but the test goes on.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pytest_dbcluster.hosts.host import Host
from pytest_dbcluster.hosts.provisioners.ec2.aws import Account, AwsError
from pytest_dbcluster.hosts.provisioners.ec2.fleet import Instance
from pytest_dbcluster.hosts.provisioners.ec2.hardware import facts, needs
from pytest_dbcluster.hosts.provisioners.ec2.hardware.instance_type import InstanceType
from pytest_dbcluster.hosts.provisioners.ec2.plan import DEFAULT_TYPE, SERVER, Image, describe_types
from pytest_dbcluster.hosts.provisioners.ec2.settings import EC2Settings
from pytest_dbcluster.spec import ClusterSpec

Ask = Callable[[str, str], str]


class Hardware:
    """The hardware of a run's instances.

    account: returns the account when it is needed. ask: runs a script on a machine and returns its output. directory:
    of the data, on the data volume. tell: prints a line on the terminal.
    """

    def __init__(
        self,
        settings: EC2Settings,
        account: Callable[[], Account],
        ask: Ask,
        directory: str,
        tell: Callable[[str], None],
    ) -> None:
        self._settings = settings
        self._account = account
        self._ask = ask
        self._directory = directory
        self._tell = tell
        self._changing = threading.Lock()
        self._kinds: dict[str, InstanceType] = {}
        self._instances: dict[str, Instance] = {}  # by machine
        self._silent = False  # AWS did not answer; we do not repeat the request for each cluster
        self._modes: dict[str, str] = {}  # of CPU credits, by instance
        self.environment: dict[str, str] = {}

    def kind(self, name: str) -> InstanceType:
        """A type; we request it once. Raises AwsError and ConfigError."""
        if name not in self._kinds:
            self._kinds[name] = InstanceType.of(describe_types(self._account(), [name])[name])
        return self._kinds[name]

    @functools.cached_property
    def _all_kinds(self) -> list[InstanceType]:
        own = self.kind(self._settings.type or DEFAULT_TYPE)
        wanted = {"Name": "processor-info.supported-architecture", "Values": list(own.architectures)}
        found = self._account().all("DescribeInstanceTypes", "InstanceTypes", Filters=[wanted])
        return [InstanceType.of(one) for one in found]

    def unmet(self, spec: ClusterSpec) -> str:
        """A message with a cluster's needs that the instances do not meet; empty if they meet all.

        Also empty if AWS does not answer: then the launch reports it.
        """
        if not spec.needs.powers and not spec.needs.storage:
            return ""
        if not self._silent:
            try:
                kind = self.kind(self._settings.type or DEFAULT_TYPE)
                return needs.unmet(spec, kind, self._settings.volume, lambda: self._all_kinds)
            except AwsError:
                self._silent = True
        return ""

    def limit(self, spec: ClusterSpec, hosts: Sequence[tuple[str, Host]]) -> None:
        """Limit the writes of new hosts, each with its machine, if the cluster asks for fewer than the volume has.

        Raises ProvisionError.
        """
        operations = needs.limit(spec.needs, self._settings.volume)
        if operations is None:
            return
        for machine, host in hosts:
            needs.enforce(lambda command, host=host: host.run(command).stdout, operations, self._directory, machine)  # type: ignore[misc]
        self.environment[f"storage {spec.needs.storage or f'iops={operations}'}"] = needs.label(
            spec.needs, self._settings.volume
        )

    def join(self, machines: Mapping[str, Instance], image: Image) -> None:
        """Add newly connected machines; known ones are skipped. Raises ProvisionError."""
        with self._changing:
            new = {machine: one for machine, one in machines.items() if machine not in self._instances}
            if not new:
                return
            self._instances |= new
            volumes = self._volumes(new)
            self._ask_modes(new)
            for machine, instance in new.items():
                self.environment[f"instance {machine}"] = self._describe(machine, instance, volumes)
            self.environment["image"] = f"{image.id} {image.name}".strip()
            self._between_zones()

    def _ask_modes(self, machines: Mapping[str, Instance]) -> None:
        """Ask AWS for the credit mode of burstable instances. Without an answer it stays unknown."""
        ids = [one.id for one in machines.values() if self.kind(one.type).burstable]
        if not ids:
            return
        with contextlib.suppress(AwsError):
            found = self._account().all(
                "DescribeInstanceCreditSpecifications", "InstanceCreditSpecifications", InstanceIds=ids
            )
            self._modes |= {one["InstanceId"]: one.get("CpuCredits", "") for one in found}

    def _describe(self, machine: str, instance: Instance, volumes: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
        kind = self.kind(instance.type)
        return facts.instance(
            instance.facts,
            kind,
            zone_id=instance.subnet.zone_id,
            volumes=volumes.get(instance.id, []),
            microcode=self._ask(machine, facts.MICROCODE).strip(),
            mode=self._modes.get(instance.id, "not known") if kind.burstable else "",
        )

    def _volumes(self, machines: Mapping[str, Instance]) -> dict[str, list[Mapping[str, Any]]]:
        """Instance -> its volumes; empty if AWS does not answer."""
        ids = [instance.id for instance in machines.values()]
        found: dict[str, list[Mapping[str, Any]]] = {}
        with contextlib.suppress(AwsError):
            wanted = [{"Name": "attachment.instance-id", "Values": ids}]
            for volume in self._account().all("DescribeVolumes", "Volumes", Filters=wanted):
                for attached in volume.get("Attachments", []):
                    found.setdefault(attached["InstanceId"], []).append(volume)
        return found

    def _between_zones(self) -> None:
        """Measure and report the round trips between zones, if there are several."""
        zones = {
            machine: instance.subnet.zone_id or instance.subnet.zone
            for machine, instance in self._instances.items()
            if instance.role == SERVER
        }
        addresses = {machine: self._instances[machine].private for machine in zones}
        if line := facts.round_trip_line(zones, facts.round_trips(zones, addresses, self._ask)):
            self._tell(line)
            self.environment["zones"] = line
