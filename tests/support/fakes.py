"""Stand-ins that several unit tests share: a source whose rounds are made up, and a variable of a server."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Mapping

from pytest_dbcluster.clusters.servers.data_template import Variable
from pytest_dbcluster.measuring.drawing.round_source import RoundSource
from pytest_dbcluster.measuring.evidence import Evidence
from pytest_dbcluster.measuring.question import Question
from pytest_dbcluster.rounds.open_loop import ArrivalRate
from pytest_dbcluster.rounds.round import Round, RunResult
from pytest_dbcluster.workloads.workload import Setting, Workload

NONE: Mapping[str, float] = {}


@dataclasses.dataclass
class FakeSource(RoundSource):
    """Rounds of 100 operations that take ``seconds(variant)``; what was asked for is written down.

    outcome: what the load says of a variant's round of so many seconds. limited: what limited its load generator.
    voids: the reason of each round in turn, "" for one that counts. wrong: what the check raises.
    """

    names: tuple[str, ...]
    seconds: Callable[[int], float]
    counters: Callable[[int], Mapping[str, float]] = lambda _: NONE
    load: str = "fake load"
    voids: tuple[str, ...] = ()
    wrong: Exception | None = None
    why_blind: str = ""
    metric: str = "throughput"
    arrival_rate: ArrivalRate | None = None
    outcome: Callable[[int, float], RunResult] = lambda variant, seconds: RunResult(seconds, 100, 100)
    limited: Callable[[int], str] = lambda variant: ""
    parts: tuple[str, ...] = ()
    rounds: list[tuple[int, int, int]] = dataclasses.field(default_factory=list)
    checks: int = 0

    def round(self, variant: int, *, block: int, position: int) -> Round:
        """One made-up round."""
        number = len(self.rounds)
        self.rounds.append((variant, block, position))
        return Round(
            variant=self.names[variant],
            block=block,
            position=position,
            outcome=self.outcome(variant, self.seconds(variant)),
            wall=0.0,
            started=float(number),
            counters=self.counters(variant),
            void=self.voids[number] if number < len(self.voids) else "",
            limited=self.limited(variant),
        )

    def check(self) -> None:
        """Count, or raise ``wrong``."""
        self.checks += 1
        if self.wrong:
            raise self.wrong

    def blind_spot(self, *numbers: int, by_size: bool = False) -> str:
        """What ``why_blind`` says."""
        return self.why_blind

    def evidence(self, question: Question) -> Evidence:
        """One line."""
        return Evidence(notes=(f"a note on {' and '.join(self.names[number] for number in question.variants)}",))


class Idle(Workload):
    """A load without tables that does nothing; others derive from it and say what they do."""

    writes = False
    tables: tuple[str, ...] = ()

    def prepare(self, setting: Setting) -> None:
        """Nothing to make."""

    def reset(self, setting: Setting) -> None:
        """Nothing to undo."""

    def run(self, setting: Setting) -> RunResult:
        """Takes no time."""
        return RunResult(0.001, 1)

    def clean(self, setting: Setting) -> None:
        """Nothing to drop."""


@dataclasses.dataclass(frozen=True)
class Failing(Idle):
    """A load that fails at one of its steps, or is interrupted there."""

    step: str
    error: BaseException
    writes: bool = True
    tables: tuple[str, ...] = ()

    def _at(self, step: str) -> None:
        if step == self.step:
            raise self.error

    def prepare(self, setting: Setting) -> None:
        """Fails, or makes nothing."""
        self._at("prepare")

    def reset(self, setting: Setting) -> None:
        """Fails, or does nothing."""
        self._at("reset")

    def run(self, setting: Setting) -> RunResult:
        """Fails, or takes no time."""
        self._at("run")
        return RunResult(0.001, 1, 1)


def noisy(*means: float, sd: float = 0.05, seed: int = 1) -> Callable[[int], float]:
    """Seconds around the mean of each variant."""
    source = random.Random(seed)
    return lambda variant: means[variant] * source.lognormvariate(0, sd)


def variable(name: str, value: str = "", **fields: object) -> Variable:
    """One server variable; a dynamic number without bounds unless ``fields`` say otherwise."""
    known = {"read_only": False, "kind": "INT", "minimum": "", "maximum": "", "choices": (), "scope": "GLOBAL"}
    return Variable(name=name, value=value, **{**known, **fields})  # type: ignore[arg-type]
