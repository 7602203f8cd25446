"""Measurement: the rounds of one workload on several variants, their values, and the claims about them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from pytest_dbcluster.claims import block_order
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.measuring.answer import Answer, Tries
from pytest_dbcluster.measuring.claim_log import ClaimLog
from pytest_dbcluster.measuring.drawing.block_drawing import BlockDrawing
from pytest_dbcluster.measuring.drawing.blocks import BlockPlan
from pytest_dbcluster.measuring.drawing.progress import RoundProgress
from pytest_dbcluster.measuring.drawing.round_source import RoundSource
from pytest_dbcluster.measuring.drawing.rules import Rules
from pytest_dbcluster.measuring.question import Question
from pytest_dbcluster.measuring.values import Values
from pytest_dbcluster.measuring.why.compared import ServerComparison
from pytest_dbcluster.rounds import metrics
from pytest_dbcluster.rounds.round import Round

Recall = Callable[[Question], Answer | None]
# Called with candidate, baseline (0-based) and the usual seconds of a round, after the last round of an answer.
CompareServers = Callable[[int, int, float], ServerComparison]


@dataclasses.dataclass
class Measurement:
    """One workload on several variants, which are numbered from 0, in the order of ``source.names``."""

    source: RoundSource
    """Runs the rounds."""

    rules: Rules
    """The run's options on drawing."""

    progress: Callable[[RoundProgress], None] = lambda progress: None
    """Is called after each round."""

    finished: Callable[[Answer], None] = lambda answer: None
    """Is called with each answer once its test reads it, and with a comparison at once."""

    test: str = ""
    """The node id of the test."""

    release: str = ""
    """The releases of the variants, as text."""

    number: int = 0
    """The number of the measurement in its test.

    With the names of test, workload and variants it makes the order of the rounds its own.
    """

    claimed: set[tuple[str, str]] | None = None
    """(workload, claim) of all claims of the test so far; None if equal claims are allowed."""

    recall: Recall = lambda question: None
    """Returns the answer of an earlier run that this one continues; None if the claim has to be measured."""

    tries: Tries | None = None
    """Knows earlier tries of claims."""

    plan: BlockPlan | None = None
    """The blocks of a measurement of events or of options; None for those of claims about pairs of variants."""

    at_end: Callable[[], None] = lambda: None
    """Is called when the body of the test has ended, before the answers that nobody read are reported."""

    drawn_without_claim: bool = False
    """Whether rounds were drawn, or taken over, for no claim."""

    compare_servers: CompareServers | None = None
    """Compares what the servers of two variants do in extra rounds, after each answer; None if nobody asks for it."""

    drawing: BlockDrawing = dataclasses.field(init=False)
    """Draws the rounds."""

    values: Values = dataclasses.field(init=False)
    """What the rounds say, by metric."""

    claims: ClaimLog = dataclasses.field(init=False)
    """The claims about them, with their answers."""

    def __post_init__(self) -> None:
        source = self.source
        seed = block_order.seed_of(self.rules.seed, self.test, source.load, *source.names, self.number)
        self.drawing = BlockDrawing(source, self.rules, seed, self.test, self.progress, self.plan)
        self.values = Values(self.drawing.blocks, source.load, self.drawing.instances)
        self.claims = ClaimLog(source.names, source.load, self.finished, self.claimed, self.tries)

    @property
    def metric(self) -> str:
        """The default metric of claims about this workload."""
        return self.source.metric

    @property
    def rounds(self) -> Sequence[Sequence[Round]]:
        """The rounds that count, by variant."""
        return self.drawing.blocks.rounds

    @property
    def pairs(self) -> int:
        """The number of pairs that count: the rounds of each variant."""
        return self.drawing.blocks.pairs

    def check_metric(self, metric: str) -> None:
        """Raise ConfigError for a metric that claims about this workload cannot have, before any round is drawn."""
        source = self.source
        if metrics.CAPACITY not in (metric, source.metric):
            metrics.check(metric, source.arrival_rate, source.load, source.parts)
        elif metric != source.metric:
            raise ConfigError(
                f"metric {metric!r} of {source.load}: measure.capacity compares only capacities, and measure all other "
                "metrics"
            )

    def take_over(self, question: Question) -> Answer | None:
        """The answer of an earlier run that this one continues; None if the claim has to be measured.

        Its rounds are shown if this run draws none. No claim is judged by them: a later claim draws its own. Answers
        share their rounds, and some need only the first of them, so the longest series is shown.
        """
        answer = self.recall(question)
        if answer is not None:
            self.claims.take_over(answer)
            known = self.values.taken_over
            longer = (one for one in answer.variants if len(one.rounds) > len(known.get(one.number, ())))
            known |= {variant.number: variant.rounds for variant in longer}
        return answer

    def end(self, *, interrupted: bool = False) -> None:
        """Report the answers that the test has not read, as comparisons: the body of the test has ended.

        The source learns from rounds after which the clusters were as they should be. interrupted: by Ctrl-C, after
        which nothing more starts.
        """
        self.drawing.learn()
        if not interrupted:
            self.at_end()
        self.claims.report_unread()
