"""Makes and checks the tables of pytest_dbcluster/claims: critical_values.py (exact) and power.py (simulated).

    nice -n 19 python benchmarks/critical_values.py              # rows of claims (counted), row of guards (simulated)
    nice -n 19 python benchmarks/critical_values.py --power --runs 20000      # detectable differences of power.py
    nice -n 19 python benchmarks/critical_values.py --check      # errors of the shipped tables under each kind of noise

A look at 8 or 12 pairs compares opening blocks by Mann-Whitney. From 14 pairs on it is a signed-rank test of the
remainders (``intervals.remainders``). If the variant changes nothing, the chance of each look is known exactly: 70
arrangements of each opening block, 2**n patterns of signs. A row of claims adds them up. If the variants have the same
centre and other spreads, the signed ranks keep their chance. The look at 12 pairs then has ``UNEQUAL``. The row of
guards adds up to .1. It is simulated that this keeps .05 for independent normal rounds, at spreads of 1:1 to 1:10.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from pytest_dbcluster.claims import critical_values, power
from pytest_dbcluster.claims.block_order import OPENINGS, PER_OPENING
from pytest_dbcluster.claims.critical_values import (
    ALPHAS,
    GUARD_BOUND,
    GUARD_LEVEL,
    LEVELS,
    LOOKS,
    OF_OPENINGS,
    RANKS_FROM,
)

Floats = npt.NDArray[np.floating]
Row = tuple[int | None, ...]
Noise = Callable[[np.random.Generator, int, int], Floats]

RANK_LOOKS = tuple(look for look in LOOKS if look >= RANKS_FROM)
IN_OPENINGS = OPENINGS * PER_OPENING  # the pairs of the opening blocks
BATCH = 2_000
DRAWS = 20  # of the order of each simulated run, where ``redrawn`` draws
POWER = 0.8
EARLY = tuple(look for look in LOOKS if look < power.KNOWN_FROM)  # looks whose power is simulated
ROBUST = 1.4826
GRID_RATIO = 1.06
GRID = tuple(12 / GRID_RATIO**step for step in range(84))  # standard deviations of a pair, down to .1
# The opening blocks' values of each row, at 8 and 12 pairs; other rows have none. A value of 4 or more at 8 pairs, or 8
# at 12, would also reject where one round of a noisy variant lies on the other side: 9 of 256 patterns, and 79 of 4096.
CHOSEN: dict[float, tuple[int | None, ...]] = {GUARD_LEVEL: (3, 7), ALPHAS[0]: (None, 2)}
SILENT = (None,) * len(OF_OPENINGS)
# Where the variants have the same centre and other spreads, U <= 2 at 12 pairs is no rarer than all rounds of the noisy
# one on one side: .000244. ``noise_models.py`` shows .00026 at most, at spreads of 1:50.
UNEQUAL = 0.00027
MOST_OF_LEVEL = 0.1  # a look speaks where all signs alike take no more of the level
SPREADS = (1, 2, 3, 5, 10)  # of one variant, in those of the other: what guards are calibrated for
SURE = 2.33  # normal quantile of .99


def arrangements() -> Iterator[tuple[int, ...]]:
    """The 70 arrangements of an opening block, as the 0-based places of the four candidate rounds."""
    return itertools.combinations(range(2 * PER_OPENING), PER_OPENING)


@functools.cache
def opening_ways(openings: int) -> tuple[int, ...]:
    """The number of arrangements of so many opening blocks by their Mann-Whitney sum U; rounds without ties."""
    one = [0] * (PER_OPENING**2 + 1)
    for places in arrangements():
        others = [place for place in range(2 * PER_OPENING) if place not in places]
        one[sum(place > other for place in places for other in others)] += 1
    total = [1]
    for _ in range(openings):
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
        ways = opening_ways(look // PER_OPENING)
        return sum(ways[: value + 1]) / sum(ways)
    return float(rank_tails(look)[value] / 2**look)


def bound(row: Row) -> float:
    """The sum of the looks' chances to reject towards one side, where the variant changes nothing."""
    return math.fsum(chance(look, value) for look, value in zip(LOOKS, row, strict=True))


def unequal_bound(row: Row) -> float:
    """The same where a claim's variants have the same centre and other spreads."""
    early, late = row[: len(OF_OPENINGS)], row[len(OF_OPENINGS) :]
    return UNEQUAL * (early != SILENT) + bound((*SILENT, *late))


def strongest(look: int, nominal: float) -> int | None:
    """The smallest signed-rank sum with a chance of at most ``nominal``; None where no sum has."""
    tails = rank_tails(look)
    low, high = 0, len(tails) - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if tails[middle] <= nominal * 2**look else (middle + 1, high)
    return low if low < len(tails) - 1 else None


def row_at(nominal: float, level: float) -> Row:
    """The row whose signed ranks have this nominal level; where no sum has it, all signs have to be alike."""
    speaking = (look if 2**-look <= MOST_OF_LEVEL * level else None for look in RANK_LOOKS)
    return (*CHOSEN.get(level, SILENT), *(look and strongest(look, max(nominal, 2**-look)) for look in speaking))


@functools.cache
def nominal_of(level: float) -> float:
    """The largest nominal level of a claim's signed ranks with which all its looks together have at most the level.

    It is never above that of a looser level, so that no look gets easier where the level is stricter.
    """
    looser = min((other for other in LEVELS if other > level), default=GUARD_LEVEL)
    low, high = 0.0, level if looser == GUARD_LEVEL else nominal_of(looser)
    if unequal_bound(row_at(high, level)) <= level:
        return high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if unequal_bound(row_at(middle, level)) <= level else (low, middle)
    return low


def claim_row(level: float) -> Row:
    """The row of a claim."""
    return row_at(nominal_of(level), level)


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

    def make(rng: np.random.Generator, runs: int, rounds: int) -> Floats:
        places = np.arange(rounds) + rng.integers(0, period, (runs, 1))
        return math.log(1.3) * (places % period < period / 2) + 0.02 * rng.standard_normal((runs, rounds))

    make.__name__ = f"wave of {period}"
    return make


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


def draw(times: Floats, rng: np.random.Generator, others: Floats | None = None) -> tuple[Floats, Floats, Floats]:
    """Draw an order for each run, and return what a claim sees of these log times (runs, 2 x pairs).

    others: what the baseline's rounds would take in each place, if that is not what the candidate's do. Returns the log
    times of the opening blocks (runs, 3, 2, 4), those of the candidate first; the log ratio of each pair and whether
    its baseline ran first, as +1 or -1 (runs, pairs).
    """
    runs, rounds = times.shape
    others = times if others is None else others
    split = 2 * IN_OPENINGS
    ours, theirs = (found[:, :split].reshape(runs, OPENINGS, 2 * PER_OPENING) for found in (times, others))
    places = np.argsort(rng.random(ours.shape, dtype=np.float32), axis=2)  # the candidate's four, then the baseline's
    where = places.reshape(runs, OPENINGS, 2, PER_OPENING)
    candidate = np.take_along_axis(ours, where[:, :, 0], 2)
    baseline = np.take_along_axis(theirs, where[:, :, 1], 2)
    first = (where[:, :, 1] < where[:, :, 0]).reshape(runs, -1)
    coins = rng.random((runs, (rounds - split) // 2), dtype=np.float32) < 0.5
    early, late = slice(split, None, 2), slice(split + 1, None, 2)
    later = np.where(coins, others[:, early] - times[:, late], others[:, late] - times[:, early])
    ratios = np.concatenate([(baseline - candidate).reshape(runs, -1), later], axis=1)
    signs = np.where(np.concatenate([first, coins], axis=1), 1, -1).astype(ratios.dtype)
    return np.stack([candidate, baseline], axis=2), ratios, signs


def mann_whitney(labelled: Floats, openings: int) -> npt.NDArray[np.int64]:
    """The sum over the opening blocks: how many of the 16 differences in each do not show the candidate as faster."""
    candidate, baseline = labelled[:, :openings, 0, :, None], labelled[:, :openings, 1, None, :]
    return np.asarray((baseline <= candidate).sum((1, 2, 3)))


def remainders(ratios: Floats, signs: Floats) -> Floats:
    """``intervals.remainders`` of each run, for the log ratio 0."""
    pairs = ratios.shape[1]
    cut = pairs // 4
    middle = np.sort(signs * ratios, axis=1)[:, cut : pairs - cut].mean(1, keepdims=True)
    return np.asarray(ratios - signs * middle)


def rank_sums(ratios: Floats, signs: Floats) -> npt.NDArray[np.int64]:
    """The signed-rank sum of the remainders, shape (runs,): ``intervals.rank_sum`` of the log ratio 0.

    The distances are sorted as whole numbers whose last bit is the sign; of equal ones the negative ranks higher.
    """
    pairs = ratios.shape[1]
    kept = remainders(ratios, signs)
    whole: type[np.signedinteger] = np.int32 if kept.dtype == np.float32 else np.int64
    keys: npt.NDArray[np.signedinteger] = np.sort(np.abs(kept).view(whole) & ~1 | (kept <= 0), axis=1)
    return np.asarray((1 - (keys & 1)) @ np.arange(1, pairs + 1))


def statistics_of(
    times: Floats, rng: np.random.Generator, others: Floats | None = None
) -> dict[int, npt.NDArray[np.int64]]:
    """By look, the statistic of each run: U up to 12 pairs, the signed-rank sum from 14 pairs on; as ``draw``."""
    labelled, ratios, signs = draw(times, rng, others)
    found = {look: mann_whitney(labelled, look // PER_OPENING) for look in OF_OPENINGS}
    return found | {look: rank_sums(ratios[:, :look], signs[:, :look]) for look in RANK_LOOKS}


def redrawn(
    times: Floats, rng: np.random.Generator, draws: int, others: Floats | None = None
) -> dict[int, npt.NDArray[np.int64]]:
    """By look, the statistic of so many draws of each run, shape (runs x draws,): much cheaper than new runs.

    Without ``others`` the times are fixed, and given which rounds are a pair the draw of the order is one fair coin a
    pair: it swaps the labels. With ``others``, what the baseline's rounds would take, all rounds are independent and
    symmetric about the same centre: each pair's two log times may have the other sign, together with the order of the
    pair. Neither moves ``u`` of ``intervals.remainders``, so the ranks of a run serve all its draws.
    """
    labelled, ratios, signs = draw(times, rng, others)
    coins = rng.integers(0, 2, (len(times), draws, ratios.shape[1]), dtype=np.int8)
    mine, theirs = labelled[:, None, :, 0], labelled[:, None, :, 1]
    flip = coins[:, :, :IN_OPENINGS].reshape(len(times), draws, OPENINGS, PER_OPENING) == 1
    if others is None:
        sides = np.where(flip, theirs, mine), np.where(flip, mine, theirs)
    else:
        sides = np.where(flip, -mine, mine), np.where(flip, -theirs, theirs)
    every = np.stack(sides, axis=3).reshape(-1, OPENINGS, 2, PER_OPENING)
    found = {look: mann_whitney(every, look // PER_OPENING) for look in OF_OPENINGS}
    for look in RANK_LOOKS:
        kept = remainders(ratios[:, :look], signs[:, :look])
        ranks = np.abs(kept).argsort(axis=1).argsort(axis=1) + 1
        up = np.where(kept > 0, ranks, 0).sum(1)  # a coin of 1 turns the sign of its rank
        turned = (coins[:, :, :look].astype(np.float32) @ (ranks * np.sign(kept)).astype(np.float32)[:, :, None])[
            :, :, 0
        ]
        found[look] = (up[:, None] - np.rint(turned).astype(np.int64)).reshape(-1)
    return found


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
    """Prints the error of each shipped row towards one side: the sum of its looks, then what each noise has."""
    print("| noise | " + " | ".join(f"{level:.3g}" for level in LEVELS) + " |")
    print("|---" * (1 + len(LEVELS)) + "|")
    print("| any | " + " | ".join(f"{bound(critical_values.boundary(level).critical):.3g}" for level in LEVELS) + " |")
    for name, noise in CHECKED.items():
        rng = np.random.default_rng(seed)
        batches = [rejections(noise(rng, BATCH, 2 * LOOKS[-1]), rng) for _ in range(max(1, runs // BATCH))]
        errors = np.sum(batches, axis=0) / (len(batches) * BATCH)
        print(f"| {name} | " + " | ".join(f"{error:.3g}" for error in errors) + " |", flush=True)


@functools.cache
def guard_nominal() -> float:
    """The nominal level of the guards' signed ranks: the largest with which their looks add up to ``GUARD_BOUND``.

    It has to be below ``independent_nominal``.
    """
    low, high = 0.0, GUARD_LEVEL
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if bound(row_at(middle, GUARD_LEVEL)) <= GUARD_BOUND else (low, middle)
    return low


def independent_nominal(spread: float, runs: int, seed: int) -> float:
    """The largest nominal level of guards whose looks together hold wrongly in .05 of independent normal rounds.

    spread: of one variant, in those of the other. It is the upper 99 % limit of the error that is at most .05.
    """
    rng = np.random.default_rng(seed)
    decided, lowest = 0, []
    values = dict(zip(OF_OPENINGS, CHOSEN[GUARD_LEVEL], strict=True))
    tails = {look: np.array(rank_tails(look), dtype=np.float64) / 2.0**look for look in RANK_LOOKS}
    batches = max(1, runs // BATCH)
    for _ in range(batches):
        times, others = (normal(rng, BATCH // DRAWS, 2 * LOOKS[-1]).astype(np.float32) for _ in range(2))
        found = redrawn(spread * times, rng, DRAWS, others)
        early = np.any([found[look] <= value for look, value in values.items() if value is not None], axis=0)
        p = np.min([tail[found[look]] for look, tail in tails.items()], axis=0)
        decided += int(early.sum())
        lowest.append(p[~early])
    every = batches * BATCH
    error = GUARD_LEVEL - SURE * math.sqrt(GUARD_LEVEL * (1 - GUARD_LEVEL) / every)
    return float(np.sort(np.concatenate(lowest))[int(error * every) - decided])


def low_ends(ratios: Floats, signs: Floats, values: Sequence[int], rng: np.random.Generator) -> Floats:
    """For each critical value the lower end of the interval of each run, to 3 %; -inf where nothing is excluded.

    It is searched among ``GRID``, times a number that is drawn for each run, so that the errors cancel out.
    """
    fine = rng.random(len(ratios), dtype=np.float32) - 0.5
    ends = np.full((len(values), len(ratios)), -np.inf)
    for step in GRID:
        bound = -step * GRID_RATIO**fine
        sums = rank_sums(ratios - bound[:, None].astype(ratios.dtype), signs)
        for end, value in zip(ends, values, strict=True):
            np.copyto(end, bound, where=sums >= value)
    return ends


def detectable(levels: Sequence[float], runs: int, seed: int, *, openings: bool = True) -> list[list[float]]:
    """By level and look: the effect, in standard deviations of a pair, that a look up to this one finds with power .8.

    opening blocks: whether looks before 14 pairs speak, as they do where whole opening blocks are compared.
    The standard deviation is the robust one of other pairs, as many as the look has: so its own error is included.
    """
    rng = np.random.default_rng(seed)
    labelled, ratios, signs = draw(normal(rng, runs, 2 * LOOKS[-1]).astype(np.float32) / math.sqrt(2), rng)
    best: Floats = np.full((len(levels), runs), -np.inf)
    found: list[list[float]] = [[] for _ in levels]
    for number, look in enumerate(EARLY):
        values = [critical_values.boundary(level).critical[number] for level in levels]
        speaking = [k for k, value in enumerate(values) if value is not None and (openings or look >= RANKS_FROM)]
        known = [value for k, value in enumerate(values) if k in speaking and value is not None]
        if look < RANKS_FROM:
            seen = labelled[:, : look // PER_OPENING]
            crossed = np.sort((seen[:, :, 1, None, :] - seen[:, :, 0, :, None]).reshape(runs, -1), axis=1)
            ends = np.stack([crossed[:, value] for value in known]) if known else best[:0]
        else:
            ends = low_ends(ratios[:, :look], signs[:, :look], known, rng)
        best[speaking] = np.maximum(best[speaking], ends)
        scatter = np.roll(robust_sd(ratios[:, :look]), 1)
        for of_level, ended in zip(found, best, strict=True):
            of_level.append(float(np.quantile(-ended / scatter, POWER, method="higher")))
    return found


def robust_sd(ratios: Floats) -> Floats:
    """``estimators.pair_sd`` of each run."""
    middle = np.median(ratios, axis=1, keepdims=True)
    return np.asarray(ROBUST * np.median(np.abs(ratios - middle), axis=1))


def show_power(runs: int, seed: int) -> None:
    """Prints the table of power.py as Python source: with and without the looks at opening blocks."""
    for level, *both in zip(
        LEVELS, *(detectable(LEVELS, runs, seed, openings=openings) for openings in (True, False)), strict=True
    ):
        for number, look in enumerate(EARLY):
            if critical_values.boundary(level).critical[number] is not None:
                print(f"    ({level!r}, {look}): ({both[0][number]:.3g}, {both[1][number]:.3g}),", flush=True)


def show_rows(runs: int, seed: int) -> None:
    """Prints the table of critical values as Python source, with the sum of each row."""
    rows: Sequence[tuple[float, Row]] = [
        (GUARD_LEVEL, row_at(guard_nominal(), GUARD_LEVEL)),
        *((level, claim_row(level)) for level in LEVELS[1:]),
    ]
    for level, row in rows:
        unequal = f", {unequal_bound(row):.3g} with other spreads" if level != GUARD_LEVEL else ""
        print(f"    {level!r}: {row},  # at most {bound(row):.3g}{unequal}", flush=True)
    print(f"guards: nominal level {guard_nominal():.3g}; for independent rounds with spreads of 1:n it may be")
    for spread in SPREADS:
        print(f"    {spread}: {independent_nominal(spread, runs, seed):.3g}", flush=True)


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1_000_000, help="simulated claims (of each kind of noise)")
    parser.add_argument("--seed", type=int, default=20240817)
    parser.add_argument("--check", action="store_true", help="measure the shipped tables instead")
    parser.add_argument("--power", action="store_true", help="make the table of detectable differences instead")
    arguments = parser.parse_args()
    show = check if arguments.check else show_power if arguments.power else show_rows
    show(arguments.runs, arguments.seed)


if __name__ == "__main__":
    main()
