"""The fleet of a run: instances and their resources. It launches all of them, or leaves nothing.

Everything that can have tags gets them at creation, so that a reaper finds it without a local record. Instances end
themselves when their time to live is over, even if our process has died (``user_data``).
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from pytest_dbcluster import wait
from pytest_dbcluster.errors import NotReady, ProvisionError
from pytest_dbcluster.formatting import printable, quantity
from pytest_dbcluster.hosts.provisioners.ec2 import user_data
from pytest_dbcluster.hosts.provisioners.ec2.aws import Account, AwsError, redact
from pytest_dbcluster.hosts.provisioners.ec2.plan import (
    DEFAULT_TYPE,
    LOAD,
    ROOT_KIND,
    SERVER,
    Image,
    Part,
    Plan,
    Subnet,
    check_types,
    choose_subnets,
    describe_types,
    find_image,
    our_address,
)
from pytest_dbcluster.hosts.provisioners.ec2.settings import LOCAL_DISK, EC2Settings, Volume
from pytest_dbcluster.hosts.provisioners.ec2.tags import KEPT_TAG, name, tags_of

DATA_DEVICE = "/dev/sdf"  # a name for the request; the instance finds the disk by its identity
# docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-request-status.html: prefixes of the codes of interrupted instances.
TAKEN = ("marked-for-termination", "instance-terminated-")
RUNNING_SECONDS = 300.0
POLL_SECONDS = 2.0


@dataclasses.dataclass(frozen=True)
class Instance:
    """A running instance."""

    id: str
    """The id of the instance."""

    role: str
    """``plan.SERVER`` or ``plan.LOAD``."""

    type: str
    """The name of the instance type."""

    subnet: Subnet
    """Its subnet."""

    address: str
    """The address for ssh."""

    private: str
    """The address for other instances."""

    facts: Mapping[str, Any] = dataclasses.field(repr=False, compare=False)
    """AWS's description of the instance."""


@dataclasses.dataclass(frozen=True)
class Keys:
    """The keys of a run."""

    host: user_data.HostKey
    """The host key of all instances of the run."""

    user: user_data.HostKey
    """The key with which the user of the run logs in."""


class Fleet:
    """The instances of a run. directory: of their data. progress: prints lines about slow steps."""

    def __init__(
        self, account: Account, settings: EC2Settings, run_id: str, keys: Keys, directory: str = user_data.DIRECTORY
    ) -> None:
        self.account = account
        self.settings = settings
        self.run_id = run_id
        self.instances: list[Instance] = []
        self.keys = keys
        self._directory = directory
        self._launches = itertools.count(1)
        self._group = ""
        self._together = False  # whether the placement group was made

    @property
    def name(self) -> str:
        """The name of the key, the groups and the instances of the run."""
        return name(self.run_id)

    def plan(self, servers: int, *, load: bool, expires: float) -> Plan:
        """Plan a launch of so many servers, in the place of earlier ones. Makes nothing.

        Raises ConfigError, Unsupported and AwsError.
        """
        settings = self.settings
        server = settings.type or DEFAULT_TYPE
        kinds = {SERVER: server, LOAD: settings.load_type or server}
        types = describe_types(self.account, tuple(dict.fromkeys(kinds.values())))
        check_types(types, settings.volume)
        earlier = list(dict.fromkeys(one.subnet for one in self.instances if one.role == SERVER))
        subnets = earlier or choose_subnets(self.account, settings, tuple(types))
        counts = [len(range(number, servers, len(subnets))) for number in range(len(subnets))]
        parts = [Part(SERVER, server, subnet, count) for subnet, count in zip(subnets, counts, strict=True) if count]
        parts += [Part(LOAD, kinds[LOAD], subnets[0], 1)] if load else []
        strategies = [kind.get("PlacementGroupInfo", {}).get("SupportedStrategies", []) for kind in types.values()]
        return Plan(
            self.run_id,
            next(self._launches),
            tuple(parts),
            find_image(self.account, settings.image, types[server]),
            together=len(subnets) == 1 and all("cluster" in one for one in strategies),
            expires=expires,
            source=settings.source or our_address(settings),
            types=types,
        )

    def launch(self, plan: Plan) -> list[Instance]:
        """Launch all instances of a plan and wait until they run; servers first. Raises AwsError or ProvisionError.

        After an error it ends everything. If AWS cannot be reached, the instances still have tags and end themselves.
        """
        if not self._group:
            self._prepare(plan)
        if plan.together and not self._together:
            self._call(
                "CreatePlacementGroup", GroupName=self.name, Strategy="cluster", **self._tags(plan, "placement-group")
            )
            self._together = True
        asked: dict[str, Part] = {}
        for part in plan.parts:
            answer = self._call("RunInstances", **self.request(plan, part))
            asked |= {one["InstanceId"]: part for one in answer["Instances"]}
        found = self._wait_running(asked)
        self.instances += found
        return found

    def _call(self, operation: str, **request: Any) -> Mapping[str, Any]:
        return self.account.call("ec2", operation, **request)

    def _prepare(self, plan: Plan) -> None:
        """Make the resources that launches share: the key, and the group that admits only ssh from us and itself."""
        self._call(
            "ImportKeyPair",
            KeyName=self.name,
            PublicKeyMaterial=self.keys.user.public.encode(),
            **self._tags(plan, "key-pair"),
        )
        made = self._call(
            "CreateSecurityGroup",
            GroupName=self.name,
            Description="pytest-dbcluster: the instances of one run",
            VpcId=plan.parts[0].subnet.vpc,
            **self._tags(plan, "security-group"),
        )
        ssh = {"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22, "IpRanges": [{"CidrIp": plan.source}]}
        own = {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": made["GroupId"]}]}
        self._call("AuthorizeSecurityGroupIngress", GroupId=made["GroupId"], IpPermissions=[ssh, own])
        self._group = made["GroupId"]

    def _tags(self, plan: Plan, *kinds: str) -> dict[str, Any]:
        """The argument of a request that tags the new resources."""
        tags = [{"Key": key, "Value": value} for key, value in tags_of(plan, self.settings.tags).items()]
        return {"TagSpecifications": [{"ResourceType": kind, "Tags": tags} for kind in kinds]}

    def request(self, plan: Plan, part: Part) -> dict[str, Any]:
        """The request that launches a part of a plan."""
        settings = self.settings
        born = ["instance", "volume", "network-interface", *["spot-instances-request"] * settings.spot]
        request: dict[str, Any] = {
            "ImageId": plan.image.id,
            "InstanceType": part.type,
            "MinCount": part.count,
            "MaxCount": part.count,
            "ClientToken": token(plan, part),
            "KeyName": self.name,
            "UserData": self._user_data(plan, part),
            "InstanceInitiatedShutdownBehavior": "terminate",
            "MetadataOptions": {"HttpTokens": "required", "HttpPutResponseHopLimit": 1, "HttpEndpoint": "enabled"},
            "NetworkInterfaces": [
                {
                    "DeviceIndex": 0,
                    "SubnetId": part.subnet.id,
                    "Groups": [self._group],
                    "AssociatePublicIpAddress": part.subnet.public,
                    "DeleteOnTermination": True,
                }
            ],
            "BlockDeviceMappings": disks(plan.image, settings.volume if part.role == SERVER else None),
            **self._tags(plan, *born),
        }
        if plan.together:
            request["Placement"] = {"GroupName": self.name}
        if plan.types[part.type].get("BurstablePerformanceSupported"):
            request["CreditSpecification"] = {"CpuCredits": "unlimited"}
        if settings.spot:
            spot = {"SpotInstanceType": "one-time", "InstanceInterruptionBehavior": "terminate"}
            request["InstanceMarketOptions"] = {"MarketType": "spot", "SpotOptions": spot}
        return request

    def _user_data(self, plan: Plan, part: Part) -> str:
        own = {True: user_data.INSTANCE_STORE, False: user_data.EBS}[self.settings.volume.kind == LOCAL_DISK]
        volume = own if part.role == SERVER else ""
        written = 1024 * self.settings.written
        return user_data.user_data(
            self.keys.host, plan.seconds, volume, self.keys.user.public, self._directory, written
        )

    def _wait_running(self, asked: Mapping[str, Part]) -> list[Instance]:
        """Wait until all run and have addresses. Raises ProvisionError with AWS's reason if one does not start."""
        facts: dict[str, Mapping[str, Any]] = {}

        def problems() -> list[str]:
            facts.clear()
            facts.update(self.describe(list(asked)))
            for id_, one in facts.items():
                if one["State"]["Name"] not in ("pending", "running"):
                    raise ProvisionError(f"instance {id_}, {one['InstanceType']}, did not start: {reason(one)}")
            waiting = [id_ for id_ in asked if facts.get(id_, {}).get("State", {}).get("Name") != "running"]
            without = [id_ for id_, part in asked.items() if id_ not in waiting and not _address(facts[id_], part)]
            return [*(f"{id_} does not run yet" for id_ in waiting), *(f"{id_} has no address yet" for id_ in without)]

        try:
            wait.until(problems, f"{quantity(len(asked), 'instance')}", seconds=RUNNING_SECONDS, poll=POLL_SECONDS)
        except NotReady as error:
            raise ProvisionError(f"AWS did not start all instances within {RUNNING_SECONDS:g} s: {error}") from None
        return [
            Instance(
                id_,
                part.role,
                part.type,
                part.subnet,
                _address(facts[id_], part),
                facts[id_]["PrivateIpAddress"],
                facts[id_],
            )
            for id_, part in asked.items()
        ]

    def describe(self, ids: Sequence[str]) -> dict[str, Mapping[str, Any]]:
        """AWS's descriptions of these instances. A new instance is missing until AWS knows it, after some seconds."""
        try:
            found = self.account.all("DescribeInstances", "Reservations", InstanceIds=list(ids))
        except AwsError as error:
            if error.code != "InvalidInstanceID.NotFound":
                raise
            return {}
        return {one["InstanceId"]: one for each in found for one in each["Instances"]}

    def keep(self) -> None:
        """Mark all instances as kept: a reaper leaves them until they expire. Raises AwsError."""
        ids = [one.id for one in self.instances]
        self._call("CreateTags", Resources=ids, Tags=[{"Key": KEPT_TAG, "Value": "yes"}])

    def interruptions(self, ids: Sequence[str]) -> list[str]:
        """Which of these spot instances AWS interrupts or has interrupted. Raises AwsError."""
        wanted = [{"Name": "instance-id", "Values": list(ids)}]
        found = self.account.all("DescribeSpotInstanceRequests", "SpotInstanceRequests", Filters=wanted)
        return [one["InstanceId"] for one in found if one["Status"]["Code"].startswith(TAKEN)]


def token(plan: Plan, part: Part) -> str:
    """The idempotency token of a request: 32 hexadecimal digits."""
    text = f"{plan.run_id} {plan.number} {part.role} {part.subnet.id} {part.type} {part.count}"
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def disks(image: Image, volume: Volume | None) -> list[dict[str, Any]]:
    """The volumes of an instance, which end with it. volume: for the data; None for an instance without data."""
    mappings: list[dict[str, Any]] = [
        {"DeviceName": device, "Ebs": {"VolumeType": ROOT_KIND, "VolumeSize": gib, "DeleteOnTermination": True}}
        for device, gib in image.devices.items()
    ]
    if volume is not None and volume.kind != LOCAL_DISK:
        data: dict[str, Any] = {"VolumeType": volume.kind, "VolumeSize": volume.gib, "DeleteOnTermination": True}
        if volume.kind != "gp2":
            data["Iops"] = volume.iops
        if volume.kind == "gp3":
            data["Throughput"] = volume.mib_per_second
        mappings.append({"DeviceName": DATA_DEVICE, "Ebs": data})
    return mappings


def reason(facts: Mapping[str, Any]) -> str:
    """Why AWS has ended an instance, in AWS's words."""
    told = facts.get("StateReason", {})
    words = told.get("Message") or told.get("Code") or facts.get("StateTransitionReason") or "AWS gives no reason"
    if told.get("Code", "").startswith(("Server.SpotInstance", "Client.SpotInstance")):
        return f"AWS interrupted the spot instance ({told['Code']}): try again later, or leave out --db-ec2-spot"
    return printable(redact(words))


def _address(facts: Mapping[str, Any], part: Part) -> str:
    """The address for ssh; empty while the instance has no such address."""
    found: str = facts.get("PublicIpAddress" if part.subnet.public else "PrivateIpAddress", "")
    return found
