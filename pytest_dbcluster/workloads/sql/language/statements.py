"""What one SQL statement of a transaction does: reads, writes, or begins and ends a transaction.

``analyse`` also refuses what a load must not send: statements that change the schema or the server, and variable names
of tables.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from pytest_dbcluster import registry
from pytest_dbcluster.workloads.sql.language.lexer import FilePlace, SQLText, Token

READING = ("DESC", "DESCRIBE", "DO", "EXPLAIN", "SELECT", "SET", "SHOW", "TABLE", "VALUES", "WITH")
WRITING = ("CALL", "DELETE", "INSERT", "REPLACE", "UPDATE")
ENDING = ("COMMIT", "ROLLBACK")
OTHER = ("BEGIN", "RELEASE", "SAVEPOINT", "START")
KNOWN = (*READING, *WRITING, *ENDING, *OTHER)
PREPARABLE = ("DELETE", "INSERT", "REPLACE", "SELECT", "UPDATE", "WITH", "CALL", "DO")
SCHEMA = "it changes tables and commits the transaction; only schema.sql makes tables"
SERVER = "it changes the server for all clients"
REFUSED = {
    **dict.fromkeys(("ALTER", "CREATE", "DROP", "RENAME", "TRUNCATE"), SCHEMA),
    **dict.fromkeys(("ANALYZE", "CHECK", "FLUSH", "OPTIMIZE", "REPAIR"), "it is maintenance of the server"),
    **dict.fromkeys(("CHANGE", "GRANT", "INSTALL", "KILL", "PURGE", "RESET", "REVOKE", "STOP", "UNINSTALL"), SERVER),
    "DELIMITER": "only files of schema and data have it",
    "LOAD": "data are loaded from the directory that `data` names",
    "LOCK": "it commits the transaction: lock rows with SELECT ... FOR UPDATE",
    "UNLOCK": "it commits the transaction",
    "USE": "all tables are in the database of the workload",
    "XA": "a retry covers a transaction from BEGIN to COMMIT",
}
RETURNING = ("DELETE", "INSERT", "REPLACE")
TABLE_FOLLOWS = ("FROM", "INTO", "JOIN", "TABLE", "UPDATE")
BEGIN, COMMIT, ROLLBACK = "begin", "commit", "rollback"


@dataclasses.dataclass(frozen=True)
class Placeholder:
    """A variable in a statement."""

    place: FilePlace
    """The place of its colon."""

    name: str
    """The variable, without the colon."""


@dataclasses.dataclass(frozen=True)
class Statement:
    """One statement with its placeholders."""

    place: FilePlace
    """Where it begins, after spaces and comments."""

    parts: tuple[str | Placeholder, ...]
    """Its text, with placeholders in their places."""

    verb: str
    """Its first word, in upper case."""

    writes: bool
    """Whether it may change rows."""

    role: str = ""
    """``begin``, ``commit`` or ``rollback``; empty for any other statement."""

    target: str = ""
    """The table that it inserts into; empty for any other statement."""

    returns: bool = False
    """Whether an INSERT, REPLACE or DELETE returns rows, by RETURNING."""

    columns: tuple[str, ...] = ()
    r"""The names of its result's columns, as far as \gset needs them."""

    reads_into: tuple[str, ...] = ()
    r"""The variables that \gset gives the values of its row."""

    insert_id: str = ""
    r"""The variable that \insert_id sets."""

    @property
    def placeholders(self) -> list[Placeholder]:
        """The placeholders, in order."""
        return [part for part in self.parts if isinstance(part, Placeholder)]

    @property
    def preparable(self) -> bool:
        """Whether the server can prepare it, and sysbench can use it then. It reads prepared rows of SELECT only."""
        return self.verb in PREPARABLE and self.verb != "CALL" and not self.reads_into and not self.returns

    def with_marks(self) -> str:
        """Its text with ``?`` for each placeholder."""
        return "".join("?" if isinstance(part, Placeholder) else part for part in self.parts)


def analyse(source: SQLText, tokens: Sequence[Token]) -> Statement | None:
    """The statement of these tokens; None if they hold no statement. Raises ConfigError for one that is refused."""
    telling = [token for token in tokens if not token.silent]
    if not telling:
        return None
    first, last = telling[0].start, telling[-1].start
    kept = [token for token in tokens if first <= token.start <= last and token.kind != "line_comment"]
    place = source.place(telling[0].start)
    words = [token.word for token in telling]
    verb = words[0] or ("SELECT" if telling[0].text == "(" else "")
    role = _role(place, words, verb)
    main = _main_verb(telling) if verb == "WITH" else verb
    _refuse(source, telling, words)
    return Statement(
        place,
        tuple(_parts(source, kept)),
        verb,
        writes=main in WRITING,
        role=role,
        target=_target(telling) if main in ("INSERT", "REPLACE") else "",
        returns=main in RETURNING and any(token.word == "RETURNING" for token in _outside(telling)),
    )


def _role(place: FilePlace, words: Sequence[str], verb: str) -> str:
    """Whether it begins or ends a transaction. Raises ConfigError for statements that a load must not send."""
    if reason := REFUSED.get(verb):
        raise place.error(f"{verb} is not possible in a transaction file: {reason}")
    if verb not in KNOWN:
        hint = registry.suggestion("statement", verb, KNOWN)
        raise place.error(f"a statement cannot begin with {verb or 'this'}{hint or '; known: ' + ', '.join(KNOWN)}")
    rest = [word for word in words[1:] if word != "WORK"]
    if verb == "BEGIN" and rest:
        raise place.error("BEGIN has no more words: write BEGIN; for a transaction, and a procedure into after_load")
    if verb == "START" and rest[:1] != ["TRANSACTION"]:
        raise place.error("START begins a transaction only: write START TRANSACTION;")
    if verb == "COMMIT" and rest:
        raise place.error(f"COMMIT {' '.join(rest)}: write COMMIT;")
    if verb == "ROLLBACK" and rest and rest[0] != "TO":
        raise place.error(f"ROLLBACK {' '.join(rest)}: write ROLLBACK;")
    if verb in ("BEGIN", "START"):
        return BEGIN
    return {"COMMIT": COMMIT, "ROLLBACK": "" if rest else ROLLBACK}.get(verb, "")


def _refuse(source: SQLText, telling: Sequence[Token], words: Sequence[str]) -> None:
    """Raise ConfigError for what a load must not send although its first word is known."""
    if words[0] == "SET":
        for number, token in enumerate(telling):
            name = token.text.upper().lstrip("@")
            if name in ("GLOBAL", "PERSIST", "PERSIST_ONLY"):
                raise source.place(token.start).error(f"SET {name} changes the server for all clients: use the options "
                                                      "of a ClusterSpec")  # fmt: skip
            if name == "AUTOCOMMIT":
                raise source.place(token.start).error("SET autocommit hides where a transaction ends: use BEGIN and "
                                                      "COMMIT")  # fmt: skip
            if number and name == "TRANSACTION":
                raise source.place(token.start).error(
                    "SET TRANSACTION: use SQLFiles(isolation=...), so that it is part of the workload's name"
                )
    for before, token in zip((None, *telling), telling, strict=False):
        if token.text == "?":
            raise source.place(token.start).error("? is not a placeholder here: write :name")
        if token.kind == "variable" and before:
            _refuse_name(source, before, token)


def _refuse_name(source: SQLText, before: Token, token: Token) -> None:
    """Raise ConfigError for a variable that would be the name of a table or a part of a name."""
    place = source.place(token.start)
    if before.end == token.start and (before.kind in ("word", "quoted") or before.text == "."):
        raise place.error(f"{before.text}{token.text}: a variable is a value, not a part of a name; use \\if for a "
                          "choice of tables")  # fmt: skip
    if before.word in TABLE_FOLLOWS:
        hint = "\\gset reads the result of a SELECT" if before.word == "INTO" else "use \\if for a choice of tables"
        raise place.error(f"{before.word} {token.text}: a variable is a value, not the name of a table; {hint}")


def _parts(source: SQLText, tokens: Sequence[Token]) -> Iterator[str | Placeholder]:
    """The text of the tokens and the placeholders. Spaces and line comments outside of quotes become one space."""
    text = ""
    for token in tokens:
        if token.kind == "space":
            text += "" if text.endswith(" ") else " "
        elif token.kind == "variable":
            if text:
                yield text
            text = ""
            yield Placeholder(source.place(token.start), token.text[1:])
        else:
            text += token.text
    if text:
        yield text


def _outside(tokens: Sequence[Token]) -> Iterator[Token]:
    """The tokens that are not in parentheses, with the parentheses themselves."""
    depth = 0
    for token in tokens:
        depth -= token.text == ")"
        if depth == 0:
            yield token
        depth += token.text == "("


def _main_verb(tokens: Sequence[Token]) -> str:
    """What a statement that begins with WITH does."""
    verbs = (token.word for token in _outside(tokens) if token.word in ("SELECT", *WRITING))
    return next(verbs, "SELECT")


def _target(tokens: Sequence[Token]) -> str:
    """The table that an INSERT or REPLACE writes, without its database."""
    names = [token for token in tokens[1:] if token.word not in ("LOW_PRIORITY", "DELAYED", "HIGH_PRIORITY", "IGNORE",
                                                                 "INTO")]  # fmt: skip
    if len(names) > 2 and names[1].text == ".":
        return names[2].name
    return names[0].name if names else ""


def columns(source: SQLText, tokens: Sequence[Token]) -> list[tuple[FilePlace, str]]:
    """The names of the columns that a SELECT, or RETURNING, gives, each with its place; empty for a ``*``.

    Raises ConfigError for a statement without a result that can be named.
    """
    telling = [token for token in tokens if not token.silent]
    outside = list(_outside(telling))
    begins = [number for number, token in enumerate(outside) if token.word in ("SELECT", "RETURNING")]
    if not begins:
        raise source.place(telling[0].start).error(
            "\\gset needs a statement with a result: SELECT, or INSERT ... RETURNING"
        )
    items: list[list[Token]] = [[]]
    for token in outside[begins[0] + 1 :]:
        if token.word in ("FROM", "INTO", "WHERE", "UNION", "LIMIT", "ORDER", "GROUP", "FOR", "HAVING"):
            break
        if token.text == ",":
            items.append([])
        elif items[-1] or token.word not in ("DISTINCT", "ALL", "STRAIGHT_JOIN", "SQL_NO_CACHE", "HIGH_PRIORITY"):
            items[-1].append(token)
    return [_column(source, telling[0], item) for item in items]


def _column(source: SQLText, first: Token, item: Sequence[Token]) -> tuple[FilePlace, str]:
    place = source.place(item[0].start if item else first.start)
    if not item or item[-1].text == "*":
        raise place.error("\\gset needs the names of the columns: write them in place of *")
    last = item[-1]
    whole = len(item) == 1 or item[-2].text == "."
    aliased = len(item) > 1 and (item[-2].word == "AS" or item[-2].kind in ("word", "quoted", "number", "variable")
                                 or item[-2].text == ")")  # fmt: skip
    name = last.name or (last.text[1:-1] if last.kind == "string" and aliased else "")
    if not name or name.startswith("@") or not (whole or aliased) or last.word in ("END", "NULL", "TRUE", "FALSE"):
        raise place.error("\\gset needs a name for this column: write AS name after it")
    if not name.isidentifier():
        raise place.error(f"\\gset: column {name!r} cannot be a variable: write AS name after it")
    return place, name
