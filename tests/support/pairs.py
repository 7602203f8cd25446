"""Pairs of rounds with made-up log ratios, in orders as a measurement draws them."""

from __future__ import annotations

from itertools import islice

from pytest_dbcluster.claims.block_order import OPENINGS, blocks
from pytest_dbcluster.claims.pairs import Pairs


def placed(seed=1, pairs=160, openings=OPENINGS):
    """For each pair of a measurement of two variants with this seed: its block, and the places of both its rounds."""
    found = []
    for number, block in enumerate(islice(blocks(2, seed, openings), pairs)):
        places = {one: place for place, one in enumerate(zip(block.pairs, block.order, strict=True))}
        found += [(number, places[pair, 0], places[pair, 1]) for pair in range(block.length)]
    return found[:pairs]


def orders(seed=1, pairs=160, openings=OPENINGS):
    """For each pair of a measurement of two variants with this seed whether the baseline (variant 0) ran first."""
    return [baseline < candidate for _, baseline, candidate in placed(seed, pairs, openings)]


def pairs(ratios, seed=1, **fields):
    """Pairs with these log ratios; the rounds of the baseline are all alike, those of the candidate have the noise."""
    return Pairs(tuple(ratios), (0.0,) * len(ratios), tuple(orders(seed, len(ratios))), **fields)
