"""The options ``--db-max-cost`` and ``--db-ec2-...``, checked before a launch."""

from __future__ import annotations

import dataclasses
import ipaddress
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from pytest_dbcluster import registry
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.formatting import duration, option_seconds
from pytest_dbcluster.hosts.provisioners.ssh.access import TARGET

TAG_PREFIX = "pytest-dbcluster:"  # of our tags
PLACE = "ec2 "  # before the region, in the record of a kept cluster
DEFAULT_VOLUME = "gp3:50:3000:125"
DEFAULT_TTL = "2h"
WRITTEN_GIB = 8  # written once to a new data volume: about a minute at 125 MiB/s
LOCAL_DISK = "nvme"  # the instance's local disk
# docs.aws.amazon.com/ebs/latest/userguide/general-purpose.html: the price of gp3 includes these.
GP3_IOPS, GP3_MIB = 3000, 125
GP2_GIB_IOPS, GP2_LEAST, GP2_MOST = 3, 100, 16_000
KINDS = {"gp3": "gp3:GIB[:IOPS[:MIB_PER_SECOND]]", "gp2": "gp2:GIB", "io1": "io1:GIB:IOPS", "io2": "io2:GIB:IOPS"}
FORMS = (*KINDS.values(), LOCAL_DISK)
LARGEST_GIB = 65_536
SHORTEST, LONGEST = 300.0, 7 * 86400.0  # limits of the time to live, in seconds
TYPE = re.compile(r"[a-z][a-z0-9-]*\.[a-z0-9-]+")
ZONE = re.compile(r"(?P<region>[a-z]{2}(?:-[a-z]+)+-\d+)(?:-[a-z0-9-]+)?[a-z0-9]")
SUBNET = re.compile(r"subnet-[0-9a-f]{8,17}")
IMAGE = re.compile(r"ami-[0-9a-f]{8,17}|/aws/service/[A-Za-z0-9_./-]+")
# docs.aws.amazon.com/AWSEC2/latest/UserGuide/Using_Tags.html: lengths, and the reserved prefix.
TAG_KEY, TAG_VALUE, MOST_TAGS = 128, 256, 40
WIDEST = 16  # bits of the largest public network that may use ssh
# Prices other than those of instance types, each with its unit.
PRICED = MappingProxyType(
    {
        "gp2": "USD for a GiB-month of a gp2 volume",
        "gp3": "USD for a GiB-month of a gp3 volume",
        "gp3-iops": "USD for a month of 1 operation/s of a gp3 volume above 3000",
        "gp3-throughput": "USD for a month of 1 MiB/s of a gp3 volume above 125",
        "io1": "USD for a GiB-month of an io1 volume",
        "io1-iops": "USD for a month of 1 operation/s of an io1 volume",
        "io2": "USD for a GiB-month of an io2 volume",
        "io2-iops": "USD for a month of 1 operation/s of an io2 volume",
        "ipv4": "USD for an hour of a public IPv4 address",
        "t2-credits": "USD for an hour of one CPU above the credits of t2",
        "t3-credits": "USD for an hour of one CPU above the credits of t3",
        "t3a-credits": "USD for an hour of one CPU above the credits of t3a",
        "t4g-credits": "USD for an hour of one CPU above the credits of t4g",
    }
)


@dataclasses.dataclass(frozen=True, slots=True)
class Volume:
    """The data volume of each server."""

    kind: str
    """``gp2``, ``gp3``, ``io1``, ``io2``, or ``nvme`` for the instance's local disk, with 0 in the other fields."""

    gib: int
    """Size in GiB."""

    iops: int
    """Provisioned operations/s; for gp2 they follow from the size."""

    mib_per_second: int
    """Provisioned MiB/s; 0 if they cannot be chosen."""

    @classmethod
    def parse(cls, text: str) -> Volume:
        """A volume from ``gp3:50:3000:125``, ``gp2:100``, ``io2:50:10000`` or ``nvme``. Raises ConfigError."""
        kind, *numbers = text.split(":")
        if text == LOCAL_DISK:
            return cls(LOCAL_DISK, 0, 0, 0)
        if kind not in KINDS:
            raise registry.unknown("kind of volume in --db-ec2-volume", kind, [*KINDS, LOCAL_DISK])
        least, most = KINDS[kind].split("[")[0].count(":"), KINDS[kind].count(":")
        wrong = not least <= len(numbers) <= most or not all(re.fullmatch(r"[1-9][0-9]{0,6}", one) for one in numbers)
        if wrong or int(numbers[0]) > LARGEST_GIB:
            raise ConfigError(
                f"--db-ec2-volume {text!r}: it accepts {' or '.join(FORMS)}, in whole numbers above 0, of at most "
                f"{LARGEST_GIB} GiB, such as {DEFAULT_VOLUME}"
            )
        gib, *more = map(int, numbers)
        if kind == "gp2":
            return cls(kind, gib, min(max(GP2_GIB_IOPS * gib, GP2_LEAST), GP2_MOST), 0)
        if kind != "gp3":
            return cls(kind, gib, more[0], 0)
        iops, mib = (*more, *(GP3_IOPS, GP3_MIB)[len(more) :])
        if iops < GP3_IOPS or mib < GP3_MIB:
            raise ConfigError(
                f"--db-ec2-volume {text!r}: each gp3 volume has at least {GP3_IOPS} operations/s and {GP3_MIB} MiB/s; "
                "for fewer operations/s ask for them in the test: with_storage('gp2-100') or with_needs(iops=100)"
            )
        return cls(kind, gib, iops, mib)

    def __str__(self) -> str:
        """The text that ``parse`` accepts."""
        if self.kind == LOCAL_DISK:
            return LOCAL_DISK
        numbers = {"gp2": (self.gib,), "gp3": (self.gib, self.iops, self.mib_per_second)}
        return ":".join(map(str, (self.kind, *numbers.get(self.kind, (self.gib, self.iops)))))


@dataclasses.dataclass(frozen=True)
class EC2Settings:
    """What a run may launch, with the cap on its cost."""

    max_cost: float | None = None
    """The maximum cost of all launches of the run, in USD; None permits no launch."""

    type: str = ""
    """Instance type of the servers, "" for the default."""

    load_type: str = ""
    """Instance type of the load host, "" for that of the servers."""

    zones: tuple[str, ...] = ()
    """Availability zones."""

    subnets: tuple[str, ...] = ()
    """Ids of the subnets."""

    image: str = ""
    """Id of the image, or name of a public parameter; "" for the default."""

    volume: Volume = dataclasses.field(default_factory=lambda: Volume.parse(DEFAULT_VOLUME))
    """The data volume of each server."""

    ttl: float = 7200.0
    """Time to live of the instances, in seconds."""

    spot: bool = False
    """Whether to launch spot instances."""

    prices: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """Instance type -> USD per hour, and name of ``PRICED`` -> USD."""

    tags: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Additional tags."""

    source: str = ""
    """Network (CIDR) that may use ssh, "" for our address."""

    jump: str = ""
    """Jump host of ssh, "" for a direct connection."""

    written: int = WRITTEN_GIB
    """GiB of each data volume that are written once before use; 0 writes nothing."""

    ledger: Path | None = None
    """The file with the spending of all workers; None for a run of one process."""

    @property
    def machines(self) -> list[str]:
        """The options that affect figures; those about cost are left out."""
        given = {
            "--db-ec2-type": self.type,
            "--db-ec2-load-type": self.load_type,
            "--db-ec2-zone": " ".join(self.zones),
            "--db-ec2-image": self.image,
            "--db-ec2-volume": str(self.volume),
            "--db-ec2-written": "" if self.written == WRITTEN_GIB else str(self.written),
        }
        return [f"{option} {value}" for option, value in given.items() if value]

    @classmethod
    def parse(
        cls,
        *,
        max_cost: str | float | None = None,
        type: str | None = None,  # noqa: A002 - the name of the option
        load_type: str | None = None,
        zones: Sequence[str] | None = (),
        subnets: Sequence[str] | None = (),
        image: str | None = None,
        volume: str | None = None,
        ttl: str | None = None,
        spot: bool = False,
        prices: Sequence[str] | None = (),
        tags: Sequence[str] | None = (),
        source: str | None = None,
        jump: str | None = None,
        written: str | int | None = None,
    ) -> EC2Settings:
        """Settings from the texts of the options; None and "" mean that an option is not given. Raises ConfigError."""
        return cls(
            max_cost=None if max_cost is None else _usd("--db-max-cost", str(max_cost), str(max_cost)),
            type=_type("--db-ec2-type", type or ""),
            load_type=_type("--db-ec2-load-type", load_type or ""),
            zones=_zones(tuple(zones or ())),
            subnets=_distinct("--db-ec2-subnet", tuple(subnets or ()), SUBNET, "the id of a subnet: subnet-0a1b2c3d"),
            image=_match("--db-ec2-image", image or "", IMAGE, "ami-ID, or the name of a public parameter of AWS"),
            volume=Volume.parse(volume or DEFAULT_VOLUME),
            ttl=_seconds(ttl or DEFAULT_TTL),
            spot=spot,
            prices=_prices(prices or ()),
            tags=_tags(tags or ()),
            source=_network(source or ""),
            jump=_match("--db-ec2-jump", jump or "", TARGET, "USER@ADDRESS, or a Host of ~/.ssh/config"),
            written=WRITTEN_GIB if written in (None, "") else _gib("--db-ec2-written", str(written)),
        )


def _match(option: str, text: str, pattern: re.Pattern[str], form: str) -> str:
    if text and not pattern.fullmatch(text):
        raise ConfigError(f"{option} {text!r}: it accepts {form}")
    return text


def _type(option: str, text: str) -> str:
    return _match(option, text, TYPE, "an instance type, such as r6i.large")


def _distinct(option: str, texts: tuple[str, ...], pattern: re.Pattern[str], form: str) -> tuple[str, ...]:
    for number, text in enumerate(texts):
        if not text:
            raise ConfigError(f"{option} '': it accepts {form}")
        _match(option, text, pattern, form)
        if text in texts[:number]:
            raise ConfigError(f"{option} {text}: it is named twice; name each once")
    return texts


def _zones(texts: tuple[str, ...]) -> tuple[str, ...]:
    zones = _distinct("--db-ec2-zone", texts, ZONE, "the name of an availability zone, such as eu-central-1a")
    regions = dict.fromkeys(found["region"] for zone in zones if (found := ZONE.fullmatch(zone)))
    if len(regions) > 1:
        raise ConfigError(f"--db-ec2-zone: the zones are in {len(regions)} regions, {', '.join(regions)}; use one")
    return zones


def _gib(option: str, text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,5}", text) or int(text) > LARGEST_GIB:
        raise ConfigError(f"{option} {text!r}: it accepts a whole number of GiB, from 0 to {LARGEST_GIB}")
    return int(text)


def _usd(option: str, given: str, number: str) -> float:
    """USD from a number. given: the text of the option. Raises ConfigError unless it is finite and above 0."""
    # float() also accepts 1_000, nan, digits of other scripts and blanks, which are not amounts of money.
    if not re.fullmatch(r"[0-9]+(\.[0-9]+)?|\.[0-9]+|[0-9.]+e-?[0-9]+", number) or not 0 < _float(number) < math.inf:
        raise ConfigError(f"{option} {given!r}: it accepts USD, a number above 0, such as 0.50")
    return _float(number)


def _float(number: str) -> float:
    try:
        return float(number)
    except ValueError:
        return math.nan


def _seconds(text: str) -> float:
    seconds = option_seconds("--db-ec2-ttl", text, DEFAULT_TTL)
    if not SHORTEST <= seconds <= LONGEST:
        raise ConfigError(
            f"--db-ec2-ttl {text}: instances live from {duration(SHORTEST)} to {duration(LONGEST)}, and end "
            "themselves; a number without a unit is in seconds"
        )
    return seconds


def _prices(texts: Sequence[str]) -> Mapping[str, float]:
    prices: dict[str, float] = {}
    for text in texts:
        name, separator, number = text.partition("=")
        if not separator or not (TYPE.fullmatch(name) or name in PRICED):
            known = "; ".join(f"{name}: {unit}" for name, unit in PRICED.items())
            raise ConfigError(
                f"--db-ec2-price {text!r}: it accepts TYPE=USD, the price of an hour, such as r6i.large=0.152, or "
                f"NAME=USD ({known})"
            )
        if name in prices:
            raise ConfigError(f"--db-ec2-price {text}: {name} has two prices; give one")
        prices[name] = _usd("--db-ec2-price", text, number)
    return MappingProxyType(prices)


def _tags(texts: Sequence[str]) -> Mapping[str, str]:
    tags: dict[str, str] = {}
    for text in texts:
        key, separator, value = text.partition("=")
        if not separator or not 0 < len(key) <= TAG_KEY or len(value) > TAG_VALUE or not text.isprintable():
            raise ConfigError(
                f"--db-ec2-tag {text!r}: it accepts KEY=VALUE, of 1 to {TAG_KEY} and at most {TAG_VALUE} printable "
                "characters"
            )
        if key.lower().startswith(("aws:", TAG_PREFIX)) or key == "Name":
            raise ConfigError(f"--db-ec2-tag {text!r}: the tag {key!r} is reserved for AWS or for us; use another key")
        if key in tags:
            raise ConfigError(f"--db-ec2-tag {text!r}: the tag {key!r} has two values; give one")
        tags[key] = value
    if len(tags) > MOST_TAGS:
        raise ConfigError(f"--db-ec2-tag: {len(tags)} tags; AWS allows 50 with ours, so give at most {MOST_TAGS}")
    return MappingProxyType(tags)


def _network(text: str) -> str:
    if not text:
        return ""
    try:
        network = ipaddress.IPv4Network(text if "/" in text else f"{text}/32")
    except ValueError as error:
        raise ConfigError(
            f"--db-ec2-from {text!r}: {error}; it accepts a network of IPv4 addresses, such as 192.0.2.17/32"
        ) from None
    if network.prefixlen < WIDEST and not network.is_private:
        raise ConfigError(
            f"--db-ec2-from {text}: {network.num_addresses} public addresses could reach ssh on the instances; "
            f"it accepts a network of /{WIDEST} to /32, or a private one"
        )
    return str(network)
