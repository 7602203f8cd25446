"""Records: all data of one claim (``ClaimRecord``) or one curve (``CurveRecord``), and how they are made.

Terminal, charts, results directory and Allure are made from records alone.
"""

from __future__ import annotations

import dataclasses
import platform
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import psutil

from pytest_dbcluster import formatting, redaction
from pytest_dbcluster.claims import estimators
from pytest_dbcluster.claims.carry_over import CarryOver
from pytest_dbcluster.claims.claim import Verdict
from pytest_dbcluster.claims.cluster_difference import ClusterDifference
from pytest_dbcluster.measuring import remarks
from pytest_dbcluster.measuring.answer import Answer
from pytest_dbcluster.measuring.curve import Curve, Point
from pytest_dbcluster.measuring.evidence import ResolvedSpec, SpecDocument
from pytest_dbcluster.measuring.round_trips import RoundTripsTaken
from pytest_dbcluster.measuring.series import series_of
from pytest_dbcluster.network import Delay
from pytest_dbcluster.reporting.documents.claim_id import claim_id, shared
from pytest_dbcluster.reporting.published import Published
from pytest_dbcluster.rounds import busy_machine, load_generator
from pytest_dbcluster.rounds.busy_machine import OthersLoad
from pytest_dbcluster.rounds.open_loop import ArrivalRate
from pytest_dbcluster.rounds.round import Round
from pytest_dbcluster.system import probes


@dataclasses.dataclass(frozen=True)
class ClaimRecord:
    """One claim with its answer.

    test: the test's node id.
    claim_id: the same for this claim in all runs, on all releases and machines (``documents.claim_id``).
    text: the claim as written, such as ``flush_2.beats(galera3)``.
    load: the workload's name.
    candidate, baseline: the names of the two variants that the verdict's ratio compares. For a claim about an order
        these are the two neighbours with the closest speeds; for ``fades`` those of its second pair, whose ratio the
        verdict compares with that of its first. ``published``, ``drained`` and ``differences`` compare
        the same two.
    metric: what is compared, such as ``throughput`` or ``p95``.
    message: the whole text of the verdict, several lines.
    published: the published ratio candidate / baseline of speed; None where none is published.
    asserted: False for a comparison that is only printed.
    measured_seconds: the measured seconds of all rounds that the claim used, of all variants together.
    wall_seconds: seconds from the test's call of ``measure`` to the answer.
    seed: the seed of the run; each measurement draws the order of its rounds from it.
    release: release and exact version, such as ``mariadb:10.11 10.11.19``; several are joined by ``, ``.
    profile: the profile of the run, such as ``quick``.
    durability: by variant, the failures that a commit survives, as text.
    differences: by name, the server variables that differ between the two variants: (baseline's value, candidate's).
    fingerprint: the machine, kernel and Python, as text by name.
    repeat: the command that repeats the test, without paths of this machine.
    rounds: by variant, the rounds that the claim used. The n-th rounds of all variants are the n-th pair. Block and
        position of a round say when it ran: in the first blocks, of four rounds of each variant, that is not the order
        of the pairs.
    published_seconds: by variant, its published seconds: the average, then minimum and maximum where they are
        published; empty where nothing is published.
    drains: by variant, the median seconds from the end of a round until all nodes had applied it; empty where nothing
        had to drain.
    drained: the ratio candidate / baseline of speed with the drain included; None where nothing had to drain.
    void: what did not count and was drawn again: of a block with four rounds of each variant one round, of a later
        block all its rounds.
    instances: the instances of each variant, which the blocks used in turn.
    carry_over: whether rounds are slower after the candidate than after the baseline; None where that is not known.
    arrival_rate: the arrival rate of an open loop; None for a closed loop.
    cluster_difference: how far equal clusters can differ, and where that figure comes from; None where the variants
        share one cluster, and for claims about counters.
    kind: of the claim, such as ``beats``; ``differs`` for a comparison that is only printed.
    provisioner: where the clusters ran, such as ``local``.
    storage, parity: of the variants, as in SpecDocument; different ones are joined by ``, ``,
        such as ``gp2-100, no limit``.
    specs: by variant, its cluster.
    sweep_field, sweep_value: of a sweep, the field and its value at this point; empty and None without a sweep.
    network: by variant, the round trips between each two ends, asked and measured before and after the rounds; empty
        where no variant asks for a network.
    round_trips: that an operation takes, where all variants differ in their round-trip time alone; else None.
    limited: a text that says that the load generator was the bottleneck; empty when it was not.
    depends_on: what the answer depends on, as digests by name (``resume.digests``); empty in older results.
    run_id: of the run that measured it, as in RunDocument; empty in older results.
    data_fits: a text that says that the data fits into the smaller buffer pool, where the two variants differ in its
        size; else empty.
    tries: the number of this try; earlier tries of the claim looked at their rounds and decided nothing.
    others: what programs of others took of this machine; None where it is not known, and for hosts elsewhere.
    """

    test: str
    text: str
    load: str
    candidate: str
    baseline: str
    metric: str
    verdict: Verdict
    message: str
    published: float | None
    asserted: bool
    measured_seconds: float
    wall_seconds: float
    seed: int
    release: str
    profile: str
    durability: Mapping[str, str]
    differences: Mapping[str, tuple[str, str]]
    fingerprint: Mapping[str, str]
    repeat: str
    rounds: Mapping[str, tuple[Round, ...]]
    published_seconds: Mapping[str, tuple[float, ...]] = dataclasses.field(default_factory=dict)
    drains: Mapping[str, float] = dataclasses.field(default_factory=dict)
    drained: float | None = None
    void: tuple[tuple[Round, ...], ...] = ()
    arrival_rate: ArrivalRate | None = None
    limited: str = ""
    instances: int = 1
    cluster_difference: ClusterDifference | None = None
    carry_over: CarryOver | None = None
    claim_id: str = ""
    kind: str = ""
    provisioner: str = ""
    storage: str = ""
    parity: str = ""
    specs: Mapping[str, SpecDocument] = dataclasses.field(default_factory=dict)
    sweep_field: str = ""
    sweep_value: int | float | str | bool | None = None
    depends_on: Mapping[str, str] = dataclasses.field(default_factory=dict)
    run_id: str = ""
    data_fits: str = ""
    network: Mapping[str, tuple[Delay, ...]] = dataclasses.field(default_factory=dict)
    round_trips: RoundTripsTaken | None = None
    tries: int = 1
    others: OthersLoad | None = None


@dataclasses.dataclass(frozen=True)
class Asked:
    """The test that makes a claim.

    test: its node id. profile, provisioner: of the run. repeat: the command that repeats the test. swept: the
    field and value of a point of a sweep; None without a sweep.
    """

    test: str
    profile: str
    repeat: str
    provisioner: str = "local"
    swept: tuple[str, object] | None = None


def claim_record(answer: Answer, published: Published | None, asked: Asked, wall_seconds: float) -> ClaimRecord:
    """The record of an answer and its evidence. ``wall_seconds`` includes resets, switches of variants, settling."""
    evidence = answer.evidence
    candidate, baseline = answer.compared
    rounds = {variant.name: tuple(variant.rounds) for variant in answer.variants}
    compared = {variant.name: variant.rounds for variant in (candidate, baseline)}
    ratio, seconds = _published_beside(answer, published)
    return ClaimRecord(
        test=asked.test,
        text=answer.text,
        load=answer.load,
        candidate=candidate.name,
        baseline=baseline.name,
        metric=answer.metric,
        verdict=answer.verdict,
        message=redaction.redact("\n".join([answer.message, *(published.lines if published else [])])),
        published=ratio,
        asserted=answer.asserted,
        measured_seconds=sum(drawn.seconds for of_variant in rounds.values() for drawn in of_variant),
        wall_seconds=wall_seconds,
        seed=answer.seed,
        release=releases(list(evidence.specs.values())),
        profile=asked.profile,
        durability=evidence.durability,
        differences=evidence.differences.get((candidate.name, baseline.name), {}),
        fingerprint=fingerprint(evidence.environment),
        repeat=asked.repeat,
        rounds=rounds,
        published_seconds=seconds,
        drains=remarks.drains(rounds),
        drained=None if answer.claim.of_kind.composed else remarks.drained_ratio(compared, answer.metric),
        arrival_rate=answer.arrival_rate,
        limited=load_generator.mark(rounds),
        void=tuple(map(tuple, answer.void)),
        instances=answer.instances,
        **_remarks(answer),
        **_identity(answer, asked),
        **_swept(asked.swept),
    )


def _remarks(answer: Answer) -> dict[str, Any]:
    """The fields of a record about what may have changed the estimate besides the variants, and about the network."""
    candidate, baseline = answer.compared
    evidence = answer.evidence
    return {
        "data_fits": evidence.data_fits.get((candidate.name, baseline.name), ""),
        "cluster_difference": answer.difference,
        "carry_over": answer.carried,
        "network": evidence.delays,
        "round_trips": answer.round_trips,
        "tries": answer.tries,
        "others": busy_machine.others_load({one.name: one.rounds for one in answer.variants}, evidence.others_before),
    }


def _identity(answer: Answer, asked: Asked) -> dict[str, Any]:
    """The fields of a record about its clusters, and about what claim it is."""
    specs = {name: resolved.document for name, resolved in answer.evidence.specs.items()}
    return {
        "claim_id": claim_id(asked.test, [spec.release for spec in specs.values()], answer.identity, answer.load),
        "kind": answer.claim.kind,
        "provisioner": asked.provisioner,
        "storage": shared(spec.storage for spec in specs.values()),
        "parity": shared(spec.parity for spec in specs.values()),
        "specs": specs,
    }


def _swept(point: tuple[str, object] | None) -> dict[str, Any]:
    """The fields of a record about the point of a sweep; a value that JSON does not have becomes text."""
    if point is None:
        return {}
    field, value = point
    return {"sweep_field": field, "sweep_value": value if isinstance(value, int | float | str | None) else str(value)}


def _published_beside(answer: Answer, published: Published | None) -> tuple[float | None, dict[str, tuple[float, ...]]]:
    """The published ratio of the two compared variants, and the published seconds of each variant."""
    if published is None or answer.claim.of_kind.composed:
        return None, {}
    specs, mode = answer.evidence.specs, answer.evidence.mode
    candidate, baseline = (specs[variant.name] for variant in answer.compared)
    seconds = {name: published.seconds(resolved, mode) for name, resolved in specs.items()}
    return published.ratio(candidate, baseline, answer.metric, mode), seconds


def releases(specs: Sequence[ResolvedSpec]) -> str:
    """The releases of these variants with exact versions, each once: ``mariadb:10.11 10.11.19, mysql:8.4 8.4.3``."""
    return ", ".join(dict.fromkeys(f"{one.document.release} {one.document.version}" for one in specs))


@dataclasses.dataclass(frozen=True)
class CurvePoint:
    """One variant at one value of a curve.

    value: the value of the curve's field. variant: the variant's name. rounds: the rounds in the order in which they
    ran. median: the median of the curve's metric over the rounds, in the metric's unit. low, high: the 95 % interval of
    the median; None for fewer than 6 rounds.
    """

    value: object
    variant: str
    rounds: tuple[Round, ...]
    median: float
    low: float | None
    high: float | None


@dataclasses.dataclass(frozen=True)
class CurveRecord:
    """One curve with its measured points.

    test: the test's node id. load: the workload's name. field: the field of the workload that is varied, such as
    ``threads``. metric: the metric of the workload. release, profile, seed, fingerprint: as in ClaimRecord. points:
    ordered by value, then by variant. notes: limits of the measurement, such as nodes that share cores or a load
    generator that was the bottleneck. drawn: the rounds of each variant that ``curve.draw`` was asked for; 0 where it
    was not called, or did not end. depends_on: as in ClaimRecord. baseline: the variant that the others are shown
    relative to; empty for none. number: of the curve in its test, from 0.
    """

    test: str
    load: str
    field: str
    metric: str
    release: str
    profile: str
    seed: int
    fingerprint: Mapping[str, str]
    points: tuple[CurvePoint, ...]
    notes: tuple[str, ...] = ()
    drawn: int = 0
    depends_on: Mapping[str, str] = dataclasses.field(default_factory=dict)
    baseline: str = ""
    number: int = 0

    @property
    def parameters(self) -> str:
        """The parameters of its test, in which two curves of one load may differ; empty without any."""
        return self.test.rpartition("::")[2].partition("[")[2].removesuffix("]")

    @property
    def title(self) -> str:
        """Load, field, and the parameters of the test."""
        return ", ".join(filter(None, [f"{self.load} over {self.field}", self.parameters]))

    def share(self, point: CurvePoint) -> float | None:
        """The median of a point as a share of the baseline's at the same value; None where there is none."""
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


def fingerprint(hosts: Mapping[str, str]) -> Mapping[str, str]:
    """What the figures depend on besides the servers: CPU, memory, kernel, Python, control driver.

    hosts: the same of the hosts (``Evidence.environment``), which replaces what this machine has: hosts on other
    machines have their own CPU, memory and kernel.
    """
    return {
        "cpu": f"{psutil.cpu_count()} x {probes.cpu_model()}",
        "memory": formatting.gibibytes(psutil.virtual_memory().total),
        "kernel": platform.release(),
        "python": platform.python_version(),
        **hosts,
    }


@dataclasses.dataclass(frozen=True)
class About:
    """The data that all curves of a run have in common, as in CurveRecord."""

    profile: str
    seed: int
    fingerprint: Mapping[str, str]


class Curves:
    """The curves of the current test. ``tell`` gets their records when the test's body ends, also when it fails.

    ``keep`` gets those of the run that this one continues, where nothing was drawn since, and the node id of the test.
    ``save`` gets the record of a curve after each point that was drawn.
    """

    def __init__(
        self,
        tell: Callable[[CurveRecord], None],
        keep: Callable[[CurveRecord, str], None],
        about: Callable[[], About],
        save: Callable[[CurveRecord], None] = lambda record: None,
    ) -> None:
        self._tell = tell
        self._keep = keep
        self._about = about
        self._save = save
        self._begun: list[tuple[Curve, Mapping[str, str], CurveRecord | None]] = []

    @property
    def begun(self) -> int:
        """The number of curves that the test has declared so far."""
        return len(self._begun)

    def begin(self, curve: Curve, depends_on: Mapping[str, str], before: CurveRecord | None = None) -> None:
        """Add a curve that the test has declared. before: its record in the run that this one continues."""
        number = self.begun
        self._begun.append((curve, depends_on, before))
        curve.point_drawn = lambda drawn: self._point_drawn(drawn, depends_on, number)

    def _point_drawn(self, curve: Curve, depends_on: Mapping[str, str], number: int) -> None:
        if record := curve_record(curve, self._about(), depends_on, number):
            self._save(record)

    def end(self) -> None:
        """Report the curves of this test; a curve without rounds is left out."""
        begun, self._begun = self._begun, []
        for number, (curve, depends_on, before) in enumerate(begun):
            record = curve_record(curve, self._about(), depends_on, number)
            if record and before and curve.untouched and before.drawn and before.baseline == record.baseline:
                self._keep(before, record.test)
            elif record:
                self._tell(record)


def curve_record(curve: Curve, about: About, depends_on: Mapping[str, str], number: int = 0) -> CurveRecord | None:
    """The record of a curve; None for a curve without rounds. number: of the curve in its test, from 0."""
    points = [measured for point in curve.points for measured in _points(point)]
    if not points:
        return None
    first = curve.points[0].measurement
    return CurveRecord(
        test=first.test,
        load=curve.load,
        field=curve.field,
        metric=first.metric,
        release=first.release,
        profile=about.profile,
        seed=about.seed,
        fingerprint=about.fingerprint,
        points=tuple(points),
        notes=(*_not_comparable(curve), *_marks(curve), *_guests(about)),
        drawn=curve.drawn,
        depends_on=depends_on,
        baseline=curve.baseline,
        number=number,
    )


def _points(point: Point) -> list[CurvePoint]:
    """One CurvePoint for each variant that has rounds at this value."""
    measured = []
    for series in series_of(point.measurement):
        if series.rounds:
            values = series.values(point.measurement.metric)
            low, high = estimators.median_interval(values) or (None, None)
            rounds = tuple(series.rounds)
            measured.append(CurvePoint(point.value, series.name, rounds, statistics.median(values), low, high))
    return measured


def _not_comparable(curve: Curve) -> list[str]:
    """The reason why the variants cannot be compared on this machine; empty when they can."""
    source = curve.points[0].measurement.source
    reason = source.blind_spot(*range(len(source.names)))
    return [reason] if reason else []


def _guests(about: About) -> list[str]:
    """What the guests were, where servers ran in any: a chart is read without its fingerprint."""
    return [f"guests: {text}" for name, text in about.fingerprint.items() if name == "guests"]


def _marks(curve: Curve) -> list[str]:
    """A note for each value at which the load generator was the bottleneck."""
    notes = []
    for point in curve.points:
        rounds = {series.name: series.rounds for series in series_of(point.measurement)}
        if mark := load_generator.mark(rounds):
            notes.append(f"{curve.field}={point.value}: {mark}")
    return notes
