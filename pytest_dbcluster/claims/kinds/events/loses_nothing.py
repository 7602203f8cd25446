"""``loses_nothing``: no repetition of an event loses or invents a transaction."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_dbcluster import formatting
from pytest_dbcluster.claims.claim import Claim, register
from pytest_dbcluster.claims.repetitions.proportion import ProportionKind
from pytest_dbcluster.claims.repetitions.samples import Repetitions


class LosesNothing(ProportionKind):
    """No repetition of the event loses an acknowledged transaction, or has one that nobody wrote.

    Fails at the first repetition that does. If none does, the message has a bound. It bounds the chance that a
    repetition loses a transaction, with 95 % confidence: after n repetitions it is below 1 - .05 ** (1 / n).
    """

    name = "loses_nothing"
    exception, an_exception = "loss", "a loss"

    def exceptions(self, own: Repetitions) -> Sequence[int]:
        """Repetitions with lost or invented transactions."""
        return [place for place, value in enumerate(own.values) if value > 0]

    def why(self, own: Repetitions, exceptions: Sequence[int]) -> str:
        """How many transactions are lost or invented."""
        if not exceptions:
            return "each acknowledged transaction is there"
        count = round(sum(own.values))
        return f"{formatting.quantity(count, 'transaction')} {'is' if count == 1 else 'are'} lost or invented"

    def call(self, claim: Claim, names: tuple[str, ...], metric: str, usual: str) -> str:
        """``galera3.loses_nothing()``."""
        return f"{names[0]}.{self.name}()"

    def says(self, claim: Claim, names: Sequence[str], metric: str, unit: str, *, true: bool = True) -> str:
        """``galera3 loses no acknowledged transaction``."""
        return f"{names[0]} loses {'no acknowledged transaction' if true else 'acknowledged transactions'}"

    def headline(self, ratio: str, names: Sequence[str], metric: str, unit: str, *, holds: bool, count: int) -> str:
        """``galera3 loses no acknowledged transaction in 6 of 6 repetitions``."""
        if holds:
            return f"{names[0]} loses no acknowledged transaction in {count} of {count} repetitions"
        return f"{names[0]} loses acknowledged transactions: {ratio}"


loses_nothing = register(LosesNothing())
