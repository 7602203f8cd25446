"""Whether a claim can still be reached: its first look has to come before the budgets of the claim and of the run end.

Nothing can be decided before the first look, so rounds that cannot reach it waste time. The functions here need only
numbers, so a claim without a chance ends before a cluster starts.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence

from pytest_dbcluster.claims import critical_values
from pytest_dbcluster.claims.claim import Claim
from pytest_dbcluster.claims.repetitions.kind import BUDGET
from pytest_dbcluster.formatting import quantity
from pytest_dbcluster.rounds import round_length
from pytest_dbcluster.rounds.round import Round

WARM_UPS = 2  # blocks: the minimum of a warm-up
ROUNDS_VARY = 1.05  # start an opening block that may overrun the budget by up to 5 %
FASTER = 1.1  # later rounds may be faster by this factor
CAP = critical_values.LOOKS[-1]
LEEWAY = 1.5  # rounds after the warm-up may be faster by this factor
LARGER: Callable[[int], str] = f"{round_length.BUDGET} {{}}".format  # what to write for a budget of this many seconds


def first_look(claim: Claim, alpha: float, instances: int = 1) -> int:
    """The number of pairs before which no verdict is possible, however clear the difference.

    At the default alpha it is 12, for a guard 8, for ``fades`` 17; with alpha .0001 it is 17. For an effect it is 16.
    instances: of each variant, which the blocks use in turn.
    """
    level = claim.hold_level(alpha)
    return claim.of_kind.earliest(level) or first_look_at(level, instances, claim.of_kind.looks_from)


def earliest_look() -> int:
    """The number of pairs before which no claim of any kind can be decided: the first look of a guard."""
    return first_look_at(critical_values.GUARD_LEVEL)


def first_look_at(level: float, instances: int = 1, least: int = 0) -> int:
    """The number of pairs before which no look decides at this level. least: no look with fewer pairs counts."""
    row = critical_values.boundary(level)
    return next(look for look in critical_values.looks(instances) if look >= least and row.at(look) is not None)


def distance(claim: Claim, comparisons: Sequence[tuple[int, int]], blocks: Sequence[Sequence[Round]]) -> float:
    """The log ratio between the speeds of a warm-up and what would decide the claim otherwise.

    It is that of the comparison which decides: the nearest one if all hold, else the one that fails most clearly. 0 for
    a comparison that neither holds nor fails, and without an operation. comparisons: candidate and baseline of each.
    blocks: each by variant number.
    """
    holds, fails = [], [0.0]
    for candidate, baseline in comparisons:
        costs = [(block[candidate].cost, block[baseline].cost) for block in blocks]
        if not costs or not all(math.isfinite(cost) for pair in costs for cost in pair):
            return 0.0
        theta = statistics.fmean(math.log(other / ours) for ours, other in costs)
        (low, high), (least, most) = claim.hold_bounds, claim.fail_bounds
        holds.append(min(theta - low, high - theta))
        fails.append(max(least - theta, theta - most))
    return max(0.0, *fails, min(holds, default=0.0))


def shortest_round(given: float | None, free: bool) -> float | None:
    """The seconds of the shortest possible round: of the test, or the shortest that we choose; None if unknown."""
    return round_length.SHORTEST if free else given


def beyond_budget(
    look: int,
    variants: int,
    seconds: float,
    budget: float,
    *,
    given: bool = True,
    larger: Callable[[int], str] = LARGER,
) -> str:
    """Why a claim cannot reach its first look within its budget of measured seconds; empty if it can.

    look: its number of pairs. variants: of the claim. seconds: of its shortest round. given: whether the test itself
    sets the length of rounds. larger: as ``Rules.larger_budget``.
    """
    needed = look * variants * seconds
    if needed <= budget * (1 + 1e-9):
        return ""
    shorter = math.floor(100 * budget / (look * variants)) / 100
    less = f", or seconds={shorter:g} or less" if given and shorter >= round_length.SHORTEST else ""
    return (
        f"a verdict needs at least {look} {'pairs' if variants == 2 else 'blocks'}: {look} x {variants} rounds "
        f"of {seconds:.3g} s take {needed:.3g} s, more than its budget of {budget:.4g} s of measured time; "
        f"the smallest budget is {larger(math.ceil(round(needed, 6)))}{less}"
    )


def beyond_run(look: int, variants: int, seconds: float, left: float) -> str:
    """Why a claim cannot reach its first look in the time left of the run; empty if it can.

    The arguments are those of ``beyond_budget``. left: seconds, without the starts of clusters.
    """
    needed = (WARM_UPS + look) * variants * seconds
    if needed <= left:
        return ""
    return (
        f"the run's budget has {max(0.0, left):.0f} s left (--db-run-budget), and this claim takes {needed:.0f} s or "
        f"more: {WARM_UPS} blocks of warm-up and {look} that count, of {variants} rounds of {seconds:.3g} s"
    )


def why_too_slow(
    blocks: Sequence[Sequence[Round]],
    numbers: Sequence[int],
    look: int,
    budget: float,
    *,
    larger: Callable[[int], str] = LARGER,
) -> str:
    """Why rounds as long as those of the warm-up cannot reach the first look; empty if they can, or nearly.

    The fastest block counts, since rounds of a fixed amount of work may still get faster. blocks: of the warm-up, each
    by variant number; empty if all were void. larger: as in ``beyond_budget``.
    """
    seconds = fastest_round(blocks, numbers)
    if look * len(numbers) * seconds <= LEEWAY * budget:
        return ""
    return beyond_budget(look, len(numbers), seconds, budget, given=False, larger=larger)


def out_of_budget(used: float, budget: float, name: str, pairs: int, upcoming: int) -> str:
    """Why a budget allows no other block; empty while it does.

    used: measured seconds of ``pairs`` pairs. name: what the user calls the budget. upcoming: the pairs of the next
    block. An opening block has no look inside, so it starts only if all of it fits.
    """
    if used >= budget:
        return f"budget of {budget:.4g} s of measured time used ({name})"
    if upcoming > 1 and pairs and used * (1 + upcoming / pairs) > budget * ROUNDS_VARY:
        left = f"its next {upcoming} pairs would take longer than the {budget - used:.0f} s left"
        return f"budget of {budget:.4g} s of measured time ({name}): {left}"
    return ""


def out_of_event_budget(used: Sequence[float], upcoming: int, usual: float, budget: float) -> str:
    """Why a budget allows no other block of repetitions of an event; empty while it does.

    used: the seconds of each repetition so far. upcoming: the repetitions of the next block. usual: the expected
    seconds of a repetition before the first one has run; later their mean counts.
    """
    needed = upcoming * (statistics.fmean(used) if used else usual)
    if math.fsum(used) + needed <= budget:
        return ""
    return (
        f"budget of {budget:.4g} s for events ({BUDGET}): {quantity(len(used), 'repetition')} took "
        f"{math.fsum(used):.0f} s, the next block of {upcoming} needs {needed:.0f} s"
    )


def reachable(rounds: Sequence[Round], pairs: int, budget: float, left: float) -> int:
    """The number of pairs that a budget and the rest of the time allow, at the pace of these rounds.

    It is rather too large, because later rounds may be faster. rounds: all rounds of ``pairs`` pairs. budget: measured
    seconds. left: seconds of wall time.
    """
    measured, wall = math.fsum(one.seconds for one in rounds), math.fsum(one.wall for one in rounds)
    if not measured:
        return CAP
    more = min(budget / measured, 1 + left / max(wall, measured))
    return math.floor(min(CAP, pairs * FASTER * max(1.0, more)))


def fastest_round(blocks: Sequence[Sequence[Round]], numbers: Sequence[int]) -> float:
    """The seconds of a round of these variants in the fastest of these blocks; 0 without blocks."""
    return min((sum(block[number].seconds for number in numbers) for block in blocks), default=0.0) / len(numbers)
