"""Traffic: what a link does to packets besides delaying them, asked and measured: loss, jitter, rate.

Loss and jitter come from many pings, each with the interval that chance leaves; the rate comes from a burst that is
longer than the link can carry at once. Each takes about half a second.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import statistics
from collections.abc import Sequence
from typing import Protocol

from pytest_dbcluster.claims import estimators
from pytest_dbcluster.formatting import milliseconds
from pytest_dbcluster.network import Pair, Shape

LEVEL = 0.999  # of the intervals: a link that is as asked is outside of one once in a thousand times
PINGS, PING_SECONDS = 1000, 0.5  # at most, of one link
ALONE_SECONDS = 1.5  # of pings that wait for each other
FEWEST = 20
BUSY = 0.4  # share of a rate that small pings take
PING_BITS = 8 * 98  # of a ping on the link
OFF_SHARE, OFF_SECONDS = 0.1, 0.0002  # a rate is wrong beyond the share, a jitter beyond both
SHORTEST = 1e-6  # seconds between two packets
STEPS = 100  # values that stand for all delays of one way


@dataclasses.dataclass(frozen=True)
class Pings:
    """Pings that were sent one after the other. sent: how many. times: seconds of those that came back."""

    sent: int
    times: tuple[float, ...]


class Carries(Protocol):
    """What carries packets between two ends."""

    def pings(self, pair: Pair, count: int, interval: float) -> Pings:
        """So many pings from the first end to the other, one each ``interval`` seconds. Raises ProvisionError."""

    def throughput(self, pair: Pair, rate: float, loss: float) -> float:
        """Bits a second that get through of a burst, at most ``rate``. loss: as asked. Raises ProvisionError."""


@dataclasses.dataclass(frozen=True)
class Figure:
    """One property of a link. asked, measured; low, high: the 99.9 % interval, None for a figure without one."""

    asked: float
    measured: float
    low: float | None = None
    high: float | None = None

    def beyond(self, allowed: float) -> bool:
        """Whether what was measured is off by more than this, and by more than chance explains."""
        low = self.measured if self.low is None else self.low
        high = self.measured if self.high is None else self.high
        return low > self.asked + allowed or high < self.asked - allowed


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
        """Why this is not what was asked, as a clause; empty where it is."""
        if self.loss and self.loss.beyond(0.0):
            return f"lose {share_text(self.loss)} of the packets each way, and {_share(self.loss.asked)} were asked"
        if self.jitter and self.jitter.beyond(max(OFF_SHARE * self.jitter.asked, OFF_SECONDS)):
            asked = milliseconds(self.jitter.asked)
            return f"have round trips that vary by {jitter_text(self.jitter)}, and {asked} were asked"
        if self.rate and self.rate.beyond(OFF_SHARE * self.rate.asked):
            return f"carry {rate_text(self.rate.measured)}, and {rate_text(self.rate.asked)} were asked"
        return ""


def share_text(figure: Figure) -> str:
    """A measured share with its interval: ``1.1 % (0.40 .. 2.4)``."""
    return f"{_share(figure.measured)} ({_percent(figure.low or 0.0)} .. {_percent(figure.high or 0.0)})"


def jitter_text(figure: Figure) -> str:
    """A measured jitter with its interval."""
    low, high = (figure.measured if end is None else end for end in (figure.low, figure.high))
    return f"{milliseconds(figure.measured)} ({milliseconds(low)} .. {milliseconds(high)})"


def rate_text(rate: float) -> str:
    """Bits a second in megabits."""
    return f"{rate / 1e6:.4g} Mbit/s"


def _share(value: float) -> str:
    return f"{_percent(value)} %"


def _percent(value: float) -> str:
    return f"{100 * value:.2g}"


def both(traffic: Sequence[Traffic]) -> list[str]:
    """What a message says of the same link measured several times: one text for each property that was asked."""
    found = []
    loss = [one.loss for one in traffic if one.loss]
    jitter = [one.jitter for one in traffic if one.jitter]
    rate = [one.rate for one in traffic if one.rate]
    if loss:
        found.append(f"loss {_share(loss[0].asked)} asked, {' and '.join(map(share_text, loss))} measured")
    if jitter:
        shown = " and ".join(map(jitter_text, jitter))
        found.append(f"jitter {milliseconds(jitter[0].asked)} asked, {shown} measured")
    if rate:
        shown = " and ".join(rate_text(one.measured) for one in rate)
        found.append(f"rate {rate_text(rate[0].asked)} asked, {shown} measured")
    return found


def measured(path: Carries, pair: Pair, shape: Shape) -> Traffic:
    """Measure what is asked of a link besides its delay. Raises ProvisionError."""
    jitter = rate = None
    pings = path.pings(pair, *_train(shape)) if shape.loss or shape.jitter else Pings(0, ())
    loss = lost(shape, pings) if shape.loss else None
    if shape.jitter:
        # A queue with a rate keeps packets in order: of two packets in it, the later one waits for the earlier one.
        jitter = varied(shape, path.pings(pair, *_train_alone(shape)) if shape.rate else pings)
    if shape.rate:
        rate = Figure(shape.rate, path.throughput(pair, shape.rate, shape.loss))
    return Traffic(loss, jitter, rate)


def ping_seconds(shape: Shape) -> float:
    """How long a ping is on its way because of the rate alone, there and back."""
    return 2 * PING_BITS / shape.rate if shape.rate else 0.0


def _train(shape: Shape) -> tuple[int, float]:
    """How many pings, and seconds between two of them, so that they leave room on the link."""
    interval = max(PING_SECONDS / PINGS, PING_BITS / shape.rate / BUSY if shape.rate else 0.0)
    return max(FEWEST, int(PING_SECONDS / interval)), interval


def _train_alone(shape: Shape) -> tuple[int, float]:
    """The same where no ping is sent while another one is on its way."""
    interval = max(_train(shape)[1], shape.rtt + shape.jitter)
    return min(PINGS, max(FEWEST, int(ALONE_SECONDS / interval))), interval


def speed(arrivals: Sequence[tuple[int, float]], bits: float) -> float:
    """Bits a second of a burst: the median between each packet and the one half of the burst later.

    arrivals: of the packets that came, the place of each in the burst and its time; 2 or more. bits: of a packet. A
    machine that stops for a moment, and packets that it loses then, change only some of these.
    """
    half = len(arrivals) // 2
    later = zip(arrivals, arrivals[half:], strict=False)
    return statistics.median(bits * (then[0] - first[0]) / max(then[1] - first[1], SHORTEST) for first, then in later)


def lost(shape: Shape, pings: Pings) -> Figure:
    """The loss each way: a ping is lost where its request or its answer is."""
    missing = pings.sent - len(pings.times)
    low, high = estimators.share_interval(missing, pings.sent, LEVEL)
    return Figure(shape.loss, _one_way(missing / pings.sent), _one_way(low), _one_way(high))


def _one_way(share: float) -> float:
    return 1 - math.sqrt(1 - share)


def varied(shape: Shape, pings: Pings) -> Figure:
    """The jitter: the spread of the middle half of the round trips, compared with that of what was asked."""
    expected = spread(_expected(shape))
    if not pings.times or not expected:
        return Figure(shape.jitter, math.nan, 0.0, math.inf)
    level = 1 - (1 - LEVEL) / 2  # both quartiles at once
    (first_low, first_high), (third_low, third_high) = (
        estimators.quantile_interval(pings.times, quartile, level) for quartile in (0.25, 0.75)
    )
    scale = shape.jitter / expected
    ends = max(0.0, third_low - first_high) * scale, (third_high - first_low) * scale
    return Figure(shape.jitter, spread(pings.times) * scale, *ends)


def spread(values: Sequence[float]) -> float:
    """The difference between the quartiles."""
    rising, count = sorted(values), len(values)
    return rising[count * 3 // 4] - rising[count // 4]


def _expected(shape: Shape) -> list[float]:
    """Round trips that stand for all: each way takes half, and varies evenly by half of the jitter, but not below 0."""
    steps = [(2 * (number + 0.5) / STEPS - 1) * shape.jitter / 2 for number in range(STEPS)]
    ways = [max(0.0, shape.rtt / 2 + step) for step in steps]
    return [there + back for there, back in itertools.product(ways, ways)]
