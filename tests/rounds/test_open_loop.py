"""The rate of an open loop: how it is written, where a share comes from, and when a round fell behind it."""

from __future__ import annotations

import itertools

import pytest

from pytest_dbcluster.errors import ConfigError, Inconclusive, SeriesVoid
from pytest_dbcluster.measuring.drawing.rules import Rules
from pytest_dbcluster.measuring.measurement import Measurement
from pytest_dbcluster.measuring.series import series_of
from pytest_dbcluster.rounds import open_loop as rates
from pytest_dbcluster.rounds.open_loop import ArrivalRate
from pytest_dbcluster.rounds.round import Round, RunResult
from pytest_dbcluster.workloads.sysbench import SysBench
from tests.rounds.test_metrics import open_loop
from tests.support import golden
from tests.support.facts import missing


@pytest.mark.parametrize(("asked", "share"), [("70 %", 0.7), ("70%", 0.7), (" 12.5 % ", 0.125), (500, None)])
def test_a_rate_is_a_number_or_a_share(asked, share):
    """Of what the slowest variant can do."""
    assert rates.share_of(asked) == share


@pytest.mark.parametrize("asked", ["70", "%", "0 %", "101 %", "-5 %", 0, -1, float("nan"), float("inf"), True, None])
def test_what_is_no_rate_is_refused(asked):
    """The error says both ways."""
    with pytest.raises(ConfigError) as caught:
        rates.share_of(asked)
    facts = (f"rate={asked!r}: ", "operations a second above 0", 'such as "70 %"')
    assert missing(caught.value, *facts) == []


def test_a_closed_loop_has_no_pace():
    """And an absolute rate needs no capacity."""
    assert ArrivalRate.of(None) is None
    assert ArrivalRate.of(500) == ArrivalRate(500, 500.0)
    assert "500/s" in ArrivalRate.of(500).line
    assert ArrivalRate.of("70 %").rate is None


@pytest.mark.parametrize("asked", [0.7, 0.05])
def test_a_fraction_is_no_share(asked):
    """Nobody measures less than one operation a second: the error writes the share that was meant."""
    with pytest.raises(ConfigError) as caught:
        ArrivalRate.of(asked)
    assert f'rate="{100 * asked:g} %"' in str(caught.value)


def test_a_measured_rate_may_be_small():
    """A share of a slow variant may be less than one operation a second."""
    assert ArrivalRate.of("70 %").with_capacities({"one": 1.0}).rate == pytest.approx(0.7)
    assert SysBench(rate="70 %").at_rate(0.7).rate == 0.7


def test_the_slowest_variant_sets_the_rate_of_all():
    """The result says the rate, the share, and what each can do."""
    found = ArrivalRate.of("70 %").with_capacities({"one": 1000.0, "other": 800.0})

    assert found.rate == pytest.approx(560)
    assert [fact for fact in ("560/s", "70 %", "(one 1000/s, other 800/s)") if fact not in found.line] == []


def test_a_rate_that_was_asked_for_stays_and_has_a_share():
    """The result says both; a share just above the limit does not read as the limit."""
    found = ArrivalRate.of(500).with_capacities({"one": 1000.0, "other": 800.0})

    assert (found.rate, found.of_capacity) == (500.0, 0.625)
    assert [fact for fact in ("500/s", "62.5 %", "(one 1000/s, other 800/s)") if fact not in found.line] == []
    assert (ArrivalRate.of(500).of_capacity, ArrivalRate.of("70 %").of_capacity) == (None, 0.7)
    assert [rates.percent(share) for share in (0.7, 0.70001, 0.62)] == ["70 %", "70.1 %", "62 %"]


def test_a_share_is_lowered_once():
    """To its share of what the slowest did at the rate, and at least by a tenth."""
    found = ArrivalRate.of("70 %").with_capacities({"one": 1000.0, "other": 800.0})
    lower = found.lower("other fell behind in 3 of 4 rounds", 500.0)

    assert lower.rate == pytest.approx(350)
    assert "350/s, lowered from 560/s: other fell behind in 3 of 4 rounds" in lower.line
    assert lower.lower("again", 100.0) is None
    assert found.lower("why", 790.0).rate == pytest.approx(504)
    assert ArrivalRate.of(500).lower("why", 100.0) is None
    assert ArrivalRate.of("70 %").lower("why", 100.0) is None


def test_golden_lines_about_open_loops():
    """They are those of the golden file."""
    share, number = (ArrivalRate.of(asked).with_capacities({"one": 1000.0, "other": 800.0}) for asked in ("70 %", 500))
    golden.compare(
        "open_loop",
        {
            "not measured yet": ArrivalRate.of("70 %").line,
            "without capacities": ArrivalRate.of(500).line,
            "share": share.line,
            "operations a second": number.line,
            "lowered": share.lower("other fell behind in 3 of 4 rounds", 500.0).line,
            "not a rate": golden.message_of(rates.share_of, "fast"),
            "a fraction": golden.message_of(ArrivalRate.of, 0.7),
            "saturated": rates.saturation(RunResult(2.0, 80, good=80, rate=50.0, offered=100)),
            "above the capacity": rates.above_capacity([paced(90, behind=True)] * 6),
        },
    )


def paced(done, *, behind=False, offered=None):
    """A round of an open loop of 2 s at 50/s that did so many operations."""
    outcome = RunResult(2.0, done, good=done, rate=50.0, offered=offered or done)
    return Round("a", 0, 0, outcome, 2.0, 0.0, behind=behind)


def test_a_rate_is_too_high_when_most_rounds_do_not_keep_it():
    """By falling behind, or by doing less than was offered; a few rounds are stalls, and two are too few to know."""
    late, full, short = paced(90, behind=True), paced(100), paced(80, offered=100)

    reason, most = rates.too_high([late, late, short])
    assert (missing(reason, "a fell behind", "3 of 3 rounds"), most) == ([], 42.5)
    assert rates.too_high([late, late, short, full, full, full]) == ("", 0.0)
    assert rates.too_high([late, late]) == ("", 0.0)
    reason, most = rates.too_high([late, late], least=2)
    assert (missing(reason, "a fell behind", "2 of 2 rounds"), most) == ([], 45.0)
    assert rates.too_high([]) == ("", 0.0)


def drawn(speeds, voids=()):
    """A way to draw rounds of so many operations in a second, and what was drawn."""
    seen, void = [], list(voids)

    def draw(number, block, position):
        seen.append((number, block, position))
        speed = speeds[number].pop(0)
        return Round("v", block, position, RunResult(1.0, speed), 0.0, 0.0, void=void.pop(0) if void else "")

    return draw, seen


def test_capacity_is_what_a_variant_does_in_three_of_four_rounds():
    """Blocks alternate the variants; those before are a warm-up, which ends when blocks stop getting faster."""
    draw, seen = drawn({0: [1, 100, 101, 98, 100, 102, 99, 96, 100], 1: [1, 200, 201, 200, 200, 200, 200, 200, 200]})
    found = rates.capacities(["a", "b"], itertools.cycle([(0, 1), (1, 0)]), draw)

    assert found == {"a": 98.25, "b": 200}
    assert [number for number, _, _ in seen] == [0, 1, 1, 0] * 4 + [0, 1]
    assert [block for _, block, _ in seen] == [block for block in range(9) for _ in range(2)]


def test_a_capacity_that_varies_is_measured_for_longer():
    """Twelve blocks at most; its lower quartile is far below its middle, so that a share of it is kept."""
    draw, seen = drawn({0: [100, 100, *[60, 100, 100, 140] * 9]})
    found = rates.capacities(["a"], itertools.repeat((0,)), draw)

    assert found == {"a": 90.0}
    assert len(seen) == 2 + 12


def test_a_warm_up_of_the_capacity_ends():
    """A load that keeps getting faster warms up for five blocks."""
    draw, seen = drawn({0: [1, 2, 4, 8, 16, *[32] * 6]})

    assert rates.capacities(["a"], itertools.repeat((0,)), draw) == {"a": 32}
    assert len(seen) == 11


def test_a_void_round_says_nothing_of_capacity():
    """It is drawn again, twice at the most."""
    draw, _ = drawn({0: [100] * 9}, voids=["the primary changed"])
    assert rates.capacities(["a"], itertools.repeat((0,)), draw) == {"a": 100}

    draw, _ = drawn({0: [100] * 9}, voids=["the primary changed"] * 9)
    with pytest.raises(SeriesVoid, match=r"^the capacity of a could not be measured: the primary changed$"):
        rates.capacities(["a"], itertools.repeat((0,)), draw)


def test_nothing_has_no_share():
    """A load that did nothing in a closed loop can keep no rate."""
    draw, _ = drawn({0: [100] * 9, 1: [0] * 9})

    with pytest.raises(SeriesVoid, match=r"^b did nothing in a closed loop"):
        rates.capacities(["a", "b"], itertools.repeat((0, 1)), draw)


def test_a_round_that_did_less_than_was_offered_is_saturated():
    """Exactly where the load counts what it offered."""
    full = RunResult(2.0, 980, good=951, rate=500.0, offered=1000)

    assert rates.saturation(full) == ""
    reason = rates.saturation(RunResult(2.0, 980, good=949, rate=500.0, offered=1000))
    assert missing(reason, "saturated", "949 of 1000 operations done", "500/s", "less than 95 %") == []
    assert rates.saturation(RunResult(2.0, 1)) == ""


def test_chance_alone_saturates_nothing():
    """Starts at random are 200 in a round on average, and 157 now and then; half of them are not chance."""
    assert rates.saturation(RunResult(2.0, 157, rate=100.0)) == ""
    assert rates.saturation(RunResult(2.0, 100, rate=100.0)).startswith("saturated: 100 of 200 operations done")


@pytest.mark.parametrize(("seconds", "late"), [(2.0, False), (2.1, False), (2.2, True)])
def test_a_round_that_needs_longer_than_its_time_is_behind(seconds, late):
    """What was offered in 2 s was done, but at less than 95 % of that speed; a closed loop has nothing to follow."""
    assert rates.is_behind(RunResult(seconds, 100, rate=50.0), 2.0) is late
    assert rates.is_behind(RunResult(seconds, 100), 2.0) is False


@pytest.mark.parametrize(("delay", "late"), [(0.0, False), (0.1, False), (0.2, True)])
def test_the_last_starts_say_whether_a_round_is_behind(delay, late):
    """One slow operation that began in time and ended long after is no queue that grows."""
    assert rates.is_behind(RunResult(3.0, 100, rate=50.0, delay=delay), 2.0) is late


def claims_of(late):
    """A measurement in whose rounds the slower variant is behind where ``late`` says so of a round's number."""
    source, number = open_loop(1.5, 1.0), itertools.count()
    plain = source.round

    def one_round(variant, *, block, position):
        done = plain(variant, block=block, position=position)
        object.__setattr__(done, "behind", variant == 0 and late(next(number)))
        return done

    source.round = one_round
    return series_of(Measurement(source, Rules(seed=5)))


def test_a_tail_is_not_claimed_above_capacity():
    """A variant that is behind in most rounds cannot keep the rate, so its tail is inconclusive at once."""
    slow, fast = claims_of(lambda number: number % 3 > 0)
    answer = fast.beats(slow, metric="p95")

    with pytest.raises(
        Inconclusive, match=r"-> slow fell behind the rate of 150/s in \d of 8 rounds, so the rate is above "
    ):
        bool(answer)
    assert answer.verdict.pairs == 8


def test_a_speed_above_capacity_is_what_it_is():
    """Behind or not, so many operations were done."""
    slow, fast = claims_of(lambda number: number % 3 > 0)

    assert fast.no_slower_than(slow, by=0.1)


def test_a_stall_is_part_of_a_tail():
    """A round that fell behind once in a while counts with its latencies."""
    slow, fast = claims_of(lambda number: number % 3 == 0)

    assert fast.beats(slow, metric="p95")
