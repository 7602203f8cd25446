"""The launches of one process, from the plan of a launch to the end of its instances."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.hosts.provisioners.ec2.money import spending
from pytest_dbcluster.hosts.provisioners.ec2.money.cost import Cost
from pytest_dbcluster.hosts.provisioners.ec2.money.cost import CostPart as CostPart
from pytest_dbcluster.hosts.provisioners.ec2.money.ledger import LaunchLedger
from pytest_dbcluster.hosts.provisioners.ec2.money.prices import MONTH_HOURS, Prices
from pytest_dbcluster.hosts.provisioners.ec2.money.spending import Spending, cost_of
from pytest_dbcluster.hosts.provisioners.ec2.plan import LOAD, SERVER, Image, Part, Plan, Subnet
from pytest_dbcluster.hosts.provisioners.ec2.settings import EC2Settings

GIVEN = {"r6i.large": 0.5, "t3.small": 0.1, "ipv4": 0.01, "gp3": 0.001 * MONTH_HOURS, "t3-credits": 0.05}


def plan(*, public=True, ttl=7200.0):
    """A launch of three servers and a load host in one subnet; the image has a root of 8 GiB and a disk of 2 GiB."""
    subnet = Subnet("subnet-1", "vpc-1", "eu-central-1a", "euc1-az1", public)
    parts = (Part(SERVER, "r6i.large", subnet, 3), Part(LOAD, "t3.small", subnet, 1))
    image = Image("ami-1", "debian", {"/dev/xvda": 8, "/dev/sdb": 2}, "x86_64")
    types = {"r6i.large": {}, "t3.small": {"VCpuInfo": {"DefaultVCpus": 4}}}
    return Plan("r1", 1, parts, image, False, time.time() + ttl, "192.0.2.1/32", types)


def parts(found):
    """Part of a cost -> USD for an hour."""
    return {part.what: pytest.approx(part.hourly) for part in found.parts}


def test_a_plan_has_the_cost_of_everything_that_it_launches():
    """Instances, root and data volumes of each, addresses, and the credits of as many CPUs as AWS says."""
    found = cost_of(plan(), EC2Settings(), "eu-central-1", Prices(GIVEN))

    assert parts(found) == {
        "3 x r6i.large": 1.5,
        "1 x t3.small": 0.1,
        "volumes": (3 * (10 + 50) + 10) * 0.001,
        "public IPv4": 0.04,
        "surplus credits": 4 * 0.05,
    }
    assert (found.ttl, found.where) == (7200, "eu-central-1a")


def test_instances_of_a_private_subnet_have_no_public_address():
    """Then no price of an address is needed."""
    given = {name: price for name, price in GIVEN.items() if name != "ipv4"}

    assert "public IPv4" not in parts(cost_of(plan(public=False), EC2Settings(), "eu-central-1", Prices(given)))


def test_the_disk_of_an_instance_costs_nothing_more():
    """With --db-ec2-volume nvme only the volumes of the image are paid for."""
    found = cost_of(plan(), EC2Settings.parse(volume="nvme"), "eu-central-1", Prices(GIVEN))

    assert parts(found)["volumes"] == 4 * 10 * 0.001


def test_the_time_that_is_left_is_rounded_up_to_minutes():
    """A later launch of a run costs what it can cost until the same end."""
    assert cost_of(plan(ttl=3541), EC2Settings(), "eu-central-1", Prices(GIVEN)).ttl == 3600
    assert (
        "they end themselves after 1 h;" in cost_of(plan(ttl=3541), EC2Settings(), "eu-central-1", Prices(GIVEN)).line
    )


@pytest.fixture
def clock(monkeypatch):
    """A clock that a test moves."""
    now = SimpleNamespace(seconds=1000.0)
    monkeypatch.setattr(spending, "time", SimpleNamespace(time=lambda: now.seconds))
    return now


def cost(hourly=1.0):
    """A launch for an hour that costs this much."""
    return Cost((), (CostPart("1 x r6i.large", hourly),), 3600, "eu-central-1a")


def test_what_ended_early_costs_its_time(tmp_path, clock):
    """After half an hour half of the most is spent, and the rest can be launched for again."""
    mine = Spending(EC2Settings(max_cost=1.0), tmp_path)
    first = mine.reserve(cost())
    with pytest.raises(ConfigError):
        mine.reserve(cost(0.1))
    clock.seconds += 1800
    mine.record_end(first)

    assert mine.line == "about 0.50 USD spent"
    assert mine.reserve(cost(0.5))


def test_a_launch_of_nothing_costs_nothing(tmp_path, clock):
    """AWS has refused it: no minute is counted."""
    mine = Spending(EC2Settings(max_cost=1.0), tmp_path)
    mine.record_end(mine.reserve(cost()), launched=False)

    assert mine.line == "about 0.00 USD spent"


def test_the_end_of_a_run_is_the_end_of_all_its_launches(tmp_path, clock):
    """Each launch has its own time; a second end changes nothing."""
    mine = Spending(EC2Settings(max_cost=5.0), tmp_path)
    mine.reserve(cost())
    clock.seconds += 1800
    mine.reserve(cost())
    clock.seconds += 1800
    mine.record_end()
    clock.seconds += 1800
    mine.record_end()

    assert mine.line == "about 1.50 USD spent"


def test_workers_with_a_common_ledger_have_one_cap(tmp_path, clock):
    """The file of the settings wins over the directory of a process."""
    settings = EC2Settings(max_cost=1.5, ledger=tmp_path / "shared" / "ec2-cost.json")
    Spending(settings, tmp_path / "gw0").reserve(cost())

    with pytest.raises(ConfigError, match="other launches of the run have used"):
        Spending(settings, tmp_path / "gw1").reserve(cost())
    assert LaunchLedger(settings.ledger, 1.5).used == 1_000_000
    assert not (tmp_path / "gw0").exists()


def test_runs_of_one_process_have_a_ledger_of_their_own(tmp_path, clock):
    """The cap is that of a run."""
    for run in ("r1", "r2"):
        Spending(EC2Settings(max_cost=1.0), tmp_path / run / "ec2").reserve(cost())

    assert (tmp_path / "r1" / "ec2" / spending.FILE).exists()
