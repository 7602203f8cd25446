"""When evidence is gathered, and where it goes."""

from __future__ import annotations

from pytest_dbcluster.measuring.drawing.rules import Rules
from pytest_dbcluster.measuring.evidence import Evidence
from pytest_dbcluster.measuring.measurement import Measurement
from pytest_dbcluster.measuring.series import series_of
from tests.support.fakes import FakeSource, noisy


class Asked(FakeSource):
    """Notes how many rounds and checks there were when it was asked."""

    asked = ()

    def evidence(self, question):
        """One line, and a label for each variant."""
        self.asked = (*self.asked, (len(self.rounds), self.checks))
        return Evidence(durability=dict.fromkeys(self.names, "made up"), notes=("a line about the clusters",))


def test_evidence_is_gathered_once_for_an_answer():
    """After the last round and the check; the message has its lines, and reports read it from the answer."""
    source, reported = Asked(("slow", "fast"), noisy(1.0, 0.5)), []
    slow, fast = series_of(Measurement(source, Rules(seed=7), finished=reported.append))
    answer = fast.beats(slow)

    assert answer
    assert source.asked == ((len(source.rounds), 1),)
    assert reported == [answer]
    assert answer.evidence.durability == {"slow": "made up", "fast": "made up"}
    assert answer.message.count("a line about the clusters") == 1
