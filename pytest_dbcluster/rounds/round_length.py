"""The length of the rounds of a workload that runs for a time, chosen from the rounds of its warm-up.

The speed of a round varies for two reasons. *Within* a round it varies from moment to moment; a longer round averages
that out. *Between* rounds it varies too, and only more rounds average that out. So a round lasts until the noise
within is no larger than the noise between. Shorter rounds would need many more pairs, and longer ones would not need
fewer. The choice pools all variants and gives all the same length, so it favours no variant.

A clear difference in the warm-up is decided by the first look, whatever the length. Then rounds are as short as that
permits.

Beyond USUAL seconds a round gains little, even if all noise is within: the time to a given precision falls by a tenth.
A clear difference, which 12 pairs show anyway, takes half as long again. So a round is longer only in two cases: more
than its own time passes unmeasured between two rounds, or a percentile needs more operations.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pytest_dbcluster.formatting import duration, quantity

if TYPE_CHECKING:  # every run of pytest loads this module if the plugin is installed
    from pytest_dbcluster.rounds.round import Round

USUAL = 2.0  # seconds of an open-loop round
# Seconds of a warm-up round: its first tenth, which is left out, and two batches. Their difference shows the noise.
WARM_UP = 0.9
SHORTEST, LONGEST = 0.3, 3.0  # seconds
BUDGET = "--db-budget"  # the option that limits the measured seconds of a claim in a test
PAIRS = 20  # the budget of a claim should suffice for so many pairs
EXPECTED_PAIRS, CLEAR_PAIRS = 30, 12  # of a claim, for its expected time; the latter if its difference is clear
# Standard deviations of a pair from the difference in the warm-up to what would decide the claim otherwise. With
# normal noise a pair lies on the other side in .00135 of the cases, so all 12 of the first look agree in .98.
CLEAR = 3.0
QUEUES = 30.0  # an open-loop round lasts this many times as long as its operations wait
STEPS = 200  # steps of a printed time; then rounding changes a ratio by half a percent, less than any usual margin
MOST_REPEATS = 200  # repetitions of a fixed amount of work in a round
TENTH = 0.1
BATCH = 4  # tenths: neighbouring tenths depend on each other, batches of .4 s nearly do not (benchmarks/warm_up.py)
LEAST_BATCHES = 3  # degrees of freedom; below it the batches are single tenths
# A warm-up has two to five rounds of each variant, too few to estimate the noise between rounds. So the estimate adds
# PRIOR_ROUNDS rounds with a usual deviation, as a share of the speed.
PRIOR_BETWEEN, PRIOR_ROUNDS = 0.04, 2
UNMEASURED = 2.0  # a round beyond USUAL seconds lasts at most this many times the time between two rounds


@dataclasses.dataclass(frozen=True)
class RoundLength:
    """The length of a claim's rounds, and the noise that decided it."""

    seconds: float
    """Seconds of a round."""

    within: float = math.nan
    """Relative standard deviation from the noise within a round of this length."""

    between: float = math.nan
    """Relative standard deviation from the noise between rounds, for any length."""

    unmeasured: float = math.nan
    """Unmeasured seconds between two rounds."""

    shortened: bool = False
    """Whether the budget of the claim shortened the rounds."""

    budget: str = BUDGET
    """The option that sets this budget."""

    most: float = math.inf
    """Seconds of a round with which the budget suffices for PAIRS pairs."""

    clear: bool = False
    """Whether they are shorter because the warm-up shows a clear difference."""

    def longer(self, factor: float) -> RoundLength:
        """The same, longer by this factor, up to LONGEST; a lower arrival rate then does as many operations."""
        return dataclasses.replace(self, seconds=min(LONGEST, math.ceil(round(self.seconds * factor * 10, 6)) / 10))

    def expected_time(self, rounds: int) -> str:
        """The expected time of a claim, for a line of progress. rounds: of a pair."""
        expected = CLEAR_PAIRS if self.clear else EXPECTED_PAIRS
        pairs = math.floor(min(expected, PAIRS * self.most / self.seconds))
        each = self.seconds + (0.0 if math.isnan(self.unmeasured) else self.unmeasured)
        return f"expected time of a claim: about {duration(pairs * rounds * each)} ({quantity(pairs, 'pair')})"

    @property
    def line(self) -> str:
        """The line of a claim's message."""
        why = "because the warm-up shows a clear difference" if self.clear else "from the warm-up"
        why = f"so that the budget ({self.budget}) suffices for more of them" if self.shortened else why
        noise = ""
        if not math.isnan(self.within):
            noise = f": noise within a round {100 * self.within:.1f} %, between rounds {100 * self.between:.1f} %"
        return f"rounds of {self.seconds:g} s, chosen {why}{noise}"


def choose(
    blocks: Sequence[Sequence[Round]],
    *,
    least: float,
    most: float,
    budget: str = BUDGET,
    distance: float = 0.0,
    tail: float = 0.0,
) -> RoundLength:
    """The length of rounds after these warm-up blocks, between SHORTEST and LONGEST seconds.

    - blocks: the blocks of the warm-up that were not void, each with one round of every variant, in any order.
    - least: seconds that the metric of the claim needs; 0 for a speed. It wins over ``most``.
    - most: seconds that the budget allows.
    - budget: the option that sets the budget.
    - distance: a log ratio, from the warm-up to what would decide the claim otherwise. 0 if it is not known.
    - tail: seconds that a percentile needs, which a later claim may ask for. Rounds of a clear difference keep them, if
      they fit into the usual length.

    The speed of an open loop is fixed, and its noise says nothing about latencies. So its rounds last USUAL seconds
    within these limits, or longer if operations wait long. A round must be much longer than its queue, so that a
    growing queue differs from a constant one. A workload that does not count operations by tenths of a second also
    keeps USUAL seconds.
    """
    rounds = [done for block in blocks for done in block]
    delays = [done.outcome.delay for done in rounds if done.outcome.delay is not None]
    noise = None if any(done.outcome.rate is not None for done in rounds) else within_variance(rounds)
    unmeasured = max(0.0, statistics.median(done.wall - done.seconds for done in rounds)) if rounds else math.nan
    if noise is None:
        usual = wanted = max([USUAL, *([QUEUES * statistics.median(delays)] if delays else [])])
        within, between = math.nan, math.nan
    else:
        variance = between_variance(blocks, noise)
        usual = min(noise / variance, max(USUAL, UNMEASURED * unmeasured))
        shortest = max(_clear_length(distance, noise, variance), SHORTEST, tail if tail <= usual else 0.0)
        wanted, between = min(usual, shortest), math.sqrt(variance)
    clear = wanted < usual
    least = math.ceil(round(min(LONGEST, max(SHORTEST, least)) / TENTH, 6)) * TENTH
    wanted = min(max(wanted, least), LONGEST)
    limit = max(math.floor(round(most / TENTH, 6)) * TENTH, least)
    seconds = round(min(wanted, limit), 1)
    if noise is not None:
        within = math.sqrt(noise / seconds)
    return RoundLength(seconds, within, between, unmeasured, limit < wanted, budget, most, clear)


def _clear_length(distance: float, within: float, between: float) -> float:
    """The seconds of the shortest rounds whose pairs vary little beside this distance; infinite if none do."""
    room = (distance / CLEAR) ** 2 / 2 - between  # the variance of a pair is that of two rounds
    return within / room if room > 0 else math.inf


def repeats(blocks: Sequence[Sequence[Round]], most: float) -> int:
    """How many times a round repeats a fixed amount of work, so that its printed time has STEPS steps.

    blocks: blocks of the warm-up that were not void. most: seconds of a round that the budget allows. 1 if the tool
    does not print times in steps, or if rounds last long enough.
    """
    rounds = [done for block in blocks for done in block]
    wanted = max((STEPS * done.outcome.resolution / done.seconds for done in rounds), default=1.0)
    affordable = min((most / done.seconds for done in rounds), default=1.0)
    return max(1, min(math.ceil(round(wanted, 6)), math.floor(affordable), MOST_REPEATS))


def within_variance(rounds: Sequence[Round]) -> float | None:
    """The variance, relative to the speed, of the mean of one second within a round; None if not known.

    It uses batch means. The mean of a batch of neighbouring tenths includes their dependence, so no model of it is
    needed. Each round is compared with its own mean, so rounds of all variants are pooled. The first tenth of a round
    is left out, because threads start in it.
    """
    for size in (BATCH, 1):
        freedom, squares = _squares(rounds, size)
        if freedom >= LEAST_BATCHES:
            return squares / freedom * size * TENTH
    return None


def has_batches(rounds: Sequence[Round]) -> bool:
    """Whether ``within_variance`` can use batches of these rounds, not only single tenths, or needs none."""
    return any(done.outcome.rate is not None for done in rounds) or _squares(rounds, BATCH)[0] >= LEAST_BATCHES


def _squares(rounds: Sequence[Round], size: int) -> tuple[int, float]:
    """Degrees of freedom and the sum of squares of batches of ``size`` tenths, each relative to its round's mean."""
    freedom, squares = 0, 0.0
    for done in rounds:
        batches = _batches(done, size)
        if len(batches) > 1 and (mean := statistics.fmean(batches)):
            squares += sum((batch / mean - 1) ** 2 for batch in batches)
            freedom += len(batches) - 1
    return freedom, squares


def _batches(done: Round, size: int) -> list[int]:
    """Operations of each whole batch of tenths of a round, without its first tenth."""
    whole = math.floor(round(done.seconds / TENTH, 6))
    tenths = [*done.outcome.by_tenth, *[0] * (whole - len(done.outcome.by_tenth))][1:whole]
    return [sum(tenths[start : start + size]) for start in range(0, len(tenths) - size + 1, size)]


def between_variance(blocks: Sequence[Sequence[Round]], within: float) -> float:
    """The variance, relative to the speed, of rounds of one variant beyond the noise within them.

    Each round is compared with the mean of its variant and its block, because pairs lie in one block. ``within`` is the
    result of ``within_variance``. PRIOR_ROUNDS more rounds count with PRIOR_BETWEEN.
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
