"""What the provisioner ec2 knows of its instances, which are machines with real ssh servers."""

from __future__ import annotations

import contextlib

import pytest

from pytest_dbcluster.errors import DBClusterError, ProvisionError, Unsupported
from pytest_dbcluster.hosts.provisioners.ec2.provisioner import Ec2Provisioner
from pytest_dbcluster.hosts.provisioners.ec2.settings import EC2Settings
from pytest_dbcluster.spec import ClusterSpec, ReleaseName

pytestmark = pytest.mark.remote

ONE = ClusterSpec("standalone", release=ReleaseName("mariadb", "10.11"))
THREE = ClusterSpec("galera", nodes=3, release=ReleaseName("mariadb", "10.11"))


def run(**options):
    """A run with these options, closed at the end of the block."""
    asked = {"max_cost": 5, "source": "192.0.2.1/32", "prices": ["ipv4=0.005"], **options}
    return contextlib.closing(Ec2Provisioner(settings=EC2Settings.parse(**asked)))


def test_instances_are_told(machines):
    """Results have what AWS and the machines say of them."""
    with run() as provisioner:
        provisioner.acquire(ONE)
        told = provisioner.environment

        assert told["instance server1"].startswith("r6i.large in euc1-az")
        assert {"instance load", "image", "machine server1"} <= told.keys()
        assert provisioner.remarks == ()


def test_burst_credits_are_named_before_a_launch(machines):
    """Of a burstable type and of a small gp2 volume; each message has the same lines. CPU credits are unlimited."""
    lines, prices = [], ["ipv4=0.005", "t3-credits=0.05"]
    with run(type="t3.medium", volume="gp2:100", max_cost=0.01, prices=prices) as provisioner:
        provisioner.progress = lines.append
        with pytest.raises(DBClusterError, match="--db-max-cost"):
            provisioner.acquire(ONE)

        kind, volume = provisioner.remarks
        assert "t3.medium is a burstable type" in kind
        assert "gp2, 100 GiB" in volume
        assert {kind, volume} <= set(lines)
        assert "ec2:RunInstances" not in machines.requests


def test_what_another_type_has_is_not_launched(machines):
    """A test that needs it is skipped with the nearest type, and nothing is spent."""
    with run() as provisioner:
        with pytest.raises(
            Unsupported, match=r"the nearest type is --db-ec2-type r6i.xlarge, with 4 CPUs and 32.0 GiB"
        ):
            provisioner.acquire(ONE.with_needs(cores=4, memory="32G"))

        assert "ec2:RunInstances" not in machines.requests


def test_a_host_whose_writes_cannot_be_limited_is_given_back(machines):
    """These machines have no systemd: a cluster that asks for fewer writes does not run with more."""
    with run() as provisioner:
        with pytest.raises(ProvisionError, match="cannot limit the writes of a host on server1 to 100 per second: "):
            provisioner.acquire(ONE.with_storage("gp2-100"))

        assert provisioner._sessions == {}


def test_round_trips_between_zones_are_measured(machines):
    """With one server in each of three zones, by their private addresses."""
    lines = []
    with run(zones=["eu-central-1a", "eu-central-1b", "eu-central-1c"]) as provisioner:
        provisioner.progress = lines.append
        provisioner.acquire(THREE)

        (line,) = [line for line in lines if line.startswith("round trips between zones: ")]
        assert line.count(" ms") >= 3
        assert provisioner.environment["zones"] == line
