"""Messages on launches that are refused, as users read them."""

from __future__ import annotations

import dataclasses
import io

import botocore.exceptions

from pytest_dbcluster.hosts.provisioners.ec2 import aws, plan, policy, user_data, way
from pytest_dbcluster.hosts.provisioners.ec2.fleet import Instance
from pytest_dbcluster.hosts.provisioners.ec2.hardware import needs
from pytest_dbcluster.hosts.provisioners.ec2.hardware.instance_type import InstanceType
from pytest_dbcluster.hosts.provisioners.ec2.money.cost import Cost, InstanceGroup
from pytest_dbcluster.hosts.provisioners.ec2.money.ledger import LaunchLedger
from pytest_dbcluster.hosts.provisioners.ec2.money.prices import Prices
from pytest_dbcluster.hosts.provisioners.ec2.plan import Subnet
from pytest_dbcluster.hosts.provisioners.ec2.provisioner import Ec2Provisioner
from pytest_dbcluster.hosts.provisioners.ec2.settings import EC2Settings, Volume
from pytest_dbcluster.spec import ClusterSpec
from tests.support import golden
from tests.support.instance_types import all_types, described

SPEC = ClusterSpec("galera", nodes=3)
GP3 = Volume.parse("gp3:50:3000:125")
WRONG = {
    "ttl": "2",
    "zones": ["eu-central-1a", "eu-west-1a"],
    "volume": "gp3:50:100:125",
    "prices": ["r6i.large=free"],
    "tags": ["Name=x"],
    "source": "0.0.0.0/0",
    "jump": "-oProxyCommand=x",
    "written": "8GiB",
}
SUBNET = Subnet("subnet-1", "vpc-1", "eu-central-1a", "euc1-az1", public=True)
INSTANCE = Instance("i-1", "server", "r6i.large", SUBNET, "192.0.2.7", "10.0.0.5", {})


def unmet(spec, volume=GP3):
    """What instances lack for a cluster."""
    types = [InstanceType.of(facts) for facts in all_types().values()]
    return needs.unmet(spec, InstanceType.of(described("r6i.large")), volume, lambda: types)


def requests_refused(account):
    """The errors of a request that AWS refuses, or that does not reach AWS."""
    unsent = {
        "NoCredentials": botocore.exceptions.NoCredentialsError(),
        "NoRegion": botocore.exceptions.NoRegionError(),
        "NoAnswer": botocore.exceptions.EndpointConnectionError(endpoint_url="https://ec2.example"),
    }
    return {
        code: account._connection_error("ec2:RunInstances", unsent[code])
        if code in unsent
        else account._refusal("ec2:RunInstances", {"Error": {"Code": code, "Message": "Words of AWS."}})
        for code in aws.ADVICE
    }


def test_messages_on_launches_that_are_refused(account, tmp_path):
    """They say what was asked, what was seen and what to do next."""
    seen = {f"a request ends with {code}": str(error) for code, error in requests_refused(account).items()}
    seen |= {
        f"{name} is wrong": golden.message_of(EC2Settings.parse, max_cost=1, **{name: text})
        for name, text in WRONG.items()
    }
    group = InstanceGroup("servers", "r6i.large", 4, public=False)
    cost = Cost.of([group], region="eu-central-1", prices=Prices({"r6i.large": 0.152}), ttl=10800.0)
    seen["there is no cap"] = cost.refusal(None)
    seen["the cap is too low"] = cost.refusal(1.0)
    seen["the cap is used"] = cost.refusal(2.0, 405_000)
    (tmp_path / "ledger").write_text("{")
    seen["the ledger is damaged"] = golden.message_of(LaunchLedger(tmp_path / "ledger", 1.0).reserve, cost)
    seen["no cap is given"] = golden.message_of(Ec2Provisioner)
    seen["a region is wrong"] = golden.message_of(policy.document, ["*"])
    seen["a host is too small"] = unmet(SPEC.with_needs(cores=4, memory="32G"))
    seen["a type has no local disk"] = unmet(SPEC.with_storage("nvme"))
    seen["a volume is too slow"] = unmet(SPEC.with_needs(iops=5000))
    seen["delays are not offered"] = unmet(SPEC.with_needs(rtt=0.01))
    seen["writes cannot be limited"] = golden.message_of(needs.enforce, lambda _: "", 100, "/var/tmp", "server1")
    jump = EC2Settings.parse(max_cost=1, jump="admin@bastion")
    seen["the address is that of a jump host"] = golden.message_of(plan.our_address, jump)
    page = EC2Settings.parse(max_cost=1)
    seen["the address is unknown"] = golden.message_of(plan.our_address, page, lambda *_, **__: io.BytesIO(b"<html>"))
    seen["an instance is silent"] = way.unreachable("server1", INSTANCE, "", "192.0.2.0/24", "timed out")
    seen["a jump host is silent"] = way.unreachable("server1", INSTANCE, "bastion", "192.0.2.0/24", "timed out")
    hidden = dataclasses.replace(INSTANCE, subnet=dataclasses.replace(SUBNET, public=False))
    seen["a subnet is private"] = way.unreachable("server1", hidden, "", "192.0.2.0/24", "timed out")
    seen["an instance is not prepared"] = user_data.problem("failed mkfs.ext4: no space\n")

    golden.compare("ec2_refusals", seen, {tmp_path: "TMP"})
