"""The minimal IAM policies of a run and of a reaper: ``dbcluster ec2 policy [--reaper]``.

A policy permits the requests of ``aws.OPERATIONS``, and what AWS needs for them: tags of new resources, and the role of
spot instances. It permits to end only resources with the tag of our runs. It permits to make resources only with that
tag, and does not permit to add the tag to others. The only tag that it permits to set later marks our instances as
kept.

Resource types and condition keys: docs.aws.amazon.com/service-authorization/latest/reference/list_amazonec2.html.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pytest_dbcluster.hosts.provisioners.ec2.aws import OPERATIONS
from pytest_dbcluster.hosts.provisioners.ec2.money.prices import check_region
from pytest_dbcluster.hosts.provisioners.ec2.settings import TAG_PREFIX

VERSION = "2012-10-17"  # of the policy language
RUN_TAG, KEPT_TAG = f"{TAG_PREFIX}run", f"{TAG_PREFIX}kept"
# Request -> the types of the resources that it makes, and of the run's resources that it uses.
RUN = "ec2:RunInstances"
MADE = {
    RUN: ("instance", "network-interface", "spot-instances-request", "volume"),
    "ec2:ImportKeyPair": ("key-pair",),
    "ec2:CreateSecurityGroup": ("security-group",),
    "ec2:CreatePlacementGroup": ("placement-group",),
}
OURS = ("key-pair", "placement-group", "security-group")
GIVEN = ("subnet", "vpc")  # resources of the account, without our tag
CHANGED = {"ec2:AuthorizeSecurityGroupIngress": ("security-group",)}
ENDED = {
    "ec2:CancelSpotInstanceRequests": ("spot-instances-request",),
    "ec2:DeleteKeyPair": ("key-pair",),
    "ec2:DeleteNetworkInterface": ("network-interface",),
    "ec2:DeletePlacementGroup": ("placement-group",),
    "ec2:DeleteSecurityGroup": ("security-group",),
    "ec2:DeleteVolume": ("volume",),
    "ec2:TerminateInstances": ("instance",),
}
PARAMETER = "ssm:GetParameter"
TAGS = "ec2:CreateTags"  # needed to make tagged resources, and to mark instances as kept
# Permissions that AWS needs without a request of ours. ``OPERATIONS`` and these are all actions of the policy.
DEPENDENTS = frozenset({TAGS, "iam:CreateServiceLinkedRole"})
SPOT_ROLE = "role/aws-service-role/spot.amazonaws.com/AWSServiceRoleForEC2Spot"
PARTITIONS = (("us-gov-", "aws-us-gov"), ("cn-", "aws-cn"))
# The read requests of a reaper, which launches nothing, measures nothing, and needs no prices.
REAPER_READS = frozenset(
    {
        "ec2:DescribeInstances",
        "ec2:DescribeKeyPairs",
        "ec2:DescribeNetworkInterfaces",
        "ec2:DescribePlacementGroups",
        "ec2:DescribeSecurityGroups",
        "ec2:DescribeSpotInstanceRequests",
        "ec2:DescribeVolumes",
    }
)


def document(regions: Sequence[str] = (), *, reaper: bool = False) -> dict[str, Any]:
    """The policy as a JSON document.

    regions: where it permits to launch and end; empty for all regions. reaper: the policy of a role that only ends what
    runs have left. Raises ConfigError for a wrong name of a region.
    """
    places = [(_partition(check_region(region)), region) for region in regions] or [("aws", "*")]
    statements = [_reads(REAPER_READS if reaper else _read_operations()), *_ends(places)]
    if not reaper:
        statements = [statements[0], _parameter(places), *_launch(places), *statements[1:], _spot_role(places)]
    return {"Version": VERSION, "Statement": statements}


def _read_operations() -> frozenset[str]:
    """The operations that only read and have no resource types."""
    return OPERATIONS - set(MADE) - set(CHANGED) - set(ENDED) - {PARAMETER, TAGS}


def _reads(operations: Iterable[str]) -> dict[str, Any]:
    return {"Sid": "Read", "Effect": "Allow", "Action": sorted(operations), "Resource": "*"}


def _parameter(places: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """The public parameters that name images, from AWS's services and partners."""
    resources = [f"arn:{partition}:ssm:{region}::parameter/aws/service/*" for partition, region in places]
    return {"Sid": "PublicParameters", "Effect": "Allow", "Action": PARAMETER, "Resource": resources}


def _launch(places: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
    """The permissions of a launch: to make resources with our tag, to use others, and to tag new ones."""
    images = [f"arn:{partition}:ec2:{region}::image/*" for partition, region in places]
    kinds = sorted({kind for made in MADE.values() for kind in made})
    born = {"Effect": "Allow", "Condition": _has("aws:RequestTag")}
    rest = sorted(set(MADE) - {RUN})
    return [
        {"Sid": "LaunchWithTag", **born, "Action": RUN, "Resource": _resources(places, MADE[RUN])},
        {"Sid": "MakeWithTag", **born, "Action": rest, "Resource": _resources(places, OURS)},
        {
            "Sid": "LaunchInto",
            "Effect": "Allow",
            "Action": ["ec2:CreateSecurityGroup", RUN],
            "Resource": [*images, *_resources(places, GIVEN)],
        },
        {
            "Sid": "LaunchWithOurs",
            "Effect": "Allow",
            "Action": sorted([*CHANGED, RUN]),
            "Resource": _resources(places, OURS),
            "Condition": _has("aws:ResourceTag"),
        },
        {
            "Sid": "TagAtBirth",
            "Effect": "Allow",
            "Action": TAGS,
            "Resource": _resources(places, kinds),
            "Condition": {"StringEquals": {"ec2:CreateAction": sorted(one.split(":")[1] for one in MADE)}},
        },
        {
            "Sid": "MarkAsKept",
            "Effect": "Allow",
            "Action": TAGS,
            "Resource": _resources(places, ["instance"]),
            "Condition": {
                **_has("aws:ResourceTag"),
                "StringEquals": {f"aws:RequestTag/{KEPT_TAG}": "yes"},
                "ForAllValues:StringEquals": {"aws:TagKeys": [KEPT_TAG]},
            },
        },
    ]


def _ends(places: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
    kinds = sorted({kind for ended in ENDED.values() for kind in ended})
    return [
        {
            "Sid": "EndWithTag",
            "Effect": "Allow",
            "Action": sorted(ENDED),
            "Resource": _resources(places, kinds),
            "Condition": _has("aws:ResourceTag"),
        }
    ]


def _spot_role(places: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """The permission for the role that an account's first spot instance needs."""
    partitions = dict.fromkeys(partition for partition, _ in places)
    return {
        "Sid": "SpotRole",
        "Effect": "Allow",
        "Action": "iam:CreateServiceLinkedRole",
        "Resource": [f"arn:{partition}:iam::*:{SPOT_ROLE}" for partition in partitions],
        "Condition": {"StringEquals": {"iam:AWSServiceName": "spot.amazonaws.com"}},
    }


def _has(key: str) -> dict[str, Any]:
    """The condition that the tag of our runs exists."""
    return {"Null": {f"{key}/{RUN_TAG}": "false"}}


def _resources(places: Sequence[tuple[str, str]], kinds: Iterable[str]) -> list[str]:
    return [f"arn:{partition}:ec2:{region}:*:{kind}/*" for partition, region in places for kind in kinds]


def _partition(region: str) -> str:
    return next((name for prefix, name in PARTITIONS if region.startswith(prefix)), "aws")
