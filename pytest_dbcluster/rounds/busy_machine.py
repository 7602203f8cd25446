"""A busy machine: programs of others take cores while rounds run, so rounds are slower and their times vary more."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Mapping, Sequence

from pytest_dbcluster.claims.claim import Outcome, Verdict
from pytest_dbcluster.rounds.round import Round

OTHERS = "cpu_others"  # sample: cores that others took, of those that we may use
USABLE = "usable_cores"  # sample: the number of these cores
SHARE = 0.1  # of the usable cores, from which on the machine is called busy
WHAT_HELPS = "end them, or measure when they have ended"


def busy(others: float, usable: float) -> str:
    """Says that others take so many of the usable cores; empty where that is below SHARE of them."""
    return f"others take {others:.1f} of {usable:g} cores" if others >= SHARE * usable else ""


def reason(rounds: Mapping[str, Sequence[Round]]) -> str:
    """Says that the machine was busy in the median round; empty when it was not, and where it is not known."""
    drawn = [done for series in rounds.values() for done in series if OTHERS in done.samples]
    if not drawn:
        return ""
    middle = statistics.median(done.samples[OTHERS] for done in drawn)
    taken = busy(middle, drawn[0].samples[USABLE])
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
