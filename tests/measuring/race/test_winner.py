"""The winner of a race, as a test reads it."""

from pytest_dbcluster.claims.claim import Outcome
from pytest_dbcluster.measuring.race.running import run
from pytest_dbcluster.measuring.race.winner import Winner
from pytest_dbcluster.spec import ClusterSpec
from tests.support.fakes import FakeSource, noisy
from tests.support.measurements import measurement


def winner():
    """A race that ``fast`` wins."""
    return run(measurement(FakeSource(("slow", "fast"), noisy(1.0, 0.5, sd=0.02)), budget=1e6))


def test_a_spec_names_itself():
    """A test may give the spec, or its name."""
    assert winner().is_(ClusterSpec("standalone", name="fast"))


def test_its_text_is_the_message():
    """So a test can print it; its representation is short."""
    made = winner()

    assert str(made) == made.answer.message
    assert repr(made) == "<race: fast>"


def test_a_race_is_read_once_a_test_reads_its_winner():
    """Who left does not read it: a test must say what it expects."""
    made = winner()
    assert [one.name for one in made.left] == ["slow"]
    assert not made.answer.read

    assert made.name == "fast"
    assert made.answer.read


def test_an_answer_that_was_read_keeps_its_outcome():
    """The claim was reported with it; a second question gets a separate answer."""
    made = winner()
    assert made.is_("fast")

    assert made.is_("slow").verdict.outcome is Outcome.FAILS
    assert made.answer.verdict.outcome is Outcome.HOLDS


def test_a_later_run_may_name_another_variant():
    """The answer of a test that named the wrong one is stored with that name. A resumed run forgets it."""
    race = run(measurement(FakeSource(("slow", "slower", "fast"), noisy(1.0, 1.5, 0.5, sd=0.02)), budget=1e6))
    neutral = race.answer.verdict.reason
    stored = race.is_("slow")
    assert "names slow, but fast wins" in stored.verdict.reason

    again = Winner(stored)
    assert (again.answer.verdict.outcome, again.answer.verdict.reason) == (Outcome.HOLDS, neutral)
    assert "names slower" in again.is_("slower").verdict.reason
    assert Winner(stored).is_("fast")
