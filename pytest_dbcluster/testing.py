"""``WorkloadContract``: the tests that a workload must pass, for a workload that you write in Python.

    class TestMine(WorkloadContract):
        workload = Mine(threads=2)

pytest runs them on a real server. ``docs/how-to/own-workload.md`` explains each of them.
"""

from __future__ import annotations

import copy
import dataclasses
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.testbed import comparability
from pytest_dbcluster.workloads.workload import HasDataSet, OpenLoop, Setting, Timed, Workload

if TYPE_CHECKING:
    from pytest_dbcluster.clusters.servers.node import Node
    from pytest_dbcluster.measuring.series import Series
    from pytest_dbcluster.plugin.fixture import Measure

ADDRESS = re.compile(r"\bat 0x[0-9a-f]+")
SEPARATOR = " | "  # of the parts of a claim id
SETTLE_SECONDS = 60.0
BLOCK = 3
LOADED_MARGIN = 0.9
LOG_ON = ("SET GLOBAL log_output = 'TABLE'", "TRUNCATE mysql.general_log", "SET GLOBAL general_log = ON")
LOG_OFF = ("SET GLOBAL general_log = OFF", "SET GLOBAL log_output = 'FILE'")
OF_LOG = re.compile(r"general_log|log_output", re.IGNORECASE)
LOGGED = "SELECT thread_id, user_host, argument FROM mysql.general_log WHERE command_type IN ('Query', 'Execute')"
Statements = list[tuple[str, ...]]
AtWork = Callable[[Callable[[Setting], Any]], Any]
Rows = list[tuple[str, str, object]]


class WorkloadContract:
    """Derive a class ``TestMine`` from it, and set ``workload`` to a small one: few threads, few rows, short rounds."""

    workload: ClassVar[Workload]
    """The workload."""

    spec: ClassVar[ClusterSpec] = ClusterSpec("standalone")
    """The cluster that it runs on."""

    restores: ClassVar[str] = "all"
    """What ``reset`` restores: ``all`` rows and values, the number of ``rows``, or ``nothing`` for tables that grow."""

    statements: ClassVar[int] = 10
    """How many first statements of each connection are equal for equal blocks; 0 for inputs that differ by design."""

    @pytest.fixture
    def at_work(self, measure: Measure) -> AtWork:
        """``at_work(does)``: what ``does`` returns when it is called on a cluster with the workload's tables."""
        return lambda does: measure.use(self.workload, self.spec, does)

    def test_its_name_is_stable(self) -> None:
        """It is a frozen dataclass with its own ``__str__``, so equal workloads have one name in all results."""
        comparability.check_workloads([self.workload])
        name, again = str(self.workload), copy.copy(self.workload)

        assert again == self.workload, "a copy is not equal: let the dataclass compare all fields"
        assert hash(again) == hash(self.workload), "equal workloads have different hashes"
        assert name.strip() == name != "", f"the name {name!r} is empty, or has spaces around it"
        assert not ADDRESS.search(name), f"the name {name!r} has an address in memory, which differs in each run"
        assert str(again) == name, f"equal workloads have different names: {name!r} and {str(again)!r}"
        assert "\n" not in name, f"the name {name!r} has several lines"
        assert SEPARATOR not in name, f"the name {name!r} has {SEPARATOR!r}, which separates the parts of a claim's id"

    def test_its_copies_keep_name_and_tables(self) -> None:
        """A claim chooses the length and the rate of rounds with copies of the workload."""
        if isinstance(self.workload, Timed):
            longer = self.workload.with_seconds(1.5)
            assert longer.round_seconds == 1.5, "with_seconds(1.5) has another round_seconds"
            assert str(longer) == str(self.workload), "with_seconds changes the name"
            free = longer.with_seconds(self.workload.seconds) if isinstance(longer, Timed) else None
            assert free == self.workload, "with_seconds does not lead back to the workload"
        if isinstance(self.workload, OpenLoop):
            paced = self.workload.at_rate(50.0)
            assert isinstance(paced, OpenLoop) and paced.rate == 50.0, "at_rate(50.0) has another rate"  # noqa: PT018
            assert list(paced.tables) == list(self.workload.tables), "at_rate changes the tables"
        if isinstance(self.workload, HasDataSet):
            assert self.workload.data_set, "data_set is empty: it names the tables in the cache"

    @pytest.mark.expected_seconds(3)
    def test_a_run_reports_its_work(self, at_work: AtWork) -> None:
        """Seconds, operations, and commits if it writes."""
        done = at_work(self.workload.run)

        assert done.seconds > 0, f"a run took {done.seconds!r} s"
        assert done.operations > 0, f"a run reports {done.operations!r} operations"
        assert done.done > 0, done.idle
        assert done.done <= done.operations, f"{done.done} of {done.operations} operations were good"
        assert done.commits is None or self.workload.writes, "a workload with writes=False reports commits"
        assert done.void == "", done.void

    @pytest.mark.expected_seconds(5)
    def test_a_reset_restores_the_tables(self, at_work: AtWork) -> None:
        """On all nodes. A run changes the tables if, and only if, it says so."""

        def there_and_back(setting: Setting) -> tuple[Rows, Rows, Rows, Rows, Rows]:
            self.workload.clean(setting)
            self.workload.prepare(setting)
            prepared = self._rows(setting), self._sums(setting)
            self.workload.run(setting)
            changed = self._sums(setting)
            self.workload.reset(setting)
            return (*prepared, changed, self._rows(setting), self._sums(setting))

        rows, sums, changed, rows_again, sums_again = at_work(there_and_back)
        assert self.workload.tables, "tables is empty: name the tables that must be equal on all nodes"
        if self.workload.writes:
            assert changed != sums, "writes is True, and a run changed no table: set writes to False"
        else:
            assert changed == sums, "writes is False, and a run changed tables: set writes to True"
        if self.restores == "all":
            assert sums_again == sums, (
                f"after a reset the tables differ from those of prepare: {sums_again}, not {sums}"
            )
        elif self.restores == "rows":
            assert rows_again == rows, f"after a reset the tables have other numbers of rows: {rows_again}, not {rows}"

    @pytest.mark.expected_seconds(3)
    def test_a_second_prepare_changes_nothing(self, at_work: AtWork) -> None:
        """The tables are there already."""

        def twice(setting: Setting) -> tuple[Rows, Rows]:
            before = self._sums(setting)
            self.workload.prepare(setting)
            return before, self._sums(setting)

        before, after = at_work(twice)
        assert after == before, f"a second prepare changed the tables: {after}, not {before}"

    @pytest.mark.expected_seconds(10)
    def test_equal_blocks_have_equal_inputs(self, at_work: AtWork) -> None:
        """All variants of a block run the same statements, from equal tables. ``setting.seed`` is equal for them."""
        if not self.statements:
            pytest.skip("statements = 0: the inputs differ by design")

        def twice(setting: Setting) -> list[Statements]:
            return [self._first_statements(dataclasses.replace(setting, block=BLOCK)) for _ in range(2)]

        first, second = at_work(twice)
        assert first, "the run sent no statement to the nodes of the cluster"
        for one, other in zip(first, second, strict=True):
            length = min(len(one), len(other))
            assert one[:length] == other[:length], (
                f"two runs of block {BLOCK} begin with different statements: {one[:length]} and {other[:length]}; "
                "draw all inputs from setting.seed"
            )

    @pytest.mark.expected_seconds(3)
    def test_clean_leaves_nothing(self, at_work: AtWork) -> None:
        """The tables are dropped. A second call is no error."""

        def clean_twice(setting: Setting) -> list[str]:
            self.workload.clean(setting)
            self.workload.clean(setting)
            left = [table for table in self.workload.tables if _exists(setting.cluster.nodes[0], table)]
            self.workload.prepare(setting)
            return left

        assert at_work(clean_twice) == [], "clean leaves tables behind"

    @pytest.mark.expected_seconds(30)
    def test_claims_work(self, measure: Measure) -> None:
        """The same cluster twice: neither is ten times slower, and all checks of the rounds pass."""
        one, other = self._series(measure)

        assert other.no_slower_than(one, by=LOADED_MARGIN)

    def _series(self, measure: Measure) -> Sequence[Series]:
        return measure(self.workload, on=[self.spec.named("one"), self.spec.named("other")])

    def _rows(self, setting: Setting) -> Rows:
        """The number of rows of each table on each node."""
        count = "SELECT COUNT(*) FROM {}"
        return self._of_each_table(
            setting, lambda node, table: node.query(count.format(table), wait.SLOW_SECONDS)[0][0]
        )

    def _sums(self, setting: Setting) -> Rows:
        """A digest of all rows of each table on each node."""
        from pytest_dbcluster.clusters.table_rows import rows_digest

        return self._of_each_table(setting, rows_digest)

    def _of_each_table(self, setting: Setting, ask: Callable[[Node, str], Any]) -> Rows:
        assert setting.cluster.settle(SETTLE_SECONDS), setting.cluster.backlog()
        return [
            (node.name, table, ask(node, table)) for node in setting.cluster.nodes for table in self.workload.tables
        ]

    def _first_statements(self, setting: Setting) -> Statements:
        """The first statements of each connection in a run on fresh tables, sorted."""
        self.workload.clean(setting)
        self.workload.prepare(setting)
        self.workload.reset(setting)
        assert setting.cluster.settle(SETTLE_SECONDS), setting.cluster.backlog()
        for node in setting.cluster.nodes:
            for statement in LOG_ON:
                node.query(statement)
        try:
            self.workload.run(setting)
        finally:
            for node in setting.cluster.nodes:
                for statement in LOG_OFF:
                    node.query(statement)
        return sorted(each[: self.statements] for node in setting.cluster.nodes for each in _statements(node))


def _statements(node: Node) -> Iterator[tuple[str, ...]]:
    """The statements of each connection of a load in the server's log, also those of ``node.query``."""
    from pytest_dbcluster.clusters.servers.node import LOAD

    ((own,),) = node.query("SELECT CONNECTION_ID()")
    found: dict[int, list[str]] = defaultdict(list)
    for connection, user, statement in node.query(LOGGED):
        if (str(user).startswith(LOAD) or connection == own) and not OF_LOG.search(str(statement)):
            found[connection].append(str(statement))
    yield from map(tuple, found.values())


def _exists(node: Node, table: str) -> bool:
    schema, _, name = table.partition(".")
    tables = f"SELECT 1 FROM information_schema.tables WHERE table_schema = '{schema}' AND table_name = '{name}'"
    return bool(node.query(tables))
