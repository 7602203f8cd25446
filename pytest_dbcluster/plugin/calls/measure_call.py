"""MeasureCall: a call of the fixture ``measure`` as a value, and the checks of its arguments."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.measuring import curve
from pytest_dbcluster.measuring.capacity.capacity_series import AtRate
from pytest_dbcluster.rounds.capacity.objective import Objective
from pytest_dbcluster.spec import ClusterSpec, ReleaseName

if TYPE_CHECKING:
    from pytest_dbcluster.clusters.events.event import Event
    from pytest_dbcluster.testbed.options.levels import Levels
    from pytest_dbcluster.workloads.workload import Workload


@dataclasses.dataclass(frozen=True, kw_only=True)
class MeasureCall:
    """A call of ``measure``, or one point of a sweep."""

    workload: Workload | Mapping[str, Workload]
    """One workload, or several ones by name."""

    on: Sequence[ClusterSpec]
    """The specs; each workload runs on each of them."""

    release: ReleaseName
    """The release of specs that name none."""

    item: Any
    """The test, as pytest has it."""

    across_durability: bool = False
    """As in ``Measure.__call__``."""

    instances: int | None = None
    """As in ``Measure.__call__``."""

    called: str = ""
    """Another name for the workload; empty for its own."""

    number: int = 0
    """The number of the call in its test, from 0."""

    swept: tuple[str, object] | None = None
    """Field and value of a point of a sweep; None without a sweep."""

    event: Event | Mapping[str, Event] | None = None
    """The event of each repetition, or several ones by name; None for rounds without an event."""

    times: int = 0
    """The repetitions of an event on each variant."""

    options: Levels = dataclasses.field(default_factory=dict)
    """The options of ``measure.factorial`` with their levels; empty for other calls."""

    parts: int = 1
    """The claims that share alpha: options and named pairs of ``measure.factorial``."""

    race: bool = False
    """Whether the variants race."""

    capacity: Objective | AtRate | None = None
    """The objective of a measurement of capacity, or what ``meets`` asks of the single spec; None for other calls."""

    @property
    def events(self) -> Sequence[Event]:
        """The event of each variant, for several events as often as there are specs; empty without one."""
        if self.event is None:
            return ()
        each = list(self.event.values()) if isinstance(self.event, Mapping) else [self.event]
        return [event for event in each for _ in self.on]


def swept_releases(given: Mapping[str, object]) -> list[ReleaseName]:
    """The releases of ``measure.sweep(load, on=[...], release=(...))``.

    Raises ConfigError for fewer than two, for one that is there twice, for several products, and for another field.
    """
    values = given[curve.RELEASE]
    if len(given) > 1 or not isinstance(values, list | tuple) or not values:
        raise ConfigError(
            f'measure.sweep(load, on=[...], release=("mariadb:10.11", "mariadb:11.8")) accepts a list of releases and '
            f"no other field, got {', '.join(f'{name}={value!r}' for name, value in given.items())}"
        )
    found = [value if isinstance(value, ReleaseName) else ReleaseName.parse(value) for value in values]
    shown = list(map(str, found))
    if twice := next((name for name in shown if shown.count(name) > 1), ""):
        raise ConfigError(f"measure.sweep(..., release=...): {twice} is there twice")
    if len({name.product for name in found}) > 1 or len(found) < 2:
        raise ConfigError(
            f"measure.sweep(..., release=...) accepts two or more releases of one product, got {', '.join(shown)}"
        )
    return found


def check_event(event: object) -> None:
    """Raise ConfigError for anything but an event, or events by name."""
    from pytest_dbcluster.clusters.events.event import Event

    events = list(event.values()) if isinstance(event, Mapping) else [event]
    named = all(isinstance(name, str) and name for name in event) if isinstance(event, Mapping) else True
    if not events or not named or not all(isinstance(one, Event) for one in events):
        raise ConfigError(
            'measure.event(workload, event, on=spec) accepts an event, such as Kill("other"), or events by name: '
            f'{{"kill": Kill("other"), "none": Nothing()}}; got {event!r}'
        )


def named_loads(workload: Workload | Mapping[str, Workload], event: object) -> list[Workload]:
    """The workloads of ``measure.event``. Raises ConfigError for several ones with several events."""
    if not isinstance(workload, Mapping):
        return [workload]
    if isinstance(event, Mapping):
        raise ConfigError(
            "measure.event accepts several workloads or several events, not both: choose one workload, or one event"
        )
    return list(workload.values())
