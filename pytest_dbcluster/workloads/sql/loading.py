"""Fill the database of a workload on one server: schema, rows of files or generated ones, then triggers.

Rows go to the server as INSERTs of many rows. Errors name the file and the line.
"""

from __future__ import annotations

import csv
import dataclasses
import gzip
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from pytest_dbcluster import registry, wait
from pytest_dbcluster.clusters.servers.connection import Connection, SQLError
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.formatting import quantity
from pytest_dbcluster.workloads.sql import generated_rows, schema
from pytest_dbcluster.workloads.sql.language.lexer import SQLText
from pytest_dbcluster.workloads.sql.manifest import WorkloadManifest
from pytest_dbcluster.workloads.sql.numbered_values import text_literal

MOST_BYTES = 512 * 1024  # of one INSERT; every release accepts 1 MiB
MOST_ROWS = 5000
NULL = r"\N"
DIALECTS: Mapping[str, Mapping[str, object]] = {
    ".csv": {"delimiter": ","},
    ".tsv": {"delimiter": "\t", "quoting": csv.QUOTE_NONE},
}
ESCAPED = {"b": "\b", "n": "\n", "r": "\r", "t": "\t", "0": "\0", "Z": "\x1a"}
AT_ROW = re.compile(r"at row (\d+)")
# Without foreign keys, files may come in any order. Unique keys are checked: MariaDB would report a row that is there
# twice only as a failed COMMIT.
SESSION = ("SET SESSION foreign_key_checks = 0", "SET SESSION sql_mode = CONCAT(@@sql_mode, ',NO_AUTO_VALUE_ON_ZERO')")


@dataclasses.dataclass(frozen=True)
class TableFile:
    """A file with the rows of one table."""

    path: Path
    """The file: ``TABLE.csv`` or ``TABLE.tsv``, or either with ``.gz``."""

    table: str
    """Name of the table."""

    dialect: Mapping[str, object]
    """Arguments of ``csv.reader`` for the format of the file."""

    @property
    def shown(self) -> str:
        """The file in messages."""
        return f"{self.path.parent.parent.name}/{self.path.parent.name}/{self.path.name}"


def table_files(directory: Path, data: str, tables: Sequence[str]) -> list[TableFile]:
    """The files of a directory with data. Raises ConfigError for a file that belongs to no table."""
    found = []
    for path in sorted((directory / data).iterdir()):
        name = path.name.removesuffix(".gz")
        ending = Path(name).suffix
        if path.name.startswith("."):
            continue
        table = name.removesuffix(ending)
        place = f"{directory.name}/{data}/{path.name}"
        if ending not in DIALECTS:
            raise ConfigError(f"{place}: files of data are TABLE.csv or TABLE.tsv, also with .gz")
        if table not in tables:
            hint = registry.suggestion("table", table, tables)
            raise ConfigError(f"{place}: the schema has no table {table!r}{hint or '; known: ' + ', '.join(tables)}")
        found.append(TableFile(path, table, DIALECTS[ending]))
    return found


class Loader:
    """A session on one server, in the database of a workload."""

    def __init__(self, directory: Path, manifest: WorkloadManifest, connection: Connection) -> None:
        self._directory, self._manifest, self._sql = directory, manifest, connection
        self._sql.query(f"USE `{manifest.database}`")
        self._sql.run(SESSION)

    def load(self, tables: Sequence[str]) -> None:
        """Run the schema, the data, and what follows. Raises ConfigError with file and line."""
        manifest = self._manifest
        if manifest.schema:
            self.run_file(manifest.schema)
        if manifest.data.endswith(".sql"):
            self.run_file(manifest.data)
        elif manifest.data:
            for file in table_files(self._directory, manifest.data, tables):
                self._insert_file(file)
        if manifest.rows:
            self._generate(tables)
        for name in manifest.after_load:
            self.run_file(name)

    def run_file(self, name: str) -> None:
        """Run the statements of a file of SQL, with the values of the variables of the manifest."""
        path = self._directory / name
        source = SQLText(f"{self._directory.name}/{name}", path.read_text(encoding="utf-8"))
        for place, statement in schema.split(schema.with_values(source, self._manifest.variables)):
            try:
                self._sql.query(statement, wait.SLOW_SECONDS)
            except SQLError as error:
                if error.lost:
                    raise
                raise place.error(f"error {error.number}: {error.reason}") from None

    def _columns(self, table: str) -> list[str]:
        """The columns of a table that rows give a value."""
        rows = self._sql.query(
            "SELECT column_name FROM information_schema.columns WHERE table_schema = DATABASE() AND "
            f"table_name = '{table}' AND extra NOT LIKE '%GENERATED%' ORDER BY ordinal_position"
        )
        return [str(name) for (name,) in rows]

    def _generate(self, tables: Sequence[str]) -> None:
        counts = self._manifest.rows
        if missing := [table for table in counts if table not in tables]:
            hint = registry.suggestion("table", missing[0], tables)
            raise ConfigError(
                f"{self._directory.name}/workload.toml: rows: the schema has no table {missing[0]!r}"
                f"{hint or '; known: ' + ', '.join(tables)}"
            )
        for table in generated_rows.parents_first(self._sql, counts):
            columns, rows = generated_rows.rows_of(self._sql, table, counts)
            self._insert(table, columns, ((None, row) for row in rows), f"generated rows of {table}")

    def _insert_file(self, file: TableFile) -> None:
        columns = self._columns(file.table)
        opened = gzip.open if file.path.suffix == ".gz" else open
        with opened(file.path, "rt", encoding="utf-8", newline="") as text:
            reader = csv.reader(text, strict=True, **file.dialect)  # type: ignore[arg-type]
            rows = _with_line_numbers(reader, file.shown)
            first = next(rows, None)
            if first is None:
                raise ConfigError(f"{file.shown}: there is no row in this file")
            known = {column.lower(): column for column in columns}
            names = [value.lower() for value in first[1]]
            if all(name in known for name in names):
                columns = [known[name] for name in names]
            else:
                rows = _chain(first, rows)
            escaped = file.dialect["delimiter"] == "\t"
            self._insert(file.table, columns, _literals(rows, columns, file.shown, escaped), file.shown)

    def _insert(
        self, table: str, columns: Sequence[str], rows: Iterable[tuple[int | None, Sequence[str]]], shown: str
    ) -> None:
        """Insert rows, each with its line in a file; values are SQL text."""
        begin = f"INSERT INTO `{table}` ({', '.join(f'`{column}`' for column in columns)}) VALUES "
        lines: list[int | None] = []
        parts: list[str] = []
        size = 0
        for line, row in rows:
            parts.append(f"({','.join(row)})")
            lines.append(line)
            size += len(parts[-1])
            if size > MOST_BYTES or len(parts) == MOST_ROWS:
                self._send(begin, parts, lines, shown)
                lines, parts, size = [], [], 0
        if parts:
            self._send(begin, parts, lines, shown)

    def _send(self, begin: str, parts: Sequence[str], lines: Sequence[int | None], shown: str) -> None:
        try:
            self._sql.query(begin + ",".join(parts), wait.SLOW_SECONDS)
        except SQLError as error:
            if error.lost:
                raise
            match = AT_ROW.search(error.reason)
            at = lines[int(match[1]) - 1] if match and int(match[1]) <= len(lines) else None
            place = f"{shown}:{at}" if at else f"{shown}, lines {lines[0]} to {lines[-1]}" if lines[0] else shown
            raise ConfigError(f"{place}: the rows do not fit the table: error {error.number}: {error.reason}") from None


def _with_line_numbers(reader: Iterator[list[str]], shown: str) -> Iterator[tuple[int, list[str]]]:
    """The rows of a file, each with its line."""
    line = 1
    while True:
        try:
            row = next(reader, None)
        except (csv.Error, UnicodeDecodeError) as error:
            raise ConfigError(f"{shown}:{line}: {error}") from None
        if row is None:
            return
        begun, line = line, reader.line_num + 1  # type: ignore[attr-defined]
        if row:
            yield begun, row


def _chain(first: tuple[int, list[str]], rows: Iterator[tuple[int, list[str]]]) -> Iterator[tuple[int, list[str]]]:
    yield first
    yield from rows


def _literals(
    rows: Iterator[tuple[int, list[str]]], columns: Sequence[str], shown: str, escaped: bool
) -> Iterator[tuple[int, list[str]]]:
    for line, row in rows:
        if len(row) != len(columns):
            raise ConfigError(
                f"{shown}:{line}: {quantity(len(row), 'value')}, and {quantity(len(columns), 'column')} "
                f"({', '.join(columns)})"
            )
        yield line, [_literal(value, escaped) for value in row]


def _literal(value: str, escaped: bool) -> str:
    """A value of a file as SQL text. escaped: whether a backslash begins an escape, as in files of mysqldump --tab."""
    if value == NULL:
        return "NULL"
    if escaped and "\\" in value:
        value = re.sub(r"\\(.)", lambda match: ESCAPED.get(match[1], match[1]), value, flags=re.DOTALL)
    return text_literal(value)
