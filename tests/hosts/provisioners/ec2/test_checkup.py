"""The findings of ``dbcluster doctor --provisioner ec2``; nothing is launched for them."""

from __future__ import annotations

import re
import time

from pytest_dbcluster.hosts.provisioners.ec2 import checkup
from pytest_dbcluster.hosts.provisioners.ec2.aws import Account
from pytest_dbcluster.hosts.provisioners.ec2.settings import EC2Settings
from tests.hosts.provisioners.ec2.test_fleet import fleet, launched
from tests.support.facts import missing


def findings(**options):
    """The findings by name: value and problem."""
    settings = EC2Settings.parse(**{"prices": ["ipv4=0.005"], **options})
    return {one.name: (one.value, one.problem) for one in checkup.findings(Account(), settings)}


def test_an_account_that_has_everything_has_no_problem(aws):
    """It is asked for permission with DryRun: afterwards it is as empty as before."""
    found = findings()

    assert {name for name, (_, problem) in found.items() if problem} == set()
    assert found["account"][0] == "eu-central-1: 3 x r6i.large in eu-central-1a, 1 x r6i.large in eu-central-1a"
    assert missing(found["credentials"][0], "permit a launch", "DryRun") == []
    assert missing(found["quota"][0], "64 vCPUs on demand", "8 are needed") == []
    assert "at most 1.32 USD" in found["prices"][0]
    assert found["runs"][0] == "no resources are left"
    assert aws.left() == {}
    assert "ec2:RunInstances" in aws.requests


def test_a_launch_that_is_not_permitted_is_told(aws):
    """With the request, and the command that prints the policy."""
    aws.refuse("RunInstances", "UnauthorizedOperation")

    assert "do not permit ec2:RunInstances; `dbcluster ec2 policy` prints" in findings()["credentials"][1]


def test_a_quota_that_is_too_small_is_told(aws):
    """Of three servers and a load host."""
    aws.quota = 6.0

    value, problem = findings()["quota"]
    assert missing(value, "6 vCPUs on demand", "8 are needed") == []
    needs = "three servers and a load host need 8: "
    assert missing(problem, needs, "ask AWS for more (Service Quotas, EC2)", "use smaller types") == []
    assert findings(spot=True)["quota"][0].startswith("6 vCPUs spot")


def test_a_price_that_is_not_known_is_told(aws):
    """A run would launch nothing."""
    assert "the price of ipv4 in eu-central-1" in findings(prices=[])["prices"][1]


def test_a_clock_that_is_off_is_told_before_everything_else(aws):
    """AWS answers nothing else then."""
    aws.ahead = 700.0
    aws.refuse("*", "AuthFailure", times=-1)
    found = findings()

    assert list(found) == ["account", "clock"]
    value, problem = found["clock"]
    assert re.fullmatch(r"7\d\d s ahead of that of AWS", value)  # the test takes a while itself
    assert missing(problem, "AWS refuses requests", "set the clock", "by 12 min") == []


def test_runs_that_have_outlived_their_time_are_told(aws):
    """With the command that ends them."""
    launched(fleet(), expires=time.time() - 5)
    value, problem = findings()["runs"]

    assert value.startswith("1 run, 14 things")
    assert problem.endswith("dbcluster reap --provisioner ec2 --expired")
