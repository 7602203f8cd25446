"""Estimate and interval of an effect: exact, by enumeration of all draws of the option's own levels."""

from __future__ import annotations

import itertools
import math
import random

import pytest

from pytest_dbcluster.claims.factorial import chances, contrasts, design
from pytest_dbcluster.claims.factorial.trial import FactorialTrial

ARRANGEMENTS = list(itertools.combinations(range(8), 4))


def trial_of(effects, blocks, *, sd=0.03, seed=1, interaction=0.0, drift=0.0):
    """Rounds whose log speed is the sum of the effects of the options at their second level, and noise."""
    coin, drawn = random.Random(seed), itertools.islice(design.blocks(len(effects), seed), blocks)
    combinations = [number for block in drawn for number in block.order]
    logs = []
    for place, number in enumerate(combinations):
        on = [number >> option & 1 for option in range(len(effects))]
        both = interaction * on[0] * on[1] if interaction else 0.0
        log = sum(effect * level for effect, level in zip(effects, on, strict=True)) + both + drift * place
        logs.append(log + coin.gauss(0, sd))
    return FactorialTrial(tuple(logs), tuple(combinations), len(effects))


def with_levels(trial, option, blocks):
    """The same rounds with other levels of one option: in each block the places of its second level."""
    combinations = list(trial.combinations)
    for number, places in enumerate(blocks):
        for place in range(8):
            at = 8 * number + place
            combinations[at] = (combinations[at] & ~(1 << option)) | ((place in places) << option)
    return FactorialTrial(trial.logs, tuple(combinations), trial.options)


@pytest.mark.parametrize("most", [0, 1, 3])
def test_every_draw_of_the_own_levels_is_counted(most):
    """Of all 4900 draws in two blocks, as many reject as the distribution says. The values are any numbers."""
    trial = trial_of([0.7, 0.0, -0.4], 2, sd=0.3, interaction=0.5)
    rejected = 0
    for blocks in itertools.product(ARRANGEMENTS, repeat=2):
        effect = contrasts.of(with_levels(trial, 1, blocks), 1)
        values = [value for value, _ in effect.comparisons]
        rejected += sum(value <= 0 for value in values) <= most

    assert rejected == chances.ways(((4, 4), (4, 4)))[most]


def test_residuals_do_not_depend_on_the_own_levels():
    """A new draw of them leaves all residuals as they are, so only the labels change."""
    trial = trial_of([0.2, 0.1, 0.3], 3)
    other = with_levels(trial, 1, [(0, 1, 2, 3)] * 3)
    before, after = (one.residuals(one.logs, [0, 2], one.strata()) for one in (trial, other))

    assert trial.combinations != other.combinations
    assert before == after


def test_ties_never_reject():
    """Equal values are no evidence, in either direction."""
    trial = trial_of([0.0, 0.0], 6, sd=0.0)

    assert contrasts.of(trial, 0).interval(0.05) == (0.0, 0.0)
    assert contrasts.first_kept([(0.0, 1.0)] * 16, 3) <= 0.0


def test_the_interval_moves_with_the_effect():
    """A value added at the second level is added to the estimate and to both ends."""
    plain, moved = trial_of([0.3, 0.0, 0.1], 8), trial_of([0.3, 0.25, 0.1], 8)
    before, after = contrasts.of(plain, 1), contrasts.of(moved, 1)

    assert after.estimate == pytest.approx(before.estimate + 0.25)
    assert after.interval(0.0001) == pytest.approx([end + 0.25 for end in before.interval(0.0001)])


def test_the_interval_has_the_values_that_the_test_does_not_reject():
    """Compared with the test itself at a grid of values."""
    trial, level = trial_of([0.3, -0.1, 0.0, 0.05], 5, sd=0.05), 0.01
    low, high = contrasts.of(trial, 1).interval(level)
    most = chances.critical_value([(4, 4)] * 5, chances.at_look(level))
    for step in range(-200, 200):
        value = 0.002 * step + 0.0007
        logs = tuple(log - value * trial.level(1, place) for place, log in enumerate(trial.logs))
        left = contrasts.of(FactorialTrial(logs, trial.combinations, 4), 1).comparisons
        above, below = (sum(sign * difference <= 0 for difference, _ in left) <= most for sign in (1, -1))
        assert above is (value < low)
        assert below is (value > high)


def test_a_comparison_that_turns_back_widens_the_interval():
    """With few rounds and many options a step may be negative; no value that is not rejected is left out."""
    steps = [(1.0, 1.0), (2.0, 1.0), (3.0, 1.0), (-0.75, -0.5)]

    assert contrasts.first_kept(steps, 1) == 1.0  # without the last one it would be 2
    assert contrasts.first_kept([(0.5, -0.5)] * 2, 1) == -math.inf
    assert contrasts.first_kept(steps, 4) == math.inf


def test_other_options_do_not_blur_an_effect():
    """Effects a hundred times as large as the noise leave the interval of a small one narrow."""
    low, high = contrasts.of(trial_of([3.0, 0.05, -2.0, 1.0], 12, sd=0.01), 1).interval(0.0001)

    assert 0 < low < 0.05 < high < 0.1


def test_the_interaction_is_the_difference_of_both_effects():
    """Its interval allows any effect of either option, and excludes none without an interaction."""
    found = contrasts.of(trial_of([0.5, 0.4, 0.1], 20, interaction=0.3), 0, 1)
    none = contrasts.of(trial_of([0.5, 0.4, 0.1], 20), 0, 1)

    assert found.estimate == pytest.approx(0.3, abs=0.05)
    assert found.interval(0.0005)[0] > 0
    assert none.interval(0.0005)[0] < 0 < none.interval(0.0005)[1]


def test_too_few_rounds_have_no_interval():
    """Nor has an option whose levels never meet."""
    trial = trial_of([0.5, 0.0], 1)

    assert contrasts.of(trial, 0).interval(0.0001) == (-math.inf, math.inf)
    assert math.isnan(contrasts.effect(trial, 0, [], [[0]]).estimate)
