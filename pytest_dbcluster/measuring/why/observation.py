"""Observation: what the servers of one variant report about its rounds, as values."""

from __future__ import annotations

import dataclasses
import operator
import re
from collections.abc import Callable, Mapping

from pytest_dbcluster.measuring.why.stacks import Stacks

# What servers print between the words of a digest; a statement is shown without it.
SPACES = re.compile(r"(?<=[(.]) | (?=[,).])")


def statement_text(digest_text: str) -> str:
    """The text of a digest in lower case, without backticks and needless spaces; nearly equal for all servers.

    MySQL prints names in upper case that are keywords too, such as ``NAME``.
    """
    return SPACES.sub("", " ".join(digest_text.lower().replace("`", "").split()))


@dataclasses.dataclass(frozen=True)
class StatementCounts:
    """What the executions of one statement took: a sum, or the share of one operation of the workload."""

    calls: float = 0.0
    """The executions."""

    seconds: float = 0.0
    """Their latency in seconds."""

    lock_seconds: float = 0.0
    """Seconds of waiting for table locks."""

    rows_examined: float = 0.0
    """The rows that the server read."""

    rows_sent: float = 0.0
    """The rows that the client got."""

    temporary_tables: float = 0.0
    """The internal temporary tables."""

    disk_tables: float = 0.0
    """Those of them on disk."""

    def __add__(self, other: StatementCounts) -> StatementCounts:
        return self._each(operator.add, other)

    def __sub__(self, other: StatementCounts) -> StatementCounts:
        return self._each(operator.sub, other)

    def of_one(self, operations: int) -> StatementCounts:
        """The share of one operation. operations: the operations of the workload, of which there is at least 1."""
        return StatementCounts(*(value / operations for value in dataclasses.astuple(self)))

    def _each(self, does: Callable[[float, float], float], other: StatementCounts) -> StatementCounts:
        return StatementCounts(*map(does, dataclasses.astuple(self), dataclasses.astuple(other)))


@dataclasses.dataclass(frozen=True)
class ServerCounts:
    """Counts of all servers of a cluster: since their start, or in one round."""

    statements: Mapping[str, StatementCounts]
    """By statement (``statement_text``)."""

    waits: Mapping[str, float]
    """By event, the seconds of waiting."""

    status: Mapping[str, float]
    """By status variable, its value."""

    def since(self, before: ServerCounts) -> ServerCounts:
        """The growth since an earlier reading. A status variable that fell is left out, since it does not count."""
        none, known = StatementCounts(), before.status
        status = {name: now - known[name] for name, now in self.status.items() if name in known and now >= known[name]}
        grown = {text: counts - before.statements.get(text, none) for text, counts in self.statements.items()}
        return ServerCounts(
            {text: counts for text, counts in grown.items() if counts.calls > 0},
            {event: seconds - before.waits.get(event, 0.0) for event, seconds in self.waits.items()},
            status,
        )


@dataclasses.dataclass(frozen=True)
class ObservedRound:
    """One extra round of a variant."""

    operations: int
    """The successful operations of the workload."""

    counts: ServerCounts
    """What the servers counted in it."""


@dataclasses.dataclass(frozen=True)
class PlanStep:
    """One row of EXPLAIN: how a statement reads one table."""

    table: str
    """The table, as the statement names it; empty for none."""

    access: str
    """The type of access, such as ``ref`` or ``ALL``."""

    key: str
    """The index that is used; empty for none."""

    rows: int
    """The rows that the optimizer expects."""

    extra: str
    """The column Extra."""


@dataclasses.dataclass(frozen=True)
class ObservedVariant:
    """The extra rounds of one variant."""

    name: str
    """Its short name."""

    rounds: tuple[ObservedRound, ...]
    """Its rounds, of which there is at least one."""

    plans: Mapping[str, tuple[PlanStep, ...]]
    """By statement, its plan; without the statements that EXPLAIN does not accept."""

    stacks: Stacks = dataclasses.field(default_factory=dict)
    """The CPU seconds per operation by functions; empty if they are not known."""
