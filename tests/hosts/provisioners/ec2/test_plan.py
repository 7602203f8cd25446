"""The plan of a launch: what is refused before anything is made, and from where ssh is let in."""

from __future__ import annotations

import io
import urllib.error

import pytest

from pytest_dbcluster.errors import ConfigError, ProvisionError, Unsupported
from pytest_dbcluster.hosts.provisioners.ec2 import plan
from pytest_dbcluster.hosts.provisioners.ec2.aws import AwsError
from pytest_dbcluster.hosts.provisioners.ec2.settings import EC2Settings
from tests.hosts.provisioners.ec2.test_fleet import fleet, launched


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"type": "r6i.gigantic"}, "'r6i.gigantic' is not known to this boto3"),
        (
            {"zones": ["eu-central-1z"]},
            "the zone eu-central-1z has no instances of type r6i.large; zones with them: eu-",
        ),
        ({"volume": "nvme"}, "--db-ec2-volume nvme: instances of type r6i.large have no local disk"),
        (
            {"type": "m7g.large"},
            "instances of type m7g.large are aarch64; releases have programs for this machine: ",
        ),
        ({"load_type": "m7g.large"}, "instances of type m7g.large are aarch64"),
        ({"subnets": ["subnet-0123456789abcdef0"]}, "subnet-0123456789abcdef0"),
        ({"image": "ami-0123456789abcdef0"}, "ami-0123456789abcdef0"),
        ({"image": "/aws/service/none"}, "this region has no such public parameter"),
    ],
)
def test_what_the_region_does_not_have_is_refused_before_anything_is_made(aws, options, words):
    """Each with a sentence; the account stays empty."""
    with pytest.raises((ConfigError, Unsupported, AwsError)) as caught:
        launched(fleet(**options))

    assert words in str(caught.value)
    assert aws.left() == {}


def test_our_address_is_asked_for_where_no_option_names_it():
    """AWS tells from where it was asked; who goes through another host has to say."""
    options = EC2Settings.parse(max_cost=1)

    assert plan.our_address(options, lambda *_, **__: io.BytesIO(b"198.51.100.7\n")) == "198.51.100.7/32"
    with pytest.raises(ConfigError, match=r"instances see the address of that host; .*--db-ec2-from"):
        plan.our_address(EC2Settings.parse(max_cost=1, jump="admin@bastion"))


@pytest.mark.parametrize("answer", [b"<html>", b"", b"0.0.0.0/0", b"::1", b"\xff"])
def test_an_address_that_is_none_opens_no_group(answer):
    """Whoever answers in AWS's place."""
    with pytest.raises(
        ProvisionError, match=r"cannot find out our address at .*; set the network of your ssh: --db-ec2-from"
    ):
        plan.our_address(EC2Settings.parse(max_cost=1), lambda *_, **__: io.BytesIO(answer))


def test_without_a_network_the_message_names_the_option():
    """Nothing was launched then."""

    def ask(*_, **__):
        raise urllib.error.URLError("no route")

    with pytest.raises(ProvisionError, match=r"no route.*--db-ec2-from CIDR"):
        plan.our_address(EC2Settings.parse(max_cost=1), ask)
