"""TPC-C (specification 5.11) on sysbench: five transactions of a wholesale supplier, with a ledger of conflicts.

It is no audited result: terminals neither key nor think unless they are told to, and rounds are short. The tables grow
by design, by some ten rows a transaction; that is fair here because the rounds of all variants alternate.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from pytest_dbcluster import registry
from pytest_dbcluster.errors import ConfigError, WorkloadError
from pytest_dbcluster.rounds.open_loop import ArrivalRate
from pytest_dbcluster.rounds.round import RunResult
from pytest_dbcluster.workloads import arguments
from pytest_dbcluster.workloads.tpcc.conditions import SCHEMA
from pytest_dbcluster.workloads.workload import Setting, Workload

if TYPE_CHECKING:
    from pytest_dbcluster.clusters.cluster import Cluster
    from pytest_dbcluster.clusters.servers.node import Node
    from pytest_dbcluster.rounds.ledger import Ledger
    from pytest_dbcluster.workloads.schema_mark import SchemaMark
    from pytest_dbcluster.workloads.sysbench_driver import Call

VERSION = 1  # raised when what workloads/lua/tpcc_schema.lua or tpcc_load.lua make changes
TABLES = ("warehouse", "district", "customer", "history", "new_order", "orders", "order_line", "item", "stock")
TO = ("writer", "reader", "all")
TERMINALS_ON = ("warehouse", "district")
ISOLATIONS = ("READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE")  # below them deliveries overtake each other
BYTES = 100_000_000  # of a loaded warehouse, seen
POPULATE_SECONDS = 120.0  # for the items, and for each warehouse


@dataclasses.dataclass(frozen=True)
class TPCC(Workload):
    """The standard mix: of a hundred transactions 45 New-Order, 43 Payment, 4 each of the other three.

    warehouses: the scale, about 100 MB each. threads: terminals; each has a home warehouse, in turn. seconds: of one
    round. rate: transactions a second of an open loop, or a share such as ``"70 %"`` of what the slowest variant can
    do; None is a closed loop. thinking: terminals key and think as clause 5.2.5.7 asks, which needs a closed loop and
    long rounds. isolation: of all transactions; the specification asks for REPEATABLE READ at least, and for
    protection against phantoms. to: ``writer``, ``reader`` (through the proxy) or ``all``, each node that takes writes.
    partitioned: with ``all``, the warehouses are shared out to the nodes, and terminals of a node have its warehouses
    for homes. terminals_on: ``warehouse``, or ``district`` to make conflicts: all are on the first district of their
    home. attempts: after so many a transaction has failed. foreign_keys: whether the tables have those of clause 1.4.
    acknowledged: whether ``observe`` reports the orders. seed: of the inputs, which are others in each block.
    """

    warehouses: int = 1
    threads: int = 4
    seconds: float = 2.0
    rate: float | str | None = None
    thinking: bool = False
    isolation: str = "REPEATABLE READ"
    to: str = "writer"
    partitioned: bool = False
    terminals_on: str = "warehouse"
    attempts: int = 100
    foreign_keys: bool = False
    acknowledged: bool = False
    seed: int = 1

    metric: ClassVar[str] = "goodput"  # attempts that a conflict ended are no work done

    def __post_init__(self) -> None:
        for name, known in (("to", TO), ("terminals_on", TERMINALS_ON), ("isolation", ISOLATIONS)):
            if getattr(self, name) not in known:
                raise registry.unknown(f"tpcc {name}", str(getattr(self, name)), known)
        for name, least in {"warehouses": 1, "threads": 1, "attempts": 1, "seed": 0}.items():
            arguments.whole(f"tpcc {name}", getattr(self, name), least)
        arguments.round_seconds("tpcc seconds", self.seconds)
        if self.thinking and self.rate is not None:
            raise ConfigError(f"tpcc thinking=True and rate={self.rate!r}: thinking sets the pace; take one of them")
        if self.partitioned and self.to != "all":
            raise ConfigError(f"tpcc partitioned=True and to={self.to!r}: warehouses are shared out with to='all'")
        ArrivalRate.of(self.rate)

    def __str__(self) -> str:
        paced = f" at {self.rate}{'' if isinstance(self.rate, str) else '/s'}" if self.rate else ""
        where = f" to {self.to}{' partitioned' if self.partitioned else ''}" if self.to != "writer" else ""
        one = " on one district" if self.terminals_on == "district" else ""
        return f"tpcc w{self.warehouses} t{self.threads}{paced}{where}{one}"

    @property
    def writes(self) -> bool:
        """Always."""
        return True

    @property
    def tables(self) -> Sequence[str]:
        """All nine; they have to be equal on all nodes."""
        return tuple(f"{SCHEMA}.{table}" for table in TABLES)

    @property
    def data_set(self) -> str:
        """Which data set the tables are: version of the schema, and scale."""
        return f"tpcc v{VERSION} {self._scale}"

    @property
    def data_set_bytes(self) -> int:
        """About what the tables take on disk."""
        return self.warehouses * BYTES

    @property
    def _scale(self) -> str:
        plural = "s" if self.warehouses > 1 else ""
        return f"{self.warehouses} warehouse{plural}{' with foreign keys' if self.foreign_keys else ''}"

    @property
    def round_seconds(self) -> float:
        """For how long a round starts transactions."""
        return self.seconds

    def at_rate(self, rate: float | None) -> TPCC:
        """The same load at this rate; None is the closed loop."""
        return dataclasses.replace(self, rate=rate)

    @property
    def _mark(self) -> SchemaMark:
        from pytest_dbcluster.workloads.schema_mark import SchemaMark

        return SchemaMark(SCHEMA, VERSION, self._scale)

    def populate(self, setting: Setting) -> None:
        """Make the tables and load every warehouse, in parallel. Raises WorkloadError with sysbench's words."""
        from pytest_dbcluster.workloads import sysbench_driver

        setting.progress(f"{self}: loading {self._scale}")
        node = setting.cluster.writers[0]
        node.query(f"DROP DATABASE IF EXISTS {SCHEMA}")
        node.query(f"CREATE DATABASE {SCHEMA}")
        call = self._call(setting, "writer", threads=max(2, os.cpu_count() or 2))
        sysbench_driver.command(call, setting, "schema", seconds=POPULATE_SECONDS)
        sysbench_driver.command(call, setting, "prepare", seconds=POPULATE_SECONDS * (1 + self.warehouses))
        self._mark.write(node)

    def prepare(self, setting: Setting) -> None:
        """Load the tables unless they are there.

        Raises WorkloadError for tables of another version or scale, Unsupported for an old sysbench, ConfigError for
        terminals of nodes that take no writes.
        """
        from pytest_dbcluster.workloads import sysbench_driver

        sysbench_driver.sysbench(setting)
        setting.cluster.require_writers(sysbench_driver.endpoints(setting.cluster, self.to, writes=True), str(self))
        node = setting.cluster.writers[0]
        if not self._mark.stands(node):
            self._refuse_another(node)
            self.populate(setting)
        elif vanished := set(TABLES) - {name for (name,) in node.query(f"SHOW TABLES FROM {SCHEMA}")}:
            raise WorkloadError(
                f"{self}: schema {SCHEMA} on {node.name} has lost {', '.join(sorted(vanished))} since it was loaded: "
                f"DROP DATABASE {SCHEMA} there, and it is loaded anew"
            )

    def _refuse_another(self, node: Node) -> None:
        """Raise WorkloadError for a whole schema of another scale; one that was not loaded to its end may go."""
        from pytest_dbcluster.workloads.schema_mark import TABLE

        if node.query(f"SHOW DATABASES LIKE '{SCHEMA}'") and node.query(f"SHOW TABLES FROM {SCHEMA} LIKE '{TABLE}'"):
            ((scale,),) = node.query(f"SELECT scale FROM {SCHEMA}.{TABLE}")
            raise WorkloadError(
                f"{self}: schema {SCHEMA} on {node.name} holds {scale}, and this load needs {self._scale}: "
                f"DROP DATABASE {SCHEMA} there, and it is loaded anew"
            )

    def reset(self, setting: Setting) -> None:
        """Nothing: the tables grow, as the specification has it."""

    def run(self, setting: Setting) -> RunResult:
        """One round. Raises WorkloadError, NodeDied, and ConfigError for more threads than connections."""
        return self.observe(setting)[0]

    def observe(self, setting: Setting, *, outlive: bool = False) -> tuple[RunResult, list[dict[str, Any]]]:
        """One round, and the report of each thread; with ``outlive`` also when a node has died in it.

        Raises what ``run`` raises.
        """
        from pytest_dbcluster.workloads import sysbench_driver

        if isinstance(self.rate, str):
            raise ConfigError(f"{self}: a share has no rate before it was measured what the variants can do")
        call = self._call(setting, self.to, threads=self.threads)
        done, reports = sysbench_driver.run(
            call, setting, seconds=self.seconds, rate=self.rate, seed=self.seed, outlive=outlive
        )
        ledger = done.ledger
        reading = ("order_status", "stock_level")
        commits = sum(entry.committed for kind, entry in ledger.entries.items() if kind not in reading) if ledger else 0
        figures = {"tpmC": tpm_c(ledger, done.seconds)} if ledger else {}
        return dataclasses.replace(done, commits=commits, figures=figures), reports

    def _call(self, setting: Setting, to: str, *, threads: int) -> Call:
        from pytest_dbcluster.workloads import sysbench_driver

        own = {
            "warehouses": self.warehouses,
            "isolation": self.isolation,
            "foreign_keys": self.foreign_keys,
            "thinking": self.thinking,
            "on_district": self.terminals_on == "district",
            "acknowledged": self.acknowledged,
            "attempts": self.attempts,
            "partitions": ",".join(self._partitions(setting.cluster)),
        }
        endpoints = sysbench_driver.endpoints(setting.cluster, to, writes=True)
        own["endpoints"] = len(endpoints)
        return sysbench_driver.Call(str(self), "tpcc.lua", threads, SCHEMA, endpoints, own, prepared=False)

    def _partitions(self, cluster: Cluster) -> list[str]:
        """The nodes that share the warehouses, as they name themselves; none when any terminal may be anywhere."""
        if not self.partitioned:
            return []
        if len(cluster.writers) > self.warehouses:
            raise ConfigError(
                f"{self}: {len(cluster.writers)} nodes share the warehouses, so it takes as many of them or more"
            )
        return [str(node.query("SELECT CONCAT(@@hostname, ':', @@port)")[0][0]) for node in cluster.writers]

    def violations(self, cluster: Cluster) -> list[str]:
        """Which of the conditions 1 to 12 do not hold on a node, with the first row and both values."""
        from pytest_dbcluster.workloads.tpcc import conditions

        return conditions.violations(cluster.nodes)

    def clean(self, setting: Setting) -> None:
        """Drop the schema."""
        setting.cluster.writers[0].query(f"DROP DATABASE IF EXISTS {SCHEMA}")


def tpm_c(ledger: Ledger, seconds: float) -> float:
    """New-Orders a minute; those that roll back by design count (clause 5.4), failed and unknown ones do not."""
    return 60 * ledger.entries["new_order"].good / seconds if "new_order" in ledger.entries else 0.0
