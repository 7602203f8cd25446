"""``workload.toml``: which files of a directory are the schema, the data and the transactions, and their weights.

Without it, ``schema.sql`` is the schema, and one of ``DATA`` has the data. Each other ``.sql`` file is a transaction of
weight 1.
"""

from __future__ import annotations

import dataclasses
import re
import tomllib
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_dbcluster import registry
from pytest_dbcluster.errors import ConfigError

FILE = "workload.toml"
SCHEMA = "schema.sql"
SQL_ENDINGS = (".sql", ".sql.gz", ".sql.zst")
DATA = ("data", "generate.sql", *(f"dump{ending}" for ending in SQL_ENDINGS))
RESETS = ("none", "surplus", "copy")
MEANT = {"retries": "attempts", "scripts": "transactions", "queries": "transactions", "name": "database"}
DATABASE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
SYSTEM = ("information_schema", "mysql", "performance_schema", "sys")
WEIGHTS = "write it as FILE.sql or FILE.sql@WEIGHT, such as browse.sql@70"
ATTEMPTS = 100
Value = int | float | str | bool


@dataclasses.dataclass(frozen=True)
class Weighted:
    """A transaction file with its weight."""

    file: str
    """The file, relative to the directory."""

    weight: int = 1
    """1 or more. A transaction is of this file with the chance of this weight over the sum of all weights."""


@dataclasses.dataclass(frozen=True)
class WorkloadManifest:
    """What the directory says. All files are relative to it."""

    database: str
    """The database of the tables."""

    schema: str
    """The file with CREATE TABLE; empty if the data make the tables."""

    data: str
    """A directory with TABLE.csv or TABLE.tsv, or a file of SQL such as a dump; empty for none."""

    rows: Mapping[str, int]
    """Tables that are filled with generated rows, each with their number."""

    transactions: tuple[Weighted, ...]
    """The transaction files, at least one; their names differ without ``.sql``."""

    after_load: tuple[str, ...]
    """Files of SQL that run after the data are loaded, such as triggers."""

    reset: str
    """``none``, ``surplus``, ``copy``, or a file of SQL."""

    variables: Mapping[str, Value]
    """Values by name, which files of SQL read as ``:name``."""

    attempts: int
    """Maximum number of attempts of one transaction."""

    @property
    def data_are_sql(self) -> bool:
        """Whether the data are a file of SQL."""
        return self.data.endswith(SQL_ENDINGS)


def read(directory: Path, variables: Mapping[str, Value] | None = None) -> WorkloadManifest:
    """The manifest of a directory. Raises ConfigError for a file or key that is missing, unknown or of a wrong type.

    variables: values in place of those of the manifest. One that the manifest lacks is new.
    """
    if not directory.is_dir():
        raise ConfigError(f"SQLFiles({str(directory)!r}): there is no directory {directory.absolute()}")
    path = directory / FILE
    place = f"{directory.name}/{FILE}"
    given: dict[str, Any] = {}
    text = ""
    if path.exists():
        try:
            text = path.read_text(encoding="utf-8")
            given = tomllib.loads(text)
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ConfigError(f"{place}: {error}") from None
    return _Keys(directory, place, given, text).manifest(variables or {})


def transactions_of(place: str, texts: object, source: str = "") -> tuple[Weighted, ...]:
    """The files and weights of texts such as ``browse.sql@70``. Raises ConfigError, with ``place`` first.

    source: the text of a file with these texts, for the line in the error.
    """
    if isinstance(texts, str) or not isinstance(texts, Sequence) or not texts:
        raise ConfigError(f"{place}: transactions={texts!r}: it accepts a list of files; {WEIGHTS}")
    found: list[Weighted] = []
    for text in texts:
        file, _, weight = text.partition("@") if isinstance(text, str) else ("", "", "")
        if not file.endswith(".sql") or (weight and not weight.isdigit()) or text.endswith("@"):
            raise ConfigError(f"{place}{_line(text, source)}: transaction {text!r}: {WEIGHTS}")
        if weight and int(weight) == 0:
            raise ConfigError(f"{place}{_line(text, source)}: transaction {text!r}: a weight is 1 or more; take a file "
                              "out of the list to leave it out")  # fmt: skip
        if file in (each.file for each in found):
            twice = f"transaction {text!r}: {file} is in the list twice; add the weights"
            raise ConfigError(f"{place}{_line(text, source)}: {twice}")
        found.append(Weighted(file, int(weight or 1)))
    names = [Path(each.file).stem for each in found]
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise ConfigError(f"{place}: two transaction files are named {twice}.sql: their results would have one name")
    return tuple(found)


def _line(text: object, source: str) -> str:
    """``:3`` for the last line of a TOML file with the text in quotes; empty without one."""
    quoted = [f"{quote}{text}{quote}" for quote in "\"'"]
    lines = [
        number
        for number, line in enumerate(source.splitlines(), 1)
        if not line.lstrip().startswith("#") and any(each in line for each in quoted)
    ]
    return f":{lines[-1]}" if lines else ""


def values(place: str, given: object) -> dict[str, Value]:
    """Variables with their values. Raises ConfigError, with ``place`` first, for other names and types."""
    if not isinstance(given, Mapping):
        raise ConfigError(f"{place}: variables={given!r}: it accepts names with values, such as customers = 20000")
    for name, value in given.items():
        if not isinstance(name, str) or not VARIABLE.fullmatch(name):
            raise ConfigError(f"{place}: variable {name!r}: a name has letters, digits and _ only")
        if not isinstance(value, int | float | str | bool):
            raise ConfigError(f"{place}: variable {name}={value!r}: a value is a number, a text, true or false")
        if isinstance(value, int) and abs(value) > 2**53:
            raise ConfigError(f"{place}: variable {name}={value}: whole numbers go up to 2^53")
    return dict(given)


def unknown_file(place: str, name: str, known: Sequence[str]) -> ConfigError:
    """A ConfigError for a transaction file that is not in the directory."""
    hint = registry.suggestion("file", name, known)
    return ConfigError(f"{place}: there is no file {name!r}{hint or '; known: ' + ', '.join(known)}")


class _Keys:
    """Reads the keys of one manifest."""

    def __init__(self, directory: Path, place: str, given: Mapping[str, Any], text: str) -> None:
        self._directory, self._place, self._given, self._source = directory, place, given, text
        self._resolved = directory.resolve()

    def _error(self, words: str) -> ConfigError:
        return ConfigError(f"{self._place}: {words}")

    def manifest(self, replaced: Mapping[str, Value]) -> WorkloadManifest:
        """The manifest with these values of variables."""
        known = [field.name for field in dataclasses.fields(WorkloadManifest)]
        for key in self._given:
            if key not in known:
                meant = f"; did you mean {MEANT[key]}?" if key in MEANT else registry.suggestion("key", key, known)
                raise self._error(f"unknown key {key!r}{meant or '; known: ' + ', '.join(known)}")
        schema, data = self._file("schema", SCHEMA), self._data()
        after_load = self._after_load()
        reset = self._reset()
        others = {schema, data, *after_load, reset}
        if not schema and not data.endswith(SQL_ENDINGS):
            raise self._error(f"there is no {SCHEMA}: write CREATE TABLE statements into it")
        variables = {**values(self._place, self._given.get("variables", {})), **replaced}
        return WorkloadManifest(
            database=self._database(),
            schema=schema,
            data=data,
            rows=self._rows(variables),
            transactions=self._transactions(others),
            after_load=after_load,
            reset=reset,
            variables=variables,
            attempts=self._attempts(),
        )

    def _text(self, key: str, usual: str) -> str:
        value = self._given.get(key, usual)
        if not isinstance(value, str):
            raise self._error(f"{key}={value!r}: it accepts a text")
        return value

    def _file(self, key: str, usual: str) -> str:
        name = self._text(key, usual if (self._directory / usual).is_file() else "")
        return self._existing(key, name) if name else ""

    def _existing(self, key: str, name: str) -> str:
        """The name of a file that is inside of the directory."""
        if not isinstance(name, str):
            raise self._error(f"{key}: {name!r}: it accepts names of files")
        path = (self._resolved / name).resolve()
        if not path.is_relative_to(self._resolved):
            raise self._error(f"{key}: {name!r} is outside of the directory: copy it into {self._directory.name}/")
        if not path.exists():
            files = sorted(path.name for path in self._directory.iterdir())
            raise self._error(f"{key}: there is no file {name!r}{registry.suggestion('file', name, files)}")
        return name

    def _data(self) -> str:
        usual = next((name for name in DATA if (self._directory / name).exists()), "")
        name = self._text("data", usual)
        if not name:
            return ""
        self._existing("data", name)
        if not (self._directory / name).is_dir() and not name.endswith(SQL_ENDINGS):
            raise self._error(
                f"data={name!r}: it accepts a directory with TABLE.csv and TABLE.tsv, or a file of SQL, which ends in "
                f"{', '.join(SQL_ENDINGS)}"
            )
        return name.rstrip("/")

    def _after_load(self) -> tuple[str, ...]:
        names = self._given.get("after_load", [])
        if not isinstance(names, list):
            raise self._error(f'after_load={names!r}: it accepts a list of files, such as ["triggers.sql"]')
        return tuple(self._existing("after_load", name) for name in names)

    def _database(self) -> str:
        usual = "dbcluster_" + re.sub(r"\W", "_", self._resolved.name, flags=re.ASCII).lower()
        name = self._text("database", usual[:64])
        if not DATABASE.fullmatch(name) or name.lower() in SYSTEM:
            raise self._error(f"database={name!r}: it accepts a name of letters, digits and _, and none of the server")
        return name

    def _rows(self, variables: Mapping[str, Value]) -> Mapping[str, int]:
        given = self._given.get("rows", {})
        if not isinstance(given, dict):
            raise self._error(f"rows={given!r}: it accepts tables with numbers, such as {{customers = 20000}}")
        return {table: self._count(table, value, variables) for table, value in given.items()}

    def _count(self, table: str, given: object, variables: Mapping[str, Value]) -> int:
        """The rows of a table: a number, or the value of a variable such as ``:customers``."""
        count = given
        if isinstance(given, str) and given.startswith(":"):
            if given[1:] not in variables:
                known = [f":{name}" for name in variables]
                raise self._error(f"rows: {table}={given!r}: {registry.unknown('variable', given, known)}")
            count = variables[given[1:]]
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            shown = f"{given!r}" if given is count else f"{given!r} is {count!r}"
            raise self._error(
                f'rows: {table}={shown}: it accepts a whole number, 1 or more, or a variable such as ":customers"'
            )
        return count

    def _reset(self) -> str:
        reset = self._text("reset", "surplus")
        if reset in RESETS:
            return reset
        if reset.endswith(".sql"):
            return self._existing("reset", reset)
        hint = registry.suggestion("reset", reset, RESETS)
        raise self._error(f"reset={reset!r}: it accepts {', '.join(RESETS)}, or a file of SQL{hint}")

    def _attempts(self) -> int:
        attempts = self._given.get("attempts", ATTEMPTS)
        if isinstance(attempts, bool) or not isinstance(attempts, int) or attempts < 1:
            raise self._error(f"attempts={attempts!r}: it accepts a whole number, 1 or more")
        return attempts

    def _transactions(self, others: Collection[str]) -> tuple[Weighted, ...]:
        if "transactions" in self._given:
            found = transactions_of(self._place, self._given["transactions"], self._source)
        else:
            names = sorted(path.name for path in self._directory.glob("*.sql") if path.name not in {*others, *DATA})
            found = tuple(Weighted(name) for name in names)
        if not found:
            raise self._error(
                f"there is no transaction: write SQL statements into a file such as {self._directory.name}/browse.sql"
            )
        for each in found:
            self._existing("transactions", each.file)
        return found
