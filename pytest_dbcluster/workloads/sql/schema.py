"""Files of SQL that make tables and data: their statements, and the tables that they make."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence

from pytest_dbcluster import registry
from pytest_dbcluster.workloads.sql.language.lexer import FilePlace, SQLText, Token, replace_variables
from pytest_dbcluster.workloads.sql.language.lua_expressions import sql_literal

DATABASES = ("DATABASE", "SCHEMA")
MODIFIERS = ("OR", "REPLACE", "IF", "NOT", "EXISTS")
NOT_PRIMARY = ("UNIQUE", "FOREIGN", "FULLTEXT", "SPATIAL", "BY", "LINEAR")  # words before KEY
# With one of these, only the server knows whether a table has a primary key, or one that serves as it.
UNCLEAR = ("LIKE", "SELECT", "UNIQUE", "SERIAL")


@dataclasses.dataclass(frozen=True)
class CreatedTable:
    """A table as its CREATE TABLE has it."""

    place: FilePlace
    """The place of the statement."""

    name: str
    """Its name, without a database."""

    engine: str
    """Its storage engine, as written; empty for that of the server."""

    keyed: bool | None
    """Whether it has a primary key; None if the text does not show it."""

    statement: str = ""
    """Its CREATE TABLE in a dump; empty in other files, and if a later statement changes the table."""


def refuse_databases(source: SQLText) -> None:
    """Raise ConfigError if the text of a statement is one about databases."""
    first = list(itertools.islice((token for token in source.tokens() if not token.silent), 2))
    if first:
        _refuse_databases(source, first)


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


def created_tables(source: SQLText, before: Sequence[CreatedTable] = ()) -> list[CreatedTable]:
    """The tables that are there after a file, in order. Temporary tables and views are left out.

    before: the tables that are there before it. Raises ConfigError for statements about databases.
    """
    found = {table.name: table for table in before}
    for tokens in _statements(source):
        telling = [token for token in tokens if not token.silent]
        if not telling:
            continue
        _refuse_databases(source, telling)
        words = [token.word for token in telling]
        if table := _created_table(source, telling, words):
            found[table.name] = table
        elif words[:2] == ["ALTER", "TABLE"] and telling[2:] and telling[2].name in found:
            name = telling[2].name
            found[name] = dataclasses.replace(found[name], engine="", keyed=None, statement="")
    return list(found.values())


def _created_table(source: SQLText, telling: Sequence[Token], words: Sequence[str]) -> CreatedTable | None:
    """The table that a statement makes; None for any other statement."""
    if words[:1] != ["CREATE"] or "TABLE" not in words[1:4] or "TEMPORARY" in words[1:4]:
        return None
    after = telling[words.index("TABLE") + 1 :]
    names = [token for token in after if token.word not in MODIFIERS]
    if len(names) > 2 and names[1].text == ".":
        raise source.place(names[0].start).error("a name of a table has no database here: write the table alone")
    keyed = any(
        token.word == "KEY" and before.text not in ("(", ",") and before.word not in NOT_PRIMARY
        for before, token in itertools.pairwise(names)
    )
    unclear = any(token.word in UNCLEAR for token in names)
    return CreatedTable(
        source.place(telling[0].start), names[0].name, _engine(names), True if keyed else None if unclear else False
    )


def _engine(tokens: Sequence[Token]) -> str:
    """The value of ENGINE after the columns; empty without it."""
    depth = 0
    for number, token in enumerate(tokens):
        depth += (token.text == "(") - (token.text == ")")
        if token.word == "ENGINE" and depth == 0:
            rest = [each for each in tokens[number + 1 : number + 3] if each.text != "="]
            return rest[0].text.strip("'\"`") if rest else ""
    return ""


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

    return SQLText(source.file, replace_variables(source, value), source.begin)
