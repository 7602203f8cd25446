"""Lent speed: whether the instances of a run still have the speeds that they do not have for long.

Our own counts decide, before and after each block of rounds. CloudWatch is asked as well, where that is permitted: its
figures are some minutes old, and count what we do not see.
"""

from __future__ import annotations

import concurrent.futures
import datetime
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.hosts.provisioners.ec2.aws import AwsError
from pytest_dbcluster.hosts.provisioners.ec2.hardware.counts import SCRIPT, Counts
from pytest_dbcluster.hosts.provisioners.ec2.hardware.loans import Balance, Loan

FRESH_SECONDS = 0.5  # a look that is not older serves who asks: the end of a block is the begin of the next one
CLOUD_SECONDS = 120.0  # between two questions to CloudWatch, which counts every 5 minutes
CLOUD_PAST = 20  # minutes that it is asked about
CLOUD_PERIOD = 300  # seconds
LEAST = 1.0  # per cent of a balance, or credits, at which the speed is gone
# docs.aws.amazon.com/ebs/latest/userguide/using_cloudwatch_ebs.html and, for instances,
# docs.aws.amazon.com/AWSEC2/latest/UserGuide/viewing_metrics_with_cloudwatch.html
VOLUME_METRICS = (("AWS/EBS", "BurstBalance", "VolumeId"),)  # of gp2
INSTANCE_METRICS = (("AWS/EC2", "EBSIOBalance%", "InstanceId"), ("AWS/EC2", "EBSByteBalance%", "InstanceId"))
CREDIT_METRICS = (("AWS/EC2", "CPUCreditBalance", "InstanceId"),)

Call = Callable[..., Mapping[str, Any]]


class LentSpeed:
    """What the machines of a run are lent. loans: by machine. ask: runs a script on a machine, returns what it prints.

    watched: by machine, what CloudWatch is asked: (namespace, metric, name of the id, id). call: a request to AWS.
    """

    def __init__(
        self,
        loans: Mapping[str, Sequence[Loan]],
        ask: Callable[[str, str], str],
        watched: Mapping[str, Sequence[tuple[str, str, str, str]]] | None = None,
        call: Call | None = None,
    ) -> None:
        self.balances = {machine: [Balance(loan) for loan in lent] for machine, lent in loans.items() if lent}
        self._ask = ask
        self.watched = watched or {}
        self._call = call
        self._looking = threading.Lock()
        self._looked = self._cloud_asked = float("-inf")
        self._said = self._cloud_said = ""
        self.not_permitted = ""  # why CloudWatch is asked no more

    def look(self) -> str:
        """Why a machine has lost a speed that it was lent; empty while all of them have it, and for no loans."""
        if not self.balances:
            return ""
        with self._looking:
            if time.monotonic() - self._looked > FRESH_SECONDS:
                with concurrent.futures.ThreadPoolExecutor(len(self.balances)) as threads:
                    said = list(threads.map(self._count, self.balances))
                self._said = next(filter(None, said), "") or self._cloud()
                self._looked = time.monotonic()
            return self._said

    def _count(self, machine: str) -> str:
        """Book what a machine has used. One that does not say so may have lost everything."""
        try:
            counts = Counts.read(self._ask(machine, SCRIPT), machine)
        except ProvisionError as error:
            return f"{machine}: whether it still has the speed that it is lent is not known: {error}"
        for balance in self.balances[machine]:
            balance.take(counts)
        return next((f"{machine}: {balance.over}" for balance in self.balances[machine] if balance.over), "")

    def _cloud(self) -> str:
        """What CloudWatch says, asked now and then. Without its permission our own counts stand alone."""
        if self._call is None or self.not_permitted or time.monotonic() - self._cloud_asked < CLOUD_SECONDS:
            return self._cloud_said
        self._cloud_asked = time.monotonic()
        self._cloud_said = ""
        try:
            for machine, metrics in self.watched.items():
                for namespace, metric, key, id_ in metrics:
                    least = self._least(namespace, metric, key, id_)
                    if least is not None and least <= LEAST:
                        self._cloud_said = (
                            f"{machine}: CloudWatch says that its {metric} is {least:g}: a lent speed is used up"
                        )
                        return self._cloud_said
        except AwsError as error:
            if error.code == "UnauthorizedOperation":
                self.not_permitted = str(error)
        return ""

    def _least(self, namespace: str, metric: str, key: str, id_: str) -> float | None:
        """The latest value of a metric; None where CloudWatch has none, as of a type that is not lent this."""
        assert self._call
        now = datetime.datetime.now(datetime.UTC)
        answer = self._call(
            "cloudwatch",
            "GetMetricStatistics",
            Namespace=namespace,
            MetricName=metric,
            Dimensions=[{"Name": key, "Value": id_}],
            StartTime=now - datetime.timedelta(minutes=CLOUD_PAST),
            EndTime=now,
            Period=CLOUD_PERIOD,
            Statistics=["Minimum"],
        )
        points = sorted(answer.get("Datapoints", []), key=lambda point: point["Timestamp"])
        return float(points[-1]["Minimum"]) if points else None


def instance_metrics(*, credit_counts: bool) -> tuple[tuple[str, str, str], ...]:
    """What CloudWatch is asked about an instance. credit_counts: whether its CPUs are slower without credits."""
    return INSTANCE_METRICS + CREDIT_METRICS if credit_counts else INSTANCE_METRICS
