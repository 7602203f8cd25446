"""Files of SQL that make tables and data: their statements, and the tables that they make."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from pytest_dbcluster import registry
from pytest_dbcluster.workloads.sql.language.lexer import FilePlace, SQLText, Token, replace_variables
from pytest_dbcluster.workloads.sql.language.lua_expressions import sql_literal

DATABASES = ("DATABASE", "SCHEMA")
CREATE = re.compile(r"\s*CREATE\s+TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?(?:`([^`]+)`|(\w+))", re.IGNORECASE)
MODIFIERS = ("OR", "REPLACE", "IF", "NOT", "EXISTS")


def split(source: SQLText) -> Iterator[tuple[FilePlace, str]]:
    """The statements of a file, each with its place. ``DELIMITER`` lines are obeyed.

    Raises ConfigError for USE and for statements about databases: all tables are in the workload's own.
    """
    for tokens in _statements(source):
        telling = [token for token in tokens if not token.silent]
        if telling:
            _refuse_databases(source, telling)
            yield source.place(telling[0].start), "".join(token.text for token in tokens).strip()


def _refuse_databases(source: SQLText, telling: Sequence[Token]) -> None:
    words = [token.word for token in telling[:2]]
    if words[0] == "USE" or (words[0] in ("CREATE", "DROP", "ALTER") and words[1:] and words[1] in DATABASES):
        name = "USE" if words[0] == "USE" else " ".join(words)
        raise source.place(telling[0].start).error(
            f"{name}: all tables are in one database, which `database` in workload.toml names; leave this statement out"
        )


def _statements(source: SQLText) -> Iterator[list[Token]]:
    delimiter, tokens, at = ";", list[Token](), 0
    while at < len(source.text):
        if source.text.startswith(delimiter, at):
            yield tokens
            tokens, at = [], at + len(delimiter)
            continue
        token = source.token(at)
        at = token.end
        if token.word == "DELIMITER" and not any(not each.silent for each in tokens):
            rest, at = source.rest_of_line(at)
            if not rest.strip():
                raise source.place(token.start).error("DELIMITER needs a text after it, such as DELIMITER //")
            delimiter = rest.strip()
            continue
        tokens.append(token)
    yield tokens


def created_tables(source: SQLText) -> list[str]:
    """The tables that a file makes, in order. Temporary tables and views are left out.

    Raises ConfigError for statements about databases.
    """
    found = []
    for tokens in _statements(source):
        telling = [token for token in tokens if not token.silent]
        words = [token.word for token in telling]
        if telling:
            _refuse_databases(source, telling)
        if words[:1] != ["CREATE"] or "TABLE" not in words[1:4] or "TEMPORARY" in words[1:4]:
            continue
        after = telling[words.index("TABLE") + 1 :]
        names = [token for token in after if token.word not in MODIFIERS]
        if len(names) > 2 and names[1].text == ".":
            raise source.place(names[0].start).error("a name of a table has no database here: write the table alone")
        found.append(names[0].name)
    return found


def dumped_tables(lines: Iterable[str]) -> list[str]:
    """The tables that a dump makes. Only lines that begin with CREATE TABLE count: a dump may be large."""
    return [found[1] or found[2] for found in map(CREATE.match, lines) if found]


def with_values(source: SQLText, constants: Mapping[str, int | float | str | bool]) -> SQLText:
    """The text of a file with the values of its variables. Raises ConfigError for an unknown one."""

    def value(token: Token) -> str:
        name = token.text[1:]
        if name not in constants:
            hint = registry.suggestion("variable", name, sorted(constants)).replace("mean ", "mean :")
            listed: Sequence[str] = sorted(constants)
            raise source.place(token.start).error(
                f"unknown variable :{name}{hint or '; known: ' + (', '.join(listed) or 'none')}; [variables] of "
                "workload.toml gives one a value"
            )
        return sql_literal(constants[name])

    return SQLText(source.file, replace_variables(source, value))
