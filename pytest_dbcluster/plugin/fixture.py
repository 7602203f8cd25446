"""Measure: the fixture ``measure``, which gives a test its series and curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pytest_dbcluster import calls
from pytest_dbcluster.errors import ConfigError, Inconclusive
from pytest_dbcluster.measuring import curve
from pytest_dbcluster.measuring.curve import Curve, Point
from pytest_dbcluster.measuring.drawing import reach
from pytest_dbcluster.measuring.measurement import Measurement
from pytest_dbcluster.measuring.series import Series, series_of
from pytest_dbcluster.spec import ClusterSpec, ReleaseName

if TYPE_CHECKING:
    from pytest_dbcluster.plugin.session import DBSession
    from pytest_dbcluster.workloads.tpcc import TPCC
    from pytest_dbcluster.workloads.tpcc.failover import LoadedFailover
    from pytest_dbcluster.workloads.workload import Workload

VARIANTS = 2  # of a claim, at least
ALONE = (
    "measure(workload, on=[{spec}]) has nothing to compare {spec} with: a claim needs two variants. Compare two "
    "clusters, default, other = measure(workload, on=[{spec}, other_spec]), or two workloads on one cluster, "
    "measure({{name: workload, other_name: other_workload}}, on=[{spec}])"
)


class Measure:
    """``measure(workload, on=[spec, ...])`` and ``measure.sweep(workload, on=[spec, ...], threads=(1, 4, 16))``.

    ``measure.failover(TPCC(...), on=spec)`` measures no rounds. ``asked`` collects one list of measurements per call:
    one measurement, or one per point of a sweep.
    """

    def __init__(self, session: DBSession, release: ReleaseName, item: Any, asked: list[list[Measurement]]) -> None:
        self._session = session
        self._release = release
        self._item = item
        self._asked = asked

    @calls.check_arguments("default, other = measure(workload, on=[spec, other_spec])")
    def __call__(
        self,
        workload: Workload | Mapping[str, Workload],
        *,
        on: Sequence[ClusterSpec],
        across_durability: bool = False,
        instances: int | None = None,
    ) -> list[Series]:
        """Return one series per spec; claims draw the rounds.

        Of a mapping (name -> workload) each workload on each spec is a series: all specs of the first workload, then
        those of the next. On a single spec a series has the name of its workload, else a name such as ``many on near``.
        across_durability: True permits variants with different guarantees of a commit that come from topology, vendor
        or release and not from the test's options. instances: the number of fresh clusters of each variant, used in
        turn by block; by default 2 when topologies or releases are compared, else 1. Raises ConfigError for variants
        that cannot be compared, for a single one, and for rounds so long that the budget decides no claim. Raises
        Inconclusive when the run's time is used.
        """
        if isinstance(on, list | tuple) and len(on) == 1 and not isinstance(workload, Mapping):
            raise ConfigError(ALONE.format(spec=on[0]))
        self._check_reach(workload)
        measurement = self._measurement(workload, on, across_durability, instances)
        self._asked.append([measurement])
        return series_of(measurement)

    @calls.check_arguments("curve = measure.sweep(workload, on=[spec, other_spec], threads=(1, 4, 16))")
    def sweep(
        self,
        workload: Workload,
        *,
        on: Sequence[ClusterSpec],
        across_durability: bool = False,
        instances: int | None = None,
        **values: Sequence[object],
    ) -> Curve:
        """Return a curve: the same at each value of one field, such as ``threads=(1, 4, 16)``.

        ``for threads, baseline, candidate in measure.sweep(...)`` claims point by point; the first claim that fails or
        is inconclusive ends the test. ``curve.every`` measures all points before it raises. ``curve.draw`` measures
        without a claim. The table, chart and file of the curve are written after the test. Raises ConfigError for a
        field that the workload does not have.
        """
        if isinstance(workload, Mapping):
            raise ConfigError("measure.sweep takes one workload: it compares clusters at each value of a field")
        field, workloads = curve.loads(workload, values)
        points = [
            Point(value, self._measurement(load, on, across_durability, instances, name, (field, value)))
            for (value, load), name in zip(workloads, curve.names(field, workloads), strict=True)
        ]
        self._asked.append([point.measurement for point in points])
        sweep = Curve(workload, field, points)
        self._session.curve_begins(sweep)
        return sweep

    @calls.check_arguments("done = measure.failover(TPCC(threads=4), on=spec)")
    def failover(self, workload: TPCC, *, on: ClusterSpec) -> LoadedFailover:
        """Take the server of a cluster away while TPC-C writes, let its standby take over, and return how that went.

        ``done.seconds`` without a server, ``done.failover.steps`` one by one, ``done.acknowledged`` orders, of which
        ``done.lost`` are missing on the new server, ``done.violations`` of the conditions of TPC-C there. It is no
        claim, so assert what you expect. The text of it is printed. Afterwards the old host stands by.

        Raises ConfigError for another workload, and for a cluster without a standby; Inconclusive when the run's time
        is used; ProvisionError where the standby may not take over.
        """
        from pytest_dbcluster.workloads.tpcc import TPCC

        if not isinstance(workload, TPCC):
            raise ConfigError(f"measure.failover compares the orders of TPCC, and got {workload!r}")
        if not isinstance(on, ClusterSpec):
            raise ConfigError(f"measure.failover(workload, on=spec) takes one ClusterSpec, got {on!r}")
        if why := self._session.settings.rules().run_over():
            raise Inconclusive(f"{why}; nothing was started")
        return self._session.failover(workload, on, self._release)

    def _check_reach(self, workload: Workload | Mapping[str, Workload]) -> None:
        """End a test whose rounds are too long for any claim, before a release is fetched or anything starts.

        Which claims the test will make is not known yet, so the earliest first look of all counts; each claim checks
        its own. A test with answers of a run that this one continues is left to its claims. Raises ConfigError if the
        budget of a claim is too small, and Inconclusive if the rest of the run's time is.
        """
        if self._answered():
            return
        from pytest_dbcluster.plugin.collection import budgets
        from pytest_dbcluster.testbed import comparability

        loads = list(workload.values()) if isinstance(workload, Mapping) else [workload]
        given, free = comparability.seconds(loads)
        if (seconds := reach.shortest_round(given, free)) is None:
            return
        rules = budgets.rules(self._item, self._session.settings)
        look, left = reach.earliest_look(), rules.run_left()
        if why := reach.beyond_budget(look, VARIANTS, seconds, rules.budget, given=not free):
            raise ConfigError(f"{' and '.join(map(str, loads))}: no claim can be decided: {why}")
        if left > 0 and (why := reach.beyond_run(look, VARIANTS, seconds, left)):
            raise Inconclusive(f"{why}; nothing was started")

    def _answered(self) -> bool:
        """Whether the run that this one continues has an answer of this test."""
        known = self._session.earlier
        return known is not None and known.has(self._item.nodeid, str(self._release))

    def _measurement(
        self,
        workload: Workload | Mapping[str, Workload],
        on: Sequence[ClusterSpec],
        across_durability: bool,
        instances: int | None,
        called: str = "",
        swept: tuple[str, object] | None = None,
    ) -> Measurement:
        why = self._session.settings.rules().run_over()
        if why and not self._answered():
            raise Inconclusive(f"{why}; nothing was started")
        return self._session.measurement(
            workload,
            on,
            self._release,
            self._item,
            across_durability=across_durability,
            instances=instances,
            called=called,
            number=len(self._asked),
            swept=swept,
        )
