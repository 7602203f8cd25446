"""Entry: one line of the history, one claim of one run; and how the entries of a results directory are made."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Mapping

from pytest_dbcluster import formatting
from pytest_dbcluster.reporting import rounds_csv
from pytest_dbcluster.reporting.documents import json_text
from pytest_dbcluster.reporting.documents.run_document import MachineDocument, RunDocument
from pytest_dbcluster.reporting.history.drift import DriftPoint
from pytest_dbcluster.reporting.records import ClaimRecord

FORMAT = 1
KNOWN = json_text.Format(FORMAT, {}, "it stays in the file, and counts for nothing", "the run can be added again")
CLAIM, ACCEPTED = "claim", "accepted"


@dataclasses.dataclass(frozen=True)
class SeriesKey:
    """What the runs of one series have in common: their ratios can be compared.

    machine: its hardware, as text (``machine_key``). release: with exact versions left out, such as ``mariadb:10.11``.
    """

    claim_id: str
    release: str
    machine: str
    provisioner: str
    profile: str


@dataclasses.dataclass(frozen=True)
class Entry:
    """One claim of one run.

    kind: ``claim``. run: the run's id. time: when the run began, in seconds since 1970 (UTC). commit, dirty: as in
    RunDocument. release: such as ``mariadb:10.11``; version: with the exact version. machine: as in SeriesKey. test:
    node id. text: the claim as written. outcome: ``holds``, ``fails`` or ``inconclusive``. ratio, low, high: of the
    candidate's speed to the baseline's, with the sequential interval. error: the standard error of the log ratio, from
    the noise of the rounds. medians: by variant, the median of the metric. pairs: of rounds. repeat: the command that
    repeats the test. anchor: operations/s of the run's anchor; None where it was not measured. seconds: of the whole
    test, with the starts of its clusters; None where it did not end in this run, and in lines of older versions.
    busy: says that others took cores of the machine; empty where they did not, and in lines of older versions.
    """

    format: int
    kind: str
    claim_id: str
    run: str
    time: float
    commit: str | None
    dirty: bool | None
    release: str
    version: str
    machine: str
    provisioner: str
    profile: str
    test: str
    text: str
    load: str
    metric: str
    candidate: str
    baseline: str
    outcome: str
    ratio: float
    low: float
    high: float
    error: float
    medians: Mapping[str, float]
    pairs: int
    repeat: str
    anchor: float | None = None
    seconds: float | None = None
    busy: str = ""

    def __hash__(self) -> int:
        return hash((self.run, self.key))

    @property
    def key(self) -> SeriesKey:
        """The series that this entry belongs to."""
        return SeriesKey(self.claim_id, self.release, self.machine, self.provisioner, self.profile)

    @property
    def point(self) -> DriftPoint:
        """The log ratio with its error."""
        return DriftPoint(_log(self.ratio), self.error)

    def speed(self, variant: str) -> DriftPoint:
        """The log of a variant's median, relative to the run's anchor; nan where either is missing."""
        median, anchor = self.medians.get(variant, math.nan), self.anchor or math.nan
        return DriftPoint(_log(median / anchor), self.error / math.sqrt(2))


@dataclasses.dataclass(frozen=True)
class Acceptance:
    """From this run on a series has a new level: earlier runs are not compared with later ones.

    kind: ``accepted``. run: the id of the first run of the new level. reason: of the person who accepted it. time: when
    it was accepted, in seconds since 1970 (UTC).
    """

    format: int
    kind: str
    claim_id: str
    run: str
    reason: str
    time: float


def _log(value: float) -> float:
    """The natural log; of 0 minus infinity, and nan of what has none."""
    if value > 0:
        return math.log(value)
    return -math.inf if value == 0 else math.nan


def machine_key(machine: MachineDocument) -> str:
    """The hardware that results depend on. Its id is left out: hosted runners have another one in each run."""
    disk = f", {machine.file_system}" if machine.file_system else ""
    memory = formatting.gibibytes(machine.memory)
    return f"{machine.cpus} x {machine.cpu}, {machine.cores:g} usable, {memory}{disk}"


def entry_of(record: ClaimRecord, run: RunDocument, anchor: float | None = None, seconds: float | None = None) -> Entry:
    """The entry of a claim of a run. anchor, seconds: as in Entry."""
    verdict = record.verdict
    releases = [release.partition(" ")[0] for release in record.release.split(", ")]
    return Entry(
        format=FORMAT,
        kind=CLAIM,
        claim_id=record.claim_id,
        run=run.run_id,
        time=run.began,
        commit=run.commit,
        dirty=run.dirty,
        release=", ".join(releases),
        version=record.release,
        machine=machine_key(run.machine),
        provisioner=record.provisioner,
        profile=record.profile,
        test=record.test,
        text=record.text,
        load=record.load,
        metric=record.metric,
        candidate=record.candidate,
        baseline=record.baseline,
        outcome=verdict.outcome.value,
        ratio=verdict.ratio,
        low=verdict.low,
        high=verdict.high,
        error=verdict.pair_sd / math.sqrt(verdict.pairs) if verdict.pairs else math.inf,
        medians={name: statistics.median(rounds_csv.values(record, name)) for name in record.rounds if verdict.pairs},
        pairs=verdict.pairs,
        repeat=record.repeat,
        anchor=anchor,
        seconds=seconds,
        busy=record.others.busy if record.others else "",
    )
