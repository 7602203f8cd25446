"""``TPCC``: TPC-C (specification 5.11) on sysbench, five transactions of a wholesale supplier, with a ledger.

Results are not audited TPC-C results: by default terminals have no keying and thinking times, and rounds are short.
The tables grow by design, by about ten rows a transaction. This is fair because the rounds of all variants alternate.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from pytest_dbcluster import calls, formatting
from pytest_dbcluster.errors import ConfigError, WorkloadError
from pytest_dbcluster.rounds.round import RunResult
from pytest_dbcluster.workloads import schema_mark
from pytest_dbcluster.workloads.driver_workload import DriverWorkload
from pytest_dbcluster.workloads.schema_mark import SchemaMark
from pytest_dbcluster.workloads.tpcc import conditions, digests
from pytest_dbcluster.workloads.tpcc.conditions import SCHEMA
from pytest_dbcluster.workloads.workload import Setting

if TYPE_CHECKING:
    from pytest_dbcluster.clusters.cluster import Cluster
    from pytest_dbcluster.clusters.servers.node import Node
    from pytest_dbcluster.rounds.ledger import Ledger
    from pytest_dbcluster.workloads.sysbench_driver import Call
    from pytest_dbcluster.workloads.tpcc.books import OrderBalance
    from pytest_dbcluster.workloads.until_stopped import StoppedLoad, UntilStopped

VERSION = 2  # of the tables; raise it if tpcc_schema.lua, tpcc_load.lua or digests.py make other tables
TYPES = ("new_order", "payment", "order_status", "delivery", "stock_level")  # of transactions
TABLES = ("warehouse", "district", "customer", "history", "new_order", "orders", "order_line", "item", "stock")
CHOICES = {
    "to": ("writer", "reader", "all"),
    "terminals_on": ("warehouse", "district"),
    "isolation": ("READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"),  # below these, deliveries overtake each other
}
BYTES = 100_000_000  # measured size of a loaded warehouse
READ_ONLY = ("order_status", "stock_level")
POPULATE_SECONDS = 120.0  # for the items, and for each warehouse


@calls.check_arguments("TPCC(warehouses=2, threads=16)", instead={"concurrency": "threads", "terminals": "threads"})
@dataclasses.dataclass(frozen=True)
class TPCC(DriverWorkload):
    """The standard mix: of a hundred transactions 45 New-Order, 43 Payment, 4 each of the other three."""

    warehouses: int = 1
    """The scale: warehouses of about 100 MB each."""

    threads: int = 4
    """Number of terminals; warehouses are assigned to them round-robin."""

    seconds: float | None = None
    rate: float | str | None = None
    thinking: bool = False
    """Whether terminals have keying and thinking times (clause 5.2.5.7). This needs a closed loop and long rounds."""

    isolation: str = "REPEATABLE READ"
    """Isolation level of all transactions. The specification requires REPEATABLE READ or higher, and no phantoms."""

    to: str = "writer"
    """``writer``, ``reader`` (through the proxy), or ``all`` for each node that accepts writes."""

    partitioned: bool = False
    """With ``all``: whether the warehouses are divided between the nodes, and each terminal uses those of its node."""

    terminals_on: str = "warehouse"
    """``warehouse``, or ``district`` to cause conflicts: all terminals use the first district of their warehouse."""

    attempts: int = 100
    """Maximum number of attempts of one transaction, which then counts as failed."""

    foreign_keys: bool = False
    """Whether the tables have the foreign keys of clause 1.4."""

    seed: int = 1
    reconnect: bool = False
    idle: int = 0
    pause: float | None = None
    tls: bool = False

    database = SCHEMA
    keeps_books: ClassVar[bool] = True
    """Whether it knows what became of its acknowledged transactions."""

    def _check_fields(self) -> None:
        truths = ("thinking", "partitioned", "foreign_keys")
        self._check("tpcc", {"warehouses": 1, "attempts": 1}, truths, CHOICES)
        if self.thinking and self.rate is not None:
            raise ConfigError(f"tpcc thinking=True and rate={self.rate!r}: both set the arrival rate; use one of them")
        if self.thinking and self.pause is not None:
            raise ConfigError(f"tpcc thinking=True and pause={self.pause!r}: both let terminals wait; use one of them")
        if self.partitioned and self.to != "all":
            raise ConfigError(f"tpcc partitioned=True and to={self.to!r}: use to='all'")

    def __str__(self) -> str:
        endpoint = f"{self.to}{' partitioned' if self.partitioned else ''}" if self.to != "writer" else None
        district = " on one district" if self.terminals_on == "district" else ""
        return self._name(f"tpcc w{self.warehouses} t{self.threads}", endpoint, district)

    @property
    def writes(self) -> bool:
        """Always True."""
        return True

    @property
    def tables(self) -> Sequence[str]:
        """All nine tables. They must be equal on all nodes."""
        return tuple(f"{SCHEMA}.{table}" for table in TABLES)

    @property
    def parts(self) -> Sequence[str]:
        """The types of transactions."""
        return TYPES

    @property
    def data_set(self) -> str:
        """The name of the data set: version of the schema, and scale. Equal names mean equal tables, except dates."""
        return f"tpcc v{VERSION} {self.data_scale}"

    @property
    def data_set_bytes(self) -> int:
        """Approximate bytes of the tables on disk."""
        return self.warehouses * BYTES

    @property
    def data_scale(self) -> str:
        """The number of warehouses, and whether the tables have foreign keys."""
        keys = " with foreign keys" if self.foreign_keys else ""
        return f"{formatting.quantity(self.warehouses, 'warehouse')}{keys}"

    @property
    def _mark(self) -> SchemaMark:
        return SchemaMark(SCHEMA, VERSION, self.data_scale)

    def populate(self, setting: Setting) -> None:
        """Make the tables and load every warehouse, in parallel. Raises WorkloadError with sysbench's message."""
        from pytest_dbcluster.workloads import sysbench_driver

        setting.progress(f"{self}: loading {self.data_scale}")
        node = setting.cluster.writers[0]
        self.clean(setting)
        node.query(f"CREATE DATABASE {SCHEMA}")
        ((loaded,),) = node.query("SELECT CAST(NOW() AS CHAR)")
        # Twice the number of cores, because a session waits for the disk about half of its time.
        call = self._call(setting, "writer", threads=2 * max(2, os.cpu_count() or 2))
        call = dataclasses.replace(call, options={**call.options, "loaded": loaded})
        sysbench_driver.command(call, setting, "schema", seconds=POPULATE_SECONDS)
        sysbench_driver.command(call, setting, "prepare", seconds=POPULATE_SECONDS * (1 + self.warehouses))
        digests.keep(node, SCHEMA)
        self._mark.write(node)

    def prepare(self, setting: Setting) -> None:
        """Load the tables unless the cluster has them.

        Raises WorkloadError for tables of another version or scale, and ConfigError if an endpoint accepts no writes.
        Raises Unsupported for an old sysbench, and with ``tls`` if a server does not offer it.
        """
        self._require_tools(setting)
        node = setting.cluster.writers[0]
        if not self._mark.stands(node):
            self._refuse_another(node)
            self.populate(setting)
        elif vanished := {*TABLES, digests.TABLE} - {name for (name,) in node.query(f"SHOW TABLES FROM {SCHEMA}")}:
            raise WorkloadError(
                f"{self}: schema {SCHEMA} on {node.name} has lost {', '.join(sorted(vanished))} since it was loaded: "
                f"run DROP DATABASE {SCHEMA} there, then run the test again"
            )

    def _refuse_another(self, node: Node) -> None:
        """Raise WorkloadError for a complete schema of another scale. A partly loaded schema may be dropped."""
        table = schema_mark.TABLE
        if node.query(f"SHOW DATABASES LIKE '{SCHEMA}'") and node.query(f"SHOW TABLES FROM {SCHEMA} LIKE '{table}'"):
            ((scale,),) = node.query(f"SELECT scale FROM {SCHEMA}.{table}")
            raise WorkloadError(
                f"{self}: schema {SCHEMA} on {node.name} has {scale}, and this workload needs {self.data_scale}: "
                f"run DROP DATABASE {SCHEMA} there, then run the test again"
            )

    def reset(self, setting: Setting) -> None:
        """Do nothing: the tables grow, as the specification requires."""

    def run_until_stopped(self, setting: Setting, until: UntilStopped) -> StoppedLoad:
        """Run until ``until`` says so, whatever errors the servers return. Its books are the New-Orders."""
        from pytest_dbcluster.rounds.outages.outage import Books
        from pytest_dbcluster.workloads import until_stopped
        from pytest_dbcluster.workloads.tpcc import books

        cluster = setting.cluster
        own = books.OrderBook.start(cluster.writers[0])
        result, reports = self.observe(setting, outlive=True, until=until)
        with own.round() as heard:
            heard(reports)

        def balance() -> Books:
            found, gone = own.balance_all(cluster.nodes)
            books.book_of(cluster).discard(gone)  # reported here, and not again by the checks of later rounds
            if len(gone) < len(found.lost):
                cluster.dirty = f"its nodes have not the same orders: {found.lost[0]} is not on all of them"
            if found.invented:
                books.forget(cluster)  # a new book begins with the orders that are there
            lost, invented = len(found.lost), len(found.invented)
            return Books(found.acknowledged, lost, invented, found.unknown_there, found.unknown_gone)

        def violations() -> list[str]:
            return conditions.violations_of_equal(cluster.nodes)

        times = until_stopped.load_times(reports, reading=frozenset(READ_ONLY))
        lost = sum(report["lost"] for report in reports)
        return until_stopped.StoppedLoad(result, times, lost, balance, violations)

    def observe(
        self, setting: Setting, *, outlive: bool = False, until: UntilStopped | None = None
    ) -> tuple[RunResult, list[dict[str, Any]]]:
        """Run one round, and return its result and the report of each thread. ``violations`` compares its orders.

        Afterwards it looks up New-Orders of unknown outcome. outlive: return even if a node died during the round,
        without looking anything up. until: tells the load to stop. Raises what ``run`` raises.
        """
        from pytest_dbcluster.workloads.tpcc import books

        call = self._call(setting, self.to, threads=self.threads)
        call = dataclasses.replace(call, until=until)
        with books.book_of(setting.cluster).round() as heard:
            result, reports = self._drive(call, setting, outlive=outlive, heard=heard)
        if result.ledger and not outlive:
            result = dataclasses.replace(result, ledger=books.look_up(setting.cluster, result.ledger, reports))
        ledger = result.ledger
        entries = ledger.entries if ledger else {}
        commits = sum(entry.committed for kind, entry in entries.items() if kind not in READ_ONLY)
        figures = {"tpmC": tpm_c(ledger, result.seconds)} if ledger else {}
        return dataclasses.replace(result, commits=commits, figures=figures), reports

    def _call(self, setting: Setting, to: str, *, threads: int) -> Call:
        from pytest_dbcluster.workloads import sysbench_driver

        own = {
            "warehouses": self.warehouses,
            "foreign_keys": self.foreign_keys,
            "thinking": self.thinking,
            "on_district": self.terminals_on == "district",
            "attempts": self.attempts,
            "partitions": ",".join(self._partitions(setting.cluster)),
        }
        endpoints = sysbench_driver.endpoints(setting.cluster, to, writes=True)
        own["endpoints"] = len(endpoints)
        return sysbench_driver.Call(str(self), "tpcc.lua", threads, SCHEMA, endpoints, own, prepared=False)

    def _partitions(self, cluster: Cluster) -> list[str]:
        """The nodes that divide the warehouses, by the terminals' names for them; empty if not partitioned."""
        from pytest_dbcluster.workloads import sysbench_driver

        if not self.partitioned:
            return []
        if (nodes := len(cluster.writers)) > self.warehouses:
            raise ConfigError(f"{self}: {nodes} nodes divide the warehouses: use warehouses={nodes} or more")
        return [sysbench_driver.which(node) for node in cluster.writers]

    def violations(self, cluster: Cluster) -> list[str]:
        """The conditions that do not hold on a node, each with the first row and both values, and wrong orders.

        Wrong orders are lost or invented in any round on this cluster (``balance``). The tables are equal on all nodes
        (``Cluster.check``), so each condition is checked on one node.
        """
        return conditions.violations_of_equal(cluster.nodes) + self.balance(cluster).violations

    def balance(self, cluster: Cluster) -> OrderBalance:
        """Compare the books of all rounds on this cluster with a node. The cluster must have applied everything."""
        from pytest_dbcluster.workloads.tpcc import books

        return books.book_of(cluster).balance(cluster.nodes[-1])

    def clean(self, setting: Setting) -> None:
        """Drop the schema, and forget its orders."""
        from pytest_dbcluster.workloads.tpcc import books

        books.forget(setting.cluster)
        super().clean(setting)


def tpm_c(ledger: Ledger, seconds: float) -> float:
    """New-Orders per minute. Those rolled back by design count (clause 5.4); failed and unknown ones do not."""
    return 60 * ledger.entries["new_order"].good / seconds if "new_order" in ledger.entries else 0.0
