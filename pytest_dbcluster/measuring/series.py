"""Series: the rounds of one variant, and the claims that a test makes about them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from pytest_dbcluster import registry
from pytest_dbcluster.claims import claim as claims
from pytest_dbcluster.claims import verdict
from pytest_dbcluster.claims.claim import Claim
from pytest_dbcluster.claims.critical_values import MOST_NEIGHBOURS
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.measuring.answer import Answer
from pytest_dbcluster.measuring.decision import ask
from pytest_dbcluster.measuring.measurement import Measurement
from pytest_dbcluster.rounds import counters
from pytest_dbcluster.rounds.round import Round

BESIDE_PAIRS = 20


@dataclasses.dataclass(frozen=True)
class Series:
    """The rounds of one variant, and the claims about it. Lazy: nothing is drawn before a claim is made."""

    measurement: Measurement = dataclasses.field(repr=False)
    number: int

    @property
    def rounds(self) -> Sequence[Round]:
        """The rounds drawn so far that count, in the order of their blocks."""
        return self.measurement.rounds[self.number]

    @property
    def name(self) -> str:
        """The variant's short name."""
        return self.measurement.source.names[self.number]

    def __repr__(self) -> str:
        return f"<{self.name}: {len(self.rounds)} rounds>"

    def beats(self, other: Series, by: float = 0.0, *, metric: str | None = None) -> Answer:
        """The claim: this variant is faster than the other by more than the fraction ``by``.

        Without ``metric`` it is about what the load says, throughput or goodput. ``drained_throughput`` and
        ``drained_goodput`` count the time until all nodes are equal as well. Of an open loop ``p50``, ``p95``, ``p99``
        and ``p999`` are latencies, of all transactions or of one type ("p95:new_order"): the lower one is the faster.
        """
        return self._claim(claims.beats(by), other, metric)

    def no_slower_than(self, other: Series, by: float, *, metric: str | None = None) -> Answer:
        """The guard: this variant is slower than the other by less than the fraction ``by``."""
        return self._claim(claims.no_slower_than(by), other, metric)

    def same_as(self, other: Series, within: float, *, metric: str | None = None) -> Answer:
        """The guard: neither is slower than the other by the fraction ``within``."""
        return self._claim(claims.same_as(within), other, metric)

    def scales(self, other: Series, at_least: float, *, metric: str | None = None) -> Answer:
        """The claim: this variant is more than ``at_least`` times as fast as the other."""
        return self._claim(claims.scales(at_least), other, metric)

    def lower(self, counter: str, than: Series, by: float = 0.0) -> Answer:
        """The claim: a counter of this variant's rounds is lower than the other's; the cause has moved."""
        if counter not in counters.NAMES:
            raise registry.unknown("counter", counter, counters.NAMES)
        return self._claim(claims.lower(by), than, counter)

    def no_more_stalls_than(self, other: Series) -> Answer:
        """The guard: in 40 pairs, rounds whose operations took twice their own median are no more frequent here."""
        return self._claim(Claim(verdict.STALLS_KIND, 0.0), other, None)

    def against(self, other: Series, *, metric: str | None = None) -> Answer:
        """No claim: the ratio of the two, measured and printed beside; ``bool`` of it is always True."""
        claim = claims.differs()
        return self._claim(claim, other, metric, cap=min(BESIDE_PAIRS, self.measurement.rules.cap), asserted=False)

    def _claim(
        self, claim: Claim, other: Series, metric: str | None, *, cap: int | None = None, asserted: bool = True
    ) -> Answer:
        metric = self.measurement.metric if metric is None else metric
        if claim.kind != "lower":
            self.measurement.check_metric(metric)
        if not isinstance(other, Series) or other.measurement is not self.measurement:
            raise ConfigError(
                f"{self.name} and {other!r} were not measured together; give both to one measure(..., on=[...])"
            )
        if other.number == self.number:
            raise ConfigError(f"{self.name} is compared with itself; a claim needs two variants")
        self.measurement.source.permit(metric)
        return ask(claim, self.measurement, (self.number, other.number), metric, cap=cap, asserted=asserted)

    def values(self, metric: str) -> list[float]:
        """One value per round, as it is shown: operations a second, milliseconds, or a counter."""
        return self.measurement.shown(self.number, metric)


def series_of(measurement: Measurement) -> list[Series]:
    """A series for each variant of a measurement, in their order."""
    return [Series(measurement, number) for number in range(len(measurement.rounds))]


def ordered(*slowest_first: Series, step: float = 0.0, metric: str | None = None) -> Answer:
    """The claim: each of these series is faster than the one before it by more than ``step``."""
    if len(slowest_first) < 2 or any(item.measurement is not slowest_first[0].measurement for item in slowest_first):
        raise ConfigError("ordered(...) takes two or more series of one measure(..., on=[...]), the slowest first")
    if len(slowest_first) > MOST_NEIGHBOURS + 1:
        raise ConfigError(f"ordered takes 2 to {MOST_NEIGHBOURS + 1} variants, not {len(slowest_first)}")
    if twice := next((one for place, one in enumerate(slowest_first) if one in slowest_first[:place]), None):
        raise ConfigError(f"{twice.name} is compared with itself; a claim needs two variants")
    measurement = slowest_first[0].measurement
    metric = measurement.metric if metric is None else metric
    measurement.check_metric(metric)
    measurement.source.permit(metric)
    numbers = [series.number for series in reversed(slowest_first)]
    return ask(claims.ordered(step), measurement, numbers, metric)
