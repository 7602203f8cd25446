"""Claims that a loss fades: the ratio of two ratios, with an order of its own drawn for each."""

import itertools
import math
import random
from collections import Counter

import pytest

from benchmarks import fades as simulated
from benchmarks.critical_values import rank_tails
from pytest_dbcluster.claims import critical_values, intervals, kinds, power
from pytest_dbcluster.claims.block_order import OPENINGS, PER_OPENING, blocks
from pytest_dbcluster.claims.claim import Outcome
from pytest_dbcluster.claims.pairs import Pairs, of_losses
from pytest_dbcluster.claims.verdict import Terms, judge, replay
from pytest_dbcluster.errors import ConfigError

LOOK = 17  # pairs of the first look that speaks
COUNTED = 14  # pairs of the look of which all orders are counted: a guard's
ALPHA = 0.0005


def made(pairs, *, kept=(0.2, 0.4), sd=0.05, seed=1, **changes):
    """Four variants in a drawn order. kept: what the first and the second workload keep over the distance."""
    source = random.Random(seed)
    where = simulated.places(pairs, seed)
    times = [source.gauss(0, sd) for _ in range(4 * (pairs + 16))]
    found = simulated.losses(times, where, (math.log(kept[0]), math.log(kept[1])))
    return of_losses(*(part_with(part, changes) for part in found.parts)) if changes else found


def part_with(part, changes):
    """One of the two comparisons, with these fields."""
    return Pairs(**{**{name: getattr(part, name) for name in ("candidate", "baseline", "baseline_first")}, **changes})


def test_the_second_loss_is_compared_with_the_first():
    """The ratio is what the second workload keeps / what the first one keeps."""
    found = judge(kinds.fades(), made(LOOK, sd=0.001))

    assert found.outcome is Outcome.HOLDS
    assert found.ratio == pytest.approx(2, rel=0.01)
    assert found.low < 2 < found.high
    assert judge(kinds.fades(0.9), made(LOOK, sd=0.001)).outcome is Outcome.HOLDS
    assert judge(kinds.fades(1.1), made(LOOK, sd=0.001)).outcome is Outcome.FAILS
    assert judge(kinds.fades(), made(LOOK, kept=(0.4, 0.2), sd=0.001)).outcome is Outcome.FAILS


def test_no_look_comes_before_17_blocks():
    """The looks inside the opening blocks compare rounds of several pairs, so they say nothing."""
    clear = made(160, sd=1e-6)

    for count in range(LOOK):
        assert judge(kinds.fades(), clear.first(count)) is None
        assert intervals.interval(clear.first(count), ALPHA) == intervals.UNBOUNDED
        assert power.detectable(clear.first(count), ALPHA) == math.inf
    assert judge(kinds.fades(), clear.first(LOOK)).outcome is Outcome.HOLDS
    assert judge(kinds.fades(), clear.first(8), Terms(out_of_budget="budget")).needed_pairs == LOOK


NOISES = {
    "independent": lambda source, place: source.gauss(0, 1),
    "no mean": lambda source, place: math.tan(math.pi * (source.random() - 0.5)),
    "growth": lambda source, place: 0.3 * place,
    "a wave": lambda source, place: float(place % 4 < 2) + source.gauss(0, 0.01),
    "the second round is slower": lambda source, place: place % 2 + source.gauss(0, 0.01),
    "stalls": lambda source, place: 3.0 * (source.random() < 0.1) + source.gauss(0, 0.01),
}


@pytest.mark.parametrize("name", NOISES)
def test_a_wrong_verdict_is_as_rare_as_counted_whatever_the_noise_and_the_loss(name):
    """Of all 2 ** 14 orders with both coins of a pair flipped, a look rejects at most what the table says.

    The reverse of an order has the answers above and below exchanged, so half of the orders are counted.
    """
    source = random.Random(name)
    noise = [[NOISES[name](source, 4 * pair + place) for place in range(2)] for pair in range(2 * COUNTED)]
    products = [source.choice((1, -1)) for _ in range(COUNTED)]  # whether both pairs of a block have the same coin
    kept = math.log(0.21)  # both workloads lose the same, and the test is not told how much

    def rounds_of(workload, pair, coin):
        """The speeds far and near of one pair of a workload, and whether near ran first."""
        first, second = noise[2 * pair + workload]
        near, far = (first, second) if coin > 0 else (second, first)
        return -far + kept, -near, coin > 0

    either = [
        [(*rounds_of(1, pair, sign), *rounds_of(0, pair, sign * product)) for sign in (1, -1)]
        for pair, product in enumerate(products)
    ]

    def answers(order):
        """Whether a look rejects (above, below) in this order."""
        columns = tuple(zip(*order, strict=True))
        return intervals.rejects(of_losses(Pairs(*columns[:3]), Pairs(*columns[3:])), 0.05, 0.0)

    found = [answers((either[0][0], *order)) for order in itertools.product(*either[1:])]
    reversed_order = itertools.product(*(pair[::-1] for pair in either[1:]))
    for there, order in itertools.islice(zip(found, reversed_order, strict=True), 0, None, 50):
        assert answers((either[0][1], *order)) == there[::-1]
    most = rank_tails(COUNTED)[critical_values.boundary(0.05).at(COUNTED)]
    assert 0 < sum(map(sum, found)) <= most


def test_the_coins_of_both_workloads_are_fair_and_independent():
    """In an opening block of four variants all 16 patterns of two coins in two pairs come equally often."""
    found = Counter()
    for seed in range(4000):
        block = next(blocks(4, seed))
        place = {one: number for number, one in enumerate(zip(block.pairs, block.order, strict=True))}
        found[tuple(place[pair, near] < place[pair, near + 1] for pair in (0, 1) for near in (0, 2))] += 1
    square = sum((found[pattern] - 250) ** 2 / 250 for pattern in itertools.product((True, False), repeat=4))

    assert square < 37.7  # of chi-square with 15 degrees of freedom: .001
    assert PER_OPENING * OPENINGS < LOOK


def test_what_is_seen_at_the_first_looks_is_seen_with_power_8():
    """Fresh rounds with the difference that others of the same noise could see decide in .8 of the runs."""
    for blocks_drawn in (LOOK, 20):
        assert 0.65 < simulated.could_see(blocks_drawn, 200, seed=5) < 0.9


def test_the_error_is_held_under_each_kind_of_noise():
    """A small simulation: the level .05 is kept, all looks together, and .0005 rejects nothing."""
    import numpy as np

    for name in ("normal", "stalling", "drifting", "wave of 4"):
        claim, strict, guard = simulated.rejections(simulated.CHECKED[name], 200, np.random.default_rng(3))
        assert (claim, strict) == (0, 0)
        assert guard <= 25


def test_claims_that_are_asked_second_get_the_same_verdict():
    """Looks are replayed one by one."""
    pairs = made(60, sd=0.1)
    first = next(verdict for count in range(61) if (verdict := judge(kinds.fades(), pairs.first(count), Terms(cap=60))))

    assert replay(kinds.fades(), pairs, Terms(cap=60)) == first


def test_void_rounds_of_either_workload_must_not_depend_on_the_variant():
    """The void rounds of one workload do not make up for those of the other."""
    far = ((2, True), (3, True), (5, True))
    unlike = made(LOOK, sd=0.001, void=far)

    assert judge(kinds.fades(), unlike) is None
    assert "3 of the candidate and 0 of the baseline" in judge(kinds.fades(), unlike, Terms(cap=LOOK)).reason
    assert unlike.first(3).void_rounds() == (0, 1)


def test_printed_times_blur_both_ratios():
    """The rounding errors of all four rounds add up."""
    assert made(LOOK, rounding=(0.01,) * LOOK).blur == pytest.approx(0.02)
    after, before = made(LOOK).parts
    assert of_losses(part_with(after, {"rounding": (0.01,) * LOOK}), before).blur == pytest.approx(0.01)


@pytest.mark.parametrize(("by", "said"), [(-0.1, "-0.1"), (2, "2"), ("much", "'much'")])
def test_a_wrong_margin_is_refused(by, said):
    """It is a fraction below 2, as for ``beats``."""
    with pytest.raises(ConfigError, match=rf"^fades\(by={said}\): by "):
        kinds.fades(by)


def test_a_claim_is_written_with_the_first_pair_first():
    """The margin and another metric follow."""
    names = ("one", "one_far", "many", "many_far")

    assert kinds.fades().call(names, "throughput") == "fades((one, one_far), (many, many_far))"
    assert kinds.fades(0.5).call(names, "p95") == 'fades((one, one_far), (many, many_far), by=0.5, metric="p95")'
    assert critical_values.RANKS_FROM == COUNTED
