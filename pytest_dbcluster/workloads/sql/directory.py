"""A directory of SQL files, read once: its scripts, its tables, and digests of its content."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from pytest_dbcluster import registry
from pytest_dbcluster.errors import ConfigError, WorkloadError
from pytest_dbcluster.workloads.sql import compression, dump, manifest, schema
from pytest_dbcluster.workloads.sql.language import scripts
from pytest_dbcluster.workloads.sql.language.lexer import SQLText
from pytest_dbcluster.workloads.sql.language.scripts import Script
from pytest_dbcluster.workloads.sql.manifest import FILE, Value, Weighted, WorkloadManifest
from pytest_dbcluster.workloads.sql.schema import CreatedTable

VERSION = 3  # of loading; raise it if equal files would make other tables
DIGITS = 10
LARGE = 256 * 2**20  # bytes
BYTES_A_ROW, GROWTH = 150, 2  # estimates: of a generated row, and of a table over its file
PACKED = 5  # estimate: bytes of rows over those of a compressed file
ENDINGS = (CSV, TSV) = ".csv", ".tsv"  # of files of data
Signature = tuple[tuple[str, int, int], ...]


@dataclasses.dataclass(frozen=True)
class TableFile:
    """A file with the rows of one table."""

    path: Path
    """The file: ``TABLE.csv`` or ``TABLE.tsv``, or either with ``.gz`` or ``.zst``."""

    shown: str
    """The file in messages, such as ``shop/data/orders.csv``."""

    table: str
    """Name of the table."""

    tabs: bool
    """Whether tabs separate its values, with the escapes of ``mysqldump --tab``; False for CSV."""


@dataclasses.dataclass(frozen=True)
class SQLDirectory:
    """What is in a directory."""

    path: Path
    """The directory as an absolute path."""

    name: str
    """The last part of the path."""

    manifest: WorkloadManifest
    """``workload.toml``, with the given transactions and variables."""

    scripts: tuple[tuple[Script, int], ...]
    """The transactions with their weights."""

    created: tuple[CreatedTable, ...]
    """The tables that the schema and the data make, each once."""

    content: str
    """A digest of the manifest and of all files, with the given transactions and variables."""

    digests: Mapping[str, str]
    """The SHA-256 of each file, by its name relative to the directory; the size if it exceeds LARGE bytes."""

    signature: Signature
    """Names, times and sizes of the files that were read."""

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables that the schema and the data make."""
        return tuple(table.name for table in self.created)

    @property
    def data_digest(self) -> str:
        """A digest of everything that decides what the tables hold."""
        said = self.manifest
        files = [said.schema, *said.after_load, *self.data_files]
        variables = dict(said.variables) if _uses_variables(self) else {}
        kept = said.reset if said.reset in ("copy", "surplus") else ""
        key = json.dumps(
            [VERSION, kept, said.database, [[name, file_digest(self.path / name)] for name in files if name],
             dict(said.rows), variables], sort_keys=True
        )  # fmt: skip
        return hashlib.sha256(key.encode()).hexdigest()[:DIGITS]

    @property
    def table_files(self) -> list[TableFile]:
        """The files with the rows of one table each. Raises ConfigError for a file of another format."""
        names = [] if self.manifest.data_are_sql else self.data_files
        return [self._table_file(self.path / name, f"{self.name}/{name}") for name in names]

    def _table_file(self, path: Path, shown: str) -> TableFile:
        name = compression.plain_name(path.name)
        ending = Path(name).suffix
        if ending not in ENDINGS:
            raise ConfigError(f"{shown}: files of data are TABLE.csv or TABLE.tsv, also with .gz or .zst")
        return TableFile(path, shown, name.removesuffix(ending), ending == TSV)

    def require_table(self, place: str, table: str) -> None:
        """Raise ConfigError, with ``place`` first, for a table that the schema does not make."""
        if table not in self.tables:
            hint = registry.suggestion("table", table, self.tables)
            raise ConfigError(
                f"{place}: the schema has no table {table!r}{hint or '; known: ' + ', '.join(self.tables)}"
            )

    @property
    def data_files(self) -> list[str]:
        """The files with data, relative to the directory."""
        return data_files(self.path, self.manifest.data)

    @property
    def later_sql(self) -> list[str]:
        """The files of SQL that run after the schema, relative to the directory."""
        return [*(self.data_files if self.manifest.data_are_sql else []), *self.manifest.after_load]

    @property
    def data_bytes(self) -> int:
        """An estimate of the tables' bytes on disk."""
        sizes = sum(_unpacked_bytes(self.path / name) for name in self.data_files)
        return GROWTH * sizes + BYTES_A_ROW * sum(self.manifest.rows.values())

    def require_unchanged(self) -> None:
        """Raise WorkloadError if a file is not as it was when it was read."""
        now = {name: rest for name, *rest in signature(self.path, [name for name, _, _ in self.signature])}
        for name, *rest in self.signature:
            if now[name] != rest:
                raise WorkloadError(
                    f"{self.name}/{name} has changed since this run read it, so earlier and later rounds would differ: "
                    "run again"
                )


def data_files(path: Path, data: str) -> list[str]:
    """The files with data, relative to a directory."""
    if not data or (path / data).is_file():
        return [data] if data else []
    return sorted(f"{data}/{each.name}" for each in (path / data).iterdir() if not each.name.startswith("."))


def _unpacked_bytes(path: Path) -> int:
    """An estimate of the bytes of a file after it is decompressed."""
    return path.stat().st_size * (1 if compression.plain_name(path.name) == path.name else PACKED)


def _uses_variables(directory: SQLDirectory) -> bool:
    """Whether a variable may decide what the tables hold. A dump has none."""
    said, path = directory.manifest, directory.path
    if said.data_are_sql and not dump.is_dump(path / said.data, f"{directory.name}/{said.data}"):
        return True
    files = [name for name in (said.schema, *said.after_load) if name]
    return any(
        token.kind == "variable"
        for name in files
        if not dump.is_dump(path / name, f"{directory.name}/{name}")
        for token in SQLText(name, (path / name).read_text(encoding="utf-8")).tokens()
    )


def file_digest(path: Path) -> str:
    """The SHA-256 of a file; computed once while the file does not change."""
    found = path.stat()
    return _digest(path, found.st_mtime_ns, found.st_size)


@functools.lru_cache(1024)
def _digest(path: Path, changed: int, size: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def signature(path: Path, names: Sequence[str]) -> Signature:
    """Name, time of the last change in ns, and size of each file; -1 for a missing one."""
    found = []
    for name in names:
        try:
            one = (path / name).stat()
            found.append((name, one.st_mtime_ns, one.st_size))
        except FileNotFoundError:
            found.append((name, -1, -1))
    return tuple(found)


def read(
    given: str | os.PathLike[str], transactions: Sequence[str] | None, variables: Mapping[str, Value] | None
) -> SQLDirectory:
    """Read a directory. transactions and variables are in place of, and on top of, those of the manifest.

    Raises ConfigError for the first mistake in any file, with its place.
    """
    path = Path(given)
    place = f"SQLFiles({str(given)!r})"
    replaced = manifest.values(place, variables) if variables is not None else {}
    said = manifest.read(path, replaced)
    if transactions is not None:
        said = dataclasses.replace(said, transactions=manifest.transactions_of(place, transactions))
        for each in said.transactions:
            if not (path / each.file).is_file():
                known = sorted(one.name for one in path.glob("*.sql"))
                raise manifest.unknown_file(place, each.file, known)
    reset = said.reset if said.reset.endswith(".sql") else ""
    others = [*said.after_load, reset, *(each.file for each in said.transactions)]
    files = [FILE, said.schema, *data_files(path, said.data), *others]
    found = _read(path.resolve(), path.resolve().name, said, signature(path, [name for name in files if name]))
    _refuse_unused(place, found, replaced)
    return found


def _refuse_unused(place: str, found: SQLDirectory, replaced: Mapping[str, Value]) -> None:
    """Raise ConfigError for a given variable that no file has: its value would change nothing."""
    names = [name for name, _, size in found.signature if 0 <= size <= LARGE]
    texts = [
        _text(found.path / name, name)
        for name in names
        if replaced and name.endswith((".sql", ".toml")) and not dump.is_dump(found.path / name, f"{found.name}/{name}")
    ]
    for name in replaced:
        if not any(re.search(rf":{name}\b", text) for text in texts):
            known = [f":{other}" for other in found.manifest.variables if other not in replaced]
            hint = registry.suggestion("variable", f":{name}", known)
            raise ConfigError(f"{place}: no file has the variable :{name}{hint or '; known: ' + ', '.join(known)}")


def _read(path: Path, name: str, said: WorkloadManifest, signed: Signature) -> SQLDirectory:
    found = [(_script(path, name, each), each.weight) for each in said.transactions]
    tables = _created_tables(path, name, said)
    if not tables:
        raise ConfigError(f"{name}/{said.schema or said.data}: there is no CREATE TABLE in this file")
    digests = {
        file: f"{size} bytes" if size > LARGE else file_digest(path / file)
        for file, changed, size in signed
        if changed >= 0
    }
    key = json.dumps([digests, [dataclasses.astuple(each) for each in said.transactions], dict(said.variables)])
    content = hashlib.sha256(key.encode()).hexdigest()[:DIGITS]
    made = SQLDirectory(path, name, said, tuple(found), tables, content, digests, signed)
    _refuse_unknown_tables(made)
    return made


def _refuse_unknown_tables(found: SQLDirectory) -> None:
    """Raise ConfigError for rows of a table that the schema does not make, and for misplaced files of rows."""
    said = found.manifest
    place = (
        f"the data come from {said.data}" if said.data_are_sql else f"move it to {found.name}/{said.data or 'data'}/"
    )
    for path in sorted(found.path.iterdir()):
        if Path(compression.plain_name(path.name)).suffix in ENDINGS and path.is_file():
            raise ConfigError(f"{found.name}/{path.name}: nothing would load this file; {place}")
    for file in found.table_files:
        found.require_table(file.shown, file.table)
    for table in found.manifest.rows:
        found.require_table(f"{found.name}/{FILE}: rows", table)


def _created_tables(path: Path, name: str, said: WorkloadManifest) -> tuple[CreatedTable, ...]:
    """The tables of all files that make some. A dump with a schema is not searched: this would read it once more."""
    shown, found = f"{name}/{said.data}", list[CreatedTable]()
    if said.schema:
        found = _read_tables(path, name, said.schema, found)
    if said.data_are_sql and not (dump.is_dump(path / said.data, shown) and said.schema):
        found += dump.created_tables(path / said.data, shown)
    for file in said.after_load:
        found = _read_tables(path, name, file, found)
    return tuple({table.name: table for table in found}.values())


def _read_tables(path: Path, name: str, file: str, before: Sequence[CreatedTable]) -> list[CreatedTable]:
    """The tables that are there after a file of SQL."""
    shown = f"{name}/{file}"
    if dump.is_dump(path / file, shown):
        return [*before, *dump.created_tables(path / file, shown)]
    return schema.created_tables(SQLText(shown, _text(path / file, shown)), before)


def _script(path: Path, name: str, each: Weighted) -> Script:
    shown = f"{name}/{each.file}"
    return _parse(Path(each.file).stem, shown, _text(path / each.file, shown))


@functools.lru_cache(1024)
def _parse(name: str, shown: str, text: str) -> Script:
    return scripts.parse(name, shown, text)


def _text(path: Path, shown: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{shown}: this file is not UTF-8: {error}") from None
