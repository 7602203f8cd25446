"""Counts how often ``fades`` is wrong where two losses are equal, and how often what its message says comes true.

    nice -n 19 python benchmarks/fades.py [--runs 20000] [--power-runs 2000] [--only noise power]

- noise: four variants run in the order of ``block_order``: two workloads, each on a near and a far cluster. Both lose
  the same (the test does not depend on how much), and the noise of one is three times that of the other. For each kind
  of noise of ``critical_values.py``: the share of runs that a look rejects as faster, all looks together, by row of the
  table. For rows of claims it is at most the level; the sum of the looks stands in the first row.
- power: losses of .21x and of .21x times what n blocks "could see" (``power.detectable``, independent normal rounds).
  Fresh rounds decide by n blocks in .75 to .85 of the runs.
"""

from __future__ import annotations

import argparse
import math
import random
from collections.abc import Sequence

import numpy as np

from benchmarks.critical_values import CHECKED, RANK_LOOKS, Floats, Noise, bound, rank_sums
from pytest_dbcluster.claims import critical_values, intervals, power
from pytest_dbcluster.claims.block_order import blocks
from pytest_dbcluster.claims.critical_values import ALPHAS, GUARD_LEVEL, LOOKS, RANKS_FROM
from pytest_dbcluster.claims.kinds import fades
from pytest_dbcluster.claims.pairs import Pairs, of_losses

VARIANTS = 4  # one near, one far, many near, many far
LEVELS = (*ALPHAS, GUARD_LEVEL)
CLAIMED = math.log(0.21)  # what is kept over the distance
UNEVEN = 3.0  # times the noise of the other workload
SIZES = (14, 17, 20, 40, 80)  # blocks
SD = 0.05  # of the log time of a round
BATCH = 1_000
PARTS = ("noise", "power")


def places(pairs: int, seed: int) -> list[list[int]]:
    """For each pair of a measurement with this seed, where the round of each variant runs."""
    found: list[list[int]] = []
    start = 0
    for block in blocks(VARIANTS, seed):
        if len(found) >= pairs:
            return found[:pairs]
        by_pair = [[0] * VARIANTS for _ in range(block.length)]
        for place, (pair, variant) in enumerate(zip(block.pairs, block.order, strict=True), start):
            by_pair[pair][variant] = place
        found += by_pair
        start += len(block.order)
    raise AssertionError("blocks have no end")


def losses(times: Sequence[float], where: Sequence[Sequence[int]], kept: tuple[float, float]) -> Pairs:
    """The pairs of ``fades`` from the log times of rounds, by place, before any loss.

    where: as ``places`` gives them. kept: the log ratio far / near of the first workload and of the second one.
    """
    logs = [[-times[pair[variant]] for pair in where] for variant in range(VARIANTS)]
    before, after = (
        Pairs(
            tuple(value + kept[load] for value in logs[2 * load + 1]),
            tuple(logs[2 * load]),
            tuple(pair[2 * load] < pair[2 * load + 1] for pair in where),
        )
        for load in (0, 1)
    )
    return of_losses(after, before)


def rejections(noise: Noise, runs: int, rng: np.random.Generator) -> list[int]:
    """For each of LEVELS, the number of runs with equal losses that any look rejects as faster."""
    rounds = noise(rng, runs, VARIANTS * LOOKS[-1])
    coin = random.Random(int(rng.integers(2**63)))
    where = np.array([places(LOOKS[-1], coin.getrandbits(64)) for _ in range(runs)])
    speeds = -np.take_along_axis(rounds[:, None, :], where, 2) * np.array([1, 1, UNEVEN, UNEVEN])
    ratios: Floats = (speeds[:, :, 3] - speeds[:, :, 2]) - (speeds[:, :, 1] - speeds[:, :, 0])
    signs = np.where(where[:, :, 2] < where[:, :, 3], 1.0, -1.0)
    sums = {look: rank_sums(ratios[:, :look], signs[:, :look]) for look in RANK_LOOKS}
    counts = []
    for level in LEVELS:
        row = critical_values.boundary(level)
        values = {look: value for look in RANK_LOOKS if (value := row.at(look)) is not None}
        hit = np.any([sums[look] >= value for look, value in values.items()], axis=0)
        counts.append(int(np.count_nonzero(hit)))
    return counts


def check(runs: int, seed: int) -> None:
    """Prints the error towards one side of each level: the sum of its looks, then what each noise has."""
    print("| noise | " + " | ".join(f"{level:.3g}" for level in LEVELS) + " |")
    print("|---" * (1 + len(LEVELS)) + "|")
    silent = (None,) * LOOKS.index(RANKS_FROM)
    bounds = [bound((*silent, *critical_values.boundary(level).critical[len(silent) :])) for level in LEVELS]
    print("| any | " + " | ".join(f"{most:.3g}" for most in bounds) + " |")
    for name, noise in CHECKED.items():
        rng = np.random.default_rng(seed)
        batches = [rejections(noise, min(BATCH, runs), rng) for _ in range(max(1, runs // BATCH))]
        errors = np.sum(batches, axis=0) / (len(batches) * min(BATCH, runs))
        print(f"| {name} | " + " | ".join(f"{error:.3g}" for error in errors) + " |", flush=True)


def draw(coin: random.Random, pairs: int, faded: float) -> Pairs:
    """Pairs of independent normal rounds; the log ratio of the losses is ``faded``."""
    where = places(pairs, coin.getrandbits(64))
    times = [coin.gauss(0, SD) for _ in range(VARIANTS * (pairs + VARIANTS * 4))]
    return losses(times, where, (CLAIMED, CLAIMED + faded))


def holds(pairs: Pairs) -> bool:
    """Whether any look at these pairs lets ``fades`` hold."""
    looks = (look for look in critical_values.looks() if look <= len(pairs))
    claim = fades()
    return any(intervals.rejects(pairs.first(look), ALPHAS[0], claim.bounds[0])[0] for look in looks)


def could_see(pairs: int, runs: int, seed: int) -> float:
    """The share of fresh claims that hold by so many blocks, at the difference that other blocks "could see"."""
    coin, held = random.Random(seed), 0
    for _ in range(runs):
        could = power.detectable(draw(coin, pairs, 0.0), ALPHAS[0])
        held += holds(draw(coin, pairs, could))
    return held / runs


def show_power(runs: int, seed: int) -> None:
    """Prints how often fresh rounds decide at the difference that so many blocks "could see"."""
    error = math.sqrt(0.8 * 0.2 / runs)
    print(f"\n{runs} runs of each figure: the standard error is {error:.3f}; target .75 to .85")
    for pairs in SIZES:
        print(f"{pairs:4} blocks: decided in {could_see(pairs, runs, seed + pairs):.3f}", flush=True)


def main() -> None:
    """Reads the command line, and prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20_000, help="runs with each kind of noise")
    parser.add_argument("--power-runs", type=int, default=2_000, help="runs of each figure of the power")
    parser.add_argument("--seed", type=int, default=20261123)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    arguments = parser.parse_args()
    if "noise" in arguments.only:
        check(arguments.runs, arguments.seed)
    if "power" in arguments.only:
        show_power(arguments.power_runs, arguments.seed)


if __name__ == "__main__":
    main()
