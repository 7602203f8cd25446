"""What a test gets as ``measure``: series on several clusters, and curves of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pytest_dbcluster.errors import ConfigError, Inconclusive
from pytest_dbcluster.measuring import curve
from pytest_dbcluster.measuring.curve import Curve, Point
from pytest_dbcluster.measuring.measurement import Measurement
from pytest_dbcluster.measuring.series import Series, series_of
from pytest_dbcluster.spec import ClusterSpec, ReleaseName

if TYPE_CHECKING:
    from pytest_dbcluster.plugin.session import DBSession
    from pytest_dbcluster.workloads.workload import Workload


class Measure:
    """``measure(workload, on=[spec, ...])`` and ``measure.sweep(workload, on=[spec, ...], threads=(1, 4, 16))``.

    ``asked`` has a list of measurements for each of these calls: one, or one for each point of a sweep.
    """

    def __init__(self, session: DBSession, release: ReleaseName, item: Any, asked: list[list[Measurement]]) -> None:
        self._session = session
        self._release = release
        self._item = item
        self._asked = asked

    def __call__(
        self,
        workload: Workload | Mapping[str, Workload],
        *,
        on: Sequence[ClusterSpec],
        across_durability: bool = False,
        instances: int | None = None,
    ) -> list[Series]:
        """A lazy series for each spec, or for each load by name on one spec; claims about them draw the rounds.

        ``across_durability=True`` says that the test knows of a difference in what a commit is worth which it did not
        set through its options: between topologies, vendors or releases. ``instances``: how many fresh clusters each
        variant has, whose rounds count alike; 2 where topologies or releases are compared, else 1. Raises Inconclusive
        when the run's time is used.
        """
        made = self._measurement(workload, on, across_durability, instances)
        self._asked.append([made])
        return series_of(made)

    def sweep(
        self,
        workload: Workload,
        *,
        on: Sequence[ClusterSpec],
        across_durability: bool = False,
        instances: int | None = None,
        **values: Sequence[object],
    ) -> Curve:
        """The same at each value of one field of the load; the table, chart and file of the curve follow the test.

        ``for threads, one, other in measure.sweep(...)`` claims at each point, and the first that fails or stays open
        ends the test; ``curve.every`` claims at all of them first, and ``curve.draw`` claims nothing.
        """
        if isinstance(workload, Mapping):
            raise ConfigError("measure.sweep takes one load: it compares clusters at each value of a field")
        field, several = curve.loads(workload, values)
        points = [
            Point(value, self._measurement(load, on, across_durability, instances, name))
            for (value, load), name in zip(several, curve.names(field, several), strict=True)
        ]
        self._asked.append([point.measurement for point in points])
        found = Curve(workload, field, points)
        self._session.curves.begin(found)
        return found

    def _measurement(
        self,
        workload: Workload | Mapping[str, Workload],
        on: Sequence[ClusterSpec],
        across_durability: bool,
        instances: int | None,
        called: str = "",
    ) -> Measurement:
        if why := self._session.settings.rules().run_over():
            raise Inconclusive(f"{why}; nothing was started")
        return self._session.measurement(
            workload,
            on,
            self._release,
            self._item,
            across_durability=across_durability,
            instances=instances,
            called=called,
        )
