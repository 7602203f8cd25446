"""The length of the rounds of a workload that runs for a time, chosen from the rounds of its warm-up.

The speed of a round varies for two reasons. *Within* a round it varies from moment to moment; a longer round averages
that out. *Between* rounds it varies as well, and no length of a round removes that; only more rounds do. So a round is
as long as it takes until the first kind is no larger than the second: shorter rounds would need many more pairs, and
longer ones would not need fewer. All variants are pooled, and all get the same length, so it favours none.

Beyond USUAL seconds a round gains little even where it is all noise inside: the time to a given precision falls by a
tenth, and a clear difference, which 12 pairs show anyway, takes half as long again. So a round is longer than that only
where more than its own time goes by unmeasured between two rounds, or where a percentile needs more operations.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Sequence

from pytest_dbcluster.rounds.round import Round

USUAL = 2.0  # seconds of a round whose length is not chosen: of the warm-up, and of an open loop
SHORTEST, LONGEST = 0.3, 3.0  # seconds
BUDGET = "--db-budget"  # what limits the measured seconds of a claim, where a test claims
PAIRS = 20  # pairs that the budget of a claim should suffice for
QUEUES = 30.0  # a round of an open loop lasts this many times as long as its operations wait
STEPS = 200  # of a printed time: rounding changes a ratio by half a percent then, which no usual margin notices
MOST_REPEATS = 200  # of a fixed amount of work in a round
TENTH = 0.1
BATCH = 5  # tenths: neighbouring tenths depend on each other, batches of half a second nearly do not
LEAST_BATCHES = 3  # degrees of freedom; below it the batches are single tenths
# A warm-up has two to five rounds of each variant, too few to know the noise between rounds from them alone. So they
# are taken together with this many of a usual deviation, as a share of the speed.
PRIOR_BETWEEN, PRIOR_ROUNDS = 0.04, 2
UNMEASURED = 2.0  # a round beyond USUAL seconds lasts no longer than this many times the time between two rounds


@dataclasses.dataclass(frozen=True)
class RoundLength:
    """A chosen length of rounds, with what it was chosen from."""

    seconds: float
    """Of a round."""

    within: float = math.nan
    """Relative standard deviation of a round of this length that comes from the moments inside of it."""

    between: float = math.nan
    """That of its rounds among each other, however long they are."""

    unmeasured: float = math.nan
    """Seconds that a round takes beside."""

    shortened: bool = False
    """Whether the budget of the claim made it shorter."""

    budget: str = BUDGET
    """What the user calls that budget."""

    def longer(self, factor: float) -> RoundLength:
        """The same, longer by this factor, up to LONGEST; for a lower arrival rate, so that a round has as much."""
        return dataclasses.replace(self, seconds=min(LONGEST, math.ceil(round(self.seconds * factor * 10, 6)) / 10))

    @property
    def line(self) -> str:
        """The line of a claim's message."""
        why = f"so that the budget ({self.budget}) suffices for more of them" if self.shortened else "from the warm-up"
        noise = ""
        if not math.isnan(self.within):
            noise = f": noise inside a round {100 * self.within:.1f} %, between rounds {100 * self.between:.1f} %"
        return f"rounds of {self.seconds:g} s, chosen {why}{noise}"


def chosen(blocks: Sequence[Sequence[Round]], *, least: float, most: float, budget: str = BUDGET) -> RoundLength:
    """The length of rounds after these warm-up blocks, between SHORTEST and LONGEST seconds.

    blocks: the blocks of the warm-up that were not void, each with one round of every variant, in any order. least:
    seconds that the metric of the claim needs; 0 for a speed. most: seconds that the budget allows. budget: what the
    user calls it. ``least`` wins over ``most``. An open loop has a given speed, whose noise says nothing about
    latencies. It keeps USUAL seconds within these limits, or more where operations wait long: a round is much longer
    than its queue, else nobody can tell a queue that is there from a queue that grows. A workload that does not count
    its operations by tenths of a second keeps USUAL seconds as well.
    """
    rounds = [done for block in blocks for done in block]
    delays = [done.outcome.delay for done in rounds if done.outcome.delay is not None]
    noise = None if any(done.outcome.rate is not None for done in rounds) else within_variance(rounds)
    if noise is None:
        wanted = max([USUAL, *([QUEUES * statistics.median(delays)] if delays else [])])
        within, between, unmeasured = math.nan, math.nan, math.nan
    else:
        variance = between_variance(blocks, noise)
        unmeasured = max(0.0, statistics.median(done.wall - done.seconds for done in rounds))
        wanted = min(noise / variance, max(USUAL, UNMEASURED * unmeasured))
        between = math.sqrt(variance)
    least = math.ceil(round(min(LONGEST, max(SHORTEST, least)) / TENTH, 6)) * TENTH
    wanted = min(max(wanted, least), LONGEST)
    limit = max(math.floor(round(most / TENTH, 6)) * TENTH, least)
    seconds = round(min(wanted, limit), 1)
    if noise is not None:
        within = math.sqrt(noise / seconds)
    return RoundLength(seconds, within, between, unmeasured, limit < wanted, budget)


def repeats(blocks: Sequence[Sequence[Round]], most: float) -> int:
    """How many times rounds of a fixed amount of work have to run it, so that a printed time has STEPS steps.

    blocks: of the warm-up, not void. most: seconds of a round that the budget allows. 1 where times are not printed in
    steps, and where rounds last long enough.
    """
    rounds = [done for block in blocks for done in block]
    wanted = max((STEPS * done.outcome.resolution / done.seconds for done in rounds), default=1.0)
    affordable = min((most / done.seconds for done in rounds), default=1.0)
    return max(1, min(math.ceil(round(wanted, 6)), math.floor(affordable), MOST_REPEATS))


def within_variance(rounds: Sequence[Round]) -> float | None:
    """The variance, relative to the speed, of the mean of one second inside a round; None when it is not known.

    By batch means: the mean of a batch of neighbouring tenths varies by the noise and by how long the noise lasts, so
    it needs no model of their dependence. Each round is compared with its own mean, so rounds of all variants count
    together. The first tenth of a round is left out: threads begin in it.
    """
    for size in (BATCH, 1):
        squares, freedom = 0.0, 0
        for done in rounds:
            batches = _batches(done, size)
            if len(batches) > 1 and (mean := statistics.fmean(batches)):
                squares += sum((batch / mean - 1) ** 2 for batch in batches)
                freedom += len(batches) - 1
        if freedom >= LEAST_BATCHES:
            return squares / freedom * size * TENTH
    return None


def _batches(done: Round, size: int) -> list[int]:
    """Operations of each whole batch of tenths of a round, without its first tenth."""
    whole = math.floor(round(done.seconds / TENTH, 6))
    tenths = [*done.outcome.by_tenth, *[0] * (whole - len(done.outcome.by_tenth))][1:whole]
    return [sum(tenths[start : start + size]) for start in range(0, len(tenths) - size + 1, size)]


def between_variance(blocks: Sequence[Sequence[Round]], within: float) -> float:
    """The variance, relative to the speed, of rounds of one variant beyond the noise inside of them.

    Each round is compared with the mean of its variant and of its block, because pairs are formed inside a block.
    within: as ``within_variance`` gives it. Few rounds say little, so PRIOR_ROUNDS more count with PRIOR_BETWEEN.
    """
    variants = sorted({done.variant for block in blocks for done in block})
    table = [{done.variant: math.log(done.cost) for done in block if math.isfinite(done.cost)} for block in blocks]
    table = [row for row in table if len(row) == len(variants)]
    freedom = max(0, len(table) - 1) * (len(variants) - 1)
    found = 0.0
    if freedom:
        whole = statistics.fmean(value for row in table for value in row.values())
        means = {name: statistics.fmean(row[name] for row in table) - whole for name in variants}
        squares = sum((row[n] - statistics.fmean(row.values()) - means[n]) ** 2 for row in table for n in variants)
        seconds = statistics.fmean(done.seconds for block in blocks for done in block)
        found = max(0.0, squares / freedom - within / seconds)
    return (PRIOR_ROUNDS * PRIOR_BETWEEN**2 + freedom * found) / (PRIOR_ROUNDS + freedom)
