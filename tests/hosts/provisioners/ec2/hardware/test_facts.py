"""What figures depend on because of the instances, as text."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.hosts.provisioners.ec2.hardware import facts
from pytest_dbcluster.hosts.provisioners.ec2.hardware.instance_type import InstanceType
from pytest_dbcluster.hosts.provisioners.ec2.settings import Volume
from tests.support.facts import missing
from tests.support.instance_types import described

DATA = {"VolumeType": "gp3", "Size": 50, "Iops": 3000, "Throughput": 125, "Attachments": [{"Device": "/dev/sdf"}]}
ROOT = {"VolumeType": "gp2", "Size": 8, "Iops": 100, "Attachments": [{"Device": "/dev/xvda"}]}
PLACED = {"AvailabilityZone": "eu-central-1a", "GroupName": "dbcluster-0a1b2c3d", "Tenancy": "default"}
INSTANCE = {"InstanceId": "i-0123456789abcdef0", "RootDeviceName": "/dev/xvda", "Placement": PLACED}
PRINTED = "rtt min/avg/max/mdev = 0.551/0.620/0.700/0.050 ms\n"


def r6i() -> InstanceType:
    """An ordinary type."""
    return InstanceType.of(described("r6i.large"))


def told(more: dict[str, Any] | None = None, kind: InstanceType | None = None, **how: Any) -> str:
    """The text of an instance."""
    given = {"zone_id": "euc1-az2", "volumes": [ROOT, DATA], "microcode": "0xd0003f5", **how}
    return facts.instance({**INSTANCE, **(more or {})}, kind or r6i(), **given)


def test_every_fact_of_an_instance_is_told() -> None:
    """Type, place, tenancy, how it was bought, microcode, volumes, and speeds with those that it has for a time."""
    assert told() == (
        "r6i.large in euc1-az2, in a cluster placement group, default tenancy, on demand, microcode 0xd0003f5, data on "
        "gp3 50 GiB 3000 operations/s 125 MiB/s, root on gp2 8 GiB 100 operations/s, to volumes 3600 operations/s, "
        "for a time 40000; 81.25 MB/s, for a time 1250, network 0.781 Gbit/s, for a time 12.5"
    )


def test_nothing_of_this_run_is_told() -> None:
    """The same hardware gives the same text in another run: no id, no address, no name of ours."""
    assert "dbcluster" not in told()
    assert "i-0123" not in told()


def test_what_differs_is_told() -> None:
    """Spot, a zone's id from AWS itself, no placement group, disks of its own, and the credits of a burstable type."""
    placed = {"AvailabilityZone": "eu-central-1a", "AvailabilityZoneId": "euc1-az1", "Tenancy": "dedicated"}
    text = told(
        {"InstanceLifecycle": "spot", "Placement": placed}, InstanceType.of(described("m5d.xlarge")), mode="unlimited"
    )

    assert text.startswith("m5d.xlarge in euc1-az1, in no placement group, dedicated tenancy, spot")
    assert "its own disks: 1 x 150 GB ssd" in text
    assert text.endswith("credit mode unlimited")


def test_what_is_not_known_is_left_out() -> None:
    """An empty answer gives no made-up value."""
    assert told(volumes=[], microcode="", kind=InstanceType.of({"InstanceType": "x1.old"})) == (
        "x1.old in euc1-az2, in a cluster placement group, default tenancy, on demand"
    )


def test_the_disk_of_the_data() -> None:
    """As the option names it, or the instance's own."""
    assert facts.disk(Volume.parse("gp2:100"), r6i()) == "EBS gp2:100"
    assert facts.disk(Volume.parse("nvme"), InstanceType.of(described("m5d.xlarge"))) == (
        "the local disk of m5d.xlarge (1 x 150 GB ssd)"
    )


ZONES = {"server1": "euc1-az1", "server2": "euc1-az2", "server3": "euc1-az1"}
ADDRESSES = {"server1": "10.0.0.1", "server2": "10.0.1.1", "server3": "10.0.0.3"}


def test_round_trips_are_those_between_zones() -> None:
    """Each pair of machines in different zones is asked once."""
    asked: list[tuple[str, str]] = []

    def run(machine: str, command: str) -> str:
        asked.append((machine, command.split()[-6]))
        return PRINTED if machine == "server1" else PRINTED.replace("0.620", "0.720")

    times = facts.round_trips(ZONES, ADDRESSES, run)

    assert times == pytest.approx({("server1", "server2"): 0.00062, ("server2", "server3"): 0.00072})
    line = facts.round_trip_line(ZONES, times)
    assert missing(line, "round trips between zones", "euc1-az1 and euc1-az2", "0.62 ms to 0.72 ms") == []


def test_what_does_not_come_back_is_not_known() -> None:
    """A machine without ping, and a packet that is lost, give no figure."""

    def run(machine: str, command: str) -> str:
        if machine == "server2":
            raise ProvisionError("the connection is lost")
        return "sh: ping: not found\n"

    times = facts.round_trips(ZONES, ADDRESSES, run)

    assert times == {}
    line = facts.round_trip_line(ZONES, times)
    assert missing(line, "round trips between euc1-az1, euc1-az2: unknown", "all pings were lost") == []


def test_one_zone_has_no_line() -> None:
    """Nor is anything asked."""
    zones = dict.fromkeys(ZONES, "euc1-az1")

    assert facts.round_trips(zones, ADDRESSES, lambda *_: pytest.fail("asked")) == {}
    assert facts.round_trip_line(zones, {}) == ""


def test_the_ping_of_this_machine_is_understood() -> None:
    """Its last line has the times."""
    path = f"{os.environ['PATH']}:/sbin:/usr/sbin:{Path(sys.executable).parent}"
    if not shutil.which("ping", path=path):
        pytest.skip("there is no program ping here (scripts/ping.sh fetches it)")
    done = subprocess.run(
        ["sh", "-c", facts.PING % "127.0.0.1"], capture_output=True, text=True, check=False,
        env={**os.environ, "PATH": path},
    )  # fmt: skip

    assert facts.TIMES.search(done.stdout), done.stdout


@pytest.mark.parametrize(
    ("types", "volume", "named"),
    [
        (["r6i.large"], "gp2:100", [("gp2, 100 GiB", "3000 operations/s, then 300")]),
        (["r6i.large"], "gp2:10", [("gp2, 10 GiB", "then 100")]),
        (["r6i.large"], "gp2:1000", []),
        (["r6i.large"], "gp3:50", []),
        (["t3.medium", "r6i.large"], "gp3:50", [("t3.medium", "unlimited")]),
        (["t3.medium"], "gp2:100", [("t3.medium", "unlimited"), ("gp2, 100 GiB", "then 300")]),
    ],
)
def test_what_is_faster_at_first_is_named(types: list[str], volume: str, named: list[tuple[str, str]]) -> None:
    """Burstable types, and gp2 volumes below 1000 GiB with both speeds; a line each, and none for others."""
    lines = facts.bursts([described(one) for one in types], Volume.parse(volume))

    assert len(lines) == len(named)
    for line, words in zip(lines, named, strict=True):
        assert all(word in line for word in (*words, "faster at first than later"))
