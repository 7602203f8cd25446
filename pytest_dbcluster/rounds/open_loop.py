"""The arrival rate of an open loop, and whether a round kept it.

In an open loop, an operation starts at its intended time, even if the previous one has not ended. Its latency counts
from the intended start, so a stall shows in the tail, as users see it. Every variant must be able to keep the rate. So
the rate is a share of the capacity, the speed of the slowest variant in a closed loop.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import re
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence

from pytest_dbcluster.errors import ConfigError, SeriesVoid
from pytest_dbcluster.formatting import amount
from pytest_dbcluster.rounds.round import Round, RunResult

MAX_WARM_UPS = 5  # blocks before the capacity is measured
STEADY = 0.05  # the warm-up ends if a block is faster than the previous one by less than this
BLOCKS = (6, 12)  # minimum and maximum of blocks that measure the capacity
PRECISE = 0.04  # they end when the standard error of each variant's mean speed is below this share
MAX_VOID = 2  # void rounds
MIN_LATE = 3  # rounds that did not keep the rate, before the rate is lowered
LOWERED = 0.9  # a rate is lowered to this share of it, or less
CLAIMED_SHARE = 0.7  # above it a tail is mostly queueing, and a few percent of capacity change it by half
MIN_DONE = 0.95  # share of the offered operations
SIGMAS = 3.0  # standard deviations of a Poisson count
MIN_ROUNDS = 6  # fewer may be behind by chance; the first opening blocks have 8


@dataclasses.dataclass(frozen=True)
class ArrivalRate:
    """The arrival rate of a workload."""

    asked: float | str
    """The rate as the workload gives it: ``500`` (operations/s) or ``"70 %"``."""

    rate: float | None = None
    """Operations/s; None until the capacities are known."""

    capacities: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """Good operations/s of each variant in a closed loop; empty until they are measured. A rate in operations/s needs
    them only for claims about latencies.
    """

    lowered: str = ""
    """The previous rate and why it was lowered; empty if it was not."""

    @classmethod
    def of(cls, asked: float | str | None) -> ArrivalRate | None:
        """The arrival rate of a workload's field ``rate``; None for a closed loop.

        Raises ConfigError, also for less than one operation a second: a user who writes 0.7 means 70 %.
        """
        if asked is None:
            return None
        share = share_of(asked)
        if share is None and float(asked) < 1:
            raise ConfigError(
                f"rate={asked!r} is {asked} operations a second; for {100 * float(asked):g} % of the slowest variant's "
                f'capacity, write rate="{100 * float(asked):g} %"'
            )
        return cls(asked, None if share else float(asked))

    @property
    def share(self) -> float | None:
        """The share of the slowest variant's capacity that the workload asks for; None for a rate in operations/s."""
        return share_of(self.asked)

    @property
    def of_capacity(self) -> float | None:
        """The share of the slowest variant's capacity, as requested or as measured; None until it is measured."""
        if self.share is None and self.rate is not None and self.capacities:
            return self.rate / min(self.capacities.values())
        return self.share

    def with_capacities(self, capacities: Mapping[str, float]) -> ArrivalRate:
        """The same with these capacities and the rate that follows from them; a rate in operations/s stays."""
        rate = self.rate if self.share is None else self.share * min(capacities.values())
        return dataclasses.replace(self, rate=rate, capacities=capacities)

    def lower(self, why: str, done: float) -> ArrivalRate | None:
        """The same at a lower rate: its share of the ``done`` operations/s; None if the rate may not be lowered.

        A share may be lowered once. A rate in operations/s is the test's decision, so it stays. ``why`` says that the
        rate is too high.
        """
        if self.share is None or self.rate is None or self.lowered:
            return None
        rate = min(self.share * done, LOWERED * self.rate)
        return dataclasses.replace(self, rate=rate, lowered=f"lowered from {amount(self.rate)}/s: {why}")

    @property
    def line(self) -> str:
        """The line of a claim's message."""
        if self.rate is None:
            return f"open loop at {self.asked}"
        if not self.capacities:
            return f"open loop: {amount(self.rate)}/s, as requested"
        speeds = ", ".join(f"{name} {amount(speed)}/s" for name, speed in self.capacities.items())
        share = self.asked if self.share else f"as requested, {percent(self.of_capacity)}"
        if self.lowered:
            return f"open loop: {amount(self.rate)}/s, {self.lowered}; closed loop: {speeds}"
        return f"open loop: {amount(self.rate)}/s, {share} of the slowest variant's closed loop ({speeds})"


def share_of(asked: float | str) -> float | None:
    """The share .7 of ``"70 %"``; None for a rate in operations/s. Raises ConfigError for anything else."""
    rate = asked
    if isinstance(asked, str):
        match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*%\s*", asked)
        if match and 0 < float(match[1]) <= 100:
            return float(match[1]) / 100
        rate = math.nan
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 < rate < math.inf:
        raise ConfigError(
            f"rate={asked!r}: it accepts operations a second above 0, or a share of the slowest variant's capacity, "
            'such as "70 %"'
        )
    return None


def text_of(asked: float | str) -> str:
    """The rate in a workload's name: ``70 %`` or ``500/s``."""
    return asked if isinstance(asked, str) else f"{amount(asked)}/s"


def percent(share: float | None) -> str:
    """A measured share as text, rounded up so that a share above a limit does not read as it."""
    return f"{math.ceil(round(1000 * (share or 0.0), 6)) / 10:g} %"


def capacities(
    names: Sequence[str],
    orders: Iterator[Sequence[int]],
    draw: Callable[[int, int, int], Round],
    counted: tuple[int, int] | None = None,
) -> dict[str, float]:
    """Measure the capacity of each variant: the good operations/s that it reaches in three of four closed-loop rounds.

    The blocks alternate the variants and do not count for a claim. Up to five blocks warm up, until they stop getting
    faster. Then ``counted`` blocks count, by default 6 to 12. They end when each mean speed is known to 4 %. The result
    is the lower quartile of the rounds, because the slower variant must always keep a share of it. ``draw`` runs a
    round; it accepts the 0-based numbers of variant, block and position. Raises SeriesVoid after more than two void
    rounds, or if a variant did no operation.
    """
    blocks = _closed_loop_blocks(names, orders, draw)
    means = [_mean_log(next(blocks))]
    while len(means) < MAX_WARM_UPS:
        means.append(_mean_log(next(blocks)))
        if means[-1] < means[-2] + STEADY:
            break
    least, most = counted or BLOCKS
    drawn = list(itertools.islice(blocks, least))
    while len(drawn) < most and not all(_is_precise([block[name] for block in drawn]) for name in names):
        drawn.append(next(blocks))
    return {name: _lower_quartile([block[name] for block in drawn]) for name in names}


def _closed_loop_blocks(
    names: Sequence[str], orders: Iterator[Sequence[int]], draw: Callable[[int, int, int], Round]
) -> Iterator[dict[str, float]]:
    """Yield the good operations/s of each variant, block by block; the arguments are those of ``capacities``."""
    void = 0
    for block, order in enumerate(orders):
        speeds = {}
        for position, number in enumerate(order):
            while (done := draw(number, block, position)).void:
                void += 1
                if void > MAX_VOID:
                    raise SeriesVoid(f"the capacity of {names[number]} could not be measured: {done.void}")
            speeds[names[number]] = done.goodput
        if idle := [name for name, speed in speeds.items() if not speed]:
            raise SeriesVoid(
                f"{', '.join(idle)} did nothing in a closed loop, so there is no capacity to take a share of"
            )
        yield speeds


def _mean_log(speeds: Mapping[str, float]) -> float:
    return statistics.fmean(map(math.log, speeds.values()))


def _is_precise(speeds: Sequence[float]) -> bool:
    error = statistics.stdev(map(math.log, speeds)) / math.sqrt(len(speeds))
    return error < PRECISE


def _lower_quartile(values: Sequence[float]) -> float:
    return statistics.quantiles(values, n=4, method="inclusive")[0] if len(values) > 1 else values[0]


def too_high(rounds: Sequence[Round], least: int = MIN_LATE) -> tuple[str, float]:
    """Why the rate is above a variant's capacity, and its operations/s; empty and 0 if it is not.

    ``rounds`` are those of one variant, with its void ones. The rate is too high if the variant fell behind in more
    than half of its rounds and in ``least``. So a single stall does not count.
    """
    late = [done for done in rounds if done.behind or saturation(done.outcome)]
    if len(late) < least or 2 * len(late) <= len(rounds):
        return "", 0.0
    done = _lower_quartile([done.goodput for done in late])
    return f"{rounds[0].variant} fell behind in {len(late)} of {len(rounds)} rounds", done


def is_behind(outcome: RunResult, seconds: float | None) -> bool:
    """Whether an open loop fell behind its rate: the operations of ``seconds`` needed 5 % more time than ``seconds``.

    The time needed is ``seconds`` + the delay of the last starts; without a reported delay, the measured time. A single
    such round may be a stall, so its latencies count. If most rounds fall behind, the rate is above the capacity; see
    ``above_capacity``. False for a closed loop and for a workload without a fixed time.
    """
    if outcome.rate is None or seconds is None:
        return False
    needed = outcome.seconds if outcome.delay is None else seconds + outcome.delay
    return MIN_DONE * needed > seconds


def above_capacity(rounds: Sequence[Round]) -> str:
    """Why the latencies of a variant say nothing: it fell behind in most of its rounds, so its queue only grows.

    Empty below 6 rounds, or if the variant kept the rate in half of its rounds or more.
    """
    behind_rounds = sum(done.behind for done in rounds)
    if len(rounds) < MIN_ROUNDS or 2 * behind_rounds <= len(rounds):
        return ""
    return (
        f"{rounds[0].variant} fell behind the rate of {amount(rounds[0].outcome.rate or 0.0)}/s in {behind_rounds} of "
        f"{len(rounds)} rounds, so the rate is above its capacity; set a lower rate"
    )


def saturation(outcome: RunResult) -> str:
    """Why an open-loop round is void: it did less than 95 % of the offered operations; empty if it did more.

    If a workload does not count the offered operations, they are rate times seconds. Then random starts may be fewer by
    three standard deviations of a Poisson count. That is three times the square root of the count.
    """
    if outcome.rate is None:
        return ""
    offered, chance = float(outcome.offered or 0), 0.0
    if outcome.offered is None:
        offered = outcome.rate * outcome.seconds
        chance = SIGMAS * math.sqrt(offered)
    if outcome.done >= MIN_DONE * offered - chance:
        return ""
    return (
        f"saturated: {outcome.done} of {offered:.0f} operations done at {amount(outcome.rate)}/s, "
        f"less than {100 * MIN_DONE:.0f} %"
    )
