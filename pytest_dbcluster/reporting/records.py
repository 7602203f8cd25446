"""What a claim leaves behind: everything that terminal, Allure, history and a reader later need."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from pytest_dbcluster.claims.verdict import Verdict
from pytest_dbcluster.rounds.open_loop import Pace
from pytest_dbcluster.rounds.round import Round


@dataclasses.dataclass(frozen=True)
class ClaimRecord:
    """One claim with its answer.

    test: the test's node id. text: the claim as written (``flush_2.beats(galera3)``). load: the workload's name.
    candidate and baseline: whose ratio the verdict gives; of an order its weakest neighbours, and so are published,
    drained and differences. message: the whole text of the verdict. published: the published ratio candidate /
    baseline of speed, where there is one. asserted: False for a comparison that is printed beside and claims nothing.
    measured_seconds: of the rounds that the claim used; wall_seconds: with resets, switches and settling. durability:
    per variant what a commit is worth. differences: effective server variables on which the two variants differ.
    rounds: per variant, those that the claim used, in order. published_seconds: per variant the published average,
    least and most of its cell, where there is one. drains: per variant the median time in seconds until all nodes
    were equal after a round, and drained the ratio candidate / baseline of speed with that time included; empty and
    None where nothing had to drain. void: the blocks of rounds that did not count and were drawn again. pace: the
    rate of an open loop, None of a closed one. limited: says that the load generator was the bottleneck, empty when
    it was not.
    """

    test: str
    text: str
    load: str
    candidate: str
    baseline: str
    metric: str
    verdict: Verdict
    message: str
    published: float | None
    asserted: bool
    measured_seconds: float
    wall_seconds: float
    seed: int
    release: str
    profile: str
    durability: Mapping[str, str]
    differences: Mapping[str, tuple[str, str]]
    fingerprint: Mapping[str, str]
    repeat: str
    rounds: Mapping[str, Sequence[Round]]
    published_seconds: Mapping[str, Sequence[float]] = dataclasses.field(default_factory=dict)
    drains: Mapping[str, float] = dataclasses.field(default_factory=dict)
    drained: float | None = None
    void: Sequence[Sequence[Round]] = ()
    pace: Pace | None = None
    limited: str = ""


@dataclasses.dataclass(frozen=True)
class CurvePoint:
    """One variant at one value of a curve: its rounds, and of the curve's metric median and 95 % interval of it.

    low and high are None for fewer than 6 rounds.
    """

    value: object
    variant: str
    rounds: Sequence[Round]
    median: float
    low: float | None
    high: float | None


@dataclasses.dataclass(frozen=True)
class CurveRecord:
    """What was measured of a curve: everything that table, chart and file need.

    load: the workload's name. field: what goes from value to value. metric: that of the load. notes: what a reader has
    to know of it, such as nodes that share cores or a load generator that was the bottleneck.
    """

    test: str
    load: str
    field: str
    metric: str
    release: str
    profile: str
    seed: int
    fingerprint: Mapping[str, str]
    points: Sequence[CurvePoint]
    notes: Sequence[str] = ()

    @property
    def values(self) -> list[object]:
        """Each value once, in order."""
        return list(dict.fromkeys(point.value for point in self.points))

    @property
    def variants(self) -> list[str]:
        """Each variant once, in order."""
        return list(dict.fromkeys(point.variant for point in self.points))


@dataclasses.dataclass(frozen=True)
class Progress:
    """One finished round, as it is shown while a test runs.

    ``warm_up`` rounds do not count. ratio, low and high are of the claim so far, None before the first look.
    ``last`` of its block. ``cap``: most pairs of the claim; ``measured`` seconds of ``budget`` are used so far.
    """

    test: str
    load: str
    round: Round
    pair: int
    warm_up: bool
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    next_look: int | None = None
    last: bool = True
    cap: int | None = None
    measured: float = 0.0
    budget: float | None = None
