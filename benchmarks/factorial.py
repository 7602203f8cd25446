"""How often claims about effects of options are wrong, and how fast they decide: ``claims/factorial``.

    nice -n 19 python benchmarks/factorial.py

It shows the errors of an option that does nothing. ``--outside`` shows them where nothing is promised. ``--time`` shows
the rounds until five options are decided.

Five options with drawn levels. The last one does nothing, and the others have effects and strong interactions. Each
figure is the share of one side: how often the claim that the last option is faster, or slower, holds at any look.
"""

from __future__ import annotations

import argparse
import itertools
import math
import statistics
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from benchmarks.critical_values import CHECKED, Floats
from benchmarks.noise_models import upper
from pytest_dbcluster.claims import kinds, verdict
from pytest_dbcluster.claims.claim import Claim, Outcome
from pytest_dbcluster.claims.factorial import chances, design, judging
from pytest_dbcluster.claims.factorial.trial import FactorialTrial
from pytest_dbcluster.claims.pairs import Pairs
from pytest_dbcluster.claims.verdict import Terms

OPTIONS = 5
OWN = OPTIONS - 1  # the option that does nothing
BLOCKS = chances.LOOKS[-1]
RUNS = 250  # at once
LEVELS = (0.05, 0.0005, 0.0001)
EFFECTS = (0.8, -0.3, 0.1, 0.0, 0.0)  # of the second level, in logs
TIMED = (0.79, 0.26, 0.0, 0.1, 0.0)  # about 2.2 and 1.3 times as fast, nothing, 10 %, nothing
MARGIN = 0.05

Levels = npt.NDArray[np.int8]
Times = Callable[[np.random.Generator, Levels], Floats]


def drawn(rng: np.random.Generator, runs: int) -> Levels:
    """The levels of each round, shape (runs, blocks, 8, options): four of each level in a block."""
    order = rng.random((runs, BLOCKS, design.ROUNDS, OPTIONS)).argsort(axis=2)
    return (order < design.PER_LEVEL).astype(np.int8)


def strong(levels: Levels) -> Floats:
    """The log speeds of options that depend on each other; the last one does nothing in any combination."""
    first, second, third, fourth = (levels[..., option].astype(float) for option in range(OWN))
    found = levels @ np.array(EFFECTS) + 0.7 * first * second - 0.5 * second * third + 0.6 * first * third * fourth
    return np.asarray(found)


def of_noise(name: str, interacting: Callable[[Levels], Floats] = strong) -> Times:
    """Log speeds with noise of ``critical_values.CHECKED``."""

    def make(rng: np.random.Generator, levels: Levels) -> Floats:
        speeds = interacting(levels)
        return speeds - CHECKED[name](rng, len(levels), BLOCKS * design.ROUNDS).reshape(speeds.shape)

    return make


def fine(rng: np.random.Generator, levels: Levels) -> Floats:
    """Independent noise of 5 %, and strong interactions of the others."""
    return strong(levels) + 0.05 * rng.standard_normal(levels.shape[:3])


def carried(share: float) -> Times:
    """The second level of the last option slows the round that follows it."""

    def make(rng: np.random.Generator, levels: Levels) -> Floats:
        own = levels[..., OWN].reshape(len(levels), -1)
        before = np.concatenate([np.zeros((len(own), 1)), own[:, :-1]], axis=1)
        return 0.02 * rng.standard_normal(levels.shape[:3]) - share * before.reshape(levels.shape[:3])

    return make


def spread(one: float, other: float) -> Times:
    """The last option changes only how much the rounds scatter: their CV is ``one`` or ``other``."""

    def make(rng: np.random.Generator, levels: Levels) -> Floats:
        return np.asarray(np.where(levels[..., OWN] == 1, one, other) * rng.standard_normal(levels.shape[:3]))

    return make


def crossed(rng: np.random.Generator, levels: Levels) -> Floats:
    """The last option gains 30 % with one level of the first option and loses as much with the other."""
    sign = 2 * levels[..., 0] - 1
    return np.asarray(0.26 * sign * levels[..., OWN] + 0.05 * rng.standard_normal(levels.shape[:3]))


PROMISED: dict[str, Times] = {
    "CV 5 %, strong interactions of the others": fine,
    **{f"{name}, strong interactions of the others": of_noise(name) for name in CHECKED},
}
OUTSIDE: dict[str, Times] = {
    "CV 10 v 5 %": spread(0.1, 0.05),
    "CV 10 v 1 %": spread(0.1, 0.01),
    "carry-over of 1 %, CV 2 %": carried(0.01),
    "carry-over of 5 %, CV 2 %": carried(0.05),
    "effect of +30 % or -23 %, by the level of another option": crossed,
}


def left(values: Floats, others: Floats) -> Floats:
    """Residuals after the means of blocks and the other columns; shapes (runs, blocks, 8) and with a last axis."""
    runs = len(values)
    centred = (values - values.mean(axis=2, keepdims=True)).reshape(runs, -1)
    columns = (others - others.mean(axis=2, keepdims=True)).reshape(runs, -1, others.shape[-1])
    across = columns.transpose(0, 2, 1)
    fitted = np.linalg.pinv(across @ columns) @ (across @ centred[..., None])
    return np.asarray((centred - (columns @ fitted)[..., 0]).reshape(values.shape))


def rejected(speeds: Floats, levels: Levels, level: float) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Of each run, whether any look finds the last option (faster, slower) than nothing."""
    up = np.zeros(len(speeds), bool)
    down = up.copy()
    for look in chances.LOOKS:
        value = chances.critical_value([(design.PER_LEVEL,) * 2] * look, chances.at_look(level))
        if value is None:
            continue
        own = levels[:, :look, :, OWN] == 1
        found = left(speeds[:, :look], levels[:, :look, :, :OWN].astype(float))
        compared = own[..., :, None] & ~own[..., None, :]
        not_above = (found[..., :, None] <= found[..., None, :]) & compared
        not_below = (found[..., :, None] >= found[..., None, :]) & compared
        up |= not_above.sum((1, 2, 3)) <= value
        down |= not_below.sum((1, 2, 3)) <= value
    return up, down


def errors(times: Times, draws: int, seed: int) -> dict[float, int]:
    """By level, how many of so many runs are rejected, of both sides together."""
    rng, found = np.random.default_rng(seed), dict.fromkeys(LEVELS, 0)
    for _ in range(draws // RUNS):
        levels = drawn(rng, RUNS)
        speeds = times(rng, levels)
        for level in LEVELS:
            found[level] += sum(int(side.sum()) for side in rejected(speeds, levels, level))
    return found


def show(models: dict[str, Times], draws: int, seed: int, *, promised: bool) -> None:
    """Prints the share of one side by model and level, with its upper 99 % limit."""
    print(f"{draws} runs a model, both sides: errors of one side, and their upper 99 % limits")
    print("| the last option does nothing | " + " | ".join(f"{level:.3g}" for level in LEVELS) + " |")
    print("|---" * (1 + len(LEVELS)) + "|")
    for name, times in models.items():
        found = errors(times, draws, seed)
        cells = [f"{hits / draws / 2:.2g} ({upper(hits, 2 * draws):.2g})" for hits in found.values()]
        missed = promised and any(hits / draws / 2 > level for level, hits in found.items() if level == LEVELS[0])
        print(f"| {name} | {' | '.join(cells)} |{' MISSED' if missed else ''}", flush=True)


def rounds_of_one(effect: float, cv: float, rng: np.random.Generator) -> int:
    """The rounds until one claim about two variants is decided, ``beats`` or else ``same_as``."""
    pairs = verdict.CAP
    logs = cv * rng.standard_normal((2, pairs))
    first = tuple(bool(one) for one in rng.random(pairs) < 0.5)
    whole = Pairs(tuple(effect + logs[0]), tuple(logs[1]), first)
    found = [decided for claim in claims_of(effect) if (decided := verdict.replay(claim[0], whole))]
    return 2 * min(one.pairs for one in found)


def claims_of(effect: float) -> Iterator[tuple[Claim, Claim]]:
    """The claim that is true of an effect, about a pair of variants and about an option."""
    if effect > math.log1p(MARGIN):
        yield kinds.beats(0.0), kinds.effect_beats(0.0)
    else:
        yield kinds.same_as(MARGIN), kinds.effect_same_as(MARGIN)


def rounds_of_all(cv: float, rng: np.random.Generator, seed: int) -> int:
    """The rounds until the effects of all options are decided, from the same rounds."""
    blocks = itertools.islice(design.blocks(OPTIONS, seed), BLOCKS)
    numbers = tuple(number for block in blocks for number in block.order)
    logs = [
        sum(one for k, one in enumerate(TIMED) if number >> k & 1) + cv * rng.standard_normal() for number in numbers
    ]
    trial, terms = FactorialTrial(tuple(logs), numbers, OPTIONS), Terms(0.0005 / OPTIONS)
    decided = []
    for option, effect in enumerate(TIMED):
        found = [judging.judge(claim[1], trial, terms, option) for claim in claims_of(effect)]
        decided.append(min(one.pairs if one and one.outcome is not Outcome.INCONCLUSIVE else 160 for one in found))
    return 2 * max(decided)


def show_time(runs: int, seed: int) -> None:
    """Prints the rounds until five options are decided, all together and one by one."""
    print("| CV | together, median | one by one, median | ratio |\n|---|---|---|---|")
    for cv in (0.02, 0.05, 0.1):
        rng = np.random.default_rng(seed)
        together = [rounds_of_all(cv, rng, seed + run) for run in range(runs)]
        apart = [sum(rounds_of_one(effect, cv, rng) for effect in TIMED) for _ in range(runs)]
        both = statistics.median(together), statistics.median(apart)
        print(f"| {100 * cv:.0f} % | {both[0]:.0f} | {both[1]:.0f} | {both[0] / both[1]:.2f} |", flush=True)


def main() -> None:
    """Prints one of the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=20_000, help="runs of each model")
    parser.add_argument("--outside", action="store_true", help="models about which nothing is promised")
    parser.add_argument("--time", action="store_true", help="rounds until five options are decided")
    parser.add_argument("--only", default="", help="models with this part in their name")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    promised, draws = not arguments.outside, RUNS * max(1, arguments.draws // RUNS)
    if arguments.time:
        show_time(arguments.draws, arguments.seed)
    else:
        models = PROMISED if promised else OUTSIDE
        chosen = {name: times for name, times in models.items() if arguments.only in name}
        show(chosen, draws, arguments.seed, promised=promised)


if __name__ == "__main__":
    main()
