"""The fleet: what a launch asks of AWS."""

from __future__ import annotations

import base64
import json
import time

import pytest

from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.hosts.provisioners.ec2.aws import Account
from pytest_dbcluster.hosts.provisioners.ec2.fleet import Fleet, Keys
from pytest_dbcluster.hosts.provisioners.ec2.settings import EC2Settings
from pytest_dbcluster.hosts.provisioners.ec2.tags import user
from pytest_dbcluster.hosts.provisioners.ec2.user_data import HostKey

RUN = "0a1b2c3d"
KEYS = Keys(HostKey.new(), HostKey.new())
FROM = "192.0.2.17/32"


def fleet(run=RUN, **options):
    """A run that may launch by these options."""
    return Fleet(Account(), EC2Settings.parse(max_cost=5, source=FROM, **options), run, KEYS)


def launched(of, servers=2, load=True, expires=None):
    """The instances of a launch."""
    return of.launch(of.plan(servers, load=load, expires=expires or time.time() + 7200))


def tags(thing):
    """The tags of a thing of moto."""
    return {one["key"]: one["value"] for one in thing.get_tags()}


def test_servers_and_load_host_are_launched_with_all_that_belongs_to_them(aws):
    """In one zone, one placement group, one security group; servers come first."""
    found = launched(fleet())

    assert [one.role for one in found] == ["server", "server", "load"]
    assert {one.subnet.zone for one in found} == {"eu-central-1a"}
    assert aws.left() == {
        "instances": 3,
        "volumes": 5,
        "interfaces": 3,
        "keys": 1,
        "groups": 1,
        "placement groups": 1,
    }
    assert {one.placement.group_name for one in aws.instances()} == {"dbcluster-0a1b2c3d"}


def test_everything_is_born_with_its_tags(aws):
    """Nothing is tagged later: a run that is killed in between leaves nothing without them."""
    launched(fleet(tags=["team=db"]), expires=1_800_000_000)

    backend = aws.backend
    (group,) = [one for groups in backend.groups.values() for one in groups.values() if one.name != "default"]
    born = [*aws.instances(), *backend.volumes.values(), *backend.enis.values(), *backend.key_pairs.values(), group]
    (together,) = aws._groups.values()
    found = [tags(one) for one in born] + [{one["Key"]: one["Value"] for one in together["Tags"]}]
    assert len(found) == 3 + 5 + 3 + 1 + 1 + 1
    for one in found:
        assert one["pytest-dbcluster:run"] == RUN
        assert one["pytest-dbcluster:owner"].startswith(f"{user()}/")
        assert one["pytest-dbcluster:expires"] == "2027-01-15T08:00:00Z"
        assert one["Name"] == "dbcluster-0a1b2c3d"
        assert one["team"] == "db"
    assert "ec2:CreateTags" not in aws.requests


def test_a_request_launches_all_of_its_instances_or_none(aws):
    """And an instance is safe from its first moment: it ends when it shuts down, with all its volumes."""
    launched(fleet(volume="gp3:100:4000:250"), servers=3)

    assert [(one["MinCount"], one["MaxCount"]) for one in aws.runs] == [(3, 3), (1, 1)]
    for one in aws.runs:
        assert one["InstanceInitiatedShutdownBehavior"] == "terminate"
        assert one["MetadataOptions"] == {
            "HttpTokens": "required",
            "HttpPutResponseHopLimit": 1,
            "HttpEndpoint": "enabled",
        }
        assert all(each["Ebs"]["DeleteOnTermination"] for each in one["BlockDeviceMappings"])
        assert all(each["DeleteOnTermination"] for each in one["NetworkInterfaces"])
        assert "CreditSpecification" not in one
    servers, load = ([each["Ebs"] for each in one["BlockDeviceMappings"]] for one in aws.runs)
    assert servers[1] == {
        "VolumeType": "gp3",
        "VolumeSize": 100,
        "Iops": 4000,
        "Throughput": 250,
        "DeleteOnTermination": True,
    }
    assert len(load) == 1


def test_user_data_have_the_keys_of_the_run_alone(aws):
    """Every program of an instance can read them."""
    launched(fleet())
    documents = [json.loads(base64.b64decode(one["UserData"]).decode().partition("\n")[2]) for one in aws.runs]

    for one in documents:
        assert one["ssh_keys"]["ed25519_public"] == KEYS.host.public
        assert one["ssh_authorized_keys"] == [KEYS.user.public]
        assert KEYS.user.private not in json.dumps(one)


def test_the_group_lets_in_ssh_from_us_and_everything_from_itself(aws):
    """Nothing else reaches an instance."""
    launched(fleet())
    ours = [{"Name": "group-name", "Values": ["dbcluster-0a1b2c3d"]}]
    (group,) = Account().all("DescribeSecurityGroups", "SecurityGroups", Filters=ours)
    rules = [
        (
            one["IpProtocol"],
            one.get("FromPort"),
            [each["CidrIp"] for each in one["IpRanges"]],
            [each["GroupId"] for each in one["UserIdGroupPairs"]],
        )
        for one in group["IpPermissions"]
    ]

    assert sorted(rules, key=str) == [("-1", None, [], [group["GroupId"]]), ("tcp", 22, [FROM], [])]


def test_an_answer_that_is_lost_launches_nothing_twice(aws):
    """The request is repeated with its token."""
    aws.refuse("RunInstances", "lost", done=True)
    launched(fleet(), servers=3)

    assert aws.requests.count("ec2:RunInstances") == 3
    assert aws.left()["instances"] == 4


def test_each_launch_and_each_part_has_a_token_of_its_own(aws):
    """Otherwise AWS would take the second launch of a run for a repetition of the first."""
    run = fleet()
    launched(run, servers=1)
    launched(run, servers=1, load=False)

    assert len({one["ClientToken"] for one in aws.runs}) == 3
    assert len(run.instances) == 3


def test_a_later_launch_is_in_the_zone_of_the_first(aws):
    """And in its group, with the same key."""
    run = fleet(zones=["eu-central-1b"])
    launched(run, servers=1)
    launched(run, servers=2, load=False)

    assert {one.subnet.zone for one in run.instances} == {"eu-central-1b"}
    assert aws.left()["groups"] == aws.left()["keys"] == aws.left()["placement groups"] == 1


def test_servers_are_divided_between_zones(aws):
    """In turns; the load host is in the first zone, and there is no placement group, which is of one zone."""
    found = launched(fleet(zones=["eu-central-1b", "eu-central-1a"]), servers=3)

    assert [one.subnet.zone[-1] for one in found] == ["b", "b", "a", "b"]
    assert "placement groups" not in aws.left()


def test_burstable_types_have_no_cluster_placement_group(aws):
    """AWS refuses it for them; their credits are unlimited, as the most that they cost is counted."""
    launched(fleet(type="t3.medium"))

    assert "placement groups" not in aws.left()
    assert {one["CreditSpecification"]["CpuCredits"] for one in aws.runs} == {"unlimited"}


def test_spot_instances_are_asked_for_once_and_end_when_aws_takes_them(aws):
    """Their requests have our tags too."""
    launched(fleet(spot=True))

    assert aws.left()["spot requests"] == 3
    for one in aws.runs:
        assert one["InstanceMarketOptions"] == {
            "MarketType": "spot",
            "SpotOptions": {"SpotInstanceType": "one-time", "InstanceInterruptionBehavior": "terminate"},
        }
        assert "spot-instances-request" in [each["ResourceType"] for each in one["TagSpecifications"]]


def test_a_disk_of_the_instance_itself_needs_no_volume(aws):
    """The user data name it."""
    launched(fleet(type="m5d.xlarge", volume="nvme"), servers=1)

    assert [len(one["BlockDeviceMappings"]) for one in aws.runs] == [1, 1]
    assert "Amazon_EC2_NVMe_Instance_Storage" in base64.b64decode(aws.runs[0]["UserData"]).decode()


def test_private_subnets_give_no_public_address(aws):
    """Ssh reaches the instances at their private one, through the host of --db-ec2-jump."""
    found = launched(fleet(jump="admin@bastion.example"))

    assert [one["NetworkInterfaces"][0]["AssociatePublicIpAddress"] for one in aws.runs] == [False, False]
    assert [one.address for one in found] == [one.private for one in found]


def test_an_instance_that_does_not_start_is_told_with_the_reason(aws):
    """AWS may accept a request, and end the instance before it runs."""
    run = fleet()
    plan = run.plan(1, load=False, expires=time.time() + 7200)
    aws.held = lambda operation: (
        [aws.end(one, "Client.VolumeLimitExceeded", "Volume limit exceeded") for one in aws.instances()]
        if operation == "DescribeInstances"
        else None
    )
    with pytest.raises(ProvisionError, match=r"instance i-\w+, r6i.large, did not start: Volume limit exceeded"):
        run.launch(plan)
