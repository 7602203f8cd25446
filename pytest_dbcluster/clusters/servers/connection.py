"""The control connection to one server: for control and checks, never for workloads.

It always uses mysql-connector-python's pure Python implementation. The C extension needs a newer OpenSSL than some
hosts have, and the connector then falls back to pure Python silently. The environment fingerprint names the driver.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import select
import socket
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from pytest_dbcluster import wait
from pytest_dbcluster.errors import DBClusterError
from pytest_dbcluster.hosts.host import LOOK_SECONDS, Connects, connected

CLOSE_SECONDS = 2.0
STATEMENT_SECONDS = 30.0  # without a byte of the answer, after which a statement of control has failed
WRITE_SECONDS = 10.0  # until the server has taken a statement: it reads one into memory before it runs it
READ_TIMED_OUT = 3024  # the connector's number of it
Result = tuple[list[str], list[tuple[Any, ...]]]  # the names of its columns in lower case, and its rows


class SQLError(DBClusterError):
    """A statement failed; the message has the server's error number and text.

    number: the server's or the client's error number; None if unknown. statement: the statement's full text.
    lost: the client could not connect, or lost the connection, so the server did not refuse the statement.
    """

    def __init__(self, where: str, statement: str, number: int | None, words: str) -> None:
        self.number = number
        self.statement = statement
        self.lost = number is None or number < 0 or 2000 <= number < 3000  # 2000 to 2999: errors of the client
        super().__init__(f"{where}: {statement[:200]!r} was refused: {number} {words}")


class NoAnswer(SQLError):
    """A server did not answer a statement in time; the connection is closed. seconds: the limit."""

    def __init__(self, where: str, statement: str, number: int | None, seconds: float) -> None:
        super().__init__(where, statement, number, "")
        self.seconds, self.lost = seconds, True
        kind = statement.split(None, 1)[0].upper()
        self.args = (f"{where} did not answer a statement {kind} within {seconds:g} s: {statement[:200]!r}",)


def nothing_to_see() -> None:
    """No look at the server: nobody knows more of it than its answers."""


class Connection:
    """One connection to a server; it opens at the first statement, and again after a restart of the server.

    ``name`` is shown in errors. ``seconds`` is the connection timeout. ``look`` is called once a second while it
    connects and while a statement waits for its answer. It raises an error for a server that will not answer; the
    connection is closed then.

    Every statement takes a limit of ``seconds``: without a byte of its answer for so long it raises NoAnswer.
    """

    def __init__(
        self, name: str, endpoint: Endpoint, *, seconds: float = 30.0, look: Callable[[], None] = nothing_to_see
    ) -> None:
        self.name = name
        self.endpoint = endpoint
        self._seconds = seconds
        self._look = look
        self._connection: Any = None
        self._using = threading.RLock()  # the timeline asks servers during a round, from a thread of its own

    def query(self, statement: str, seconds: float = STATEMENT_SECONDS) -> list[tuple[Any, ...]]:
        """Run one statement and return its rows; empty for a statement without a result. Raises SQLError."""
        return self._ask(statement, seconds)[1]

    def records(self, statement: str, seconds: float = STATEMENT_SECONDS) -> list[dict[str, str]]:
        """Run one statement; return each row as text by column name, in lower case; NULL is "". Raises SQLError."""
        names, rows = self._ask(statement, seconds)
        return [
            {name: "" if value is None else str(value) for name, value in zip(names, row, strict=True)} for row in rows
        ]

    def _ask(self, statement: str, seconds: float) -> Result:
        return self.results(statement, seconds)[0]

    def batch(self, statements: Sequence[str], seconds: float = STATEMENT_SECONDS) -> list[list[tuple[Any, ...]]]:
        """Run statements in one round trip and return the rows of each. The first that fails ends it: SQLError.

        The error names all of them, and those before it have been run.
        """
        return [rows for _, rows in self.results("; ".join(statements), seconds)]

    def results(self, statement: str, seconds: float = STATEMENT_SECONDS) -> list[Result]:
        """Run statements, with semicolons between them, and return the result of each. Raises SQLError.

        Raises NoAnswer for a server that does not answer one of them within ``seconds``.
        """
        with self._using:
            try:
                return self._results(statement, seconds)
            except SQLError as error:
                if error.lost:
                    self.close()
                raise
            except BaseException:  # Ctrl-C, or a look at the server: the answer that comes late is nobody's
                self.close()
                raise

    def _results(self, statement: str, seconds: float) -> list[Result]:
        from mysql.connector import errors
        from mysql.connector.cursor import MySQLCursor

        results = []
        try:
            connection = self._open()
            connection.read_timeout = max(1, math.ceil(seconds))  # the connector takes whole seconds alone
            cursor = MySQLCursor(connection)  # the connection's own cursor() asks the server whether it is there
            cursor.execute(statement)
            more: bool | None = True
            while more:
                rows = cursor.fetchall() if cursor.with_rows else []
                names = [str(name).lower() for name in cursor.column_names]
                results.append((names, [tuple(_text(value) for value in row) for row in rows]))
                more = cursor.nextset()
            cursor.close()
        except errors.ReadTimeoutError as error:
            raise NoAnswer(self.name, statement, error.errno, seconds) from None
        except errors.ConnectionTimeoutError as error:
            raise NoAnswer(self.name, statement, error.errno, self._seconds) from None
        except errors.WriteTimeoutError as error:
            raise NoAnswer(self.name, statement, error.errno, WRITE_SECONDS) from None
        except errors.Error as error:
            raise SQLError(self.name, statement, error.errno, error.msg or str(error)) from None
        return results

    def pairs(self, statement: str, seconds: float = STATEMENT_SECONDS) -> dict[str, str]:
        """Run a statement with two columns (SHOW GLOBAL STATUS); return value by name, in lower case; NULL is ""."""
        return {str(row[0]).lower(): "" if row[1] is None else str(row[1]) for row in self.query(statement, seconds)}

    def run(self, statements: Sequence[str], seconds: float = STATEMENT_SECONDS) -> None:
        """Run statements in order. Raises SQLError."""
        for statement in statements:
            self.query(statement, seconds)

    def close(self) -> None:
        """Close the connection; the next statement opens it again.

        Another thread may wait for a server that does not answer: after CLOSE_SECONDS the connection is closed under
        that thread.
        """
        alone = self._using.acquire(timeout=CLOSE_SECONDS)
        try:
            if self._connection is not None:
                with contextlib.suppress(Exception):
                    self._connection.close()
                self._connection = None
        finally:
            if alone:
                self._using.release()

    def _open(self) -> Any:
        if self._connection is None:
            # The connector's default collation for newer MariaDB servers is MySQL's utf8mb4_0900_ai_ci: set another.
            self._connection = _connector(self.endpoint.connects, self._seconds, self._look)(
                host=self.endpoint.host,
                port=self.endpoint.port,
                user=self.endpoint.user,
                password=self.endpoint.password,
                charset="utf8mb4",
                collation="utf8mb4_general_ci",
                autocommit=True,
                ssl_disabled=not self.endpoint.tls,
                connection_timeout=self._seconds,
                read_timeout=max(1, math.ceil(self._seconds)),
                write_timeout=math.ceil(WRITE_SECONDS),
            )
        return self._connection


class Accompanied(Connection):
    """A connection on which the same statements follow all others, in the same round trip.

    They are reads, or may be repeated as often as the caller asks something. ``answers``: the rows of each, as the last
    round trip brought them; None before the first.
    """

    def __init__(self, connection: Connection, statements: Sequence[str]) -> None:
        super().__init__(connection.name, connection.endpoint)
        self._through = connection
        self._statements = list(statements)
        self.answers: list[list[tuple[Any, ...]]] | None = None

    def results(self, statement: str, seconds: float = STATEMENT_SECONDS) -> list[Result]:
        """Run statements and then those that follow all others; return the results of the first. Raises SQLError."""
        results = self._through.results("; ".join([statement, *self._statements]), seconds)
        asked = len(results) - len(self._statements)
        self.answers = [rows for _, rows in results[asked:]]
        return results[:asked]

    def close(self) -> None:
        """Close the connection."""
        self._through.close()


def _connector(connects: Connects | None, seconds: float, look: Callable[[], None]) -> Callable[..., Any]:
    """The connector's class of connections, with sockets that ``connects`` makes, and that look at the server."""
    from mysql.connector import errors
    from mysql.connector.connection import MySQLConnection
    from mysql.connector.network import MySQLTCPSocket

    def reached(address: str, port: int) -> socket.socket:
        if connects:
            return connects(address, port, seconds)
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        return connected(address, port, seconds, look, socket.socket(family))

    class Socket(MySQLTCPSocket):
        def open_connection(self) -> None:
            try:
                self.sock = reached(self.server_host, self.server_port)
            except OSError as error:
                where = (self.server_host, self.server_port, str(error))
                raise errors.InterfaceError(errno=2003, values=where) from error

        def switch_to_ssl(self, ssl_context: Any, host: str) -> None:
            # The connector refuses encryption over a UNIX socket; ours may lead to a server on another machine.
            try:
                self.sock = ssl_context.wrap_socket(self.sock, server_hostname=host)
            except OSError as error:
                raise errors.InterfaceError(errno=2055, values=(self.address, str(error))) from error

        def recv(self, read_timeout: int | None = None) -> bytearray:
            limit = read_timeout or seconds  # the connector has none until the connection is made
            if not _readable(self.sock, limit, look):
                raise errors.ReadTimeoutError(errno=READ_TIMED_OUT)
            return super().recv(read_timeout)

    class Connector(MySQLConnection):
        def _get_connection(self) -> MySQLTCPSocket:
            made = Socket(self.server_host, self.server_port)
            made.set_connection_timeout(self._connection_timeout)
            return made

    return Connector


def _readable(stream: Any, seconds: float, look: Callable[[], None]) -> bool:
    """Wait until a socket has something to read, or its end; False after so many seconds. Looks at the server."""
    if stream is None or (hasattr(stream, "pending") and stream.pending()):
        return True  # without a socket the connector says so
    poll, began = select.poll(), time.monotonic()
    poll.register(stream, select.POLLIN)
    while not poll.poll(max(0.0, 1000 * min(LOOK_SECONDS, began + seconds - time.monotonic()))):
        if time.monotonic() >= began + seconds:
            return False
        wait.raise_if_interrupted()
        look()
    return True


def _text(value: Any) -> Any:
    return value.decode("utf-8", "replace") if isinstance(value, bytes | bytearray) else value


def driver() -> str:
    """Return name and version of the control connection's driver, for the environment fingerprint."""
    import mysql.connector

    return f"mysql-connector-python {mysql.connector.__version__}, pure Python"


@dataclasses.dataclass(frozen=True, slots=True)
class Endpoint:
    """Where and how a client connects. The password is never part of a repr."""

    host: str
    port: int
    user: str
    password: str = dataclasses.field(repr=False)
    nodes: tuple[str, ...] = ()
    """The names of the nodes that this endpoint leads to."""

    tls: bool = False
    """Whether the connection uses TLS."""

    connects: Connects | None = dataclasses.field(default=None, repr=False, compare=False)
    """As that of a host."""
