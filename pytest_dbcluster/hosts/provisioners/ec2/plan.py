"""The plan of a launch: the parameters of its requests, collected before anything is made."""

from __future__ import annotations

import dataclasses
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from ipaddress import IPv4Address
from typing import Any

from pytest_dbcluster.errors import ConfigError, ProvisionError, Unsupported
from pytest_dbcluster.formatting import printable
from pytest_dbcluster.hosts.provisioners.ec2.aws import Account
from pytest_dbcluster.hosts.provisioners.ec2.settings import LOCAL_DISK, EC2Settings, Volume
from pytest_dbcluster.releases import shims

DEFAULT_TYPE = "r6i.large"  # of published measurements; not burstable
# wiki.debian.org/Cloud/AmazonEC2Image: the newest image of Debian 12, by the kernel's name of the architecture.
IMAGE = "/aws/service/debian/release/12/latest/{}"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}  # the kernel's name -> Debian's
OF_AWS = {"x86_64": "x86_64", "arm64": "aarch64"}  # AWS's name -> the kernel's
ROOT_KIND, USUAL_GIB = "gp3", 8  # of the volumes of an image, and their default size
SERVER, LOAD = "server", "load"
OUR_ADDRESS = "https://checkip.amazonaws.com"  # answers with the client's address
ADDRESS_SECONDS = 10


@dataclasses.dataclass(frozen=True)
class Image:
    """A machine image."""

    id: str
    """The id of the image."""

    name: str
    """AWS's name of the image; empty if it has none."""

    devices: Mapping[str, int]
    """Its volumes and their sizes in GiB, the root volume first."""

    architecture: str
    """Its architecture, as ``uname -m`` names it."""


@dataclasses.dataclass(frozen=True)
class Subnet:
    """A subnet."""

    id: str
    """The id of the subnet."""

    vpc: str
    """The id of its VPC."""

    zone: str
    """The name of its availability zone, such as ``eu-central-1a``."""

    zone_id: str
    """The id of the zone, which is the same in all accounts."""

    public: bool
    """Whether its instances get a public address."""


@dataclasses.dataclass(frozen=True)
class Part:
    """Equal instances of a launch, made by one request."""

    role: str
    """``SERVER`` or ``LOAD``."""

    type: str
    """The name of the instance type."""

    subnet: Subnet
    """The subnet of the instances."""

    count: int
    """Number of instances."""


@dataclasses.dataclass(frozen=True)
class Plan:
    """The parameters of a launch."""

    run_id: str
    """The id of the run."""

    number: int
    """The number of the launch in its run, from 1."""

    parts: tuple[Part, ...]
    """The instances, by role and subnet."""

    image: Image
    """The image of all instances."""

    together: bool
    """Whether the instances are in one placement group, if the types allow it."""

    expires: float
    """When the instances end themselves, in seconds since 1970."""

    source: str
    """The network that may use ssh."""

    types: Mapping[str, Mapping[str, Any]]
    """AWS's description of each type (``DescribeInstanceTypes``)."""

    @property
    def servers(self) -> int:
        """The number of servers' instances."""
        return sum(part.count for part in self.parts if part.role == SERVER)

    @property
    def seconds(self) -> float:
        """The remaining time to live, in seconds."""
        return max(1.0, self.expires - time.time())


def describe_types(account: Account, types: Sequence[str]) -> dict[str, Mapping[str, Any]]:
    """AWS's descriptions of these types, in order. Raises AwsError."""
    found = account.all("DescribeInstanceTypes", "InstanceTypes", InstanceTypes=list(types))
    known = {one["InstanceType"]: one for one in found}
    if missing := [one for one in types if one not in known]:
        raise ConfigError(
            f"the region {account.region} has no instances of type {missing[0]}: use another --db-ec2-type"
        )
    return {one: known[one] for one in types}


def check_types(types: Mapping[str, Mapping[str, Any]], volume: Volume) -> None:
    """Raise Unsupported or ConfigError for types that cannot run our programs."""
    here = shims.machine()
    for number, (kind, facts) in enumerate(types.items()):
        architectures = [OF_AWS.get(one, one) for one in facts["ProcessorInfo"]["SupportedArchitectures"]]
        if here not in architectures:
            raise Unsupported(
                f"instances of type {kind} are {' or '.join(architectures)}; releases have programs for "
                f"this machine: {here}"
            )
        if number == 0 and volume.kind == LOCAL_DISK and not facts.get("InstanceStorageSupported"):
            raise ConfigError(f"--db-ec2-volume {LOCAL_DISK}: instances of type {kind} have no local disk")


def choose_subnets(account: Account, settings: EC2Settings, types: Sequence[str]) -> list[Subnet]:
    """The subnets of the servers, one for each zone; the load host is in the first. Raises ConfigError or AwsError."""
    if settings.subnets:
        found = account.all("DescribeSubnets", "Subnets", SubnetIds=list(settings.subnets))
        found.sort(key=lambda one: settings.subnets.index(one["SubnetId"]))
    else:
        found = account.all("DescribeSubnets", "Subnets", Filters=[{"Name": "default-for-az", "Values": ["true"]}])
        found.sort(key=lambda one: str(one["AvailabilityZone"]))
        if not found:
            raise ConfigError(f"the account has no default subnet in {account.region}: name one with --db-ec2-subnet")
    zones = settings.zones or (
        tuple(dict.fromkeys(one["AvailabilityZone"] for one in found)) if settings.subnets else ()
    )
    offered = zones_with(account, types)
    if lacking := [zone for zone in zones if zone not in offered]:
        raise ConfigError(
            f"the zone {lacking[0]} has no instances of type {' and '.join(types)}; zones with them: "
            f"{', '.join(offered) or f'none in {account.region}'}"
        )
    usable = [one for one in found if one["AvailabilityZone"] in (zones or offered)]
    chosen = [next((one for one in usable if one["AvailabilityZone"] == zone), None) for zone in zones] or usable[:1]
    if not chosen or None in chosen:
        wanted = ", ".join(zones or offered) or f"a zone of {account.region} that has {' and '.join(types)}"
        raise ConfigError(f"there is no subnet in {wanted}: name one with --db-ec2-subnet")
    subnets = [_subnet(one, settings) for one in chosen if one]
    if len({one.vpc for one in subnets}) > 1:
        raise ConfigError(
            "--db-ec2-subnet: the subnets are in several VPCs; use subnets whose instances reach each other"
        )
    return subnets


def _subnet(facts: Mapping[str, Any], settings: EC2Settings) -> Subnet:
    public = not settings.jump and (bool(facts.get("MapPublicIpOnLaunch")) or bool(facts.get("DefaultForAz")))
    return Subnet(
        facts["SubnetId"], facts["VpcId"], facts["AvailabilityZone"], facts.get("AvailabilityZoneId", ""), public
    )


def zones_with(account: Account, types: Sequence[str]) -> list[str]:
    """The zones of the region with all these types, in order. Raises AwsError."""
    found = account.all(
        "DescribeInstanceTypeOfferings",
        "InstanceTypeOfferings",
        LocationType="availability-zone",
        Filters=[{"Name": "instance-type", "Values": list(types)}],
    )
    having = [{one["Location"] for one in found if one["InstanceType"] == kind} for kind in types]
    return sorted(set.intersection(*having))


def find_image(account: Account, asked: str, facts: Mapping[str, Any]) -> Image:
    """The image with an id or a public parameter; by default Debian's. facts: of the type. Raises AwsError."""
    architecture = OF_AWS.get(facts["ProcessorInfo"]["SupportedArchitectures"][-1], "x86_64")
    asked = asked or IMAGE.format(ARCHITECTURES[architecture])
    id_ = account.call("ssm", "GetParameter", Name=asked)["Parameter"]["Value"] if asked.startswith("/") else asked
    found = account.all("DescribeImages", "Images", ImageIds=[id_])
    if not found:
        raise ConfigError(f"--db-ec2-image {asked}: the region {account.region} has no such image")
    image = found[0]
    volumes = {one["DeviceName"]: one["Ebs"] for one in image.get("BlockDeviceMappings", []) if "Ebs" in one}
    root = image.get("RootDeviceName") or next(iter(volumes), "/dev/xvda")
    return Image(
        id_,
        printable(image.get("Name", "")),
        {device: int(volumes.get(device, {}).get("VolumeSize", USUAL_GIB)) for device in (root, *volumes)},
        OF_AWS.get(image.get("Architecture", ""), architecture),
    )


def our_address(settings: EC2Settings, ask: Callable[..., Any] = urllib.request.urlopen) -> str:
    """The network with only our public address, as AWS sees it. Raises ConfigError or ProvisionError."""
    option = "set the network of your ssh: --db-ec2-from CIDR"
    if settings.jump:
        raise ConfigError(f"--db-ec2-jump {settings.jump}: instances see the address of that host; {option}")
    try:
        with ask(OUR_ADDRESS, timeout=ADDRESS_SECONDS) as answer:
            return f"{IPv4Address(answer.read(100).decode('ascii').strip())}/32"
    except (urllib.error.URLError, OSError, ValueError) as error:
        raise ProvisionError(
            f"cannot find out our address at {OUR_ADDRESS}: {printable(str(error))}; {option}"
        ) from None
