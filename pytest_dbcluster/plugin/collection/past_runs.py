"""The seconds and verdicts of measuring tests in earlier runs, from the history of the run (``--db-history``)."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_dbcluster.claims.claim import Outcome
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.plugin import grouping
from pytest_dbcluster.reporting.documents.claim_id import SEPARATOR, key_of_test

if TYPE_CHECKING:
    from pytest_dbcluster.plugin.settings import Settings
    from pytest_dbcluster.reporting.history.entry import Entry

LAST = 5  # runs whose median is the expected time


@dataclasses.dataclass(frozen=True)
class Past:
    """One test in its earlier runs."""

    seconds: float
    """Median of the seconds in the last runs."""

    decided: bool
    """Whether the last run decided all its claims."""


class PastRuns:
    """The entries of a history that can be compared with a run: same machine, provisioner and profile."""

    def __init__(self, entries: Sequence[Entry] = ()) -> None:
        self._by_test: dict[tuple[str, str], dict[str, list[Entry]]] = {}
        for entry in sorted(entries, key=lambda entry: entry.time):
            test = entry.claim_id.partition(SEPARATOR)[0]
            self._by_test.setdefault((test, entry.release), {}).setdefault(entry.run, []).append(entry)

    @classmethod
    def read(cls, settings: Settings, file: Path | None) -> PastRuns:
        """The entries in a history file; none if it cannot be read, which the end of a run reports."""
        if file is None or not file.exists():
            return cls()
        from pytest_dbcluster.hosts import runs
        from pytest_dbcluster.reporting.documents.machine import machine
        from pytest_dbcluster.reporting.history import history_file
        from pytest_dbcluster.reporting.history.entry import machine_key

        try:
            entries = history_file.read(file).entries
        except ConfigError:
            return cls()
        own = (machine_key(machine(runs.directory())), settings.provisioner, settings.profile)
        return cls([entry for entry in entries if (entry.machine, entry.provisioner, entry.profile) == own])

    def of(self, item: Any, release: str) -> Past | None:
        """A test on this release in its earlier runs; None without earlier runs, or if their time is unknown."""
        named = [str(value) for value in grouping.params(item).values()]
        for (test, releases), by_run in self._by_test.items():
            on = releases.split(", ")
            if test == key_of_test(item.nodeid, *on) and (releases == release or set(on) & {*named} or len(on) > 1):
                return _past(list(by_run.values()))
        return None


def _past(runs: Sequence[Sequence[Entry]]) -> Past | None:
    times = [entries[0].seconds for entries in runs if entries[0].seconds is not None][-LAST:]
    if not times:
        return None
    decided = all(entry.outcome != Outcome.INCONCLUSIVE.value for entry in runs[-1])
    return Past(statistics.median(times), decided)
