"""Counts how often verdicts are wrong: two variants with the same centre, all looks together, for noise of many kinds.

    nice -n 10 python benchmarks/noise_models.py [--draws 1000000] [--only promised outside]

- promised: noise that is the same for both variants, whatever it is, or that differs while the log differences of
  independent rounds stay symmetric about the bound. Each row is met if the upper 99 % limit of the error towards one
  side is at most the level. A model has ``RUNS`` of 20 draws of the order each (``critical_values.redrawn``), and each
  draw counts towards both sides.
- counters: ``lower``, with pairs of rounds that lie on either side of the bound equally often; and with equal means,
  but typical rounds that differ, about which it promises nothing.
- outside: what no order can tell from an effect, for one variant alone: autocorrelation, a skewed distribution, and
  carry-over. New rounds for each draw, so fewer of them.

The candidate is on the bound of its claim, so ``held`` and ``fails`` are both wrong. ``guard`` is .05, for which noise
has to be independent.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.critical_values import (
    CHECKED,
    DRAWS,
    SURE,
    Floats,
    redrawn,
    statistics_of,
)
from pytest_dbcluster.claims import counts, critical_values
from pytest_dbcluster.claims.block_order import PER_OPENING
from pytest_dbcluster.claims.critical_values import ALPHAS, GUARD_LEVEL, LOOKS, RANKS_FROM

ROUNDS = 2 * LOOKS[-1]
RUNS = 500  # at once
SHOWN = (GUARD_LEVEL, *ALPHAS, ALPHAS[0] / 4, ALPHAS[1] / 16)
OUTSIDE_DRAWS = 20_000
VOID_PLACES = 28  # rounds: from 14 pairs on a void round of one variant keeps no claim open
COUNTED = 20_000  # runs of counters at once
PARTS = ("promised", "outside", "counters")

Counters = tuple[npt.NDArray[np.floating], npt.NDArray[np.floating]]

Both = Callable[[np.random.Generator, int], tuple[Floats, Floats | None]]


@dataclass(frozen=True)
class Model:
    """Noise of two variants with the same centre.

    make: returns the log times of so many runs, those of the candidate and of the baseline; None for the second where
    both variants share the noise. independent: whether its rounds are.
    """

    make: Both
    independent: bool = True


def normal(rng: np.random.Generator, runs: int, cv: float) -> Floats:
    """Log times of rounds with this coefficient of variation."""
    return np.asarray(
        rng.standard_normal((runs, ROUNDS), dtype=np.float32) * np.float32(math.sqrt(math.log1p(cv * cv)))
    )


def spreads(one: float, other: float) -> Model:
    """Normal log times with two coefficients of variation."""
    return Model(lambda rng, runs: (normal(rng, runs, one), normal(rng, runs, other)))


def modes(inside: float) -> Both:
    """Two modes 5 % above and below the centre, with normal noise inside of each, against a CV of 1 %."""

    def make(rng: np.random.Generator, runs: int) -> tuple[Floats, Floats | None]:
        sides = np.where(rng.random((runs, ROUNDS), dtype=np.float32) < 0.5, np.float32(0.05), np.float32(-0.05))
        return sides + normal(rng, runs, inside), normal(rng, runs, 0.01)

    return make


def cauchy(rng: np.random.Generator, runs: int) -> tuple[Floats, Floats | None]:
    """Times without a mean against normal ones."""
    return rng.standard_cauchy((runs, ROUNDS)).astype(np.float32), normal(rng, runs, 1.0)


def far(rng: np.random.Generator, runs: int) -> tuple[Floats, Floats | None]:
    """One round in ten is like those of the other variant, the others are ten times as far from the centre."""
    scale = np.where(rng.random((runs, ROUNDS), dtype=np.float32) < 0.1, np.float32(1), np.float32(10))
    return scale * normal(rng, runs, 0.01), normal(rng, runs, 0.01)


def growing(rng: np.random.Generator, runs: int) -> tuple[Floats, Floats | None]:
    """Noise that grows from 1 to 10 % over the rounds, three times that of the other variant."""
    growth = np.linspace(1, 10, ROUNDS, dtype=np.float32)
    return 3 * growth * normal(rng, runs, 0.01), growth * normal(rng, runs, 0.01)


def shared_growth(rng: np.random.Generator, runs: int) -> tuple[Floats, Floats | None]:
    """Noise that grows a hundredfold, the same for both variants."""
    return np.logspace(-2, 0, ROUNDS, dtype=np.float32) * normal(rng, runs, 0.1), None


def void_slowest(rng: np.random.Generator, runs: int) -> tuple[Floats, Floats | None]:
    """One variant's slowest round goes void and is drawn anew: the two slowest of 28 places, of which it has half."""
    times = normal(rng, runs, 0.05)
    slowest = np.argsort(times[:, :VOID_PLACES], axis=1)[:, -2:]
    np.put_along_axis(times, slowest, normal(rng, runs, 0.05)[:, :2], axis=1)
    return times, normal(rng, runs, 0.05)


def void_at_random(rng: np.random.Generator, runs: int) -> tuple[Floats, Floats | None]:
    """One round in a hundred of either variant goes void, whatever it took, and is drawn anew."""
    first, second = (
        np.where(rng.random((runs, ROUNDS)) < 0.01, normal(rng, runs, 0.05), normal(rng, runs, 0.05)) for _ in range(2)
    )
    return first, second


def same_noise(name: str) -> Model:
    """Noise of ``critical_values.CHECKED``, the same for both variants."""
    return Model(lambda rng, runs: (CHECKED[name](rng, runs, ROUNDS), None), independent=name in INDEPENDENT)


INDEPENDENT = ("normal", "two_mode", "cauchy", "stalling")
DEPENDENT = ("drifting", "slow_in_block", "sawtooth", "bursts", "position", "wave of 2", "wave of 6", "wave of 16")
PROMISED: Mapping[str, Model] = {
    "CV 5 v 5 %": spreads(0.05, 0.05),
    "CV 5 v 10 %": spreads(0.05, 0.1),
    "CV 3 v 9 %": spreads(0.03, 0.09),
    "CV 2 v 10 %": spreads(0.02, 0.1),
    "CV 1 v 10 %": spreads(0.01, 0.1),
    "CV .2 v 10 %": spreads(0.002, 0.1),
    "two modes of 5 % v CV 1 %": Model(modes(0.0)),
    "two modes of 5 %, CV 1 % each, v CV 1 %": Model(modes(0.01)),
    "Cauchy v normal": Model(cauchy),
    "one in ten near, others far, v near": Model(far),
    "noise grows tenfold, 3 v 1": Model(growing),
    "one void in a hundred": Model(void_at_random),
    "the slowest round of one variant is void": Model(void_slowest),
    "noise grows a hundredfold, both": Model(shared_growth, independent=False),
    **{f"{name}, both": same_noise(name) for name in (*INDEPENDENT, *DEPENDENT)},
}


def outside_noise(kind: str, rng: np.random.Generator, runs: int) -> tuple[Floats, Floats]:
    """Log times of a candidate that is not slower in the median, and of its baseline."""
    if kind == "autocorrelated":
        found = normal(rng, runs, 0.05)
        for place in range(1, ROUNDS):
            found[:, place] = 0.9 * found[:, place - 1] + math.sqrt(1 - 0.9**2) * found[:, place]
        return found, normal(rng, runs, 0.05)
    return 0.05 * (rng.exponential(size=(runs, ROUNDS)) - math.log(2)), normal(rng, runs, 0.05)


OUTSIDE = {"AR(1) .9 of one variant, CV 5 %": "autocorrelated", "exponential v normal, same median": "skewed"}


def rejections(found: Mapping[int, npt.NDArray[np.int64]], level: float) -> tuple[npt.NDArray[np.bool_], ...]:
    """Of each draw, whether any look of this level rejects it as (faster, slower). Without ties."""
    up = np.zeros(len(found[LOOKS[0]]), bool)
    down = up.copy()
    for look, value in zip(LOOKS, critical_values.boundary(level).critical, strict=True):
        if value is None:
            continue
        most = 4 * look if look < RANKS_FROM else look * (look + 1) // 2
        high, low = found[look] >= most - value, found[look] <= value
        if look >= RANKS_FROM:
            high, low = found[look] >= value, found[look] <= most - value
            up |= high
            down |= low
        else:
            up |= low
            down |= high
    return up, down


def errors(model: Model, draws: int, seed: int) -> dict[float, tuple[int, int]]:
    """By level, how many of so many draws are rejected as (faster, slower)."""
    rng = np.random.default_rng(seed)
    counts = {level: [0, 0] for level in SHOWN}
    for _ in range(max(1, draws // (RUNS * DRAWS))):
        times, others = model.make(rng, RUNS)
        found = redrawn(times, rng, DRAWS, others)
        for level, sides in counts.items():
            for side, hits in enumerate(rejections(found, level)):
                sides[side] += int(hits.sum())
    return {level: (sides[0], sides[1]) for level, sides in counts.items()}


def upper(hits: int, of: int) -> float:
    """The upper 99 % limit of a chance (Wilson)."""
    share, square = hits / of, SURE * SURE / of
    return (share + square / 2 + math.sqrt(square * share * (1 - share) + square * square / 4)) / (1 + square)


def cell(hits: tuple[int, int], of: int, level: float, *, promised: bool) -> str:
    """The share of both sides with its upper limit, and whether the level is kept."""
    both, tests = sum(hits), 2 * of
    limit = upper(both, tests)
    met = "" if not promised else " met" if limit <= level else " MISSED"
    return f"{both / tests:.3g} ({limit:.3g}){met}"


def show_promised(draws: int, seed: int, part: str) -> None:
    """Prints the table of what is promised, of the models with this part in their name."""
    print(f"{draws} draws a model, towards both sides: errors of one side, and their upper 99 % limits")
    print("| same centre | " + " | ".join(f"{level:.3g}" for level in SHOWN) + " |")
    print("|---" * (1 + len(SHOWN)) + "|")
    for name, model in PROMISED.items():
        if part not in name:
            continue
        counts = errors(model, draws, seed)
        cells = [
            cell(counts[level], draws, level, promised=level < GUARD_LEVEL or model.independent) for level in SHOWN
        ]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


def show_outside(draws: int, seed: int) -> None:
    """Prints the table of what is not promised."""
    print(f"{draws} claims a model: errors of one side where nothing is promised")
    for name, kind in OUTSIDE.items():
        rng = np.random.default_rng(seed)
        times, others = outside_noise(kind, rng, draws)
        found = statistics_of(times.astype(np.float32), rng, others.astype(np.float32))
        shares = [max(side.mean() for side in rejections(found, level)) for level in SHOWN]
        print(f"| {name} | " + " | ".join(f"{share:.3g}" for share in shares) + " |", flush=True)


def poisson(rng: np.random.Generator, shape: tuple[int, int]) -> Counters:
    """Few counts, so that many pairs are equal."""
    return rng.poisson(3, shape).astype(float), rng.poisson(3, shape).astype(float)


def other_spread(rng: np.random.Generator, shape: tuple[int, int]) -> Counters:
    """The same median, lognormal with a spread of 1 against .1."""
    return rng.lognormal(0, 1, shape), rng.lognormal(0, 0.1, shape)


def with_bursts(rng: np.random.Generator, shape: tuple[int, int]) -> Counters:
    """Half of the rounds lie below a steady counter, and of the others one in ten is a hundred times as much."""
    burst = np.where(rng.random(shape) < 0.1, 300.0, 3.0)
    return np.where(rng.random(shape) < 0.5, 1.0, burst), np.full(shape, 2.0)


def mostly_zero(rng: np.random.Generator, shape: tuple[int, int]) -> Counters:
    """One round in ten counts anything, of either variant in turn at random; one then counts fifty times as much."""
    counted, whose = rng.random(shape) < 0.1, rng.random(shape) < 0.5
    return np.where(counted & whose, 50.0, 0.0), np.where(counted & ~whose, 1.0, 0.0)


def equal_means(rng: np.random.Generator, shape: tuple[int, int]) -> Counters:
    """Poisson counts with means of .2 and 1, at the bound of ``by=.8``."""
    return rng.poisson(0.2, shape).astype(float), 0.2 * rng.poisson(1, shape)


def skewed_counts(rng: np.random.Generator, shape: tuple[int, int]) -> Counters:
    """The same mean, lognormal with a spread of 1 against .1."""
    return rng.lognormal(-0.5, 1, shape), rng.lognormal(-0.005, 0.1, shape)


def rare(rng: np.random.Generator, shape: tuple[int, int]) -> Counters:
    """The same mean: one round in a hundred counts a hundred, against one in each round."""
    return np.where(rng.random(shape) < 0.01, 100.0, 0.0), np.ones(shape)


ON_THE_BOUND: Mapping[str, Callable[[np.random.Generator, tuple[int, int]], Counters]] = {
    "Poisson 3, both": poisson,
    "same median, lognormal spread 1 v .1": other_spread,
    "bursts v steady, half of the rounds on each side": with_bursts,
    "mostly zero, other sizes": mostly_zero,
}
EQUAL_MEANS: Mapping[str, Callable[[np.random.Generator, tuple[int, int]], Counters]] = {
    "Poisson .2 v 1, by=.8": equal_means,
    "same mean, lognormal spread 1 v .1": skewed_counts,
    "same mean, rare bursts v steady": rare,
}


def counter_errors(values: Counters, level: float) -> tuple[int, int, int, int]:
    """How many runs are (higher, lower) in a typical round by any look, and so many of them with totals that agree."""
    first, second = values
    counted, sides = (first > 0) | (second > 0), (first > second, first < second)
    found = [np.zeros(len(first), bool) for _ in range(4)]
    for look, value in zip(LOOKS, critical_values.boundary(level).critical, strict=True):
        if value is None:
            continue
        seen = slice(0, look)
        gap = first[:, seen].sum(1) - second[:, seen].sum(1)
        open_still = ~(found[2] | found[3])
        for side, (of_side, agree) in enumerate(zip(sides, (gap > 0, gap < 0), strict=True)):
            if look < RANKS_FROM:
                openings = [one[:, seen].reshape(len(first), -1, PER_OPENING) for one in (first, second)]
                crossed = np.subtract(openings[0][:, :, :, None], openings[1][:, :, None, :]).reshape(len(first), -1)
                rejects = ((crossed > 0) if side == 0 else (crossed < 0)).sum(1) >= crossed.shape[1] - value
            else:
                least = np.array([counts.least(level, look, of) for of in range(look + 1)])
                rejects = of_side[:, seen].sum(1) >= least[counted[:, seen].sum(1)]
            found[side] |= rejects
            found[2 + side] |= rejects & agree & open_still
    return tuple(int(one.sum()) for one in found)  # type: ignore[return-value]


def show_counters(draws: int, seed: int) -> None:
    """Prints how often ``lower`` is decided: pairs of rounds on the bound, and equal means, which it is not about."""
    levels = (GUARD_LEVEL, *ALPHAS)
    print(f"{draws} runs a model: typical round higher, lower (upper 99 % limit of the larger); with totals that agree")
    for name, make in {**ON_THE_BOUND, **EQUAL_MEANS}.items():
        rng, cells = np.random.default_rng(seed), []
        totals = np.zeros((len(levels), 4), np.int64)
        for _ in range(max(1, draws // COUNTED)):
            values = make(rng, (COUNTED, LOOKS[-1]))
            totals += np.array([counter_errors(values, level) for level in levels])
        for level, found in zip(levels, totals, strict=True):
            limit = upper(int(max(found[:2])), draws)
            met = "" if name in EQUAL_MEANS else " met" if limit <= level else " MISSED"
            shares = [f"{one / draws:.3g}" for one in found]
            cells.append(f"{shares[0]}, {shares[1]} ({limit:.3g}){met}; {shares[2]}, {shares[3]}")
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


def main() -> None:
    """Reads the command line, and prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=1_000_000, help="of each model")
    parser.add_argument("--seed", type=int, default=20261124)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, help="the tables to print (default: all)")
    parser.add_argument("--model", default="", help="of the promised models only those with this in their name")
    arguments = parser.parse_args()
    if "promised" in arguments.only:
        show_promised(arguments.draws, arguments.seed, arguments.model)
    if "outside" in arguments.only:
        show_outside(min(arguments.draws, OUTSIDE_DRAWS), arguments.seed)
    if "counters" in arguments.only:
        show_counters(arguments.draws, arguments.seed)


if __name__ == "__main__":
    main()
