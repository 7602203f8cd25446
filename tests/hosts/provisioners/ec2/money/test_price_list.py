"""The user's copy of AWS's price list, read by a client of boto3 whose answers are those of the Stubber of botocore."""

from __future__ import annotations

import contextlib
import datetime
import json

import pytest
from botocore.stub import Stubber

from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.hosts.provisioners.ec2.aws import Account, AwsError
from pytest_dbcluster.hosts.provisioners.ec2.money import price_list, prices
from pytest_dbcluster.hosts.provisioners.ec2.money.prices import Prices

TODAY = datetime.date(2026, 11, 23)
REGION = "eu-central-1"


def product(usd, unit, *, usage="", **attributes):
    """A product of the list, as AWS writes it: JSON in a text."""
    price = {"unit": unit, "pricePerUnit": {"USD": usd}, "beginRange": "0", "endRange": "Inf"}
    return json.dumps(
        {
            "product": {"attributes": {"regionCode": REGION, "usagetype": usage, **attributes}},
            "terms": {"OnDemand": {"SKU.TERM": {"priceDimensions": {"SKU.TERM.RATE": price}}}},
            "publicationDate": "2026-11-20T08:00:00Z",
        }
    )


def instance(type_, usd):
    """A product of an instance type."""
    return product(usd, "Hrs", usage=f"EUC1-BoxUsage:{type_}", instanceType=type_, operatingSystem="Linux")


@pytest.fixture
def account(tmp_path, monkeypatch):
    """An account whose requests reach nothing, with a cache of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "not a secret of anybody")
    return Account(REGION)


@contextlib.contextmanager
def answering(account, instances, *others):
    """Expect the question for instances, in two pages, and those for the rest, each with its filters."""
    with Stubber(account._client("pricing")) as stub:
        asked = request("AmazonEC2", {**price_list.INSTANCES, "regionCode": REGION})
        stub.add_response("get_products", {"PriceList": instances[:1], "NextToken": "more"}, asked)
        stub.add_response("get_products", {"PriceList": instances[1:]}, {**asked, "NextToken": "more"})
        answers = [*others, *([[]] * (len(price_list.OTHERS) - len(others)))]
        for (service, filters), answer in zip(price_list.OTHERS, answers, strict=True):
            stub.add_response(
                "get_products", {"PriceList": answer}, request(service, {**filters, "regionCode": REGION})
            )
        yield stub


def request(service, filters):
    """The request for products with these attributes."""
    return {
        "ServiceCode": service,
        "Filters": [{"Type": "TERM_MATCH", "Field": name, "Value": value} for name, value in filters.items()],
    }


def renew(account):
    """Renew the copy; its path."""
    return price_list.renew(account, TODAY, lambda _: None)


def test_a_renewed_copy_has_the_prices_of_the_list(account):
    """Each product becomes a price in our unit, from all pages; the source is the list, of today."""
    with answering(
        account,
        [instance("r6i.large", "0.1520000000"), instance("t3.medium", "0.0480000000")],
        [product("0.0952", "GB-Mo", usage="EUC1-EBS:VolumeUsage.gp3")],
        [product("0.006", "IOPS-Mo", usage="EUC1-EBS:VolumeP-IOPS.gp3")],
        [product("48.7424", "GiBps-mo", usage="EUC1-EBS:VolumeP-Throughput.gp3")],
        [product("0.05", "vCPU-Hours", usage="EUC1-CPUCredits:t3", operatingSystem="Linux")],
        [product("0.005", "Hrs", usage="EUC1-PublicIPv4:InUseAddress")],
    ) as stub:
        path = renew(account)
        stub.assert_no_pending_responses()

    found = Prices(today=TODAY)
    source = found.source("r6i.large", REGION)
    assert path == prices.copy(REGION)
    assert (found.hourly("r6i.large", REGION), found.hourly("t3.medium", REGION)) == (0.152, 0.048)
    assert found.other("gp3-throughput", REGION) * prices.MONTH_HOURS == pytest.approx(0.0476)
    assert (found.other("ipv4", REGION), found.other("t3-credits", REGION)) == (0.005, 0.05)
    assert (str(source), source.version) == ("AWS price list of 2026-11-23", "2026-11-20T08:00:00Z")


def test_us_east_1_has_no_mark_before_its_usage_types(account):
    """A usage type without the mark of a region is found too."""
    with answering(account, [instance("r6i.large", "0.1")], [product("0.08", "GB-Mo", usage="EBS:VolumeUsage.gp3")]):
        renew(account)

    assert prices.read(prices.copy(REGION)).price("gp3", REGION) == 0.08


def test_of_several_prices_the_highest_counts(account):
    """Tiers of one product and products of one type give the highest price: the cap holds against the most."""
    with answering(account, [instance("r6i.large", "0.1"), instance("r6i.large", "0.3"), instance("r6i.large", "0.2")]):
        renew(account)

    assert Prices().hourly("r6i.large", REGION) == 0.3


def test_credits_of_windows_and_prices_of_nothing_are_left_out(account):
    """What is no price of ours is not taken: another system, no price, another usage."""
    with answering(
        account,
        [instance("r6i.large", "0.1"), instance("m5.large", "0.0000000000")],
        [
            product("9", "GB-Mo", usage="EUC1-EBS:SnapshotUsage"),
            product("x", "GB-Mo", usage="EUC1-EBS:VolumeUsage.gp2"),
        ],
        [],
        [],
        [product("0.096", "vCPU-Hours", usage="EUC1-CPUCredits:t3", operatingSystem="Windows")],
    ):
        renew(account)
    table = prices.read(prices.copy(REGION))

    assert (set(table.instances), table.others) == ({"r6i.large"}, {})


def test_a_unit_that_is_not_known_is_an_error(account):
    """A price in another unit is not taken for one in ours, and no copy is written."""
    with (
        answering(account, [instance("r6i.large", "0.1")], [product("1", "TB-Mo", usage="EUC1-EBS:VolumeUsage.gp3")]),
        pytest.raises(ProvisionError, match="has the price of gp3 in an unknown unit: 'TB-Mo'"),
    ):
        renew(account)

    assert not prices.copy(REGION).exists()


def test_a_region_without_instances_keeps_its_earlier_copy(account):
    """An empty list replaces nothing."""
    with answering(account, [instance("r6i.large", "0.1")]):
        renew(account)
    before = prices.copy(REGION).read_bytes()
    with (
        answering(account, []),
        pytest.raises(ProvisionError, match="has no instances in eu-central-1; an earlier copy of its prices is"),
    ):
        renew(account)

    assert prices.copy(REGION).read_bytes() == before


def test_a_refusal_shows_the_permission_and_not_the_account(account):
    """The message of AWS names account and user: they are not shown, the permission that is needed is."""
    arn = "User: arn:aws:iam::123456789012:user/me is not authorized to perform: pricing:GetProducts"
    with Stubber(account._client("pricing")) as stub:
        stub.add_client_error("get_products", "AccessDeniedException", arn, 400)
        with pytest.raises(AwsError) as error:
            renew(account)

    assert "these credentials do not permit pricing:GetProducts" in str(error.value)
    assert "123456789012" not in str(error.value)


@pytest.mark.parametrize("text", ["{", "[]", '{"product": {}}'])
def test_a_product_that_cannot_be_understood_is_an_error(account, text):
    """A list in another form gives no copy in part."""
    with Stubber(account._client("pricing")) as stub:
        stub.add_response("get_products", {"PriceList": [text]})
        with pytest.raises(ProvisionError, match="has a product of an unknown form"):
            renew(account)

    assert not prices.copy(REGION).exists()


def test_a_copy_that_cannot_be_written_is_an_error(account, tmp_path):
    """Where the directory cannot be made the error names the file."""
    (tmp_path / "pytest-dbcluster").write_text("a file, not a directory")
    with (
        answering(account, [instance("r6i.large", "0.1")]),
        pytest.raises(ProvisionError, match=r"cannot write the prices to .*eu-central-1.json"),
    ):
        renew(account)
