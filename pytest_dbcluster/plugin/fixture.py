"""Measure: the fixture ``measure``, which gives a test its series and curves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, overload

from pytest_dbcluster import calls
from pytest_dbcluster.claims.repetitions.order_statistics import ALONE_TIMES
from pytest_dbcluster.claims.repetitions.permutation import PER_BLOCK
from pytest_dbcluster.errors import ConfigError, Inconclusive, Unsupported
from pytest_dbcluster.measuring import curve
from pytest_dbcluster.measuring.capacity.capacity_series import AtRate, CapacitySeries, capacity_series_of
from pytest_dbcluster.measuring.curve import Curve, Point, ReleaseCurve
from pytest_dbcluster.measuring.drawing import reach
from pytest_dbcluster.measuring.event_series import EventSeries, event_series_of, plan
from pytest_dbcluster.measuring.factorial.effects import Effects
from pytest_dbcluster.measuring.measurement import Measurement
from pytest_dbcluster.measuring.race import running, terms
from pytest_dbcluster.measuring.race.winner import Winner
from pytest_dbcluster.measuring.series import Series, series_of
from pytest_dbcluster.plugin.calls.measure_call import MeasureCall, check_event, named_loads, swept_releases
from pytest_dbcluster.rounds.capacity.objective import Objective
from pytest_dbcluster.spec import ClusterSpec, ReleaseName

if TYPE_CHECKING:
    from pytest_dbcluster.clusters.events.event import Event
    from pytest_dbcluster.plugin.settings import Settings
    from pytest_dbcluster.reporting.resume.earlier import Earlier
    from pytest_dbcluster.testbed.options.levels import Levels
    from pytest_dbcluster.workloads.workload import Setting, Workload

Done = TypeVar("Done")
VARIANTS = 2  # minimum for a claim
OPTIONS = 'options={"sync_binlog": (1, 0), "innodb_flush_log_at_trx_commit": (1, 2)}'
ALONE = (
    "measure(workload, on=[{spec}]) has one variant, but a claim needs two. Compare two clusters: "
    "default, other = measure(workload, on=[{spec}, other_spec]); or two workloads on one cluster: "
    "measure({{name: workload, other_name: other_workload}}, on=[{spec}])"
)


class MeasureSession(Protocol):
    """What ``Measure`` needs of a run; ``DBSession`` is one."""

    @property
    def settings(self) -> Settings:
        """The settings of the run."""

    @property
    def earlier(self) -> Earlier | None:
        """The run that this one continues; None without one."""

    def measurement(self, call: MeasureCall) -> Measurement:
        """As ``DBSession.measurement``."""

    def use(self, load: Workload, spec: ClusterSpec, release: ReleaseName, does: Callable[[Setting], Done]) -> Done:
        """As ``DBSession.use``."""

    def curve_begins(self, curve: Curve) -> None:
        """As ``DBSession.curve_begins``."""

    def available(
        self, releases: Sequence[ReleaseName], on: Sequence[ClusterSpec]
    ) -> tuple[list[ReleaseName], list[str]]:
        """As ``DBSession.available``."""


class Measure:
    """``measure(workload, on=[spec, ...])`` and ``measure.sweep(workload, on=[spec, ...], threads=(1, 4, 16))``.

    ``measure.race(workload, on=[spec, ...])`` finds the best of several specs.

    ``asked`` collects one list for each call: one measurement, or one for each point of a sweep.
    """

    def __init__(
        self, session: MeasureSession, release: ReleaseName, item: Any, asked: list[list[Measurement]]
    ) -> None:
        self._session = session
        self._release = release
        self._item = item
        self._asked = asked

    @property
    def releases(self) -> Sequence[ReleaseName]:
        """The releases of the run, one for each ``--db-release``, for ``sweep(..., release=measure.releases)``."""
        return self._session.settings.releases

    @calls.check_arguments("default, other = measure(workload, on=[spec, other_spec])")
    def __call__(
        self,
        workload: Workload | Mapping[str, Workload],
        *,
        on: Sequence[ClusterSpec],
        across_durability: bool = False,
        instances: int | None = None,
    ) -> list[Series]:
        """Return one series for each spec; claims draw the rounds.

        With a mapping (name -> workload), each workload on each spec is a series. The specs of the first workload come
        first. Such a series has a name such as ``many on near``, or on a single spec the name of its workload.

        - across_durability: True permits variants with different commit guarantees that come from topology, vendor or
          release, and not from the test's options.
        - instances: the number of fresh clusters of each variant, alternating by block. The default is 2 if topologies
          or releases differ, otherwise 1.

        Raises ConfigError for variants that cannot be compared, and for a single variant. It raises it too for rounds
        that are too long for the budget of a claim. Raises Inconclusive if the budget of the run is spent.
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
        """Return a curve: a measurement at each value of one field, such as ``threads=(1, 4, 16)``.

        ``for threads, baseline, candidate in measure.sweep(...)`` claims point by point; the first claim that fails or
        is inconclusive ends the test. ``curve.every`` measures all points before it raises. ``curve.draw`` measures
        without a claim. The plugin writes the table, chart and file of the curve after the test.

        ``release=("mariadb:10.11", "mariadb:11.8")`` gives a ``ReleaseCurve``: releases of one product, whose rounds
        alternate. Releases that are not available here are left out, and the curve names them with the reason.

        Raises ConfigError for a field that the workload does not have, and for clusters that name a release. Raises
        Unsupported if fewer than two releases are available.
        """
        if isinstance(workload, Mapping):
            raise ConfigError("measure.sweep accepts one workload: it compares clusters at each value of a field")
        if curve.RELEASE in values:
            return self._release_curve(workload, on, swept_releases(values), across_durability, instances)
        field, workloads = curve.loads(workload, values)
        points = [
            Point(value, self._measurement(load, on, across_durability, instances, name, (field, value)))
            for (value, load), name in zip(workloads, curve.names(field, workloads), strict=True)
        ]
        self._asked.append([point.measurement for point in points])
        sweep = Curve(workload, field, points)
        self._session.curve_begins(sweep)
        return sweep

    def _release_curve(
        self,
        workload: Workload,
        on: Sequence[ClusterSpec],
        releases: Sequence[ReleaseName],
        across_durability: bool,
        instances: int | None,
    ) -> ReleaseCurve:
        found, missing = self._session.available(releases, on)
        if len(found) < 2:
            raise Unsupported(f"a curve over releases needs two or more; {'; '.join(missing)}")
        specs = [spec.on_release(release) for release in found for spec in on]
        measurement = self._measurement(workload, specs, across_durability, instances)
        self._asked.append([measurement])
        sweep = ReleaseCurve(workload, measurement, list(map(str, found)), list(map(str, on)))
        sweep.notes = missing
        self._session.curve_begins(sweep)
        return sweep

    @calls.check_arguments(f"effects = measure.factorial(workload, on=spec, {OPTIONS})")
    def factorial(
        self,
        workload: Workload,
        *,
        on: ClusterSpec,
        options: Mapping[str, Sequence[object]],
        pairs: Sequence[tuple[str, str]] = (),
    ) -> Effects:
        """Return the effects of several options on one cluster, all measured in the same rounds; claims draw them.

        ``effects["sync_binlog"].beats(by=.05)`` claims that the second level is faster than the first one. In a block
        of eight rounds each option has each of its levels in four rounds. Their order is drawn for each option. Running
        servers switch between the levels, and all their variables are verified before each round. If an option needs a
        start, each of these rounds has a fresh cluster. Then it consists of three rounds, which count as one value.

        - options: name -> (baseline, candidate), such as ``{"sync_binlog": (1, 0)}``.
        - pairs: options whose interaction may be claimed: ``effects["sync_binlog", "innodb_io_capacity"]``.

        Raises ConfigError, before a cluster starts, for an unknown option or level, and for equal levels. It raises it
        too for an option that is there twice, and for more options than the rounds allow. Raises Inconclusive if the
        budget of the run is spent.
        """
        from pytest_dbcluster.testbed.options import levels

        if isinstance(workload, Mapping) or not isinstance(on, ClusterSpec):
            raise ConfigError(
                f"measure.factorial(workload, on=spec, ...) accepts one workload and one spec; got {on!r}"
            )
        found = levels.read(options)
        named = levels.read_pairs(pairs, found)
        rules = self._session.settings.rules()
        levels.check_number(len(found), len(named), rules.alpha, rules.cap)
        self._check_reach(workload)
        parts = len(found) + len(named)
        measurement = self._measurement(workload, [on], False, None, options=found, parts=parts)
        self._asked.append([measurement])
        return Effects(measurement, found, named)

    @calls.check_arguments("winner = measure.race(workload, on=[spec, other_spec, third_spec])")
    def race(
        self,
        workload: Workload,
        *,
        on: Sequence[ClusterSpec],
        by: float | None = None,
        metric: str | None = None,
        across_durability: bool = False,
        instances: int | None = None,
    ) -> Winner:
        """Race the specs, 2 to 17, and return the ``Winner``; the rounds are drawn now.

        A spec leaves when one that remains beats it. The race ends when one remains, or when one is less than ``by``
        slower than each other that remains. It is wrong if the best one leaves, or if the winner is slower than it by
        ``by`` or more. The chance is at most alpha (.0005, ``--db-alpha``).

        - by: a fraction. The default is .05. On separate clusters it is twice what equal clusters can differ by; then
          a smaller one raises ConfigError.
        - metric: as in ``Series.beats``.
        - instances: the number of fresh clusters of each spec. The default is 4 on separate clusters, otherwise 1.
        - across_durability: as in ``__call__``.

        Raises ConfigError for equal specs or names, a wrong margin, or rounds too long for the budget.
        Raises SeriesVoid if rounds are void too often, or if a check of the clusters fails.
        """
        if not isinstance(on, list | tuple) or not all(isinstance(spec, ClusterSpec) for spec in on):
            raise ConfigError(f"measure.race(workload, on=[...]) accepts a list of ClusterSpec; got {on!r}")
        terms.check(workload, on, by)
        measurement = self._measurement(workload, on, across_durability, instances, race=True)
        self._asked.append([measurement])
        return running.run(measurement, by, metric)

    @overload
    def event(
        self,
        workload: Workload,
        event: Event,
        *,
        on: ClusterSpec,
        times: int | None = None,
        across_durability: bool = False,
    ) -> EventSeries: ...

    @overload
    def event(
        self,
        workload: Workload,
        event: Event | Mapping[str, Event],
        *,
        on: Sequence[ClusterSpec],
        times: int | None = None,
        across_durability: bool = False,
    ) -> list[EventSeries]: ...

    @overload
    def event(
        self,
        workload: Workload,
        event: Mapping[str, Event],
        *,
        on: ClusterSpec,
        times: int | None = None,
        across_durability: bool = False,
    ) -> list[EventSeries]: ...

    @overload
    def event(
        self,
        workload: Mapping[str, Workload],
        event: Event,
        *,
        on: ClusterSpec | Sequence[ClusterSpec],
        times: int | None = None,
        across_durability: bool = False,
    ) -> list[EventSeries]: ...

    @calls.check_arguments('done = measure.event(TPCC(threads=8), Kill("other"), on=spec)', instead={"n": "times"})
    def event(
        self,
        workload: Workload | Mapping[str, Workload],
        event: Event | Mapping[str, Event],
        *,
        on: ClusterSpec | Sequence[ClusterSpec],
        times: int | None = None,
        across_durability: bool = False,
    ) -> EventSeries | list[EventSeries]:
        """Return the series of an event under load, such as a killed server; claims let it happen.

        One event on one spec returns an ``EventSeries``. A list of specs, and events or workloads by name, return a
        list: the specs of the first event or workload come first. In a repetition the workload runs, and the event
        happens at a random moment. The workload recovers and stops. Then the cluster is made whole.

        - times: the repetitions of each variant. The default is 11, and 7 for several variants, whose repetitions run
          in random order in blocks of seven.
        - across_durability: as in ``__call__``.

        Raises ConfigError for a workload, an event or a cluster that cannot have repetitions, before anything starts.
        Raises Inconclusive if the budget of the run is spent.
        """
        single = isinstance(on, ClusterSpec)
        specs = [on] if isinstance(on, ClusterSpec) else on
        check_event(event)
        if not isinstance(specs, list | tuple) or not specs or not all(isinstance(one, ClusterSpec) for one in specs):
            raise ConfigError(f"measure.event(workload, event, on=spec) accepts a ClusterSpec or a list; got {on!r}")
        loads = named_loads(workload, event)
        named = len(event) if isinstance(event, Mapping) else len(loads)
        several = len(specs) * named > 1
        times = times if times is not None else (PER_BLOCK if several else ALONE_TIMES)
        plan(2 if several else 1, times)
        measurement = self._measurement(workload, specs, across_durability, None, event=event, times=times)
        self._asked.append([measurement])
        books = [bool(getattr(load, "keeps_books", False)) for load in loads for _ in specs]
        series = event_series_of(measurement, times, books if len(loads) > 1 else books[:1] * len(specs) * named)
        return series[0] if single and not isinstance(event, Mapping) and not isinstance(workload, Mapping) else series

    @calls.check_arguments("slow, fast = measure.capacity(workload, on=[spec, other_spec], p95=0.02)")
    def capacity(
        self,
        workload: Workload,
        *,
        on: Sequence[ClusterSpec],
        across_durability: bool = False,
        instances: int | None = None,
        **percentile: float,
    ) -> list[CapacitySeries]:
        """Return one series for each spec, whose claims compare capacities at an objective for the latency.

        The capacity is the arrival rate, in operations a second, at which a percentile crosses the objective. The
        objective is ``p50=``, ``p95=``, ``p99=`` or ``p999=`` with its seconds: ``p95=0.02`` is 20 ms. Each round runs
        five rates in random order, the same for all variants. A search before the first round chooses them.

        ``meets`` claims that one of them keeps the objective at a rate; for it a single spec suffices.

        The workload needs an open loop, and has no ``rate``. The other arguments are those of ``__call__``. Raises
        ConfigError for a wrong workload or objective, and Inconclusive if the budget of the run is spent.
        """
        if isinstance(workload, Mapping):
            raise ConfigError("measure.capacity accepts one workload: it compares clusters")
        objective = Objective.of("measure.capacity", percentile)
        measurement = self._measurement(workload, on, across_durability, instances, capacity=objective)
        self._asked.append(asked := [measurement])

        def ask(at: AtRate) -> Measurement:
            own = self._measurement(workload, [on[at.variant]], times=at.times, capacity=at)
            asked.append(own)
            return own

        return capacity_series_of(measurement, objective, ask)

    def use(self, workload: Workload, on: ClusterSpec, does: Callable[[Setting], Done]) -> Done:
        """Call ``does`` on a cluster with the tables of a workload, and return its result; this is not a claim.

        ``pytest_dbcluster.testing`` tests workloads with it.
        """
        return self._session.use(workload, on, self._release, does)

    def _check_reach(self, workload: Workload | Mapping[str, Workload]) -> None:
        """End a test whose rounds are too long for any claim, before the run fetches or starts anything.

        The claims of the test are not known yet, so the earliest first look of all counts. Each claim checks again.
        This skips a test with answers of a run that this one continues. Raises ConfigError if the budget of a claim is
        too small, and Inconclusive if the run's remaining budget is.
        """
        if self._has_answer():
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
            raise ConfigError(f"{' and '.join(map(str, loads))}: the budget is too small for any claim: {why}")
        if left > 0 and (why := reach.beyond_run(look, VARIANTS, seconds, left)):
            raise Inconclusive(f"{why}; nothing was started")

    def _has_answer(self) -> bool:
        """Whether the run that this one continues has an answer for this test."""
        known = self._session.earlier
        return known is not None and known.has(self._item.nodeid, str(self._release))

    def _measurement(
        self,
        workload: Workload | Mapping[str, Workload],
        on: Sequence[ClusterSpec],
        across_durability: bool = False,
        instances: int | None = None,
        called: str = "",
        swept: tuple[str, object] | None = None,
        event: Event | Mapping[str, Event] | None = None,
        times: int = 0,
        options: Levels | None = None,
        parts: int = 1,
        race: bool = False,
        capacity: Objective | AtRate | None = None,
    ) -> Measurement:
        why = self._session.settings.rules().run_over()
        if why and not self._has_answer():
            raise Inconclusive(f"{why}; nothing was started")
        return self._session.measurement(
            MeasureCall(
                workload=workload,
                on=on,
                release=self._release,
                item=self._item,
                across_durability=across_durability,
                instances=instances,
                called=called,
                number=len(self._asked),
                swept=swept,
                event=event,
                times=times,
                options=options or {},
                parts=parts,
                race=race,
                capacity=capacity,
            )
        )
