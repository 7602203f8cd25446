"""The most that a launch can cost, and the sentences that say so."""

from __future__ import annotations

import datetime

import pytest

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.hosts.provisioners.ec2.money.cost import Cost, CostPart, InstanceGroup, lifetime, usd
from pytest_dbcluster.hosts.provisioners.ec2.money.prices import MONTH_HOURS, Prices
from pytest_dbcluster.hosts.provisioners.ec2.settings import Volume
from tests.support.facts import missing

REGION = "eu-central-1"
GIVEN = {
    "r6i.large": 0.152,
    "t3.medium": 0.05,
    "t3.huge": 0.05,
    "ipv4": 0.005,
    "t3-credits": 0.05,
    "gp2": 0.1 * MONTH_HOURS,
    "gp3": 0.001 * MONTH_HOURS,
    "gp3-iops": 0.0001 * MONTH_HOURS,
    "gp3-throughput": 0.001 * MONTH_HOURS,
    "io2": 0.002 * MONTH_HOURS,
    "io2-iops": 0.0002 * MONTH_HOURS,
}


@pytest.fixture(autouse=True)
def empty_cache(tmp_path, monkeypatch):
    """No test reads prices of the user who runs the tests."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def cost(*groups, ttl=10800.0, prices=GIVEN, **more):
    """The cost of these instances."""
    return Cost.of(groups, region=REGION, prices=Prices(prices), ttl=ttl, **more)


def servers(count=3, type_="r6i.large", **more):
    """Equal servers without a public address."""
    return InstanceGroup("servers", type_, count, public=more.pop("public", False), **more)


def hourly(found):
    """Part -> USD for an hour."""
    return {part.what: pytest.approx(part.hourly) for part in found.parts}


def test_instances_of_one_type_are_one_part():
    """Servers and a load host of the same type are counted together."""
    found = cost(servers(3), InstanceGroup("load", "r6i.large", 1, public=False))

    assert hourly(found) == {"4 x r6i.large": 0.608}
    assert found.most == 1_824_000


def test_every_volume_of_every_instance_is_paid_for():
    """The size of root and data volumes, and of gp3 what it has above 3000 operations/s and 125 MiB/s."""
    root, data = Volume("gp3", 8, 3000, 125), Volume("gp3", 50, 4000, 225)

    assert hourly(cost(servers(3, volumes=(root, data)))) == {
        "3 x r6i.large": 0.456,
        "volumes": 3 * 58 * 0.001,
        "provisioned IOPS and throughput": 3 * (1000 * 0.0001 + 100 * 0.001),
    }


@pytest.mark.parametrize(
    ("volume", "parts"),
    [
        (Volume("gp3", 50, 3000, 125), {"volumes": 0.05}),
        (Volume("gp2", 100, 300, 0), {"volumes": 10.0}),
        (Volume("io2", 50, 1000, 0), {"volumes": 0.1, "provisioned IOPS and throughput": 0.2}),
        (Volume("nvme", 0, 0, 0), {}),
    ],
)
def test_each_kind_of_volume_has_its_price(volume, parts):
    """gp2 is paid for its size alone, io2 for all its operations/s, the disk of an instance not at all."""
    assert hourly(cost(servers(1, volumes=(volume,)))) == {"1 x r6i.large": 0.152, **parts}


def test_a_public_address_is_paid_for_where_there_is_one():
    """Instances in a private subnet have no public IPv4 address, and need no price of one."""
    without = {name: price for name, price in GIVEN.items() if name != "ipv4"}

    assert hourly(cost(servers(3, public=True)))["public IPv4"] == 0.015
    assert "public IPv4" not in hourly(cost(servers(3), prices=without))
    with pytest.raises(ConfigError, match="the price of ipv4 in eu-central-1"):
        cost(servers(3, public=True), prices=without)


def test_surplus_credits_are_those_of_all_cpus_all_the_time():
    """A burstable instance may use all its CPUs beyond its credits: two of t3.medium for each hour."""
    found = cost(servers(3, "t3.medium"))

    assert hourly(found) == {"3 x t3.medium": 0.15, "surplus credits": 3 * 2 * 0.05}
    assert hourly(cost(servers(3, "t3.medium", cpus=4)))["surplus credits"] == 3 * 4 * 0.05
    assert hourly(cost(servers(3, "t3.medium", unlimited=False))) == {"3 x t3.medium": 0.15}


def test_a_burstable_type_with_an_unknown_number_of_cpus_is_refused():
    """The most is not known, so nothing is launched."""
    with pytest.raises(ConfigError, match=r"number of CPUs of t3.huge is unknown"):
        cost(servers(1, "t3.huge"))


def test_the_line_before_the_launch_says_what_where_how_long_and_the_most():
    """One line has type, number, zone, time to live and the most, with its parts, the dearest first."""
    found = cost(
        servers(3, public=True, volumes=(Volume("gp3", 50, 3000, 125),)),
        InstanceGroup("load", "t3.medium", 1, public=False),
        zones=["eu-central-1a"],
        ttl=7200,
    )

    assert found.line.startswith("ec2: 3 x r6i.large (servers), 1 x t3.medium (load) in eu-central-1a; ")
    assert missing(found.line, "end themselves after 2 h", "at most 1.55 USD (") == []
    parts = "3 x r6i.large 0.91, volumes 0.30, surplus credits 0.20, 1 x t3.medium 0.10, public IPv4 0.03"
    assert found.line.endswith(f"({parts})")


def test_the_line_names_the_sources_of_prices_and_their_age():
    """A price that no option gave has a source; from 90 days on it is called old, with the command that renews it."""
    prices = Prices(today=datetime.date(2025, 9, 1))

    assert Cost.of([servers(1)], region=REGION, prices=prices, ttl=3600).line.endswith(
        "; prices: github.com/cristim/ec2-instances-info of 2025-05-28, 96 days old (`dbcluster ec2 prices` renews "
        "them)"
    )
    fresh = Prices(today=datetime.date(2025, 6, 1))
    assert Cost.of([servers(1)], region=REGION, prices=fresh, ttl=3600).line.endswith(
        "ec2-instances-info of 2025-05-28"
    )


def test_a_spot_instance_counts_as_one_on_demand():
    """The price of spot changes and never exceeds that on demand: the line says so, the most is the same."""
    assert cost(servers(), spot=True).most == cost(servers()).most
    assert "spot instances, at most the price on demand; they end themselves" in cost(servers(), spot=True).line


def test_without_a_cap_the_refusal_says_which_one_permits_it():
    """The refusal names the option and the amount, which then permits the launch."""
    refusal = cost(InstanceGroup("servers", "r6i.large", 4, public=False)).refusal(None)
    for fact in ("at most 1.83 USD", "after 3 h", "(4 x r6i.large 1.82)", "use --db-max-cost 1.83"):
        assert fact in refusal


def test_a_cap_that_is_too_low_is_refused_with_the_ways_out():
    """The refusal says the most, its parts, the cap, and what to change."""
    for fact in ("at most 1.83 USD", "(4 x r6i.large 1.82)", "allows 1.00", "--db-ec2-ttl", "--db-max-cost 1.83"):
        assert fact in cost(servers(4)).refusal(1.0)


def test_the_refusal_counts_other_launches_of_the_run():
    """What other launches have is named, and the cap that is proposed is enough for all."""
    assert "allows 2.00, and other launches of the run have used 0.41: " in cost(servers(4)).refusal(2.0, 405_000)
    assert cost(servers(4)).refusal(2.0, 405_000).endswith("or --db-max-cost 2.23")


def test_what_was_spent_grows_with_time_from_a_minute_on():
    """Instances are billed by the second, for a minute at least."""
    found = cost(servers(1), ttl=3600)

    assert found.amount(1800) == 76_000
    assert found.amount(0) == found.amount(60) == 2534


@pytest.mark.parametrize(("micro", "text"), [(0, "0.00"), (1, "0.01"), (10_000, "0.01"), (1_823_001, "1.83")])
def test_an_amount_is_rounded_up_to_cents(micro, text):
    """The text of an amount, given as the cap, allows it."""
    assert usd(micro) == text


def test_parts_under_half_a_cent_are_not_shown_as_nothing():
    """A small part is said to be small."""
    tiny = Cost((), (CostPart("volumes", 0.001),), 3600, REGION)

    assert "volumes under 0.01" in tiny.line


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(7200, "2 h"), (5400, "1 h 30 min"), (90_060, "1 d 1 h 1 min"), (45, "45 s"), (0, "0 s")],
)
def test_a_lifetime_is_not_rounded(seconds, text):
    """An hour and a half is not called two hours."""
    assert lifetime(seconds) == text
