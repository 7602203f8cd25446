"""Compared servers: what the servers of two variants did differently, as values that a record holds."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from pytest_dbcluster.measuring.why.observation import PlanStep, StatementCounts
from pytest_dbcluster.measuring.why.stacks import ComparedStack

MANY_ROWS = 2.0  # a plan matters if the rows examined differ by this factor
ORDER = 10.0  # expected rows that differ by less are the same plan


@dataclasses.dataclass(frozen=True)
class ComparedStatement:
    """One statement on both variants, per operation of the workload."""

    statement: str
    """Its text, with ``?`` for values."""

    baseline: StatementCounts
    """What it took on the baseline."""

    candidate: StatementCounts
    """What it took on the candidate."""

    baseline_plan: tuple[PlanStep, ...] = ()
    """Its plan on the baseline; empty if it is not known."""

    candidate_plan: tuple[PlanStep, ...] = ()
    """Its plan on the candidate."""

    moved: bool = False
    """Whether its latency moved."""

    @property
    def change(self) -> float:
        """The candidate's seconds per operation minus the baseline's."""
        return self.candidate.seconds - self.baseline.seconds

    @property
    def has_other_plan(self) -> bool:
        """Whether both plans are known and differ."""
        return bool(self.baseline_plan and self.candidate_plan) and plans_differ(
            self.baseline_plan, self.candidate_plan
        )

    @property
    def matters(self) -> bool:
        """Whether its other plan shows in its latency or in the rows that it examines."""
        few, many = sorted((self.baseline.rows_examined, self.candidate.rows_examined))
        return self.has_other_plan and (self.moved or many > MANY_ROWS * few)


@dataclasses.dataclass(frozen=True)
class ComparedFigure:
    """A wait in seconds, or a status variable, per operation of the workload."""

    name: str
    """The event or the variable."""

    baseline: float
    """The mean of the baseline's rounds."""

    candidate: float
    """The mean of the candidate's rounds."""

    moved: bool = False
    """Whether it moved."""

    @property
    def change(self) -> float:
        """The candidate's value minus the baseline's."""
        return self.candidate - self.baseline


@dataclasses.dataclass(frozen=True)
class ServerComparison:
    """What the servers of candidate and baseline did in rounds after the verdict, which no verdict counts."""

    baseline: str
    """The name of the baseline."""

    candidate: str
    """The name of the candidate."""

    rounds: int = 0
    """The rounds of each variant."""

    reason: str = ""
    """Why there is no comparison; empty if there is one."""

    remarks: tuple[str, ...] = ()
    """How these rounds differ from those of the verdict."""

    largest: tuple[str, ...] = ()
    """The largest differences, at most three, each as a sentence."""

    statements: tuple[ComparedStatement, ...] = ()
    """The statements, those whose latency differs most first."""

    waits: tuple[ComparedFigure, ...] = ()
    """The waits by event, in seconds; the largest difference first."""

    status: tuple[ComparedFigure, ...] = ()
    """The status variables that moved; the largest ratio first."""

    stacks: tuple[ComparedStack, ...] = ()
    """The functions that took CPU time, with their callers; in the order of their names."""

    cpu: str = ""
    """A sentence about their CPU time; empty if there are no stacks."""

    no_stacks: str = ""
    """Why there are no stacks; empty if there are some."""

    @property
    def lines(self) -> list[str]:
        """The largest differences as lines."""
        if self.reason:
            return [f"what differs on the servers is not known: {self.reason}"]
        rounds = f"{self.rounds} extra {'round' if self.rounds == 1 else 'rounds'} of each"
        how = "; ".join((rounds, *self.remarks))
        title = f"what differs most on the servers, {self.baseline} v {self.candidate} ({how})"
        cpu = [self.cpu] if self.cpu else []
        if not self.largest:
            return [f"{title}: no statement, plan, wait or status moved", *cpu]
        return [f"{title}:", *(f"{number}. {text}" for number, text in enumerate(self.largest, 1)), *cpu]


def plans_differ(one: Sequence[PlanStep], other: Sequence[PlanStep]) -> bool:
    """Whether two plans differ: in tables, access, keys, Extra, or the order of magnitude of the rows."""
    return len(one) != len(other) or any(map(steps_differ, one, other))


def steps_differ(one: PlanStep, other: PlanStep) -> bool:
    """Whether two steps of plans differ, as in ``plans_differ``."""
    few, many = sorted((one.rows, other.rows))
    same = (one.table, one.access, one.key) == (other.table, other.access, other.key)
    return not same or many >= ORDER * max(1, few) or _parts(one.extra) != _parts(other.extra)


def _parts(extra: str) -> set[str]:
    return {part.strip() for part in extra.split(";") if part.strip()}
