"""From entries to transactions: what each connection did, from BEGIN to COMMIT or ROLLBACK, or one statement alone."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable

from pytest_dbcluster.workloads.digest.log.log_files import Figures, LogEntry
from pytest_dbcluster.workloads.digest.log.statement_shapes import Literals, Shapes, StatementShape
from pytest_dbcluster.workloads.digest.log.transaction_classes import Classes

SINGLE, COMMIT, ROLLBACK = "", "COMMIT", "ROLLBACK"
MOST_SESSIONS = 50_000
MOST_STATEMENTS = 1000  # of one transaction; longer ones are counted, not kept
CLOSING = ("Quit", "Connect", "Change user", "Reset connection")
AUTOCOMMIT = re.compile(
    r"SET (?:SESSION |LOCAL |@@(?:SESSION\.|LOCAL\.)?)?autocommit ?:?= ?(\?|ON|OFF|TRUE|FALSE)", re.I
)
SETS_UP = re.compile(
    r"SET (?!@\w)|USE |SHOW (?!.*\bFROM\b)|KILL |SELECT (?!.*\bFROM\b).*"
    r"(?:@@|\b(?:CONNECTION_ID|DATABASE|SCHEMA|VERSION|USER|CURRENT_USER|LAST_INSERT_ID)\(\))",
    re.I | re.S,
)
SAVEPOINT = re.compile(r"(SAVEPOINT|RELEASE SAVEPOINT|ROLLBACK(?: WORK)? TO(?: SAVEPOINT)?) (\S+)", re.I)
USES = re.compile(r"USE (\S+)", re.I)
SETUP, BEGIN, AUTO, MARK, STATEMENT = "setup", "begin", "autocommit", "savepoint", "statement"


@dataclasses.dataclass(slots=True)
class LogSession:
    """One connection."""

    schema: str = ""
    """The database of the connection."""

    explicit: bool = False
    """Whether a BEGIN has no end yet."""

    autocommit: bool = True
    """Whether a statement outside of BEGIN commits by itself."""

    cut: bool = False
    """Whether its transaction has more than MOST_STATEMENTS statements."""

    savepoints: list[str] = dataclasses.field(default_factory=list)
    """The names of the savepoints of the transaction, in order."""

    time: int = 0
    """When the transaction began, in seconds since 1970."""

    shapes: list[int] = dataclasses.field(default_factory=list)
    """The number of the shape of each statement of the transaction."""

    literals: list[Literals] = dataclasses.field(default_factory=list)
    """The values of each of these statements."""

    figures: list[Figures] = dataclasses.field(default_factory=list)
    """What the log tells of each of these statements."""

    control: list[float] = dataclasses.field(default_factory=list)
    """Seconds of its BEGIN and COMMIT."""


@dataclasses.dataclass
class LogTotals:
    """What a log has in all."""

    entries: int = 0
    """Number of entries."""

    statements: int = 0
    """Number of statements, with those that set up sessions."""

    seconds: float = 0.0
    """Time of all statements."""

    setup: int = 0
    """Number of statements that set up a session, such as SET NAMES."""

    setup_seconds: float = 0.0
    """Time of the statements that set up a session."""

    unfinished: int = 0
    """Number of statements of transactions whose end is not in the log."""

    unfinished_seconds: float = 0.0
    """Time of the statements without an end."""

    too_long: int = 0
    """Number of transactions with more than MOST_STATEMENTS statements."""

    too_long_seconds: float = 0.0
    """Time of the transactions that are too long."""

    shortest: float = float("inf")
    """Seconds of the fastest statement."""

    begins: int = 0
    """Number of BEGIN statements."""

    ends: int = 0
    """Number of COMMIT and ROLLBACK statements."""

    first: int = 0
    """Time of the first entry, in seconds since 1970; 0 if unknown."""

    last: int = 0
    """Time of the last entry."""

    connections: int = 0
    """Number of connections."""


class Sessions:
    """Reads entries, and gives whole transactions to ``classes``."""

    def __init__(self) -> None:
        self.shapes = Shapes()
        self.classes = Classes()
        self.totals = LogTotals()
        self._sessions: dict[int, LogSession] = {}
        self._kinds: dict[int, str] = {}

    def read(self, entries: Iterable[LogEntry]) -> None:
        """Read all entries, then count what has no end."""
        for entry in entries:
            self.add(entry)
        for session in self._sessions.values():
            self._drop(session)
        self._sessions.clear()

    def add(self, entry: LogEntry) -> None:
        """Read one entry."""
        totals = self.totals
        totals.entries += 1
        session = self._sessions.get(entry.thread)
        if entry.command in CLOSING:
            if session:
                self._drop(session)
                del self._sessions[entry.thread]
            session = None
        if session is None:
            session = self._open(entry.thread)
        if entry.schema is not None:
            session.schema = entry.schema
        if entry.time:
            totals.first = totals.first or entry.time
            totals.last = entry.time
        if entry.command != "Query" or not entry.text:
            return
        totals.statements += 1
        seconds = entry.figures.seconds
        totals.seconds += seconds
        if seconds < totals.shortest:
            totals.shortest = seconds
        shape, literals = self.shapes.of(entry.text)
        kind = self._kinds.get(shape.number) or self._kind(shape)
        if kind == STATEMENT:
            self._statement(session, shape, literals, entry)
        else:
            self._control(session, kind, shape, literals, entry)

    def _open(self, thread: int) -> LogSession:
        if len(self._sessions) >= MOST_SESSIONS:  # a connection of a log without Quit
            oldest = next(iter(self._sessions))
            self._drop(self._sessions.pop(oldest))
        self.totals.connections += 1
        session = self._sessions[thread] = LogSession()
        return session

    def _kind(self, shape: StatementShape) -> str:
        text = shape.text
        if shape.verb == "BEGIN" or (shape.verb == "START" and "TRANSACTION" in text.upper()):
            kind = BEGIN
        elif SAVEPOINT.match(text):
            kind = MARK
        elif shape.verb in (COMMIT, ROLLBACK):
            kind = shape.verb
        elif AUTOCOMMIT.match(text):
            kind = AUTO
        else:
            kind = SETUP if SETS_UP.match(text) else STATEMENT
        self._kinds[shape.number] = kind
        return kind

    def _control(
        self, session: LogSession, kind: str, shape: StatementShape, literals: Literals, entry: LogEntry
    ) -> None:
        totals = self.totals
        if kind == MARK:
            self._statement(session, self._savepoint(session, shape), (), entry)
        elif kind == BEGIN:
            self._end(session, COMMIT)
            session.explicit = True
            session.time = entry.time
            totals.begins += 1
            session.control.append(entry.figures.seconds)
        elif kind in (COMMIT, ROLLBACK):
            totals.ends += 1
            session.control.append(entry.figures.seconds)
            self._end(session, kind)
        else:
            # The entries of a slow log name the database; those of a general log do not.
            if entry.schema is None and (used := USES.match(shape.text)):
                session.schema = used[1].strip("`")
            if kind == AUTO:
                value = str(literals[0]).strip("'\"") if literals else shape.text.rpartition("=")[2].strip().upper()
                session.autocommit = value in ("1", "ON", "TRUE")
                if session.autocommit and not session.explicit:
                    self._end(session, COMMIT)
            totals.setup += 1
            totals.setup_seconds += entry.figures.seconds

    def _savepoint(self, session: LogSession, shape: StatementShape) -> StatementShape:
        """The statement with a name that is equal in all transactions."""
        found = SAVEPOINT.match(shape.text)
        assert found
        words, name = found[1].upper(), found[2].strip("`")
        if name not in session.savepoints:
            session.savepoints.append(name)
        made = self.shapes.shape_of(f"{words} s{session.savepoints.index(name) + 1}")
        if words == "RELEASE SAVEPOINT":
            del session.savepoints[session.savepoints.index(name) :]
        return made

    def _statement(self, session: LogSession, shape: StatementShape, literals: Literals, entry: LogEntry) -> None:
        if not session.shapes and not session.explicit:
            session.time = entry.time
        if session.explicit or not session.autocommit:
            if len(session.shapes) >= MOST_STATEMENTS:
                session.cut = True
                self.totals.too_long_seconds += entry.figures.seconds
                return
            session.shapes.append(shape.number)
            session.literals.append(literals)
            session.figures.append(entry.figures)
            return
        self.classes.add(session.schema, SINGLE, (shape.number,), [literals], [entry.figures], session.time, [])

    def _end(self, session: LogSession, ending: str) -> None:
        if session.cut:
            self.totals.too_long += 1
            self.totals.too_long_seconds += _seconds(session)
        elif session.shapes:
            sequence = tuple(session.shapes)
            self.classes.add(
                session.schema, ending, sequence, session.literals, session.figures, session.time, session.control
            )
        else:
            self.totals.setup += len(session.control)
            self.totals.setup_seconds += sum(session.control)
        session.shapes, session.literals, session.figures, session.control = [], [], [], []
        session.explicit = session.cut = False
        session.savepoints.clear()

    def _drop(self, session: LogSession) -> None:
        """Count a transaction without an end. The server has rolled it back, or the log ends before it."""
        self.totals.unfinished += len(session.figures) + len(session.control)
        self.totals.unfinished_seconds += _seconds(session)


def _seconds(session: LogSession) -> float:
    return sum(figures.seconds for figures in session.figures) + sum(session.control)
