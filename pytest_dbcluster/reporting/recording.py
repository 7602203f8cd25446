"""Recording: how the record of a claim is made from its answer, and the record of a curve from its points."""

from __future__ import annotations

import dataclasses
import math
import platform
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import psutil

from pytest_dbcluster import formatting, redaction
from pytest_dbcluster.claims import critical_values, estimators, intervals
from pytest_dbcluster.measuring import remarks
from pytest_dbcluster.measuring.answer import Answer
from pytest_dbcluster.measuring.curve import Curve, Point
from pytest_dbcluster.measuring.evidence import ResolvedSpec
from pytest_dbcluster.measuring.series import Series
from pytest_dbcluster.reporting.documents import json_text
from pytest_dbcluster.reporting.documents.claim_id import claim_id, join_distinct
from pytest_dbcluster.reporting.published import Published
from pytest_dbcluster.reporting.records import ClaimRecord, CurvePoint, CurveRecord
from pytest_dbcluster.rounds import busy_machine, load_generator, metrics, pairing
from pytest_dbcluster.system import probes

# The fields that an answer and its record have in common. An answer has a carry-over for each pair of its variants.
_OF_ANSWER, _OF_RECORD = ({field.name for field in dataclasses.fields(kind)} for kind in (Answer, ClaimRecord))
SHARED = (_OF_ANSWER & _OF_RECORD) - {"carry_over"}
ALPHA = 0.0005  # of each end of the interval of a ratio in a curve


@dataclasses.dataclass(frozen=True)
class Asked:
    """The test that makes a claim."""

    test: str
    """Its node id."""

    profile: str
    """The profile of the run."""

    repeat: str
    """The command that repeats the test."""

    provisioner: str = "local"
    """The provisioner of the run."""

    swept: tuple[str, object] | None = None
    """The field and value of a point of a sweep; None without a sweep."""


def claim_record(answer: Answer, published: Published | None, asked: Asked, wall_seconds: float) -> ClaimRecord:
    """The record of an answer and its evidence. ``wall_seconds`` includes resets, switches of variants, settling."""
    evidence = answer.evidence
    candidate, baseline = _compared_names(answer)
    rounds = {variant.name: tuple(variant.rounds) for variant in answer.variants}
    compared = {variant.name: variant.rounds for variant in answer.contrast}
    has_speeds = answer.claim.of_kind.is_ratio and answer.claim.of_kind.paired and not answer.claim.of_kind.composed
    ratio, seconds = _published_figures(answer, published)
    return ClaimRecord(
        test=asked.test,
        text=answer.text,
        candidate=candidate,
        baseline=baseline,
        message=redaction.redact("\n".join([answer.message, *(published.lines if published else [])])),
        published=ratio,
        measured_seconds=sum({id(one): one.seconds for many in rounds.values() for one in many}.values()),
        wall_seconds=wall_seconds,
        release=releases(list(evidence.specs.values())),
        profile=asked.profile,
        durability=evidence.durability,
        data=evidence.data,
        files=evidence.files,
        differences=evidence.differences.get((candidate, baseline), {}),
        fingerprint=fingerprint(evidence.environment),
        repeat=asked.repeat,
        rounds=rounds,
        published_seconds=seconds,
        drains=remarks.drains(rounds),
        drained=remarks.drained_ratio(compared, answer.metric) if has_speeds else None,
        limited=load_generator.mark(rounds),
        void_rounds=tuple(map(tuple, answer.void)),
        **{name: getattr(answer, name) for name in SHARED},
        **_remarks(answer),
        **_identity(answer, asked),
        **_sweep_point(asked.swept),
    )


def _compared_names(answer: Answer) -> tuple[str, str]:
    """The names of candidate and baseline; the second is empty for a claim about one variant."""
    names = [variant.name for variant in answer.contrast]
    return names[0], names[1] if len(names) > 1 else ""


def _remarks(answer: Answer) -> dict[str, Any]:
    """The fields of a record about other influences on the estimate, and about the network."""
    evidence = answer.evidence
    return {
        "data_fits": evidence.data_fits.get(_compared_names(answer), ""),
        "cluster_difference": answer.difference,
        "carry_over": answer.contrast_carry_over,
        "network": evidence.delays,
        "others": busy_machine.others_load({one.name: one.rounds for one in answer.variants}, evidence.others_before),
    }


def _identity(answer: Answer, asked: Asked) -> dict[str, Any]:
    """The fields of a record that identify its claim and its clusters."""
    specs = {name: resolved.document for name, resolved in answer.evidence.specs.items()}
    releases = [spec.release for spec in specs.values()]
    return {
        "claim_id": claim_id(asked.test, releases, answer.identity, answer.load, answer.content),
        "kind": answer.claim.kind,
        "provisioner": asked.provisioner,
        "storage": join_distinct(spec.storage for spec in specs.values()),
        "parity": join_distinct(spec.parity for spec in specs.values()),
        "specs": specs,
    }


def _sweep_point(point: tuple[str, object] | None) -> dict[str, Any]:
    """The fields of a record about the point of a sweep; a value that JSON does not have becomes text."""
    if point is None:
        return {}
    field, value = point
    return {"sweep_field": field, "sweep_value": json_text.json_value(value)}


def _published_figures(
    answer: Answer, published: Published | None
) -> tuple[float | None, dict[str, tuple[float, ...]]]:
    """The published ratio of the two compared variants, and the published seconds of each variant."""
    if published is None or answer.claim.of_kind.composed or not answer.claim.of_kind.is_ratio:
        return None, {}
    specs, mode = answer.evidence.specs, answer.evidence.mode
    candidate, baseline = (specs[variant.name] for variant in answer.contrast)
    seconds = {name: published.seconds(resolved, mode) for name, resolved in specs.items()}
    return published.ratio(candidate, baseline, answer.metric, mode), seconds


def releases(specs: Sequence[ResolvedSpec]) -> str:
    """The releases of these variants with exact versions, each once: ``mariadb:10.11 10.11.19, mysql:8.4 8.4.3``."""
    return ", ".join(dict.fromkeys(f"{one.document.release} {one.document.version}" for one in specs))


def fingerprint(hosts: Mapping[str, str]) -> Mapping[str, str]:
    """What the figures depend on besides the servers: CPU, memory, kernel, Python, control driver.

    hosts: the same of the hosts (``Evidence.environment``). It replaces what this machine has, because hosts on other
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
    """The profile of the run."""

    seed: int
    """The seed of the run."""

    fingerprint: Mapping[str, str]
    """The machine, kernel and Python, as text by name."""


class Curves:
    """The curves of the current test. ``tell`` gets their records when the test's body ends, also if it fails.

    ``keep`` gets the node id of the test, and the records of the continued run if nothing was drawn since. ``save``
    gets the record of a curve after each point that was drawn.
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
    def count(self) -> int:
        """The number of curves that the test has declared so far."""
        return len(self._begun)

    def begin(self, curve: Curve, depends_on: Mapping[str, str], before: CurveRecord | None = None) -> None:
        """Add a curve that the test has declared. before: its record in the run that this one continues."""
        number = self.count
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
    """The record of a curve; None for a curve without rounds. number: the number of the curve in its test, from 0."""
    points = [measured for point in curve.points for measured in _points(point, _reference(curve))]
    if not points:
        return None
    first = curve.points[0].measurement
    return CurveRecord(
        test=first.test,
        load=curve.load,
        field=curve.field,
        metric=first.metric,
        release=first.release,
        points=tuple(points),
        notes=(*_not_comparable(curve), *_equal_clusters(curve), *curve.notes, *_marks(curve), *_guest_notes(about)),
        drawn=curve.drawn,
        depends_on=depends_on,
        baseline=curve.baseline,
        reference=curve.reference,
        number=number,
        files=_files(curve),
        **dataclasses.asdict(about),
    )


def _reference(curve: Curve) -> dict[str, Series]:
    """The series at the curve's reference; empty without a reference."""
    found = [point.series for point in curve.points if point.value == curve.reference]
    return found[0] if curve.reference else {}


def _points(point: Point, reference: Mapping[str, Series]) -> list[CurvePoint]:
    """One CurvePoint for each variant that has rounds at this value. reference: the series to compare with, by name."""
    measured, data = [], point.measurement.source.data
    for name, series in point.series.items():
        if series.rounds:
            values = series.values(point.measurement.metric)
            low, high = estimators.median_interval(values) or (None, None)
            rounds = tuple(series.rounds)
            median, size = statistics.median(values), data.get(series.name, "")
            compared = _ratio(series, reference[name]) if name in reference else (None, None, None)
            measured.append(CurvePoint(point.value, name, rounds, median, low, high, size, *compared))
    return measured


def _ratio(series: Series, reference: Series) -> tuple[float | None, float | None, float | None]:
    """The ratio of the speeds of two series, with its interval; None for what is not known.

    The interval is that of the last look that bounds the ratio.
    """
    if series.number == reference.number:
        return 1.0, None, None
    source, both = series.measurement.source, (series.rounds, reference.rounds)
    if not both[1] or len(both[0]) != len(both[1]):
        return None, None, None
    speeds = [[metrics.ratio_value(done, source.metric, source.load) for done in rounds] for rounds in both]
    pairs = pairing.pairs_of(*both, (speeds[0], speeds[1]), instances=source.instances_in_turn())
    centre = intervals.estimate(pairs)
    looks = [look for look in critical_values.looks(pairs.instances) if look <= len(pairs)]
    found = (intervals.interval(pairs.first(look), ALPHA) for look in reversed(looks))
    bounded = next((ends for ends in found if all(map(math.isfinite, ends))), intervals.UNBOUNDED)
    ends = estimators.widen(bounded, centre)
    low, high = (estimators.factor(end) if math.isfinite(end) else None for end in ends)
    return estimators.factor(centre), low, high


def _files(curve: Curve) -> dict[str, str]:
    """The digests of the files of all workloads of a curve."""
    sources = [point.measurement.source for point in curve.points]
    return {name: digest for source in sources for files in source.files.values() for name, digest in files.items()}


def _not_comparable(curve: Curve) -> list[str]:
    """The reason why the variants cannot be compared on this machine; empty if they can."""
    source = curve.points[0].measurement.source
    reason = source.blind_spot(*range(len(source.names)))
    return [reason] if reason else []


def _equal_clusters(curve: Curve) -> list[str]:
    """How far equal clusters can differ, for a curve that compares its values; empty for other curves."""
    measurement = curve.points[0].measurement
    numbers = range(len(measurement.source.names))
    known = measurement.source.cluster_difference(*numbers, metric=measurement.metric) if curve.reference else None
    return [dataclasses.replace(known, command="").line(measurement.metric)] if known else []


def _guest_notes(about: About) -> list[str]:
    """A note on the guests in which servers ran; empty without guests. A chart is read without its fingerprint."""
    return [f"guests: {text}" for name, text in about.fingerprint.items() if name == "guests"]


def _marks(curve: Curve) -> list[str]:
    """A note for each value at which the load generator was the bottleneck."""
    notes = []
    for point in curve.points:
        rounds = {name: series.rounds for name, series in point.series.items()}
        if mark := load_generator.mark(rounds):
            notes.append(f"{curve.field}={point.value}: {mark}")
    return notes
