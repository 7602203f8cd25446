"""Node: one server on one host, with its my.cnf, process, control connection and error log.

``Node.write_options`` is the only code that writes a my.cnf. It works on every kind of host.
"""

from __future__ import annotations

import contextlib
import copy
import math
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeVar

from pytest_dbcluster import wait
from pytest_dbcluster.clusters.dialects.dialect import Dialect
from pytest_dbcluster.clusters.dialects.lookup import dialect
from pytest_dbcluster.clusters.servers import path_options
from pytest_dbcluster.clusters.servers.connection import (
    STATEMENT_SECONDS,
    AppendingConnection,
    Connection,
    Endpoint,
    NoAnswer,
    SQLError,
)
from pytest_dbcluster.errors import ConfigError, NodeDied, NodeStopped, ProvisionError, how_ended
from pytest_dbcluster.hosts.host import DATA, LOOK_SECONDS, Host, Process, at_once
from pytest_dbcluster.releases.release import Release

Answer = TypeVar("Answer")
ADMIN = "dbcluster"  # the control account
LOAD = "dbcluster_load"  # the account of workloads; it has no administrator rights
LAST_LINES = 15
# Relative to the data directory, which is the server's working directory. A socket's path may have at most 107 bytes
# (unix(7)), and the path of the host's directory may be longer.
SOCKET = "../sql.sock"
CONNECT_SECONDS = 5.0
KILL_SECONDS = 120.0  # the longest end after SIGKILL: a large process takes a while
AGAIN_SECONDS = 10.0  # until SIGKILL is sent again
STOPPED_SECONDS = 2.0  # how long a signal may stop a server before we report it
LAZY = "@dbcluster_lazy_flush"  # keeps the value of a server variable while we flush the log
LISTS = (path_options.LIST, "plugin_load_add")


class Node:
    """One server on one host.

    - data, log: absolute paths of the data directory and the error log on the host.
    - options: the server options of the last ``configure``, by name.
    - process: the server's process; None until ``start``.
    - sql: the control connection.
    """

    def __init__(self, name: str, host: Host, release: Release, port: int, password: str) -> None:
        self.name = name
        self.host = host
        self.use(release)
        self.port = port
        self.password = password
        self.data = f"{host.directory}/{DATA}"
        self.log = f"{host.directory}/error.log"
        self.options: dict[str, str] = {}
        self.process: Process | None = None
        self._log_seen = 0
        self._looked, self._stopped = (
            -math.inf,
            math.inf,
        )  # times of the last look and of the first look that found it stopped
        self._stopped_at: float | None = None  # the server's CPU seconds at that first look
        # The timeout is short: if another program has the port, it may never answer. The server's log has the error.
        self.sql = Connection(name, self.endpoint, seconds=CONNECT_SECONDS, look=self.look)

    @property
    def endpoint(self) -> Endpoint:
        """The address and control account of this node itself, not of a proxy."""
        host, tls = self.host, self.dialect.control_tls
        return Endpoint(
            host.address, self.port, ADMIN, self.password, nodes=(self.name,), tls=tls, connects=host.connects
        )

    def configure(self, needed: Mapping[str, str], options: Mapping[str, str] = MappingProxyType({})) -> None:
        """Write the node's my.cnf to ``<host directory>/my.cnf``, and keep its server options in ``self.options``.

        Later entries override earlier ones: the dialect's pinned options, options of the release, ``needed``, then
        ``options``. The node's paths, address and port come last; only ``needed`` overrides them.

        needed: our own options; in a cluster those of the topology (``Topology.options``). options: the user's options.

        Raises ConfigError before it writes anything, in two cases. A user's option could make the server open a file
        outside its node (``path_options.require_inside``), or the node itself sets it.
        """
        path_options.require_inside(options)
        own = {
            "datadir": self.data,
            "bind_address": self.host.address,
            "port": str(self.port),
            "socket": SOCKET,
            "log_error": self.log,
            "pid_file": f"{self.host.directory}/server.pid",
            "tmpdir": self.host.directory,
        }
        if taken := [name for name in options if not own.keys().isdisjoint(path_options.bases(name))]:
            raise ConfigError(f"option {taken[0]!r}: pytest-dbcluster itself sets it; leave it out")
        last = {name: needed.get(name, value) for name, value in own.items()}
        others = {**self.dialect.preset, **self.release.server_options, **merge(needed, options)}
        self.options = {name: value for name, value in others.items() if name not in own} | last
        self.write_options()

    def change_options(self, changes: Mapping[str, str | None]) -> None:
        """Change server options in ``self.options``; None removes one. ``write_options`` writes them."""
        changed = {**self.options, **changes}
        self.options = {name: value for name, value in changed.items() if value is not None}

    def write_options(self) -> None:
        """Write ``self.options`` to the node's my.cnf; a running server keeps its options. Raises ProvisionError."""
        lines = [path_options.cnf_line(name, value) for name, value in self.options.items()]
        client = [f"{name} = {value}" for name, value in self.release.client_options.items()]
        client += [argument.removeprefix("--") for argument in self.dialect.plain]
        # The script of a full state transfer listens with socat, by default on every address of the machine.
        transfer = ["", "[sst]", f"sockopt = bind={self.host.address}"] if "wsrep_provider" in self.options else []
        text = "\n".join(["[mysqld]", *lines, "", "[client]", *client, *transfer, ""])
        self.host.push(text.encode(), f"{self.host.directory}/my.cnf")

    def use(self, release: Release) -> None:
        """Let the next ``configure`` and ``start`` use this release. Its programs must be on the host."""
        self.release = release
        self.dialect: Dialect = dialect(release.product, release.version)

    def start(self, *arguments: str) -> None:
        """Start the server with extra ``arguments``, without waiting for it to answer. Raises ProvisionError."""
        # The script of a state transfer and the programs that it runs come from one release, so these come first.
        own = [str(path) for path in (self.release.transfer_tools, self.release.bin) if path]
        path = ":".join([*own, "/usr/sbin", "/usr/bin", "/sbin", "/bin"])
        environment = {"PATH": path, **self.release.environment}
        self.process = self.host.spawn(
            [*self.command, *arguments], log=self.log, directory=self.host.directory, environment=environment
        )

    @property
    def command(self) -> list[str]:
        """The server's command line with the node's my.cnf."""
        command = [str(self.release.program(self.dialect.server)), f"--defaults-file={self.host.directory}/my.cnf"]
        # The server refuses to run as root without this option.
        return [*command, "--user=root"] if self.host.root else command

    @property
    def running(self) -> bool:
        """Whether the server's process runs."""
        process = self.process  # another thread may replace it
        return process is not None and process.status() is None

    def problems(self) -> list[str]:
        """Return why the server does not answer, in one line; empty if it answers. Raises NodeDied if it has ended."""
        self.alive()
        try:
            self.sql.query("SELECT 1")
        except SQLError as error:
            if error.lost:
                self.look()
            return [f"{self.name}: {error}"]
        return []

    def alive(self) -> None:
        """Raise NodeDied with the last lines of the error log if the server's process has ended.

        Raises ProvisionError if its host is lost.
        """
        status = self.process.status() if self.process else 0
        if status is not None:
            ended = how_ended(status)
            if limit := self.host.limit_reached():
                ended += f": {limit}"
            raise NodeDied(self.name, ended, self.log, self.last_lines())

    def look(self) -> None:
        """Raise an error if the server will not answer; call this while you wait for it.

        NodeDied: it has ended. NodeStopped: a signal has stopped it for STOPPED_SECONDS. ProvisionError: its host is
        lost or does not answer.
        """
        if lost := self.host.why_lost():
            raise ProvisionError(f"node {self.name}: {lost}")
        self.alive()
        if time.monotonic() - self._looked >= LOOK_SECONDS and self.is_stopped():
            raise NodeStopped(self.name)

    def is_stopped(self) -> bool:
        """Return whether a signal has stopped the server for at least STOPPED_SECONDS. Raises ProvisionError.

        If it used CPU time between two looks, it ran between them.
        """
        self._looked = now = time.monotonic()
        if self.process is None or not self.process.is_stopped():
            self._stopped = math.inf
        elif self._stopped == math.inf or self.process.cpu_seconds() != self._stopped_at:
            self._stopped, self._stopped_at = now, self.process.cpu_seconds()
        return now - self._stopped >= STOPPED_SECONDS

    def wait_answering(self, seconds: float = 60.0) -> None:
        """Wait until the server answers. Raises NodeDied; NotReady after ``seconds``, which slower hosts lengthen."""
        wait.until(self.problems, f"node {self.name}", seconds=seconds * self.host.patience)

    def stop(self, seconds: float = 60.0) -> None:
        """Shut the server down cleanly (SIGTERM); kill it if this takes longer than ``seconds``.

        Raises ProvisionError as ``kill`` does.
        """
        self.sql.close()
        self._end(signal.SIGTERM, seconds)

    def kill(self) -> None:
        """Kill the server (SIGKILL), as a crash would. Raises ProvisionError if it does not end in KILL_SECONDS."""
        self.sql.close()
        self._end(signal.SIGKILL, 0)

    def _end(self, number: int, seconds: float) -> None:
        if self.process is None or not self.running:
            return
        if self.process.is_stopped():  # it would handle SIGTERM only after SIGCONT
            number = signal.SIGKILL
        self.process.signal(number)
        limit = time.monotonic() + seconds + KILL_SECONDS * self.host.patience
        again = time.monotonic() + (seconds or AGAIN_SECONDS)
        while self.process.status() is None:
            if (now := time.monotonic()) > limit:
                process = f"its server, process {self.process.pid}"
                raise ProvisionError(f"node {self.name}: {process}, has not ended {KILL_SECONDS:g} s after SIGKILL")
            if now > again:
                self.process.signal(signal.SIGKILL)
                again = now + AGAIN_SECONDS
            time.sleep(0.01)

    def variables(self) -> dict[str, str]:
        """Return every global variable by name in lower case."""
        return self.pairs("SHOW GLOBAL VARIABLES")

    def status(self, pattern: str = "") -> dict[str, str]:
        """Return the global status variables, or those LIKE ``pattern``, by name in lower case."""
        return self.pairs("SHOW GLOBAL STATUS" + (f" LIKE '{pattern}'" if pattern else ""))

    @property
    def flush_statements(self) -> list[str]:
        """Statements that flush InnoDB's log, for one round trip; ``flush_backlog`` reads the rows of the last."""
        lazy, names = self.dialect.lazy_flush, f"'{self.dialect.log_current}', '{self.dialect.log_flushed}'"
        return [
            f"SET {LAZY} = @@global.{lazy}",
            f"SET GLOBAL {lazy} = 1",
            self.dialect.flush,
            f"SET GLOBAL {lazy} = {LAZY}",
            f"SHOW GLOBAL STATUS WHERE Variable_name IN ({names})",
        ]

    def flush_log(self) -> list[str]:
        """Flush InnoDB's log, and return what is still not on disk; empty if everything is."""
        try:
            return self.flush_backlog(self.batch(self.flush_statements)[-1])
        except SQLError:
            with contextlib.suppress(SQLError):  # a lost connection has also lost the user variable
                self.query(f"SET GLOBAL {self.dialect.lazy_flush} = {LAZY}")
            raise

    def flush_backlog(self, rows: Sequence[tuple[Any, ...]]) -> list[str]:
        """What is not on disk yet, from the rows of the last of ``flush_statements``; empty if everything is.

        Also empty for a version that does not report the positions of its log: its flush has ended when it returns.
        """
        current, flushed = self.dialect.log_current, self.dialect.log_flushed
        if not flushed:
            return []
        log = {str(name).lower(): str(value) for name, value in rows}
        if log[flushed] == log[current]:
            return []
        return [f"{self.name}: log flushed to {log[flushed]} of {log[current]}"]

    def append_statements(self, statements: Sequence[str]) -> tuple[Node, AppendingConnection]:
        """Return a copy that appends ``statements`` to every query, and the collector of their results."""
        node = copy.copy(self)
        node.sql = through = AppendingConnection(self.sql, statements)
        return node, through

    def query(self, statement: str, seconds: float = STATEMENT_SECONDS) -> list[tuple[Any, ...]]:
        """Run one statement on the control connection, and return its rows.

        seconds: the limit of ``Connection.results``. Raises SQLError and the errors of ``look``.
        """
        with self._explain_loss():
            return self.sql.query(statement, seconds)

    def batch(self, statements: Sequence[str], seconds: float = STATEMENT_SECONDS) -> list[list[tuple[Any, ...]]]:
        """Run statements in one round trip, and return the rows of each. Raises the errors of ``query``."""
        with self._explain_loss():
            return self.sql.batch(statements, seconds)

    def pairs(self, statement: str, seconds: float = STATEMENT_SECONDS) -> dict[str, str]:
        """Run a statement with two columns; return value by name in lower case. Raises the errors of ``query``."""
        with self._explain_loss():
            return self.sql.pairs(statement, seconds)

    def records(self, statement: str, seconds: float = STATEMENT_SECONDS) -> list[dict[str, str]]:
        """Run a statement; return each row as value by column name in lower case. Raises the errors of ``query``."""
        with self._explain_loss():
            return self.sql.records(statement, seconds)

    @contextlib.contextmanager
    def separate(self) -> Iterator[Connection]:
        """A separate control connection, for statements that must not keep ``sql`` waiting; it closes at the end."""
        connection = Connection(self.name, self.endpoint, seconds=CONNECT_SECONDS, look=self.look)
        try:
            yield connection
        finally:
            connection.close()

    @contextlib.contextmanager
    def _explain_loss(self) -> Iterator[None]:
        try:
            yield
        except SQLError as error:
            if error.lost and not isinstance(error, NoAnswer):  # a server that has ended closes its connections
                self.raise_if_dead()
            raise

    def raise_if_dead(self, seconds: float = 5.0) -> None:
        """Raise NodeDied if the server dies within ``seconds``; return as soon as it answers.

        Call this after a lost connection: a killed process closes its sockets before we can read its exit status. If
        the server neither answers nor ends within ``seconds``, this raises no error.
        """
        limit = time.monotonic() + seconds
        while self.problems():
            if time.monotonic() > limit:
                return
            time.sleep(0.02)

    def last_lines(self, number: int = LAST_LINES) -> list[str]:
        """Return the last ``number`` lines of the error log, after at most as many earlier [ERROR] lines.

        The cause of a failure is often far above the end of the log.
        """
        lines = self._log_text().decode("utf-8", "replace").splitlines()
        earlier = [line for line in lines[:-number] if "[ERROR]" in line]
        return earlier[:number] + lines[-number:]

    def _log_text(self, offset: int = 0) -> bytes:
        try:
            return self.host.pull(self.log, offset=offset)
        except FileNotFoundError:
            return b""

    def log_size(self) -> int:
        """Return the bytes of the error log so far, for ``log_text``."""
        return len(self._log_text())

    def log_text(self, offset: int = 0) -> str:
        """Return the error log from this byte on."""
        return self._log_text(offset).decode("utf-8", "replace")

    def new_errors(self) -> list[str]:
        """Return the [ERROR] lines added to the log since the last call, without an incomplete last line."""
        complete, newline, _ = self._log_text(self._log_seen).rpartition(b"\n")
        self._log_seen += len(complete + newline)
        return [line for line in complete.decode("utf-8", "replace").splitlines() if "[ERROR]" in line]


def of_each(nodes: Sequence[Node], ask: Callable[[Node], Answer]) -> list[Answer]:
    """What ``ask`` returns for each node, in order; in parallel if an answer takes a round trip (``at_once``)."""
    return at_once(nodes, ask, [node.host for node in nodes])


def merge(needed: Mapping[str, str], options: Mapping[str, str]) -> dict[str, str]:
    """Return the options for a node's my.cnf: the user's ``options`` override the topology's (``needed``).

    ``wsrep_provider_options`` and ``plugin_load_add`` are lists: this appends the user's entries to the topology's.
    """
    joined = {**needed, **options}
    for name in LISTS:
        if name in needed and name in options:
            joined[name] = f"{needed[name]};{options[name]}"
    return joined
