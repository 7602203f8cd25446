"""What a claim leaves behind: everything that terminal, Allure, history and a reader later need."""

from __future__ import annotations

import dataclasses
import platform
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import psutil

from pytest_dbcluster import redaction
from pytest_dbcluster.claims import estimators
from pytest_dbcluster.claims.claim import Verdict
from pytest_dbcluster.clusters.servers import connection
from pytest_dbcluster.measuring import remarks
from pytest_dbcluster.measuring.answer import Answer
from pytest_dbcluster.measuring.curve import Curve, Point
from pytest_dbcluster.measuring.series import series_of
from pytest_dbcluster.reporting.published import Published
from pytest_dbcluster.rounds import load_generator
from pytest_dbcluster.rounds.open_loop import ArrivalRate
from pytest_dbcluster.rounds.round import Round
from pytest_dbcluster.testbed.testbed import Testbed
from pytest_dbcluster.testbed.variants import Variant


@dataclasses.dataclass(frozen=True)
class ClaimRecord:
    """One claim with its answer.

    test: the test's node id.
    text: the claim as written, such as ``flush_2.beats(galera3)``.
    load: the workload's name.
    candidate, baseline: names of the two variants whose ratio the verdict gives; of an order the two neighbours that
        lie closest. ``published``, ``drained`` and ``differences`` are about the same two.
    metric: what is compared, such as ``throughput`` or ``p95``.
    message: the whole text of the verdict, several lines.
    published: the published ratio candidate / baseline of speed; None where there is none.
    asserted: False for a comparison that is only printed.
    measured_seconds: the measured seconds of all rounds that the claim used, of all variants together.
    wall_seconds: seconds from the test's call of ``measure`` to the answer.
    seed: of the run; it sets the order of the rounds.
    release: release and exact version, such as ``mariadb:10.11 10.11.19``; several are joined by ``, ``.
    profile: the profile of the run, such as ``quick``.
    durability: by variant, what a commit survives, in words.
    differences: by server variable on which the two variants differ, its values (baseline's, candidate's).
    fingerprint: the machine, kernel and client, as text by name.
    repeat: the command that repeats the test.
    rounds: by variant, the rounds that the claim used. The n-th rounds of all variants belong to one block.
    published_seconds: by variant, the published seconds of its cell: average, then least and most where they are
        published; empty where there is no cell.
    drains: by variant, the median number of seconds from the end of a round until all nodes had applied it; empty
        where nothing had to drain.
    drained: the ratio candidate / baseline of speed with the drain included; None where nothing had to drain.
    void: the blocks that did not count and were drawn again, each with the rounds of all its variants.
    arrival_rate: that of an open loop; None of a closed loop.
    limited: says that the load generator was the bottleneck; empty when it was not.
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


@dataclasses.dataclass(frozen=True)
class Asked:
    """Where and how a claim was asked: the test's node id, the profile, the command that repeats it."""

    test: str
    profile: str
    repeat: str


def claim_record(
    answer: Answer, testbed: Testbed, published: Published | None, asked: Asked, wall_seconds: float
) -> ClaimRecord:
    """What an answer leaves behind; ``wall_seconds`` counts resets, switches and settling too."""
    candidate, baseline = answer.compared
    rounds = {variant.name: tuple(variant.rounds) for variant in answer.variants}
    of_both = {variant.name: variant.rounds for variant in (candidate, baseline)}
    variants = {variant.name: testbed.variants[variant.number] for variant in answer.variants}
    ratio, seconds = _published_beside(answer, variants, testbed.mode, published)
    return ClaimRecord(
        test=asked.test,
        text=answer.text,
        load=testbed.load,
        candidate=candidate.name,
        baseline=baseline.name,
        metric=answer.metric,
        verdict=answer.verdict,
        message=redaction.redact(answer.message),
        published=ratio,
        asserted=answer.asserted,
        measured_seconds=sum(done.seconds for several in rounds.values() for done in several),
        wall_seconds=wall_seconds,
        seed=answer.seed,
        release=releases(list(variants.values())),
        profile=asked.profile,
        durability={variant.name: testbed.durability(variant.number) for variant in answer.variants},
        differences=testbed.differences(candidate.number, baseline.number),
        fingerprint=fingerprint(),
        repeat=asked.repeat,
        rounds=rounds,
        published_seconds=seconds,
        drains=remarks.drains(rounds),
        drained=remarks.drained_ratio(of_both, answer.metric),
        arrival_rate=answer.arrival_rate,
        limited=load_generator.mark(rounds),
        void=tuple(map(tuple, answer.void)),
    )


def _published_beside(
    answer: Answer, variants: Mapping[str, Variant], mode: str, published: Published | None
) -> tuple[float | None, dict[str, tuple[float, ...]]]:
    """The published ratio of the two compared, and the published seconds of each variant."""
    if published is None:
        return None, {}
    candidate, baseline = (variants[variant.name] for variant in answer.compared)
    seconds = {name: published.seconds(variant, mode) for name, variant in variants.items()}
    return published.ratio(candidate, baseline, answer.metric, mode), seconds


def releases(variants: Sequence[Variant]) -> str:
    """The releases of these variants with their exact versions."""
    return ", ".join(dict.fromkeys(f"{one.release.name} {one.release.version}" for one in variants))


@dataclasses.dataclass(frozen=True)
class CurvePoint:
    """One variant at one value of a curve.

    value: that of the curve's field. variant: its name. rounds: in the order in which they ran. median: of the curve's
    metric over the rounds, in the metric's unit. low, high: the 95 % interval of the median; None for fewer than 6
    rounds.
    """

    value: object
    variant: str
    rounds: tuple[Round, ...]
    median: float
    low: float | None
    high: float | None


@dataclasses.dataclass(frozen=True)
class CurveRecord:
    """What was measured of a curve: everything that table, chart and file need.

    test: the test's node id. load: the workload's name. field: the field of the workload that goes from value to value.
    metric: that of the load. release, profile, seed, fingerprint: as in a ClaimRecord. points: value by value, and at
    each value variant by variant. notes: what a reader has to know of it, such as nodes that share cores or a load
    generator that was the bottleneck.
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

    @property
    def values(self) -> list[object]:
        """Each value once, in order."""
        return list(dict.fromkeys(point.value for point in self.points))

    @property
    def variants(self) -> list[str]:
        """Each variant once, in order."""
        return list(dict.fromkeys(point.variant for point in self.points))


def fingerprint() -> Mapping[str, str]:
    """What the figures depend on beyond the servers: machine, kernel, client."""
    return {
        "cpu": f"{psutil.cpu_count()} x {_cpu_model()}",
        "memory": f"{psutil.virtual_memory().total / 2**30:.1f} GiB",
        "kernel": platform.release(),
        "python": platform.python_version(),
        "control driver": connection.driver(),
    }


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


@dataclasses.dataclass(frozen=True)
class About:
    """What the curves of a run share."""

    profile: str
    seed: int
    fingerprint: Mapping[str, str]


class Curves:
    """The curves of a run. Those of a test are told when its body has ended, however it ended."""

    def __init__(self, tell: Callable[[CurveRecord], None], about: About) -> None:
        self._tell = tell
        self._about = about
        self._begun: list[Curve] = []

    def begin(self, curve: Curve) -> None:
        """A test has declared it."""
        self._begun.append(curve)

    def end(self) -> None:
        """Tell what was measured of the curves of this test."""
        begun, self._begun = self._begun, []
        for curve in begun:
            if made := curve_record(curve, self._about):
                self._tell(made)


def curve_record(curve: Curve, about: About) -> CurveRecord | None:
    """A curve as a value; None of one that has no round."""
    points = [found for point in curve.points for found in _points(point)]
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
        notes=(*_not_comparable(curve), *_marks(curve)),
    )


def _points(point: Point) -> list[CurvePoint]:
    found = []
    for one in series_of(point.measurement):
        if one.rounds:
            values = one.values(point.measurement.metric)
            low, high = estimators.median_interval(values) or (None, None)
            rounds = tuple(one.rounds)
            found.append(CurvePoint(point.value, one.name, rounds, statistics.median(values), low, high))
    return found


def _not_comparable(curve: Curve) -> list[str]:
    """Why the variants cannot be compared here, where they cannot."""
    source = curve.points[0].measurement.source
    why = source.blind_spot("differs", *range(len(source.names)))
    return [why] if why else []


def _marks(curve: Curve) -> list[str]:
    """At which values the load generator was the limit."""
    rounds = {point.value: {one.name: one.rounds for one in series_of(point.measurement)} for point in curve.points}
    return [f"{curve.field}={value}: {said}" for value, many in rounds.items() if (said := load_generator.mark(many))]
