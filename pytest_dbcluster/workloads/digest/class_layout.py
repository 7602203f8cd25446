"""The values of a class by their place: run, statement of its unit, parameter; and rows of them to compare.

A row is one copy of a run in one sample. Runs whose number of copies is always the same and small are written out, so
that their copies may differ.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

from pytest_dbcluster.workloads.digest.log.log_files import Figures
from pytest_dbcluster.workloads.digest.log.statement_shapes import Literals
from pytest_dbcluster.workloads.digest.log.transaction_classes import TransactionClass, Unit

WRITTEN_OUT = 8  # statements of a run with a constant number of copies

Value = str | tuple[str, ...]


class ValuePlace(NamedTuple):
    """Where a parameter stands in a class."""

    run: int
    """The number of the run, from 0."""

    statement: int
    """In the unit of the run."""

    parameter: int
    """In the statement."""


@dataclasses.dataclass
class RunLayout:
    """One run, with a row for each copy in each sample."""

    unit: Unit
    """The shapes of one copy."""

    counts: list[int]
    """The number of copies in each sample."""

    owners: list[int]
    """The sample of each row."""

    numbers: list[int]
    """The number of each row's copy, from 0."""

    values: list[list[Literals]]
    """For each statement of the unit: its values in each row."""

    figures: list[list[Figures]]
    """For each statement of the unit: what the log tells in each row."""

    @property
    def single(self) -> bool:
        """Whether each transaction has it once."""
        return all(count == 1 for count in self.counts)


@dataclasses.dataclass
class ClassLayout:
    """A class with its runs."""

    of: TransactionClass
    """The class."""

    runs: list[RunLayout]
    """Its runs, in order."""

    times: list[int]
    """Seconds since 1970 of each sample."""

    numbers: list[int]
    """How many transactions of the log ended before each sample."""

    def column(self, place: ValuePlace) -> list[Value]:
        """The values of a parameter, one for each row of its run."""
        return [values[place.parameter] for values in self.runs[place.run].values[place.statement]]

    def places(self) -> list[ValuePlace]:
        """All parameters, in order."""
        return [
            ValuePlace(number, statement, parameter)
            for number, run in enumerate(self.runs)
            for statement, rows in enumerate(run.values)
            for parameter in range(len(rows[0]) if rows else 0)
        ]


def layout(one: TransactionClass) -> ClassLayout:
    """The layout of a class."""
    units, written_out = _units(one)
    runs = [RunLayout(unit, [], [], [], [[] for _ in unit], [[] for _ in unit]) for unit in units]
    for number, sample in enumerate(one.samples):
        copies: list[int] = []
        for run, count in enumerate(sample.copies):
            copies += [1] * (count * len(one.runs[run])) if written_out[run] else [count]
        at = 0
        for run_layout, count in zip(runs, copies, strict=True):
            run_layout.counts.append(count)
            for copy in range(count):
                run_layout.owners.append(number)
                run_layout.numbers.append(copy)
                for statement in range(len(run_layout.unit)):
                    run_layout.values[statement].append(sample.literals[at])
                    run_layout.figures[statement].append(sample.figures[at])
                    at += 1
    return ClassLayout(one, runs, [sample.time for sample in one.samples], [sample.number for sample in one.samples])


def _units(one: TransactionClass) -> tuple[list[Unit], list[bool]]:
    """The units of the runs, and which runs of the class are written out."""
    units: list[Unit] = []
    written_out = []
    for run, unit in enumerate(one.runs):
        counts = {sample.copies[run] for sample in one.samples}
        constant = len(counts) == 1 and max(counts) * len(unit) <= WRITTEN_OUT
        written_out.append(constant)
        units += [(shape,) for shape in unit] * max(counts) if constant else [unit]
    return units, written_out
