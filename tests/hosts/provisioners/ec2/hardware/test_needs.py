"""Whether what a cluster asks of its hosts is what the instances have, and the nearest type where it is not."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.hosts.provisioners.ec2.hardware import needs
from pytest_dbcluster.hosts.provisioners.ec2.hardware.instance_type import InstanceType
from pytest_dbcluster.hosts.provisioners.ec2.settings import Volume
from pytest_dbcluster.spec import ClusterSpec, HostNeeds
from tests.support.instance_types import all_types, described

GALERA = ClusterSpec("galera", nodes=3)
GP3 = Volume.parse("gp3:50:3000:125")


def known() -> Iterable[InstanceType]:
    """All types."""
    return [InstanceType.of(facts) for facts in all_types().values()]


def nobody() -> Iterable[InstanceType]:
    """For needs that are met: nobody asks AWS."""
    raise AssertionError("the types of the region were asked for")


def unmet(spec: ClusterSpec, name: str = "r6i.large", volume: Volume = GP3) -> str:
    """What a type has not."""
    return needs.unmet(spec, InstanceType.of(described(name)), volume, known)


@pytest.mark.parametrize(
    "spec",
    [
        GALERA,
        GALERA.with_needs(cores=2),
        GALERA.with_needs(memory="16G"),
        GALERA.with_needs(cores=2, memory="16G", iops=3000),
        GALERA.with_needs(iops=100),
        GALERA.with_storage("gp2-100"),
        GALERA.with_storage("gp2-3000"),
        GALERA.with_storage("gp3"),
    ],
    ids=str,
)
def test_what_the_type_has_is_met(spec: ClusterSpec) -> None:
    """The CPUs and the memory of the type, and as many writes as the volume has, or fewer. Nothing is asked for it."""
    assert needs.unmet(spec, InstanceType.of(described("r6i.large")), GP3, nobody) == ""


@pytest.mark.parametrize(
    ("name", "asked", "near"),
    [
        ("r6i.large", {"cores": 4}, "m6i.xlarge"),
        ("r6i.large", {"cores": 4, "memory": "32G"}, "r6i.xlarge"),
        ("r6i.large", {"memory": "8G"}, "m6i.large"),
        ("t3.medium", {"memory": "8G"}, "t3.large"),
        ("m5d.xlarge", {"cores": 8, "memory": "32G"}, "m5d.2xlarge"),
    ],
)
def test_another_size_names_the_nearest_type(name: str, asked: dict[str, Any], near: str) -> None:
    """A type is not cut down. The nearest has the CPUs, then the memory, and is most like the chosen one."""
    said = unmet(GALERA.with_needs(**asked), name)
    kind = InstanceType.of(described(near))

    assert f"of its hosts, but {name} has {InstanceType.of(described(name)).size}: " in said
    assert said.endswith(f"the nearest type is --db-ec2-type {near}, with {kind.size}")


def test_a_region_without_any_type_has_no_nearest() -> None:
    """The advice is then without a name."""
    kind = InstanceType.of(described("t3.medium"))
    assert needs.nearest([], kind, 2, 2**33) is None

    assert needs.unmet(GALERA.with_needs(cores=3), kind, GP3, list).endswith("use another --db-ec2-type")


def test_a_disk_of_its_own_needs_a_type_that_has_one() -> None:
    """And the option that puts the data there."""
    spec = GALERA.with_storage("nvme")

    assert unmet(spec).endswith(
        "r6i.large has no local disk: the nearest type is --db-ec2-type r6id.large, with --db-ec2-volume nvme"
    )
    assert "m5d.xlarge has the local disks 1 x 150 GB ssd, so use --db-ec2-volume nvme" in unmet(spec, "m5d.xlarge")
    assert unmet(spec, "m5d.xlarge", Volume.parse("nvme")) == ""


@pytest.mark.parametrize(
    ("spec", "volume", "words"),
    [
        (GALERA.with_needs(iops=5000), "gp3:50", "has 3000 operations/s: use --db-ec2-volume gp3:50:5000"),
        (GALERA.with_needs(iops=90000), "gp3:50", "an io2 volume has more"),
        (GALERA.with_storage("gp2-100"), "gp2:33", "our limit on a gp3 volume, but --db-ec2-volume is gp2:33"),
        (GALERA.with_storage("gp2-3000"), "nvme", "use --db-ec2-volume gp3:50:3000"),
    ],
)
def test_a_volume_that_is_another_one_is_named(spec: ClusterSpec, volume: str, words: str) -> None:
    """More writes than it has, and a profile that is a limit on gp3."""
    assert words in unmet(spec, volume=Volume.parse(volume))


def test_delays_and_block_devices_are_not_offered() -> None:
    """They are what other provisioners have."""
    assert "needs delays between instances (rtt=0.01), which --db-provisioner ec2 does not offer" in unmet(
        GALERA.with_needs(rtt=0.01)
    )
    assert "disks for DRBD" in unmet(GALERA.with_needs(disk="1G"))


@pytest.mark.parametrize(
    ("asked", "volume", "limit", "label"),
    [
        (HostNeeds(), "gp3:50", None, ""),
        (HostNeeds(iops=3000), "gp3:50", None, ""),
        (HostNeeds(iops=100, storage="gp2-100"), "gp3:50", 100, "gp2-100 is our limit of 100 writes/s on gp3"),
        (HostNeeds(iops=200), "nvme", 200, "our limit of 200 writes/s on nvme"),
    ],
)
def test_a_limit_of_ours_is_called_so(asked: HostNeeds, volume: str, limit: int | None, label: str) -> None:
    """A volume that has just as many writes needs none."""
    assert needs.limit(asked, Volume.parse(volume)) == limit
    assert needs.label(asked, Volume.parse(volume)) == label


def test_where_nothing_can_be_limited_that_is_said() -> None:
    """A host without systemd would run at the full speed of the volume."""

    def run(command: Sequence[str]) -> str:
        return subprocess.run(
            command, capture_output=True, text=True, check=False, env={"PATH": "/nowhere:/usr/bin:/bin"}
        ).stdout

    with pytest.raises(
        ProvisionError,
        match=r"the writes of a host on server1 to 100 per second: .+ use an image",
    ):
        needs.enforce(run, 100, "/var/tmp", "server1")
    with pytest.raises(ProvisionError, match="no output"):
        needs.enforce(lambda _: "", 100, "/var/tmp", "server1")
    needs.enforce(lambda _: "limited\n", 100, "/var/tmp", "server1")
