"""What the provisioner ec2 does about money: the line before a launch, the cap, and what was spent."""

from __future__ import annotations

import contextlib

import pytest

from pytest_dbcluster.errors import ConfigError, ProvisionError
from pytest_dbcluster.hosts.provisioners.ec2.money.ledger import LaunchLedger
from pytest_dbcluster.hosts.provisioners.ec2.provisioner import Ec2Provisioner
from pytest_dbcluster.hosts.provisioners.ec2.settings import EC2Settings
from pytest_dbcluster.hosts.provisioners.ssh.access import program
from tests.support.facts import missing

GIVEN = ("r6i.large=0.36", "gp3=0.0001", "ipv4=0.036")  # an instance and its address cost 0.396 USD an hour
RUN = "ec2:RunInstances"


@pytest.fixture
def aws(aws, monkeypatch, tmp_path):
    """An empty account, whose instances are no machines; nothing waits for them."""
    program()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("DBCLUSTER_DATA_DIR", str(tmp_path / "runs"))
    monkeypatch.setattr(Ec2Provisioner, "_wait_ready", lambda self, machines: None)
    return aws


@contextlib.contextmanager
def provisioner(tmp_path, cap, **options):
    """A provisioner with a ledger that outlives it, and the lines that it tells."""
    settings = EC2Settings.parse(**{"max_cost": cap, "prices": GIVEN, "source": "192.0.2.1", "ttl": "1h", **options})
    object.__setattr__(settings, "ledger", tmp_path / "shared" / "ec2-cost.json")
    found = Ec2Provisioner(settings=settings)
    found.told = []
    found.progress = found.told.append
    try:
        yield found
    finally:
        found.close()


def used(tmp_path):
    """What the ledger has, in USD."""
    return LaunchLedger(tmp_path / "shared" / "ec2-cost.json", 0).used / 1e6


def test_the_most_is_told_before_anything_is_launched(aws, tmp_path):
    """The first line has type, number, zone, time to live and the most; the last one what was spent."""
    with provisioner(tmp_path, "2") as found:
        found.progress = lambda text: found.told.append((text, aws.requests.count(RUN)))
        found._grow(3)
        reserved = used(tmp_path)
    first, launched = found.told[0]
    last, _ = found.told[-1]

    assert launched == 0
    assert first.startswith("ec2: 3 x r6i.large (servers), 1 x r6i.large (load) in eu-central-1a; they end themselves")
    assert "after 1 h; at most 1.59 USD (4 x r6i.large 1.44, public IPv4 0.14, volumes under 0.01)" in first
    assert reserved == pytest.approx(4 * 0.396, abs=0.01)
    assert aws.left() == {}
    assert last == "ec2: about 0.03 USD spent"
    assert used(tmp_path) == pytest.approx(4 * 0.396 / 60, abs=0.01)


def test_a_launch_above_the_cap_is_refused_before_any_request_that_makes_something(aws, tmp_path):
    """The refusal has the ways out, and the account stays empty."""
    with provisioner(tmp_path, "1") as found, pytest.raises(ConfigError) as error:
        found._grow(3)

    assert "at most 1.59 USD until they end themselves after 1 h" in str(error.value)
    assert (
        "--db-max-cost allows 1.00: use fewer or smaller instances, a shorter --db-ec2-ttl, or --db-max-cost 1.59"
        in str(error.value)
    )
    assert [name for name in aws.requests if "Describe" not in name and "GetParameter" not in name] == []


def test_an_unknown_price_is_refused_before_any_request_that_makes_something(aws, tmp_path):
    """What has an unknown price is not launched, whatever the cap."""
    with provisioner(tmp_path, "1000", prices=()) as found, pytest.raises(ConfigError, match="the price of ipv4 in eu"):
        found._grow(3)

    assert RUN not in aws.requests


def test_a_second_launch_counts_with_the_first(aws, tmp_path):
    """A larger cluster needs more servers: their most and that of the first launch stay below one cap."""
    with provisioner(tmp_path, "1.7") as found:
        found._grow(3)
        with pytest.raises(ConfigError, match=r"other launches of the run have used 1\.5"):
            found._grow(4)
        assert aws.requests.count(RUN) == 2
    assert aws.left() == {}


def test_two_workers_have_one_cap(aws, tmp_path):
    """The second worker is refused although its own launch is below the cap."""
    with provisioner(tmp_path, "2") as first, provisioner(tmp_path, "2") as second:
        first._grow(3)
        with pytest.raises(ConfigError, match="--db-max-cost allows 2"):
            second._grow(3)


def test_a_launch_that_aws_refuses_costs_nothing(aws, tmp_path):
    """Without capacity no instance was launched, and the whole cap is there for the next try."""
    aws.refuse("RunInstances", "InsufficientInstanceCapacity", times=-1)
    with provisioner(tmp_path, "2") as found, pytest.raises(ProvisionError, match="InsufficientInstanceCapacity"):
        found._grow(3)

    assert used(tmp_path) == 0
    assert aws.left() == {}


def test_a_launch_of_which_a_part_fails_costs_the_time_of_that_part(aws, tmp_path):
    """The servers were launched, the load host was not: they were ended, and a minute of the launch is counted."""
    aws.refuse("RunInstances", "InsufficientInstanceCapacity", after=1, times=-1)
    with (
        provisioner(tmp_path, "2", load_type="r6i.xlarge", prices=(*GIVEN, "r6i.xlarge=0.36")) as found,
        pytest.raises(ProvisionError, match="InsufficientInstanceCapacity"),
    ):
        found._grow(3)

    assert 0.01 < used(tmp_path) < 0.1
    assert aws.left() == {}


def test_instances_that_could_not_be_ended_stay_reserved(aws, tmp_path):
    """With expired credentials nobody knows when they end: the most counts, and is told."""
    with provisioner(tmp_path, "2") as found:
        found._grow(3)
        aws.refuse("*", "ExpiredToken", times=-1)
    told = found.told[-1]
    aws.relent()

    assert missing(told, "ec2: about 0.00 USD spent", "at most 1.59 USD", "have not ended") == []
    assert used(tmp_path) == pytest.approx(4 * 0.396, abs=0.01)
