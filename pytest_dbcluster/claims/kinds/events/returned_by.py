"""``returned_by``: after each event the node gets what it missed in one way, such as an IST."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_dbcluster.claims.claim import Claim, register
from pytest_dbcluster.claims.repetitions.proportion import ProportionKind
from pytest_dbcluster.claims.repetitions.samples import Repetitions


class ReturnedBy(ProportionKind):
    """After each event the node comes back in this way, such as ``IST``, and in no other.

    Fails at the first repetition in which it comes back in another way, and names the node. If there is none, the
    message bounds the chance of another way, with 95 % confidence: after n repetitions it is below 1 - .05 ** (1 / n).
    """

    name = "returned_by"
    exception, an_exception = "other way back", "another way back"

    def exceptions(self, own: Repetitions) -> Sequence[int]:
        """Repetitions in which the node came back in another way."""
        return [place for place, value in enumerate(own.values) if not value]

    def why(self, own: Repetitions, exceptions: Sequence[int]) -> str:
        """The repetitions in which the node came back in another way, each with the node and the way."""
        if not exceptions:
            return "each node came back in this way"
        return "; ".join(f"repetition {place + 1}: {own.texts[place]}" for place in exceptions)

    def call(self, claim: Claim, names: tuple[str, ...], metric: str, usual: str) -> str:
        """``galera3.returned_by("IST")``."""
        return f'{names[0]}.{self.name}("{_way(metric)}")'

    def says(self, claim: Claim, names: Sequence[str], metric: str, unit: str, *, true: bool = True) -> str:
        """``the node of galera3 returns by IST``."""
        return f"the node of {names[0]} {'returns' if true else 'does not always return'} by {_way(metric)}"

    def headline(self, ratio: str, names: Sequence[str], metric: str, unit: str, *, holds: bool, count: int) -> str:
        """``the node of galera3 returns by IST in 6 of 6 repetitions``."""
        if holds:
            return f"the node of {names[0]} returns by {_way(metric)} in {count} of {count} repetitions"
        return f"the node of {names[0]} does not always return by {_way(metric)}: {ratio}"


def _way(metric: str) -> str:
    """``IST`` of the metric ``returned_by:IST``."""
    return metric.partition(":")[2]


returned_by = register(ReturnedBy())
