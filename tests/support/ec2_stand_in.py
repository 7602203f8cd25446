"""A stand-in for EC2: moto as a server, a layer over it for what moto lacks, and stand-in hosts as instances.

What moto lacks, or does otherwise than AWS, and the layer adds: ClientToken, capacity, placement groups, the states
on the way to the end of an instance, what AWS holds until then, tags of interfaces, spot requests, public parameters
of Debian, and errors on demand. An instance is a machine with a real ssh server whose keys are those of its user data.
cloud-init is not run here: ``tests/hosts/provisioners/ec2`` has it run in a guest.

    python -m tests.support.ec2_stand_in -- pytest suites/galera -k flush --db-provisioner ec2 --db-max-cost 5

With ``--private`` before ``--`` the instances are in a private subnet, behind a jump host of ~/.ssh/config.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any
from unittest import mock

from moto.core import DEFAULT_ACCOUNT_ID
from moto.core.exceptions import ServiceException
from moto.core.responses import ActionResult, EmptyResult
from moto.ec2.models import amis, ec2_backends
from moto.ec2.responses import EC2Response
from moto.utilities.utils import load_resource

from pytest_dbcluster import wait
from tests.support import ec2_machines
from tests.support.ec2_machines import JUMP, POWEROFF, jump_host, lives, prepared, text_of
from tests.support.ec2_server import Fault, server
from tests.support.stand_ins import StandIn, StandIns

REGION = "eu-central-1"
PRIVATE = "172.31.128.0/20"  # of the default VPC, beside its own subnets
ENDING = 2  # looks at an instance that is shutting down, before it has ended

# Moto's own answers: two accounts that exist at once do not lie over each other.
MOTO = {name: getattr(EC2Response, name) for name in dir(EC2Response) if not name.startswith("_")}


class Refused(ServiceException):
    """An answer of the layer that is an error."""


class Ec2StandIn:
    """An account that is empty. ``with Ec2StandIn(hosts=...) as aws: ...``; ``hosts``: whether instances are machines.

    environment: the variables by which boto3 finds it. requests: every operation that was asked for, in order, such as
    ``ec2:RunInstances``. capacity: how many instances of a type there are, where that is limited. ahead: seconds that
    the clock of boto3's machine is ahead of the one of the answers. cpus: what AWS gives in place of asked-for ones.
    """

    def __init__(self, *, hosts: bool = False) -> None:
        self.requests: list[str] = []
        self.runs: list[dict[str, Any]] = []  # the requests of RunInstances
        self.capacity: dict[str, int] = {}
        self.ahead = 0.0
        self.quota = 64.0  # vCPUs
        self.held: Callable[[str], None] = lambda _: None  # is told each operation before it is served
        self._faults: list[Fault] = []
        self._tokens: dict[str, tuple[str, Any]] = {}
        self._groups: dict[str, dict[str, Any]] = {}  # placement groups
        self._spots: dict[str, dict[str, Any]] = {}
        self._ending: dict[str, int] = {}
        self._lock = threading.RLock()
        self._machines = StandIns(count=0, private=True) if hosts else None
        self._boots: dict[str, threading.Thread] = {}
        self._names: dict[str, str] = {}  # instance -> host
        self.troubles: list[str] = []  # of hosts that did not boot
        self._restore = self._patch()
        with mock.patch.object(amis, "load_resource", lambda path: [] if "/ecs/" in path else load_resource(path)):
            ec2_backends.reset()
            assert self.backend.amis  # made here, without the hundreds of images of ECS
        self._server = server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def environment(self) -> dict[str, str]:
        """The variables by which boto3 finds this account."""
        return {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self._server.server_port}",
            "AWS_DEFAULT_REGION": REGION,
            "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE",
            "AWS_SECRET_ACCESS_KEY": "of-the-stand-in-0123456789",
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "no_proxy": "127.0.0.1",
        }

    @property
    def backend(self) -> Any:
        """What moto knows."""
        return ec2_backends[DEFAULT_ACCOUNT_ID][REGION]

    @property
    def options(self) -> list[str]:
        """The options of a run that goes without the internet, and without a price list that has been fetched."""
        return ["--db-ec2-from", "192.0.2.1/32", "--db-ec2-price", "ipv4=0.005"]

    def __enter__(self) -> Ec2StandIn:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the server and the machines."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        for boot in self._boots.values():
            boot.join()
        if self._machines:
            self._machines.close()
        self._restore()

    def refuse(self, operation: str, code: str, message: str = "Words of AWS.", **how: Any) -> None:
        """Let later requests of an operation, ``*`` for all, end with this error. how: fields of ``Fault``."""
        self._faults.append(Fault(operation, code, message, **how))

    def clear(self) -> None:
        """Make the account as it was at first; without machines only."""
        assert not self._machines
        backend = self.backend
        for things in (backend.reservations, backend.volumes, backend.enis, backend.key_pairs, backend.tags):
            things.clear()
        for groups in backend.groups.values():
            for id_ in [id_ for id_, group in groups.items() if group.name != "default"]:
                del groups[id_]
        for things in (self.requests, self.runs, self.capacity, self._faults, self._tokens, self._groups, self._spots):
            things.clear()
        self._ending.clear()
        self.ahead = 0.0
        self.quota = 64.0  # vCPUs
        self.held = lambda _: None

    def relent(self) -> None:
        """Refuse nothing any more."""
        self._faults.clear()

    def instances(self) -> list[Any]:
        """Moto's instances that have not ended."""
        self._look()
        return [one for one in self.backend.all_instances() if one.state != "terminated"]

    def host(self, instance: Any) -> StandIn:
        """The machine of an instance, when it has booted."""
        self._boots[instance.id].join()
        assert self._machines
        return self._machines[self._names[instance.id]]

    def private_subnet(self) -> str:
        """The id of a new subnet whose instances get no public address."""
        backend = self.backend
        zone = f"{REGION}a"
        default = next(one for one in backend.describe_subnets() if one.availability_zone == zone)
        return str(backend.create_subnet(default.vpc_id, PRIVATE, availability_zone=zone).id)

    def jump(self) -> StandIn:
        """A machine of nobody's run, with an ssh server through which the instances of a private subnet are reached."""
        assert self._machines
        return jump_host(self._machines)

    @property
    def user_config(self) -> Path:
        """The configuration of ssh of a user who has been given a key for the jump host."""
        assert self._machines
        return self._machines.config

    def left(self) -> dict[str, int]:
        """How many there are of each kind of thing that somebody made; kinds of which there are none are left out."""
        backend = self.backend
        found = {
            "instances": len(self.instances()),
            "volumes": len(backend.volumes),
            "interfaces": len(backend.enis),
            "keys": len(backend.key_pairs),
            "groups": sum(group.name != "default" for groups in backend.groups.values() for group in groups.values()),
            "placement groups": len(self._groups),
            "spot requests": sum(one["State"] in ("open", "active") for one in self._spots.values()),
            "machines": len(self.running()),
        }
        return {kind: number for kind, number in found.items() if number}

    def running(self) -> list[str]:
        """The names of the machines that have not ended."""
        for boot in self._boots.values():
            boot.join()
        return [host.name for host in self._machines or () if host.name != JUMP and lives(host)]

    def end(self, instance: Any, code: str = "Client.InstanceInitiatedShutdown", message: str = "") -> None:
        """End an instance as AWS does, or as it does itself."""
        instance.terminate()
        instance.state_reason.code = code
        instance.state_reason.message = message or code
        self._kill(instance.id)

    # What the layer does at a request.

    def fault(self, operation: str, *, done: bool) -> Fault | None:
        """The error that this request gets, if it gets one."""
        with self._lock:
            for fault in self._faults:
                if fault.operation in (operation, "*") and fault.times and fault.done == done:
                    if fault.after:
                        fault.after -= 1
                        continue
                    fault.times -= 1
                    return fault
        return None

    def _patch(self) -> Callable[[], None]:
        """Put the layer over moto; the returned function takes it away."""
        layer = {
            "run_instances": self._run,
            "terminate_instances": self._terminate,
            "describe_instances": self._describe,
            "delete_security_group": self._delete_group,
            "create_placement_group": self._create_placement,
            "describe_placement_groups": self._describe_placements,
            "delete_placement_group": self._delete_placement,
            "describe_spot_instance_requests": self._describe_spots,
            "cancel_spot_instance_requests": self._cancel_spots,
        }
        before = {name: EC2Response.__dict__.get(name) for name in layer}
        usual = {name: MOTO.get(name) for name in layer}

        def over(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
            return lambda response: function(response, usual[name])

        for name, function in layer.items():
            setattr(EC2Response, name, over(name, function))

        def restore() -> None:
            for name, own in before.items():
                if own is None:
                    delattr(EC2Response, name)
                else:
                    setattr(EC2Response, name, own)

        return restore

    def _run(self, response: Any, usual: Callable[..., Any]) -> Any:
        with self._lock:
            asked = json.loads(json.dumps(response.params, default=str))
            asked.pop("DryRun", None)
            if response._get_param("DryRun", False):
                return usual(response)
            self.runs.append(asked)
            token, text = asked.get("ClientToken"), json.dumps(asked, sort_keys=True)
            if token in self._tokens:
                known, answer = self._tokens[token]
                if known != text:
                    raise Refused("IdempotentParameterMismatch", "Arguments on this request are not those before.")
                return answer
            assert asked["MinCount"] == asked["MaxCount"], "all or none"
            kind, number = asked["InstanceType"], asked["MinCount"]
            if number > self.capacity.get(kind, number):
                raise Refused("InsufficientInstanceCapacity", f"We do not have sufficient {kind} capacity.")
            if kind in self.capacity:
                self.capacity[kind] -= number
            together = (asked.get("Placement") or {}).get("GroupName")
            if together and together not in self._groups:
                raise Refused("InvalidPlacementGroup.Unknown", "There is none of this name.")
            answer = usual(response)
            self._tokens[token] = text, answer
            for instance in answer.result.instances:
                self._born(instance, asked, together)
            return answer

    def _born(self, instance: Any, asked: Mapping[str, Any], together: str | None) -> None:
        instance.placement.group_name = together or ""
        tags = {one["ResourceType"]: {tag["Key"]: tag["Value"] for tag in one["Tags"]} for one in _specs(asked)}
        for interface in instance.nics.values():
            interface.add_tags(tags.get("network-interface", {}))
        if asked.get("InstanceMarketOptions"):
            self._spot(instance, tags.get("spot-instances-request", {}))
        if self._machines:
            self._boot(instance, asked)

    def _spot(self, instance: Any, tags: Mapping[str, str]) -> None:
        id_ = f"sir-{secrets.token_hex(4)}"
        instance.spot_instance_request_id = id_
        self._spots[id_] = {
            "SpotInstanceRequestId": id_,
            "InstanceId": instance.id,
            "State": "active",
            "Status": {"Code": "fulfilled"},
            "Tags": [{"Key": key, "Value": value} for key, value in tags.items()],
        }

    def _describe_spots(self, response: Any, _: object) -> Any:
        fields = {"state": "State", "instance-id": "InstanceId"}
        return ActionResult({"SpotInstanceRequests": _matching(response, self._spots.values(), **fields)})

    def _cancel_spots(self, response: Any, _: object) -> Any:
        with self._lock:
            ids = response._get_param("SpotInstanceRequestIds", [])
            for id_ in ids:
                self._spots[id_]["State"] = "cancelled"
            gone = [{"SpotInstanceRequestId": id_, "State": "cancelled"} for id_ in ids]
            return ActionResult({"CancelledSpotInstanceRequests": gone})

    def notice(self, instance: Any) -> None:
        """Tell that AWS takes a spot instance back in two minutes."""
        self._spots[instance.spot_instance_request_id]["Status"] = {"Code": "marked-for-termination"}

    def _boot(self, instance: Any, asked: Mapping[str, Any]) -> None:
        """Let a machine with the keys of the user data be the instance."""
        assert self._machines
        machines, place = self._machines, self._machines.reserve()
        interface = instance.nics[0]
        interface.private_ip_address = place[2]
        hidden = not interface.public_ip
        if not hidden:
            interface.public_ip = place[1]
        document = json.loads(text_of(asked["UserData"]).partition("\n")[2])
        name = f"i{place[0]}"
        self._names[instance.id] = name

        def boot() -> None:
            try:
                host = machines.add(name, place, lambda one: prepared(one, document), hidden=hidden)
                if instance.state not in ("pending", "running"):
                    host.kill()
            except Exception as error:
                self.troubles.append(f"{name}: {error}")

        self._boots[instance.id] = threading.Thread(target=boot)
        self._boots[instance.id].start()

    def _kill(self, id_: str) -> None:
        if id_ in self._boots:
            self._boots[id_].join()
            with contextlib.suppress(KeyError, ProcessLookupError):
                assert self._machines
                host = self._machines[self._names[id_]]
                host.kill()
                wait.until(lambda: [host.name] if lives(host) else [], "the end of a machine", seconds=10)

    def _look(self) -> None:
        """End the instances whose machines have asked for it."""
        for instance in self.backend.all_instances():
            name = self._names.get(instance.id)
            host = self._machines.hosts.get(name) if self._machines and name else None
            if host and instance.state == "running" and (host.root / POWEROFF).exists():
                self.end(instance)

    def _terminate(self, response: Any, usual: Callable[..., Any]) -> Any:
        with self._lock:
            ids = response._get_param("InstanceIds", [])
            answer = usual(response)
            for id_ in ids:
                self._ending.setdefault(id_, ENDING)
                self._kill(id_)
            return answer

    def _describe(self, response: Any, usual: Callable[..., Any]) -> Any:
        """Instances take a while to end: the first looks see them shutting down."""
        with self._lock:
            self._look()
            late = []
            for instance in self.backend.all_instances():
                if self._ending.get(instance.id, 0) > 0 and instance.state == "terminated":
                    self._ending[instance.id] -= 1
                    instance._state.name, instance._state.code = "shutting-down", 32
                    late.append(instance)
            try:
                return Frozen(usual(response), late)
            except BaseException:
                _end(late)
                raise

    def _delete_group(self, response: Any, usual: Callable[..., Any]) -> Any:
        with self._lock:
            id_ = response._get_param("GroupId")
            for instance in self.backend.all_instances():
                alive = instance.state != "terminated" or self._ending.get(instance.id, 0) > 0
                groups = [*instance.security_groups, *(one for nic in instance.nics.values() for one in nic.group_set)]
                if alive and any(group.id == id_ for group in groups):
                    raise Refused("DependencyViolation", f"resource {id_} has a dependent object")
            return usual(response)

    def _create_placement(self, response: Any, _: object) -> Any:
        with self._lock:
            name = response._get_param("GroupName")
            if name in self._groups:
                raise Refused("InvalidPlacementGroup.Duplicate", "It exists already.")
            tags = [tag for one in _specs(response.params) for tag in one["Tags"]]
            self._groups[name] = {
                "GroupName": name, "State": "available", "Strategy": response._get_param("Strategy"),
                "GroupId": f"pg-{secrets.token_hex(8)}", "Tags": tags,
            }  # fmt: skip
            return ActionResult({"PlacementGroup": self._groups[name]})

    def _describe_placements(self, response: Any, _: object) -> Any:
        return ActionResult({"PlacementGroups": _matching(response, self._groups.values())})

    def _delete_placement(self, response: Any, _: object) -> Any:
        with self._lock:
            name = response._get_param("GroupName")
            if name not in self._groups:
                raise Refused("InvalidPlacementGroup.Unknown", "There is none of this name.")
            for instance in self.backend.all_instances():
                alive = instance.state != "terminated" or self._ending.get(instance.id, 0) > 0
                if alive and instance.placement.group_name == name:
                    raise Refused("InvalidPlacementGroup.InUse", "It is in use.")
            del self._groups[name]
            return EmptyResult()


def _matching(response: Any, things: Iterable[dict[str, Any]], **fields: str) -> list[dict[str, Any]]:
    """The things that match the filters of a request. fields: name of a filter -> field of a thing."""
    found = []
    for one in things:
        tags = {tag["Key"]: tag["Value"] for tag in one["Tags"]}
        for asked in response._get_param("Filters", []):
            name, values = asked["Name"], asked["Values"]
            if name == "tag-key":
                fits = any(key in tags for key in values)
            elif name.startswith("tag:"):
                fits = tags.get(name.removeprefix("tag:")) in values
            else:
                fits = one[fields[name]] in values
            if not fits:
                break
        else:
            found.append(one)
    return found


class Frozen(ActionResult):
    """An answer about instances that are shutting down, which have ended when it is written."""

    def __init__(self, answer: ActionResult, late: list[Any]) -> None:
        super().__init__(answer.result)
        self._late = late

    def execute_result(self, context: Any) -> Any:
        """The answer as bytes."""
        try:
            return super().execute_result(context)
        finally:
            _end(self._late)


def _end(late: list[Any]) -> None:
    for instance in late:
        instance._state.name, instance._state.code = "terminated", 48


def _specs(asked: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return asked.get("TagSpecifications") or asked.get("TagSpecification") or []


def main() -> int:
    """Run a command with an account of its own, and say what it left there; 1 when that is anything."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.ec2_stand_in", description="EC2, to try it out.")
    parser.add_argument("--private", action="store_true", help="a private subnet, behind a jump host")
    parser.add_argument("command", nargs="+", metavar="COMMAND")
    given = parser.parse_args()
    with Ec2StandIn(hosts=True) as aws, tempfile.TemporaryDirectory() as home:
        command = [*given.command, *aws.options]
        if given.private:
            aws.jump()
            command += ["--db-ec2-subnet", aws.private_subnet(), "--db-ec2-jump", JUMP]
            command = ec2_machines.with_config(aws.user_config, Path(home, "home"), command)
        done = subprocess.run(command, env={**os.environ, **aws.environment}, check=False)
        left = aws.left()
        print(f"stand-in: {len(aws.requests)} requests, left in the account: {left or 'nothing'}", file=sys.stderr)
        for trouble in aws.troubles:
            print(f"stand-in: {trouble}", file=sys.stderr)
    return done.returncode or (1 if left else 0)


if __name__ == "__main__":
    assert shutil.which("ssh")
    sys.exit(main())
