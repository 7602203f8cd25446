"""The length of the rounds, and an arrival rate that is lowered."""

from __future__ import annotations

import dataclasses

import pytest

from pytest_dbcluster.errors import SeriesVoid
from pytest_dbcluster.measuring.drawing.rules import Rules
from pytest_dbcluster.measuring.measurement import Measurement
from pytest_dbcluster.measuring.series import series_of
from pytest_dbcluster.rounds import round_length
from pytest_dbcluster.rounds.open_loop import ArrivalRate
from pytest_dbcluster.rounds.round import RunResult
from tests.rounds.test_metrics import open_loop
from tests.support.fakes import FakeSource, noisy
from tests.support.measurements import measured, measurement, two


@dataclasses.dataclass
class Timed(FakeSource):
    """A source whose rounds last as long as it is told, 2 s at first; ``told`` has the lengths, ``lasted`` each round.

    Their speed hardly varies, so that the shortest rounds are best.
    """

    told: list[float] = dataclasses.field(default_factory=list)
    lasted: list[float] = dataclasses.field(default_factory=list)
    free_length = True

    def __post_init__(self):
        speed, self.seconds = self.seconds, lambda variant: self.told[-1] if self.told else 2.0

        def outcome(variant, seconds):
            self.lasted.append(seconds)
            tenths = tuple(round(100 / speed(variant)) for _ in range(round(seconds * 10)))
            return RunResult(seconds, sum(tenths), good=sum(tenths), by_tenth=tenths)

        self.outcome = outcome

    def set_length(self, length):
        """Write it down."""
        self.told.append(length.seconds)


def test_rounds_last_no_longer_than_their_rules_allow():
    """Noise between rounds that is much smaller than that within them asks for longer ones."""
    source = Timed(("slow", "fast"), noisy(1.0, 0.5, sd=0.2))
    slow, fast = series_of(measurement(source, longest=0.3))
    fast.against(slow)

    assert source.told == [0.3]


def test_the_length_is_chosen_once_from_the_warm_up():
    """All variants and all claims get it, and the message says it; rounds that are given by the test stay."""
    source = Timed(("slow", "fast"), noisy(1.0, 0.5, sd=0.01))
    asked = measurement(source)
    slow, fast = series_of(asked)
    answer = fast.beats(slow)
    assert fast.no_slower_than(slow, by=0.3)
    asked.drawing.draw((0, 1))

    warm_ups = len(source.rounds) - len(measured(source))
    assert source.told == [0.3]
    assert set(source.lasted[:warm_ups]) == {2.0}
    assert set(source.lasted[warm_ups:]) == {0.3}
    assert "\n  rounds of 0.3 s, chosen from the warm-up: noise within a round " in answer.message

    fixed = Timed(("slow", "fast"), noisy(1.0, 0.5, sd=0.01))
    fixed.free_length = False
    series = series_of(measurement(fixed))
    assert series[1].beats(series[0])
    assert (fixed.told, set(fixed.lasted)) == ([], {2.0})


@pytest.mark.parametrize(("rounds", "most"), [(1, 3.0), (3, 1.0)])
def test_rounds_that_are_one_value_share_its_time(monkeypatch, rounds, most):
    """A budget of 120 s has room for 20 pairs, also if each value is three rounds of a fresh cluster."""
    limits, choose = [], round_length.choose
    monkeypatch.setattr(
        round_length, "choose", lambda *given, **more: limits.append(more["most"]) or choose(*given, **more)
    )
    source = type("Fresh", (Timed,), {"rounds_of_value": rounds})(("slow", "fast"), noisy(1.0, 0.5, sd=0.01))
    slow, fast = series_of(measurement(source, budget=120))
    assert fast.beats(slow)

    assert limits == [most]


@dataclasses.dataclass
class Paced:
    """An open loop at a share of the capacity, of which the slower variant can do less than was measured.

    source: of made-up rounds. lowered: why the rate was lowered, each time.
    """

    can: float
    asked: float | str = "70 %"
    lowered: list[str] = dataclasses.field(default_factory=list)
    void: bool = False

    def __post_init__(self):
        self.source = open_loop(1.5, 1.0, number=400)
        found = ArrivalRate.of(self.asked).with_capacities({"slow": 1000.0, "fast": 1500.0})
        self.source.arrival_rate = dataclasses.replace(found, rate=found.rate or 700.0)
        plain = self.source.round

        def one_round(variant, *, block, position):
            done = plain(variant, block=block, position=position)
            rate = self.source.arrival_rate.rate
            late = block >= 0 and variant == 0 and rate > self.can
            good = round(2.0 * (self.can if late else rate))
            offered = good * 2 if late and self.void else good
            outcome = dataclasses.replace(done.outcome, rate=rate, operations=good, good=good, offered=offered)
            return dataclasses.replace(
                done, outcome=outcome, behind=late, void="saturated" if late and self.void else ""
            )

        def lower_rate(why, done):
            found = self.source.arrival_rate.lower(why, done)
            if found:
                self.source.arrival_rate = found
                self.lowered.append(why)
            return found is not None

        self.source.round, self.source.lower_rate = one_round, lower_rate


def test_a_rate_that_is_too_high_is_lowered_once_for_all_and_begun_again():
    """The rounds at the rate that one variant did not keep are dropped, which is said with both rates."""
    paced = Paced(can=600.0)
    asked = Measurement(paced.source, Rules(seed=5))
    slow, fast = series_of(asked)
    answer = fast.beats(slow, metric="p95")

    assert answer
    assert paced.lowered == ["slow fell behind in 4 of 4 rounds"]
    assert {round(done.outcome.rate) for done in (*slow.rounds, *fast.rounds)} == {420}
    assert "\n  open loop: 420/s, lowered from 700/s: slow fell behind in 4 of 4 rounds" in answer.message
    assert "\n  dropped 4 pairs" in answer.message
    assert [done.block for done in slow.rounds[:8]] == [0] * 4 + [1] * 4  # opening blocks again
    assert asked.pairs == len(slow.rounds) == answer.verdict.pairs


@pytest.mark.parametrize(("block", "lowered"), [(0, 1), (2, 0), (4, 0)])
def test_a_rate_is_lowered_before_the_first_look_alone(block, lowered):
    """A look at rounds that are dropped afterwards would have a chance of error of its own, so the rate then stays.

    The first look of a claim comes after two opening blocks, which are blocks 0 and 1: late rounds before it lower the
    rate.
    """
    paced = Paced(can=600.0)
    plain = paced.source.round

    def late_from(variant, **place):
        paced.can = 600.0 if place["block"] >= block else 1e9
        return plain(variant, **place)

    paced.source.round = late_from
    asked = Measurement(paced.source, Rules(seed=5, cap=40))
    slow, fast = series_of(asked)
    fast.beats(slow, by=0.45, metric="p95")

    assert len(paced.lowered) == lowered
    assert bool(asked.drawing.blocks.dropped) is bool(lowered)


def test_a_rate_is_lowered_no_second_time():
    """What the variant cannot follow then either is above its capacity, as before."""
    paced = Paced(can=100.0)
    paced.source.lower_rate, lower = (lambda why, done: lower(why, 650.0)), paced.source.lower_rate
    slow, fast = series_of(Measurement(paced.source, Rules(seed=5)))
    reason = fast.beats(slow, metric="p95").verdict.reason

    assert len(paced.lowered) == 1
    assert reason.startswith("slow fell behind the rate of 455/s in 8 of 8 rounds")


def test_a_rate_in_operations_is_what_the_test_asks_for():
    """It is not lowered; the claim stays open and says so."""
    paced = Paced(can=600.0, asked=700)
    slow, fast = series_of(Measurement(paced.source, Rules(seed=5)))

    assert fast.beats(slow, metric="p95").verdict.reason.startswith("slow fell behind the rate of 700/s in 8 of 8")
    assert paced.lowered == []


def test_a_saturated_rate_is_lowered_before_it_makes_the_series_void():
    """Rounds that did less than was offered are void, and two of them would end the claim."""
    paced = Paced(can=300.0, void=True)
    slow, fast = series_of(Measurement(paced.source, Rules(seed=5)))
    answer = fast.against(slow, metric="p95")

    assert answer
    assert paced.lowered == ["slow fell behind in 2 of 2 rounds"]
    assert {round(done.outcome.rate) for done in slow.rounds} == {210}
    assert list(answer.void) == []


def test_earlier_rounds_of_an_opening_block_count_for_the_rate_too():
    """Two void rounds after three that kept the rate are no reason to lower it, so they end the claim."""
    paced = Paced(can=600.0, void=True)
    plain, drawn = paced.source.round, []

    def one_round(variant, *, block, position):
        done = plain(variant, block=block, position=position)
        if block < 0 or variant != 0:
            return done
        drawn.append(position)
        kept = dataclasses.replace(done.outcome, offered=done.outcome.good)
        return done if len(drawn) in (4, 5) else dataclasses.replace(done, outcome=kept, void="", behind=False)

    paced.source.round = one_round
    slow, fast = series_of(Measurement(paced.source, Rules(seed=5)))
    with pytest.raises(SeriesVoid, match="2 times a round of fake load was void in the first 4 pairs: slow: saturated"):
        fast.against(slow, metric="p95")
    assert paced.lowered == []
    assert len(drawn) == 5


def printed(seconds):
    """A result whose seconds are printed in milliseconds."""
    return RunResult(round(seconds, 3), 100, resolution=0.001)


class Repeating(FakeSource):
    """Rounds of a fixed amount of work, which they run as often as they are told."""

    times = 1

    def set_repeat(self, times):
        """Write it down."""
        self.times = times


def test_rounds_that_are_too_short_for_the_clock_repeat_their_work():
    """The warm-up says how often, for all variants alike, and the message says it; slow rounds run their work once."""
    source = Repeating(("slow", "fast"), noisy(0.02, 0.01, sd=0.001))
    source.outcome = lambda variant, seconds: printed(seconds * source.times)
    asked = measurement(source)
    slow, fast = series_of(asked)
    answer = fast.beats(slow)

    assert asked.drawing.pace.repeat == source.times == 20
    assert min(done.seconds for done in fast.rounds) >= 0.19
    assert "\n  each round ran its work 20 times, to be long enough for the clock of the tool" in answer.message

    slow, fast = series_of(measurement(two()))
    assert "ran its work" not in fast.beats(slow).message
