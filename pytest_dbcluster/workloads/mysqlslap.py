"""mysqlslap: its five generated workloads, as published (paper), or with a table that stays between rounds (quick).

The profile quick takes the SQL from the tool itself: ``--only-print`` prints the table, the preload and the statements
of one client. The tool picks the id of each keyed statement with random() when it sends the statement. A list of
statements cannot do that, so in quick the server computes the id from the connection's id. That id is constant while
a statement runs, so the statement is still one lookup by key. It differs between clients, so two clients use the same
row as rarely as in the published workload.

If there are several load hosts, the first one runs everything. The tool prints the seconds from the start of its
clients until the last one ends. Two calls cannot start at a common time. So the figures of two hosts cannot be added.
In the profile paper each call also makes and drops the one table.
"""

from __future__ import annotations

import dataclasses
import re
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pytest_dbcluster import calls, formatting, registry, wait
from pytest_dbcluster.errors import CommandFailed, ConfigError, UnreadableOutput, WorkloadError
from pytest_dbcluster.rounds.round import RunResult
from pytest_dbcluster.workloads import arguments
from pytest_dbcluster.workloads.workload import Setting, Workload

if TYPE_CHECKING:
    from pytest_dbcluster.clusters.cluster import Cluster
    from pytest_dbcluster.clusters.dialects.dialect import Dialect
    from pytest_dbcluster.clusters.servers.connection import Endpoint
    from pytest_dbcluster.releases.release import Release

MODES = ("key", "mixed", "read", "update", "write")
ENDPOINTS = ("writer", "reader")
FROM_ONE = ("concurrency", "queries", "rows", "int_columns", "char_columns", "iterations", "quick_queries")
PUBLISHED_QUERIES = 1000
QUICK_QUERIES = {"key": 5000, "read": 100}
WRITING = {"write": 1.0, "update": 1.0, "mixed": 0.5}  # mode -> share of its statements that write
SCHEMA = "dbcluster_slap"
IMAGE = "binlog_row_image"  # of a row in the binlog and in a writeset of Galera
PRIMES = (7919, 104_729)
PLACEHOLDER = re.compile(r"id =\s+'[0-9a-f-]{20,}'")
LONG_QUERY = re.compile(r"(Cannot run query (?:(?! ERROR : ).){60}).*?( ERROR : )", re.DOTALL)  # an INSERT has 1.4 kB
RESULT = re.compile(
    r"^Benchmark\s*\n(?:\s*Running for engine .*\n)?"
    r"\s*Average number of seconds to run all queries: (?P<average>[0-9.]+) seconds\n"
    r"\s*Minimum number of seconds to run all queries: (?P<least>[0-9.]+) seconds\n"
    r"\s*Maximum number of seconds to run all queries: (?P<most>[0-9.]+) seconds\n"
    r"\s*Number of clients running queries: (?P<clients>\d+)\n"
    r"\s*Average number of queries per client: (?P<each>\d+)\s*$",
    re.MULTILINE,
)


@calls.check_arguments(
    'MySQLSlap("write", concurrency=50)', instead={"threads": "concurrency", "clients": "concurrency"}
)
@dataclasses.dataclass(frozen=True)
class MySQLSlap(Workload):
    """One mode of mysqlslap with the published parameters."""

    mode: str
    """``key``, ``mixed``, ``read``, ``update`` or ``write``."""

    concurrency: int = 50
    """Number of clients."""

    queries: int = 1000
    """Statements of one iteration, over all clients."""

    rows: int = 5000
    """The tool's --auto-generate-sql-write-number. The tool preloads one row less."""

    int_columns: int = 10
    """Number of INT columns of the table (the tool's --number-int-cols)."""

    char_columns: int = 10
    """Number of VARCHAR columns of the table (the tool's --number-char-cols)."""

    quick_queries: int | None = None
    """Statements of one round in the profile quick. None runs ``queries``, with two exceptions if that is 1000.
    read runs 100, because each query scans the table and 1000 take 10 s. key runs 5000, because 1000 take only .07 s.
    """

    iterations: int = 10
    """Iterations of one call in the profile paper; their average is the result of the round."""

    seconds: float = 300.0
    """Timeout of a call, in seconds."""

    to: str | None = None
    """The cluster's ``writer`` or ``reader``; None chooses. ``update`` goes to the writer, because the tool ends with
    an error if two nodes update one row. If only one node accepts writes, the other writing modes go to the writer too.
    In the profile paper all modes do, because the tool makes its table itself. Other modes go to the reader.
    """

    def __post_init__(self) -> None:
        if self.to is not None and self.to not in ENDPOINTS:
            raise registry.unknown("mysqlslap endpoint", self.to, ENDPOINTS)
        arguments.check_fields(
            "mysqlslap", self, choices={"mode": MODES}, least=dict.fromkeys(FROM_ONE, 1), seconds=("seconds",)
        )
        if self.quick_queries is None:
            defaults = QUICK_QUERIES if self.queries == PUBLISHED_QUERIES else {}
            object.__setattr__(self, "quick_queries", defaults.get(self.mode, self.queries))
        queries = min(self.queries, self.quick_queries or 0)
        if queries < self.concurrency:
            raise ConfigError(
                f"mysqlslap: {self.concurrency} clients need at least one query each, got "
                f"{formatting.quantity(queries, 'query')}"
            )

    def __str__(self) -> str:
        return f"mysqlslap {self.mode} c{self.concurrency}" + (f" to the {self.to}" if self.to else "")

    @property
    def clients(self) -> int:
        """Number of concurrent connections."""
        return self.concurrency

    @property
    def writes(self) -> bool:
        """Whether the mode changes the table."""
        return self.mode in WRITING

    @property
    def tables(self) -> Sequence[str]:
        """The table that must be equal on all nodes afterwards."""
        return (f"{SCHEMA}.t1",)

    @property
    def data_scale(self) -> str:
        """The number of rows that the tool preloads."""
        return f"1 table of {formatting.quantity(self.rows - 1, 'row')}"

    @property
    def mode_name(self) -> str:
        """The name of the mode in published results."""
        return self.mode

    def lacks(self, release: Release) -> str:
        """Why there is no mysqlslap, which can be missing from a user's programs or image."""
        from pytest_dbcluster.releases import catalogue

        if _tool(release):
            return ""
        slap = _dialect(release).slap
        where = f"image {release.image}" if release.image else release.source or release.bin
        fetched = catalogue.newest_tried(release.upstream)
        way = f"`dbcluster fetch {fetched}` brings one for images; or " if release.image else ""
        return (
            f"{self} needs the program {slap}, which {release.name} ({where}) does not have; {way}use programs or an "
            f"image that have it, or SysBench(...) or TPCC(...), which need only sysbench"
        )

    def repeats(self, profile: str) -> bool:
        """Whether the tool makes, populates and drops its table in each iteration, as in the published call."""
        return profile == "paper"

    def endpoint(self, cluster: Cluster, profile: str) -> Endpoint:
        """Where the clients connect, see ``to``. Raises ProvisionError if no node accepts writes."""
        one_writer = len(cluster.writers) == 1 < len(cluster.nodes)
        to_writer = self.mode == "update" or (one_writer and (self.writes or profile == "paper"))
        chosen = self.to or ("writer" if to_writer else "reader")
        return cluster.writer() if chosen == "writer" else cluster.reader()

    def round_queries(self, profile: str) -> int:
        """Statements of one round, over all clients. Each client runs the same number of them."""
        total = self.queries if profile == "paper" or self.quick_queries is None else self.quick_queries
        return total // self.concurrency * self.concurrency

    def prepare(self, setting: Setting) -> None:
        """Make the table, its preload copy, and the file of statements.

        In the profile paper it only checks the endpoint. Raises ConfigError if the mode writes and its endpoint accepts
        no writes. In the profile paper that holds for every mode.
        """
        if self.writes or setting.profile == "paper":
            to = self.endpoint(setting.cluster, setting.profile)
            setting.cluster.require_writers([to], f"{self}{'' if self.writes else ', which makes its table itself,'}")
        if setting.profile == "paper":
            return
        create, preload, queries = self._tool_statements(setting)
        queries = [self._with_ids(query, number, len(preload)) for number, query in enumerate(queries)]
        setting.client.push(";\n".join(queries).encode(), self._statements_path(setting))
        node = setting.cluster.writers[0]
        databases = node.query(f"SHOW DATABASES LIKE '{SCHEMA}'")
        if not databases or not node.query(f"SHOW TABLES FROM {SCHEMA} LIKE 'preload_{self._shape}'"):
            setting.progress(f"{self}: making a table of {len(preload)} rows")
            self._preload(setting, create, preload)
        if (total := self.round_queries(setting.profile)) != self.queries:
            setting.progress(f"{self}: a quick round runs {total} queries, the published one {self.queries}")
        self._make_table(setting)  # another workload may have used the table

    def _preload(self, setting: Setting, create: str, preload: Sequence[str]) -> None:
        """Make the preload copy, which all modes with the same rows and columns share on a cluster."""
        node, preload_table = setting.cluster.writers[0], f"{SCHEMA}.preload_{self._shape}"
        values = [statement.split("VALUES", 1)[1].strip() for statement in preload]
        node.query(f"CREATE DATABASE IF NOT EXISTS {SCHEMA}")
        node.query(create.replace("`t1`", preload_table))
        # Explicit ids: a cluster's auto_increment step would leave gaps, in which keyed statements find no row.
        rows = [f"({number},{value.split(',', 1)[1]}" for number, value in enumerate(values, 1)]
        for first in range(0, len(rows), 500):
            node.query(f"INSERT INTO {preload_table} VALUES {','.join(rows[first : first + 500])}", wait.SLOW_SECONDS)

    @property
    def _shape(self) -> str:
        return f"{self.rows}_{self.int_columns}_{self.char_columns}"

    def _statements_path(self, setting: Setting) -> str:
        return f"{setting.client.directory}/slap-{self.mode}-{self._shape}-{self.concurrency}-{self.queries}.sql"

    def _with_ids(self, query: str, number: int, rows: int) -> str:
        step, offset = PRIMES[0] + 2 * number, PRIMES[1] * (number + 1)
        return PLACEHOLDER.sub(f"id = (CONNECTION_ID() * {step} + {offset}) % {rows} + 1", query)

    def _tool_statements(self, setting: Setting) -> tuple[str, list[str], list[str]]:
        """The tool's own CREATE TABLE, preload statements, and statements of one client."""
        per_client = self.round_queries(setting.profile) // self.concurrency
        program, *published = self._generator_options(setting, 1, per_client)
        text = setting.client.run([program, "--no-defaults", *published, "--only-print"]).stdout
        statements = [line.strip().rstrip(";") for line in text.split(";\n")]
        creates = [line for line in statements if line.startswith("CREATE TABLE `t1`")]
        body = [line for line in statements if line.startswith(("INSERT", "SELECT", "UPDATE"))]
        if len(creates) != 1 or len(body) <= per_client:
            raise UnreadableOutput("mysqlslap --only-print", "CREATE TABLE followed by its statements", text)
        return creates[0], body[:-per_client], body[-per_client:]

    def reset(self, setting: Setting) -> None:
        """Return the table to its preload: delete the added rows, or set the changed rows back.

        Copying the table from the preload takes three times as long: reset and settling took .50 s instead of .16 s,
        for write on three nodes in one run.
        """
        if setting.profile == "paper":
            return
        node, table, preload = setting.cluster.writers[0], self.tables[0], f"{SCHEMA}.preload_{self._shape}"
        if self.mode == "update":
            columns = [f"intcol{n + 1}" for n in range(self.int_columns)]
            columns += [f"charcol{n + 1}" for n in range(self.char_columns)]
            back = ", ".join(f"now.{column} = preload.{column}" for column in columns)
            statement = f"UPDATE {table} now JOIN {preload} preload USING (id) SET {back}"
        else:
            statement = f"DELETE FROM {table} WHERE id > (SELECT MAX(id) FROM {preload})"
        # The other nodes find the rows by their ids, so their old values need not travel.
        node.batch([f"SET SESSION {IMAGE} = MINIMAL", statement, f"SET SESSION {IMAGE} = DEFAULT"], wait.SLOW_SECONDS)

    def _make_table(self, setting: Setting) -> None:
        node, table, preload = setting.cluster.writers[0], self.tables[0], f"{SCHEMA}.preload_{self._shape}"
        node.query(f"DROP TABLE IF EXISTS {table}", wait.SLOW_SECONDS)
        node.query(f"CREATE TABLE {table} LIKE {preload}")
        node.query(f"INSERT INTO {table} SELECT * FROM {preload}", wait.SLOW_SECONDS)

    def run(self, setting: Setting) -> RunResult:
        """Run the tool once. Raises WorkloadError or UnreadableOutput with its message, NodeDied if a server died."""
        # After the last statement of its file, the tool starts again with the first one.
        total = self.round_queries(setting.profile) * (1 if self.repeats(setting.profile) else setting.repeat)
        command, environment = self._command(setting, total), _tool_or_error(setting).environment
        began = time.monotonic()
        try:
            done = setting.client.run(command, seconds=self.seconds, environment=environment)
        except CommandFailed as error:
            raise self._failure(setting, error.ended, error.stderr.strip() or error.stdout) from error
        if done.stderr.strip():  # the tool exits with 0 even if a client failed, and may still report
            raise self._failure(setting, "ended with clients that failed", done.stderr)
        result = parse(done.stdout, clients=self.concurrency)
        span = time.monotonic() - began if self.repeats(setting.profile) else None
        return dataclasses.replace(result, operations=total, commits=self._commits(total, setting.profile), span=span)

    def _failure(self, setting: Setting, ended: str, message: str) -> WorkloadError:
        """The error with the tool's message and the servers' [ERROR] lines. Raises NodeDied if a server died."""
        where = f"{self} {ended} on {setting.where}"
        return setting.cluster.load_failure(where, LONG_QUERY.sub(r"\1...\2", message))

    def _commits(self, total: int, profile: str) -> int | None:
        """Committed statements during the call. In the profile paper each iteration also inserts the preload rows."""
        if not self.writes:
            return None
        written = round(total * WRITING[self.mode])
        return written if profile == "quick" else self.iterations * (written + self.rows - 1)

    def clean(self, setting: Setting) -> None:
        """Drop the schema of the profile quick. In the profile paper the tool drops its schema itself."""
        setting.cluster.writers[0].query(f"DROP DATABASE IF EXISTS {SCHEMA}", wait.SLOW_SECONDS)

    def _command(self, setting: Setting, total: int) -> list[str]:
        """The command line of one round; in the profile paper the published one, with our endpoint."""
        endpoint = self.endpoint(setting.cluster, setting.profile)
        secret = f"{setting.client.directory}/client.cnf"
        setting.client.push_once(f"[client]\nuser={endpoint.user}\npassword={endpoint.password}\n".encode(), secret)
        program, *published = self._generator_options(setting, self.concurrency, total)
        tool = _tool_or_error(setting)
        connect = [
            *(f"--{name.replace('_', '-')}={value}" for name, value in tool.client_options.items()),
            *_dialect(tool).plain,
            f"--host={endpoint.host}",
            f"--port={endpoint.port}",
            "--protocol=tcp",
        ]
        if setting.profile == "paper":
            return [program, f"--defaults-file={secret}", *connect, *published, f"--iterations={self.iterations}"]
        own = [f"--create-schema={SCHEMA}", "--no-drop", f"--query={self._statements_path(setting)}", "--delimiter=;"]
        size = [f"--concurrency={self.concurrency}", f"--number-of-queries={total}", "--iterations=1"]
        return [program, f"--defaults-file={secret}", *connect, *own, *size]

    def _generator_options(self, setting: Setting, clients: int, queries: int) -> list[str]:
        """The published options: the tool generates the SQL."""
        tool = _tool_or_error(setting)
        return [
            str(tool.program(_dialect(tool).slap)),
            "--auto-generate-sql",
            "--auto-generate-sql-add-autoincrement",
            f"--auto-generate-sql-load-type={self.mode}",
            f"--auto-generate-sql-write-number={self.rows}",
            f"--number-int-cols={self.int_columns}",
            f"--number-char-cols={self.char_columns}",
            f"--concurrency={clients}",
            f"--number-of-queries={queries}",
        ]


def _dialect(release: Release) -> Dialect:
    from pytest_dbcluster.clusters.dialects.lookup import dialect

    return dialect(release.product, release.version)


def _tool(release: Release) -> Release | None:
    """The release whose mysqlslap makes the load: this one, or for an image without it the newest of its vendor here.

    Containers mount the cache, so a program of it runs in the container of the load generator.
    """
    from pytest_dbcluster.releases import find

    slap = _dialect(release).slap
    if release.path_of(slap):
        return release
    return find.newest_with(slap, release.upstream) if release.image else None


def _tool_or_error(setting: Setting) -> Release:
    """The release whose mysqlslap makes the load; without one, its error has the programs of the setting's release."""
    return _tool(setting.release) or setting.release


def parse(text: str, *, clients: int) -> RunResult:
    """The result with the seconds of the tool's report, at the resolution of the printed digits.

    Raises UnreadableOutput unless there is exactly one report.
    """
    reports = list(RESULT.finditer(text))
    if len(reports) != 1:
        raise UnreadableOutput("mysqlslap", "report of one benchmark", text)
    if int(reports[0]["clients"]) != clients:
        raise UnreadableOutput("mysqlslap", f"report of {formatting.quantity(clients, 'client')}", text)
    seconds, least, most = (float(reports[0][name]) for name in ("average", "least", "most"))
    if seconds <= 0:
        raise UnreadableOutput("mysqlslap", "time above 0: the round was too short to be measured", text)
    step = 10.0 ** -len(reports[0]["average"].partition(".")[2])
    return RunResult(seconds, 0, least=least, most=most, resolution=step)
