"""The prices of EC2: tables with a source and a date, and the prices of a user's options.

We look for a price in three places, in this order, and never guess one:

- the options of the run: ``--db-ec2-price``
- the user's copy of AWS's price list, one file for each region: ``dbcluster ec2 prices`` writes it
- the table of this package, ``prices.json``: it names its sources, and ``scripts/ec2_prices.py`` makes it
"""

from __future__ import annotations

import dataclasses
import datetime
import functools
import math
import re
from collections.abc import Mapping
from pathlib import Path

import msgspec

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.formatting import quantity
from pytest_dbcluster.hosts.provisioners.ec2.settings import PRICED, TYPE
from pytest_dbcluster.system import cache

FORMAT = 1
OURS = Path(__file__).with_name("prices.json")
FOLDER = "ec2-prices"  # in the cache
REGION = re.compile(r"[a-z]{2}(-[a-z]+)+-[0-9]+")
BURSTABLE = re.compile(r"t[0-9][a-z]*")
OLD_DAYS = 90  # older prices are reported as old
# The shortest month: EBS divides a monthly price by the length of the month (aws.amazon.com/ebs/pricing).
MONTH_HOURS = 28 * 24
MONTHLY = frozenset(name for name, unit in PRICED.items() if "month" in unit)


class PriceSource(msgspec.Struct, frozen=True):
    """A source of prices."""

    name: str
    """Name of a package or list."""

    version: str
    """Version of the package or list."""

    date: datetime.date
    """Date of the source."""

    def __str__(self) -> str:
        return f"{self.name} of {self.date}"


class PriceTable(msgspec.Struct, frozen=True):
    """Prices of regions in USD, from one place."""

    format: int
    """Version of the layout, ``FORMAT``."""

    sources: dict[str, PriceSource]
    """"instances" and "others" -> the source of these prices."""

    regions: list[str]
    """The regions, in the order of the prices."""

    instances: dict[str, list[float | None]]
    """Instance type -> the price of an hour in each region, in USD; None if unknown."""

    others: dict[str, list[float | None]]
    """Name in ``PRICED`` -> its price in each region, in USD; None if unknown."""

    cpus: dict[str, int]
    """Burstable instance type -> number of its vCPUs."""

    def price(self, name: str, region: str) -> float | None:
        """The price of a type or of a name in ``PRICED``; None if it is unknown."""
        row = self.instances.get(name) or self.others.get(name)
        return row[self.regions.index(region)] if row and region in self.regions else None

    def source(self, name: str) -> PriceSource:
        """The source of the price of a type or of a name in ``PRICED``."""
        return self.sources["others" if name in PRICED else "instances"]

    def problem(self) -> str:
        """What is wrong with the table; empty if it is valid."""
        if self.format != FORMAT:
            return f"it has format {self.format}, not {FORMAT}"
        if missing := {"instances", "others"} - set(self.sources):
            return f"it names no source of {' and '.join(sorted(missing))}"
        rows = {**self.instances, **self.others}
        if odd := [name for name in rows if name not in PRICED and not TYPE.fullmatch(name)]:
            return f"{odd[0]!r} is not an instance type"
        if odd := [name for name, row in rows.items() if len(row) != len(self.regions)]:
            return f"{odd[0]} has {quantity(len(rows[odd[0]]), 'price')} for {quantity(len(self.regions), 'region')}"
        wrong = [name for name, row in rows.items() for one in row if one is not None and not 0 < one < math.inf]
        return f"a price of {wrong[0]} is not above 0" if wrong else ""


def copy(region: str) -> Path:
    """The file of the user's copy of the price list of a region."""
    return cache.root() / FOLDER / f"{region}.json"


def read(path: Path) -> PriceTable:
    """The table of a file. Raises ConfigError for a broken file, and FileNotFoundError."""
    try:
        table = msgspec.json.decode(path.read_bytes(), type=PriceTable)
        problem = table.problem()
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        problem = str(error)
    if problem:
        raise ConfigError(
            f"the prices in {path} cannot be used: {problem}; remove the file, or renew it: dbcluster ec2 prices"
        )
    return table


@functools.cache
def ours() -> PriceTable:
    """The table of this package."""
    return read(OURS)


@dataclasses.dataclass(frozen=True)
class Prices:
    """The prices of one run."""

    given: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """The prices of --db-ec2-price, which take precedence."""

    today: datetime.date = dataclasses.field(default_factory=lambda: datetime.datetime.now(datetime.UTC).date())
    """The current date, for the age of other prices."""

    def hourly(self, type: str, region: str) -> float:  # noqa: A002 - the noun
        """The on-demand price of an instance with Linux, in USD per hour. Raises ConfigError if it is unknown."""
        return self._price(check_type(type), region)

    def other(self, name: str, region: str) -> float:
        """The price of a name in ``PRICED``, in USD per hour: for 1 GiB, 1 operation/s, 1 MiB/s, 1 address or 1 CPU.

        A monthly price is divided by the hours of the shortest month. Raises ConfigError if it is unknown.
        """
        price = self._price(name, region)
        return price / MONTH_HOURS if name in MONTHLY else price

    def cpus(self, type: str) -> int | None:  # noqa: A002 - the noun
        """The CPUs of a burstable type; None if this package does not know it."""
        return ours().cpus.get(type)

    def tables(self, region: str) -> list[PriceTable]:
        """The tables with prices of a region, in the order of precedence. Raises ConfigError."""
        check_region(region)
        try:
            return [read(copy(region)), ours()]
        except FileNotFoundError:
            return [ours()]

    def source(self, name: str, region: str) -> PriceSource | None:
        """The source of the price of a type or a name in ``PRICED``; None for a user's or unknown price."""
        return self.known_price(name, region)[0]

    def known_price(self, name: str, region: str) -> tuple[PriceSource | None, float | None]:
        """The source and the price of a type or of a name in ``PRICED``, in its unit; None if unknown.

        Raises ConfigError for a wrong region, and for a broken copy.
        """
        if name in self.given:
            return None, self.given[name]
        for table in self.tables(region):
            if (price := table.price(name, region)) is not None:
                return table.source(name), price
        return None, None

    def age(self, source: PriceSource) -> int:
        """Days since a source was made."""
        return max(0, (self.today - source.date).days)

    def _price(self, name: str, region: str) -> float:
        _, price = self.known_price(name, region)
        if price is not None:
            return price
        tables = self.tables(region)
        unit = f" ({PRICED[name]})" if name in PRICED else ""
        raise ConfigError(
            f"the price of {name} in {region}{unit} is unknown, so we launch nothing with it. It is not in "
            f"{' or in '.join(dict.fromkeys(str(table.source(name)) for table in tables))}. Set it with "
            f"--db-ec2-price {name}=USD, or fetch current prices: dbcluster ec2 prices --region {region}"
        )


def check_region(region: str) -> str:
    """The name of a region. Raises ConfigError for another text, such as a path."""
    if not REGION.fullmatch(region):
        raise ConfigError(f"{region!r} is not a region of AWS, such as eu-central-1")
    return region


def check_type(text: str) -> str:
    """The name of an instance type. Raises ConfigError for another text."""
    if not TYPE.fullmatch(text):
        raise ConfigError(f"{text!r} is not an instance type, such as r6i.large")
    return text
