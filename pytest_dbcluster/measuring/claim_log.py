"""ClaimLog: the claims that a test makes about a measurement, with their tries and answers."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from pytest_dbcluster.claims.claim import Outcome
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.measuring.answer import Answer, Tries
from pytest_dbcluster.measuring.question import Question


@dataclasses.dataclass
class ClaimLog:
    """The claims about one measurement. A claim is reported when its test reads it: only then it is a verdict."""

    names: Sequence[str]
    """The short name of each variant."""

    load: str
    """The name of the workload."""

    report: Callable[[Answer], None] = lambda answer: None
    """Is called with each answer once its test reads it, and with a comparison at once."""

    declared: set[tuple[str, str]] | None = None
    """(workload, claim) of all claims of the test so far; None if equal claims are allowed."""

    tries: Tries | None = None
    """Knows earlier tries of claims."""

    answers: list[Answer] = dataclasses.field(default_factory=list)
    """The answers so far."""

    def __post_init__(self) -> None:
        self._try_numbers: dict[tuple[str, tuple[int, ...], str], int] = {}

    def declare(self, question: Question) -> None:
        """Note a claim before it draws. Raises ConfigError when its test has made it before, whatever the margin.

        A history of results would mix two equal claims of one test.
        """
        identity = question.identity(self.names)
        if self.declared is None:
            return
        if (self.load, identity) in self.declared:
            raise ConfigError(
                f"the test makes the claim {identity} on {self.load} twice, so a history of results would mix the two; "
                "keep one of them, or give a cluster another name: spec.named(...)"
            )
        self.declared.add((self.load, identity))

    def begin_try(self, question: Question) -> None:
        """Note before the first look of a claim that it is tried."""
        if self.tries and question.key not in self._try_numbers:
            self._try_numbers[question.key] = self.tries.begin(question)

    def try_number(self, question: Question) -> int:
        """The number of the try of a claim, from 1."""
        return self._try_numbers.get(question.key, 1)

    def add(self, answer: Answer) -> None:
        """Keep an answer, to be reported when its test reads it; a comparison is reported now."""
        self.answers.append(answer)
        if self.tries and answer.asserted and answer.verdict.outcome is not Outcome.INCONCLUSIVE:
            self.tries.decide(answer.question)
        answer.reported = self.report
        if not answer.asserted:
            answer.report()

    def take_over(self, answer: Answer) -> None:
        """Keep an answer of an earlier run, which reports itself when its test reads it; a comparison does so now."""
        self.answers.append(answer)
        if not answer.asserted:
            answer.report()

    def report_unread(self) -> None:
        """Report the answers that the test has not read, as comparisons: the body of the test has ended."""
        for answer in self.answers:
            report, answer.reported = answer.reported, None
            if report:
                report(dataclasses.replace(answer, asserted=False))
