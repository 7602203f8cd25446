"""Counts how often verdicts are wrong: two variants with the same centre, all looks together, for noise of many kinds.

    nice -n 10 python benchmarks/noise_models.py [--draws 1000000] [--only promised outside]

- promised: noise that is the same for both variants, whatever it is, or that differs while the log differences of
  independent rounds stay symmetric about the bound. Each row is met if the upper 99 % limit of the error towards one
  side is at most the level. A model has ``RUNS`` of 20 draws of the order each (``critical_values.redrawn``), and each
  draw counts towards both sides.
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
from pytest_dbcluster.claims import critical_values
from pytest_dbcluster.claims.critical_values import ALPHAS, GUARD_LEVEL, LOOKS, RANKS_FROM

ROUNDS = 2 * LOOKS[-1]
RUNS = 500  # at once
SHOWN = (GUARD_LEVEL, *ALPHAS, ALPHAS[0] / 4, ALPHAS[1] / 16)
OUTSIDE_DRAWS = 20_000
PARTS = ("promised", "outside")

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

    def made(rng: np.random.Generator, runs: int) -> tuple[Floats, Floats | None]:
        sides = np.where(rng.random((runs, ROUNDS), dtype=np.float32) < 0.5, np.float32(0.05), np.float32(-0.05))
        return sides + normal(rng, runs, inside), normal(rng, runs, 0.01)

    return made


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


def shared(name: str) -> Model:
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
    "noise grows a hundredfold, both": Model(shared_growth, independent=False),
    **{f"{name}, both": shared(name) for name in (*INDEPENDENT, *DEPENDENT)},
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


def rejected(found: Mapping[int, npt.NDArray[np.int64]], level: float) -> tuple[npt.NDArray[np.bool_], ...]:
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
            for side, hits in enumerate(rejected(found, level)):
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


def show_promised(draws: int, seed: int) -> None:
    """Prints the table of what is promised."""
    print(f"{draws} draws a model, towards both sides: errors of one side, and their upper 99 % limits")
    print("| same centre | " + " | ".join(f"{level:.3g}" for level in SHOWN) + " |")
    print("|---" * (1 + len(SHOWN)) + "|")
    for name, model in PROMISED.items():
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
        shares = [max(side.mean() for side in rejected(found, level)) for level in SHOWN]
        print(f"| {name} | " + " | ".join(f"{share:.3g}" for share in shares) + " |", flush=True)


def main() -> None:
    """Reads the command line, and prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=1_000_000, help="of each model")
    parser.add_argument("--seed", type=int, default=20261124)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, help="the tables to print (default: all)")
    arguments = parser.parse_args()
    if "promised" in arguments.only:
        show_promised(arguments.draws, arguments.seed)
    if "outside" in arguments.only:
        show_outside(min(arguments.draws, OUTSIDE_DRAWS), arguments.seed)


if __name__ == "__main__":
    main()
