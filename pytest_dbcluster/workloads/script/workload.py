"""``LuaScript``: a user's sysbench script, run by sysbench with retries, a ledger, and an arrival rate."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import os
import re
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_dbcluster import calls, wait
from pytest_dbcluster.errors import ConfigError, WorkloadError
from pytest_dbcluster.formatting import near, quantity
from pytest_dbcluster.rounds.round import RunResult
from pytest_dbcluster.workloads import lua_tree
from pytest_dbcluster.workloads.driver_workload import DriverWorkload
from pytest_dbcluster.workloads.made_tables import TableCopies, why_unreplicated
from pytest_dbcluster.workloads.schema_mark import SchemaMark
from pytest_dbcluster.workloads.workload import Setting

if TYPE_CHECKING:
    from pytest_dbcluster.clusters.cluster import Cluster
    from pytest_dbcluster.clusters.servers.node import Node
    from pytest_dbcluster.workloads.lua_tree import LuaTree
    from pytest_dbcluster.workloads.script.inspection import ScriptFacts
    from pytest_dbcluster.workloads.sysbench_driver import Call

VERSION = 1  # of prepare; raise it if equal scripts and options would make other tables
DIGITS = 10
PREPARE_SECONDS = 7200.0
UNIQUE_STEP = 2**20  # a round begins its unique numbers at a multiple of this
UNIQUE_END = 2**31
TABLES = """\
SELECT table_name, engine FROM information_schema.tables WHERE table_schema = '{}' AND table_type = 'BASE TABLE'
AND table_name NOT LIKE 'dbcluster\\_%' ORDER BY table_name"""
Option = str | float | bool | tuple[str, ...]

_TABLES: dict[str, tuple[str, ...]] = {}  # by data set, once it is known what prepare makes
_UNIQUE: weakref.WeakKeyDictionary[Cluster, int] = weakref.WeakKeyDictionary()  # where the next round begins
_WARNED: set[tuple[str, str]] = set()


@calls.check_arguments(
    'LuaScript("bench/mine.lua", options={"scale": 1}, threads=16)', instead={"concurrency": "threads"}
)
@dataclasses.dataclass(frozen=True)
class LuaScript(DriverWorkload):
    """A sysbench script of yours. One event counts as one transaction."""

    script: str | os.PathLike[str]
    """The path of the script, relative to the working directory."""

    options: Mapping[str, str | float | bool | Sequence[str]] | Sequence[tuple[str, object]] | None = None
    """Options that the script declares, and those of sysbench such as ``rand_type``."""

    threads: int = 16
    seconds: float | None = None
    rate: float | str | None = None
    """Events per second of an open loop, or a share such as ``"70 %"`` of the slowest variant's capacity. None is a
    closed loop.
    """

    writes: bool = True
    """Whether events change tables. False lets the script run on all nodes, also on those that are read-only."""

    restore: bool = False
    """Whether the tables of prepare are restored from copies before each round. Otherwise rows that events add stay."""

    data_files: Sequence[str] = ()
    """Files that the script reads and that are not named ``*.lua``, relative to its directory."""

    to: str | None = None
    isolation: str | None = None
    """Isolation level of the sessions; None is the server's default."""

    prepared: bool = True
    """Whether the server prepares the statements that the script prepares."""

    attempts: int = 100
    """Maximum number of attempts of one event, which then counts as failed."""

    database: str = "sbtest"
    """The database of the tables."""

    prepare_threads: int | None = None
    """Number of threads of prepare; None for ``threads``. Set it in a sweep of threads, which then has one data set."""

    seed: int = 1

    content: str = dataclasses.field(init=False)
    """A digest of all files of the script."""

    tree: LuaTree = dataclasses.field(init=False, repr=False, compare=False)
    """The files of the script."""

    def _check_fields(self) -> None:
        self._check("script", {"attempts": 1, "prepare_threads": 1}, ("writes", "restore", "prepared"))
        if not re.fullmatch(r"[A-Za-z_]\w{0,40}", self.database):
            raise ConfigError(f"script database={self.database!r}: it accepts a name of letters, digits and _")

    def __post_init__(self) -> None:
        super().__post_init__()
        tree = lua_tree.read(self.script, self.data_files)
        fixed = {
            "script": os.fspath(self.script),
            "options": tuple(
                (name.replace("-", "_"), _hashable(value)) for name, value in dict(self.options or ()).items()
            ),
            "data_files": tuple(self.data_files),
            "content": tree.digest,
            "tree": tree,
        }
        self._fix(fixed)

    def __str__(self) -> str:
        parts = [f"script {self.tree.name} t{self.threads}"]
        parts += [f" {name}={_text(value)}" for name, value in self._options.items()]
        return self._name("".join(parts), self.to, "" if self.prepared else " as text")

    @property
    def _options(self) -> dict[str, Option]:
        given: Any = self.options  # __post_init__ has made pairs of names and fixed values
        return dict(given)

    @property
    def tables(self) -> Sequence[str]:
        """The tables that must be equal on all nodes afterwards; none until the script's prepare has made them."""
        return _TABLES.get(self.data_set, ())

    @property
    def files(self) -> Mapping[str, str]:
        """The SHA-256 of each file of the script, such as ``bench/visits.lua``."""
        return self.tree.digests

    @property
    def own_name(self) -> str:
        """The name of the script without ``.lua``."""
        return self.tree.name

    @property
    def option(self) -> str:
        """The path of the script, relative to the working directory if it is below it; empty with options.

        ``--workload`` accepts no options of a script.
        """
        return "" if self.options or self.data_files else near(self.tree.path, Path.cwd())

    @property
    def data_set(self) -> str:
        """The name of the data set: a digest of the files, the options, and what else decides what prepare makes."""
        key = json.dumps(
            [VERSION, self.content, sorted(self._options.items()), self.database, self._prepare_threads, self.restore]
        )
        return f"script {self.tree.name} {hashlib.sha256(key.encode()).hexdigest()[:DIGITS]}"

    @property
    def _prepare_threads(self) -> int:
        return self.threads if self.prepare_threads is None else self.prepare_threads

    def check(self) -> None:
        """Load the script in sysbench. Raises ConfigError for a mistake in it, and for an option that it lacks."""
        self._facts()

    def _facts(self) -> ScriptFacts:
        from pytest_dbcluster.workloads.script import inspection

        facts = inspection.inspect(self.tree)
        inspection.check(self.tree, facts, self._options)
        return facts

    @property
    def _mark(self) -> SchemaMark:
        return SchemaMark(self.database, VERSION, self.data_set)

    @property
    def _copies(self) -> TableCopies:
        """The copies of the tables of prepare, in a database beside that of the tables."""
        return TableCopies(self.database, f"{self.database}_loaded")

    def populate(self, setting: Setting) -> None:
        """Make the database, and run the script's prepare. Raises WorkloadError with the script's message."""
        from pytest_dbcluster.workloads import sysbench_driver

        setting.progress(f"{self}: prepare of {self.tree.shown}")
        node = setting.cluster.writers[0]
        self._drop(setting)
        node.query(f"CREATE DATABASE `{self.database}`")
        if "prepare" in self._facts().commands:
            sysbench_driver.command(self._command(setting), setting, "prepare", seconds=PREPARE_SECONDS)
        if self.restore:
            node.query(f"CREATE DATABASE `{self._copies.copies}`")
            self._copies.keep(node, list(_tables(node, self.database)))
        self._mark.write(node)

    def prepare(self, setting: Setting) -> None:
        """Run the script's prepare, unless the cluster has its tables.

        Raises Unsupported for an old sysbench. Raises ConfigError if the script writes and an endpoint accepts no
        writes. It raises it too for tables that the topology does not replicate.
        """
        self.check()
        self._require_tools(setting)
        node = setting.cluster.writers[0]
        if not self._mark.stands(node):
            self.populate(setting)
        made = _tables(node, self.database)
        for name, engine in made.items():
            if reason := why_unreplicated(setting.cluster.spec.topology, name, engine):
                raise ConfigError(f"{reason}: use ENGINE=InnoDB in prepare")
        _TABLES[self.data_set] = tuple(f"{self.database}.{name}" for name in made)

    def reset(self, setting: Setting) -> None:
        """Restore the tables of prepare, if ``restore`` is set. Otherwise do nothing."""
        if self.restore:
            node = setting.cluster.writers[0]
            self._copies.restore(node, list(_tables(node, self._copies.copies)))

    def observe(self, setting: Setting) -> tuple[RunResult, list[dict[str, Any]]]:
        """Run one round, and return its result and the report of each thread. Raises what ``run`` raises."""
        begin = 0 if self.restore else _UNIQUE.get(setting.cluster, 0)
        result, reports = self._drive(self._call(setting, begin), setting)
        used = self.threads * max(report["unique"] for report in reports)
        _UNIQUE[setting.cluster] = (begin + UNIQUE_STEP * math.ceil(used / UNIQUE_STEP)) % UNIQUE_END
        self._warn(setting, sum(report["repeated"] for report in reports))
        commits = sum(report["commits"] for report in reports)
        if not self.writes and commits:
            raise WorkloadError(
                f"{self} has writes=False, and its events made {quantity(commits, 'commit')}: set writes=True"
            )
        counted = self.writes and not any(report["bulk"] for report in reports)
        return dataclasses.replace(result, commits=commits if counted else None), reports

    def _warn(self, setting: Setting, repeated: int) -> None:
        """Say once that retries repeat committed work."""
        if repeated and (str(self), self.content) not in _WARNED:
            _WARNED.add((str(self), self.content))
            setting.progress(
                f"{self}: an event commits more than once, so {quantity(repeated, 'retry')} repeated committed work; "
                "attempts=1 counts such an event as failed instead"
            )

    def _command(self, setting: Setting) -> Call:
        """The call of a command such as prepare, which connects to the writer."""
        call = self._call(setting, 0)
        return dataclasses.replace(call, threads=self._prepare_threads, endpoints=[setting.cluster.writer()])

    def _call(self, setting: Setting, unique_from: int) -> Call:
        from pytest_dbcluster.workloads import sysbench_driver
        from pytest_dbcluster.workloads.script import inspection

        given, facts = {name: _text(value) for name, value in self._options.items()}, self._facts()
        own = {
            "attempts": self.attempts,
            "unique_from": unique_from,
            "ignored": given.pop("mysql_ignore_errors", ""),  # terminal.lua has a list of its own
            "given": ",".join(name for name in given if name not in facts.every),
        }
        options = {**given, **{f"{inspection.PREFIX}{name}": value for name, value in own.items()}}
        to = self._endpoints(setting)
        return sysbench_driver.Call(
            str(self), inspection.ENTRY, self.threads, self.database, to, options, self.prepared,
            prefix=inspection.PREFIX, tree=self.tree,
        )  # fmt: skip

    def clean(self, setting: Setting) -> None:
        """Run the script's cleanup, and drop the database."""
        from pytest_dbcluster.workloads import sysbench_driver

        if not setting.cluster.writers[0].query(f"SHOW DATABASES LIKE '{self.database}'"):
            return
        if "cleanup" in self._facts().commands:
            sysbench_driver.command(self._command(setting), setting, "cleanup", seconds=PREPARE_SECONDS)
        self._drop(setting)

    def _drop(self, setting: Setting) -> None:
        for database in (self.database, self._copies.copies):
            setting.cluster.writers[0].query(f"DROP DATABASE IF EXISTS `{database}`", wait.SLOW_SECONDS)


def _tables(node: Node, database: str) -> dict[str, str]:
    """Name -> engine of the tables of a script."""
    return {str(name): str(engine) for name, engine in node.query(TABLES.format(database))}


def _hashable(value: object) -> Option:
    """A value of an option that can be hashed. Raises ConfigError for another type."""
    if isinstance(value, list | tuple):
        return tuple(map(str, value))
    if isinstance(value, str | bool | int | float):
        return value
    raise ConfigError(f"script options: {value!r} is not a text, a number, True, False or a list of texts")


def _text(value: Option) -> str:
    """A value as sysbench reads it."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return ",".join(value) if isinstance(value, tuple) else str(value)
