"""RoundTripsTaken: the round trips that an operation takes, of variants that differ only in their round-trip time."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Mapping, Sequence

from pytest_dbcluster import formatting
from pytest_dbcluster.claims import estimators
from pytest_dbcluster.rounds import metrics
from pytest_dbcluster.rounds.round import Round


@dataclasses.dataclass(frozen=True)
class RoundTripsTaken:
    """How many round trips an operation takes: the slope of its median latency (p50) over the round-trip time."""

    slope: float
    """The median of the slopes of all pairs of rounds."""

    low: float | None
    """The lower end of the 95 % interval of that median, for any distribution; None for fewer than 6 pairs."""

    high: float | None
    """The upper end of the same interval."""

    pairs: int
    """The number of pairs."""

    rtts: tuple[float, ...]
    """The round-trip times in seconds, in rising order."""

    def __str__(self) -> str:
        known = self.low is not None and self.high is not None
        ends = f"{self.low:.2f} .. {self.high:.2f}, 95 % interval" if known else "no interval yet"
        distances = ", ".join(f"{rtt * 1000:g}" for rtt in self.rtts)
        return (
            f"round trips that an operation takes: {self.slope:.2f} "
            f"({ends} of {formatting.quantity(self.pairs, 'pair')}): the slope of p50 over RTT ({distances} ms)"
        )


def estimate(rounds: Mapping[str, Sequence[Round]], rtts: Mapping[str, float], load: str) -> RoundTripsTaken | None:
    """The round trips of an operation; None for fewer than two round-trip times, and for rounds without latencies.

    rounds: by variant; the n-th of all belong together. rtts: in seconds, of the variants that differ only in it.
    """
    compared = {name: series for name, series in rounds.items() if name in rtts}
    every = [done for series in compared.values() for done in series]
    if len({rtts[name] for name in compared}) < 2 or not every or any(not done.outcome.ledger for done in every):
        return None
    places = [rtts[name] for name in compared]
    latencies = [[metrics.display_value(done, "p50", load) / 1000 for done in series] for series in compared.values()]
    slopes = [estimators.slope(places, pair) for pair in zip(*latencies, strict=True)]
    low, high = estimators.median_interval(slopes) or (None, None)
    return RoundTripsTaken(statistics.median(slopes), low, high, len(slopes), tuple(sorted(set(places))))
