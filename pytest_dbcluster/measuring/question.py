"""Question: a claim about variants of one measurement, as a test asks it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_dbcluster.claims.claim import Claim


@dataclasses.dataclass(frozen=True)
class Question:
    """What is asked of a measurement. Variants are numbered from 0, in the order of its names."""

    claim: Claim
    """The claim; from its first look on with the difference that equal clusters can have (``Claim.apart``)."""

    candidate: int
    """The variant that is claimed to be better; of an order the fastest, of ``fades`` that of the second pair."""

    baseline: int | None
    """The variant that it is compared with; None for a claim about one variant."""

    metric: str
    """What is compared: a metric of the workload, or a counter."""

    others: tuple[int, ...] = ()
    """Of an order all slower variants, fastest first; of ``fades`` candidate and baseline of the first pair.

    Of an interaction of two options both levels of the second one.
    """

    asserted: bool = True
    """False for a comparison without a claim (``against``)."""

    @property
    def variants(self) -> tuple[int, ...]:
        """All variants: candidate, baseline and the others."""
        compared = () if self.baseline is None else (self.baseline,)
        return self.candidate, *compared, *self.others

    @property
    def timed(self) -> tuple[int, ...]:
        """The variants whose rounds together are all rounds that it needs, each once."""
        return self.variants if self.claim.of_kind.paired else self.variants[:2]

    @property
    def comparisons(self) -> list[tuple[int, int]]:
        """The comparisons, each with candidate and baseline; a test writes the last one first."""
        return self.claim.of_kind.comparisons(self.variants)

    def brief(self, usual: str) -> str:
        """What it asks in one or two words, such as ``lower fsyncs_per_commit``. usual: the metric that it leaves out.

        A comparison without a claim is ``against``, the method that asks it.
        """
        kind = self.claim.of_kind.method or self.claim.kind if self.asserted else "against"
        return kind if self.metric == usual else f"{kind} {self.metric}"

    def identity(self, names: Sequence[str]) -> str:
        """``Claim.identity``; names: of all variants of the measurement."""
        asked = tuple(names[number] for number in self.variants)
        return self.claim.identity(asked[::-1] if self.claim.of_kind.candidate_last else asked, self.metric)

    @property
    def key(self) -> tuple[str, tuple[int, ...], str]:
        """The same for all questions of a measurement that differ only in their margin."""
        return self.claim.kind, self.variants, self.metric
