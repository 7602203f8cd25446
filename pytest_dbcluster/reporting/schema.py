"""Schema: how claims and curves are kept as JSON lines, and read back as the records that they were.

Three kinds of lines. ``claims.jsonl`` has a ClaimDocument for each claim, ``curves.jsonl`` a CurveDocument for each
curve. Ledgers are large and stand apart, a LedgerDocument for each round that has one, in the ``ledgers_file`` that
the claim or curve names. Every line carries the number of its format. FORMAT is raised when a name goes or changes its
meaning; a name may be added without that, and readers ignore names that they do not know.

JSON has no infinity: a number that is not finite is the string "inf", "-inf" or "nan" in the place of the number.
The CSV files and the Markdown of a results directory are made from the same records and are not read back.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pytest_dbcluster.claims.claim import Verdict
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.measuring import remarks
from pytest_dbcluster.reporting import rounds_csv
from pytest_dbcluster.reporting.records import ClaimRecord, CurvePoint, CurveRecord
from pytest_dbcluster.rounds.histogram import Histogram
from pytest_dbcluster.rounds.ledger import Ledger, LedgerEntry
from pytest_dbcluster.rounds.open_loop import ArrivalRate
from pytest_dbcluster.rounds.round import Round

FORMAT = 2
OLDER = {1: "it kept the seconds of the rounds and not the rounds"}
CLAIMS, CURVES = "claims.jsonl", "curves.jsonl"

Document = TypeVar("Document")


@dataclasses.dataclass(frozen=True)
class RoundDocument(Round):
    """A Round without its ledger. ledger_line: the line of ``ledgers_file`` that has it, 1-based; None without one."""

    ledger_line: int | None = None


@dataclasses.dataclass(frozen=True)
class VoidBlock:
    """A block that did not count. pair: its number, 1-based. reason: which variant made it void, and why."""

    pair: int
    reason: str


@dataclasses.dataclass(frozen=True)
class ClaimDocument:
    """A line of ``claims.jsonl``: the fields of a ClaimRecord, and what is easier to read than to work out.

    began: when the load of the first round was started, in seconds since 1970 (UTC); None without rounds. seconds: per
    variant the measured seconds of each round that the claim used. values: per variant the claim's metric of each of
    them, in the unit in which it is shown. rounds: per variant those rounds. void: the blocks that did not count;
    void_rounds: the rounds of each of them. The names of files are relative to the results directory.
    """

    format: int
    began: float | None
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
    seconds: Mapping[str, tuple[float, ...]]
    values: Mapping[str, tuple[float, ...]]
    rounds: Mapping[str, tuple[RoundDocument, ...]]
    void_rounds: tuple[tuple[RoundDocument, ...], ...]
    rounds_file: str
    ledgers_file: str | None
    chart_file: str | None


@dataclasses.dataclass(frozen=True)
class PointDocument:
    """A CurvePoint. value: that of the curve's field; as text where it is neither a number nor a text."""

    value: int | float | str | bool | None
    variant: str
    rounds: tuple[RoundDocument, ...]
    median: float
    low: float | None
    high: float | None


@dataclasses.dataclass(frozen=True)
class CurveDocument:
    """A line of ``curves.jsonl``: the fields of a CurveRecord. Names of files are relative to the results directory."""

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


@dataclasses.dataclass(frozen=True)
class TypeDocument:
    """A LedgerEntry: the transactions of one type.

    attempts: how many transactions ended at their n-th attempt, by n. latencies: counts by bucket (histogram.py).
    """

    attempts: Mapping[int, int]
    committed: int
    rolled_back: int
    failed: int
    unknown: int
    aborted_seconds: float
    latencies: Mapping[int, int]


@dataclasses.dataclass(frozen=True)
class LedgerDocument:
    """The ledger of one round; the line has the round's other figures (``RunResult.figures``) as well.

    pair: number of its block, 1-based. position: place in its block, 0-based. void: why the round does not count, empty
    when it does. by_second: good operations of each second of the round. errors: (number, node, times).
    """

    format: int
    pair: int
    position: int
    variant: str
    void: str
    by_second: tuple[int, ...]
    errors: tuple[tuple[int, str, int], ...]
    types: Mapping[str, TypeDocument]


@dataclasses.dataclass(frozen=True)
class Message:
    """What a worker of pytest-xdist sends to the process in front.

    kind: ``line`` for one that is shown, ``claim`` and ``curve`` for one that the worker has kept in a results
    directory of its own. text: the line that is shown, in this colour. directory, line: where the claim or curve is
    kept, and on which line of ``claims.jsonl`` or ``curves.jsonl``, 1-based.
    """

    kind: str
    text: str = ""
    colour: str = ""
    directory: str = ""
    line: int = 0


# The fields that a record and its document have alike.
_CLAIM = [one.name for one in dataclasses.fields(ClaimRecord) if one.name not in ("rounds", "void")]
_CURVE = [one.name for one in dataclasses.fields(CurveRecord) if one.name != "points"]
_POINT = [one.name for one in dataclasses.fields(CurvePoint) if one.name not in ("rounds", "value")]
_ROUND = [one.name for one in dataclasses.fields(Round) if one.name != "outcome"]
_ENTRY = [one.name for one in dataclasses.fields(LedgerEntry) if one.name != "latencies"]


def _alike(names: Sequence[str], value: object) -> dict[str, Any]:
    return {name: getattr(value, name) for name in names}


def claim_line(record: ClaimRecord, rounds_file: str, ledgers_file: str | None, chart_file: str | None) -> bytes:
    """The line of ``claims.jsonl`` of a claim, with its end; the names of files are relative to the directory."""
    numbers = _numbers(claim_rounds(record))
    rounds = {name: tuple(_round_document(one, numbers) for one in many) for name, many in record.rounds.items()}
    every = [one for many in record.rounds.values() for one in many]
    document = ClaimDocument(
        format=FORMAT,
        began=min((one.started for one in every), default=None),
        void=tuple(VoidBlock(block[0].block + 1, remarks.reason(block)) for block in record.void),
        seconds={name: tuple(one.seconds for one in many) for name, many in record.rounds.items()},
        values={name: tuple(rounds_csv.values(record, name)) for name in record.rounds},
        rounds=rounds,
        void_rounds=tuple(tuple(_round_document(one, numbers) for one in block) for block in record.void),
        rounds_file=rounds_file,
        ledgers_file=ledgers_file,
        chart_file=chart_file,
        **_alike(_CLAIM, record),
    )
    return _encoded(document)


def curve_line(record: CurveRecord, table_file: str, ledgers_file: str | None) -> bytes:
    """The line of ``curves.jsonl`` of a curve, with its end; the names of files are relative to the directory."""
    numbers = _numbers(curve_rounds(record))
    points = tuple(
        PointDocument(
            value=one.value if isinstance(one.value, int | float | str | None) else str(one.value),
            rounds=tuple(_round_document(done, numbers) for done in one.rounds),
            **_alike(_POINT, one),
        )
        for one in record.points
    )
    return _encoded(
        CurveDocument(
            format=FORMAT, points=points, table_file=table_file, ledgers_file=ledgers_file, **_alike(_CURVE, record)
        )
    )


def ledger_lines(rounds: Iterable[Round]) -> bytes:
    """A line for each of these rounds that has a ledger; empty where none has."""
    return b"".join(
        _encoded(_ledger_document(one, one.outcome.ledger), one.outcome.figures) for one in rounds if one.outcome.ledger
    )


def claim_rounds(record: ClaimRecord) -> list[Round]:
    """The rounds of a claim in the order of its ledgers: those that it used as they ran, then those of void blocks."""
    used = sorted((one for many in record.rounds.values() for one in many), key=lambda one: (one.block, one.position))
    return [*used, *(one for block in record.void for one in block)]


def curve_rounds(record: CurveRecord) -> list[Round]:
    """The rounds of a curve in the order of its ledgers: point by point, as the record has them."""
    return [one for point in record.points for one in point.rounds]


def _numbers(rounds: Sequence[Round]) -> dict[int, int]:
    """The lines of the ledgers of these rounds, 1-based, by the identity of the round."""
    return {id(one): number for number, one in enumerate((one for one in rounds if one.outcome.ledger), 1)}


def _round_document(one: Round, numbers: Mapping[int, int]) -> RoundDocument:
    outcome = dataclasses.replace(one.outcome, ledger=None)
    return RoundDocument(outcome=outcome, ledger_line=numbers.get(id(one)), **_alike(_ROUND, one))


def _ledger_document(one: Round, ledger: Ledger) -> LedgerDocument:
    return LedgerDocument(
        format=FORMAT,
        pair=one.block + 1,
        position=one.position,
        variant=one.variant,
        void=one.void,
        by_second=one.outcome.by_second,
        errors=tuple((number, node, times) for (number, node), times in ledger.errors.items()),
        types={
            name: TypeDocument(latencies=entry.latencies.counts, **_alike(_ENTRY, entry))
            for name, entry in ledger.entries.items()
        },
    )


def read_claims(directory: Path) -> list[ClaimRecord]:
    """The claims of a results directory as the records that they were; none where no claim was answered.

    Raises ConfigError, which names file and line, for a directory that is not there, a line that is torn or no JSON,
    what is no claim, a format that this version does not read, and a ledger that is missing.
    """
    lines = _lines(directory, CLAIMS)
    return [claim_of(directory, _document(text, ClaimDocument, where)) for where, text in lines]


def read_curves(directory: Path) -> list[CurveRecord]:
    """The curves of a results directory, as ``read_claims`` reads claims. Raises ConfigError as that does."""
    lines = _lines(directory, CURVES)
    return [curve_of(directory, _document(text, CurveDocument, where)) for where, text in lines]


def claim_document(directory: Path, line: int) -> ClaimDocument:
    """One line of ``claims.jsonl``, 1-based. Raises ConfigError as ``read_claims`` does."""
    return _document_on(directory, CLAIMS, line, ClaimDocument)


def curve_document(directory: Path, line: int) -> CurveDocument:
    """One line of ``curves.jsonl``, 1-based. Raises ConfigError as ``read_claims`` does."""
    return _document_on(directory, CURVES, line, CurveDocument)


def claim_of(directory: Path, document: ClaimDocument) -> ClaimRecord:
    """The record of a claim in this directory. Raises ConfigError where its ledgers cannot be read."""
    ledgers = _ledgers(directory, document.ledgers_file)
    return ClaimRecord(
        rounds={name: tuple(_round_of(one, ledgers) for one in many) for name, many in document.rounds.items()},
        void=tuple(tuple(_round_of(one, ledgers) for one in block) for block in document.void_rounds),
        **_alike(_CLAIM, document),
    )


def curve_of(directory: Path, document: CurveDocument) -> CurveRecord:
    """The record of a curve in this directory. Raises ConfigError where its ledgers cannot be read."""
    ledgers = _ledgers(directory, document.ledgers_file)
    points = tuple(
        CurvePoint(
            value=one.value, rounds=tuple(_round_of(done, ledgers) for done in one.rounds), **_alike(_POINT, one)
        )
        for one in document.points
    )
    return CurveRecord(points=points, **_alike(_CURVE, document))


class _Ledgers:
    """The ledgers of a claim or curve by the number of their line."""

    def __init__(self, path: Path | None, found: Sequence[Ledger]) -> None:
        self._path = path
        self._found = found

    def on(self, line: int) -> Ledger:
        """The ledger on this line, 1-based. Raises ConfigError where there is none."""
        if not 0 < line <= len(self._found):
            place = f"{self._path} has {len(self._found)} lines" if self._path else "no file of ledgers is named"
            raise ConfigError(f"a round has its ledger on line {line}, but {place}; measure again")
        return self._found[line - 1]


def _ledgers(directory: Path, name: str | None) -> _Ledgers:
    if not name:
        return _Ledgers(None, ())
    if not (directory / name).exists():
        raise ConfigError(f"{directory / name}: the ledgers of a claim or curve are missing; copy whole directories")
    lines = _lines(directory, name)
    return _Ledgers(directory / name, [_ledger_of(_document(text, LedgerDocument, where)) for where, text in lines])


def _ledger_of(document: LedgerDocument) -> Ledger:
    entries = {
        name: LedgerEntry(latencies=Histogram(one.latencies), **_alike(_ENTRY, one))
        for name, one in document.types.items()
    }
    return Ledger(entries, {(number, node): times for number, node, times in document.errors})


def _round_of(document: RoundDocument, ledgers: _Ledgers) -> Round:
    ledger = None if document.ledger_line is None else ledgers.on(document.ledger_line)
    return Round(outcome=dataclasses.replace(document.outcome, ledger=ledger), **_alike(_ROUND, document))


def message(said: Message) -> bytes:
    """A message between two processes of one run, as bytes."""
    return _encoded(said)


def message_of(text: bytes) -> Message:
    """The message that these bytes are. Raises ConfigError for bytes that are none."""
    return _converted(_decoded(text, "a message of a worker"), Message, "a message of a worker")


def _lines(directory: Path, name: str) -> Iterator[tuple[str, bytes]]:
    """Each line of a file with what it is called in errors; none where there is no such file."""
    if not directory.is_dir():
        raise ConfigError(f"{directory}: there is no such results directory")
    path = directory / name
    if path.exists():
        with path.open("rb") as file:
            for number, text in enumerate(file, 1):
                yield f"{path}, line {number}", text


def _document_on(directory: Path, name: str, line: int, kind: type[Document]) -> Document:
    for number, (where, text) in enumerate(_lines(directory, name), 1):
        if number == line:
            return _document(text, kind, where)
    raise ConfigError(f"{directory / name} has no line {line}")


def _document(text: bytes, kind: type[Document], where: str) -> Document:
    """The document on a line. Raises ConfigError, which begins with ``where``, for any other line."""
    found = _decoded(text, where)
    said = found.get("format") if isinstance(found, dict) else None
    if type(said) is not int:
        raise ConfigError(f"{where}: it has no format number, so pytest-dbcluster did not write it; remove the line")
    if said > FORMAT:
        raise ConfigError(
            f"{where}: it has format {said}, and this version reads format {FORMAT}; update pytest-dbcluster "
            "(pip install --upgrade pytest-dbcluster)"
        )
    if said < FORMAT:
        why = OLDER.get(said, "no version has written it")
        raise ConfigError(
            f"{where}: it has format {said}, and this version reads format {FORMAT}: {why}; measure again"
        )
    return _converted(found, kind, where)


def _decoded(text: bytes, where: str) -> Any:
    import msgspec

    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        what = "it is no JSON" if text.endswith(b"\n") else "it is torn, so the run that wrote it was ended"
        raise ConfigError(f"{where}: {what} ({error}); remove the line, or measure again") from error


def _converted(found: Any, kind: type[Document], where: str) -> Document:
    import msgspec

    try:
        return msgspec.convert(found, kind, strict=False)  # not strict: "inf" is a number
    except msgspec.ValidationError as error:
        raise ConfigError(f"{where}: {error}; it was changed by hand, or copied in part: measure again") from error


def _encoded(document: object, more: Mapping[str, float] | None = None) -> bytes:
    """The document as a line of JSON, with what its line has beside."""
    import msgspec

    line: bytes = msgspec.json.encode(_finite({**(more or {}), **msgspec.to_builtins(document, str_keys=True)}))
    return line + b"\n"


def _finite(value: Any) -> Any:
    """The value with text for every number that JSON does not have: "inf", "-inf" or "nan"."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
