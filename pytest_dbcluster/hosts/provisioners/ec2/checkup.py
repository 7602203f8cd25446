"""Checks of an account for ``dbcluster doctor``: permissions, quota, prices, clock. It launches nothing."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable

from pytest_dbcluster.errors import ConfigError, DBClusterError
from pytest_dbcluster.formatting import duration, quantity
from pytest_dbcluster.hosts.provisioners.ec2.aws import SKEW_SECONDS, Account, AwsError
from pytest_dbcluster.hosts.provisioners.ec2.fleet import Fleet, Keys
from pytest_dbcluster.hosts.provisioners.ec2.money.prices import Prices
from pytest_dbcluster.hosts.provisioners.ec2.money.spending import cost_of
from pytest_dbcluster.hosts.provisioners.ec2.plan import Plan
from pytest_dbcluster.hosts.provisioners.ec2.reaper import Reaper
from pytest_dbcluster.hosts.provisioners.ec2.settings import EC2Settings
from pytest_dbcluster.hosts.provisioners.ec2.user_data import HostKey

SERVERS = 3  # of the planned cluster
ANYWHERE = "192.0.2.0/24"  # a network for examples (RFC 5737), because nothing is launched
# docs.aws.amazon.com/ec2/latest/instancetypes/ec2-instance-quotas.html: vCPUs of running instances of these families.
STANDARD = "acdhimrtz"
QUOTAS = {False: "L-1216C47A", True: "L-34B43A08"}  # on demand, spot
LEFT_OUT = ("NetworkInterfaces", "KeyName", "Placement")  # of the tried request, because they do not exist yet
UNKNOWN = "not known"


@dataclasses.dataclass(frozen=True)
class CheckupLine:
    """The result of one check."""

    name: str
    """What is checked, such as "quota"."""

    value: str
    """What the check found."""

    problem: str = ""
    """What cannot be done because of it; empty if there is no problem."""


def findings(account: Account, settings: EC2Settings) -> list[CheckupLine]:
    """Check the account for a cluster of three servers and a load host with these settings.

    If the credentials are not valid, it makes no further requests.
    """
    source = settings.source or ANYWHERE
    settings = dataclasses.replace(settings, source=source)
    key = HostKey("", "ssh-ed25519 AAAA")
    fleet = Fleet(account, settings, "doctor", Keys(key, key))
    try:
        plan = fleet.plan(SERVERS, load=True, expires=time.time() + settings.ttl)
    except DBClusterError as error:
        return [CheckupLine("account", f"{account.region}: no launch can be planned", str(error)), clock(account)]
    checks: tuple[Callable[[], CheckupLine], ...] = (
        lambda: permission(fleet, plan),
        lambda: quota(account, settings, plan),
        lambda: prices(account, settings, plan),
        lambda: clock(account),
        lambda: check_leftovers(account),
    )
    parts = ", ".join(f"{part.count} x {part.type} in {part.subnet.zone}" for part in plan.parts)
    image = f"{plan.image.id} {plan.image.name}".strip()
    return [
        CheckupLine("account", f"{account.region}: {parts}"),
        CheckupLine("image", image),
        *(check() for check in checks),
    ]


def permission(fleet: Fleet, plan: Plan) -> CheckupLine:
    """Whether the credentials permit a launch: a request with DryRun, which launches nothing."""
    request = {key: value for key, value in fleet.request(plan, plan.parts[0]).items() if key not in LEFT_OUT}
    try:
        fleet.account.permits("RunInstances", **request, SubnetId=plan.parts[0].subnet.id)
    except AwsError as error:
        return CheckupLine("credentials", "they do not permit a launch", str(error))
    return CheckupLine("credentials", "they permit a launch (tried with DryRun)")


def quota(account: Account, settings: EC2Settings, plan: Plan) -> CheckupLine:
    """The account's quota of vCPUs, and the need of three servers and a load host."""
    needed = sum(part.count * plan.types[part.type]["VCpuInfo"]["DefaultVCpus"] for part in plan.parts)
    if any(part.type[0] not in STANDARD for part in plan.parts):
        return CheckupLine("quota", f"{UNKNOWN}: these types have a separate quota; {needed} vCPUs are needed")
    try:
        answer = account.call("servicequotas", "GetServiceQuota", ServiceCode="ec2", QuotaCode=QUOTAS[settings.spot])
        most = float(answer["Quota"]["Value"])
    except (AwsError, KeyError) as error:
        return CheckupLine("quota", f"{UNKNOWN}: {error}; {needed} vCPUs are needed")
    kind = "spot" if settings.spot else "on demand"
    few = f"three servers and a load host need {needed}: ask AWS for more (Service Quotas, EC2), or use smaller types"
    return CheckupLine("quota", f"{most:g} vCPUs {kind}, {needed} are needed", few if needed > most else "")


def prices(account: Account, settings: EC2Settings, plan: Plan) -> CheckupLine:
    """The maximum cost of a launch, with the sources of its prices and their age."""
    try:
        cost = cost_of(plan, settings, account.region, Prices(settings.prices))
    except ConfigError as error:
        return CheckupLine("prices", "some are unknown", str(error))
    return CheckupLine("prices", cost.line.removeprefix("ec2: "))


def clock(account: Account) -> CheckupLine:
    """The difference between our clock and AWS's at its last answer."""
    if account.ahead is None:
        return CheckupLine("clock", f"{UNKNOWN}: AWS has not answered")
    value = f"{abs(account.ahead):.0f} s {'ahead of' if account.ahead > 0 else 'behind'} that of AWS"
    off = abs(account.ahead) > SKEW_SECONDS
    return CheckupLine(
        "clock", value, f"AWS refuses requests: set the clock, by {duration(abs(account.ahead))}" if off else ""
    )


def check_leftovers(account: Account) -> CheckupLine:
    """The resources of runs in the account."""
    try:
        found = Reaper(account).look()
    except AwsError as error:
        return CheckupLine("runs", UNKNOWN, str(error))
    runs = {one.run_id for one in found}
    expired = any(not one.foreign and one.expires < time.time() for one in found)
    value = f"{quantity(len(runs), 'run')}, {quantity(len(found), 'thing')} (dbcluster ps --provisioner ec2)"
    problem = "some have outlived their time to live: dbcluster reap --provisioner ec2 --expired" if expired else ""
    return CheckupLine("runs", value if found else "no resources are left", problem)
