"""Prices of instances and of what belongs to them, each with a source and a date."""

from __future__ import annotations

import datetime
import json

import pytest

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.hosts.provisioners.ec2.money import prices
from pytest_dbcluster.hosts.provisioners.ec2.money.prices import Prices
from pytest_dbcluster.hosts.provisioners.ec2.settings import PRICED

SOURCES = {name: {"name": "a list", "version": "7", "date": "2026-11-01"} for name in ("instances", "others")}


def document(**changes):
    """The document of a file of prices."""
    return {
        "format": 1,
        "sources": SOURCES,
        "regions": ["eu-central-1", "eu-west-1"],
        "instances": {"r6i.large": [0.5, None]},
        "others": {"ipv4": [0.25, 0.25]},
        "cpus": {},
        **changes,
    }


@pytest.fixture
def own_copy(tmp_path, monkeypatch):
    """Write the user's copy of the prices of eu-central-1."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    path = prices.copy("eu-central-1")
    path.parent.mkdir(parents=True)

    def write(**changes):
        path.write_text(json.dumps(document(**changes)))
        return path

    return write


@pytest.fixture(autouse=True)
def empty_cache(tmp_path, monkeypatch):
    """No test reads a copy of the user who runs the tests."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


@pytest.mark.parametrize("type_", ["r6i.large", "t3.medium", "m5d.xlarge"])
def test_the_table_of_the_package_has_the_published_types(type_):
    """Each instance type of a published measurement has a price in the region where AWS has most types."""
    assert 0.01 < Prices().hourly(type_, "us-east-1") < 1


def test_the_table_of_the_package_names_its_sources():
    """Instances and volumes each have a source with a version and a date that has passed."""
    table = prices.ours()

    assert table.problem() == ""
    assert {"instances", "others"} == set(table.sources)
    assert all(source.version and source.date <= datetime.date(2026, 11, 23) for source in table.sources.values())


def test_larger_instances_of_a_family_cost_more():
    """A price of r6i grows with the size in every region: no column has slipped."""
    for region in prices.ours().regions:
        row = [prices.ours().price(f"r6i.{size}", region) for size in ("large", "xlarge", "2xlarge", "4xlarge")]
        known = [price for price in row if price is not None]

        assert known == sorted(known), region
        assert len(known) in (0, 4), region


def test_a_volume_is_priced_by_the_hour_of_the_shortest_month():
    """The price of a month is divided by 672 hours; that of an hour stays."""
    given = Prices({"gp3": 6.72, "ipv4": 0.005})

    assert given.other("gp3", "eu-central-1") == pytest.approx(0.01)
    assert given.other("ipv4", "eu-central-1") == 0.005


def test_a_given_price_wins_over_the_copy_and_the_copy_over_the_package(own_copy):
    """The order is: option, the user's copy, the table of the package; the source follows it."""
    packaged = Prices().hourly("r6i.large", "eu-central-1")
    own_copy()

    assert packaged != 0.5
    assert Prices().hourly("r6i.large", "eu-central-1") == 0.5
    assert str(Prices().source("r6i.large", "eu-central-1")) == "a list of 2026-11-01"
    assert Prices({"r6i.large": 0.7}).hourly("r6i.large", "eu-central-1") == 0.7
    assert Prices({"r6i.large": 0.7}).source("r6i.large", "eu-central-1") is None


def test_what_the_copy_lacks_is_taken_from_the_package(own_copy):
    """A type that only the package has keeps its price and its source."""
    own_copy()

    assert Prices().hourly("t3.medium", "eu-central-1") == prices.ours().price("t3.medium", "eu-central-1")
    assert "ec2-instances-info" in str(Prices().source("t3.medium", "eu-central-1"))


def test_an_unknown_price_is_refused_and_says_how_to_give_it():
    """The error names the price, where it was looked for, the option and the command; nothing is guessed."""
    with pytest.raises(ConfigError) as error:
        Prices().other("ipv4", "eu-central-1")

    for fact in (
        "ipv4 in eu-central-1 (USD for an hour of a public IPv4 address) is unknown",
        "github.com/cortexlabs/cortex of 2022-09-03",
        "--db-ec2-price ipv4=USD",
        "dbcluster ec2 prices --region eu-central-1",
    ):
        assert fact in str(error.value)


@pytest.mark.parametrize(("type_", "region"), [("r6i.lage", "eu-central-1"), ("r6i.large", "eu-central-9")])
def test_the_price_of_a_type_or_region_that_does_not_exist_is_unknown(type_, region):
    """A misspelt type, and a type in a region that no table has, are refused."""
    with pytest.raises(ConfigError, match=f"the price of {type_} in {region} is unknown"):
        Prices().hourly(type_, region)


@pytest.mark.parametrize("region", ["", "../eu-central-1", "eu-central-1\n", "EU-central-1"])
def test_a_region_is_a_name_and_no_path(region):
    """A text that is no name of a region reads no file."""
    with pytest.raises(ConfigError, match="is not a region of AWS, such as eu-central-1"):
        Prices().hourly("r6i.large", region)


def test_a_price_of_something_else_is_no_instance_type():
    """The names of other prices are not taken for types."""
    with pytest.raises(ConfigError, match="'ipv4' is not an instance type"):
        Prices({"ipv4": 1}).hourly("ipv4", "eu-central-1")


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"format": 2}, "it has format 2, not 1"),
        ({"sources": {}}, "it names no source of instances and others"),
        ({"instances": {"r6i.large": [0.5]}}, "r6i.large has 1 price for 2 regions"),
        ({"instances": {"r6i.large": [0.0, None]}}, "a price of r6i.large is not above 0"),
        ({"instances": {"r6i.large": [-0.1, None]}}, "a price of r6i.large is not above 0"),
        ({"others": {"disk": [1, 1]}}, "'disk' is not an instance type"),
        ({"regions": None}, "Expected `array`, got `null`"),
    ],
)
def test_a_broken_copy_is_refused(own_copy, changes, problem):
    """Prices that cannot be are an error that names the file; the table of the package does not replace them."""
    path = own_copy(**changes)

    with pytest.raises(ConfigError) as error:
        Prices().hourly("r6i.large", "eu-central-1")

    assert f"the prices in {path} cannot be used: {problem}" in str(error.value)
    assert "remove the file, or renew it: dbcluster ec2 prices" in str(error.value)


def test_a_copy_that_is_cut_off_is_refused(own_copy):
    """A file that is not whole is not used in part."""
    path = own_copy()
    path.write_text(path.read_text()[:100])

    with pytest.raises(ConfigError, match="cannot be used"):
        Prices().hourly("r6i.large", "eu-central-1")


def test_the_age_of_a_source_is_counted_in_days():
    """The age is the number of days since the source was made, and never negative."""
    source = prices.ours().sources["instances"]
    later = source.date + datetime.timedelta(days=91)

    assert Prices(today=later).age(source) == 91
    assert Prices(today=source.date - datetime.timedelta(days=1)).age(source) == 0


def test_a_burstable_type_has_its_number_of_cpus():
    """The CPUs that surplus credits are paid for are known of t types, and of no other."""
    assert Prices().cpus("t3.medium") == 2
    assert Prices().cpus("r6i.large") is None


def test_the_names_of_other_prices_are_those_of_the_option():
    """The table has no price under a name that --db-ec2-price does not take."""
    assert set(prices.ours().others) <= set(PRICED)
