"""A claim in the midst of whose rounds the run ends, because a lock was waited for in vain: its rounds are kept."""

from __future__ import annotations

from pytest_dbcluster.claims.block_order import Block
from pytest_dbcluster.measuring.measurement import Measurement


def keep_begun(measurement: Measurement) -> int:
    """Count the whole pairs of an interrupted eight, as pairs of later blocks; return how many pairs count then.

    No look comes at such a number of pairs, so they change the estimate and decide nothing.
    """
    block, rounds = measurement.begun
    if not rounds or block.length == 1 or rounds[0].block != len(measurement.blocks):  # such as a warm-up
        return measurement.pairs
    measurement.eights = len(measurement.blocks)
    begun = block.order[: len(rounds)], block.pairs[: len(rounds)], rounds
    for pair in range(block.length):
        mine = [(number, done) for number, its, done in zip(*begun, strict=True) if its == pair]
        if len(mine) == len(measurement.rounds):
            measurement.blocks.append(Block(tuple(number for number, _ in mine), (0,) * len(mine)))
            for number, done in mine:
                measurement.rounds[number].append(done)
    return measurement.pairs
