"""A busy machine: other programs take cores while rounds run, so rounds are slower and their times vary more."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Iterable, Mapping, Sequence

from pytest_dbcluster.claims.claim import Outcome, Verdict
from pytest_dbcluster.formatting import quantity
from pytest_dbcluster.rounds.round import Round

OTHERS = "cpu_others"  # sample: usable cores that other programs took
USABLE = "usable_cores"  # sample: the number of cores that this process may use
SHARE = 0.1  # the machine is busy from this share of the usable cores
WHAT_HELPS = "end the other programs, or measure later"


def busy(others: float, usable: float) -> str:
    """Say how many of the usable cores other programs take; empty below SHARE of them."""
    return f"other programs take {others:.1f} of {quantity(usable, 'core')}" if others >= SHARE * usable else ""


@dataclasses.dataclass(frozen=True)
class OthersLoad:
    """The cores of this machine that other programs took."""

    usable: float
    """The number of cores that this process may use."""

    measured: float | None = None
    """Cores that other programs took in the median round; None if not known."""

    before: float | None = None
    """Cores that other programs took before the first round of the run."""

    load: float | None = None
    """The machine's load average of one minute before the first round."""

    @property
    def busy(self) -> str:
        """Say that the machine was busy during the rounds, or before them if no round knows; empty otherwise."""
        taken = self.before if self.measured is None else self.measured
        return busy(taken or 0.0, self.usable)

    def __str__(self) -> str:
        parts = []
        if self.measured is not None:
            parts.append(f"{self.measured:.1f} in the median round")
        if self.before is not None:
            parts.append(f"{self.before:.1f} before the first round")
        if self.load is not None:
            parts.append(f"load average {self.load:.1f}")
        return f"{', '.join(parts)}; {quantity(self.usable, 'usable core')}"


def others_load(rounds: Mapping[str, Sequence[Round]], before: OthersLoad | None) -> OthersLoad | None:
    """The cores that other programs took in these rounds and before them.

    None if the servers of the run are not on this machine.
    """
    drawn = [done for series in rounds.values() for done in series if OTHERS in done.samples]
    if not drawn:
        return before
    middle = statistics.median(done.samples[OTHERS] for done in drawn)
    known = before or OthersLoad(drawn[0].samples[USABLE])
    return dataclasses.replace(known, measured=middle)


def environment_entry(others: Iterable[OthersLoad | None]) -> dict[str, str]:
    """The cores that other programs took in the busiest claim of a run, by name; empty if no claim knows."""
    known = [each for each in others if each]
    busiest = max(known, key=lambda each: each.measured or 0.0, default=None)
    return {"cores that other programs took": str(busiest)} if busiest else {}


def reason(rounds: Mapping[str, Sequence[Round]]) -> str:
    """Say that the machine was busy in the median round; empty if it was not, or if nobody knows."""
    known = others_load(rounds, None)
    taken = known.busy if known else ""
    return f"the machine was busy: in the median round {taken}" if taken else ""


def add_reason(verdict: Verdict, rounds: Mapping[str, Sequence[Round]]) -> Verdict:
    """The verdict; if it is inconclusive, its reason also says that the machine was busy."""
    why = reason(rounds)
    if verdict.outcome is not Outcome.INCONCLUSIVE or not why:
        return verdict
    return dataclasses.replace(verdict, reason="; ".join(filter(None, (verdict.reason, f"{why}: {WHAT_HELPS}"))))


def lines(rounds: Mapping[str, Sequence[Round]]) -> list[str]:
    """The line of a message, or no line for a machine that was not busy."""
    return [why] if (why := reason(rounds)) else []
