"""Histogram: how long things took, in fixed logarithmic buckets, so that those of threads and rounds add up.

Bucket ``b`` holds times from 2 ** (b / 64) up to 2 ** ((b + 1) / 64) microseconds, so a percentile is known to 1.1 %.
The load scripts (workloads/lua) count into the same buckets.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections import Counter
from collections.abc import Iterable, Mapping

PER_OCTAVE = 64
TOP = 30 * PER_OCTAVE - 1  # 2 ** 30 us are 18 minutes; what takes longer is counted there


def bucket(seconds: float) -> int:
    """The bucket of a time; what is shorter than a microsecond lies in the first."""
    return min(TOP, max(0, math.floor(math.log2(max(1.0, seconds * 1e6)) * PER_OCTAVE)))


@dataclasses.dataclass(frozen=True)
class Histogram:
    """Counts by bucket. Immutable: adding two gives a third."""

    counts: Mapping[int, int] = dataclasses.field(default_factory=dict)

    @classmethod
    def of(cls, seconds: Iterable[float]) -> Histogram:
        """The histogram of these times."""
        return cls(dict(Counter(map(bucket, seconds))))

    def __add__(self, other: Histogram) -> Histogram:
        return Histogram({key: self.counts.get(key, 0) + n for key, n in other.counts.items()} | self._only(other))

    def _only(self, other: Histogram) -> dict[int, int]:
        return {key: n for key, n in self.counts.items() if key not in other.counts}

    @functools.cached_property
    def total(self) -> int:
        """How many times were counted."""
        return sum(self.counts.values())

    @property
    def mean(self) -> float:
        """The mean time in seconds, each at the middle of its bucket; not a number without any."""
        seconds = sum(count * _middle(key) for key, count in self.counts.items())
        return seconds / self.total if self.total else math.nan

    def percentile(self, share: float) -> float:
        """The time in seconds below which this share of all lies: the middle of its bucket.

        Not a number without any. Raises ValueError for a share outside (0, 1].
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
    """The time in seconds that stands for a bucket."""
    return float(2 ** ((key + 0.5) / PER_OCTAVE) / 1e6)
