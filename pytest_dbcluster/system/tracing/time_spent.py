"""Where the time of a run went: its phases in groups, as one line."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from pytest_dbcluster.system.tracing.recorder import Recorder

# Group -> its phases. The time of a round outside its workload and its drain is overhead.
GROUPS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "rounds": ("workload", "drain", "event"),
        "overhead of rounds": ("round", "switch", "reset", "read counters"),
        "warm-ups": ("warm-up", "capacity"),
        "starts": ("start", "prepare data", "template", "form", "wait until ready", "wait until the servers answer",
                   "bootstrap", "join", "reference"),
        "data": ("load",),
        "downloads": ("fetch", "image"),
        "checks": ("check", "evidence"),
        "charts and page": ("chart", "page"),
        "stops": ("close",),
        "waits for other runs": ("wait for other runs",),
        "anchor": ("anchor",),
    }
)  # fmt: skip
OTHER = "other"
OF_ANY_RUN = ("charts and page", "stops", OTHER)  # groups of a run that started no server
LEAST = 0.005  # share of a group that the line names; smaller ones are part of OTHER


def by_group(recorded: Recorder) -> dict[str, float]:
    """The seconds of each group, with those outside all phases as OTHER; empty if no server was started.

    With workers of pytest-xdist it is the sum of their times.
    """
    found = {group: sum(recorded.seconds.get(phase, 0.0) for phase in phases) for group, phases in GROUPS.items()}
    found = {group: seconds for group, seconds in found.items() if seconds > 0}
    if not found.keys() - OF_ANY_RUN:
        return {}
    return {**found, OTHER: max(0.0, recorded.whole_seconds - sum(found.values()))}


def shares(seconds: Mapping[str, float]) -> dict[str, tuple[float, float]]:
    """The seconds and the share of each group, the largest first and OTHER last; small groups are part of OTHER."""
    whole = sum(seconds.values())
    shown = {group: value for group, value in seconds.items() if whole and group != OTHER and value >= LEAST * whole}
    ordered = dict(sorted(shown.items(), key=lambda item: -item[1]))
    rest = whole - sum(ordered.values())
    ordered |= {OTHER: rest} if whole and rest >= LEAST * whole else {}
    return {group: (value, value / whole) for group, value in ordered.items()}


def line(seconds: Mapping[str, float], workers: int = 0) -> str:
    """``where the time went: rounds 41 % (53 s), starts 20 % (26 s), other 5 % (6.2 s)``; empty without seconds."""
    parts = [
        f"{group} {part:.0%} ({_text(value)})".replace("%", " %") for group, (value, part) in shares(seconds).items()
    ]
    of_workers = f" of {workers} workers" if workers > 1 else ""
    return f"where the time{of_workers} went: {', '.join(parts)}" if parts else ""


def _text(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
