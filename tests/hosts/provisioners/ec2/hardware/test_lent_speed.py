"""Whether the instances of a run still have what they are lent: our counts, and CloudWatch's."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

import pytest

from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.hosts.provisioners.ec2.aws import AwsError
from pytest_dbcluster.hosts.provisioners.ec2.hardware import lent_speed
from pytest_dbcluster.hosts.provisioners.ec2.hardware.lent_speed import LentSpeed
from pytest_dbcluster.hosts.provisioners.ec2.hardware.loans import Loan

LOAN = Loan("the speed of its volume", "operations/s", 100, 6000, 6000, lambda counts: counts.volumes[0].operations)
METRIC = ("AWS/EBS", "BurstBalance", "VolumeId", "vol-1")


class Machines:
    """Machines whose volume does so many operations a second; each question is a second later."""

    def __init__(self, **speeds: float) -> None:
        self.speeds = speeds
        self.asked = dict.fromkeys(speeds, 0)

    def ask(self, machine: str, script: str) -> str:
        """What a machine says. A negative speed stands for one that does not answer."""
        assert script == lent_speed.SCRIPT
        if self.speeds[machine] < 0:
            raise ProvisionError("the connection is lost")
        self.asked[machine] += 1
        up = self.asked[machine]
        operations = int(up * self.speeds[machine])
        disk = f"disk nvme0n1 0 0 0 0 {operations} {'0 ' * 6}: Amazon Elastic Block Store"
        return f"up {up}.0\ncpu 0 0 0 0 0 0 0 0\n{disk}\nend\n"


@pytest.fixture(autouse=True)
def _every_look_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lent_speed, "FRESH_SECONDS", -1.0)
    monkeypatch.setattr(lent_speed, "CLOUD_SECONDS", -1.0)


def test_the_first_machine_that_has_used_it_up_is_named() -> None:
    """Each machine has a balance of its own; all of them have to have the speed."""
    machines = Machines(server1=100, server2=1100)
    lent = LentSpeed({"server1": [LOAN], "server2": [LOAN]}, machines.ask)
    said = [lent.look() for _ in range(7)]

    assert said[:5] == [""] * 5
    assert said[5].startswith("server2: the speed of its volume is used up, by our count")


def test_machines_that_are_lent_nothing_are_not_asked() -> None:
    """A look costs a message to each machine that has something to lose."""
    machines = Machines(server1=1e9, server2=0)
    lent = LentSpeed({"server1": [], "server2": [LOAN]}, machines.ask)
    assert lent.look() == ""

    assert machines.asked == {"server1": 0, "server2": 1}
    assert LentSpeed({"server1": []}, machines.ask).look() == ""


def test_a_look_serves_who_asks_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The end of a block is the begin of the next one."""
    monkeypatch.setattr(lent_speed, "FRESH_SECONDS", 3600.0)
    machines = Machines(server1=0)
    lent = LentSpeed({"server1": [LOAN]}, machines.ask)
    lent.look()
    lent.look()

    assert machines.asked == {"server1": 1}


def test_a_machine_that_does_not_answer_is_not_believed() -> None:
    """It may have used up all; the reason says that nobody knows."""
    said = LentSpeed({"server1": [LOAN]}, Machines(server1=-1).ask).look()

    assert said.startswith("server1: whether it still has the speed that it is lent is not known")
    assert "the connection is lost" in said


def cloud(lent: Mapping[str, float], **how: Any) -> LentSpeed:
    """Machines of little use, and a CloudWatch that answers with these latest values by metric."""
    asked: list[Mapping[str, Any]] = []

    def call(service: str, operation: str, **request: Any) -> Mapping[str, Any]:
        asked.append(request)
        if error := how.get("error"):
            raise error
        assert (service, operation) == ("cloudwatch", "GetMetricStatistics")
        now = datetime.datetime.now(datetime.UTC)
        earlier = {"Timestamp": now - datetime.timedelta(minutes=10), "Minimum": 0.0}
        value = lent.get(request["MetricName"])
        return {"Datapoints": [] if value is None else [{"Timestamp": now, "Minimum": value}, earlier]}

    made = LentSpeed({"server1": [LOAN]}, Machines(server1=0).ask, {"server1": [METRIC]}, call)
    made.asked = asked  # type: ignore[attr-defined]
    return made


@pytest.mark.parametrize(("value", "gone"), [(100.0, False), (1.5, False), (1.0, True), (0.0, True), (None, False)])
def test_cloudwatch_is_believed_too(value: float | None, gone: bool) -> None:
    """Its latest value counts. None is no evidence: a type that is not lent this has no such metric."""
    said = cloud({} if value is None else {"BurstBalance": value}).look()

    assert bool(said) is gone
    assert not gone or "server1: CloudWatch says that its BurstBalance is" in said


def test_cloudwatch_that_is_not_permitted_is_not_asked_again() -> None:
    """Our own counts stand alone then."""
    lent = cloud(
        {}, error=AwsError("these credentials do not permit cloudwatch:GetMetricStatistics", "UnauthorizedOperation")
    )

    assert [lent.look(), lent.look()] == ["", ""]
    assert len(lent.asked) == 1  # type: ignore[attr-defined]
    assert "do not permit" in lent.not_permitted


def test_an_error_of_cloudwatch_is_no_end() -> None:
    """A request that fails is made again at its time."""
    lent = cloud({}, error=AwsError("AWS has too many requests now", "RequestLimitExceeded"))

    assert [lent.look(), lent.look()] == ["", ""]
    assert len(lent.asked) == 2  # type: ignore[attr-defined]
    assert lent.not_permitted == ""
