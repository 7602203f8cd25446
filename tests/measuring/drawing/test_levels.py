"""The blocks of a measurement of options: each round has a level of every option."""

from __future__ import annotations

import dataclasses

from pytest_dbcluster.claims.factorial import design
from pytest_dbcluster.measuring.drawing.levels import LevelBlocks, LevelPlan
from pytest_dbcluster.rounds.round import Round, RunResult

NAMES = ("a=1", "a=2", "b=1", "b=2", "c=1", "c=2")


def run(block, number):
    """The rounds of a block, each a second long."""
    return [
        Round(design.name_of(one, 3), number, place, RunResult(1.0, 100), wall=0.0, started=float(place))
        for place, one in enumerate(block.order)
    ]


def drawn(blocks=2):
    """Blocks that have run."""
    made = LevelPlan().begin(NAMES, 7)
    for number in range(blocks):
        block = made.upcoming()
        made.count(block, run(block, number))
    return made


def test_every_round_counts_for_a_level_of_each_option():
    """Four rounds of each level in a block, in the order in which they ran."""
    made = drawn()

    assert isinstance(made, LevelBlocks)
    assert [len(rounds) for rounds in made.rounds] == [8] * 6
    assert (made.pairs, made.next_pairs, made.options) == (8, 4, 3)
    for number, rounds in enumerate(made.rounds):
        assert all(made.has(done, number) and not made.has(done, number ^ 1) for done in rounds)
        assert [(done.block, done.position) for done in rounds] == sorted(
            (done.block, done.position) for done in rounds
        )


def test_seconds_and_rounds_count_once():
    """Whatever options a claim is about."""
    made = drawn()

    assert made.seconds((1, 0)) == made.seconds((5, 4)) == 16.0
    assert [(done.block, done.position) for done in made.in_order] == [(n // 8, n % 8) for n in range(16)]
    assert made.concerns(6, (1, 0))
    assert [len(rounds) for rounds in made.ran_among((3, 2))] == [0, 0, 8, 8, 0, 0]


def test_a_warm_up_has_a_round_of_each_level():
    """Its two rounds share no level."""
    made = drawn(0)
    block = next(made.warm_up_order())
    rounds = made.by_variant(run(block, -5))

    assert len(rounds) == 6
    assert all(made.has(done, number) for number, done in enumerate(rounds))
    assert made.in_turn == 2


def test_a_void_round_is_one_of_a_level():
    """It comes with the rounds of each level before its block."""
    made = drawn()
    block = made.upcoming()
    lost = dataclasses.replace(run(block, 2)[0], void="a new primary")
    made.void.append([lost])

    assert made.void_rounds(1, 0) == ((8, made.has(lost, 1)),)
    assert made.void_rounds(3, 2) == ((8, made.has(lost, 3)),)
    assert made.void_within(12) == [[lost]]
    assert made.void_within(8) == []


def test_a_part_of_a_block_does_not_count():
    """An interrupted block is left out, and there is no other kind of block."""
    made = drawn()
    block = made.upcoming()
    made.count_whole_pairs(block, run(block, 2)[:6])
    made.leave_out_openings()

    assert made.pairs == 8
    assert len(made.upcoming().order) == 8


def test_a_new_beginning_draws_other_levels():
    """All rounds are dropped."""
    made, same = drawn(), drawn()
    before = made.counted[0]
    made.begin_again()

    assert (made.pairs, made.dropped) == (0, 8)
    assert same.counted[0] == before
    assert made.upcoming() != before
