"""The least IAM policy of a run, and that of a reaper."""

from __future__ import annotations

import fnmatch
import json

import boto3
import pytest

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.hosts.provisioners.ec2 import policy, reaper
from pytest_dbcluster.hosts.provisioners.ec2.aws import OPERATIONS, SERVICES

RUN_TAG = "pytest-dbcluster:run"
# Limit of a managed policy, without white space (docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html).
MOST_CHARACTERS = 6144
HARMLESS = ("Describe", "Get")


def statements(**arguments):
    """The statements of a policy."""
    return policy.document(**arguments)["Statement"]


def texts(value):
    """A text or a list of texts as a list."""
    return [value] if isinstance(value, str) else list(value)


def actions(found):
    """All actions of statements."""
    return {action for one in found for action in texts(one["Action"])}


def permits(found, action, resource, **context):
    """Whether statements permit an action on a resource. context: the condition keys that the request has."""
    return any(
        action in texts(one["Action"])
        and any(fnmatch.fnmatchcase(resource, pattern) for pattern in texts(one["Resource"]))
        and all(holds(kind, wanted, context) for kind, wanted in one.get("Condition", {}).items())
        for one in found
    )


def holds(kind, wanted, context):
    """Whether a condition of a kind that our policies have holds, as IAM's documentation says."""
    if kind == "Null":
        return all((key not in context) is (value == "true") for key, value in wanted.items())
    if kind == "ForAllValues:StringEquals":
        return all(set(context.get(key, ())) <= set(values) for key, values in wanted.items())
    assert kind == "StringEquals"
    return all(context.get(key) in texts(values) for key, values in wanted.items())


def arn(kind, region="eu-central-1"):
    """A resource of EC2."""
    return f"arn:aws:ec2:{region}:123456789012:{kind}/x"


def test_the_policy_has_every_operation_and_the_named_dependents():
    """What the code asks for is permitted, what AWS needs beside it too, and nothing else."""
    assert actions(statements()) == OPERATIONS | policy.DEPENDENTS


def test_no_action_has_a_wildcard():
    """Each action is named."""
    assert [action for action in actions(statements()) if "*" in action] == []


def test_every_operation_is_one_of_its_service():
    """A name of an operation that botocore does not know would permit nothing."""
    session = boto3.Session(region_name="eu-central-1")
    unknown = []
    for action in OPERATIONS:
        service, operation = action.split(":")
        if operation not in session.client(SERVICES.get(service, service)).meta.service_model.operation_names:
            unknown.append(action)

    assert unknown == []


def test_only_reading_is_permitted_on_everything():
    """What makes, changes or ends something has resources, and apart from what it is launched into a condition."""
    for one in statements():
        changing = [action for action in texts(one["Action"]) if not action.split(":")[1].startswith(HARMLESS)]
        if changing:
            assert "*" not in texts(one["Resource"]), one["Sid"]
            assert one.get("Condition") or one["Sid"] == "LaunchInto", one["Sid"]


@pytest.mark.parametrize("action", sorted(policy.ENDED))
def test_only_what_has_our_tag_can_be_ended(action):
    """Without the tag of a run on the thing itself nothing is ended, neither by a run nor by a reaper."""
    kind = policy.ENDED[action][0]
    for found in (statements(), statements(reaper=True)):
        assert permits(found, action, arn(kind), **{f"aws:ResourceTag/{RUN_TAG}": "r1"})
        assert not permits(found, action, arn(kind))
        assert not permits(found, action, arn(kind), **{f"aws:RequestTag/{RUN_TAG}": "r1"})
        assert not permits(found, action, arn(kind), **{"aws:ResourceTag/team": "r1"})


def test_one_tag_can_be_set_later_of_our_instances_alone():
    """That one is kept: nobody can make others' instances ours, or change when ours expire."""
    found, kept = statements(), {
        "aws:TagKeys": ["pytest-dbcluster:kept"], "aws:RequestTag/pytest-dbcluster:kept": "yes"
    }  # fmt: skip
    ours = {f"aws:ResourceTag/{RUN_TAG}": "r1"}

    assert permits(found, "ec2:CreateTags", arn("instance"), **ours, **kept)
    assert not permits(found, "ec2:CreateTags", arn("instance"), **kept)
    assert not permits(found, "ec2:CreateTags", arn("volume"), **ours, **kept)
    for key in ("pytest-dbcluster:expires", RUN_TAG, "team"):
        tags = {**kept, "aws:TagKeys": ["pytest-dbcluster:kept", key]}
        assert not permits(found, "ec2:CreateTags", arn("instance"), **ours, **tags)


@pytest.mark.parametrize(
    ("action", "kind"), [(action, kind) for action, kinds in policy.MADE.items() for kind in kinds]
)
def test_what_is_made_is_born_with_our_tag(action, kind):
    """A request without the tag of a run makes nothing, and the tag is permitted in such a request."""
    found = statements()

    assert permits(found, action, arn(kind), **{f"aws:RequestTag/{RUN_TAG}": "r1"})
    assert not permits(found, action, arn(kind))
    assert permits(found, "ec2:CreateTags", arn(kind), **{"ec2:CreateAction": action.split(":")[1]})


@pytest.mark.parametrize("kind", ["instance", "volume", "security-group", "key-pair"])
def test_nothing_of_others_gets_our_tag(kind):
    """A tag after birth would make a thing of others one that can be ended: it is not permitted."""
    found = statements()

    assert not permits(found, "ec2:CreateTags", arn(kind))
    assert not permits(found, "ec2:CreateTags", arn(kind), **{f"aws:ResourceTag/{RUN_TAG}": "r1"})
    assert not permits(found, "ec2:CreateTags", arn(kind), **{"ec2:CreateAction": "CreateVolume"})


@pytest.mark.parametrize("kind", policy.OURS)
def test_instances_are_launched_with_groups_and_keys_of_ours(kind):
    """A launch into a security group of others, or with their key, is not permitted; nor is opening their group."""
    found = statements()

    assert permits(found, "ec2:RunInstances", arn(kind), **{f"aws:ResourceTag/{RUN_TAG}": "r1"})
    assert not permits(found, "ec2:RunInstances", arn(kind))
    assert not permits(found, "ec2:RunInstances", arn(kind), **{f"aws:RequestTag/{RUN_TAG}": "r1"})
    assert not permits(found, "ec2:AuthorizeSecurityGroupIngress", arn("security-group"))


def test_images_and_subnets_are_those_of_the_account():
    """They have no tag of ours; a group is made in a network of the account."""
    found = statements()

    assert permits(found, "ec2:RunInstances", "arn:aws:ec2:eu-central-1::image/ami-1")
    assert permits(found, "ec2:RunInstances", arn("subnet"))
    assert permits(found, "ec2:CreateSecurityGroup", arn("vpc"))


def test_parameters_are_the_public_ones():
    """No parameter of the account can be read: they may be secrets."""
    public = "arn:aws:ssm:eu-central-1::parameter/aws/service/debian/release/12/latest/amd64"

    assert permits(statements(), "ssm:GetParameter", public)
    assert not permits(statements(), "ssm:GetParameter", "arn:aws:ssm:eu-central-1:123456789012:parameter/password")


def test_the_only_role_that_can_be_made_is_that_of_spot_instances():
    """The service must be spot, and the role its own."""
    role = f"arn:aws:iam::123456789012:{policy.SPOT_ROLE}"
    spot, other = ({"iam:AWSServiceName": f"{name}.amazonaws.com"} for name in ("spot", "lambda"))

    assert permits(statements(), "iam:CreateServiceLinkedRole", role, **spot)
    assert not permits(statements(), "iam:CreateServiceLinkedRole", role, **other)
    assert not permits(statements(), "iam:CreateServiceLinkedRole", "arn:aws:iam::123456789012:role/admin", **spot)


def test_regions_limit_where_something_is_made_or_ended():
    """In another region nothing is permitted but reading."""
    found = statements(regions=["eu-central-1", "eu-west-1"])
    tag = {f"aws:RequestTag/{RUN_TAG}": "r1"}

    assert permits(found, "ec2:RunInstances", arn("instance", "eu-west-1"), **tag)
    assert not permits(found, "ec2:RunInstances", arn("instance", "us-east-1"), **tag)


def test_a_region_of_a_government_is_in_another_partition():
    """Names of resources begin with the partition of the region."""
    resources = [text for one in statements(regions=["us-gov-west-1"]) for text in texts(one["Resource"])]

    assert {text.split(":")[1] for text in resources if text != "*"} == {"aws-us-gov"}


def test_a_wrong_region_is_refused():
    """A wildcard is no region."""
    with pytest.raises(ConfigError, match=r"'\*' is not a region of AWS"):
        policy.document(["*"])


def test_a_reaper_can_launch_nothing():
    """Its policy has what lists and what ends, all of it actions that a run has too."""
    found = actions(statements(reaper=True))

    assert found == policy.REAPER_READS | set(policy.ENDED)
    assert policy.REAPER_READS <= OPERATIONS


def test_a_reaper_may_do_what_it_does():
    """Its policy has the requests of the reaper, by which it lists and ends each kind of thing, and no other."""
    ends = {f"ec2:{kind.delete}" for kind in reaper.KINDS if kind.delete}
    ends |= {"ec2:TerminateInstances", "ec2:CancelSpotInstanceRequests"}

    assert {f"ec2:{kind.describe}" for kind in reaper.KINDS} == policy.REAPER_READS
    assert ends == set(policy.ENDED)


def test_the_policy_is_short_enough_for_aws():
    """A policy of two regions fits into a managed policy."""
    text = json.dumps(policy.document(["eu-central-1", "us-gov-west-1"]))

    assert len("".join(text.split())) <= MOST_CHARACTERS


@pytest.fixture
def moto():
    """AWS as moto plays it; only tests that need it import it, because it is large."""
    import moto.core

    with moto.mock_aws():
        yield moto


@pytest.mark.parametrize("of_reaper", [False, True])
def test_a_user_with_the_policy_may_do_that_and_no_more(moto, of_reaper, monkeypatch):
    """Moto takes the policy as AWS's IAM does: instances can be listed, and not stopped."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "not a secret of anybody")
    iam = boto3.client("iam", region_name="us-east-1")
    iam.create_user(UserName="ci")
    document = json.dumps(policy.document(reaper=of_reaper))
    made = iam.create_policy(PolicyName="dbcluster", PolicyDocument=document)["Policy"]
    iam.attach_user_policy(UserName="ci", PolicyArn=made["Arn"])
    key = iam.create_access_key(UserName="ci")["AccessKey"]
    keys = {"aws_access_key_id": key["AccessKeyId"], "aws_secret_access_key": key["SecretAccessKey"]}
    ec2 = boto3.client("ec2", region_name="eu-central-1", **keys)

    @moto.core.set_initial_no_auth_action_count(0)
    def ask():
        assert ec2.describe_instances()["Reservations"] == []
        with pytest.raises(ec2.exceptions.ClientError, match="not authorized to perform: ec2:StopInstances"):
            ec2.stop_instances(InstanceIds=["i-0123456789abcdef0"])

    ask()
