"""Counts how often a race is wrong, and how long it takes beside one claim after the other. No server is used.

    nice -n 19 python benchmarks/race.py [--runs 20000] [--time-runs 100] [--only errors time]

- errors: the share of races in which the best variant leaves, and in which it leaves or a variant wins that is slower
  by the margin. Both together have at most alpha (.0005). For each kind of noise: all variants alike; the others slower
  by exactly the margin; half of them. In ``noise / 10`` and ``noise x 10`` the noise of all changes when somebody
  leaves. In ``drifting`` and the waves it changes too, because the rounds of a block lie closer together.
- time: the rounds of a race of ten variants, and those of nine claims one after the other: each variant claims
  ``beats`` against the fastest so far, with two rounds a pair. The target of the median of the ratio is .3.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import math
import random
import statistics
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from benchmarks.critical_values import (
    IN_OPENINGS,
    RANK_LOOKS,
    Floats,
    Noise,
    bursts,
    drifting,
    normal,
    rank_sums,
    slow_in_block,
    stalling,
    two_mode,
    wave,
)
from benchmarks.noise_replay import at_most
from pytest_dbcluster.claims import critical_values, kinds, verdict
from pytest_dbcluster.claims.block_order import PER_OPENING, blocks
from pytest_dbcluster.claims.claim import Outcome
from pytest_dbcluster.claims.critical_values import LOOKS
from pytest_dbcluster.claims.pairs import Pairs
from pytest_dbcluster.claims.race.rule import RaceRule

ALPHA = verdict.ALPHA
MARGIN = 0.05
CV = 0.05  # of the time of a round
BATCH = 500
TARGET = 0.3
SURE = 0.01  # one-sided, of the upper limit of a share
SIZES = (3, 5, 10)
PARTS = ("errors", "time")
Bools = npt.NDArray[np.bool_]
# Kind of noise -> its log times, and the factor of all later noise once somebody has left.
MODELS: dict[str, tuple[Noise, float]] = {
    "normal": (normal, 1.0),
    "noise / 10": (normal, 0.1),
    "noise x 10": (normal, 10.0),
    **{noise.__name__: (noise, 1.0) for noise in (two_mode, stalling, drifting, bursts, slow_in_block)},
    **{noise.__name__: (noise, 1.0) for noise in (wave(6), wave(16))},
}
# Speeds of the others, the best being 1.
FIELDS: dict[str, Callable[[int], list[float]]] = {
    "all alike": lambda size: [1.0] * size,
    "others at the margin": lambda size: [1.0] + [1 - MARGIN] * (size - 1),
    "half at the margin": lambda size: [1.0 if number % 2 == 0 else 1 - MARGIN for number in range(size)],
}


@dataclasses.dataclass
class Races:
    """Some races that run at once: of each variant its log times, and the places of its rounds."""

    noise: Floats
    """The log time that each place adds, shape (races, places)."""

    later: float
    """The factor of the noise once somebody has left."""

    speeds: Floats
    """The log speed of each variant."""

    rng: np.random.Generator
    """Draws the order."""

    def __post_init__(self) -> None:
        shape = len(self.noise), len(self.speeds), LOOKS[-1]
        self.times, self.places = np.zeros(shape), np.zeros(shape, np.int64)
        self.remaining = np.ones(shape[:2], bool)
        self.used = np.zeros(shape[0], np.int64)
        self.pairs = 0
        for _ in range(0, IN_OPENINGS, PER_OPENING):
            order = np.argsort(self.rng.random((shape[0], shape[1] * PER_OPENING)), axis=1)
            self._add(order.reshape(*shape[:2], PER_OPENING), shape[1] * PER_OPENING)

    def draw(self, look: int) -> None:
        """Draw blocks up to a look; variants that left run no more."""
        while self.pairs < look:
            keys = np.where(self.remaining, self.rng.random(self.remaining.shape), 2.0)
            self._add(keys.argsort(1).argsort(1)[:, :, None], self.remaining.sum(1))

    def _add(self, order: npt.NDArray[np.int64], rounds: npt.NDArray[np.int64] | int) -> None:
        """Add a block. order: by race, variant and pair, the place inside of the block."""
        new = slice(self.pairs, self.pairs + order.shape[2])
        places = np.minimum(self.used[:, None, None] + order, self.noise.shape[1] - 1)
        added = np.take_along_axis(self.noise, places.reshape(len(places), -1), 1).reshape(places.shape)
        scale = np.where(self.remaining.all(1), 1.0, self.later)[:, None, None]
        self.times[:, :, new] = added * scale - self.speeds[:, None]
        self.places[:, :, new] = places
        self.used = self.used + rounds
        self.pairs = new.stop

    def above(self, one: int, other: int, races: Bools, value: int, bound: float) -> Bools:
        """In which of these races the look shows that ``one`` is faster than ``other`` by a log bound."""
        seen = slice(0, self.pairs)
        mine, theirs = self.times[races, one, seen], self.times[races, other, seen]
        signs = np.where(self.places[races, other, seen] < self.places[races, one, seen], 1.0, -1.0)
        found = np.zeros(len(races), bool)
        found[races] = rank_sums(theirs - mine - bound, signs) >= value
        return found


@dataclasses.dataclass
class Tally:
    """What races ended with."""

    races: int = 0
    """Their number."""

    trials: int = 0
    """Their number times that of their best variants: each of several is one that may not leave."""

    best_left: int = 0
    """In how many of the trials the best variant left."""

    wrong: int = 0
    """In how many of them it left, or a variant won that is slower by the margin or more."""

    ended: int = 0
    """The number of races with a winner."""


def tally(size: int, field: str, model: str, runs: int, seed: int) -> Tally:
    """So many races of ``size`` variants."""
    rng, found = np.random.default_rng(seed), Tally()
    noise, later = MODELS[model]
    speeds = np.log(np.array(FIELDS[field](size)))
    scale = CV if noise is normal else 1.0
    for _ in range(max(1, runs // BATCH)):
        races = Races(scale * noise(rng, BATCH, size * LOOKS[-1]), later, speeds, rng)
        count(races, speeds, found)
    return found


def count(races: Races, speeds: Floats, found: Tally) -> None:
    """Run the races to their end and add them to a tally."""
    size = len(speeds)
    level = RaceRule(size, MARGIN, ALPHA).level
    best = speeds == speeds.max()
    bad = speeds <= speeds.max() + math.log1p(-MARGIN) + 1e-12
    winners = np.full(len(races.noise), -1)
    for look in RANK_LOOKS:
        value = critical_values.boundary(level).at(look)
        if value is None or not (winners < 0).any():
            continue
        races.draw(look)
        _leave(races, winners < 0, value)
        _end(races, winners, value)
    left = ~races.remaining[:, best]
    found.races += len(winners)
    found.ended += int((winners >= 0).sum())
    found.trials += left.size
    found.best_left += int(left.sum())
    lost = (winners >= 0) & bad[winners]
    found.wrong += int((left | lost[:, None]).sum())


def _leave(races: Races, running: Bools, value: int) -> None:
    """Let those leave that one that stays has beaten."""
    size = races.remaining.shape[1]
    beats = np.zeros((len(running), size, size), bool)
    for one in range(size):
        for other in range(size):
            both = running & races.remaining[:, one] & races.remaining[:, other]
            if one != other and both.any():
                beats[:, one, other] = races.above(one, other, both, value, 0.0)
    staying = races.remaining & ~beats.any(1)
    races.remaining &= ~(beats & staying[:, :, None]).any(1)


def _end(races: Races, winners: npt.NDArray[np.int64], value: int) -> None:
    """Note the winners of races that end at this look; of several the one with the best mean so far."""
    size, running = races.remaining.shape[1], winners < 0
    safe = races.remaining.copy()
    for one in range(size):
        for other in range(size):
            both = running & safe[:, one] & races.remaining[:, other]
            if one != other and both.any():
                above = races.above(one, other, both, value, math.log1p(-MARGIN))
                safe[:, one] &= ~both | above
    means = np.where(safe, -np.median(races.times[:, :, : races.pairs], axis=2), -np.inf)
    ends = running & safe.any(1)
    winners[ends] = means[ends].argmax(1)


def show_errors(runs: int, seed: int, fields: Sequence[str]) -> None:
    """Print the share of wrong races for each kind of noise, with the upper 99 % limit."""
    print("| variants | speeds | noise | races | best leaves | wrong | with a winner |")
    print("|---" * 7 + "|")
    for size in SIZES:
        for field in fields:
            for model in MODELS:
                found = tally(size, field, model, runs, seed)
                cells = [size, field, model, found.races]
                for number in (found.best_left, found.wrong):
                    limit = upper(number, found.trials)
                    met = " met" if limit <= ALPHA else ""
                    cells.append(f"{number / found.trials:.3g} ({limit:.3g}){met}")
                cells.append(f"{found.ended / found.races:.2f}")
                print(f"| {' | '.join(map(str, cells))} |", flush=True)


def upper(number: int, of: int) -> float:
    """The share above which so few have a chance of less than ``SURE``."""
    low, high = number / of, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if at_most(number, of, middle) > SURE else (low, middle)
    return high


@dataclasses.dataclass
class Track:
    """Rounds of several variants in the order of ``block_order``, with independent normal noise."""

    speeds: Sequence[float]
    """The log speed of each variant."""

    coin: random.Random
    """Draws the noise and the seed of the order."""

    def __post_init__(self) -> None:
        self._order = blocks(len(self.speeds), self.coin.getrandbits(64))
        self.logs: list[list[float]] = [[] for _ in self.speeds]
        self.places: list[list[int]] = [[] for _ in self.speeds]
        self.rounds = 0
        self.remaining = list(range(len(self.speeds)))

    def draw(self, pairs: int) -> None:
        """Draw until each variant that remains has so many rounds."""
        while len(self.logs[self.remaining[0]]) < pairs:
            block = next(self._order)
            for _, number in sorted(zip(block.pairs, block.order, strict=True)):
                if number in self.remaining:
                    self.logs[number].append(self.speeds[number] + self.coin.gauss(0, CV))
            for pair in range(block.length):
                for place, (its, number) in enumerate(zip(block.pairs, block.order, strict=True)):
                    if its == pair and number in self.remaining:
                        self.places[number].append(self.rounds + place)
            self.rounds += sum(number in self.remaining for number in block.order)

    def drawn(self, candidate: int, baseline: int) -> Pairs:
        """The pairs of two variants."""
        first = tuple(b < c for c, b in zip(self.places[candidate], self.places[baseline], strict=True))
        return Pairs(tuple(self.logs[candidate]), tuple(self.logs[baseline]), first)


def race_rounds(speeds: Sequence[float], coin: random.Random) -> tuple[int | None, int]:
    """The winner of one race by the shipped rule, None without one, and the rounds that it took."""
    track, rule = Track(speeds, coin), RaceRule(len(speeds), MARGIN)
    for look in LOOKS:
        if critical_values.boundary(rule.level).at(look) is None:
            continue
        track.draw(look)
        for gone in rule.beaten(track.remaining, track.drawn):
            track.remaining.remove(gone)
        if (winner := rule.winner(track.remaining, track.drawn)) is not None:
            return winner, track.rounds
    return None, track.rounds


def claim_rounds(speeds: Sequence[float], coin: random.Random, alpha: float) -> tuple[int, int]:
    """The fastest variant by claims one after the other, and the rounds that they took. alpha: of each claim."""
    king, rounds, terms = 0, 0, verdict.Terms(alpha)
    for number in range(1, len(speeds)):
        track, found = Track([speeds[king], speeds[number]], coin), None
        while found is None:
            track.draw(critical_values.next_look(len(track.logs[0])) or LOOKS[-1])
            found = verdict.judge(kinds.beats(), track.drawn(1, 0), terms)
        rounds += track.rounds
        king = number if found.outcome is Outcome.HOLDS else king
    return king, rounds


def show_time(runs: int, seed: int) -> None:
    """Print the rounds of races and of claims, for fields of ten variants."""
    print("| ten variants | race, rounds | claims, rounds | race / claims | best won the race | the claims |")
    print("|---" * 6 + "|")
    whole = RaceRule(10, MARGIN).level  # of each claim, so that all together err as often as the race
    for (name, drawn), alpha in itertools.product(TEN.items(), (ALPHA, whole)):
        coin, ratios, best, of_races, of_claims = random.Random(seed), [], [0, 0], [], []
        for _ in range(runs):
            speeds = drawn(coin)
            coin.shuffle(speeds)
            (winner, took), (king, claimed) = race_rounds(speeds, coin), claim_rounds(speeds, coin, alpha)
            least = max(speeds) + math.log1p(-MARGIN)
            best[0] += winner is not None and speeds[winner] > least
            best[1] += speeds[king] > least
            ratios.append(took / claimed)
            of_races.append(took)
            of_claims.append(claimed)
        middle = statistics.median(ratios)
        error = "error of the race" if alpha == whole else "error of .0005 each"
        cells = [f"{name}, {error}", f"{statistics.median(of_races):.0f}", f"{statistics.median(of_claims):.0f}"]
        cells.append(f"{middle:.2f} ({min(ratios):.2f} .. {max(ratios):.2f}){' met' if middle <= TARGET else ''}")
        print(f"| {' | '.join([*cells, *(f'{count} of {runs}' for count in best)])} |", flush=True)


# Log speeds of ten variants.
TEN: dict[str, Callable[[random.Random], list[float]]] = {
    "even steps of 3 %": lambda coin: [0.03 * number for number in range(10)],
    "even steps of 5 %": lambda coin: [0.05 * number for number in range(10)],
    "normal, sd 10 %": lambda coin: [coin.gauss(0, 0.1) for _ in range(10)],
    "one 10 % faster": lambda coin: [0.1] + [0.0] * 9,
    "two 20 % faster": lambda coin: [0.2] * 2 + [0.0] * 8,
    "all alike": lambda coin: [0.0] * 10,
}


def main() -> None:
    """Count, and print two tables."""
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20_000, help="races of each row of errors")
    parser.add_argument("--time-runs", type=int, default=100, help="races, and claims, of each row of time")
    parser.add_argument("--speeds", nargs="+", choices=FIELDS, default=[*FIELDS], help="the rows of errors")
    parser.add_argument("--seed", type=int, default=20261126)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    arguments = parser.parse_args()
    if "errors" in arguments.only:
        show_errors(arguments.runs, arguments.seed, arguments.speeds)
    if "time" in arguments.only:
        show_time(arguments.time_runs, arguments.seed)


if __name__ == "__main__":
    main()
