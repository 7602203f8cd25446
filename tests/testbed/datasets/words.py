"""A load whose table is a data set: made in one statement, at any scale, or with an error in the middle."""

from __future__ import annotations

import dataclasses

from pytest_dbcluster.rounds.round import RunResult
from tests.support.fakes import Idle

COUNT = 1000


@dataclasses.dataclass(frozen=True)
class Words(Idle):
    """A table of so many rows. ``done`` is what was asked of it; ``clients`` makes no difference to the table."""

    rows: int = COUNT
    clients: int = 1
    error: BaseException | None = None
    wrong: tuple[str, ...] = ()
    done: list[str] = dataclasses.field(default_factory=list, compare=False)
    writes: bool = False
    tables: tuple[str, ...] = ("kept.words",)

    @property
    def data_set(self):
        """Its scale."""
        return f"{self.rows} words"

    def populate(self, setting):
        """Make the table, or raise ``error`` in the middle of it."""
        self.done.append("populate")
        node = setting.cluster.writers[0]
        node.query("CREATE DATABASE kept")
        node.query("CREATE TABLE kept.words (id INT PRIMARY KEY, word VARCHAR(40))")
        setting.progress("filling in the words")
        if self.error:
            raise self.error
        values = ",".join(f"({n}, 'word {n}')" for n in range(self.rows))
        node.query(f"INSERT INTO kept.words VALUES {values}")

    def prepare(self, setting):
        """The table is there."""
        self.done.append("prepare")
        assert setting.cluster.writers[0].query("SELECT COUNT(*) FROM kept.words") == [(self.rows,)]

    def violations(self, cluster):
        """What ``wrong`` says."""
        return list(self.wrong)

    def run(self, setting):
        """Takes no time."""
        return RunResult(0.001, 1)
