"""Winner: the result of a race, as a test gets it."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence

from pytest_dbcluster import registry
from pytest_dbcluster.claims.claim import Outcome
from pytest_dbcluster.claims.race.standing import Standing
from pytest_dbcluster.measuring.answer import Answer

ANOTHER = re.compile(r"the test names \S+, but \S+ wins(?:: |$)")


@dataclasses.dataclass(frozen=True, repr=False)
class Winner:
    """The winner of a race, who left, and who remains.

    ``assert winner.is_("flush_2")`` passes if this variant wins, and raises ClaimFailed if another one does.
    ``winner.name`` is the name of the winner. Both raise Inconclusive for a race without a winner, with the reason. A
    test that reads neither of them has an error, like a test that does not read its claim.
    """

    answer: Answer
    """The race as a claim that there is a winner; ``assert winner.answer`` passes if there is one."""

    def __post_init__(self) -> None:
        """Forget which variant the test of an earlier run has named."""
        verdict = self.answer.verdict
        if ANOTHER.match(verdict.reason):
            reason = ANOTHER.sub("", verdict.reason) or f"{self.standings[0].name} wins"
            self.answer.verdict = dataclasses.replace(verdict, outcome=Outcome.HOLDS, reason=reason)
            self.answer.earlier_message = ""

    @property
    def name(self) -> str:
        """The short name of the winner. Raises Inconclusive if the race has none."""
        assert self._claim(Outcome.HOLDS, self.answer.verdict.reason)
        return self.standings[0].name

    @property
    def standings(self) -> Sequence[Standing]:
        """The place of each variant: the winner or the leader, the others that remain, then those that left."""
        return self.answer.standings

    @property
    def remaining(self) -> list[str]:
        """The short names of the variants that no other has beaten, the winner or the leader first."""
        return [one.name for one in self.standings if not one.beaten_by]

    @property
    def left(self) -> list[Standing]:
        """The variants that left, each with the variant that beat it; the last one to leave comes first."""
        return [one for one in self.standings if one.beaten_by]

    def is_(self, variant: object) -> Answer:
        """Claim that this variant is the winner: a spec of the race, or its short name.

        Returns an ``Answer`` for ``assert``. Raises ConfigError for a variant that was not in the race.
        """
        name, names = str(variant), [one.name for one in self.standings]
        if name not in names:
            raise registry.unknown("variant of the race", name, names)
        if name == names[0]:
            return self._claim(Outcome.HOLDS, self.answer.verdict.reason)
        why = ANOTHER.sub("", self.answer.verdict.reason)
        return self._claim(Outcome.FAILS, f"the test names {name}, but {names[0]} wins: {why}")

    def _claim(self, outcome: Outcome, reason: str) -> Answer:
        """The answer with this outcome; without a winner as it is. One that was read was reported, so it stays."""
        answer = self.answer
        if not self.standings[0].wins or answer.verdict.outcome is outcome:
            return answer
        changed = dataclasses.replace(answer.verdict, outcome=outcome, reason=reason)
        if answer.read:
            return dataclasses.replace(answer, verdict=changed, earlier_message="")
        answer.verdict, answer.earlier_message = changed, ""
        return answer

    def __str__(self) -> str:
        return self.answer.message

    def __repr__(self) -> str:
        first = self.standings[0]
        return f"<race: {first.name if first.wins else 'no winner'}>"
