"""Account: requests to AWS, held against botocore's model, and the sentences of its errors; nothing reaches AWS."""

from __future__ import annotations

import datetime
import email.utils
import os
import re
import time

import boto3
import botocore.awsrequest
import botocore.loaders
import pytest

from pytest_dbcluster import redaction
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.hosts.provisioners.ec2 import aws
from pytest_dbcluster.hosts.provisioners.ec2.aws import Account, AwsError

ERROR = (
    "<Response><Errors><Error><Code>{}</Code><Message>{}</Message></Error></Errors><RequestID>1</RequestID></Response>"
)


class Wire:
    """What answers in AWS's place: each request is counted, and gets the same answer."""

    def __init__(self, account, status, text, ahead=0.0):
        self.requests = 0
        self._answer = status, text, ahead
        account._client("ec2").meta.events.register("before-send.ec2", self)

    def __call__(self, request, **_):
        """The answer to a request that boto3 is about to send."""
        self.requests += 1
        status, text, ahead = self._answer
        date = email.utils.format_datetime(
            datetime.datetime.fromtimestamp(time.time() - ahead, datetime.UTC), usegmt=True
        )
        answer = botocore.awsrequest.AWSResponse(request.url, status, {"Date": date}, None)
        answer._content = text.encode()
        return answer


def refusal(account, code, message="Words of AWS.", status=400, ahead=0.0):
    """The error of a request that AWS answers with this code."""
    wire = Wire(account, status, ERROR.format(code, message), ahead)
    with pytest.raises(AwsError) as caught:
        account.call("ec2", "DescribeInstances")
    caught.value.requests = wire.requests
    return caught.value


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("ExpiredToken", "the credentials have expired: get new ones, such as by `aws sso login`"),
        ("RequestExpired", "the credentials have expired"),
        ("AuthFailure", "AWS does not know these credentials: check AWS_PROFILE"),
        (
            "UnauthorizedOperation",
            "do not permit ec2:DescribeInstances; `dbcluster ec2 policy` prints what a run needs",
        ),
        ("InsufficientInstanceCapacity", "does not have enough of these instances now: try another --db-ec2-zone"),
        ("VcpuLimitExceeded", "the account's limit of vCPUs is used"),
        ("MaxSpotInstanceCountExceeded", "the account's limit of spot instances is used: leave out --db-ec2-spot"),
        ("Unsupported", "this zone does not offer it: try another --db-ec2-zone or --db-ec2-type"),
        ("OptInRequired", "the account must accept the terms of the image"),
    ],
)
def test_an_error_of_aws_is_a_sentence_that_says_what_to_do(account, code, words):
    """It names the request, AWS's own code, and what AWS said."""
    error = refusal(account, code)

    assert words in str(error)
    assert str(error).startswith("AWS, ec2:DescribeInstances: ")
    assert str(error).endswith(f"it said: {code}: Words of AWS.")
    assert error.code == aws.SAME.get(code, code)


def test_an_error_without_advice_says_what_aws_said(account):
    """Nothing is invented about it."""
    text = str(refusal(account, "InvalidZone.Strange", "No."))
    assert text.startswith("AWS, ec2:DescribeInstances: ")
    assert text.endswith(": InvalidZone.Strange: No.")
    assert ";" not in text  # which separates advice from AWS's words


@pytest.mark.parametrize(
    ("ahead", "words"),
    [(600.0, "the clock of this machine is 10 min ahead of that of AWS"), (-3600.0, "60 min behind")],
)
@pytest.mark.parametrize("code", ["RequestExpired", "AuthFailure"])
def test_a_clock_that_is_off_is_told_apart_from_credentials_that_have_expired(account, code, ahead, words):
    """AWS refuses both with the same codes; the answer has the time of AWS."""
    error = refusal(account, code, ahead=ahead)

    assert words in str(error)
    assert "set the clock" in str(error)
    assert "expired" not in str(error)
    assert abs(account.ahead - ahead) < 30


def test_what_identifies_an_account_is_not_shown(account):
    """Its number, names of resources with it, keys of access, and the blob that describes a refusal."""
    blob = "Encoded authorization failure message: " + "Qx7-" * 60
    text = f"User: arn:aws:iam::123456789012:user/eve (AKIAIOSFODNN7EXAMPLE, 123456789012) may not. {blob}"
    error = str(refusal(account, "UnauthorizedOperation", text))

    assert error.endswith("User: arn:*** (***, ***) may not.")
    assert not re.search(r"\d{12}|AKIA|Qx7", error)


def test_the_secret_key_is_removed_from_every_text(account):
    """Whoever shows it."""
    account._client("ec2")

    assert redaction.redact(f"key {os.environ['AWS_SECRET_ACCESS_KEY']}.") == "key ***."


def test_want_of_capacity_is_not_asked_for_again_and_again(account):
    """AWS answers it with the status 500, which boto3 repeats: three requests at most, in less than 5 s."""
    began = time.monotonic()
    error = refusal(account, "InsufficientInstanceCapacity", status=500)

    assert error.requests <= aws.ATTEMPTS
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        ({"MetadataOptions": {"HttpTokens": "always"}}, "unknown MetadataOptions.HttpTokens 'always'; known: optional"),
        (
            {"TagSpecifications": [{"ResourceType": "instanze"}]},
            "TagSpecifications[0].ResourceType 'instanze' is not known",
        ),
        ({"InstanceType": "r99.huge"}, "InstanceType 'r99.huge' is not known to this boto3: check its name"),
    ],
)
def test_words_that_an_enumeration_does_not_have_are_refused_before_aws_is_asked(account, request_, words):
    """Botocore itself lets them pass."""
    wire = Wire(account, 200, "")
    with pytest.raises(ConfigError) as caught:
        account.call("ec2", "RunInstances", MinCount=1, MaxCount=1, **request_)

    assert words in str(caught.value)
    assert wire.requests == 0


@pytest.mark.parametrize(
    ("operation", "request_", "words"),
    [
        ("RunInstances", {"MinCount": 1, "MaxCount": "1"}, "Invalid type for parameter MaxCount"),
        ("RunInstances", {"MinCount": 1, "MaxCount": 1, "Tokens": 1}, 'Unknown parameter in input: "Tokens"'),
        ("CreateVpc", {}, "ec2:CreateVpc is not in OPERATIONS"),
    ],
)
def test_a_request_that_the_model_does_not_have_is_our_mistake(account, operation, request_, words):
    """It is no error of the user's."""
    with pytest.raises(ValueError, match=re.escape(words)):
        account.call("ec2", operation, **request_)


def test_every_operation_exists_in_botocore():
    """A permission is ``service:Operation``."""
    for name in aws.OPERATIONS:
        service, _, operation = name.partition(":")
        client = boto3.client(
            aws.SERVICES.get(service, service), "us-east-1", aws_access_key_id="x", aws_secret_access_key="y"
        )
        assert operation in client.meta.method_to_api_mapping.values(), name


def test_without_credentials_the_message_says_where_they_come_from(account, monkeypatch):
    """Nothing is asked."""
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    with pytest.raises(AwsError, match="there are no credentials: `aws configure`, `aws sso login`") as caught:
        Account().call("ec2", "DescribeInstances")

    assert caught.value.code == "NoCredentials"


def test_without_a_region_the_message_says_where_it_comes_from(account, monkeypatch):
    """The zone of an option gives it too."""
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    monkeypatch.delenv("AWS_REGION")
    with pytest.raises(ConfigError, match="no region is chosen: set AWS_DEFAULT_REGION"):
        Account()

    assert Account("eu-west-1").region == "eu-west-1"


def test_a_profile_that_does_not_exist_is_named(account, monkeypatch):
    """Before anything is asked."""
    monkeypatch.setenv("AWS_PROFILE", "absent")
    with pytest.raises(ConfigError, match="absent"):
        Account()


def test_an_address_that_does_not_answer_is_said(account, monkeypatch):
    """The message names the network."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    with pytest.raises(AwsError, match="check the network, the proxy") as caught:
        Account().call("ec2", "DescribeInstances")

    assert caught.value.code == "NoAnswer"


def test_a_second_account_reads_no_description_again(account, monkeypatch):
    """The descriptions of AWS's services are large, and accounts of one process share them."""
    account._client("ec2")
    read = []
    monkeypatch.setattr(botocore.loaders.JSONFileLoader, "load_file", lambda self, path: read.append(path))
    Account("eu-west-1")._client("ec2")

    assert read == []
