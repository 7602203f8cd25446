"""Counts how often the figures of a message come true: "could see differences >= x", and "needs about N pairs".

    python benchmarks/power.py [--runs 1000]

Could see: a claim about two equal variants draws n pairs, and its message says x. Fresh rounds with this difference are
then judged look by look. In .8 of the runs they have to decide by n pairs (x from the bound of a claim).
Needs: a claim is still open after n pairs, and its message says N, for its estimate as the true ratio. Fresh rounds
with this ratio have to decide by N pairs in .8 of the runs, or in more: N is the first look that is said to be enough.
One look earlier: where N is not the very next look after n, the look before N must not be enough: the same fresh rounds
decide by that look in less than .8 of the runs.
The rounds are independent. "Could see" is counted for noise of several kinds, the others for normal noise.
"""

from __future__ import annotations

import argparse
import itertools
import math
import random
from collections.abc import Callable, Iterator, Sequence

from pytest_dbcluster.claims import critical_values, intervals, power
from pytest_dbcluster.claims.block_order import blocks
from pytest_dbcluster.claims.claim import Claim, Verdict
from pytest_dbcluster.claims.critical_values import ALPHAS
from pytest_dbcluster.claims.kinds import beats, no_slower_than
from pytest_dbcluster.claims.pairs import Pairs
from pytest_dbcluster.claims.verdict import Terms, judge

SIZES = (20, 28, 40, 80)  # pairs; fewer tell a range
CLAIMS = (beats(), no_slower_than(0.05))
POWER, WIDE, NEAR = 0.8, 0.1, 0.05
SD = 0.05  # of the log time of a round
LAST = critical_values.LOOKS[-1]


Noise = Callable[[random.Random], float]
NOISES: dict[str, Noise] = {
    "normal": lambda coin: coin.gauss(0, SD),
    "one round in 20 takes 3 times as long": lambda coin: coin.gauss(0, SD) + (coin.random() < 0.05) * math.log(3),
    "one round in 10 takes 3 times as long": lambda coin: coin.gauss(0, 0.02) + (coin.random() < 0.1) * math.log(3),
    "two modes": lambda coin: coin.gauss(0, 0.01) + coin.choice((-SD, SD)),
    "skewed": lambda coin: SD * coin.expovariate(1),
    "heavy tails": lambda coin: 0.03 * coin.gauss(0, 1) / math.sqrt(coin.expovariate(1)),
}
NORMAL = NOISES["normal"]


def draw(coin: random.Random, theta: float, pairs: int, noise: Noise = NORMAL) -> Pairs:
    """Pairs of rounds in a random order, whose true log ratio is theta."""
    first: list[bool] = []
    for block in blocks(2, coin.getrandbits(64)):
        if len(first) >= pairs:
            break
        baseline, candidate = (
            {block.pairs[n]: n for n in range(len(block.order)) if block.order[n] == k} for k in (0, 1)
        )
        first += [baseline[pair] < candidate[pair] for pair in range(block.length)]
    logs = [[middle - noise(coin) for _ in range(pairs)] for middle in (theta, 0.0)]
    return Pairs(tuple(logs[0]), tuple(logs[1]), tuple(first[:pairs]))


def deciding_look(claim: Claim, pairs: Pairs) -> int | None:
    """The first look at these pairs that lets the claim hold, None without one; for claims with one bound."""
    level, bound = claim.hold_level(ALPHAS[0]), claim.bounds[0]
    looks = (look for look in critical_values.looks() if look <= len(pairs))
    return next((look for look in looks if intervals.rejects(pairs.first(look), level, bound)[0]), None)


def could_see(claim: Claim, pairs: int, runs: int, seed: int, noise: Noise = NORMAL) -> float:
    """The share of fresh claims that hold by so many pairs, at the difference that other pairs "could see"."""
    coin, held, bound = random.Random(seed), 0, claim.bounds[0]
    for _ in range(runs):
        could = power.detectable(draw(coin, bound, pairs, noise), claim.hold_level(ALPHAS[0]))
        held += deciding_look(claim, draw(coin, bound + could, pairs, noise)) is not None
    return held / runs


def open_claims(claim: Claim, pairs: int, coin: random.Random) -> Iterator[Verdict]:
    """Verdicts of claims that are open after so many pairs, would hold at their estimate, and need 160 at most."""
    level = claim.hold_level(ALPHAS[0])
    while True:
        reach = power.detectable(draw(coin, 0.0, pairs), level)
        drawn_so_far = draw(coin, claim.bounds[0] + coin.uniform(0.3, 1) * reach, pairs)
        if deciding_look(claim, drawn_so_far):
            continue
        said = judge(claim, drawn_so_far, Terms(cap=pairs))
        if said and said.needed_pairs and said.needed_pairs <= LAST and math.log(said.ratio) > claim.bounds[0]:
            yield said


def needed_shares(claim: Claim, pairs: int, runs: int, seed: int) -> tuple[float, float]:
    """The share of fresh claims that hold by as many pairs as an open one needs, at its estimate, and one look earlier.

    The second counts only claims whose number is not the very next look: there an earlier one could have been named.
    """
    coin, held, earlier = random.Random(seed), 0, []
    for said in itertools.islice(open_claims(claim, pairs, coin), runs):
        enough = said.needed_pairs or LAST
        look = deciding_look(claim, draw(coin, math.log(said.ratio), enough))
        held += look is not None
        before = critical_values.last_look(enough - 1)
        if before is not None and before > pairs:
            earlier.append(look is not None and look <= before)
    return held / runs, sum(earlier) / len(earlier) if earlier else math.nan


def row(name: str, figures: Sequence[float], low: float, high: float) -> str:
    """One row of the table, and whether it meets its target; a figure that no run gave is nan, and meets none."""
    met = all(low <= figure <= high for figure in figures)
    return f"{name:58}" + "".join(f"{figure:8.3f}" for figure in figures) + ("  met" if met else "  MISSED")


def main() -> None:
    """Reads the command line, and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000, help="claims of each figure")
    parser.add_argument("--seed", type=int, default=20240817)
    arguments = parser.parse_args()
    error = math.sqrt(POWER * (1 - POWER) / arguments.runs)
    print(f"{arguments.runs} runs of each figure: the standard error is {error:.3f}")
    print(f"{'pairs':58}" + "".join(f"{pairs:8}" for pairs in SIZES))
    for claim in CLAIMS:
        for name, noise in NOISES.items():
            seen = [could_see(claim, pairs, arguments.runs, arguments.seed + pairs, noise) for pairs in SIZES]
            print(row(f"{claim.kind}: could see, {name}", seen, POWER - WIDE, POWER + WIDE), flush=True)
        said = [needed_shares(claim, pairs, arguments.runs, arguments.seed + pairs) for pairs in SIZES]
        enough, earlier = zip(*said, strict=True)
        print(row(f"{claim.kind}: needs", enough, POWER - NEAR, 1.0), flush=True)
        print(row(f"{claim.kind}: one look earlier", earlier, 0.0, POWER), flush=True)


if __name__ == "__main__":
    main()
