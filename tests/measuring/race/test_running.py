"""A race from the first round to the answer, on made-up rounds."""

import dataclasses
import math

import pytest

from pytest_dbcluster.claims.claim import Outcome
from pytest_dbcluster.claims.cluster_difference import ClusterDifference
from pytest_dbcluster.errors import ConfigError, Inconclusive, LockHeld, SeriesVoid
from pytest_dbcluster.measuring.race.running import run
from tests.support.fakes import FakeSource, noisy
from tests.support.measurements import measured, measurement

NAMES = ("slow", "fast", "middle", "equal")


@dataclasses.dataclass
class Racing(FakeSource):
    """A source that notes who left. apart: how far equal clusters can differ; None for shared clusters."""

    apart: ClusterDifference | None = None
    left: list[tuple[list[int], list[str]]] = dataclasses.field(default_factory=list)

    def leave(self, numbers, lines):
        """Note it."""
        self.left.append((list(numbers), list(lines)))

    def cluster_difference(self, *numbers, metric):
        """The same for any two variants."""
        return self.apart


def source(*seconds, sd=0.02, **fields):
    """Variants whose rounds take so many seconds."""
    return Racing(NAMES[: len(seconds)], noisy(*seconds, sd=sd), **fields)


def race(made, by=None, metric=None, **rules):
    """The race of a source."""
    return run(measurement(made, **{"budget": 1e6, **rules}), by, metric)


def test_the_fastest_wins_and_says_who_left():
    """The slow ones leave at the first look, and run no more."""
    made = source(1.0, 0.5, 0.9, 0.51)
    winner = race(made)

    assert winner.name == "fast"
    assert winner.is_("fast")
    assert {one.name: one.beaten_by for one in winner.left}.keys() >= {"slow", "middle"}
    assert all(one.rounds == 17 for one in winner.left if one.name in ("slow", "middle"))
    assert sorted(made.left[0][0]) == [0, 2]
    _, [line, _] = made.left[0]
    assert line.startswith("slow leaves the race after 17 rounds: it has 0.5")
    assert line.endswith(" of the speed of fast")


def test_variants_that_left_run_no_more():
    """The others run in every block, in an order of their own."""
    made = source(1.0, 0.5, 0.51)
    winner = race(made, by=0.001, cap=40)
    rounds = measured(made)
    late = [one for one in rounds if one[1] >= 3 + 17 - 12]

    assert [one.rounds for one in winner.standings if one.name == "slow"] == [17]
    assert {variant for variant, _, _ in late} == {1, 2}
    assert len({position for _, _, position in late}) == 2
    assert len(rounds) == sum(one.rounds for one in winner.standings)
    assert {position for variant, _, position in late if variant == 1} == {0, 1}


def test_equal_variants_end_with_one_that_is_no_slower():
    """Nobody has to leave; the margin decides, and the message says so."""
    winner = race(source(1.0, 1.0, 1.0), by=0.05)

    assert winner.name in NAMES
    assert winner.left == []
    assert sorted(winner.remaining) == ["fast", "middle", "slow"]
    assert "it is less than 5 % slower than the 2 others that remain" in winner.answer.message


def test_a_test_that_names_another_variant_fails():
    """The message has the table; the claim that is reported is refuted."""
    reported = []
    made = measurement(source(1.0, 0.5, 0.9), budget=1e6)
    made.claims.report = reported.append
    winner = run(made)

    with pytest.raises(AssertionError, match=r"REFUTED: fast wins the race of 3 variants, and not"):
        assert winner.is_("slow")
    assert [answer.verdict.outcome for answer in reported] == [Outcome.FAILS]
    assert winner.name == "fast"


def test_a_variant_that_did_not_race_is_an_error():
    """The known ones are named."""
    with pytest.raises(ConfigError, match=r"unknown variant of the race 'fats'.*fast"):
        race(source(1.0, 0.5)).is_("fats")


def test_an_open_race_is_inconclusive_with_the_reason():
    """Whatever is read of it; the leader comes first, and nobody has won."""
    winner = race(source(1.0, 1.0, 1.0, sd=0.3), by=0.001, cap=20)

    for read in (lambda: winner.name, lambda: bool(winner.is_("fast")), lambda: bool(winner.answer)):
        with pytest.raises(
            Inconclusive, match=r"INCONCLUSIVE: which of fast, middle and slow is best\n  why: cap of 20"
        ):
            read()
    assert not any(one.wins for one in winner.standings)
    assert repr(winner) == "<race: no winner>"


def test_the_budget_ends_a_race():
    """It is that of the rounds of all variants together."""
    made = source(1.0, 1.0, 1.0, sd=0.3)
    winner = race(made, by=0.001, budget=70.0)

    assert "budget of 70 s of measured time used" in winner.answer.verdict.reason
    assert sum(one.rounds for one in winner.standings) == pytest.approx(70, abs=25)


def test_a_budget_below_the_first_look_is_refused_before_anything_runs():
    """Its first look comes after 17 blocks of three variants."""
    made = source(1.0, 1.0, 1.0)
    made.round_seconds = 1.0

    with pytest.raises(ConfigError, match=r"at least 17 blocks: 17 x 3 rounds of 1 s take 51 s"):
        race(made, budget=50.0)
    assert made.rounds == []


def test_rounds_too_long_for_the_budget_end_after_the_warm_up():
    """The length of a fixed amount of work is not known before."""
    with pytest.raises(
        Inconclusive, match=r"fake load: the race cannot be decided: a verdict needs at least 17 blocks"
    ):
        race(source(1.0, 1.0, 1.0), budget=20.0)


def test_a_machine_that_shows_nothing_leaves_the_race_open():
    """It draws few rounds, for the table."""
    made = source(1.0, 0.5, 0.9, why_blind="a flush costs nothing here")
    winner = race(made)

    assert winner.answer.verdict.reason == "a flush costs nothing here"
    assert winner.standings[0].name == "fast"
    assert len(measured(made)) <= 3 * 20


def test_a_failed_check_voids_the_race():
    """As that of any claim."""
    with pytest.raises(SeriesVoid, match="tables differ"):
        race(source(1.0, 0.5, wrong=SeriesVoid("tables differ")))


def test_a_machine_that_another_run_holds_leaves_an_answer():
    """The rounds so far are reported, and the error is raised."""
    made, reported = source(1.0, 1.0, sd=0.3), []
    asked = measurement(made, budget=1e6)
    asked.claims.report = reported.append
    rounds = made.round

    def held(variant, *, block, position):
        if block > 4:
            raise LockHeld("another process has the machine")
        return rounds(variant, block=block, position=position)

    made.round = held
    with pytest.raises(LockHeld):
        run(asked, by=0.001)
    assert [answer.interrupted for answer in reported] == [True]
    assert reported[0].standings


def test_a_race_is_one_claim_of_its_test():
    """A second one of the same variants would mix their results."""
    asked = measurement(source(1.0, 0.5), budget=1e6)
    asked.claims.declared = set()
    run(asked)

    with pytest.raises(ConfigError, match=r"makes the claim race\(fast, slow, metric=.*twice"):
        run(asked)


EQUAL = ClusterDifference(math.log1p(0.06), "assumed", instances=4, command="dbcluster calibrate standalone")


def test_separate_clusters_have_a_margin_of_twice_their_difference():
    """Both are in the message, with the number of instances and the command that measures it."""
    winner = race(source(1.0, 0.5, 0.9, apart=EQUAL))
    line = (
        "separate clusters: margin 5.67 %; the least margin is 5.67 %, twice the 3.0 % by which equal clusters can "
        "differ (assumed, means of 4 instances); to measure it here: dbcluster calibrate standalone"
    )

    assert line in winner.answer.message.replace("\n  ", "\n")
    assert winner.answer.claim.margin == pytest.approx(1 - math.exp(-2 * EQUAL.bound), abs=1e-4)
    assert winner.answer.claim.margin >= 1 - math.exp(-2 * EQUAL.bound)
    assert winner.name == "fast"
    assert "(up to 2 in 200)" in winner.answer.message


def test_a_smaller_margin_on_separate_clusters_is_refused():
    """Before anything runs, with the command that calibrates."""
    made = source(1.0, 0.5, apart=EQUAL)

    with pytest.raises(
        ConfigError, match=r"race\(by=0\.05\): the least margin is 5\.67 %.*dbcluster calibrate standalone"
    ):
        race(made, by=0.05)
    assert made.rounds == []
    assert race(source(1.0, 0.5, apart=EQUAL), by=0.06).name == "fast"


def test_clusters_that_differ_by_less_than_equal_ones_can_do_not_leave():
    """A variant 2 % slower remains, and the race ends by the margin."""
    winner = race(source(1.0, 0.98, sd=0.005, apart=EQUAL))

    assert winner.left == []


def test_an_unknown_metric_is_refused():
    """As that of any claim."""
    with pytest.raises(ConfigError, match="p95"):
        race(source(1.0, 0.5), metric="p95")
