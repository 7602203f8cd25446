"""``SysBench``: sysbench's standard OLTP scripts, with retries, a ledger and tables of constant size.

We insert rows with explicit ids. With AUTO_INCREMENT, a cluster's step would leave gaps, and most reads by id would
find no row. All scripts share the tables of one preload, so oltp_insert adds ids above those of the preload.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from pytest_dbcluster import calls, formatting, wait
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.rounds.round import RunResult
from pytest_dbcluster.workloads.driver_workload import DriverWorkload
from pytest_dbcluster.workloads.schema_mark import SchemaMark
from pytest_dbcluster.workloads.workload import Setting

if TYPE_CHECKING:
    from pytest_dbcluster.workloads.sysbench_driver import Call
    from pytest_dbcluster.workloads.until_stopped import StoppedLoad, UntilStopped

SCHEMA = "dbcluster_sysbench"
VERSION = 1  # of the tables; raise it if ``populate`` makes other tables
WRITING = (
    "oltp_delete", "oltp_insert", "oltp_read_write", "oltp_update_index", "oltp_update_non_index", "oltp_write_only",
)  # fmt: skip
ONE_TABLE = ("select_random_points", "select_random_ranges")
SCRIPTS = tuple(sorted((*WRITING, *ONE_TABLE, "oltp_point_select", "oltp_read_only")))
CHOICES = {"script": SCRIPTS, "distribution": ("gaussian", "pareto", "special", "uniform")}
FROM_ONE = ("table_count", "size", "range_size", "attempts")
FROM_ZERO = ("point_selects", "index_updates", "non_index_updates", "delete_inserts")
# Option of the script -> field with its value.
OPTIONS = {"tables": "table_count", "table_size": "size"} | {
    name: name for name in (*FROM_ZERO, "script", "distribution", "range_selects", "range_size", "skip_trx", "attempts")
}
BYTES = 260  # measured size of a row with its two indexes
POPULATE_SECONDS = 7200.0
POPULATE_THREADS = 8
CHUNK = 100_000  # ids per statement of a reset: five digits
DIGIT = f"(SELECT 0 AS d {' '.join(f'UNION ALL SELECT {digit}' for digit in range(1, 10))})"
GROUP = "LPAD(FLOOR(RAND() * 1e11), 11, '0')"  # sysbench fills c and pad with groups of eleven digits


@calls.check_arguments(
    'SysBench("oltp_read_write", threads=16)', instead={"concurrency": "threads", "tables": "table_count"}
)
@dataclasses.dataclass(frozen=True)
class SysBench(DriverWorkload):
    """One OLTP script of sysbench. One event of the script counts as one transaction."""

    script: str = "oltp_read_write"
    """Name of one of sysbench's OLTP scripts."""

    table_count: int = 1
    """Number of tables, with ``size`` rows each."""

    size: int = 100_000
    """Number of rows of each table."""

    threads: int = 16
    seconds: float | None = None
    rate: float | str | None = None
    to: str | None = None
    distribution: str = "special"
    """Distribution of the ids (sysbench's --rand-type)."""

    isolation: str | None = None
    prepared: bool = True
    """Whether the server prepares the statements."""

    skip_trx: bool = False
    """Whether each statement commits on its own (sysbench's --skip-trx)."""

    range_selects: bool = True
    """Whether the script has range queries; False turns off all four kinds of them."""

    range_size: int = 100
    """Number of ids in a range query (sysbench's --range-size)."""

    point_selects: int = 10
    """Point queries in a transaction (sysbench's --point-selects)."""

    index_updates: int = 1
    """Updates of an indexed column in a transaction (sysbench's --index-updates)."""

    non_index_updates: int = 1
    """Updates of a column without index in a transaction (sysbench's --non-index-updates)."""

    delete_inserts: int = 1
    """Pairs of DELETE and INSERT in a transaction (sysbench's --delete-inserts)."""

    attempts: int = 100
    """Maximum number of attempts of one transaction, which then counts as failed. An event with several commits, as
    with skip_trx, has one attempt.
    """

    seed: int = 1
    reconnect: bool = False
    idle: int = 0
    pause: float | None = None
    tls: bool = False

    database = SCHEMA
    keeps_books: ClassVar[bool] = False
    """Whether it knows what became of its acknowledged transactions."""

    def _check_fields(self) -> None:
        least = dict.fromkeys(FROM_ONE, 1) | dict.fromkeys(FROM_ZERO, 0)
        self._check("sysbench", least, ("prepared", "skip_trx", "range_selects"), CHOICES)
        if self.script in ONE_TABLE and self.table_count > 1:
            raise ConfigError(f"sysbench table_count={self.table_count}: {self.script} reads one table")

    def __str__(self) -> str:
        return self._name(f"sysbench {self.script} t{self.threads}", self.to)

    @property
    def writes(self) -> bool:
        """Whether the script changes its tables."""
        return self.script in WRITING

    @property
    def tables(self) -> Sequence[str]:
        """The tables that must be equal on all nodes afterwards."""
        return tuple(f"{SCHEMA}.sbtest{number}" for number in range(1, self.table_count + 1))

    @property
    def parts(self) -> Sequence[str]:
        """The script: all events are of one type."""
        return (self.script,)

    @property
    def data_set(self) -> str:
        """The name of the data set: version of the schema, and scale."""
        return f"sysbench v{VERSION} {self.table_count}x{self.size}"

    @property
    def data_set_bytes(self) -> int:
        """Approximate bytes of the tables on disk."""
        return self.table_count * self.size * BYTES

    @property
    def data_scale(self) -> str:
        """The number of tables, and of rows in each."""
        return f"{formatting.quantity(self.table_count, 'table')} of {formatting.quantity(self.size, 'row')}"

    def populate(self, setting: Setting) -> None:
        """Make the tables with sysbench's own prepare. Raises WorkloadError with sysbench's message.

        The values differ at each call and do not depend on ``seed``: sysbench 1.0 uses --rand-seed only in its run
        command.
        """
        from pytest_dbcluster.workloads import sysbench_driver

        setting.progress(f"{self}: making {self.table_count} x {self.size} rows")
        node = setting.cluster.writers[0]
        self.clean(setting)
        node.query(f"CREATE DATABASE {SCHEMA}")
        own = {"tables": self.table_count, "table_size": self.size, "auto_inc": False}
        threads = min(self.table_count, POPULATE_THREADS)
        to = [setting.cluster.writer()]
        call = sysbench_driver.Call(str(self), "oltp_read_write.lua", threads, SCHEMA, to, own)
        sysbench_driver.command(call, setting, "prepare", seconds=POPULATE_SECONDS)
        self._mark.write(node)

    def prepare(self, setting: Setting) -> None:
        """Make the tables, or restore their ids if another workload used them.

        Raises WorkloadError if another version of this program made the tables. Raises Unsupported for an old sysbench,
        and with ``tls`` if a server does not offer it. Raises ConfigError if the script writes and an endpoint accepts
        no writes.
        """
        self._require_tools(setting)
        node = setting.cluster.writers[0]
        present = (
            {f"{SCHEMA}.{name}" for (name,) in node.query(f"SHOW TABLES FROM {SCHEMA}")}
            if self._mark.stands(node)
            else set()
        )
        if not present >= set(self.tables):
            self.populate(setting)
            return
        for table in self.tables:
            self._remove_surplus(setting, table)
            self._bring_back(setting, table)

    @property
    def _mark(self) -> SchemaMark:
        return SchemaMark(SCHEMA, VERSION, f"{self.table_count}x{self.size}")

    def reset(self, setting: Setting) -> None:
        """Restore the ids of the preload. Updated values stay."""
        for table in self.tables:
            if self.script == "oltp_insert":
                self._remove_surplus(setting, table)
            if self.script == "oltp_delete" or (self.skip_trx and self.writes):
                self._bring_back(setting, table)

    def _remove_surplus(self, setting: Setting, table: str) -> None:
        setting.cluster.writers[0].query(
            f"DELETE FROM {table} WHERE id NOT BETWEEN 1 AND {self.size}", wait.SLOW_SECONDS
        )

    def _bring_back(self, setting: Setting, table: str) -> None:
        """Insert the missing ids, with new values of the same kind as sysbench's."""
        node = setting.cluster.writers[0]
        if node.query(f"SELECT COUNT(*) FROM {table}", wait.SLOW_SECONDS) == [(self.size,)]:
            return
        c, pad = (f"CONCAT_WS('-', {', '.join([GROUP] * groups)})" for groups in (10, 5))
        number = " + ".join(f"{10**power} * p{power}.d" for power in range(5))
        digits = ", ".join(f"{DIGIT} p{power}" for power in range(5))
        for first in range(1, self.size + 1, CHUNK):
            node.query(
                f"INSERT INTO {table} (id, k, c, pad) SELECT ids.id, FLOOR(1 + RAND() * {self.size}), {c}, {pad} "
                f"FROM (SELECT {first} + {number} AS id FROM {digits}) ids LEFT JOIN {table} kept ON kept.id = ids.id "
                f"WHERE kept.id IS NULL AND ids.id <= {self.size}",
                wait.SLOW_SECONDS,
            )

    def run_until_stopped(self, setting: Setting, until: UntilStopped) -> StoppedLoad:
        """Run until ``until`` says so, whatever errors the servers return. It keeps no books."""
        from pytest_dbcluster.workloads import until_stopped

        result, reports = self.observe(setting, until=until)
        times = until_stopped.load_times(reports, reading=frozenset() if self.writes else frozenset(self.parts))
        return until_stopped.StoppedLoad(result, times, sum(report["lost"] for report in reports))

    def observe(self, setting: Setting, *, until: UntilStopped | None = None) -> tuple[RunResult, list[dict[str, Any]]]:
        """Run one round, and return its result and the report of each thread. Raises what ``run`` raises.

        until: tells the load to stop, which then outlives all errors.
        """
        call = dataclasses.replace(self._call(setting), until=until)
        result, reports = self._drive(call, setting, outlive=until is not None)
        commits = (result.commits or 0) * self._commits_per_event if self.writes else None
        return dataclasses.replace(result, commits=commits), reports

    def _call(self, setting: Setting) -> Call:
        from pytest_dbcluster.workloads import sysbench_driver

        own: dict[str, object] = {option: getattr(self, field) for option, field in OPTIONS.items()}
        own["auto_inc"] = False
        if self.writes and self._commits_per_event > 1:
            own["attempts"] = 1  # a retry would repeat committed statements
        to = self._endpoints(setting)
        return sysbench_driver.Call(str(self), "oltp.lua", self.threads, SCHEMA, to, own, self.prepared)

    @property
    def _commits_per_event(self) -> int:
        """Commits per event: 1 for a transaction, otherwise one for each writing statement."""
        if self.script == "oltp_update_index":
            return self.index_updates
        if self.script == "oltp_update_non_index":
            return self.non_index_updates
        if self.script in ("oltp_insert", "oltp_delete") or not self.skip_trx:
            return 1
        return self.index_updates + self.non_index_updates + 2 * self.delete_inserts
