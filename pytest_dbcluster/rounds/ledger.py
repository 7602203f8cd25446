"""Ledger: the outcome of every transaction that a workload tried, and the cost of conflicts."""

from __future__ import annotations

import dataclasses
import functools
from collections import Counter
from collections.abc import Iterable, Mapping

from pytest_dbcluster.rounds.histogram import Histogram


@dataclasses.dataclass(frozen=True)
class LedgerEntry:
    """The transactions of one type."""

    attempts: Mapping[int, int] = dataclasses.field(default_factory=dict)
    """N -> the number of transactions that ended at their attempt N, 1-based."""

    committed: int = 0
    """Commits that a server acknowledged."""

    rolled_back: int = 0
    """Rollbacks that the transaction itself asks for (1 % of New-Order)."""

    failed: int = 0
    """Transactions that are certainly not in the database. An event that commits several times may be there in part."""

    unknown: int = 0
    """Transactions that may or may not be committed. The connection was lost during COMMIT, or the server lost its
    peers then. The workload does not try them again.
    """

    aborted_seconds: float = 0.0
    """Time of attempts that ended in an error, with the waits after them."""

    latencies: Histogram = dataclasses.field(default_factory=Histogram)
    """Latencies of the ``good`` transactions, with all their attempts; in an open loop from the intended start."""

    unknown_there: int = 0
    """Unknown transactions that the workload looked up after the run and found in the database."""

    unknown_gone: int = 0
    """Unknown transactions that the workload looked up after the run and did not find."""

    def __add__(self, other: LedgerEntry) -> LedgerEntry:
        return LedgerEntry(
            dict(Counter(self.attempts) + Counter(other.attempts)),
            self.committed + other.committed,
            self.rolled_back + other.rolled_back,
            self.failed + other.failed,
            self.unknown + other.unknown,
            self.aborted_seconds + other.aborted_seconds,
            self.latencies + other.latencies,
            self.unknown_there + other.unknown_there,
            self.unknown_gone + other.unknown_gone,
        )

    @property
    def good(self) -> int:
        """Transactions that ended as intended: committed, or rolled back by design."""
        return self.committed + self.rolled_back

    @property
    def tried(self) -> int:
        """The number of attempts of all transactions."""
        return sum(number * count for number, count in self.attempts.items())


@dataclasses.dataclass(frozen=True)
class Ledger:
    """The transactions and the errors of a run."""

    entries: Mapping[str, LedgerEntry] = dataclasses.field(default_factory=dict)
    """Transactions by type."""

    errors: Mapping[tuple[int, str], int] = dataclasses.field(default_factory=dict)
    """Number of errors by (error code, node), such as ``(1213, "node2")``."""

    def __add__(self, other: Ledger) -> Ledger:
        kinds = dict.fromkeys((*self.entries, *other.entries))
        entries = {
            kind: self.entries.get(kind, LedgerEntry()) + other.entries.get(kind, LedgerEntry()) for kind in kinds
        }
        return Ledger(entries, dict(Counter(self.errors) + Counter(other.errors)))

    @functools.cached_property
    def total(self) -> LedgerEntry:
        """The sum of all types; computed once, because claims ask for it after every pair."""
        return sum_of(self.entries.values())

    @property
    def retries(self) -> int:
        """Attempts after the first of each transaction."""
        total = self.total
        return total.tried - sum(total.attempts.values())

    @property
    def abort_share(self) -> float:
        """The share of attempts that ended in an error, 0 to 1; 0 without attempts."""
        total = self.total
        return (total.tried - total.good) / total.tried if total.tried else 0.0


def sum_of(entries: Iterable[LedgerEntry]) -> LedgerEntry:
    """The sum of these entries."""
    total = LedgerEntry()
    for entry in entries:
        total += entry
    return total
