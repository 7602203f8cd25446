"""Lent speed: rounds that ran after the hosts had used up a speed that they do not have for long decide no claim."""

from __future__ import annotations

from pytest_dbcluster.measuring.round_source import RoundSource


class LentSpeed:
    """Up to which pair the hosts of a measurement had the speed that they were lent.

    reason: why they have it no more; empty while they have. pairs: those that were drawn before.
    """

    def __init__(self, source: RoundSource) -> None:
        self._source = source
        self.reason = ""
        self.pairs = 0

    def look(self, pairs: int) -> None:
        """Ask the hosts. pairs: those that were drawn before the block that has just ended, or is about to begin."""
        if not self.reason and (reason := self._source.lent()):
            self.reason, self.pairs = reason, pairs

    def drop(self) -> None:
        """All pairs so far are dropped."""
        self.pairs = 0
