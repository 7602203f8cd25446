"""Schema: the JSON lines in which claims and curves are saved, and how they are read back as the same records.

There are three kinds of lines:

- ``claims.jsonl`` has a ClaimDocument for each claim.
- ``curves.jsonl`` has a CurveDocument for each curve.
- Ledgers are large and have files of their own: the ``ledgers_file`` of a claim or curve has a LedgerDocument for each
  round with a ledger.

Every line has a format number. Raise FORMAT when a name is removed or changes its meaning. A name may be added without
raising it: readers ignore names that they do not know.

JSON has no infinity: a number that is not finite is the string "inf", "-inf" or "nan". The CSV files and the Markdown
of a results directory are made from the same records; nothing reads them back.

A Message is what a worker of pytest-xdist sends; it is never saved.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_dbcluster.claims import critical_values
from pytest_dbcluster.claims.carry_over import CarryOver
from pytest_dbcluster.claims.claim import Verdict
from pytest_dbcluster.claims.cluster_difference import ClusterDifference
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.measuring import remarks
from pytest_dbcluster.measuring.evidence import SpecDocument
from pytest_dbcluster.measuring.round_trips import RoundTripsTaken
from pytest_dbcluster.network import Delay
from pytest_dbcluster.reporting import rounds_csv
from pytest_dbcluster.reporting.documents import json_text
from pytest_dbcluster.reporting.documents.json_text import Document
from pytest_dbcluster.reporting.records import ClaimRecord, CurvePoint, CurveRecord
from pytest_dbcluster.rounds import busy_machine, pairing
from pytest_dbcluster.rounds.histogram import Histogram
from pytest_dbcluster.rounds.ledger import Ledger, LedgerEntry
from pytest_dbcluster.rounds.open_loop import ArrivalRate
from pytest_dbcluster.rounds.round import Round

FORMAT = 3
OLDER = {
    1: "it kept the seconds of the rounds and not the rounds",
    2: "its rounds were drawn in another order, and judged at other looks",
}
KNOWN = json_text.Format(FORMAT, OLDER)
CLAIMS, CURVES = "claims.jsonl", "curves.jsonl"


@dataclasses.dataclass(frozen=True)
class RoundDocument(Round):
    """A Round without its ledger. ledger_line: the ledger's line in ``ledgers_file``, 1-based; None without one."""

    ledger_line: int | None = None


@dataclasses.dataclass(frozen=True)
class VoidBlock:
    """What did not count. block: its number, as in the rounds. reason: the variant that made it void, and why."""

    block: int
    reason: str


@dataclasses.dataclass(frozen=True)
class ClaimDocument:
    """A line of ``claims.jsonl``: the fields of a ClaimRecord, and values derived from them for other readers.

    began: the start of the first round's load, in seconds since 1970 (UTC); None without rounds. look: the number of
    the look that decided, 1-based; looks: the numbers of pairs at which this claim could be judged. baseline_first: for
    each pair of ``candidate`` and ``baseline`` whether the baseline ran first. rounds: by variant, the rounds that the
    claim used; the n-th of all variants are the n-th pair. seconds: by variant, the measured seconds of each of these
    rounds. values: by variant, the claim's metric for each of these rounds, in the unit in which it is shown. void: the
    rounds and blocks that did not count. void_rounds: the rounds of each of them. rounds_file, ledgers_file,
    chart_file, timeline_file: paths relative to the results directory; None where there is no such file. Fields with a
    default are missing in lines that were written before there were such fields.
    """

    format: int
    began: float | None
    look: int
    looks: tuple[int, ...]
    baseline_first: tuple[bool, ...]
    instances: int
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
    published_seconds: Mapping[str, tuple[float, ...]]
    drains: Mapping[str, float]
    drained: float | None
    void: tuple[VoidBlock, ...]
    arrival_rate: ArrivalRate | None
    limited: str
    cluster_difference: ClusterDifference | None
    seconds: Mapping[str, tuple[float, ...]]
    values: Mapping[str, tuple[float, ...]]
    rounds: Mapping[str, tuple[RoundDocument, ...]]
    void_rounds: tuple[tuple[RoundDocument, ...], ...]
    rounds_file: str
    ledgers_file: str | None
    chart_file: str | None
    carry_over: CarryOver | None = None  # lines of earlier versions have none
    claim_id: str = ""
    kind: str = ""
    provisioner: str = ""
    storage: str = ""
    parity: str = ""
    specs: Mapping[str, SpecDocument] = dataclasses.field(default_factory=dict)
    sweep_field: str = ""
    sweep_value: int | float | str | bool | None = None
    timeline_file: str | None = None
    depends_on: Mapping[str, str] = dataclasses.field(default_factory=dict)
    run_id: str = ""
    data_fits: str = ""
    network: Mapping[str, tuple[Delay, ...]] = dataclasses.field(default_factory=dict)
    round_trips: RoundTripsTaken | None = None
    tries: int = 1
    others: busy_machine.OthersLoad | None = None


@dataclasses.dataclass(frozen=True)
class PointDocument:
    """A CurvePoint. value: the value of the curve's field; converted to text unless it is a number, text or None."""

    value: int | float | str | bool | None
    variant: str
    rounds: tuple[RoundDocument, ...]
    median: float
    low: float | None
    high: float | None


@dataclasses.dataclass(frozen=True)
class CurveDocument:
    """A line of ``curves.jsonl``: the fields of a CurveRecord.

    table_file, ledgers_file: paths relative to the results directory; None where there is no such file. Fields with a
    default are missing in older lines.
    """

    format: int
    test: str
    load: str
    field: str
    metric: str
    release: str
    profile: str
    seed: int
    fingerprint: Mapping[str, str]
    points: tuple[PointDocument, ...]
    notes: tuple[str, ...]
    table_file: str
    ledgers_file: str | None
    drawn: int = 0
    depends_on: Mapping[str, str] = dataclasses.field(default_factory=dict)
    baseline: str = ""
    number: int = 0


@dataclasses.dataclass(frozen=True)
class TypeDocument:
    """A LedgerEntry: the transactions of one type.

    attempts: by n (1-based), the number of transactions that ended at their n-th attempt. latencies: counts by bucket
    (``rounds/histogram.py``). Older lines have no unknown_there and unknown_gone.
    """

    attempts: Mapping[int, int]
    committed: int
    rolled_back: int
    failed: int
    unknown: int
    aborted_seconds: float
    latencies: Mapping[int, int]
    unknown_there: int = 0
    unknown_gone: int = 0


@dataclasses.dataclass(frozen=True)
class LedgerDocument:
    """The ledger of one round; its line also has the round's ``RunResult.figures``, by name.

    block, position: of the round, 0-based, as in the rounds of the claim. void: why the round does not count; empty
    when it counts. by_second: the successful operations of each second of the round. errors: (number of the server
    error, node, how often).
    """

    format: int
    block: int
    position: int
    variant: str
    void: str
    by_second: tuple[int, ...]
    errors: tuple[tuple[int, str, int], ...]
    types: Mapping[str, TypeDocument]


@dataclasses.dataclass(frozen=True)
class Message:
    """A message from a worker of pytest-xdist to the process that the user started.

    kind: ``line`` for a line of text; ``claim`` or ``curve`` for a record that the worker has saved in its own results
    directory; ``taken over``, ``outdated`` or ``kept`` for an answer or a curve of the run that this one continues.
    text, colour: the line to show. directory: the worker's results directory. line: the line of the record in its
    ``claims.jsonl`` or ``curves.jsonl``, 1-based. test, claim_id: of the earlier answer. curve: the key of the earlier
    curve. now, repeat: the test that takes it over, and the command that repeats it.
    """

    kind: str
    text: str = ""
    colour: str = ""
    directory: str = ""
    line: int = 0
    test: str = ""
    claim_id: str = ""
    now: str = ""
    repeat: str = ""
    curve: tuple[str, ...] = ()


# The fields that are the same in a record and in its document.
_CLAIM = [field.name for field in dataclasses.fields(ClaimRecord) if field.name not in ("rounds", "void")]
_CURVE = [field.name for field in dataclasses.fields(CurveRecord) if field.name != "points"]
_POINT = [field.name for field in dataclasses.fields(CurvePoint) if field.name not in ("rounds", "value")]
_ROUND = [field.name for field in dataclasses.fields(Round) if field.name != "outcome"]
_ENTRY = [field.name for field in dataclasses.fields(LedgerEntry) if field.name != "latencies"]


def _alike(names: Sequence[str], value: object) -> dict[str, Any]:
    """The fields of a record or document with these names."""
    return {name: getattr(value, name) for name in names}


def claim_line(
    record: ClaimRecord,
    rounds_file: str,
    ledgers_file: str | None,
    chart_file: str | None,
    timeline_file: str | None = None,
) -> bytes:
    """The line of a claim in ``claims.jsonl``, with its line end; files are relative to the results directory."""
    numbers = _numbers(claim_rounds(record))
    by_variant = record.rounds.items()
    document = ClaimDocument(
        format=FORMAT,
        began=min((measured.started for rounds in record.rounds.values() for measured in rounds), default=None),
        look=record.verdict.look,
        looks=critical_values.looks(record.instances),
        baseline_first=_baseline_first(record),
        void=tuple(VoidBlock(block[0].block, remarks.reason(block)) for block in record.void),
        seconds={name: tuple(measured.seconds for measured in rounds) for name, rounds in by_variant},
        values={name: tuple(rounds_csv.values(record, name)) for name in record.rounds},
        rounds={name: _round_documents(rounds, numbers) for name, rounds in by_variant},
        void_rounds=tuple(_round_documents(block, numbers) for block in record.void),
        rounds_file=rounds_file,
        ledgers_file=ledgers_file,
        chart_file=chart_file,
        timeline_file=timeline_file,
        **_alike(_CLAIM, record),
    )
    return json_text.encoded(document)


def _baseline_first(record: ClaimRecord) -> tuple[bool, ...]:
    """For each pair of the compared variants whether the baseline ran first; empty without rounds of both."""
    candidate, baseline = (record.rounds.get(name, ()) for name in (record.candidate, record.baseline))
    return pairing.baseline_first(candidate, baseline) if len(candidate) == len(baseline) else ()


def curve_line(record: CurveRecord, table_file: str, ledgers_file: str | None) -> bytes:
    """The line of a curve in ``curves.jsonl``, with its line end; files are relative to the results directory."""
    numbers = _numbers(curve_rounds(record))
    points = tuple(
        PointDocument(
            value=point.value if isinstance(point.value, int | float | str | None) else str(point.value),
            rounds=_round_documents(point.rounds, numbers),
            **_alike(_POINT, point),
        )
        for point in record.points
    )
    return json_text.encoded(
        CurveDocument(
            format=FORMAT, points=points, table_file=table_file, ledgers_file=ledgers_file, **_alike(_CURVE, record)
        )
    )


def ledger_lines(rounds: Iterable[Round]) -> bytes:
    """A line for each round that has a ledger; empty when no round has one."""
    return b"".join(
        json_text.encoded(_ledger_document(measured, measured.outcome.ledger), measured.outcome.figures)
        for measured in rounds
        if measured.outcome.ledger
    )


def claim_rounds(record: ClaimRecord) -> list[Round]:
    """The rounds of a claim in the order of its ledgers: used rounds as they ran, then the rounds of void blocks."""
    used = [measured for rounds in record.rounds.values() for measured in rounds]
    used.sort(key=lambda measured: (measured.block, measured.position))
    return [*used, *(measured for block in record.void for measured in block)]


def curve_rounds(record: CurveRecord) -> list[Round]:
    """The rounds of a curve in the order of its ledgers: point by point."""
    return [measured for point in record.points for measured in point.rounds]


def _numbers(rounds: Sequence[Round]) -> dict[int, int]:
    """By ``id`` of a round, the line of its ledger, 1-based."""
    with_ledger = (measured for measured in rounds if measured.outcome.ledger)
    return {id(measured): number for number, measured in enumerate(with_ledger, 1)}


def _round_documents(rounds: Iterable[Round], numbers: Mapping[int, int]) -> tuple[RoundDocument, ...]:
    return tuple(_round_document(measured, numbers) for measured in rounds)


def _round_document(measured: Round, numbers: Mapping[int, int]) -> RoundDocument:
    outcome = dataclasses.replace(measured.outcome, ledger=None)
    return RoundDocument(outcome=outcome, ledger_line=numbers.get(id(measured)), **_alike(_ROUND, measured))


def _ledger_document(measured: Round, ledger: Ledger) -> LedgerDocument:
    return LedgerDocument(
        format=FORMAT,
        block=measured.block,
        position=measured.position,
        variant=measured.variant,
        void=measured.void,
        by_second=measured.outcome.by_second,
        errors=tuple((number, node, times) for (number, node), times in ledger.errors.items()),
        types={
            name: TypeDocument(latencies=entry.latencies.counts, **_alike(_ENTRY, entry))
            for name, entry in ledger.entries.items()
        },
    )


def read_claims(directory: Path, *, whole: bool = True) -> list[ClaimRecord]:
    """The claims of a results directory, equal to the records that were saved; empty when no claim was answered.

    ``whole=False`` leaves out a last line without its end, which a killed run may leave (``unfinished``). Raises
    ConfigError, which names file and line, for a missing directory, a line that is incomplete or not JSON, JSON
    that is not a claim, a format that this version does not read, and a missing ledger.
    """
    return [claim_of(directory, document) for document in claim_documents(directory, whole=whole)]


def read_curves(directory: Path, *, whole: bool = True) -> list[CurveRecord]:
    """The curves of a results directory. ``whole`` and errors are those of ``read_claims``."""
    return [curve_of(directory, document) for document in curve_documents(directory, whole=whole)]


def claim_documents(directory: Path, *, whole: bool = True) -> Iterator[ClaimDocument]:
    """The lines of ``claims.jsonl``. ``whole`` and errors are those of ``read_claims``."""
    for where, text in _lines(directory, CLAIMS, whole=whole):
        yield _document(text, ClaimDocument, where)


def curve_documents(directory: Path, *, whole: bool = True) -> Iterator[CurveDocument]:
    """The lines of ``curves.jsonl``. ``whole`` and errors are those of ``read_claims``."""
    for where, text in _lines(directory, CURVES, whole=whole):
        yield _document(text, CurveDocument, where)


def unfinished(directory: Path) -> list[str]:
    """The names of the files whose last line has no end: the run ended while writing it. Raises OSError."""
    paths = [path for name in (CLAIMS, CURVES) if (path := directory / name).exists()]
    return [path.name for path in paths if (text := path.read_bytes()) and not text.endswith(b"\n")]


def claim_document(directory: Path, line: int) -> ClaimDocument:
    """One line of ``claims.jsonl``, 1-based. Raises ConfigError as ``read_claims`` does."""
    return _document_on(directory, CLAIMS, line, ClaimDocument)


def curve_document(directory: Path, line: int) -> CurveDocument:
    """One line of ``curves.jsonl``, 1-based. Raises ConfigError as ``read_claims`` does."""
    return _document_on(directory, CURVES, line, CurveDocument)


def claim_of(directory: Path, document: ClaimDocument) -> ClaimRecord:
    """The record of a claim in this results directory. Raises ConfigError when its ledgers cannot be read."""
    ledgers = _ledgers(directory, document.ledgers_file)
    return ClaimRecord(
        rounds={name: _rounds_of(rounds, ledgers) for name, rounds in document.rounds.items()},
        void=tuple(_rounds_of(block, ledgers) for block in document.void_rounds),
        **_alike(_CLAIM, document),
    )


def curve_of(directory: Path, document: CurveDocument) -> CurveRecord:
    """The record of a curve in this results directory. Raises ConfigError when its ledgers cannot be read."""
    ledgers = _ledgers(directory, document.ledgers_file)
    points = tuple(
        CurvePoint(value=point.value, rounds=_rounds_of(point.rounds, ledgers), **_alike(_POINT, point))
        for point in document.points
    )
    return CurveRecord(points=points, **_alike(_CURVE, document))


class _Ledgers:
    """The ledgers of a claim or curve, by line number."""

    def __init__(self, path: Path | None, ledgers: Sequence[Ledger]) -> None:
        self._path = path
        self._ledgers = ledgers

    def on(self, line: int) -> Ledger:
        """The ledger on this line, 1-based. Raises ConfigError when there is no such line."""
        if not 0 < line <= len(self._ledgers):
            problem = f"{self._path} has {len(self._ledgers)} lines" if self._path else "no file of ledgers is named"
            raise ConfigError(f"a round has its ledger on line {line}, but {problem}; measure again")
        return self._ledgers[line - 1]


def _ledgers(directory: Path, name: str | None) -> _Ledgers:
    if not name:
        return _Ledgers(None, ())
    if not (directory / name).exists():
        raise ConfigError(f"{directory / name}: the ledgers of a claim or curve are missing; copy whole directories")
    lines = _lines(directory, name)
    return _Ledgers(directory / name, [_ledger_of(_document(text, LedgerDocument, where)) for where, text in lines])


def _ledger_of(document: LedgerDocument) -> Ledger:
    entries = {
        name: LedgerEntry(latencies=Histogram(entry.latencies), **_alike(_ENTRY, entry))
        for name, entry in document.types.items()
    }
    return Ledger(entries, {(number, node): times for number, node, times in document.errors})


def _rounds_of(documents: Iterable[RoundDocument], ledgers: _Ledgers) -> tuple[Round, ...]:
    return tuple(_round_of(document, ledgers) for document in documents)


def _round_of(document: RoundDocument, ledgers: _Ledgers) -> Round:
    ledger = None if document.ledger_line is None else ledgers.on(document.ledger_line)
    return Round(outcome=dataclasses.replace(document.outcome, ledger=ledger), **_alike(_ROUND, document))


def message(content: Message) -> bytes:
    """The message as bytes, for another process of the same run."""
    return json_text.encoded(content)


def message_of(text: bytes) -> Message:
    """The message in these bytes, as ``message`` writes it. Raises ConfigError for other bytes."""
    where = "a message of a worker"
    return json_text.converted(json_text.decoded(text, where, KNOWN), Message, where, KNOWN)


def _lines(directory: Path, name: str, *, whole: bool = True) -> Iterator[tuple[str, bytes]]:
    """Each line of a file after its name for errors, ``FILE, line 1``; nothing when there is no such file.

    ``whole=False`` leaves out a last line without its end. Raises ConfigError when there is no such directory.
    """
    if not directory.is_dir():
        raise ConfigError(f"{directory}: there is no such results directory")
    path = directory / name
    if path.exists():
        with path.open("rb") as file:
            for number, text in enumerate(file, 1):
                if whole or text.endswith(b"\n"):
                    yield f"{path}, line {number}", text


def _document_on(directory: Path, name: str, line: int, kind: type[Document]) -> Document:
    """The document on a line of a file, 1-based."""
    for number, (where, text) in enumerate(_lines(directory, name), 1):
        if number == line:
            return _document(text, kind, where)
    raise ConfigError(f"{directory / name} has no line {line}")


def _document(text: bytes, kind: type[Document], where: str) -> Document:
    """The document on a line. Raises ConfigError, which begins with ``where``, for a line that is no such document."""
    return json_text.read(text, kind, where, KNOWN)
