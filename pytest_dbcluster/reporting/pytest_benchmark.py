"""Rounds as results of pytest-benchmark, if an option of the run asks pytest-benchmark for something.

Its fixture works once a test and measures by itself. But ``BenchmarkFixture.pedantic`` makes a result with any timer.
So each variant gets a fixture with a clock that shows its rounds' seconds. Then pytest-benchmark saves, compares and
prints them as it does with its own results. With pytest-xdist the process that the user started does this: it has all
rounds.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

from pytest_dbcluster.reporting.records import ClaimRecord
from pytest_dbcluster.rounds.round import Round

PLUGIN = "pytest-benchmark"  # the name under which it registers its session


@dataclasses.dataclass(frozen=True)
class BenchmarkedVariant:
    """The rounds of a variant under a workload in a test."""

    test: str
    """The node id of the test."""

    load: str
    """The workload."""

    name: str
    """The variant."""

    rounds: tuple[Round, ...]
    """The rounds of the variant."""

    record: ClaimRecord
    """The first claim about the variant."""

    @property
    def has_fixed_time(self) -> bool:
        """Whether rounds last a fixed time, so only seconds per operation can be compared."""
        return any(done.outcome.ledger is not None or done.outcome.rate for done in self.rounds)

    @property
    def seconds(self) -> list[float]:
        """One value for each round."""
        if not self.has_fixed_time:
            return [done.seconds for done in self.rounds]
        return [done.seconds / max(1, done.outcome.operations) for done in self.rounds]

    @property
    def extra_info(self) -> dict[str, Any]:
        """What pytest-benchmark saves besides the seconds."""
        return {
            "unit": "seconds per operation" if self.has_fixed_time else "seconds per round",
            "release": self.record.release,
            "profile": self.record.profile,
            "provisioner": self.record.provisioner,
            "claim": self.record.text,
            "verdict": self.record.verdict.outcome.value,
            "ratio": self.record.verdict.ratio,
            "interval": [self.record.verdict.low, self.record.verdict.high],
        }


def variants(records: Sequence[ClaimRecord]) -> list[BenchmarkedVariant]:
    """The variants of these claims, each with the rounds of the claim that used most of them."""
    found: dict[tuple[str, str, str], BenchmarkedVariant] = {}
    for record in records:
        for name, rounds in record.rounds.items():
            key = (record.test, record.load, name)
            if rounds and (key not in found or len(rounds) > len(found[key].rounds)):
                found[key] = BenchmarkedVariant(*key, tuple(rounds), record)
    return list(found.values())


def feed(config: Any, records: Sequence[ClaimRecord]) -> None:
    """Add the rounds of each variant to the session of pytest-benchmark, which saves, compares and shows them."""
    session = config.pluginmanager.get_plugin(PLUGIN)
    for variant in variants(records) if session else ():
        _add(session, variant)


def _add(session: Any, variant: BenchmarkedVariant) -> None:
    from pytest_benchmark.fixture import BenchmarkFixture
    from pytest_benchmark.utils import NameWrapper

    clock = _Clock(variant.seconds)
    _, _, test = variant.test.rpartition("::")
    node = SimpleNamespace(
        name=f"{test} {variant.load} {variant.name}", nodeid=f"{variant.test} {variant.load} {variant.name}"
    )
    options = {**session.options, "timer": NameWrapper(clock), "cprofile": False}
    fixture = BenchmarkFixture(
        node,
        add_stats=session.benchmarks.append,
        logger=session.logger,
        warner=lambda warning: None,
        disabled=False,
        group=f"{variant.test} {variant.load}",
        **options,
    )
    fixture.extra_info.update(variant.extra_info)
    fixture.pedantic(clock.run, rounds=len(variant.rounds), iterations=1)


class _Clock:
    """A clock that advances only in ``run``, by the seconds of the next round."""

    __name__ = "rounds"  # as it is saved

    def __init__(self, seconds: Sequence[float]) -> None:
        self._now = 0.0
        self._left: Iterator[float] = iter(seconds)

    def __call__(self) -> float:
        return self._now

    def run(self) -> None:
        """One round."""
        self._now += next(self._left)
