"""What could be seen of a cluster through an event: the state of each node, and where the proxy leads the writes."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence

# The states of a node. ``not ready``: the server answers, and HAProxy would lead nobody to it. ``no answer``: it runs.
WRITES, READS, UNREADY, SILENT, DOWN = "writes", "reads", "not ready", "no answer", "down"
ACCEPTING = (WRITES, READS)
NEW_WRITER, ROUTED, REJOIN_BEGUN, SYNCED = "new writer", "routed", "rejoin begun", "synced"  # marks
OF_WRITER = (NEW_WRITER, ROUTED)


@dataclasses.dataclass(frozen=True)
class StateChange:
    """A change that was seen. The first one of a list is what was seen first, before the event."""

    seconds: float
    """When it was seen, in seconds since the event."""

    to: str
    """The new state, or the name of the node that gets the writes; empty for none."""


def marks(
    nodes: Mapping[str, Sequence[StateChange]],
    routes: Sequence[StateChange],
    *,
    primary: str = "",
    lost: str = "",
    until: float = math.inf,
) -> dict[str, float]:
    """The seconds of the steps that the states show.

    - ``new writer``: another node than the primary accepts writes.
    - ``routed``: the proxy leads the writes to another node than before the event.
    - ``rejoin begun``: the server of the node that was lost runs again.
    - ``synced``: this node accepts reads or writes again.

    nodes: the changes of each node. primary: the only node that accepted writes; empty if several did. lost: the node
    that the event happens to; empty for none. until: what ends or moves later was not ended or moved by the event.
    """
    found = {}
    if primary:
        others = [change for name, changes in nodes.items() if name != primary for change in changes]
        found[NEW_WRITER] = _first(change for change in others if change.to == WRITES and change.seconds <= until)
    if before := _at_event(routes, ""):
        moved = [change for change in routes if change.to not in ("", before)]
        found[ROUTED] = _first(change for change in moved if change.seconds <= until)
    own = _since_down(nodes.get(lost, ()), until)
    found[REJOIN_BEGUN] = _first(change for change in own if change.to != DOWN)
    found[SYNCED] = _first(change for change in own if change.to in ACCEPTING)
    return {name: seconds for name, seconds in found.items() if seconds is not None}


def _since_down(changes: Sequence[StateChange], until: float) -> Sequence[StateChange]:
    """The changes from the end of the server on, which may be before the event; none without an end."""
    before = [number for number, change in enumerate(changes) if change.seconds <= 0]
    for number, change in enumerate(changes):
        if change.to == DOWN and number >= max(before, default=0) and change.seconds <= until:
            return changes[number:]
    return ()


def _at_event(changes: Sequence[StateChange], unknown: str) -> str:
    """The last known state before the event; empty if there is none."""
    return next((change.to for change in reversed(changes) if change.seconds <= 0 and change.to != unknown), "")


def _first(changes: Iterable[StateChange]) -> float | None:
    """The seconds of the first change after the event; None without any."""
    return min((change.seconds for change in changes if change.seconds > 0), default=None)
