"""Effects of options: claims from the same rounds, interactions, and what nobody claimed."""

from __future__ import annotations

import dataclasses
import math
import random

import pytest

from pytest_dbcluster.claims.claim import Outcome
from pytest_dbcluster.claims.factorial import design
from pytest_dbcluster.errors import ClaimFailed, ConfigError, Inconclusive
from pytest_dbcluster.measuring.drawing.levels import LevelPlan
from pytest_dbcluster.measuring.drawing.rules import Rules
from pytest_dbcluster.measuring.factorial.effects import Effects
from pytest_dbcluster.measuring.measurement import Measurement
from pytest_dbcluster.rounds.metrics import TooFewOperations
from pytest_dbcluster.rounds.round import Round, RunResult
from tests.support.facts import missing
from tests.support.fakes import FakeSource

LEVELS = {"flush": ("1", "2"), "sync_binlog": ("1", "0"), "io_capacity": ("200", "2000")}
NAMES = tuple(f"{name}={level}" for name, two in LEVELS.items() for level in two)


class LevelSource(FakeSource):
    """Rounds whose seconds depend on the levels of three options."""

    def round(self, variant, *, block, position):
        """A round of a combination."""
        self.rounds.append((variant, block, position))
        number = len(self.rounds)
        void = self.voids[number - 1] if number <= len(self.voids) else ""
        result = RunResult(self.seconds(variant), 100, 100)
        name = design.name_of(variant, 3)
        return Round(name, block, position, result, wall=0.0, started=float(number), void=void)


def effects_of(gains, *, both=0.0, pairs=(), sd=0.03, voids=(), finished=lambda answer: None, **rules):
    """Effects of three options with these log gains, and one more for the second levels of the first two."""
    coin = random.Random(3)

    def seconds(number):
        on = [number >> option & 1 for option in range(3)]
        gain = sum(one * level for one, level in zip(gains, on, strict=True)) + both * on[0] * on[1]
        return math.exp(coin.gauss(0, sd) - gain)

    source = LevelSource(NAMES, seconds, voids=voids)
    alpha = 0.0005 / (3 + len(pairs))
    rules = Rules(**{"seed": 7, "alpha": alpha, "budget": 10_000.0, **rules})
    return source, Effects(Measurement(source, rules, finished=finished, plan=LevelPlan()), LEVELS, pairs)


def test_all_options_are_decided_by_the_same_rounds():
    """A claim about another option draws only what is missing."""
    source, effects = effects_of([0.5, 0.0, -0.2])
    fast = effects["flush"].beats(by=0.05)
    rounds = len(source.rounds)

    assert fast
    assert fast.verdict.pairs == 16
    assert effects["sync_binlog"].same_as(within=0.1)
    with pytest.raises(ClaimFailed, match="REFUTED: io_capacity=2000 is not faster than io_capacity=200"):
        bool(effects["io_capacity"].beats())
    assert effects["io_capacity"].measurement.pairs <= 40
    assert len(source.rounds) >= rounds
    assert source.checks


def test_a_message_names_levels_pairs_and_the_error():
    """The levels of one option, its rounds of each level, and alpha shared by the options."""
    _, effects = effects_of([0.5, 0.0, 0.0])
    answer = effects["flush"].beats(by=0.05)

    facts = (
        "HOLDS: flush=2 is more than 5 % faster than flush=1; measured 1.6",
        "99.97 % interval",
        "16 pairs in ",
        "medians flush=2 ",
        "wrong at most 1 time in 6000",
        'effects["flush"].beats(by=0.05)   metric throughput',
        "look 1 of 14",
        "a note on flush=2 and flush=1",
    )
    assert missing(answer.message, *facts) == []
    assert [len(one.rounds) for one in answer.variants] == [16, 16]


def test_an_effect_without_a_claim_is_shown_after_the_test():
    """The results have all effects, each once."""
    shown = []
    _, effects = effects_of([0.5, 0.0, 0.0], finished=shown.append)
    assert effects["flush"].beats()
    effects["flush"].measurement.end()

    assert [(answer.text, answer.asserted) for answer in shown] == [
        ('effects["flush"].beats()', True),
        ("sync_binlog=0 against sync_binlog=1", False),
        ("io_capacity=2000 against io_capacity=200", False),
    ]
    assert {answer.verdict.pairs for answer in shown} == {16}


def test_a_round_without_operations_is_an_error_that_says_so(monkeypatch):
    """Its logarithm is infinite, and the sums over all rounds need finite ones."""
    source, effects = effects_of([0.5, 0.0, 0.0])
    ordinary = source.round

    def one_without(variant, *, block, position):
        done = ordinary(variant, block=block, position=position)
        outcome = RunResult(done.outcome.seconds, 0, 100)
        return dataclasses.replace(done, outcome=outcome) if (block, position) == (1, 2) else done

    monkeypatch.setattr(source, "round", one_without)
    with pytest.raises(TooFewOperations) as caught:
        effects["flush"].beats()

    assert missing(str(caught.value), "throughput", "1 of ", "longer rounds") == []


def test_a_later_effect_was_not_chosen_by_the_rounds():
    """The options share the error from the begin, so no line warns of it."""
    _, effects = effects_of([0.5, 0.4, 0.0])
    assert effects["flush"].beats()

    assert "drawn before this claim" not in effects["sync_binlog"].beats().message


def test_an_interrupt_shows_no_other_effect():
    """Its evidence might start servers."""
    shown = []
    _, effects = effects_of([0.5, 0.0, 0.0], finished=shown.append)
    assert effects["flush"].beats()
    effects["flush"].measurement.end(interrupted=True)

    assert [answer.asserted for answer in shown] == [True]


def test_a_continued_run_takes_over_what_was_only_shown():
    """It draws no round, and shows no effect again. Without rounds there are no interactions."""
    shown = []
    _, effects = effects_of([0.5, 0.0, 0.0], finished=shown.append)
    assert effects["flush"].beats()
    effects["flush"].measurement.end()
    earlier = {answer.question.variants: answer for answer in shown}
    source, again = effects_of([0.5, 0.0, 0.0])
    measurement = again["flush"].measurement
    measurement.recall = lambda question: earlier.pop(question.variants, None)
    assert again["flush"].beats()
    assert again.interactions() == []
    measurement.end()

    assert (source.rounds, earlier) == ([], {})


def test_a_rate_that_a_combination_does_not_keep_is_lowered():
    """Each void round has a level of every option."""
    _source, effects = effects_of([0.5, 0.0, 0.0])
    blocks = effects["flush"].measurement.drawing.blocks
    void = Round(design.name_of(5, 3), 0, 0, RunResult(1.0, 100, 100), wall=0.0, started=1.0, void="saturated")

    assert [NAMES[number] for number in range(6) if blocks.has(void, number)] == [
        "flush=2",
        "sync_binlog=1",
        "io_capacity=2000",
    ]


def test_no_round_shows_nothing():
    """A test that made no claim has no effects."""
    source, effects = effects_of([0.5, 0.0, 0.0])
    effects["flush"].measurement.end()

    assert (source.rounds, effects["flush"].measurement.claims.answers) == ([], [])
    with pytest.raises(ConfigError, match="no round is drawn yet"):
        effects.interactions()


def test_a_planned_interaction_can_be_claimed():
    """The gain of one option at both levels of the other; its rounds are those of the effects."""
    source, effects = effects_of([0.3, 0.2, 0.0], both=0.4, pairs=[("flush", "sync_binlog")])
    answer = effects["flush", "sync_binlog"].beats(by=0.05)

    assert answer
    assert answer.verdict.ratio == pytest.approx(math.exp(0.4), rel=0.1)
    first = "HOLDS: the gain of flush=2 over flush=1 is more than 5 % larger with sync_binlog=0 than with sync_binlog=1"
    assert missing(answer.message, first, f"{answer.verdict.pairs} pairs in ") == []
    assert [one.name for one in answer.contrast] == ["flush=2", "flush=1"]
    assert len([one for one in source.rounds if one[1] >= 0]) == 2 * answer.verdict.pairs


def test_other_interactions_are_only_shown():
    """All pairs have an estimate, the largest first, and say if they were named."""
    _, effects = effects_of([0.3, 0.2, 0.0], both=0.4, pairs=[("io_capacity", "flush")])
    assert effects["flush"].beats()
    found = effects.interactions()

    assert found[0].options == ("flush", "sync_binlog")
    assert {one.options: one.claimed for one in found} == {
        ("flush", "sync_binlog"): False,
        ("flush", "io_capacity"): True,
        ("sync_binlog", "io_capacity"): False,
    }
    assert str(found[0]).endswith("; only shown: its pair was not named before")
    with pytest.raises(ConfigError, match="name the pair before"):
        effects["flush", "sync_binlog"]


def test_an_unknown_option_is_an_error_with_the_names():
    """It lists those of the measurement."""
    _, effects = effects_of([0.0, 0.0, 0.0])

    assert (list(effects), len(effects)) == (list(LEVELS), 3)
    with pytest.raises(ConfigError, match="did you mean sync_binlog"):
        effects["sync_binlg"]


def test_a_budget_that_ends_leaves_a_claim_open():
    """The message says how many pairs would decide."""
    _, effects = effects_of([0.06, 0.0, 0.0], sd=0.1, budget=50.0)
    answer = effects["flush"].beats(by=0.05)

    with pytest.raises(Inconclusive, match="budget of 50 s"):
        bool(answer)
    assert answer.verdict.outcome is Outcome.INCONCLUSIVE
    assert answer.verdict.needed_pairs > answer.verdict.pairs


def test_a_void_round_runs_again_in_its_place():
    """It counts for no level, and the block stays as it was drawn."""
    source, effects = effects_of([0.5, 0.0, 0.0], voids=("", "", "", "", "", "", "a switch failed"))
    answer = effects["flush"].beats()

    assert answer
    counted = [one for one in source.rounds if one[1] >= 0]
    assert len(counted) == 2 * answer.verdict.pairs + 1
    assert sum(answer.verdict.void) == len(answer.void) == 1
