"""Counts how often carry-over is warned of where there is none, for each kind of noise of ``critical_values.py``.

    python benchmarks/carry_over_warnings.py [--runs 500]

Two equal variants run in the order of ``block_order``; no round depends on the one before it. The promise is a warning
in 1 of 100 claims (``carry_over.LEVEL``) for independent rounds. A figure with a star is above it with a chance of
.001 by accident.
"""

from __future__ import annotations

import argparse
import math
import random

import numpy as np

from benchmarks.critical_values import CHECKED, Noise
from pytest_dbcluster.claims import carry_over
from pytest_dbcluster.claims.block_order import blocks
from pytest_dbcluster.claims.carry_over import LEVEL, Placed

SIZES = (8, 12, 20, 40, 80)  # pairs
SIGMAS = 3.1  # of the binomial count: .001 by accident


def placed(times: list[float], seed: int) -> list[Placed]:
    """The rounds of two equal variants with these log times, in a random order."""
    found: list[Placed] = []
    before: int | None = None
    for number, block in enumerate(blocks(2, seed)):
        for variant in block.order:
            if len(found) == len(times):
                return found
            found.append(Placed(variant, before, number, times[len(found)]))
            before = variant
    raise AssertionError("blocks have no end")


def warned(noise: Noise, pairs: int, runs: int, seed: int) -> int:
    """In how many of these claims carry-over is warned of."""
    coin = random.Random(seed)
    times = noise(np.random.default_rng(seed), runs, 2 * pairs)
    results = (carry_over.of(placed(row, coin.getrandbits(64)), 1, 0) for row in times.tolist())
    return sum(result is not None and result.warned for result in results)


def main() -> None:
    """Reads the command line, and prints a row for each kind of noise."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=500, help="claims of each figure")
    parser.add_argument("--seed", type=int, default=20240817)
    arguments = parser.parse_args()
    runs = arguments.runs
    most = runs * LEVEL + SIGMAS * math.sqrt(runs * LEVEL)
    print(f"{'pairs':20}" + "".join(f"{pairs:9}" for pairs in SIZES))
    for name, noise in CHECKED.items():
        counts = [warned(noise, pairs, runs, arguments.seed + pairs) for pairs in SIZES]
        cells = [f"{count / runs:8.3f}{'*' if count > most else ' '}" for count in counts]
        print(f"{name:20}" + "".join(cells), flush=True)


if __name__ == "__main__":
    main()
