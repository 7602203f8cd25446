"""Options that say where clusters run elsewhere: which provisioner takes which, and how long a run on EC2 may take."""

from __future__ import annotations

import argparse
import re

import pytest

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.hosts import given
from pytest_dbcluster.hosts.given import EC2_OPTIONS, add_ec2_options, add_ssh_options, remote_arguments, run_budget
from pytest_dbcluster.hosts.provisioners.ec2 import settings


def parsed(*words):
    """The options of a command line."""
    parser = argparse.ArgumentParser()
    add_ec2_options(parser.add_argument)
    add_ssh_options(parser.add_argument)
    return parser.parse_args(words)


def test_every_option_of_ec2_becomes_a_setting():
    """Each has its own field, under the name that users type."""
    words = ["--db-max-cost", "2", "--db-ec2-type", "m5d.large", "--db-ec2-load-type", "m5.large", "--db-ec2-zone",
             "eu-west-1a", "--db-ec2-subnet", "subnet-0a1b2c3d", "--db-ec2-jump", "admin@b", "--db-ec2-image",
             "ami-0a1b2c3d", "--db-ec2-volume", "nvme", "--db-ec2-written", "4",
                 "--db-ec2-ttl", "1h", "--db-ec2-spot", "--db-ec2-price",
             "m5.large=1", "--db-ec2-tag", "a=b", "--db-ec2-from", "192.0.2.0/24"]  # fmt: skip
    settings = remote_arguments(parsed(*words), "ec2")["settings"]

    assert {word for word in words if word.startswith("--")} == {one.name for one in EC2_OPTIONS}
    assert (settings.max_cost, settings.type, settings.load_type, settings.zones) == (
        2.0, "m5d.large", "m5.large", ("eu-west-1a",))  # fmt: skip
    assert (settings.subnets, settings.jump, settings.image) == (("subnet-0a1b2c3d",), "admin@b", "ami-0a1b2c3d")
    assert (str(settings.volume), settings.ttl, settings.spot) == ("nvme", 3600.0, True)
    assert (settings.prices, settings.tags, settings.source) == ({"m5.large": 1.0}, {"a": "b"}, "192.0.2.0/24")


def test_the_help_of_a_volume_and_a_price_has_all_forms():
    """Each form of a volume, and a price of an instance type and of another item."""
    helps = {one.name: one.help for one in EC2_OPTIONS}

    assert [form for form in settings.FORMS if form not in helps["--db-ec2-volume"]] == []
    assert helps["--db-ec2-volume"].endswith(f"(default {settings.DEFAULT_VOLUME})")
    assert f"(default {settings.DEFAULT_TTL})" in helps["--db-ec2-ttl"]
    assert {"TYPE=USD", "ipv4=USD"} <= set(re.findall(r"\w+=USD", helps["--db-ec2-price"]))
    assert "ipv4" in settings.PRICED


@pytest.mark.parametrize(
    ("words", "provisioner", "message"),
    [
        (["--db-ec2-spot"], "local", "--db-ec2-spot was given, but the provisioner local launches no instances"),
        (["--db-max-cost=1"], "ssh", "--db-max-cost was given, but the provisioner ssh launches no instances"),
        (
            ["--db-host=a"],
            "ec2",
            "machines were given, but the provisioner ec2 does not use them; use --db-provisioner ssh",
        ),
        (["--db-host-directory=/d"], "vm", "--db-host-directory was given, but the provisioner vm uses no machines"),
    ],
)
def test_options_of_another_provisioner_are_refused(words, provisioner, message):
    """Nobody believes that a cap holds where nothing is capped."""
    with pytest.raises(ConfigError) as caught:
        remote_arguments(parsed(*words), provisioner)

    assert str(caught.value).startswith(message)


def test_ssh_and_ec2_take_a_directory():
    """Other options are not told where they are not given."""
    assert remote_arguments(parsed("--db-host-directory=/data", "--db-host=a"), "ssh") == {
        "machines": ("a",),
        "base": "/data",
    }
    assert remote_arguments(parsed("--db-host-directory=/data"), "ec2")["base"] == "/data"
    assert remote_arguments(parsed(), "local") == {}


def test_a_run_ends_before_its_instances():
    """By default 5 minutes, of a short life a fifth; a longer budget is refused with both times."""
    two_hours = remote_arguments(parsed(), "ec2")
    short = remote_arguments(parsed("--db-ec2-ttl=10min"), "ec2")

    assert run_budget(None, two_hours) == 7200 - given.TTL_MARGIN
    assert run_budget(None, short) == 480
    assert run_budget(60, short) == 60
    assert run_budget(None, {}) is None
    with pytest.raises(ConfigError, match="--db-run-budget 500: instances end after --db-ec2-ttl, 600 s, so the run"):
        run_budget(500, short)
