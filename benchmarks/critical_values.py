"""Calibrates the table of pytest_dbcluster/claims/critical_values.py by simulation, prints it, and checks it.

    nice -n 19 env OPENBLAS_NUM_THREADS=1 python benchmarks/critical_values.py    # calibrate
    python benchmarks/critical_values.py --check --runs 1000000    # errors of the shipped table

A claim checks the data (a "look") after 6, 8, 11, ... 160 pairs. Every look rejects at the same nominal level. The
level is chosen so that the probability to reject at any look, if nothing differs, is the promised one. Below 15 pairs
a look is a t test that needs equal signs and multiplies its p-value by four. From 15 pairs on it is Wilcoxon's
signed-rank test. The nominal level is the smallest of the levels for normal, uniform and two-mode differences. The tail
of Student's t follows Abramowitz and Stegun 26.7.3 and 26.7.4; the signed-rank distribution is exact.
"""

from __future__ import annotations

import argparse
import functools
import math
import time
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from pytest_dbcluster.claims import critical_values

Floats = npt.NDArray[np.float64]
Noise = Callable[[np.random.Generator, int], npt.NDArray[np.float32]]

BATCH = 4_000
KEEP = 0.06  # every nominal level of the table is smaller, so larger p-values are not kept
PENALTY = 4.0


def normal(rng: np.random.Generator, runs: int) -> npt.NDArray[np.float32]:
    """Standard normal differences, shape (runs, pairs)."""
    return rng.standard_normal((runs, critical_values.LOOKS[-1]), dtype=np.float32)


def uniform(rng: np.random.Generator, runs: int) -> npt.NDArray[np.float32]:
    """Differences without tails, shape (runs, pairs)."""
    return rng.random((runs, critical_values.LOOKS[-1]), dtype=np.float32) - np.float32(0.5)


def two_mode(rng: np.random.Generator, runs: int) -> npt.NDArray[np.float32]:
    """Differences of rounds that are fast or 1.5 times slower with equal probability, shape (runs, pairs)."""
    shape = (runs, critical_values.LOOKS[-1])
    modes = rng.integers(0, 2, shape, dtype=np.int8) - rng.integers(0, 2, shape, dtype=np.int8)
    return (modes * math.log(1.5) + 0.028 * rng.standard_normal(shape, dtype=np.float32)).astype(np.float32)


def arcsine(rng: np.random.Generator, runs: int) -> npt.NDArray[np.float32]:
    """Differences concentrated at their extremes, shape (runs, pairs): the worst case known; for --check only."""
    angles: npt.NDArray[np.float32] = np.float32(2 * math.pi) * uniform(rng, runs)
    return np.sin(angles)


def cauchy(rng: np.random.Generator, runs: int) -> npt.NDArray[np.float32]:
    """Differences whose mean does not exist, shape (runs, pairs)."""
    return rng.standard_cauchy((runs, critical_values.LOOKS[-1])).astype(np.float32)


CALIBRATED: dict[str, Noise] = {"normal": normal, "uniform": uniform, "two_mode": two_mode}
CHECKED: dict[str, Noise] = {**CALIBRATED, "cauchy": cauchy, "arcsine": arcsine}


def student_p(t: Floats, df: int) -> Floats:
    """Two-sided p-values of Student's t with ``df`` degrees of freedom."""
    angle = np.arctan(t / math.sqrt(df))
    cosine, odd = np.cos(angle), df % 2
    term = cosine.copy() if odd else np.ones_like(cosine)
    total = np.zeros_like(cosine)
    for j in range(1, (df + 1) // 2 + (1 - odd)):
        total += term
        term = term * cosine**2 * ((2 * j) / (2 * j + 1) if odd else (2 * j - 1) / (2 * j))
    inside = np.sin(angle) * total
    if odd:
        inside = (angle + inside) * 2 / math.pi
    outside: Floats = np.maximum(1 - inside, 0.0)
    return outside


@functools.cache
def signed_rank_p(pairs: int) -> Floats:
    """Two-sided p-values of the signed-rank sum, indexed by the sum W: twice the exact P(sum >= W)."""
    chance = np.zeros(pairs * (pairs + 1) // 2 + 1)
    chance[0] = 1.0
    for rank in range(1, pairs + 1):
        raised = np.zeros_like(chance)
        raised[rank:] = chance[:-rank]
        chance = (chance + raised) / 2
    return np.minimum(2 * np.cumsum(chance[::-1])[::-1], 1.0)


def t_look(values: npt.NDArray[np.float32]) -> Floats:
    """Two-sided p-values of one t look, shape (runs,), times ``PENALTY``; 1 unless all signs agree."""
    pairs = values.shape[1]
    positive = (values > 0).sum(1)
    agree = np.flatnonzero((positive == 0) | (positive == pairs))
    chosen = values[agree].astype(np.float64)
    t = np.abs(chosen.mean(1)) / (chosen.std(1, ddof=1) / math.sqrt(pairs))
    p = np.ones(len(values))
    p[agree] = np.minimum(PENALTY * student_p(t, pairs - 1), 1.0)
    return p


def rank_sums(values: npt.NDArray[np.float32], looks: tuple[int, ...]) -> npt.NDArray[np.int32]:
    """Signed-rank sums at each look, shape (looks, runs), from one sort of all differences."""
    order = np.argsort(np.abs(values), axis=1).astype(np.uint8)
    positive = np.take_along_axis(values > 0, order, 1)
    sums = np.empty((len(looks), len(values)), np.int32)
    for row, pairs in enumerate(looks):
        among = order < pairs
        ranks = np.cumsum(among, axis=1, dtype=np.uint8)
        sums[row] = (ranks * (among & positive)).sum(1, dtype=np.int32)
    return sums


def p_values(values: npt.NDArray[np.float32]) -> Floats:
    """Two-sided p-values at every look, shape (looks, runs)."""
    rank_looks = tuple(pairs for pairs in critical_values.LOOKS if pairs >= critical_values.RANKS_FROM)
    parts = [t_look(values[:, :pairs]) for pairs in critical_values.LOOKS if pairs < critical_values.RANKS_FROM]
    for pairs, sums in zip(rank_looks, rank_sums(values, rank_looks), strict=True):
        total = pairs * (pairs + 1) // 2
        parts.append(signed_rank_p(pairs)[np.maximum(sums, total - sums)])
    return np.array(parts)


def first_look(one_sided: float) -> int:
    """The 0-based index of the first look that may reject at this level.

    Two-mode differences give n equal steps with probability 4**-n, and no t value distinguishes them from an effect.
    A look does not reject if this probability alone exceeds half of the level.
    """
    return next(k for k, pairs in enumerate(critical_values.LOOKS) if 2 * 4.0**-pairs <= one_sided)


def smallest_p(noise: Noise, runs: int, seed: int) -> dict[int, Floats]:
    """By first look: the smallest p-value of each run from that look on, sorted, without values above ``KEEP``."""
    rng = np.random.default_rng(seed)
    kept: dict[int, list[Floats]] = {first_look(level): [] for level in critical_values.LEVELS}
    for _ in range(runs // BATCH):
        p = p_values(noise(rng, BATCH))
        for first, lists in kept.items():
            lowest = p[first:].min(0)
            lists.append(lowest[lowest < KEEP])
    return {first: np.sort(np.concatenate(lists)) for first, lists in kept.items()}


def nominal_level(lowest: Floats, runs: int, one_sided: float) -> float:
    """The largest two-sided level at which at most a share of ``2 * one_sided`` of the runs rejects."""
    allowed = int(2 * one_sided * runs)
    return float(lowest[np.searchsorted(lowest, lowest[allowed]) - 1])


def critical_t(level: float, pairs: int) -> float:
    """The t value that a look of ``pairs`` pairs must exceed, rounded up to four decimals."""
    low, high = 0.0, 1e4
    for _ in range(200):
        middle = (low + high) / 2
        above = PENALTY * float(student_p(np.array([middle]), pairs - 1)[0]) > level
        low, high = (middle, high) if above else (low, middle)
    return math.ceil(high * 1e4) / 1e4


def critical_rank_sum(level: float, pairs: int) -> int:
    """The signed-rank sum that a look must reach; the maximum sum plus 1 if no sum suffices."""
    strong = np.flatnonzero(signed_rank_p(pairs) <= level * (1 + 1e-9))
    return int(strong[0]) if len(strong) else pairs * (pairs + 1) // 2 + 1


def boundary(level: float, first: int) -> critical_values.Boundary:
    """The critical values of all looks at a nominal two-sided level; infinite before look ``first``."""
    values: list[float] = []
    for k, pairs in enumerate(critical_values.LOOKS):
        if pairs >= critical_values.RANKS_FROM:
            values.append(critical_rank_sum(level, pairs))
        else:
            values.append(critical_t(level, pairs) if k >= first else math.inf)
    return critical_values.Boundary(float(f"{level / 2:.4g}"), tuple(values))


def calibrate(runs: int, seed: int) -> None:
    """Prints the table as Python source, and before each row the level that each kind of noise allows.

    A stricter row never has a larger nominal level than a looser row, so that intervals nest.
    """
    lowest = {}
    for kind, noise in CALIBRATED.items():
        started = time.monotonic()
        lowest[kind] = smallest_p(noise, runs, seed)
        print(f"# {kind}: {runs} runs in {time.monotonic() - started:.0f} s", flush=True)
    level = 1.0
    for one_sided in critical_values.LEVELS:
        first = first_look(one_sided)
        allowed = {kind: nominal_level(p[first], runs, one_sided) for kind, p in lowest.items()}
        print(f"# {one_sided:.3g}: " + ", ".join(f"{kind} {p / 2:.4g}" for kind, p in allowed.items()))
        level = min(level, *allowed.values())
        row = boundary(level, first)
        values = ", ".join(f"{value:g}" if value > 99 else f"{value:.4f}" for value in row.critical)
        print(f"    {one_sided!r}: Boundary({row.nominal!r}, ({values})),", flush=True)


def rejections(values: npt.NDArray[np.float32]) -> list[int]:
    """For each row of the shipped table, the number of runs that it rejects as faster at any look."""
    rank_looks = tuple(pairs for pairs in critical_values.LOOKS if pairs >= critical_values.RANKS_FROM)
    few = len(critical_values.LOOKS) - len(rank_looks)
    sums = rank_sums(values, rank_looks)
    ups, ts = [], []
    for pairs in critical_values.LOOKS[:few]:
        up = np.flatnonzero((values[:, :pairs] > 0).all(1))
        chosen = values[up, :pairs].astype(np.float64)
        ups.append(up)
        ts.append(chosen.mean(1) / (chosen.std(1, ddof=1) / math.sqrt(pairs)))
    counts = []
    for row in map(critical_values.boundary, critical_values.LEVELS):
        hit = np.any(sums >= np.array(row.critical[few:])[:, None], axis=0)
        for up, t, threshold in zip(ups, ts, row.critical[:few], strict=True):
            hit[up[t > threshold]] = True
        counts.append(int(np.count_nonzero(hit)))
    return counts


def check(runs: int, seed: int) -> None:
    """Prints the one-sided error probability of the shipped table under each kind of noise."""
    print("| noise | " + " | ".join(f"{level:.3g}" for level in critical_values.LEVELS) + " |")
    print("|---" * (1 + len(critical_values.LEVELS)) + "|")
    for kind, noise in CHECKED.items():
        rng = np.random.default_rng(seed)
        batches = [rejections(noise(rng, BATCH)) for _ in range(runs // BATCH)]
        errors = np.sum(batches, axis=0) / (len(batches) * BATCH)
        print(f"| {kind} | " + " | ".join(f"{error:.3g}" for error in errors) + " |", flush=True)


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20_000_000, help="simulated claims per kind of noise")
    parser.add_argument("--seed", type=int, default=20240817)
    parser.add_argument("--check", action="store_true", help="measure the shipped table instead")
    arguments = parser.parse_args()
    (check if arguments.check else calibrate)(arguments.runs, arguments.seed)


if __name__ == "__main__":
    main()
