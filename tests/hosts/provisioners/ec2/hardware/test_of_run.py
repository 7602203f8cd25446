"""The hardware of a run, with moto in AWS's place and made-up machines."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import boto3
import pytest

from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.hosts.host import Completed
from pytest_dbcluster.hosts.provisioners.ec2.aws import Account, AwsError
from pytest_dbcluster.hosts.provisioners.ec2.fleet import Instance
from pytest_dbcluster.hosts.provisioners.ec2.hardware import facts
from pytest_dbcluster.hosts.provisioners.ec2.hardware.of_run import Hardware
from pytest_dbcluster.hosts.provisioners.ec2.plan import LOAD, SERVER, Image, Subnet
from pytest_dbcluster.hosts.provisioners.ec2.settings import EC2Settings
from pytest_dbcluster.spec import ClusterSpec

REGION = "eu-central-1"
GALERA = ClusterSpec("galera", nodes=3)
IMAGE = "ami-12c6146b"  # one that moto has


@pytest.fixture(scope="module")
def account() -> Iterator[Account]:
    """An account that moto plays."""
    import moto  # large: only for tests that need it

    known = {
        "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE",
        "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_CONFIG_FILE": "/nonexistent",
        "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent",
    }
    with pytest.MonkeyPatch.context() as patch, moto.mock_aws():
        for name, value in known.items():
            patch.setenv(name, value)
        yield Account()


def launched(kind: str, number: int, zones: Sequence[str] = ("a",), role: str = SERVER) -> dict[str, Instance]:
    """Instances of a type, one after another in these zones, by machine."""
    client = boto3.client("ec2", region_name=REGION)
    found = {}
    for index in range(number):
        zone = zones[index % len(zones)]
        answer = client.run_instances(
            ImageId=IMAGE,
            InstanceType=kind,
            MinCount=1,
            MaxCount=1,
            Placement={"AvailabilityZone": f"{REGION}{zone}"},
            BlockDeviceMappings=[{"DeviceName": "/dev/sdf", "Ebs": {"VolumeType": "gp2", "VolumeSize": 100}}],
        )
        (described,) = answer["Instances"]
        subnet = Subnet("subnet-1", "vpc-1", f"{REGION}{zone}", f"euc1-az{zone}", public=True)
        name = "load" if role == LOAD else f"server{index + 1}"
        found[name] = Instance(described["InstanceId"], role, kind, subnet, "192.0.2.1", f"10.0.0.{index}", described)
    return found


class Machines:
    """What machines print."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    def __call__(self, machine: str, script: str) -> str:
        """The answer to one of the scripts."""
        self.asked.append((machine, script))
        if script == facts.MICROCODE:
            return "0xd0003f5\n"
        return "rtt min/avg/max/mdev = 0.551/0.620/0.700/0.050 ms\n"


@dataclasses.dataclass
class Made:
    """A hardware with what it talks to."""

    hardware: Hardware
    machines: Machines
    lines: list[str]


def made(account: Account, **options: Any) -> Made:
    """The hardware of a run with these options."""
    machines, lines = Machines(), list[str]()
    settings = EC2Settings.parse(**options)
    return Made(Hardware(settings, lambda: account, machines, "/var/tmp", lines.append), machines, lines)


IMAGE_FACTS = Image(IMAGE, "debian-12", {"/dev/xvda": 8}, "x86_64")


def test_every_machine_is_told_once(account: Account) -> None:
    """With its volumes as AWS describes them; machines that join later are added."""
    run = made(account)
    servers = launched("r6i.large", 2)
    run.hardware.join({"server1": servers["server1"]}, IMAGE_FACTS)
    run.hardware.join(servers, IMAGE_FACTS)

    told = run.hardware.environment
    assert told["instance server1"].startswith("r6i.large in euc1-aza")
    assert "gp2 100 GiB" in told["instance server1"]
    assert "microcode 0xd0003f5" in told["instance server2"]
    assert told["image"] == f"{IMAGE} debian-12"
    assert [machine for machine, script in run.machines.asked if script == facts.MICROCODE] == ["server1", "server2"]
    assert run.lines == []


def test_the_credit_mode_is_what_aws_says(account: Account) -> None:
    """Standard, which moto says of every instance."""
    run = made(account, type="t3.medium")
    run.hardware.join(launched("t3.medium", 1), IMAGE_FACTS)

    assert run.hardware.environment["instance server1"].endswith("credit mode standard")


def test_without_permission_to_describe_less_is_told(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    """What AWS does not tell is missing, and ends no test."""
    run = made(account)
    servers = launched("t3.medium", 1)
    asked = account.all

    def refused(operation: str, key: str, /, **request: Any) -> Any:
        if operation != "DescribeInstanceTypes":
            raise AwsError("these credentials do not permit it", "UnauthorizedOperation")
        return asked(operation, key, **request)

    monkeypatch.setattr(account, "all", refused)
    run.hardware.join(servers, IMAGE_FACTS)

    assert "GiB" not in run.hardware.environment["instance server1"]
    assert run.hardware.environment["instance server1"].endswith("credit mode not known")


def test_round_trips_between_zones_are_told_and_kept(account: Account) -> None:
    """Of servers in several zones; the terminal and the fingerprint have the line."""
    run = made(account)
    run.hardware.join(launched("r6i.large", 3, zones=("a", "b", "c")), IMAGE_FACTS)

    line = "round trips between zones: " + "; ".join(
        f"euc1-az{pair} 0.62 ms" for pair in ("a and euc1-azb", "a and euc1-azc", "b and euc1-azc")
    )
    assert run.lines == [line]
    assert run.hardware.environment["zones"] == line


def test_needs_are_those_of_the_type(account: Account) -> None:
    """The types of the region are asked for when there is a nearest one to name."""
    run = made(account, type="r6i.large")

    assert run.hardware.unmet(GALERA) == ""
    assert run.hardware.unmet(GALERA.with_needs(cores=2)) == ""
    assert run.hardware.unmet(GALERA.with_needs(cores=4, memory="32G")).endswith(
        "the nearest type is --db-ec2-type r6i.xlarge, with 4 CPUs and 32.0 GiB"
    )


def test_needs_ask_nobody_who_does_not_answer_again(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    """Collecting tests goes on without AWS, and is not slowed by each cluster."""
    asked = []

    def refused(*words: str, **_: Any) -> Any:
        asked.append(words)
        raise AwsError("check the network", "NoAnswer")

    monkeypatch.setattr(account, "all", refused)
    run = made(account)

    assert [run.hardware.unmet(GALERA.with_needs(cores=cores)) for cores in (1, 2, 3)] == [""] * 3
    assert len(asked) == 1


class Limited:
    """A host that writes down the commands that it is given."""

    def __init__(self, says: str) -> None:
        self.says = says
        self.commands: list[Sequence[str]] = []

    def run(self, command: Sequence[str]) -> Completed:
        """What it says."""
        self.commands.append(command)
        return Completed(self.says, "", 0.0)


def test_fewer_writes_are_a_limit_of_ours(account: Account) -> None:
    """On each host of the cluster, and the results call it so."""
    run = made(account)
    host: Any = Limited("limited\n")
    run.hardware.limit(GALERA.with_storage("gp2-100"), [("server1", host), ("server2", host)])

    assert [command[-2:] for command in host.commands] == [["100", "/var/tmp"]] * 2
    assert run.hardware.environment == {"storage gp2-100": "gp2-100 is our limit of 100 writes/s on gp3"}
    run.hardware.limit(GALERA.with_storage("gp3"), [("server1", host)])
    assert len(host.commands) == 2
    refusing: Any = Limited("failed no systemd\n")
    with pytest.raises(ProvisionError, match="server3 to 100 per second: no systemd"):
        run.hardware.limit(GALERA.with_storage("gp2-100"), [("server3", refusing)])
