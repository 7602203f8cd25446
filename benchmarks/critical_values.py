"""Makes and checks the tables of pytest_dbcluster/claims: critical_values.py (exact) and power.py (simulated).

    nice -n 19 python benchmarks/critical_values.py              # rows of claims (counted), row of guards (simulated)
    nice -n 19 python benchmarks/critical_values.py --power      # detectable differences of power.py
    nice -n 19 python benchmarks/critical_values.py --check      # errors of the shipped tables under each kind of noise

A claim looks at the data after 4, 8, 12, 14, 17, ... 160 pairs. Up to 12 pairs a look compares eights by Mann-Whitney,
from 14 pairs on it is a signed-rank test of the remainders (``intervals.remainders``). The chance of each look is known
exactly, whatever the noise: 70 arrangements of each eight, 2**n patterns of signs. A row of claims adds them up. The
row of guards is calibrated for independent normal rounds, all looks together; its sum is the bound for any noise.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from pytest_dbcluster.claims import critical_values
from pytest_dbcluster.claims.block_order import PER_EIGHT
from pytest_dbcluster.claims.critical_values import GUARD_LEVEL, LEVELS, LOOKS, OF_EIGHTS, RANKS_FROM

Floats = npt.NDArray[np.float64]
Row = tuple[int | None, ...]
Noise = Callable[[np.random.Generator, int, int], Floats]

RANK_LOOKS = tuple(look for look in LOOKS if look >= RANKS_FROM)
BATCH = 2_000
POWER = 0.8
LAST_OF_RANKS = 40  # pairs: from 48 on a figure without eights is less than 1 % larger
ROBUST = 1.4826
STEPS = 14  # of a bisection between -8 and 8 standard deviations of a pair: to .001
# The eights' values of each row, and whether its look at 14 pairs speaks: a choice, by when answers come. Where the sum
# of the eights has more than half of a level, the later looks get too little.
CHOSEN: dict[float, tuple[tuple[int | None, ...], bool]] = {
    0.0005: ((None, 0, 1), True),
    0.0005 / 2: ((None, None, 3), False),
    0.0005 / 3: ((None, None, 2), False),
    0.0005 / 4: ((None, None, 2), False),
    0.0001: ((None, None, 2), False),
    0.0001 / 2: ((None, None, 1), False),
    0.0001 / 3: ((None, None, 1), False),
    0.0001 / 4: ((None, None, 1), False),
    GUARD_LEVEL: ((0, 3, 8), True),
}


def arrangements() -> Iterator[tuple[int, ...]]:
    """The 70 arrangements of an eight, as the 0-based places of the four candidate rounds."""
    return itertools.combinations(range(2 * PER_EIGHT), PER_EIGHT)


@functools.cache
def eights_ways(eights: int) -> tuple[int, ...]:
    """By the Mann-Whitney sum U of so many eights, the number of arrangements that give it; rounds without ties."""
    one = [0] * (PER_EIGHT**2 + 1)
    for places in arrangements():
        others = [place for place in range(2 * PER_EIGHT) if place not in places]
        one[sum(place > other for place in places for other in others)] += 1
    total = [1]
    for _ in range(eights):
        total = [
            sum(total[k - j] * ways for j, ways in enumerate(one) if 0 <= k - j < len(total))
            for k in range(len(total) + len(one) - 1)
        ]
    return tuple(total)


@functools.cache
def rank_tails(pairs: int) -> tuple[int, ...]:
    """By the signed-rank sum W, the number of the 2**pairs patterns of signs whose sum is W or more; 0 at the end."""
    ways = [1] + [0] * (pairs * (pairs + 1) // 2)
    for rank in range(1, pairs + 1):
        ways = [count + (ways[s - rank] if s >= rank else 0) for s, count in enumerate(ways)]
    return (*reversed([*itertools.accumulate(reversed(ways))]), 0)


def chance(look: int, value: int | None) -> float:
    """The exact chance that a look rejects towards one side with this critical value; 0 where it cannot speak."""
    if value is None:
        return 0.0
    if look < RANKS_FROM:
        ways = eights_ways(look // PER_EIGHT)
        return sum(ways[: value + 1]) / sum(ways)
    return float(rank_tails(look)[value] / 2**look)


def bound(row: Row) -> float:
    """The chance of a row to reject at any look, towards one side, for any noise: the sum of its looks."""
    return math.fsum(chance(look, value) for look, value in zip(LOOKS, row, strict=True))


def strongest(look: int, nominal: float) -> int | None:
    """The smallest signed-rank sum with a chance of at most ``nominal``; None where no sum has."""
    tails = rank_tails(look)
    low, high = 0, len(tails) - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if tails[middle] <= nominal * 2**look else (middle + 1, high)
    return low if low < len(tails) - 1 else None


def row_at(nominal: float, level: float) -> Row:
    """The row of a level whose looks from 17 pairs on (of guards from 14) have this nominal level."""
    eights, speaks_at_14 = CHOSEN[level]
    least = RANKS_FROM * (RANKS_FROM + 1) // 2 if level != GUARD_LEVEL else strongest(RANKS_FROM, nominal)
    return (*eights, least if speaks_at_14 else None, *(strongest(look, nominal) for look in RANK_LOOKS[1:]))


@functools.cache
def claim_row(level: float) -> Row:
    """The row of a claim: the largest nominal level with which all looks together have at most the level."""
    low, high = 0.0, level
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if bound(row_at(middle, level)) <= level else (low, middle)
    return row_at(low, level)


def normal(rng: np.random.Generator, runs: int, rounds: int) -> Floats:
    """Independent normal log times, shape (runs, rounds)."""
    return rng.standard_normal((runs, rounds))


def two_mode(rng: np.random.Generator, runs: int, rounds: int) -> Floats:
    """Rounds that are fast or 1.5 times slower with equal probability."""
    return rng.integers(0, 2, (runs, rounds)) * math.log(1.5) + 0.028 * rng.standard_normal((runs, rounds))


def cauchy(rng: np.random.Generator, runs: int, rounds: int) -> Floats:
    """Rounds whose mean does not exist."""
    return rng.standard_cauchy((runs, rounds))


def stalling(rng: np.random.Generator, runs: int, rounds: int) -> Floats:
    """A tenth of the rounds is three times slower."""
    return 0.02 * rng.standard_normal((runs, rounds)) + math.log(3) * (rng.random((runs, rounds)) < 0.1)


def drifting(rng: np.random.Generator, runs: int, rounds: int) -> Floats:
    """A random walk: the table fills, the disk ages."""
    return np.cumsum(0.1 * rng.standard_normal((runs, rounds)), axis=1) + 0.1 * rng.standard_normal((runs, rounds))


def slow_in_block(rng: np.random.Generator, runs: int, rounds: int) -> Floats:
    """One round of every two, either of them, is twice as slow."""
    slow = np.repeat(rng.integers(0, 2, (runs, rounds // 2)), 2, axis=1) == np.arange(rounds) % 2
    return np.asarray(math.log(2) * slow + 0.02 * rng.standard_normal((runs, rounds)))


def wave(period: int) -> Noise:
    """A square wave: for half of its period the rounds are 1.3 times slower; its phase is random."""

    def made(rng: np.random.Generator, runs: int, rounds: int) -> Floats:
        places = np.arange(rounds) + rng.integers(0, period, (runs, 1))
        return math.log(1.3) * (places % period < period / 2) + 0.02 * rng.standard_normal((runs, rounds))

    made.__name__ = f"wave of {period}"
    return made


def sawtooth(rng: np.random.Generator, runs: int, rounds: int) -> Floats:
    """Rounds get slower until a checkpoint, every 7 to 23 rounds."""
    period = rng.integers(7, 24, (runs, 1))
    return 0.5 * (np.arange(rounds) % period) / period + 0.02 * rng.standard_normal((runs, rounds))


def ties(rng: np.random.Generator, runs: int, rounds: int) -> Floats:
    """Times that a tool prints with one digit: few different values."""
    return np.log(10 + rng.integers(0, 3, (runs, rounds)))


def bursts(rng: np.random.Generator, runs: int, rounds: int) -> Floats:
    """A neighbour on the machine: for stretches of about ten rounds everything is twice as slow."""
    flips = np.cumsum(rng.random((runs, rounds)) < 0.1, axis=1)
    return math.log(2) * (flips % 2) + 0.05 * rng.standard_normal((runs, rounds))


def position(rng: np.random.Generator, runs: int, rounds: int) -> Floats:
    """The second round of every two is a tenth slower."""
    return math.log(1.1) * (np.arange(rounds) % 2) + 0.02 * rng.standard_normal((runs, rounds))


PLAIN = (normal, two_mode, cauchy, stalling, drifting, slow_in_block, sawtooth, ties, bursts, position)
CHECKED: dict[str, Noise] = {
    noise.__name__: noise for noise in (*PLAIN, *map(wave, (2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 48)))
}


def drawn(times: Floats, rng: np.random.Generator) -> tuple[Floats, Floats, Floats]:
    """Draw an order for each run, and return what a claim sees of these log times (runs, 2 x pairs).

    Returns the log times of the eights (runs, 3, 2, 4), those of the candidate first; the log ratio of each pair and
    whether its baseline ran first, as +1 or -1 (runs, pairs).
    """
    runs, rounds = times.shape
    split = 2 * LOOKS[len(OF_EIGHTS) - 1]
    eights = times[:, :split].reshape(runs, len(OF_EIGHTS), 2 * PER_EIGHT)
    places = np.argsort(rng.random(eights.shape), axis=2)  # the candidate's four places, then the baseline's
    labelled = np.take_along_axis(eights, places, 2).reshape(runs, len(OF_EIGHTS), 2, PER_EIGHT)
    where = places.reshape(labelled.shape)
    candidate, baseline = labelled[:, :, 0].reshape(runs, -1), labelled[:, :, 1].reshape(runs, -1)
    first = (where[:, :, 1] < where[:, :, 0]).reshape(runs, -1)
    coins = rng.random((runs, (rounds - split) // 2)) < 0.5
    one, other = times[:, split::2], times[:, split + 1 :: 2]
    ratios = np.concatenate([baseline - candidate, np.where(coins, one - other, other - one)], axis=1)
    signs = np.where(np.concatenate([first, coins], axis=1), 1.0, -1.0)
    return labelled, ratios, signs


def mann_whitney(labelled: Floats, eights: int) -> npt.NDArray[np.int64]:
    """How many of the 16 differences inside each eight do not show the candidate as faster, summed over the eights."""
    candidate, baseline = labelled[:, :eights, 0, :, None], labelled[:, :eights, 1, None, :]
    return np.asarray((baseline - candidate <= 0).sum((1, 2, 3)))


def rank_sums(ratios: Floats, signs: Floats) -> npt.NDArray[np.int64]:
    """The signed-rank sum of the remainders, shape (runs,): ``intervals.rank_sum`` of the log ratio 0."""
    pairs = ratios.shape[1]
    u = signs * ratios
    cut = pairs // 4
    middle = np.sort(u, axis=1)[:, cut : pairs - cut].mean(1, keepdims=True)
    kept = ratios - signs * middle
    order = np.argsort(np.abs(kept), axis=1)
    positive = np.take_along_axis(kept > 0, order, 1)
    return np.asarray((positive * np.arange(1, pairs + 1)).sum(1))


def statistics_of(times: Floats, rng: np.random.Generator) -> dict[int, npt.NDArray[np.int64]]:
    """By look, the statistic of each run: U up to 12 pairs, the signed-rank sum from 14 pairs on."""
    labelled, ratios, signs = drawn(times, rng)
    found = {look: mann_whitney(labelled, look // PER_EIGHT) for look in OF_EIGHTS}
    return found | {look: rank_sums(ratios[:, :look], signs[:, :look]) for look in RANK_LOOKS}


def rejections(times: Floats, rng: np.random.Generator) -> list[int]:
    """For each row of the shipped table, the number of runs that it rejects as faster at any look."""
    found = statistics_of(times, rng)
    counts = []
    for row in map(critical_values.boundary, LEVELS):
        hit = np.zeros(len(times), bool)
        for look, value in zip(LOOKS, row.critical, strict=True):
            if value is not None:
                hit |= found[look] <= value if look < RANKS_FROM else found[look] >= value
        counts.append(int(np.count_nonzero(hit)))
    return counts


def check(runs: int, seed: int) -> None:
    """Prints the error of each shipped row towards one side: its bound for any noise, then what each noise has."""
    print("| noise | " + " | ".join(f"{level:.3g}" for level in LEVELS) + " |")
    print("|---" * (1 + len(LEVELS)) + "|")
    print("| any | " + " | ".join(f"{bound(critical_values.boundary(level).critical):.3g}" for level in LEVELS) + " |")
    for name, noise in CHECKED.items():
        rng = np.random.default_rng(seed)
        batches = [rejections(noise(rng, BATCH, 2 * LOOKS[-1]), rng) for _ in range(max(1, runs // BATCH))]
        errors = np.sum(batches, axis=0) / (len(batches) * BATCH)
        print(f"| {name} | " + " | ".join(f"{error:.3g}" for error in errors) + " |", flush=True)


def guard_nominal(runs: int, seed: int) -> float:
    """The nominal level of the guards' looks from 14 pairs on: both sides of independent normal rounds, all looks."""
    rng = np.random.default_rng(seed)
    decided, lowest = 0, []
    values = dict(zip(OF_EIGHTS, CHOSEN[GUARD_LEVEL][0], strict=True))
    batches = max(1, runs // BATCH)
    for _ in range(batches):
        times = normal(rng, BATCH, 2 * LOOKS[-1])
        found = statistics_of(times, rng)
        early = np.any([found[look] <= value for look, value in values.items() if value is not None], axis=0)
        p = [np.array(rank_tails(look), dtype=np.float64)[found[look]] / 2.0**look for look in RANK_LOOKS]
        decided += int(early.sum())
        lowest.append(np.min(p, axis=0)[~early])
    allowed = int(GUARD_LEVEL * batches * BATCH) - decided
    return float(np.sort(np.concatenate(lowest))[allowed])


def low_ends(ratios: Floats, signs: Floats, value: int) -> Floats:
    """The lower end of the interval of each run, by bisection; -8 where it is lower still."""
    low, high = np.full(len(ratios), -8.0), np.full(len(ratios), 8.0)
    for _ in range(STEPS):
        middle = (low + high) / 2
        above = rank_sums(ratios - middle[:, None], signs) >= value
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return low


def detectable(level: float, runs: int, seed: int, *, eights: bool = True) -> list[float]:
    """By look: the effect, in standard deviations of a pair, that this look or one before it finds with power .8.

    eights: whether looks before 14 pairs speak, as they do where whole eights are compared.
    The standard deviation is the robust one of other pairs, as many as the look has: so its own error is included.
    """
    rng = np.random.default_rng(seed)
    labelled, ratios, signs = drawn(normal(rng, runs, 2 * LOOKS[-1]) / math.sqrt(2), rng)
    best, found = np.full(runs, -np.inf), []
    for look, value in zip(LOOKS, critical_values.boundary(level).critical, strict=True):
        if value is not None and look < RANKS_FROM:
            seen = labelled[:, : look // PER_EIGHT]
            crossed = (seen[:, :, 1, None, :] - seen[:, :, 0, :, None]).reshape(runs, -1)
            best = np.maximum(best, np.sort(crossed, axis=1)[:, value]) if eights else best
        elif value is not None:
            best = np.maximum(best, low_ends(ratios[:, :look], signs[:, :look], value))
        seen = np.roll(ratios[:, :look], 1, axis=0)
        scatter = ROBUST * np.median(np.abs(seen - np.median(seen, axis=1, keepdims=True)), axis=1)
        found.append(float(np.quantile(-best / scatter, POWER)) if np.isfinite(best).all() else math.inf)
    return found


def show_power(runs: int, seed: int) -> None:
    """Prints both tables of power.py as Python source; of the second one the looks that it has."""
    ranks = slice(LOOKS.index(RANKS_FROM), LOOKS.index(LAST_OF_RANKS) + 1)
    for eights, looks in ((True, slice(None)), (False, ranks)):
        for level in LEVELS:
            found = detectable(level, runs, seed, eights=eights)[looks]
            values = ", ".join("inf" if math.isinf(value) else f"{value:.3g}" for value in found)
            print(f"    {level!r}: ({values}),", flush=True)


def show_rows(runs: int, seed: int) -> None:
    """Prints the table of critical values as Python source, with the bound of each row for any noise."""
    rows: Sequence[tuple[float, Row]] = [
        (GUARD_LEVEL, row_at(guard_nominal(runs, seed), GUARD_LEVEL)),
        *((level, claim_row(level)) for level in LEVELS[1:]),
    ]
    for level, row in rows:
        print(f"    {level!r}: {row},  # at most {bound(row):.3g} for any noise", flush=True)


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200_000, help="simulated claims (of each kind of noise)")
    parser.add_argument("--seed", type=int, default=20240817)
    parser.add_argument("--check", action="store_true", help="measure the shipped tables instead")
    parser.add_argument("--power", action="store_true", help="make the table of detectable differences instead")
    arguments = parser.parse_args()
    show = check if arguments.check else show_power if arguments.power else show_rows
    show(arguments.runs, arguments.seed)


if __name__ == "__main__":
    main()
