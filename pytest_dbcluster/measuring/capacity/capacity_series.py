"""CapacitySeries: the rounds of one variant that measure its capacity, and the claims that a test makes about it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

from pytest_dbcluster import calls
from pytest_dbcluster.claims import kinds
from pytest_dbcluster.claims.claim import Outcome, Verdict
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.measuring import event_series
from pytest_dbcluster.measuring.answer import Answer
from pytest_dbcluster.measuring.measurement import Measurement
from pytest_dbcluster.measuring.question import Question
from pytest_dbcluster.measuring.series import Series
from pytest_dbcluster.rounds import load_generator
from pytest_dbcluster.rounds.capacity.objective import Objective

TIMES = 20  # rounds of ``meets``: a stalled one or two do not decide
CALL = "meets"


@dataclasses.dataclass(frozen=True)
class AtRate:
    """What a claim at one arrival rate asks of a variant."""

    variant: int
    """The number of the variant in its measurement of capacity, 0-based."""

    rate: float
    """The arrival rate, in operations a second."""

    objective: Objective
    """The objective for the latency."""

    times: int
    """The number of rounds."""


Ask = Callable[[AtRate], Measurement]


@dataclasses.dataclass(frozen=True, repr=False)
class CapacitySeries(Series):
    """The rounds of one variant that measure its capacity. Claims such as ``beats`` compare capacities.

    ``meets`` is about this variant alone. No round is drawn before a claim is made.
    """

    objective: Objective
    """The objective of the measurement."""

    ask: Ask = dataclasses.field(repr=False)
    """Makes the measurement of a variant at one arrival rate."""

    @calls.check_arguments("galera.meets(p95=0.02, at=2000)")
    def meets(self, *, at: float, times: int = TIMES, **percentile: float) -> Answer:
        """Claim that a latency percentile does not exceed its objective at an arrival rate, in half of the rounds.

        It draws ``times`` rounds at this rate, in operations a second. A round ends early once it must miss the
        objective. The percentile has its seconds: ``p95=0.02`` is 20 ms. Without one, the objective is that of
        ``measure.capacity``.

        The claim is about one variant, so it does not rest on the random order. It assumes that rounds are independent,
        and the message says so. From 11 rounds on the error is at most .0005, from 6 rounds on .025.

        Raises ConfigError for a wrong objective, rate or number of rounds. It raises it too for a rate that the
        connections of the workload cannot reach. ``Series`` lists the other errors.
        """
        objective = Objective.of(CALL, percentile) if percentile else self.objective
        if not isinstance(at, int | float) or isinstance(at, bool) or not 0 < at < math.inf:
            raise ConfigError(f"{CALL}(at={at!r}): it must be operations a second, above 0")
        if not isinstance(times, int) or isinstance(times, bool):
            raise ConfigError(f"{CALL}(times={times!r}): it accepts the number of rounds")
        claim = dataclasses.replace(kinds.meets(objective.seconds), rate=float(at))
        if why := kinds.meets.refuses(claim, times, self.measurement.rules.alpha):
            raise ConfigError(f"{self.name}: {CALL} cannot be decided: {why}")
        measurement = self.ask(AtRate(self.number, float(at), objective, times))
        question = Question(claim, 0, None, objective.percentile)
        measurement.claims.declare(question)
        if (known := measurement.take_over(question)) is not None:
            return known
        return event_series.ask(question, measurement, times, _without_bottleneck)


def _without_bottleneck(decided: Verdict, measurement: Measurement) -> Verdict:
    """The verdict; inconclusive if it fails and the load generator may be what exceeds the objective."""
    rounds = dict(zip(measurement.source.names, measurement.rounds, strict=True))
    bottleneck = load_generator.mark(rounds)
    if decided.outcome is not Outcome.FAILS or not bottleneck:
        return decided
    return dataclasses.replace(decided, outcome=Outcome.INCONCLUSIVE, reason=f"{decided.reason}, but {bottleneck}")


def capacity_series_of(measurement: Measurement, objective: Objective, ask: Ask) -> list[CapacitySeries]:
    """One series per variant of a measurement of capacity, in the order of the variants."""
    return [CapacitySeries(measurement, number, objective, ask) for number in range(len(measurement.rounds))]
