"""A busy machine: programs of others take cores while rounds run, so rounds are slower and their times vary more."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Iterable, Mapping, Sequence

from pytest_dbcluster.claims.claim import Outcome, Verdict
from pytest_dbcluster.rounds.round import Round

OTHERS = "cpu_others"  # sample: cores that others took, of those that we may use
USABLE = "usable_cores"  # sample: the number of these cores
SHARE = 0.1  # of the usable cores, from which on the machine is called busy
WHAT_HELPS = "end them, or measure when they have ended"


def busy(others: float, usable: float) -> str:
    """Says that others take so many of the usable cores; empty where that is below SHARE of them."""
    return f"others take {others:.1f} of {usable:g} cores" if others >= SHARE * usable else ""


@dataclasses.dataclass(frozen=True)
class OthersLoad:
    """What programs of others took of the cores of this machine."""

    usable: float
    """The cores that we may use."""

    measured: float | None = None
    """Those that others took in the median round; None where it is not known."""

    before: float | None = None
    """The same before the first round of the run."""

    load: float | None = None
    """The machine's load average of one minute then."""

    @property
    def busy(self) -> str:
        """Says that the machine was busy while rounds ran, or before them where those are not known; else empty."""
        taken = self.before if self.measured is None else self.measured
        return busy(taken or 0.0, self.usable)

    def __str__(self) -> str:
        parts = []
        if self.measured is not None:
            parts.append(f"{self.measured:.1f} in the median round")
        if self.before is not None:
            parts.append(f"{self.before:.1f} before the first round")
        if self.load is not None:
            parts.append(f"load {self.load:.1f} then")
        return f"{', '.join(parts)}; {self.usable:g} cores are usable"


def others_load(rounds: Mapping[str, Sequence[Round]], before: OthersLoad | None) -> OthersLoad | None:
    """What others took in these rounds, and before the first; None where the run's servers are not on this machine."""
    drawn = [done for series in rounds.values() for done in series if OTHERS in done.samples]
    if not drawn:
        return before
    middle = statistics.median(done.samples[OTHERS] for done in drawn)
    known = before or OthersLoad(drawn[0].samples[USABLE])
    return dataclasses.replace(known, measured=middle)


def of_records(others: Iterable[OthersLoad | None]) -> dict[str, str]:
    """What others took in the busiest claim of a run, by name; empty where nothing is known."""
    known = [each for each in others if each]
    busiest = max(known, key=lambda each: each.measured or 0.0, default=None)
    return {"cores that others took": str(busiest)} if busiest else {}


def reason(rounds: Mapping[str, Sequence[Round]]) -> str:
    """Says that the machine was busy in the median round; empty when it was not, and where it is not known."""
    known = others_load(rounds, None)
    taken = known.busy if known else ""
    return f"the machine was busy: in the median round {taken}" if taken else ""


def told(verdict: Verdict, rounds: Mapping[str, Sequence[Round]]) -> Verdict:
    """The verdict; the reason of an inconclusive one says that the machine was busy."""
    why = reason(rounds)
    if verdict.outcome is not Outcome.INCONCLUSIVE or not why:
        return verdict
    return dataclasses.replace(verdict, reason="; ".join(filter(None, (verdict.reason, f"{why}: {WHAT_HELPS}"))))


def lines(rounds: Mapping[str, Sequence[Round]]) -> list[str]:
    """The line of a message; none for a machine that was not busy."""
    return [why] if (why := reason(rounds)) else []
