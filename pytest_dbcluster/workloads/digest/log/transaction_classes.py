"""Classes of transactions: those with the same sequence of statements. Each keeps samples, in constant memory.

A sequence that repeats itself is one *run* with a number of copies. So a loop of an application is one class, whatever
the number of its turns.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence

from pytest_dbcluster.workloads.digest.log.log_files import Figures
from pytest_dbcluster.workloads.digest.log.statement_shapes import Literals

Unit = tuple[int, ...]  # numbers of the shapes of one turn of a loop
LONGEST_UNIT = 12  # statements of one turn
MOST_CLASSES = 5000
MOST_KNOWN = 50_000  # sequences whose runs are kept
MOST_SEQUENCES = 2_000_000  # statements of all of these sequences
MOST_SAMPLES, FEWEST_SAMPLES = 4000, 100
VALUES = 60_000  # values of all samples of a class, as a goal
ALL_VALUES = 3_000_000  # values of all samples of all classes, as a goal
MOST_HELD = 4_000_000  # statements and values that samples have; rare classes are dropped above
LONG_TEXT = 300  # characters of a literal that a sample keeps


@dataclasses.dataclass
class TransactionSample:
    """One transaction of a log."""

    time: int
    """When it began, in seconds since 1970."""

    number: int
    """How many transactions of the log ended before it."""

    copies: tuple[int, ...]
    """The number of copies of each run."""

    literals: list[Literals]
    """The values of each statement, copies one after the other."""

    figures: list[Figures]
    """What the log tells of each statement."""

    @property
    def size(self) -> int:
        """The number of statements and values."""
        return len(self.literals) + _count(self.literals)


@dataclasses.dataclass
class TransactionClass:
    """Transactions with the same runs."""

    schema: str
    """The database."""

    ending: str
    """``COMMIT`` or ``ROLLBACK``; empty for a statement that commits by itself."""

    runs: tuple[Unit, ...]
    """Its runs, each with the shapes of one copy."""

    most_samples: int
    """Number of samples that it keeps at most."""

    count: int = 0
    """Number of transactions."""

    seconds: float = 0.0
    """Time of all its statements."""

    sent: int = 0
    """Rows that the clients got; negative if unknown."""

    examined: int = 0
    """Rows that the server read; negative if unknown."""

    affected: int = 0
    """Rows that it changed; negative if unknown."""

    statements: int = 0
    """Number of statements of all its transactions, without BEGIN and COMMIT."""

    controls: int = 0
    """Number of their BEGIN, COMMIT and ROLLBACK statements."""

    samples: list[TransactionSample] = dataclasses.field(default_factory=list)
    """Some of the transactions, drawn from all."""

    @property
    def shapes(self) -> list[int]:
        """The shapes of its statements, those of a run once."""
        return [shape for unit in self.runs for shape in unit]


def runs_of(sequence: Sequence[int]) -> tuple[tuple[Unit, ...], tuple[int, ...]]:
    """The runs of a sequence, and the number of copies of each."""
    units: list[Unit] = []
    copies: list[int] = []
    at, size = 0, len(sequence)
    while at < size:
        unit, count = tuple(sequence[at : at + 1]), 1
        for length in range(1, min(LONGEST_UNIT, (size - at) // 2) + 1):
            tried, turns = tuple(sequence[at : at + length]), 1
            while tuple(sequence[at + turns * length : at + (turns + 1) * length]) == tried:
                turns += 1
            if turns > 1 and turns * length > count * len(unit):
                unit, count = tried, turns
        units.append(unit)
        copies.append(count)
        at += count * len(unit)
    return tuple(units), tuple(copies)


class Classes:
    """All classes of a log."""

    def __init__(self) -> None:
        self.found: dict[tuple[str, str, tuple[Unit, ...]], TransactionClass] = {}
        self.rare = 0
        """Transactions of classes that were dropped since they are rare."""

        self.rare_seconds = 0.0
        self._known: dict[Unit, tuple[tuple[Unit, ...], tuple[int, ...]]] = {}
        self._random = random.Random(1)
        self._values = self._held = self._sequences = self._count = 0

    def add(
        self,
        schema: str,
        ending: str,
        sequence: Unit,
        literals: list[Literals],
        figures: Sequence[Figures],
        time: int,
        control: Sequence[float],
    ) -> None:
        """Count one transaction. control: the seconds of its BEGIN and COMMIT."""
        known = self._known.get(sequence)
        if known is None:
            if len(self._known) >= MOST_KNOWN or self._sequences >= MOST_SEQUENCES:
                self._known.clear()
                self._sequences = 0
            known = self._known[sequence] = runs_of(sequence)
            self._sequences += len(sequence)
        runs, copies = known
        one = self.found.get((schema, ending, runs)) or self._make(schema, ending, runs, literals)
        one.count += 1
        one.statements += len(sequence)
        one.seconds += sum(control)
        one.controls += len(control)
        for seconds, sent, examined, affected in figures:
            one.seconds += seconds
            one.sent += sent
            one.examined += examined
            one.affected += affected
        if len(one.samples) < one.most_samples:
            one.samples.append(TransactionSample(time, self._count, copies, _short(literals), list(figures)))
            self._held += one.samples[-1].size
        elif (place := int(self._random.random() * one.count)) < one.most_samples:
            self._held -= one.samples[place].size
            one.samples[place] = TransactionSample(time, self._count, copies, _short(literals), list(figures))
            self._held += one.samples[place].size
        self._count += 1

    def _make(self, schema: str, ending: str, runs: tuple[Unit, ...], literals: list[Literals]) -> TransactionClass:
        if len(self.found) >= MOST_CLASSES or self._held >= MOST_HELD:
            self._drop_rare()
        values = 1 + _count(literals)
        most = min(MOST_SAMPLES, max(FEWEST_SAMPLES, VALUES // values))
        if self._values > ALL_VALUES:
            most = min(most, FEWEST_SAMPLES)
        self._values += most * values
        one = TransactionClass(schema, ending, runs, most)
        self.found[schema, ending, runs] = one
        return one

    def _drop_rare(self) -> None:
        """Drop the rarer half of all classes."""
        half = sorted(self.found.items(), key=lambda item: (item[1].count, item[1].seconds))[: len(self.found) // 2]
        for key, one in half:
            self.rare += one.count
            self.rare_seconds += one.seconds
            self._values -= one.most_samples * (1 + _count(one.samples[0].literals))
            self._held -= sum(sample.size for sample in one.samples)
            del self.found[key]


def _count(literals: list[Literals]) -> int:
    """The number of values; a list has as many as its length."""
    return sum(1 if isinstance(value, str) else len(value) for each in literals for value in each)


def _short(literals: list[Literals]) -> list[Literals]:
    """The values, with ``'`` and the length in place of long texts."""
    if all(len(value) <= LONG_TEXT for each in literals for value in each if isinstance(value, str)):
        return literals
    return [
        tuple(f"'\0{len(value) - 2}" if isinstance(value, str) and len(value) > LONG_TEXT else value for value in each)
        for each in literals
    ]
