"""How the connections of a workload behave: reconnecting, idle ones beside the load, think time, and TLS."""

from __future__ import annotations

from typing import Protocol

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.workloads import arguments


class HasConnections(Protocol):
    """A workload with these fields."""

    @property
    def reconnect(self) -> bool:
        """Whether each transaction has a new connection."""

    @property
    def idle(self) -> int:
        """Number of connections beside the load that stay idle."""

    @property
    def pause(self) -> float | None:
        """Mean seconds that each connection waits before a transaction; None for no pauses."""

    @property
    def tls(self) -> bool:
        """Whether the connections use TLS."""

    @property
    def rate(self) -> float | str | None:
        """As ``OpenLoop.rate``."""


def check(tool: str, given: HasConnections) -> None:
    """Raise ConfigError for a wrong value, and for pauses in an open loop. tool: begins the names of fields."""
    for name in ("reconnect", "tls"):
        arguments.truth(f"{tool} {name}", getattr(given, name))
    arguments.whole(f"{tool} idle", given.idle, 0)
    if given.pause is None:
        return
    arguments.round_seconds(f"{tool} pause", given.pause)
    if given.rate is not None:
        raise ConfigError(
            f"{tool} pause={given.pause!r} and rate={given.rate!r}: both decide when transactions start: use one"
        )


def words(given: HasConnections) -> str:
    """The end of a workload's name; empty if nothing is set."""
    parts = [f" pausing {given.pause:g} s"] if given.pause else []
    parts += [" reconnecting"] if given.reconnect else []
    parts += [f" beside {given.idle} idle"] if given.idle else []
    return "".join(parts) + (" with TLS" if given.tls else "")


def options(given: HasConnections) -> dict[str, object]:
    """The options of terminal.lua that differ from their defaults."""
    found: dict[str, object] = {"pause": given.pause or 0, "reconnect": given.reconnect, "idle": given.idle}
    return {name: value for name, value in found.items() if value}
