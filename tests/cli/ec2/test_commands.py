"""``dbcluster ec2``: prices with their age, and the IAM policy."""

from __future__ import annotations

import json

import pytest
from botocore.stub import Stubber

from pytest_dbcluster.cli import main
from pytest_dbcluster.hosts.provisioners.ec2 import aws
from pytest_dbcluster.hosts.provisioners.ec2.money import price_list, prices

REGION = "eu-central-1"


@pytest.fixture(autouse=True)
def environment(tmp_path, monkeypatch):
    """No credentials, region or prices of the user who runs the tests."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)


def run(*words):
    """Run the command and return its exit code."""
    return main.main(["ec2", *words])


def test_the_list_shows_each_price_with_its_source_and_age(capsys):
    """Known prices have a source and an age, others are called unknown; AWS is not asked."""
    assert run("prices", "--list", "--region", REGION, "r6i.large") == 0
    rows = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}

    assert "0.152" in rows["r6i.large"]
    assert "github.com/cristim/ec2-instances-info of 2025-05-28" in rows["r6i.large"]
    assert rows["r6i.large"].rstrip().endswith(" d")
    assert rows["ipv4"].split()[1] == "unknown"


def test_a_word_that_is_no_instance_type_is_refused(capsys):
    """A wrong type is an error and not an unknown price."""
    assert run("prices", "--list", "--region", REGION, "large") == 2
    assert "'large' is not an instance type, such as r6i.large" in capsys.readouterr().err


def test_a_word_that_is_no_region_is_refused(capsys):
    """A wrong region is an error, and no file of that name is read."""
    assert run("prices", "--list", "--region", "../x") == 2
    assert "'../x' is not a region of AWS, such as eu-central-1" in capsys.readouterr().err


def test_without_a_region_the_command_says_how_to_name_one(capsys):
    """The region is that of boto3; there is none."""
    assert run("prices", "--list") == 2
    assert "no region is chosen: set AWS_DEFAULT_REGION" in capsys.readouterr().err


def test_without_credentials_no_prices_are_fetched(capsys):
    """The error says how to get credentials, and no copy is written."""
    assert run("prices", "--region", REGION) != 0
    assert "there are no credentials" in capsys.readouterr().err
    assert not prices.copy(REGION).exists()


def test_fetched_prices_are_listed_with_the_price_list_as_their_source(capsys, monkeypatch):
    """The command writes the copy, names its file, and lists what a run would count with."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "not a secret of anybody")
    rate = {"unit": "Hrs", "pricePerUnit": {"USD": "0.99"}}
    product = {
        "product": {"attributes": {"instanceType": "r6i.large"}},
        "terms": {"OnDemand": {"a": {"priceDimensions": {"b": rate}}}},
    }
    clients = []
    make = aws.Account._client

    def stubbed(account, service):
        """The client of the account, with answers."""
        client = make(account, service)
        if client not in clients:
            clients.append(client)
            stub = Stubber(client)
            stub.add_response("get_products", {"PriceList": [json.dumps(product)]})
            for _ in price_list.OTHERS:
                stub.add_response("get_products", {"PriceList": []})
            stub.activate()
        return client

    monkeypatch.setattr(aws.Account, "_client", stubbed)

    assert run("prices", "--region", REGION, "r6i.large") == 0
    shown = capsys.readouterr()
    assert f"wrote the prices of {REGION} to {prices.copy(REGION)}" in shown.out
    assert "0.99" in next(line for line in shown.out.splitlines() if line.startswith("r6i.large"))
    assert "AWS price list of " in shown.out
    assert "reading the price list of eu-central-1" in shown.err


def test_the_policy_is_printed_as_json(capsys):
    """The output alone is a policy; --region limits it, --reaper permits no launch."""
    assert run("policy", "--region", REGION) == 0
    whole = capsys.readouterr().out
    assert run("policy", "--reaper") == 0
    reaper = capsys.readouterr().out

    assert json.loads(whole)["Version"] == "2012-10-17"
    assert f"arn:aws:ec2:{REGION}:*:instance/*" in whole
    assert "ec2:RunInstances" in whole
    assert "ec2:RunInstances" not in reaper
    assert json.loads(reaper)["Statement"]


def test_a_policy_for_a_wrong_region_is_refused(capsys):
    """A wildcard in place of a region would permit more than was meant."""
    assert run("policy", "--region", "*") == 2
    assert "'*' is not a region of AWS" in capsys.readouterr().err
