"""Schema: how claims and curves are written as JSON lines, and read back as the same records.

``documents.record_documents`` has the documents of these lines. The CSV files and the Markdown of a results directory
come from the same records; nothing reads them back.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.formatting import quantity
from pytest_dbcluster.measuring import remarks
from pytest_dbcluster.reporting import rounds_csv
from pytest_dbcluster.reporting.documents import json_text
from pytest_dbcluster.reporting.documents.json_text import Document
from pytest_dbcluster.reporting.documents.record_documents import (
    FORMAT,
    KNOWN,
    ClaimDocument,
    CurveDocument,
    LedgerDocument,
    PointDocument,
    RoundDocument,
    TypeDocument,
    VoidBlock,
)
from pytest_dbcluster.reporting.records import ClaimRecord, CurvePoint, CurveRecord, fields_of
from pytest_dbcluster.rounds import pairing
from pytest_dbcluster.rounds.histogram import Histogram
from pytest_dbcluster.rounds.ledger import Ledger, LedgerEntry
from pytest_dbcluster.rounds.round import Round

CLAIMS, CURVES = "claims.jsonl", "curves.jsonl"


def claim_line(
    record: ClaimRecord,
    rounds_file: str,
    ledgers_file: str | None,
    chart_file: str | None,
    timeline_file: str | None = None,
    commits_file: str | None = None,
) -> bytes:
    """The line of a claim in ``claims.jsonl``, with its line end; files are relative to the results directory.

    Without ledgers_file its rounds have no ledger: the file could not be written.
    """
    numbers = _numbers(claim_rounds(record)) if ledgers_file else {}
    by_variant = record.rounds.items()
    document = ClaimDocument(
        **fields_of(
            ClaimRecord,
            record,
            rounds={name: _round_documents(rounds, numbers) for name, rounds in by_variant},
            void_rounds=tuple(_round_documents(block, numbers) for block in record.void_rounds),
        ),
        format=FORMAT,
        began=min((measured.started for rounds in record.rounds.values() for measured in rounds), default=None),
        look=record.verdict.look,
        looks=record.verdict.claim.of_kind.looks(record.instances),
        baseline_first=_baseline_first(record),
        void=tuple(VoidBlock(block[0].block, remarks.reason(block)) for block in record.void_rounds),
        seconds={name: tuple(measured.seconds for measured in rounds) for name, rounds in by_variant},
        values={name: tuple(rounds_csv.values(record, name)) for name in record.rounds},
        rounds_file=rounds_file,
        ledgers_file=ledgers_file,
        chart_file=chart_file,
        timeline_file=timeline_file,
        commits_file=commits_file,
    )
    return json_text.encode(document)


def _baseline_first(record: ClaimRecord) -> tuple[bool, ...]:
    """For each pair of the compared variants whether the baseline ran first; empty without rounds of both."""
    candidate, baseline = (record.rounds.get(name, ()) for name in (record.candidate, record.baseline))
    return pairing.baseline_first(candidate, baseline) if len(candidate) == len(baseline) else ()


def curve_line(record: CurveRecord, table_file: str, ledgers_file: str | None) -> bytes:
    """The line of a curve in ``curves.jsonl``, with its line end, as ``claim_line``."""
    numbers = _numbers(curve_rounds(record)) if ledgers_file else {}
    points = []
    for point in record.points:
        rounds = _round_documents(point.rounds, numbers)
        fields = fields_of(CurvePoint, point, value=json_text.json_value(point.value), rounds=rounds)
        points.append(PointDocument(**fields))
    return json_text.encode(
        CurveDocument(
            **fields_of(CurveRecord, record, points=tuple(points)),
            format=FORMAT,
            table_file=table_file,
            ledgers_file=ledgers_file,
        )
    )


def ledger_lines(rounds: Iterable[Round]) -> bytes:
    """A line for each round that has a ledger; empty if no round has one."""
    return b"".join(
        json_text.encode(_ledger_document(measured, measured.outcome.ledger), measured.outcome.figures)
        for measured in rounds
        if measured.outcome.ledger
    )


def claim_rounds(record: ClaimRecord) -> list[Round]:
    """The rounds of a claim in the order of its ledgers: used rounds as they ran, then the rounds of void blocks."""
    used = [measured for rounds in record.rounds.values() for measured in rounds]
    used.sort(key=lambda measured: (measured.block, measured.position))
    return [*used, *(measured for block in record.void_rounds for measured in block)]


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
    outcome = measured.outcome
    if outcome.ledger:  # its line has the latencies of statements too
        outcome = dataclasses.replace(outcome, ledger=None, statements={})
    return RoundDocument(**fields_of(Round, measured, outcome=outcome), ledger_line=numbers.get(id(measured)))


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
            name: TypeDocument(**fields_of(LedgerEntry, entry, latencies=entry.latencies.counts))
            for name, entry in ledger.entries.items()
        },
        statements={name: latencies.counts for name, latencies in measured.outcome.statements.items()},
    )


def read_claims(directory: Path, *, whole: bool = True) -> list[ClaimRecord]:
    """The claims of a results directory, equal to the records that were saved; empty without answered claims.

    ``whole=False`` leaves out a last line without its end, which a killed run may leave (``torn_files``). Raises
    ConfigError for a missing directory, a missing ledger, and a format that this version does not read. It raises it
    too for a line that is incomplete, not JSON, or not a claim. The message names file and line.
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


def torn_files(directory: Path) -> list[str]:
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
    """The record of a claim in this results directory. Raises ConfigError if its ledgers cannot be read."""
    ledgers = _ledgers(directory, document.ledgers_file)
    rounds = {name: _rounds_of(rounds, ledgers) for name, rounds in document.rounds.items()}
    void_rounds = tuple(_rounds_of(block, ledgers) for block in document.void_rounds)
    return ClaimRecord(**fields_of(ClaimRecord, document, rounds=rounds, void_rounds=void_rounds))


def curve_of(directory: Path, document: CurveDocument) -> CurveRecord:
    """The record of a curve in this results directory. Raises ConfigError if its ledgers cannot be read."""
    ledgers = _ledgers(directory, document.ledgers_file)
    points = tuple(
        CurvePoint(**fields_of(CurvePoint, point, rounds=_rounds_of(point.rounds, ledgers)))
        for point in document.points
    )
    return CurveRecord(**fields_of(CurveRecord, document, points=points))


class _Ledgers:
    """The ledgers of a claim or curve, by line number."""

    def __init__(self, path: Path | None, ledgers: Sequence[LedgerDocument]) -> None:
        self._path = path
        self._ledgers = ledgers

    def on(self, line: int) -> LedgerDocument:
        """The ledger on this line, 1-based. Raises ConfigError if there is no such line."""
        if not 0 < line <= len(self._ledgers):
            lines = quantity(len(self._ledgers), "line")
            problem = f"{self._path} has {lines}" if self._path else "it names no file of ledgers"
            raise ConfigError(f"a claim or curve has a ledger on line {line}, but {problem}; measure again")
        return self._ledgers[line - 1]


def _ledgers(directory: Path, name: str | None) -> _Ledgers:
    if not name:
        return _Ledgers(None, ())
    if not (directory / name).exists():
        raise ConfigError(f"{directory / name}: the ledgers of a claim or curve are missing; copy whole directories")
    lines = _lines(directory, name)
    return _Ledgers(directory / name, [_document(text, LedgerDocument, where) for where, text in lines])


def _ledger_of(document: LedgerDocument) -> Ledger:
    entries = {
        name: LedgerEntry(**fields_of(LedgerEntry, entry, latencies=Histogram(entry.latencies)))
        for name, entry in document.types.items()
    }
    return Ledger(entries, {(number, node): times for number, node, times in document.errors})


def _rounds_of(documents: Iterable[RoundDocument], ledgers: _Ledgers) -> tuple[Round, ...]:
    return tuple(_round_of(document, ledgers) for document in documents)


def _round_of(document: RoundDocument, ledgers: _Ledgers) -> Round:
    outcome = document.outcome
    if document.ledger_line is not None:
        found = ledgers.on(document.ledger_line)
        statements = {name: Histogram(counts) for name, counts in found.statements.items()}
        outcome = dataclasses.replace(outcome, ledger=_ledger_of(found), statements=statements)
    return Round(**fields_of(Round, document, outcome=outcome))


def _lines(directory: Path, name: str, *, whole: bool = True) -> Iterator[tuple[str, bytes]]:
    """Each line of a file after its name for errors, ``FILE, line 1``; nothing if there is no such file.

    ``whole=False`` leaves out a last line without its end. Raises ConfigError if there is no such directory.
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
    """The document on a line. Raises ConfigError, which begins with ``where``, if it is not such a document."""
    return json_text.read(text, kind, where, KNOWN)
