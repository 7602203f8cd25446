"""The values of --db-max-cost and --db-ec2-..., before anything is launched."""

from __future__ import annotations

import pytest

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.hosts.provisioners.ec2.settings import PRICED, EC2Settings, Volume


def test_without_options_nothing_may_be_launched() -> None:
    """Without options there is no allowance, the volume is gp3 with its free limits, and instances live for 2 hours."""
    settings = EC2Settings.parse()

    assert settings == EC2Settings()
    assert settings.max_cost is None
    assert (settings.volume, settings.ttl) == (Volume("gp3", 50, 3000, 125), 7200)


def test_all_options_are_read() -> None:
    """Each option's text becomes its value."""
    settings = EC2Settings.parse(
        max_cost="1.50",
        type="r6i.large",
        load_type="c6i.xlarge",
        zones=["eu-central-1a", "eu-central-1b"],
        subnets=["subnet-0a1b2c3d"],
        image="ami-0123456789abcdef0",
        volume="io2:100:5000",
        ttl="90min",
        spot=True,
        prices=["r6i.large=0.152", "gp3-iops=0.006"],
        tags=["team=db = yes"],
        source="192.0.2.17",
        jump="admin@bastion",
    )

    assert settings == EC2Settings(
        max_cost=1.5,
        type="r6i.large",
        load_type="c6i.xlarge",
        zones=("eu-central-1a", "eu-central-1b"),
        subnets=("subnet-0a1b2c3d",),
        image="ami-0123456789abcdef0",
        volume=Volume("io2", 100, 5000, 0),
        ttl=5400,
        spot=True,
        prices={"r6i.large": 0.152, "gp3-iops": 0.006},
        tags={"team": "db = yes"},
        source="192.0.2.17/32",
        jump="admin@bastion",
    )


@pytest.mark.parametrize(
    ("text", "volume"),
    [
        ("gp3:50", Volume("gp3", 50, 3000, 125)),
        ("gp3:500:6000", Volume("gp3", 500, 6000, 125)),
        ("gp3:50:3000:125", Volume("gp3", 50, 3000, 125)),
        ("gp2:10", Volume("gp2", 10, 100, 0)),
        ("gp2:1000", Volume("gp2", 1000, 3000, 0)),
        ("gp2:16000", Volume("gp2", 16000, 16000, 0)),
        ("io1:50:2500", Volume("io1", 50, 2500, 0)),
        ("nvme", Volume("nvme", 0, 0, 0)),
    ],
)
def test_the_text_of_a_volume_is_what_parsed_takes(text: str, volume: Volume) -> None:
    """A volume is read from its text, gp2 gets the operations/s of its size, and its own text gives it back."""
    assert Volume.parse(text) == volume
    assert Volume.parse(str(volume)) == volume


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("max_cost", "0", "--db-max-cost '0': it accepts USD, a number above 0"),
        ("max_cost", "nan", "--db-max-cost 'nan': it accepts USD"),
        ("max_cost", "inf", "--db-max-cost 'inf': it accepts USD"),
        ("max_cost", "-1", "--db-max-cost '-1': it accepts USD"),
        ("max_cost", "1_000", "--db-max-cost '1_000': it accepts USD"),
        ("max_cost", "1e999", "--db-max-cost '1e999': it accepts USD"),
        ("max_cost", "1.1.1e5", "--db-max-cost '1.1.1e5': it accepts USD"),
        ("max_cost", "1,50", "--db-max-cost '1,50': it accepts USD"),
        ("max_cost", "", "--db-max-cost '': it accepts USD"),
        ("type", "r6i large", "--db-ec2-type 'r6i large': it accepts an instance type, such as r6i.large"),
        ("load_type", "--x", "--db-ec2-load-type '--x': it accepts an instance type"),
        ("zones", ["eu-central-1a\n"], "--db-ec2-zone 'eu-central-1a\\n': it accepts the name of an availability zone"),
        ("zones", [""], "--db-ec2-zone '': it accepts the name of an availability zone"),
        ("zones", ["eu-central-1a"] * 2, "--db-ec2-zone eu-central-1a: it is named twice"),
        ("zones", ["eu-central-1a", "eu-west-1a"], "the zones are in 2 regions, eu-central-1, eu-west-1; use one"),
        ("subnets", ["vpc-0a1b2c3d"], "--db-ec2-subnet 'vpc-0a1b2c3d': it accepts the id of a subnet"),
        ("image", "debian", "--db-ec2-image 'debian': it accepts ami-ID, or the name of a public parameter"),
        ("written", "8GiB", "--db-ec2-written '8GiB': it accepts a whole number of GiB, from 0 to 65536"),
        ("volume", "gp4:50", "unknown kind of volume in --db-ec2-volume 'gp4'; known: gp3, gp2, io1, io2, nvme"),
        ("volume", "gp3", "--db-ec2-volume 'gp3': it accepts gp3:GIB[:IOPS[:MIB_PER_SECOND]] or gp2:GIB or"),
        ("volume", "gp2:50:3000", "--db-ec2-volume 'gp2:50:3000': it accepts"),
        ("volume", "io2:50", "--db-ec2-volume 'io2:50': it accepts"),
        ("volume", "gp3:-5", "--db-ec2-volume 'gp3:-5': it accepts"),
        ("volume", "gp3:\u0665", "--db-ec2-volume 'gp3:\u0665': it accepts"),
        ("volume", "gp3:65537", "of at most 65536 GiB"),
        ("volume", "nvme:50", "unknown kind of volume in --db-ec2-volume 'nvme'"),
        ("volume", "gp3:50:100", "each gp3 volume has at least 3000 operations/s and 125 MiB/s"),
        (
            "ttl",
            "2",
            "--db-ec2-ttl 2: instances live from 5 min to 7 d, and end themselves; a number without a unit is in",
        ),
        ("ttl", "2w", "--db-ec2-ttl '2w': it accepts a time in ms, s, min, h or d, such as 2h"),
        ("ttl", "10s", "--db-ec2-ttl 10s: instances live from 5 min to 7 d"),
        ("ttl", "8d", "--db-ec2-ttl 8d: instances live from 5 min to 7 d"),
        ("prices", ["r6i.large"], "--db-ec2-price 'r6i.large': it accepts TYPE=USD, the price of an hour"),
        ("prices", ["gp9=1"], "--db-ec2-price 'gp9=1': it accepts TYPE=USD"),
        ("prices", ["r6i.large=0"], "--db-ec2-price 'r6i.large=0': it accepts USD, a number above 0"),
        ("prices", ["ipv4=1", "ipv4=2"], "--db-ec2-price ipv4=2: ipv4 has two prices; give one"),
        ("tags", ["team"], "--db-ec2-tag 'team': it accepts KEY=VALUE"),
        ("tags", ["=x"], "--db-ec2-tag '=x': it accepts KEY=VALUE"),
        ("tags", ["a=\x1b[0m"], "--db-ec2-tag 'a=\\x1b[0m': it accepts KEY=VALUE"),
        ("tags", ["k" * 129 + "=x"], "it accepts KEY=VALUE"),
        ("tags", ["AWS:x=1"], "--db-ec2-tag 'AWS:x=1': the tag 'AWS:x' is reserved"),
        (
            "tags",
            ["pytest-dbcluster:run=1"],
            "the tag 'pytest-dbcluster:run' is reserved for AWS or for us; use another key",
        ),
        ("tags", ["Name=x"], "the tag 'Name' is reserved"),
        ("tags", ["a=1", "a=2"], "the tag 'a' has two values; give one"),
        ("tags", [f"k{number}=1" for number in range(41)], "41 tags; AWS allows 50 with ours, so give at most 40"),
        ("source", "0.0.0.0/0", "--db-ec2-from 0.0.0.0/0: 4294967296 public addresses could reach ssh"),
        ("source", "8.0.0.0/8", "it accepts a network of /16 to /32, or a private one"),
        ("source", "192.0.2.17/24", "--db-ec2-from '192.0.2.17/24': 192.0.2.17/24 has host bits set"),
        ("source", "::/0", "it accepts a network of IPv4 addresses"),
        ("jump", "-oProxyCommand=x", "--db-ec2-jump '-oProxyCommand=x': it accepts USER@ADDRESS"),
    ],
)
def test_a_wrong_text_is_refused_in_words(option: str, value: object, words: str) -> None:
    """A wrong text is a ConfigError that names the option, shows the text, and says what it takes."""
    with pytest.raises(ConfigError) as error:
        EC2Settings.parse(**{option: value})  # type: ignore[arg-type]

    assert words in str(error.value)


@pytest.mark.parametrize("network", ["10.0.0.0/8", "203.0.0.0/16", "198.51.100.0/24"])
def test_ssh_may_be_let_in_from_a_private_or_a_small_network(network: str) -> None:
    """A private network of any size and a public one from /16 on are accepted as they are."""
    assert EC2Settings.parse(source=network).source == network


def test_every_price_that_is_no_type_has_a_unit() -> None:
    """Each name of --db-ec2-price is accepted, and the refusal of another lists it with its unit."""
    assert dict(EC2Settings.parse(prices=[f"{name}=2" for name in PRICED]).prices) == dict.fromkeys(PRICED, 2.0)
    with pytest.raises(ConfigError) as error:
        EC2Settings.parse(prices=["disk=1"])

    assert all(f"{name}: {unit}" in str(error.value) for name, unit in PRICED.items())
