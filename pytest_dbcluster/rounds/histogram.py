"""Histogram: times in fixed logarithmic buckets, so that histograms of threads and rounds can be added.

Bucket ``b`` counts times from 2 ** (b / 64) up to 2 ** ((b + 1) / 64) microseconds. So a percentile is exact to 1.1 %.
The sysbench scripts (workloads/lua) use the same buckets.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections import Counter
from collections.abc import Iterable, Mapping

PER_OCTAVE = 64
PERCENTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p999": 0.999}
TOP = 30 * PER_OCTAVE - 1  # the last bucket: 2 ** 30 us are 18 minutes; it also counts all longer times


def bucket(seconds: float) -> int:
    """The 0-based bucket of a time; the first bucket also counts times below 1 microsecond."""
    return min(TOP, max(0, math.floor(math.log2(max(1.0, seconds * 1e6)) * PER_OCTAVE)))


@dataclasses.dataclass(frozen=True)
class Histogram:
    """A histogram of times. Immutable: adding two histograms gives a new one."""

    counts: Mapping[int, int] = dataclasses.field(default_factory=dict)
    """0-based bucket -> number of its times; buckets without times are absent."""

    @classmethod
    def of(cls, seconds: Iterable[float]) -> Histogram:
        """The histogram of these times in seconds."""
        return cls(dict(Counter(map(bucket, seconds))))

    def __add__(self, other: Histogram) -> Histogram:
        return Histogram(
            {key: self.counts.get(key, 0) + n for key, n in other.counts.items()} | self._missing_in(other)
        )

    def _missing_in(self, other: Histogram) -> dict[int, int]:
        return {key: n for key, n in self.counts.items() if key not in other.counts}

    @functools.cached_property
    def total(self) -> int:
        """The number of times in all buckets."""
        return sum(self.counts.values())

    @property
    def mean(self) -> float:
        """The mean time in seconds, from the geometric middle of each bucket; nan for an empty histogram."""
        seconds = sum(count * _middle(key) for key, count in self.counts.items())
        return seconds / self.total if self.total else math.nan

    def percentile(self, share: float) -> float:
        """The time in seconds that this share of all times does not exceed, as the geometric middle of its bucket.

        ``share`` .95 is the 95th percentile. nan for an empty histogram. Raises ValueError for a share outside (0, 1].
        """
        if not 0 < share <= 1:
            raise ValueError(f"a percentile is a share above 0 and at most 1, got {share!r}")
        left = math.ceil(share * self.total)
        for key in sorted(self.counts):
            left -= self.counts[key]
            if left <= 0:
                return _middle(key)
        return math.nan


def _middle(key: int) -> float:
    """The geometric middle of a bucket, in seconds."""
    return float(2 ** ((key + 0.5) / PER_OCTAVE) / 1e6)
