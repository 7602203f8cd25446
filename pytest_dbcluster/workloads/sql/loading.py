"""Fill the database of a workload on one server: schema, rows of files or generated ones, then triggers.

Rows go to the server as INSERTs of many rows. Files of SQL run as they are, one statement after the other. Errors name
the file and the line.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path

from pytest_dbcluster import wait
from pytest_dbcluster.clusters.servers.connection import Connection, SQLError
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.workloads.sql import compression, dump, schema
from pytest_dbcluster.workloads.sql.directory import SQLDirectory, TableFile
from pytest_dbcluster.workloads.sql.language.lexer import SQLText
from pytest_dbcluster.workloads.sql.rows import file_rows, generated_rows
from pytest_dbcluster.workloads.sql.rows.file_rows import Row
from pytest_dbcluster.workloads.sql.statement_stream import FileStatement, StatementStream

MOST_BYTES = 512 * 1024  # of one INSERT; every release accepts 1 MiB
MOST_ROWS = 5000
AT_ROW = re.compile(r"at row (\d+)")
# Without foreign keys, files may come in any order. Unique keys are checked: MariaDB would report a row that is there
# twice only as a failed COMMIT.
SESSION = ("SET SESSION foreign_key_checks = 0", "SET SESSION sql_mode = CONCAT(@@sql_mode, ',NO_AUTO_VALUE_ON_ZERO')")
# What a dump sets at its beginning, unless it is made with --compact. It may have values of computed columns.
DUMP_MODE = "SET SESSION sql_mode = 'NO_AUTO_VALUE_ON_ZERO'"


class Loader:
    """A session on one server, in the database of a workload."""

    def __init__(self, directory: SQLDirectory, connection: Connection) -> None:
        self._read, self._manifest, self._sql = directory, directory.manifest, connection
        self._begin()

    def _begin(self) -> None:
        self._sql.query(f"USE `{self._manifest.database}`")
        self._sql.run(SESSION)

    def load(
        self,
        check: Callable[[Collection[str]], None],
        check_schema: Callable[[], None],
        check_dump: Callable[[], None],
    ) -> None:
        """Run the schema, the data, and what follows. Raises ConfigError with file and line.

        - check: raises an error for tables that do not fit. It is called with the names of new tables, before any of
          their rows are sent.
        - check_schema: raises an error for what does not fit the schema. It is called after the schema, before rows.
        - check_dump: the same for the tables of a dump without a schema. Other objects of the dump are not there yet.
        """
        manifest = self._manifest
        if manifest.schema:
            self.run_file(manifest.schema, check)
            check(self._read.tables)
            check_schema()
        else:
            self._try_tables(check_dump)
        if manifest.data_are_sql:
            self.run_file(manifest.data, check)
        for file in self._read.table_files:
            self._insert_file(file)
        if manifest.rows:
            self._generate()
        for name in manifest.after_load:
            self.run_file(name)

    def _try_tables(self, check: Callable[[], None]) -> None:
        """Make the tables of a dump without rows, call ``check``, and remove them.

        If the server refuses a table, it checks nothing, because the load shows the error with its place.
        """
        database, made = self._manifest.database, [table.statement for table in self._read.created if table.statement]
        if not made:
            return
        try:
            self._sql.run([DUMP_MODE, *made])
        except SQLError as error:
            if error.lost:
                raise
        else:
            check()
        self._sql.run([f"DROP DATABASE `{database}`", f"CREATE DATABASE `{database}`"])
        self._sql.close()  # with the settings of a dump
        self._begin()

    def run_file(self, name: str, check: Callable[[Collection[str]], None] = lambda names: None) -> None:
        """Run a file of SQL of any size: a dump as it is, any other file with the values of variables."""
        path, shown = self._read.path / name, f"{self._read.name}/{name}"
        most = int(self._sql.query("SELECT @@max_allowed_packet")[0][0]) - 1  # a packet begins with one byte more
        if not dump.is_dump(path, shown):
            self._run(self._statements(path, shown, most), shown, check)
            return
        self._sql.query(DUMP_MODE)
        self._run(dump.statements(path, shown, most), shown, check)
        self._sql.close()  # the settings of a dump end with its session
        self._begin()

    def _run(self, statements: Iterable[FileStatement], shown: str, check: Callable[[Collection[str]], None]) -> None:
        unchecked: list[str] = []
        for place, text in statements:
            if dump.CREATE.match(text):
                source = SQLText(shown, text.decode("utf-8", "replace"))
                unchecked += [table.name for table in schema.created_tables(source)]
            elif unchecked and dump.ROWS.match(text):
                check(unchecked)
                unchecked = []
            try:
                self._sql.send(text, wait.SLOW_SECONDS)
            except SQLError as error:
                if error.lost:
                    raise
                raise place.error(f"error {error.number}: {error.reason}") from None

    def _statements(self, path: Path, shown: str, most: int) -> Iterator[FileStatement]:
        """The statements of a file of SQL that is no dump, with the values of its variables."""
        with compression.open_bytes(path, shown) as file:
            for place, text in StatementStream(file, shown, most):
                try:
                    source = SQLText(shown, text.decode("utf-8"), (place.line, place.column))
                except UnicodeDecodeError as error:
                    raise place.error(f"this file is not UTF-8: {error}") from None
                schema.refuse_databases(source)
                yield FileStatement(place, self._with_values(source) if b":" in text else text)

    def _with_values(self, source: SQLText) -> bytes:
        return schema.with_values(source, self._manifest.variables).text.encode()

    def _columns(self, table: str) -> list[str]:
        """The columns of a table that rows give a value."""
        rows = self._sql.query(
            "SELECT column_name FROM information_schema.columns WHERE table_schema = DATABASE() AND "
            f"table_name = '{table}' AND extra NOT LIKE '%GENERATED%' ORDER BY ordinal_position"
        )
        return [str(name) for (name,) in rows]

    def _generate(self) -> None:
        counts = self._manifest.rows
        for table in generated_rows.parents_first(self._sql, counts):
            columns, rows = generated_rows.rows_of(self._sql, table, counts)
            self._insert(table, columns, ((None, ",".join(row)) for row in rows), f"generated rows of {table}")

    def _insert_file(self, file: TableFile) -> None:
        columns = self._columns(file.table)
        with (
            compression.open_bytes(file.path, file.shown) as content,
            io.TextIOWrapper(content, encoding="utf-8", newline="\n" if file.tabs else "") as text,
        ):
            rows = file_rows.read(text, file.shown, tabs=file.tabs)
            first = next(rows, None)
            if first is None:
                raise ConfigError(f"{file.shown}: there is no row in this file")
            known = {column.lower(): column for column in columns}
            names = [value.lower() for value in first[1]]
            if all(name in known for name in names):
                columns = [known[name] for name in names]
            else:
                rows = _chain(first, rows)
            self._insert(
                file.table, columns, file_rows.literals(rows, columns, file.shown, escaped=file.tabs), file.shown
            )

    def _insert(self, table: str, columns: Sequence[str], rows: Iterable[tuple[int | None, str]], shown: str) -> None:
        """Insert rows, each with its line in a file; a row is SQL text with commas between its values."""
        begin = f"INSERT INTO `{table}` ({', '.join(f'`{column}`' for column in columns)}) VALUES "
        lines: list[int | None] = []
        parts: list[str] = []
        size = 0
        for line, row in rows:
            parts.append(f"({row})")
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


def _chain(first: Row, rows: Iterator[Row]) -> Iterator[Row]:
    yield first
    yield from rows
