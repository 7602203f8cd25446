"""Traffic: what a link does to packets besides delaying them, asked and measured: loss, jitter, rate.

Each is compared with the same packets on the same link without it. A machine that does much else loses packets, delays
them, and carries fewer: where it does so without the property too, what was asked cannot be measured back, and that is
no error. One measurement of a link takes about a second for each property.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from pytest_dbcluster.claims import estimators
from pytest_dbcluster.formatting import milliseconds
from pytest_dbcluster.network import NetworkNeeds, Pair, Shape

LEVEL = 0.999  # of the intervals: a link that is as asked is outside of one once in a thousand times
TRIES = 3  # measurements of what seems wrong: it has to be wrong in each of them
PINGS, FEWEST = 1000, 20  # of one link, at most and at least
INTERVAL, LONGEST = 0.0005, 1.5  # seconds: between two pings, and of all where they have to wait for each other
TOGETHER = 100  # pings that are on their way at once, at most: fewer than a buffer holds while a program does not run
BUSY = 0.4  # share of a rate that small pings take
PING_BITS = 8 * 98  # of a ping on the link
OFF_SHARE, OFF_SECONDS = 0.1, 0.0002  # a rate is wrong beyond the share, a jitter beyond both
# Shares of the pings of which nothing is taken for granted: the machine's own delays of all others are so much shorter.
MOST_NOISE = 0.5  # of a jitter: with more, its interval would say next to nothing
LATE = (0.01, 0.02, 0.03, 0.05, 0.07, 0.1)
CHANCE = 3.3  # standard deviations beyond which a normal value lies once in a thousand times
SHORT_WAIT = 0.001  # seconds: what is longer is a stop of the machine
MOST_STOPPED = 0.1  # share of the time: with more, a rate of 80 % could not be told from the whole one
STARTS = 5  # places of a burst from which on its packets are counted
STEPS = 100  # values that stand for all delays of one way


@dataclasses.dataclass(frozen=True)
class Pings:
    """Pings that were sent one after the other. sent: how many. times: seconds of those that came back."""

    sent: int
    times: tuple[float, ...]


@dataclasses.dataclass(frozen=True)
class Burst:
    """Pings that were sent faster than a rate. bits: of one on the link.

    flights: of each that came back, when it was sent and when it was back, in seconds. unsure: seconds by which such a
    pair may be too near.
    """

    bits: float
    flights: Sequence[tuple[float, float]]
    unsure: float = 0.0


class Carries(Protocol):
    """What carries packets between two ends."""

    def shape(self, needs: NetworkNeeds) -> None:
        """Treat packets as ``needs`` say from now on. Raises ProvisionError."""

    def pings(self, pair: Pair, count: int, interval: float) -> Pings:
        """So many pings from the first end to the other, one each ``interval`` seconds. Raises ProvisionError."""

    def burst(self, pair: Pair, rate: float) -> Burst:
        """Pings that need more than this rate, in bits a second. Raises ProvisionError."""


@dataclasses.dataclass(frozen=True)
class Figure:
    """One property of a link: asked, measured, and the interval (of 99.9 %) in which it lies.

    unknown: why it could not be measured back, as a clause; then there is no figure. Empty where it was.
    """

    asked: float
    measured: float | None = None
    low: float | None = None
    high: float | None = None
    unknown: str = ""

    def above(self, allowed: float) -> bool:
        """Whether it is greater than asked, by more than this and by more than the interval explains."""
        return self.low is not None and self.low > self.asked + allowed

    def below(self, allowed: float) -> bool:
        """Whether it is smaller, in the same way."""
        return self.high is not None and self.high < self.asked - allowed

    def beyond(self, allowed: float) -> bool:
        """Whether it is either."""
        return self.above(allowed) or self.below(allowed)


@dataclasses.dataclass(frozen=True)
class Traffic:
    """What a link does to packets besides delaying them; None for what was not asked.

    loss: share of the packets that is lost, each way. jitter: seconds by which a round trip varies either way. rate:
    bits a second.
    """

    loss: Figure | None = None
    jitter: Figure | None = None
    rate: Figure | None = None

    def wrong(self) -> str:
        """Why this is not what was asked, as a clause; empty where it is, and where it could not be measured back."""
        if self.loss and self.loss.beyond(0.0):
            return f"lose {share_text(self.loss)} of the packets each way, and {_share(self.loss.asked)} were asked"
        if self.jitter and self.jitter.beyond(_allowed_jitter(self.jitter.asked)):
            asked = milliseconds(self.jitter.asked)
            return f"have round trips that vary by {jitter_text(self.jitter)}, and {asked} were asked"
        if self.rate and self.rate.beyond(OFF_SHARE * self.rate.asked):
            return f"carry {rate_text(self.rate)}, and {_rate(self.rate.asked)} were asked"
        return ""


def share_text(figure: Figure) -> str:
    """A measured share with its interval: ``1.1 % (0.40 .. 2.4)``."""
    return f"{_share(figure.measured)} ({_percent(figure.low)} .. {_percent(figure.high)})"


def jitter_text(figure: Figure) -> str:
    """A measured jitter with its interval."""
    measured, low, high = (milliseconds(value or 0.0) for value in (figure.measured, figure.low, figure.high))
    return f"{measured} ({low} .. {high})"


def rate_text(figure: Figure) -> str:
    """A measured rate."""
    return _rate(figure.measured or 0.0)


def _rate(rate: float) -> str:
    return f"{rate / 1e6:.4g} Mbit/s"


def _share(value: float | None) -> str:
    return f"{_percent(value)} %"


def _percent(value: float | None) -> str:
    return f"{100 * (value or 0.0):.2g}"


def _allowed_jitter(asked: float) -> float:
    return max(OFF_SHARE * asked, OFF_SECONDS)


def both(traffic: Sequence[Traffic]) -> list[str]:
    """What a message says of the same link measured several times: one text for each property that was asked."""
    found = []
    if loss := [one.loss for one in traffic if one.loss]:
        found.append(_said(f"loss {_share(loss[0].asked)}", loss, share_text))
    if jitter := [one.jitter for one in traffic if one.jitter]:
        found.append(_said(f"jitter {milliseconds(jitter[0].asked)}", jitter, jitter_text))
    if rate := [one.rate for one in traffic if one.rate]:
        found.append(_said(f"rate {_rate(rate[0].asked)}", rate, rate_text))
    return found


def _said(asked: str, figures: Sequence[Figure], text: Callable[[Figure], str]) -> str:
    known = [text(figure) for figure in figures if not figure.unknown]
    why = dict.fromkeys(figure.unknown for figure in figures if figure.unknown)
    unknown = [f"could not be measured back ({clause})" for clause in why]
    return ", ".join([f"{asked} asked", *([f"{' and '.join(known)} measured"] if known else []), *unknown])


def ping_seconds(shape: Shape) -> float:
    """How long a ping is on its way because of the rate alone, there and back."""
    return 2 * PING_BITS / shape.rate if shape.rate else 0.0


def measured(path: Carries, pair: Pair, needs: NetworkNeeds) -> Traffic | None:
    """Measure what is asked of a link besides its delay; None for nothing. The path is shaped so, and stays.

    Raises ProvisionError for a path that is lost.
    """
    shape = needs.between(*pair)
    if not (shape.loss or shape.jitter or shape.rate):
        return None
    return Traffic(
        _loss(path, pair, needs) if shape.loss else None,
        _jitter(path, pair, needs) if shape.jitter else None,
        _carried(path, pair, needs) if shape.rate else None,
    )


@contextlib.contextmanager
def _without(path: Carries, needs: NetworkNeeds, **change: float | None) -> Iterator[None]:
    """Shape the path without one property for a while."""
    path.shape(dataclasses.replace(needs, **change))  # type: ignore[arg-type]
    try:
        yield
    finally:
        path.shape(needs)


def _loss(path: Carries, pair: Pair, needs: NetworkNeeds) -> Figure:
    shape = needs.between(*pair)
    for _ in range(TRIES):
        figure = lost(shape, path.pings(pair, *_train(shape)))
        if not figure.beyond(0.0):
            break
        if figure.above(0.0):  # a machine may lose packets, and never finds any
            with _without(path, needs, loss=0.0):
                free = path.pings(pair, *_train(shape))
            if missing := free.sent - len(free.times):
                return Figure(shape.loss, unknown=f"this machine loses {missing} of {free.sent} pings on its own")
    return figure


def _jitter(path: Carries, pair: Pair, needs: NetworkNeeds) -> Figure:
    shape, free = needs.between(*pair), list[Pings]()
    # A queue with a rate keeps packets in order: of two packets in it, the later one waits for the earlier one.
    train = _train(shape, together=1) if shape.rate else _train(shape)
    for _ in range(TRIES):
        with _without(path, needs, jitter=0.0):
            free.append(path.pings(pair, *train))
        figure = varied(shape, path.pings(pair, *train), free)
        if not figure.beyond(_allowed_jitter(shape.jitter)):
            break
    return figure


def _carried(path: Carries, pair: Pair, needs: NetworkNeeds) -> Figure:
    shape, found, stops = needs.between(*pair), list[Figure](), 0.0
    asked = shape.rate or 0.0
    for _ in range(TRIES):
        found.append(carried(shape, path.burst(pair, asked)))
        best = max(found, key=lambda figure: figure.measured or 0.0)
        if not best.below(OFF_SHARE * asked):
            break
        with _without(path, needs, rate=None):
            free = path.burst(pair, asked)
        if (most := carried(shape, free).measured or 0.0) < asked:
            return Figure(asked, unknown=f"this machine carries {_rate(most)} without it")
        stops = max(stops, stopped(free))
        if stops > MOST_STOPPED:
            return Figure(asked, unknown=f"this machine stops packets for {_share(stops)} of the time on its own")
    # What a link does not carry meanwhile it never makes up for, on the way there and on the way back.
    return dataclasses.replace(best, high=(best.high or 0.0) / (1 - 2 * stops))


def stopped(burst: Burst) -> float:
    """The share of the time of a burst without a rate in which packets, or their sender, waited for the machine."""
    if len(burst.flights) < FEWEST:
        return 1.0
    flights = sorted(burst.flights)
    shortest = min(back - sent for sent, back in flights)
    waits = [(sent + shortest, back) for sent, back in flights]
    waits += [(first, second) for (first, _), (second, _) in itertools.pairwise(flights)]
    total, until = 0.0, -math.inf
    for begin, end in sorted(waits):
        if end - begin > SHORT_WAIT:
            total += max(0.0, end - max(begin, until))
            until = max(until, end)
    return total / (max(back for _, back in flights) - flights[0][0])


def _train(shape: Shape, together: int = TOGETHER) -> tuple[int, float]:
    """How many pings, and seconds between two of them. They leave room on a slow link.

    together: how many may be on their way at once.
    """
    room = PING_BITS / shape.rate / BUSY if shape.rate else 0.0
    interval = max(INTERVAL, room, (shape.rtt + shape.jitter) / together)
    return min(PINGS, max(FEWEST, int(LONGEST / interval))), interval


def lost(shape: Shape, pings: Pings) -> Figure:
    """The loss each way: a ping is lost where its request or its answer is."""
    missing = pings.sent - len(pings.times)
    low, high = estimators.share_interval(missing, pings.sent, LEVEL)
    return Figure(shape.loss, _one_way(missing / pings.sent), _one_way(low), _one_way(high))


def _one_way(share: float) -> float:
    return 1 - math.sqrt(1 - share)


def width(pings: Pings, late: float) -> float:
    """Seconds between the shortest and the longest round trip, but for this share of them."""
    rising = sorted(pings.times)
    return rising[-1 - int(len(rising) * late)] - rising[0] if rising else math.inf


def varied(shape: Shape, pings: Pings, free: Sequence[Pings]) -> Figure:
    """The jitter: the spread of the middle half of the round trips, compared with that of what was asked.

    free: pings without a jitter. What the machine does to these may make the spread longer or shorter.
    """
    expected = sorted(_expected(shape))
    scale = shape.jitter / spread(expected)

    def unsure(late: float) -> float:
        """How much longer than for no delay of the machine the interval will be."""
        ends = [expected[int(len(expected) * (at + sign * late))] for at in (0.25, 0.75) for sign in (1, -1)]
        return 2 * max(width(one, late) for one in free) + ends[0] - ends[1] + ends[2] - ends[3]

    late = min(LATE, key=unsure)
    noise = max(width(one, late) for one in free)
    if noise * scale > MOST_NOISE * shape.jitter:
        return Figure(shape.jitter, unknown=f"this machine varies them by {milliseconds(noise)} on its own")
    level = 1 - (1 - LEVEL) / 2  # both quartiles at once
    first_low, third_low = (estimators.quantile_interval(pings.times, at - late, level) for at in (0.25, 0.75))
    first_high, third_high = (estimators.quantile_interval(pings.times, at + late, level) for at in (0.25, 0.75))
    low, high = third_low[0] - first_high[1] - noise, third_high[1] - first_low[0] + noise
    if not math.isfinite(high):
        return Figure(shape.jitter, unknown=f"{len(pings.times)} pings came back")
    return Figure(shape.jitter, spread(pings.times) * scale, max(0.0, low) * scale, high * scale)


def spread(values: Sequence[float]) -> float:
    """The difference between the quartiles."""
    rising, count = sorted(values), len(values)
    return rising[count * 3 // 4] - rising[count // 4]


def _expected(shape: Shape) -> list[float]:
    """Round trips that stand for all: each way takes half, and varies evenly by half of the jitter, but not below 0."""
    steps = [(2 * (number + 0.5) / STEPS - 1) * shape.jitter / 2 for number in range(STEPS)]
    ways = [max(0.0, shape.rtt / 2 + step) for step in steps]
    return [there + back for there, back in itertools.product(ways, ways)]


def carried(shape: Shape, burst: Burst) -> Figure:
    """The rate: the most that packets one after the other needed at least, from the sending of the first one on.

    So a machine that sends or receives late makes it smaller, and never greater. low: where round trips are as short
    as they may be, high: as long.
    """
    off = max(OFF_SHARE * shape.rtt, OFF_SECONDS) + shape.jitter
    # Some of those that the link has carried were lost on their way back.
    kept = (1 - shape.loss) / (1 + CHANCE * math.sqrt(shape.loss / max(1, len(burst.flights))))
    return Figure(
        shape.rate or 0.0,
        _most(burst, shape.rtt) / (1 - shape.loss),
        _most(burst, max(0.0, shape.rtt - off) - burst.unsure),
        _most(burst, shape.rtt + off) / kept,
    )


def _most(burst: Burst, rtt: float) -> float:
    """The most bits a second, of half of the burst or more. rtt: seconds that a packet takes on an empty link."""
    flights = sorted(burst.flights, key=lambda flight: flight[1])
    half = max(1, len(flights) // 2)
    most = 0.0
    for first in range(0, len(flights) - half, max(1, half // STARTS)):
        began = min(sent for sent, _ in flights[first:])
        for number, (_, back) in enumerate(flights[first + half :], start=half):
            # It was on the line once more on its way back, behind all others.
            most = max(most, burst.bits * (number + 2) / max(back - began - rtt, 1e-6))
    return most
