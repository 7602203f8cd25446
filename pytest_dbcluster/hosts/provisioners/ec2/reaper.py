"""Reaper: finds resources of runs in an account by their tags, and ends them: ``dbcluster ps``, ``down``, ``reap``.

It needs no local record. A resource is ours only if it has every tag of a launch, and the name from the run's id. If it
has only some of these, such as a copied tag, we name it and do not end it.
"""

from __future__ import annotations

import calendar
import dataclasses
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.formatting import Report, printable, quantity
from pytest_dbcluster.hosts import runs
from pytest_dbcluster.hosts.provisioners.ec2.aws import CREDENTIALS, Account, AwsError
from pytest_dbcluster.hosts.provisioners.ec2.tags import (
    EXPIRES_TAG,
    KEPT_TAG,
    LAUNCH_TAG,
    OWNER_TAG,
    RUN_TAG,
    TIME,
    name,
    pid_namespace,
    user,
)
from pytest_dbcluster.system import processes

SECONDS = 300.0  # timeout for the end of instances, and of resources that AWS keeps until then
POLL_SECONDS = 3.0
LIVE_STATES = ("pending", "running", "stopping", "stopped", "shutting-down")
GONE = ("NotFound", "InvalidKeyPair", "InvalidPlacementGroup.Unknown")  # in error codes for missing resources
HELD: tuple[str, ...] = (
    "DependencyViolation",
    "VolumeInUse",
    "InvalidPlacementGroup.InUse",
    "InvalidNetworkInterface.InUse",
)
HELD += ("InvalidGroup.InUse", "InvalidParameterValue")  # the last one: an interface is being detached


WAITS = "AWS has not ended it yet, or keeps it until its instances have ended"


@dataclasses.dataclass(frozen=True)
class ResourceKind:
    """A kind of resource."""

    noun: str
    """The name of the kind in messages, such as "volume"."""

    describe: str
    """The request that lists resources of this kind."""

    key: str
    """The key of the resources in the answer."""

    field: str
    """The field with the id of a resource."""

    delete: str = ""
    """The request that ends a resource; empty for instances and spot requests, which we end together."""

    filters: Mapping[str, Sequence[str]] = dataclasses.field(default_factory=dict)
    """Additional filters of the request."""

    named: str = ""
    """Another field with the run's name; empty if there is no such field."""


INSTANCES = ResourceKind(
    "instance", "DescribeInstances", "Reservations", "InstanceId", "", {"instance-state-name": LIVE_STATES}, "KeyName"
)
SPOT = ResourceKind(
    "spot request",
    "DescribeSpotInstanceRequests",
    "SpotInstanceRequests",
    "SpotInstanceRequestId",
    "",
    {"state": ("open", "active")},
)
# In the order in which we end them, after the instances.
REST = (
    ResourceKind("network interface", "DescribeNetworkInterfaces", "NetworkInterfaces", "NetworkInterfaceId",
         "DeleteNetworkInterface"),
    ResourceKind("volume", "DescribeVolumes", "Volumes", "VolumeId", "DeleteVolume"),
    ResourceKind("security group", "DescribeSecurityGroups", "SecurityGroups", "GroupId", "DeleteSecurityGroup",
         named="GroupName"),
    ResourceKind("placement group", "DescribePlacementGroups", "PlacementGroups", "GroupName", "DeletePlacementGroup",
         named="GroupName"),
    ResourceKind("key pair", "DescribeKeyPairs", "KeyPairs", "KeyName", "DeleteKeyPair", named="KeyName"),
)  # fmt: skip
KINDS = (SPOT, INSTANCES, *REST)


@dataclasses.dataclass(frozen=True)
class Thing:
    """One resource with a tag of a run."""

    kind: ResourceKind
    """The kind of the resource."""

    id: str
    """AWS's id of the resource."""

    run_id: str
    """The id of the run."""

    owner: str
    """The process that launched it, as the tag names it: ``USER@CONTROLLER/PROCESS/START/NAMESPACE``."""

    expires: float
    """When it expires, in seconds since 1970."""

    launch: str
    """The number of its launch, as text."""

    foreign: str
    """Why it is not ours, although it has the tag; empty if it is ours."""

    facts: Mapping[str, Any] = dataclasses.field(repr=False, compare=False)
    """AWS's description of the resource."""

    def __str__(self) -> str:
        return f"{self.kind.noun} {self.id}"

    @property
    def kept(self) -> bool:
        """Whether it outlives the process that launched it, until it expires."""
        return any(one["Key"] == KEPT_TAG for one in self.facts.get("Tags") or ())

    @property
    def alive(self) -> bool | None:
        """Whether the process that launched it is alive; None if that was on another machine, or before a boot."""
        who, *process = self.owner.split("/")
        if who != user() or process[2:] != [pid_namespace()] or not all(number.isdecimal() for number in process[:2]):
            return None
        return processes.is_running(int(process[0]), 0.0, int(process[1]))


@dataclasses.dataclass
class Reaped:
    """What the reaper ended, and what is left."""

    done: list[str] = dataclasses.field(default_factory=list)
    """A clause for each ended resource."""

    left: list[str] = dataclasses.field(default_factory=list)
    """A clause with the reason for each resource that is left."""


class Reaper:
    """Finds and ends resources of runs in an account. progress: prints lines about slow steps."""

    def __init__(self, account: Account, progress: Report = lambda _: None) -> None:
        self._account = account
        self._progress = progress

    @property
    def region(self) -> str:
        """The region that it searches."""
        return self._account.region

    def look(self, run_id: str = "", launch: str = "") -> list[Thing]:
        """All resources with a tag of a run, or of this run. Raises AwsError."""
        found = [thing for kind in KINDS for thing in self._look(kind, run_id)]
        return [thing for thing in found if not launch or thing.launch == launch]

    def _look(self, kind: ResourceKind, run_id: str) -> list[Thing]:
        tag = {f"tag:{RUN_TAG}": (run_id,)} if run_id else {"tag-key": (RUN_TAG,)}
        filters = [{"Name": key, "Values": list(values)} for key, values in {**kind.filters, **tag}.items()]
        found: Iterable[Mapping[str, Any]] = self._account.all(kind.describe, kind.key, Filters=filters)
        if kind is INSTANCES:
            found = [one for each in found for one in each["Instances"]]
        return [thing(kind, one) for one in found]

    def end(self, run_id: str, launch: str = "") -> Reaped:
        """End a run of any user. launch: end only what this launch made. Raises ConfigError and AwsError."""
        if not runs.RUN_ID.fullmatch(run_id):
            raise ConfigError(f"{printable(run_id)!r} is not an id of a run; dbcluster ps --provisioner ec2 lists them")
        return self._end(lambda: self.look(run_id, launch))

    def end_expired(self) -> Reaped:
        """End everything whose time to live is over, of any user. Raises AwsError."""
        return self._end(lambda: [one for one in self.look() if one.foreign or one.expires < time.time()])

    def dead(self) -> Reaped:
        """End what has expired, and the runs of this user whose process here has ended. Raises AwsError.

        A run with a kept instance is not dead.
        """

        def look() -> list[Thing]:
            found = self.look()
            kept = {one.run_id for one in found if one.kept and not one.foreign}
            return [
                one
                for one in found
                if one.foreign or one.expires < time.time() or (one.alive is False and one.run_id not in kept)
            ]

        return self._end(look)

    def unknown(self) -> dict[str, float]:
        """The runs of this user of which only the time to live is known: by id, when they expire. No kept ones.

        Another machine has begun them, or this one before its last boot. Raises AwsError.
        """
        found = [one for one in self.look() if not one.foreign]
        kept = {one.run_id for one in found if one.kept}
        mine = [one for one in found if one.alive is None and one.owner.partition("/")[0] == user()]
        return {one.run_id: one.expires for one in mine if one.run_id not in kept}

    def _end(self, look: Callable[[], Sequence[Thing]]) -> Reaped:
        """End what ``look`` finds. Repeat it until AWS has released everything that its instances used."""
        result, ended = Reaped(), set[str]()
        limit, told = time.monotonic() + SECONDS, False
        while True:
            found = look()
            ours = [one for one in found if not one.foreign]
            problems = self._once(ours, result, ended)
            if all(problems.get(str(one), WAITS) != WAITS for one in ours) or time.monotonic() > limit:
                break
            if not told and (instances := sum(one.kind is INSTANCES for one in ours)):
                told = True
                self._progress(f"waiting for the end of {quantity(instances, 'instance')}")
            time.sleep(POLL_SECONDS)
        result.left += [f"{one}: {problems.get(str(one), WAITS)}" for one in ours]
        result.left += [
            f"{one} has the tag of run {one.run_id}, but is not ours: {one.foreign}" for one in found if one.foreign
        ]
        return result

    def _once(self, things: Sequence[Thing], result: Reaped, ended: set[str]) -> dict[str, str]:
        """Request the end of these resources. Returns the remaining ones, as text -> why."""
        problems: dict[str, str] = {}
        for kind, operation, key in (
            (SPOT, "CancelSpotInstanceRequests", "SpotInstanceRequestIds"),
            (INSTANCES, "TerminateInstances", "InstanceIds"),
        ):
            fresh = [one for one in things if one.kind is kind and str(one) not in ended]
            if fresh and (why := self._request(operation, **{key: [one.id for one in fresh]})) is None:
                ended |= {str(one) for one in fresh}
                result.done += [f"ended {one}" for one in fresh]
            elif fresh:
                problems |= dict.fromkeys(map(str, fresh), why or "")
        waiting = any(one.kind is INSTANCES for one in things)
        for kind in REST:
            for one in (one for one in things if one.kind is kind):
                if waiting and kind.noun != "key pair":  # it ends with its instance, or its instance still uses it
                    continue
                why = self._request(kind.delete, **{kind.field: one.id})
                if why is None and str(one) not in ended:
                    ended.add(str(one))
                    result.done.append(f"removed {one}")
                elif why is not None:
                    problems[str(one)] = why
        return problems

    def _request(self, operation: str, **request: Any) -> str | None:
        """None if AWS has done it, or if the resource is gone; otherwise why not. Raises AwsError for credentials."""
        try:
            self._account.call("ec2", operation, **request)
        except AwsError as error:
            if any(code in error.code for code in GONE):
                return None
            if error.code in CREDENTIALS or error.code in ("NoAnswer", "Clock"):
                raise
            return WAITS if error.code in HELD else str(error)
        return None


def thing(kind: ResourceKind, facts: Mapping[str, Any]) -> Thing:
    """A resource from AWS's description."""
    tags = {one["Key"]: one["Value"] for one in facts.get("Tags") or facts.get("TagSet") or ()}
    run_id, owner, expires = (tags.get(key, "") for key in (RUN_TAG, OWNER_TAG, EXPIRES_TAG))
    ends, foreign = 0.0, ""
    try:
        ends = float(calendar.timegm(time.strptime(expires, TIME)))
    except ValueError:
        foreign = f"the tag {EXPIRES_TAG} is {expires!r}" if expires else f"it has no tag {EXPIRES_TAG}"
    if not owner:
        foreign = f"it has no tag {OWNER_TAG}"
    elif not runs.RUN_ID.fullmatch(run_id):
        foreign = "that is not an id of a run"
    else:
        names = [tags.get("Name", ""), *([facts.get(kind.named, "")] if kind.named else [])]
        if wrong := next((one for one in names if one != name(run_id)), None):
            foreign = f"its name is {wrong!r}, not {name(run_id)!r}"
        elif wrong == "":
            foreign = f"it has no name {name(run_id)!r}"
    return Thing(
        kind,
        facts[kind.field],
        printable(run_id),
        printable(owner),
        ends,
        tags.get(LAUNCH_TAG, ""),
        printable(foreign),
        facts,
    )
