"""AWS's price list of a region, for the user's copy of the prices: ``dbcluster ec2 prices``.

We identify products by their usage type, such as ``EUC1-EBS:VolumeUsage.gp3``. It begins with a code of the region,
except in us-east-1 (docs.aws.amazon.com/awsaccountbilling/latest/aboutv2/using-price-list-query-api.html).
"""

from __future__ import annotations

import datetime
import json
import math
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.formatting import Report
from pytest_dbcluster.hosts.provisioners.ec2.aws import Account
from pytest_dbcluster.hosts.provisioners.ec2.money import prices
from pytest_dbcluster.hosts.provisioners.ec2.money.prices import PriceSource, PriceTable
from pytest_dbcluster.hosts.provisioners.ec2.settings import TYPE

NAME = "AWS price list"
EC2, VPC = "AmazonEC2", "AmazonVPC"
INSTANCES = {
    "operatingSystem": "Linux",
    "tenancy": "Shared",
    "preInstalledSw": "NA",
    "capacitystatus": "Used",
    "marketoption": "OnDemand",
}
# Service -> the filters of each request for products other than instances.
OTHERS: tuple[tuple[str, dict[str, str]], ...] = (
    (EC2, {"productFamily": "Storage"}),
    (EC2, {"productFamily": "System Operation"}),
    (EC2, {"productFamily": "Provisioned Throughput"}),
    (EC2, {"productFamily": "CPU Credits"}),
    (VPC, {"group": "VPCPublicIPv4Address"}),
)
# Usage type without the code of its region -> the name of the price. For io2 it is the most expensive tier.
USAGES = {
    "EBS:VolumeUsage.gp2": "gp2",
    "EBS:VolumeUsage.gp3": "gp3",
    "EBS:VolumeP-IOPS.gp3": "gp3-iops",
    "EBS:VolumeP-Throughput.gp3": "gp3-throughput",
    "EBS:VolumeUsage.piops": "io1",
    "EBS:VolumeP-IOPS.piops": "io1-iops",
    "EBS:VolumeUsage.io2": "io2",
    "EBS:VolumeP-IOPS.io2": "io2-iops",
    "PublicIPv4:InUseAddress": "ipv4",
    "CPUCredits:t2": "t2-credits",
    "CPUCredits:t3": "t3-credits",
    "CPUCredits:t3a": "t3a-credits",
    "CPUCredits:t4g": "t4g-credits",
}
MARK = re.compile(r"[A-Z]+[0-9]*-")
# Kind of price -> unit of the list in small letters -> the factor that converts its price to our unit.
UNITS = {
    "iops": {"iops-mo": 1.0},
    "throughput": {"mibps-mo": 1.0, "gibps-mo": 1 / 1024},
    "credits": {"vcpu-hours": 1.0},
    "size": {"gb-mo": 1.0},
    "time": {"hrs": 1.0},
}


def renew(account: Account, today: datetime.date, progress: Report) -> Path:
    """Write the user's copy of the prices of the account's region, and return its file.

    At the end it replaces an earlier copy. Raises AwsError, and ConfigError for a wrong name of a region. Raises
    ProvisionError if the list has no price of an instance, or an unknown form.
    """
    region = prices.check_region(account.region)
    progress(f"reading the price list of {region}; it takes about a minute")
    published: set[str] = set()
    instances: dict[str, float] = {}
    for product, terms in _products(account, EC2, {**INSTANCES, "regionCode": region}, published):
        name = product.get("attributes", {}).get("instanceType", "")
        if TYPE.fullmatch(name) and (price := _price(name, terms)):
            instances[name] = max(price, instances.get(name, 0))
    if not instances:
        raise ProvisionError(f"the {NAME} has no instances in {region}; an earlier copy of its prices is unchanged")
    others: dict[str, float] = {}
    for service, filters in OTHERS:
        for product, terms in _products(account, service, {**filters, "regionCode": region}, published):
            attributes = product.get("attributes", {})
            name = USAGES.get(MARK.sub("", attributes.get("usagetype", ""), count=1), "")
            if name and attributes.get("operatingSystem", "Linux") == "Linux" and (price := _price(name, terms)):
                others[name] = max(price, others.get(name, 0))
    source = PriceSource(NAME, max(published, default=""), today)
    table = PriceTable(
        format=prices.FORMAT,
        sources={"instances": source, "others": source},
        regions=[region],
        instances={name: [price] for name, price in sorted(instances.items())},
        others={name: [price] for name, price in sorted(others.items())},
        cpus={},
    )
    return _write(prices.copy(region), table)


def _products(
    account: Account, service: str, filters: Mapping[str, str], published: set[str]
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Each product of the filtered list, with its terms. published: receives the dates of the list."""
    asked: dict[str, Any] = {
        "ServiceCode": service,
        "Filters": [{"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in filters.items()],
    }
    while True:
        page = account.call("pricing", "GetProducts", **asked)
        for text in page.get("PriceList", []):
            try:
                document = json.loads(text)
                product, terms = document["product"], document["terms"]
            except (ValueError, KeyError, TypeError):
                raise ProvisionError(f"the {NAME} has a product of an unknown form") from None
            published.add(str(document.get("publicationDate", "")))
            yield product, terms
        if not page.get("NextToken"):
            return
        asked["NextToken"] = page["NextToken"]


def _price(name: str, terms: Mapping[str, Any]) -> float:
    """The highest price of a product on demand, in our unit; 0 for none. Raises ProvisionError for an unknown unit."""
    highest = 0.0
    units = _units(name)
    for offer in terms.get("OnDemand", {}).values():
        for dimension in offer.get("priceDimensions", {}).values():
            usd = _number(dimension.get("pricePerUnit", {}).get("USD", "0"))
            unit = str(dimension.get("unit", ""))
            if usd and unit.lower() not in units:
                raise ProvisionError(f"the {NAME} has the price of {name} in an unknown unit: {unit!r}")
            highest = max(highest, usd * units.get(unit.lower(), 0))
    return highest


def _units(name: str) -> dict[str, float]:
    kind = name.rpartition("-")[2]
    if TYPE.fullmatch(name) or name == "ipv4":
        return UNITS["time"]
    return UNITS.get(kind, UNITS["size"])


def _number(text: str) -> float:
    """A price; 0 if the text is not a number."""
    try:
        number = float(text)
    except ValueError:
        return 0.0
    return number if 0 < number < math.inf else 0.0


def _write(path: Path, table: PriceTable) -> Path:
    """Write a file of prices atomically. Raises ProvisionError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, fresh = tempfile.mkstemp(prefix=".", dir=path.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(msgspec.json.format(msgspec.json.encode(table), indent=1) + b"\n")
                file.flush()
                os.fsync(file.fileno())
            Path(fresh).replace(path)
        except BaseException:
            Path(fresh).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise ProvisionError(f"cannot write the prices to {path}: {error.strerror or error}") from None
    return path
