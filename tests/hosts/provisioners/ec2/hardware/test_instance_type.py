"""What AWS says of a type, from the answers that moto has of it."""

from __future__ import annotations

import pytest

from pytest_dbcluster.hosts.provisioners.ec2.hardware.instance_type import InstanceType, Speed
from tests.support.instance_types import described


def test_a_type_has_its_speeds() -> None:
    """Those that it has for ever and those that it lends, of volumes and of the network."""
    kind = InstanceType.of(described("r6i.large"))

    assert (kind.name, kind.cpus, kind.cores, kind.memory) == ("r6i.large", 2, 1, 16 * 2**30)
    assert kind.ebs_operations == Speed(3600, 40000)
    assert kind.ebs_megabytes == Speed(81.25, 1250)
    assert kind.network == Speed(0.781, 12.5)
    assert not kind.burstable
    assert kind.disks == ""
    assert kind.size == "2 CPUs and 16.0 GiB"


def test_a_type_may_have_disks_or_credits() -> None:
    """m5d has an instance store, and t3 has burst credits."""
    assert InstanceType.of(described("m5d.xlarge")).disks == "1 x 150 GB ssd"
    assert InstanceType.of(described("t3.medium")).burstable


def test_what_aws_does_not_say_is_empty() -> None:
    """An old type has no entry for its speeds: nothing is made up."""
    kind = InstanceType.of({"InstanceType": "x1.old"})

    assert kind.ebs_operations == kind.network == Speed()
    assert not kind.network.bursts
    assert kind.network.text("Gbit/s") == ""


@pytest.mark.parametrize(
    ("speed", "text", "bursts"),
    [
        (Speed(3600, 40000), "3600 operations/s, for a time 40000", True),
        (Speed(5000, 5000), "5000 operations/s", False),
        (Speed(), "", False),
    ],
)
def test_a_speed_as_text(speed: Speed, text: str, bursts: bool) -> None:
    """Both speeds where they differ."""
    assert (speed.text("operations/s"), speed.bursts) == (text, bursts)
