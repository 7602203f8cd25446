"""Records: all data of one claim (``ClaimRecord``) or one curve (``CurveRecord``).

Terminal, charts, results directory and Allure need only records. ``documents.record_documents`` has the same
values as they are saved: a document is a record with what only a file needs. ``recording`` makes records.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from pytest_dbcluster.claims.carry_over import CarryOver
from pytest_dbcluster.claims.claim import Outcome, Verdict
from pytest_dbcluster.claims.cluster_difference import ClusterDifference
from pytest_dbcluster.claims.race.standing import Standing
from pytest_dbcluster.measuring.evidence import SpecDocument
from pytest_dbcluster.measuring.round_trips import RoundTripsTaken
from pytest_dbcluster.measuring.why.compared import ServerComparison
from pytest_dbcluster.network import Delay
from pytest_dbcluster.rounds.busy_machine import OthersLoad
from pytest_dbcluster.rounds.open_loop import ArrivalRate
from pytest_dbcluster.rounds.round import Round


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClaimSubject:
    """What a claim is about, without its answer."""

    test: str
    """The test's node id."""

    text: str
    """The claim as written, such as ``flush_2.beats(galera3)``."""

    load: str
    """The workload's name."""

    candidate: str
    """The variant in the numerator of the verdict's ratio.

    Candidate and baseline of a claim about an order are the two neighbours with the closest speeds. Those of a race are
    its winner and the next one. Those of ``fades`` are its second pair: the verdict compares its ratio with that of the
    first.
    """

    baseline: str
    """The variant in the denominator of the verdict's ratio; empty for a claim about one variant."""

    metric: str
    """What is compared, such as ``throughput`` or ``p95``."""

    profile: str
    """The profile of the run, such as ``quick``."""

    repeat: str
    """The command that repeats the test, without paths of this machine."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClaimRecord(ClaimSubject):
    """One claim with its answer. ``published``, ``drained`` and ``differences`` compare candidate and baseline."""

    verdict: Verdict
    """The answer."""

    message: str
    """The whole text of the verdict, several lines."""

    published: float | None
    """The published ratio of speed, candidate / baseline; None if no ratio is published."""

    asserted: bool
    """False for a comparison that is only printed."""

    measured_seconds: float
    """The measured seconds of all rounds that the claim used, of all variants together."""

    wall_seconds: float
    """Seconds from the test's call of ``measure`` to the answer."""

    seed: int
    """The seed of the run; each measurement draws the order of its rounds from it."""

    release: str
    """Release and exact version, such as ``mariadb:10.11 10.11.19``; several are joined by ``, ``."""

    durability: Mapping[str, str]
    """By variant, the failures that a commit survives, as text."""

    differences: Mapping[str, tuple[str, str]]
    """By name, the server variables and options of the proxy that differ: (baseline's value, candidate's)."""

    fingerprint: Mapping[str, str]
    """The machine, kernel and Python, as text by name."""

    rounds: Mapping[str, tuple[Round, ...]]
    """By variant, the rounds that the claim used; the n-th rounds of all variants are the n-th pair.

    Variants that left a race have fewer.

    ``block`` and ``position`` of a round say when it ran. In an opening block the four rounds of each variant do not
    run in the order of their pairs.
    """

    void_rounds: tuple[tuple[Round, ...], ...]
    """The rounds that were void and drawn again: one round of an opening block, all rounds of a later block."""

    instances: int
    """The number of instances of each variant; the blocks use them in turn."""

    published_seconds: Mapping[str, tuple[float, ...]]
    """By variant, its published seconds: the average, then minimum and maximum if they are published; may be empty."""

    drains: Mapping[str, float]
    """By variant, the median seconds from a round's end until all nodes had applied it; empty without a drain."""

    drained: float | None
    """The ratio of speed, candidate / baseline, with the drain included; None without a drain."""

    arrival_rate: ArrivalRate | None
    """The arrival rate of an open loop; None for a closed loop."""

    limited: str
    """Says that the load generator was the bottleneck; empty if it was not."""

    cluster_difference: ClusterDifference | None
    """How far equal clusters can differ; None if the variants share one cluster, and for claims about counters."""

    carry_over: CarryOver | None = None
    """Whether rounds are slower after the candidate than after the baseline; None if that is not known."""

    claim_id: str = ""
    """The same for this claim in all runs, on all releases and machines (``documents.claim_id``)."""

    kind: str = ""
    """The kind of claim, such as ``beats``; ``differs`` for a comparison that is only printed."""

    provisioner: str = ""
    """The provisioner of the clusters, such as ``local``."""

    storage: str = ""
    """The storage of the variants, as in SpecDocument; different ones are joined by ``, ``: ``gp2-100, no limit``."""

    parity: str = ""
    """The parity of the variants, as in SpecDocument; different ones are joined by ``, ``."""

    specs: Mapping[str, SpecDocument] = dataclasses.field(default_factory=dict)
    """By variant, its cluster."""

    sweep_field: str = ""
    """The field of a sweep; empty without a sweep."""

    sweep_value: int | float | str | bool | None = None
    """The value of the sweep's field; None without a sweep."""

    depends_on: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """What the answer depends on, as digests by name (``resume.digests``); empty in older results."""

    run_id: str = ""
    """The id of the run that measured it, as in RunDocument; empty in older results."""

    data_fits: str = ""
    """Says that the data fits into the smaller of two different buffer pools; empty if it does not."""

    network: Mapping[str, tuple[Delay, ...]] = dataclasses.field(default_factory=dict)
    """By variant, the round trips between each two ends, asked and measured; empty without a network."""

    round_trips: RoundTripsTaken | None = None
    """The round trips that an operation takes; None unless the variants differ only in their round-trip time."""

    tries: int = 1
    """The number of this try; earlier tries of the claim looked at their rounds and decided nothing."""

    others: OthersLoad | None = None
    """The cores of this machine that other programs took; None if that is not known, and for hosts elsewhere."""

    data: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """By variant, the size of its workload's tables when they are loaded: ``8 tables of 100000 rows, about 199 MiB``.

    It is no part of ``load`` or ``claim_id``. Empty in older results.
    """

    standings: tuple[Standing, ...] = ()
    """Of a race the place of each variant, as in Answer; empty for other claims."""

    content: str = ""
    """The digest of the files of the workload, which ``claim_id`` has too; empty without files."""

    files: Mapping[str, Mapping[str, str]] = dataclasses.field(default_factory=dict)
    """By variant, the SHA-256 of each file of its workload, such as ``shop/order.sql``."""

    servers: ServerComparison | None = None
    """What the servers of candidate and baseline did in extra rounds (``--db-why``); None without these rounds."""


@dataclasses.dataclass(frozen=True)
class CurvePoint:
    """One variant at one value of a curve."""

    value: object
    """The value of the curve's field."""

    variant: str
    """The variant's name."""

    rounds: tuple[Round, ...]
    """The rounds in the order in which they ran."""

    median: float
    """The median of the curve's metric over the rounds, in the metric's unit."""

    low: float | None
    """The lower end of the median's 95 % interval; None for fewer than 6 rounds."""

    high: float | None
    """The upper end of the median's 95 % interval; None for fewer than 6 rounds."""

    data: str = ""
    """The size of the workload's tables, as in ClaimRecord; empty in older results."""

    ratio: float | None = None
    """The speed of the variant divided by its speed at the curve's ``reference``; None without a reference."""

    ratio_low: float | None = None
    """The lower end of the ratio's 99.9 % interval over all looks; None if too few rounds bound it."""

    ratio_high: float | None = None
    """The upper end of the ratio's 99.9 % interval; None if too few rounds bound it."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class CurveRecord:
    """One curve with its measured points."""

    test: str
    """The test's node id."""

    load: str
    """The workload's name."""

    field: str
    """The field of the workload that is varied, such as ``threads``; ``release`` for a curve over releases."""

    metric: str
    """The metric of the workload."""

    release: str
    """Release and exact version, as in ClaimRecord."""

    profile: str
    """The profile of the run."""

    seed: int
    """The seed of the run."""

    fingerprint: Mapping[str, str]
    """The machine, kernel and Python, as text by name."""

    points: tuple[CurvePoint, ...]
    """The measured points, ordered by value, then by variant."""

    notes: tuple[str, ...]
    """Limits of the measurement, such as nodes that share cores, or a load generator that was the bottleneck."""

    drawn: int = 0
    """The rounds of each variant that ``curve.draw`` was asked for; 0 if it was not called, or did not end."""

    depends_on: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """What the curve depends on, as in ClaimRecord."""

    baseline: str = ""
    """The variant that the others are shown relative to; empty for none."""

    reference: str = ""
    """The value that the ratios of the points compare with: the newest release of a curve over releases; else empty."""

    number: int = 0
    """The number of the curve in its test, from 0."""

    files: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """The SHA-256 of each file of its workloads; empty without files."""

    @property
    def parameters(self) -> str:
        """The parameters of its test, in which two curves of one load may differ; empty without any."""
        return self.test.rpartition("::")[2].partition("[")[2].removesuffix("]")

    @property
    def title(self) -> str:
        """Load, field, and the parameters of the test."""
        return ", ".join(filter(None, [f"{self.load} over {self.field}", self.parameters]))

    def share(self, point: CurvePoint) -> float | None:
        """The median of a point as a share of the baseline's at the same value; None without a point there."""
        for other in self.points:
            if (other.value, other.variant) == (point.value, self.baseline) and other.median:
                return point.median / other.median
        return None

    @property
    def values(self) -> list[object]:
        """Each value once, in order."""
        return list(dict.fromkeys(point.value for point in self.points))

    @property
    def variants(self) -> list[str]:
        """Each variant once, in order."""
        return list(dict.fromkeys(point.variant for point in self.points))


@dataclasses.dataclass(frozen=True)
class Reading:
    """How a test of this run reads the answer of an earlier run."""

    test: str
    """The node id of the test."""

    repeat: str
    """The command that repeats the test."""

    asserted: bool
    """Whether the test asserts it; an earlier test may have shown it only."""

    outcome: Outcome
    """Its outcome; the test may name another winner of a race than an earlier test."""

    reason: str
    """The reason of this outcome."""

    message: str
    """The message of the answer."""

    def of(self, record: ClaimRecord) -> ClaimRecord:
        """The record as this test reads it."""
        verdict = dataclasses.replace(record.verdict, outcome=self.outcome, reason=self.reason)
        return dataclasses.replace(
            record,
            test=self.test,
            repeat=self.repeat,
            asserted=self.asserted,
            verdict=verdict,
            message=self.message,
        )

    def changes(self, record: ClaimRecord) -> bool:
        """Whether the record's line must change: it has another test, or is read otherwise."""
        before = record.test, record.asserted, record.verdict.outcome, record.verdict.reason
        return before != (self.test, self.asserted, self.outcome, self.reason)

    def of_line(self, line: Mapping[str, Any]) -> dict[str, Any]:
        """The content of the record's line as this test reads it."""
        verdict = {**line["verdict"], "outcome": self.outcome.value, "reason": self.reason}
        own = {"test": self.test, "repeat": self.repeat, "asserted": self.asserted, "message": self.message}
        return {**line, **own, "verdict": verdict}


def fields_of(kind: Any, value: object, /, **others: object) -> dict[str, Any]:
    """The fields of a dataclass as a dictionary, taken from ``value``; ``others`` replaces some of them.

    So a record becomes a document, and a document a record, without a list of their names.
    """
    names = (field.name for field in dataclasses.fields(kind))
    return {name: others[name] if name in others else getattr(value, name) for name in names}
