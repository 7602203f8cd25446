"""Counts how often carry-over is warned of where there is none, and how often where there is some.

    python benchmarks/carry_over_warnings.py [--runs 500] [--only noise waves judged uneven found]

The promise is a wrong warning in at most 1 of 100 claims (``carry_over.LEVEL``), for noise that is the same for both.
A figure with a star is above it with a chance of .001 by accident.

- noise: two variants run in the order of ``block_order``, for each kind of noise of ``critical_values.py``; no round
  depends on the one before it. The candidate is 1.3 times as fast; equal variants have the same figures, because the
  warning does not depend on the ratio.
- waves: the same, for square waves of every period from 2 to 24, each with a random phase.
- judged: the rounds end at the look that decides a claim, so that their number depends on them.
- uneven: what is not promised: a candidate that multiplies the noise by 1.5.
- found: how often a carry-over of 4 % is warned of at a noise of 2 %, and how often the 99 % interval has the 4 %.
"""

from __future__ import annotations

import argparse
import math
import random
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from benchmarks import noise_replay
from benchmarks.critical_values import CHECKED, Floats, Noise, normal, wave
from pytest_dbcluster.claims import carry_over, critical_values, intervals
from pytest_dbcluster.claims.block_order import blocks
from pytest_dbcluster.claims.carry_over import LEVEL, Placed
from pytest_dbcluster.claims.claim import Claim
from pytest_dbcluster.claims.critical_values import ALPHAS
from pytest_dbcluster.claims.kinds import beats, no_slower_than

SIZES = (8, 12, 20, 40, 80)  # pairs
SIGMAS = 3.1  # of the binomial count: .001 by accident
FASTER = math.log(1.3)
UNEVEN = 1.5  # times the noise
PERIODS = range(2, 25)  # rounds
CARRIED, QUIET = math.log(1.04), 0.02
NOISY = 0.05  # the noise where rounds are judged
JUDGED: dict[str, tuple[Claim, float]] = {
    "beats, 1.1 x": (beats(), math.log(1.1)),
    "beats, 1.2 x": (beats(), math.log(1.2)),
    "no slower, 1 x": (no_slower_than(0.05), 0.0),
    "no slower, 1.1 x": (no_slower_than(0.05), math.log(1.1)),
}
PARTS = ("noise", "waves", "judged", "uneven", "found")


def place(
    times: Sequence[float], seed: int, *, faster: float = 0.0, uneven: float = 1.0, slower: float = 0.0
) -> list[Placed]:
    """The rounds of two variants, 0 and 1, in a random order.

    times: their log times, if all were of variant 0. Those of variant 1 are ``uneven`` times that, less ``faster``.
    What runs after variant 1 takes longer by ``slower``.
    """
    found: list[Placed] = []
    before: int | None = None
    for number, block in enumerate(blocks(2, seed)):
        for variant in block.order:
            if len(found) == len(times):
                return found
            time = times[len(found)] * (uneven if variant else 1.0) - faster * variant + slower * (before or 0)
            found.append(Placed(variant, before, number, time))
            before = variant
    raise AssertionError("blocks have no end")


def count_warnings(
    noise: Noise, pairs: int, runs: int, seed: int, *, faster: float = 0.0, uneven: float = 1.0, slower: float = 0.0
) -> tuple[int, int]:
    """In how many of these claims carry-over is warned of, and in how many the interval has the true one."""
    coin, warnings, inside = random.Random(seed), 0, 0
    for times in noise(np.random.default_rng(seed), runs, 2 * pairs).tolist():
        rounds = place(times, coin.getrandbits(64), faster=faster, uneven=uneven, slower=slower)
        if (found := carry_over.of(rounds, 1, 0)) is not None:
            warnings += found.warned
            inside += found.low <= math.expm1(slower) <= found.high
    return warnings, inside


def count_warnings_at_verdict(claim: Claim, faster: float, runs: int, seed: int) -> int:
    """In how many claims carry-over is warned of, if their rounds end at the look that decides."""
    coin, warnings = random.Random(seed), 0
    level, bound = claim.hold_level(ALPHAS[0]), claim.bounds[0]
    for times in (NOISY * normal(np.random.default_rng(seed), runs, 2 * SIZES[-1])).tolist():
        order = coin.getrandbits(64)
        pairs = noise_replay.draw(times, order, math.expm1(faster))
        looks = (look for look in critical_values.looks() if look <= len(pairs))
        end = next((look for look in looks if intervals.rejects(pairs.first(look), level, bound)[0]), len(pairs))
        found = carry_over.of(place(times, order, faster=faster)[: 2 * end], 1, 0)
        warnings += found is not None and found.warned
    return warnings


def cells(counts: Sequence[int], runs: int) -> str:
    """Wrong warnings as shares of the runs, with a star where they are too many."""
    most = runs * LEVEL + SIGMAS * math.sqrt(runs * LEVEL)
    return "".join(f"{count / runs:8.3f}{'*' if count > most else ' '}" for count in counts)


def show(title: str, kinds: Mapping[str, Noise], runs: int, seed: int, **variants: float) -> None:
    """Prints the wrong warnings for each kind of noise."""
    print(f"{title:24}" + "".join(f"{pairs:8} " for pairs in SIZES), flush=True)
    for number, (name, noise) in enumerate(kinds.items()):
        seeds = [seed + 1000 * number + pairs for pairs in SIZES]
        counts = [count_warnings(noise, pairs, runs, s, **variants)[0] for pairs, s in zip(SIZES, seeds, strict=True)]
        print(f"{name:24}" + cells(counts, runs), flush=True)


def show_judged(runs: int, seed: int) -> None:
    """Prints the wrong warnings of claims that end when they are decided."""
    print("rounds end with a claim", flush=True)
    for number, (name, (claim, faster)) in enumerate(JUDGED.items()):
        print(f"{name:24}" + cells([count_warnings_at_verdict(claim, faster, runs, seed + number)], runs), flush=True)


def quiet(rng: np.random.Generator, runs: int, rounds: int) -> Floats:
    """Independent normal log times, with a standard deviation of 2 %."""
    return QUIET * normal(rng, runs, rounds)


def show_found(runs: int, seed: int) -> None:
    """Prints how often a true carry-over is warned of, and how often its interval is right."""
    counts = [count_warnings(quiet, pairs, runs, seed + pairs, faster=FASTER, slower=CARRIED) for pairs in SIZES]
    print(f"{'carry-over of 4 %':24}" + "".join(f"{pairs:8} " for pairs in SIZES))
    for name, figures in zip(("warned of", "inside of its interval"), zip(*counts, strict=True), strict=True):
        print(f"{name:24}" + "".join(f"{figure / runs:8.3f} " for figure in figures), flush=True)


def main() -> None:
    """Reads the command line, and prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=500, help="claims of each figure")
    parser.add_argument("--seed", type=int, default=20240817)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, help="the tables to print (default: all)")
    arguments = parser.parse_args()
    runs, seed = arguments.runs, arguments.seed
    waves = {f"wave of {period}": wave(period) for period in PERIODS}
    tables: dict[str, Callable[[], None]] = {
        "noise": lambda: show("kinds of noise", CHECKED, runs, seed, faster=FASTER),
        "waves": lambda: show("square waves", waves, runs, seed, faster=FASTER),
        "judged": lambda: show_judged(runs, seed),
        "uneven": lambda: show("1.5 times the noise", CHECKED, runs, seed, uneven=UNEVEN),
        "found": lambda: show_found(runs, seed),
    }
    for part in arguments.only:
        tables[part]()


if __name__ == "__main__":
    main()
