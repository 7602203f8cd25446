"""Reaper: what runs have in an account, found by its tags alone, and its end: ``dbcluster ps``, ``down``, ``reap``.

No record of ours is needed. Only what has all that a launch gives is ours: every tag, and the name that follows from
the run's id. What has a part of it, such as a tag that somebody copied, is named and left alone.
"""

from __future__ import annotations

import calendar
import dataclasses
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
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
    user,
)

SECONDS = 300.0  # for the end of instances, and of what AWS holds until they have ended
POLL_SECONDS = 3.0
LIVE_STATES = ("pending", "running", "stopping", "stopped", "shutting-down")
GONE = ("NotFound", "InvalidKeyPair", "InvalidPlacementGroup.Unknown")  # in codes of what is not there any more
HELD: tuple[str, ...] = (
    "DependencyViolation",
    "VolumeInUse",
    "InvalidPlacementGroup.InUse",
    "InvalidNetworkInterface.InUse",
)
HELD += ("InvalidGroup.InUse", "InvalidParameterValue")  # the last: an interface that is being detached


WAITS = "AWS has not ended it yet, or holds it until its instances have ended"


@dataclasses.dataclass(frozen=True)
class ResourceKind:
    """A kind of things."""

    noun: str
    describe: str
    """The request that lists them."""

    key: str
    """Where they are in its answer."""

    field: str
    """Of their id."""

    delete: str = ""
    """The request that ends one, empty for instances and spot requests, which are ended together."""

    filters: Mapping[str, Sequence[str]] = dataclasses.field(default_factory=dict)
    """More filters of the request."""

    named: str = ""
    """The field that has the run's name too, empty where there is none."""


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
# In the order of their end, after the instances.
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
    """One thing with a tag of a run."""

    kind: ResourceKind
    id: str
    run_id: str
    owner: str
    expires: float
    """Seconds since 1970."""

    launch: str
    """The number of its launch, as text."""

    foreign: str
    """Why it is not ours, although it has the tag; empty for what is ours."""

    facts: Mapping[str, Any] = dataclasses.field(repr=False, compare=False)

    def __str__(self) -> str:
        return f"{self.kind.noun} {self.id}"

    @property
    def kept(self) -> bool:
        """Whether it outlives the process that launched it, until it expires."""
        return any(one["Key"] == KEPT_TAG for one in self.facts.get("Tags") or ())

    @property
    def alive(self) -> bool | None:
        """Whether the process that launched it lives; None where only another machine knows."""
        who, _, process = self.owner.partition("/")
        number, _, namespace = process.partition("/")
        if who != user() or namespace != str(Path("/proc/self/ns/pid").stat().st_ino) or not number.isdecimal():
            return None
        return Path("/proc", number).exists()


@dataclasses.dataclass
class Reaped:
    """What was ended, and what is left: a clause for each, with the reason."""

    done: list[str] = dataclasses.field(default_factory=list)
    left: list[str] = dataclasses.field(default_factory=list)


class Reaper:
    """Looks for things of runs in an account, and ends them. progress: gets lines about what takes long."""

    def __init__(self, account: Account, progress: Report = lambda _: None) -> None:
        self._account = account
        self._progress = progress

    @property
    def region(self) -> str:
        """The region in which it looks."""
        return self._account.region

    def look(self, run_id: str = "", launch: str = "") -> list[Thing]:
        """Everything with a tag of a run, of this one if one is named. Raises AwsError."""
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
        """End a run, whose ever it is. launch: only what this launch of it made. Raises ConfigError and AwsError."""
        if not runs.RUN_ID.fullmatch(run_id):
            raise ConfigError(f"{printable(run_id)!r} is no id of a run; dbcluster ps --provisioner ec2 lists them")
        return self._end(lambda: self.look(run_id, launch))

    def expired(self) -> Reaped:
        """End everything whose time to live is over, whose ever it is. Raises AwsError."""
        return self._end(lambda: [one for one in self.look() if one.foreign or one.expires < time.time()])

    def dead(self) -> Reaped:
        """End what is expired, and the runs of this user whose process here has ended. Raises AwsError.

        A run that has an instance which is kept is not dead.
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

    def _end(self, look: Callable[[], Sequence[Thing]]) -> Reaped:
        """End what ``look`` finds, again until nothing is left that AWS holds until instances are gone."""
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
            f"{one} has the tag of run {one.run_id}, and is not ours: {one.foreign}" for one in found if one.foreign
        ]
        return result

    def _once(self, things: Sequence[Thing], result: Reaped, ended: set[str]) -> dict[str, str]:
        """Ask for the end of these things. Returns why one is still there, by its text."""
        problems: dict[str, str] = {}
        for kind, operation, key in (
            (SPOT, "CancelSpotInstanceRequests", "SpotInstanceRequestIds"),
            (INSTANCES, "TerminateInstances", "InstanceIds"),
        ):
            fresh = [one for one in things if one.kind is kind and str(one) not in ended]
            if fresh and (why := self._asked(operation, **{key: [one.id for one in fresh]})) is None:
                ended |= {str(one) for one in fresh}
                result.done += [f"ended {one}" for one in fresh]
            elif fresh:
                problems |= dict.fromkeys(map(str, fresh), why or "")
        waiting = any(one.kind is INSTANCES for one in things)
        for kind in REST:
            for one in (one for one in things if one.kind is kind):
                if waiting and kind.noun != "key pair":  # it goes with its instance, or is held by it
                    continue
                why = self._asked(kind.delete, **{kind.field: one.id})
                if why is None and str(one) not in ended:
                    ended.add(str(one))
                    result.done.append(f"removed {one}")
                elif why is not None:
                    problems[str(one)] = why
        return problems

    def _asked(self, operation: str, **request: Any) -> str | None:
        """None when AWS has done it, or there is nothing any more; else why not. Raises AwsError for credentials."""
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
    """A thing from what AWS says of it."""
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
        foreign = "that is no id of a run"
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
