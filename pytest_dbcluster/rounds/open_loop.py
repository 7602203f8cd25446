"""Pace: the rate of an open loop, and where it comes from.

An operation of an open loop starts when its time has come, whether or not the one before it has ended, and its latency
counts from that moment on; so a server that stands still for a second shows in the tail, as it does to its users. That
needs a rate which every variant can follow: a share of what the slowest of them can do in a closed loop.
"""

from __future__ import annotations

import dataclasses
import math
import re
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence

from pytest_dbcluster.errors import ConfigError, SeriesVoid
from pytest_dbcluster.rounds.round import Round, RunResult

WARM_UPS = 1  # blocks before the capacity is measured, and those that measure it
BLOCKS = 3
MOST_VOID = 2
CLAIMED_SHARE = 0.7  # above it a queue is most of a tail, and a few per cent of capacity move it by halves
LEAST_DONE = 0.95
SIGMAS = 3.0
FEWEST = 6  # rounds; the first look of a claim


@dataclasses.dataclass(frozen=True)
class ArrivalRate:
    """The rate of a load.

    asked: as the load names it, ``500`` or ``"70 %"``. rate: operations a second, None until capacities are known.
    capacities: good operations a second of each variant in a closed loop; empty until they are known, which a rate
    that is a number needs for claims about latencies only.
    """

    asked: float | str
    rate: float | None = None
    capacities: Mapping[str, float] = dataclasses.field(default_factory=dict)

    @classmethod
    def of(cls, asked: float | str | None) -> ArrivalRate | None:
        """The pace of a load's ``rate``; None for a closed loop. Raises ConfigError for what is no rate."""
        if asked is None:
            return None
        return cls(asked, None if share_of(asked) else float(asked))

    @property
    def share(self) -> float | None:
        """The share of the slowest variant's capacity; None for a rate that was asked for by itself."""
        return share_of(self.asked)

    @property
    def of_capacity(self) -> float | None:
        """The share of the slowest variant's capacity, as asked for or as measured; None while it is not known."""
        if self.share is None and self.rate is not None and self.capacities:
            return self.rate / min(self.capacities.values())
        return self.share

    def found(self, capacities: Mapping[str, float]) -> ArrivalRate:
        """The same with these capacities, and so with a rate; one that was asked for by itself stays."""
        rate = self.rate if self.share is None else self.share * min(capacities.values())
        return dataclasses.replace(self, rate=rate, capacities=capacities)

    @property
    def line(self) -> str:
        """What a result says of it."""
        if self.rate is None:
            return f"open loop at {self.asked}"
        if not self.capacities:
            return f"open loop: {self.rate:.4g}/s, as asked"
        each = ", ".join(f"{name} {speed:.4g}/s" for name, speed in self.capacities.items())
        share = self.asked if self.share else f"as asked, {percent(self.of_capacity)}"
        return f"open loop: {self.rate:.4g}/s, {share} of what the slowest does in a closed loop ({each})"


def share_of(asked: float | str) -> float | None:
    """The share that ``"70 %"`` asks for; None for operations a second. Raises ConfigError for what is neither."""
    given = asked
    if isinstance(asked, str):
        match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*%\s*", asked)
        if match and 0 < float(match[1]) <= 100:
            return float(match[1]) / 100
        given = math.nan
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 < given < math.inf:
        raise ConfigError(
            f"rate={asked!r}: it takes operations a second above 0, or a share of what the slowest variant can do, "
            'such as "70 %"'
        )
    return None


def percent(share: float | None) -> str:
    """A share that was measured, for people; rounded up, so that one just above a limit does not read as the limit."""
    return f"{math.ceil(round(1000 * (share or 0.0), 6)) / 10:g} %"


def capacities(
    names: Sequence[str], orders: Iterator[Sequence[int]], draw: Callable[[int, int, int], Round]
) -> dict[str, float]:
    """The good operations a second of each variant in a closed loop: medians of a few alternating, unmeasured blocks.

    ``draw`` takes variant, block and position. Raises SeriesVoid when void rounds do not end, or nothing was done.
    """
    speeds: dict[str, list[float]] = {name: [] for name in names}
    void: list[Round] = []
    for block in range(-WARM_UPS, BLOCKS):
        for position, number in enumerate(next(orders)):
            while (done := draw(number, block + WARM_UPS, position)).void:
                void.append(done)
                if len(void) > MOST_VOID:
                    raise SeriesVoid(f"the capacity of {names[number]} could not be measured: {done.void}")
            if block >= 0:
                speeds[names[number]].append(done.goodput)
    found = {name: statistics.median(many) for name, many in speeds.items()}
    if still := [name for name, speed in found.items() if not speed]:
        raise SeriesVoid(f"{', '.join(still)} did nothing in a closed loop, so there is no capacity to take a share of")
    return found


def behind(outcome: RunResult, seconds: float | None) -> bool:
    """Whether an open loop would have needed more than ``seconds`` and 5 % of it for what was offered in ``seconds``.

    The delay with which its last operations began says that; where a load does not report it, the end of the last one
    has to do. One such round may be a stall, and its latencies count; when most are, the rate is above what a variant
    can do.
    """
    if outcome.rate is None or seconds is None:
        return False
    needed = outcome.seconds if outcome.delay is None else seconds + outcome.delay
    return LEAST_DONE * needed > seconds


def above_capacity(rounds: Sequence[Round]) -> str:
    """Why the tail of a variant that fell behind in most of its rounds is not known: it is a queue that only grows."""
    late = sum(one.behind for one in rounds)
    if len(rounds) < FEWEST or 2 * late <= len(rounds):
        return ""
    return (
        f"{rounds[0].variant} fell behind the rate of {rounds[0].outcome.rate:.4g}/s in {late} of {len(rounds)} "
        "rounds, so that is above what this variant can do now; a lower rate would do"
    )


def saturated(outcome: RunResult) -> str:
    """Why a round of an open loop does not count: it did less than was offered; empty when it counts.

    Where a load does not count what it offered, that is rate times seconds, and starts that come at random may be
    fewer than that by three standard deviations (of a Poisson count, its square root).
    """
    if outcome.rate is None:
        return ""
    offered, chance = float(outcome.offered or 0), 0.0
    if outcome.offered is None:
        offered = outcome.rate * outcome.seconds
        chance = SIGMAS * math.sqrt(offered)
    if outcome.done >= LEAST_DONE * offered - chance:
        return ""
    return (
        f"saturated: {outcome.done} of {offered:.0f} operations done at {outcome.rate:.4g}/s, "
        f"less than {100 * LEAST_DONE:.0f} %"
    )
