"""The least IAM policy of a run, and that of a reaper: ``dbcluster ec2 policy [--reaper]``.

It permits each request of ``aws.OPERATIONS`` once, and what AWS asks for beside them: tags at the birth of what a
launch makes, and the role of spot instances. What ends something is permitted for what has the tag of our runs alone,
and what makes something makes it with that tag, so the tag of what others have cannot be set later. The one tag that
can be set later says of our instances that they are kept.
Resource types and condition keys: docs.aws.amazon.com/service-authorization/latest/reference/list_amazonec2.html.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pytest_dbcluster.hosts.provisioners.ec2.aws import OPERATIONS
from pytest_dbcluster.hosts.provisioners.ec2.money.prices import checked_region
from pytest_dbcluster.hosts.provisioners.ec2.settings import TAG_PREFIX

VERSION = "2012-10-17"  # of the language of policies
RUN_TAG, KEPT_TAG = f"{TAG_PREFIX}run", f"{TAG_PREFIX}kept"
# What a request makes, and what it uses that a run has made: types of resources.
RUN = "ec2:RunInstances"
MADE = {
    RUN: ("instance", "network-interface", "spot-instances-request", "volume"),
    "ec2:ImportKeyPair": ("key-pair",),
    "ec2:CreateSecurityGroup": ("security-group",),
    "ec2:CreatePlacementGroup": ("placement-group",),
}
OURS = ("key-pair", "placement-group", "security-group")
GIVEN = ("subnet", "vpc")  # of the account, without our tag
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
TAGS = "ec2:CreateTags"  # asked for by AWS at birth, and by us for instances that are kept
# What nobody asks for by a request, and AWS needs. ``OPERATIONS`` and these are all actions of the policy.
DEPENDENTS = frozenset({TAGS, "iam:CreateServiceLinkedRole"})
SPOT_ROLE = "role/aws-service-role/spot.amazonaws.com/AWSServiceRoleForEC2Spot"
PARTITIONS = (("us-gov-", "aws-us-gov"), ("cn-", "aws-cn"))
# What a reaper reads; it launches nothing, measures nothing, and needs no prices.
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

    regions: it permits launches and ends there alone; without one everywhere. reaper: the policy of a role that ends
    what runs have left, and launches nothing. Raises ConfigError for a wrong name of a region.
    """
    places = [(_partition(checked_region(region)), region) for region in regions] or [("aws", "*")]
    statements = [_reads(REAPER_READS if reaper else _reading()), *_ends(places)]
    if not reaper:
        statements = [statements[0], _parameter(places), *_launch(places), *statements[1:], _spot_role(places)]
    return {"Version": VERSION, "Statement": statements}


def _reading() -> frozenset[str]:
    """The operations that only read, and have no resources of their own."""
    return OPERATIONS - set(MADE) - set(CHANGED) - set(ENDED) - {PARAMETER, TAGS}


def _reads(operations: Iterable[str]) -> dict[str, Any]:
    return {"Sid": "Read", "Effect": "Allow", "Action": sorted(operations), "Resource": "*"}


def _parameter(places: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """The public parameters that name images, which are those of AWS's own services and partners."""
    resources = [f"arn:{partition}:ssm:{region}::parameter/aws/service/*" for partition, region in places]
    return {"Sid": "PublicParameters", "Effect": "Allow", "Action": PARAMETER, "Resource": resources}


def _launch(places: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
    """What a launch makes, with our tag; what it uses; and the tags at birth."""
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
    """The role that the first spot instance of an account needs."""
    partitions = dict.fromkeys(partition for partition, _ in places)
    return {
        "Sid": "SpotRole",
        "Effect": "Allow",
        "Action": "iam:CreateServiceLinkedRole",
        "Resource": [f"arn:{partition}:iam::*:{SPOT_ROLE}" for partition in partitions],
        "Condition": {"StringEquals": {"iam:AWSServiceName": "spot.amazonaws.com"}},
    }


def _has(key: str) -> dict[str, Any]:
    """The condition that the tag of our runs is there."""
    return {"Null": {f"{key}/{RUN_TAG}": "false"}}


def _resources(places: Sequence[tuple[str, str]], kinds: Iterable[str]) -> list[str]:
    return [f"arn:{partition}:ec2:{region}:*:{kind}/*" for partition, region in places for kind in kinds]


def _partition(region: str) -> str:
    return next((name for prefix, name in PARTITIONS if region.startswith(prefix)), "aws")
