"""Ledger: what became of every transaction that a load tried, and what the conflicts between them cost."""

from __future__ import annotations

import dataclasses
import functools
from collections import Counter
from collections.abc import Iterable, Mapping

from pytest_dbcluster.rounds.histogram import Histogram


@dataclasses.dataclass(frozen=True)
class LedgerEntry:
    """The transactions of one type.

    attempts: how many transactions ended at their n-th attempt, by n. committed: acknowledged. rolled_back: as the
    transaction itself wants it (1 % of New-Order). failed: certainly not in the database; of an event that commits
    several times not the whole of it. unknown: the connection was lost while the COMMIT was under way, so nobody
    knows. aborted_seconds: spent in attempts that ended in an error, and waited after them. latencies: of transactions
    that ended as asked, in seconds with all their attempts; in an open loop from the intended start.
    """

    attempts: Mapping[int, int] = dataclasses.field(default_factory=dict)
    committed: int = 0
    rolled_back: int = 0
    failed: int = 0
    unknown: int = 0
    aborted_seconds: float = 0.0
    latencies: Histogram = dataclasses.field(default_factory=Histogram)

    def __add__(self, other: LedgerEntry) -> LedgerEntry:
        return LedgerEntry(
            dict(Counter(self.attempts) + Counter(other.attempts)),
            self.committed + other.committed,
            self.rolled_back + other.rolled_back,
            self.failed + other.failed,
            self.unknown + other.unknown,
            self.aborted_seconds + other.aborted_seconds,
            self.latencies + other.latencies,
        )

    @property
    def good(self) -> int:
        """Transactions that ended as asked: committed, or rolled back by design."""
        return self.committed + self.rolled_back

    @property
    def tried(self) -> int:
        """Attempts of all transactions together."""
        return sum(number * count for number, count in self.attempts.items())


@dataclasses.dataclass(frozen=True)
class Ledger:
    """The transactions of a run by type, and its errors by (number, node): (1213, "node2")."""

    entries: Mapping[str, LedgerEntry] = dataclasses.field(default_factory=dict)
    errors: Mapping[tuple[int, str], int] = dataclasses.field(default_factory=dict)

    def __add__(self, other: Ledger) -> Ledger:
        kinds = dict.fromkeys((*self.entries, *other.entries))
        entries = {
            kind: self.entries.get(kind, LedgerEntry()) + other.entries.get(kind, LedgerEntry()) for kind in kinds
        }
        return Ledger(entries, dict(Counter(self.errors) + Counter(other.errors)))

    @functools.cached_property
    def total(self) -> LedgerEntry:
        """All types together; added up once, because claims ask for it after every pair."""
        return sum_of(self.entries.values())

    @property
    def retries(self) -> int:
        """Attempts beyond the first one of each transaction."""
        total = self.total
        return total.tried - sum(total.attempts.values())

    @property
    def abort_share(self) -> float:
        """Attempts that ended in an error by all attempts; 0 without any."""
        total = self.total
        return (total.tried - total.good) / total.tried if total.tried else 0.0


def sum_of(entries: Iterable[LedgerEntry]) -> LedgerEntry:
    """Several types as one."""
    found = LedgerEntry()
    for one in entries:
        found += one
    return found
