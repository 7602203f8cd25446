"""LoadTimes: when the transactions of a load committed, and when it got errors."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence


@dataclasses.dataclass(frozen=True)
class TimedErrors:
    """Equal errors of a load within a tenth of a second."""

    seconds: float
    """The begin of the tenth, in seconds since the begin of the load; in an Outage since the event."""

    number: int
    """The error number of the server or the client; 0 on a connection that was lost before."""

    node: str
    """The name of the node; empty while connecting."""

    committing: bool
    """Whether a COMMIT was on its way."""

    times: int
    """How often it came."""


@dataclasses.dataclass(frozen=True)
class LoadTimes:
    """The commits and errors of a load that ran through an event."""

    began: float
    """The begin of the load, in seconds since 1970 (UTC) by the clock of this machine."""

    seconds: float
    """How long it ran."""

    commits: Mapping[str, Sequence[int]]
    """By type of transaction, the milliseconds from the begin to each commit, in rising order."""

    reading: frozenset[str] = frozenset()
    """The types of transactions that only read."""

    errors: tuple[TimedErrors, ...] = ()
    """The errors, in the order of their times."""

    def moments(self, *, reading: bool) -> list[float]:
        """The seconds from the begin to each commit of the types that only read, or of all other types."""
        found = [moment for kind, many in self.commits.items() if (kind in self.reading) is reading for moment in many]
        return [moment / 1000 for moment in sorted(found)]
