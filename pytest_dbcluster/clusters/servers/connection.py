"""The control connection to one server: for control and checks, never for workloads.

It always uses mysql-connector-python's pure Python implementation. Some hosts' OpenSSL is too old for the C extension,
and the connector then falls back to pure Python silently. The environment fingerprint names the driver.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
import select
import socket
import struct
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from pytest_dbcluster import wait
from pytest_dbcluster.errors import DBClusterError
from pytest_dbcluster.hosts.host import LOOK_SECONDS, Connects, connect_socket

CLOSE_SECONDS = 2.0
STATEMENT_SECONDS = 30.0  # a control statement fails if it gets no byte of its result for this long
WRITE_SECONDS = 10.0  # for sending a statement: the server reads it into memory, then runs it
READ_BYTES = 2**16
BYTES = (bytes, bytearray)
HEADER_BYTES = 4  # of a packet: three for its length, one for its number
READ_TIMED_OUT = 3024  # the connector's error number
IDLE = 4031  # the error number of a server that closed the connection because it was idle
# A user's my.cnf may end idle connections and long statements. In our sessions the limits are 24 days and none.
LIMITS = "SET SESSION wait_timeout = 2147483, {} = 0"
MALFORMED = 2027  # the client's error number for an answer that it cannot read
Result = tuple[list[str], list[tuple[Any, ...]]]  # column names in lower case, and rows


class SQLError(DBClusterError):
    """A statement failed; the message has the server's error number and text.

    - number: the server's or the client's error number; None if unknown.
    - statement: the statement's full text.
    - reason: the server's or the client's text.
    - lost: the client could not connect, or lost the connection, so the server did not refuse the statement.
    """

    def __init__(self, where: str, statement: str, number: int | None, words: str) -> None:
        self.number = number
        self.statement = statement
        self.reason = words
        # 2000 to 2999: errors of the client.
        self.lost = number is None or number < 0 or 2000 <= number < 3000 or number == IDLE
        super().__init__(f"{where}: {statement[:200]!r} failed: {number} {words}")


class NoAnswer(SQLError):
    """A server did not answer a statement in time, so we closed the connection. seconds: the limit."""

    def __init__(self, where: str, statement: str, number: int | None, seconds: float) -> None:
        super().__init__(where, statement, number, "")
        self.seconds, self.lost = seconds, True
        kind = statement.split(None, 1)[0].upper()
        self.args = (f"{where} did not answer a {kind} statement within {seconds:g} s: {statement[:200]!r}",)


def no_look() -> None:
    """Do nothing: the default of connections that cannot check the server's process or host."""


class Connection:
    """One connection to a server; it opens at the first statement, and again after a restart of the server.

    - name: the name in errors.
    - seconds: the connection timeout.
    - look: called once a second while the connection opens or waits for a result. It raises an error if the server
      will not answer; we then close the connection.

    Every statement has a limit of ``seconds``: it raises NoAnswer if it gets no byte of its result for this long.
    """

    def __init__(
        self, name: str, endpoint: Endpoint, *, seconds: float = 30.0, look: Callable[[], None] = no_look
    ) -> None:
        self.name = name
        self.endpoint = endpoint
        self._seconds = seconds
        self._look = look
        self._connection: Any = None
        self._using = threading.RLock()  # the timeline queries servers during a round, from a separate thread

    def query(self, statement: str, seconds: float = STATEMENT_SECONDS) -> list[tuple[Any, ...]]:
        """Run one statement and return its rows; empty if it has no result. Raises SQLError."""
        return self._ask(statement, seconds)[1]

    def records(self, statement: str, seconds: float = STATEMENT_SECONDS) -> list[dict[str, str]]:
        """Run one statement; return each row as text by column name in lower case. NULL is "". Raises SQLError."""
        names, rows = self._ask(statement, seconds)
        return [
            {name: "" if value is None else str(value) for name, value in zip(names, row, strict=True)} for row in rows
        ]

    def _ask(self, statement: str, seconds: float) -> Result:
        return self.results(statement, seconds)[0]

    def batch(self, statements: Sequence[str], seconds: float = STATEMENT_SECONDS) -> list[list[tuple[Any, ...]]]:
        """Run statements in one round trip and return the rows of each.

        Raises SQLError at the first that fails: those before it have run. The error shows all of them.
        """
        return [rows for _, rows in self.results("; ".join(statements), seconds)]

    def results(self, statement: str, seconds: float = STATEMENT_SECONDS) -> list[Result]:
        """Run statements, separated by semicolons, and return the result of each.

        Raises SQLError; NoAnswer if the server does not answer one of them within ``seconds``.
        """
        return self._exchange(statement, seconds)

    def send(self, statement: bytes, seconds: float = STATEMENT_SECONDS) -> None:
        """Run one statement, which the server gets as it is, in any character set. Raises SQLError."""
        self._exchange(statement, seconds)

    def _exchange(self, statement: str | bytes, seconds: float) -> list[Result]:
        with self._using:
            try:
                return self._results(statement, seconds)
            except SQLError as error:
                if error.lost:
                    self.close()
                raise
            except BaseException:  # Ctrl-C, or an error of ``look``: a late result must not reach the next caller
                self.close()
                raise

    def _results(self, statement: str | bytes, seconds: float) -> list[Result]:
        from mysql.connector import errors
        from mysql.connector.cursor import MySQLCursor

        results = []
        try:
            connection = self._open()
            connection.read_timeout = max(1, math.ceil(seconds))  # the connector accepts only whole seconds
            cursor = MySQLCursor(connection)  # the connection's own cursor() pings the server first
            given: Any = statement  # bytes too, which its annotations leave out
            cursor.execute(given)
            more: bool | None = True
            while more:
                rows = cursor.fetchall() if cursor.with_rows else []
                names = [str(name).lower() for name in cursor.column_names]
                results.append((names, [tuple(map(_text, row)) for row in rows]))
                more = cursor.nextset()
            cursor.close()
        except errors.ReadTimeoutError as error:
            raise NoAnswer(self.name, _text(statement), error.errno, seconds) from None
        except errors.ConnectionTimeoutError as error:
            raise NoAnswer(self.name, _text(statement), error.errno, self._seconds) from None
        except errors.WriteTimeoutError as error:
            raise NoAnswer(self.name, _text(statement), error.errno, WRITE_SECONDS) from None
        except errors.Error as error:
            raise SQLError(self.name, _text(statement), error.errno, error.msg or str(error)) from None
        except (IndexError, struct.error) as error:  # the connector reads packets that it does not expect
            raise SQLError(self.name, _text(statement), MALFORMED, f"malformed answer: {error}") from error
        return results

    def pairs(self, statement: str, seconds: float = STATEMENT_SECONDS) -> dict[str, str]:
        """Run a statement with two columns (SHOW GLOBAL STATUS); return value by name in lower case. NULL is ""."""
        return {str(row[0]).lower(): "" if row[1] is None else str(row[1]) for row in self.query(statement, seconds)}

    def run(self, statements: Sequence[str], seconds: float = STATEMENT_SECONDS) -> None:
        """Run statements in order. Raises SQLError."""
        for statement in statements:
            self.query(statement, seconds)

    def certificate(self) -> bytes:
        """The certificate of the server in DER, if the connection uses TLS; empty if the server does not offer it."""
        self.query("DO 0")
        show = getattr(self._connection._socket.sock, "getpeercert", None)
        return show(binary_form=True) or b"" if show else b""

    def close(self) -> None:
        """Close the connection; the next statement opens it again.

        If another thread still waits for a result after CLOSE_SECONDS, this closes the connection under that thread.
        """
        acquired = self._using.acquire(timeout=CLOSE_SECONDS)
        try:
            if self._connection is not None:
                with contextlib.suppress(Exception):
                    self._connection.close()
                self._connection = None
        finally:
            if acquired:
                self._using.release()

    def _open(self) -> Any:
        if self._connection is None:
            # Without a collation the connector sets MySQL's utf8mb4_0900_ai_ci, also on newer MariaDB servers.
            made = _connector(self.endpoint.connects, self._seconds, self._look)(
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
                converter_class=_converter(),
            )
            try:
                made.cmd_query(LIMITS.format("max_statement_time" if is_mariadb(made) else "max_execution_time"))
            except BaseException:
                made.close()
                raise
            self._connection = made
        return self._connection


class AppendingConnection(Connection):
    """A connection that appends the same statements to every query, in the same round trip.

    - statements: the appended statements; it must be safe to repeat them.
    - answers: the rows of each appended statement from the last round trip; None before the first.
    """

    def __init__(self, connection: Connection, statements: Sequence[str]) -> None:
        super().__init__(connection.name, connection.endpoint)
        self._through = connection
        self._statements = list(statements)
        self.answers: list[list[tuple[Any, ...]]] | None = None

    def results(self, statement: str, seconds: float = STATEMENT_SECONDS) -> list[Result]:
        """Run statements and the appended ones; return only the results of ``statement``. Raises SQLError."""
        results = self._through.results("; ".join([statement, *self._statements]), seconds)
        count = len(results) - len(self._statements)
        self.answers = [rows for _, rows in results[count:]]
        return results[:count]

    def close(self) -> None:
        """Close the connection."""
        self._through.close()


@functools.cache
def _tls_context() -> Any:
    """TLS that verifies no certificate, which all connections share."""
    import ssl

    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname, made.verify_mode = False, ssl.CERT_NONE
    return made


def _build_ssl_context(*_: Any, **__: Any) -> Any:
    """Return the shared context. The connector's own method reads CA certificates, and verifies nothing."""
    return _tls_context()


def _connect(connects: Connects | None, address: str, port: int, seconds: float, look: Callable[[], None]) -> Any:
    """A socket that ``connects`` opens, or one to this address."""
    if connects:
        return connects(address, port, seconds)
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return connect_socket(address, port, seconds, look, socket.socket(family))


def is_mariadb(connection: Any) -> bool:
    """Whether the server of a connection of the connector is MariaDB, by the version in its greeting."""
    return "mariadb" in str(connection.server_info).lower()


def _connector(connects: Connects | None, seconds: float, look: Callable[[], None]) -> Callable[..., Any]:
    """The connector's connection class, with sockets that ``connects`` opens and that call ``look`` while they wait."""
    from mysql.connector import errors
    from mysql.connector.connection import MySQLConnection
    from mysql.connector.network import MySQLTCPSocket

    class Socket(MySQLTCPSocket):
        build_ssl_context = _build_ssl_context
        _of: Callable[[], Any]

        def open_connection(self) -> None:
            try:
                self.sock = _connect(connects, self.server_host, self.server_port, seconds, look)
            except OSError as error:
                where = (self.server_host, self.server_port, str(error))
                raise errors.InterfaceError(errno=2003, values=where) from error

        def switch_to_ssl(self, ssl_context: Any, host: str) -> None:
            # The connector refuses TLS over a UNIX socket, but ours may lead to a server on another machine.
            try:
                self.sock = ssl_context.wrap_socket(self.sock, server_hostname=host)
            except OSError as error:
                raise errors.InterfaceError(errno=2055, values=(self.address, str(error))) from error

        def recv(self, read_timeout: int | None = None) -> bytearray:
            # The connector sets no limit until the connection is made, and none for the second result and later ones.
            limit = read_timeout or (not self._connection_timeout and self._of().read_timeout) or seconds
            packets: Any = self._netbroker
            if not packets.rest and not _readable(self.sock, limit, look):
                raise errors.ReadTimeoutError(errno=READ_TIMED_OUT)
            return packets.whole() or super().recv(math.ceil(limit))

    class Connector(MySQLConnection):
        def _get_connection(self) -> MySQLTCPSocket:
            made = Socket(self.server_host, self.server_port)
            made._of = weakref.ref(self)  # its limit is that of the statement
            made._netbroker = _packets()
            made.set_connection_timeout(self._connection_timeout)
            return made

    return Connector


def _packets() -> Any:
    """The connector's reader of packets, which here reads at once what has arrived.

    Each row is a packet, for which the connector itself reads twice.
    """
    from mysql.connector import errors
    from mysql.connector.network import NetworkBrokerPlain

    class Packets(NetworkBrokerPlain):
        def __init__(self) -> None:
            super().__init__()
            self.rest = bytearray()  # of what has arrived

        def whole(self) -> bytearray | None:
            """The next packet, if all of it has arrived."""
            end = HEADER_BYTES + int.from_bytes(self.rest[: HEADER_BYTES - 1], "little")
            if len(self.rest) < max(end, HEADER_BYTES):
                return None
            packet = self.rest[:end]
            del self.rest[:end]
            self._pktnr = packet[HEADER_BYTES - 1]
            return packet

        def _recv_chunk(self, sock: socket.socket, size: int = 0) -> bytearray:
            while len(self.rest) < size:
                part = sock.recv(READ_BYTES)
                if not part:
                    raise errors.InterfaceError(errno=2013)
                self.rest += part
            chunk = self.rest[:size]
            del self.rest[:size]
            return chunk

    return Packets()


def _converter() -> Any:
    """The connector's class that converts rows, which here takes less time for rows of texts."""
    from mysql.connector.constants import FieldFlag, FieldType
    from mysql.connector.conversion import MySQLConverter

    class Converter(MySQLConverter):
        _fields: Any = None  # of the last row
        _texts = False  # whether all of them are texts

        def row_to_python(self, row: Any, fields: Any) -> Any:
            if fields is not self._fields:
                self._fields = fields
                self._texts = all(field[1] == FieldType.VAR_STRING and not field[7] & FieldFlag.SET for field in fields)
            return row if self._texts else super().row_to_python(row, fields)

    return Converter


def _readable(stream: Any, seconds: float, look: Callable[[], None]) -> bool:
    """Wait until a socket is readable or closed, and call ``look`` meanwhile; False after ``seconds``."""
    if stream is None or (hasattr(stream, "pending") and stream.pending()):
        return True  # without a socket the connector raises its own error
    poll, began = select.poll(), time.monotonic()
    poll.register(stream, select.POLLIN)
    while not poll.poll(max(0.0, 1000 * min(LOOK_SECONDS, began + seconds - time.monotonic()))):
        if time.monotonic() >= began + seconds:
            return False
        wait.raise_if_interrupted()
        look()
    return True


def _text(value: Any) -> Any:
    return value.decode("utf-8", "replace") if isinstance(value, BYTES) else value


def driver() -> str:
    """Return the name and version of the control connection's driver, for the environment fingerprint."""
    import mysql.connector

    return f"mysql-connector-python {mysql.connector.__version__}, pure Python"


@dataclasses.dataclass(frozen=True, slots=True)
class Endpoint:
    """Where and how a client connects. The password is never part of a repr."""

    host: str
    """The host name or address."""

    port: int
    """The TCP port."""

    user: str
    """The user to connect as."""

    password: str = dataclasses.field(repr=False)
    """The password of the user."""

    nodes: tuple[str, ...] = ()
    """The names of the nodes that this endpoint leads to."""

    tls: bool = False
    """Whether the connection uses TLS."""

    connects: Connects | None = dataclasses.field(default=None, repr=False, compare=False)
    """The host's function that opens connections to it; None: connect directly."""
