"""The load generator's own work: how much of its machine it took, and what a claim is worth when it was the limit.

A load that cannot send more shows its own speed instead of the servers'. Whatever two variants differ by, it brings
their ratio nearer to 1 and never makes a slower one look faster. So a ratio that was seen above 1 is at least as large
without that limit, one below 1 at most, and one that could be 1 says nothing.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Mapping, Sequence

from pytest_dbcluster.claims.claim import Outcome, Verdict
from pytest_dbcluster.rounds.round import Round

BUSY = 0.9  # of the measured time on a CPU: such a thread cannot start its next operation any earlier
SHARE = 0.8  # of the cores that the load generator may use
CORES = "client_cores"  # the sample that says how many these are
USED = "cpu_client"  # and the one of a tool that does not count its own CPU time, in cores


def limit(one: Round) -> str:
    """What of the load generator set the speed of a round, so that the servers did not; empty when nothing did."""
    busiest = one.outcome.busiest or 0.0
    if busiest >= BUSY:
        return f"a thread of the load generator was on a CPU for {100 * busiest:.0f} % of the time"
    used, cores = used_cores(one) or 0.0, one.samples.get(CORES, math.inf)
    if used >= SHARE * cores:
        return f"the load generator took {used:.2g} of its {cores:g} cores"
    return ""


def line(rounds: Mapping[str, Sequence[Round]]) -> list[str]:
    """One line: the cores that the load generator took, of those that it may use; none when nobody knows."""
    parts = [f"{name} {said}" for name, many in rounds.items() if (said := _taken(many))]
    return [f"load generator: {'; '.join(parts)}"] if parts else []


def _taken(rounds: Sequence[Round]) -> str:
    used = [found for one in rounds if (found := used_cores(one)) is not None]
    cores = [one.samples[CORES] for one in rounds if CORES in one.samples]
    if not used or not cores:
        return ""
    busiest = [one.outcome.busiest for one in rounds if one.outcome.busiest is not None]
    thread = f", busiest thread {100 * statistics.median(busiest):.0f} %" if busiest else ""
    return f"{statistics.median(used):.2f} of {statistics.median(cores):g} cores{thread}"


def used_cores(one: Round) -> float | None:
    """Cores: as the load counts them, or as the system counts the program that ran it."""
    if one.outcome.client_seconds is not None:
        return one.outcome.client_seconds / one.seconds
    return one.samples.get(USED)


def mark(rounds: Mapping[str, Sequence[Round]]) -> str:
    """The mark of a result in whose rounds the load generator was the limit mostly; empty without."""
    found = []
    for name, many in rounds.items():
        limits = [one.limited for one in many if one.limited]
        if 2 * len(limits) > len(many):
            found.append(f"{name}, {len(limits)} of {len(many)} rounds ({limits[0]})")
    return f"the client is the bottleneck: {'; '.join(found)}" if found else ""


def trusted(verdict: Verdict, marked: str) -> Verdict:
    """The verdict, or an inconclusive one where the limit may have hidden the difference that decides the claim."""
    if not marked or verdict.outcome is Outcome.INCONCLUSIVE or _stands(verdict):
        return verdict
    reason = f"{verdict.reason}, but {marked}: that hides differences, and may hide one that decides this"
    return dataclasses.replace(
        verdict, outcome=Outcome.INCONCLUSIVE, reason=reason, needed_pairs=None, needed_margin=None
    )


def _stands(verdict: Verdict) -> bool:
    """Whether the answer is the same for every ratio that may be behind the one that was seen."""
    held = verdict.outcome is Outcome.HOLDS
    seen = (verdict.decided_low, verdict.decided_high) if held else (verdict.low, verdict.high)
    low, high = (math.log(value) if value else -math.inf for value in seen)
    if low <= 0 <= high:
        return False
    low, high = (low, math.inf) if low > 0 else (-math.inf, high)
    least, most = verdict.claim.bounds
    if verdict.claim.kind == "differs":
        return True
    if held:
        return least <= low and high <= most
    return high <= least or most <= low
