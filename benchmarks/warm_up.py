"""Do warm-ups of .9 s choose rounds as good as those of warm-ups of 2 s, and how long do they last?

    python benchmarks/warm_up.py [--runs 24] [--loads read_write tpcc ...]

Draws blocks of rounds of 2 s of two variants on running Galera nodes. Two neighbouring blocks are a warm-up, once whole
and once with the first .9 s of each round, so that both see the same rounds. All blocks together show the noise within
rounds and between them. It says how long a claim takes to a given precision with the chosen rounds, relative to the
best length. The seconds of a warm-up are those of two blocks of four variants.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Iterator, Sequence

from benchmarks import ratios, stage
from benchmarks.round_length import LOADS
from fixtures.clusters import FLUSH_2, GALERA
from pytest_dbcluster.rounds import round_length
from pytest_dbcluster.rounds.round import Round
from pytest_dbcluster.rounds.round_length import LONGEST, SHORTEST, TENTH, USUAL, WARM_UP
from pytest_dbcluster.testbed.pool import Pool

VARIANTS = 4
TARGET = 8.0  # seconds of a warm-up of four variants
Blocks = Sequence[Sequence[Round]]


def first_part(done: Round, seconds: float) -> Round:
    """The round as if it had ended after so many seconds."""
    tenths = done.outcome.by_tenth[: round(seconds / TENTH)]
    cut = dataclasses.replace(done.outcome, seconds=seconds, operations=sum(tenths), good=None, by_tenth=tenths)
    return dataclasses.replace(done, outcome=cut, wall=done.wall - done.seconds + seconds)


def chosen(blocks: Blocks, seconds: float) -> list[float]:
    """The lengths that warm-ups of two neighbouring blocks choose, whose rounds last so many seconds."""
    parts = [[first_part(done, seconds) for done in block] for block in blocks]
    pairs = zip(parts[::2], parts[1::2], strict=False)
    return [round_length.choose(pair, least=0.0, most=LONGEST).seconds for pair in pairs]


class Efficiency:
    """The time of a claim to a given precision, by the length of its rounds; the noise is that of all blocks."""

    def __init__(self, blocks: Blocks) -> None:
        rounds = [done for block in blocks for done in block]
        self.beside = statistics.median(done.wall - done.seconds for done in rounds)
        within = round_length.within_variance(rounds)
        if within is None:
            raise ValueError("the rounds have no operations by tenths of a second")
        self.within, self.between = within, round_length.between_variance(blocks, within)
        lengths = [number * TENTH for number in range(round(SHORTEST / TENTH), round(LONGEST / TENTH) + 1)]
        self.best = min(map(self._time, lengths))

    def _time(self, seconds: float) -> float:
        return (self.within / seconds + self.between) * (seconds + self.beside)

    def lost(self, seconds: float) -> float:
        """The time with rounds of this length, relative to the best one."""
        return self._time(seconds) / self.best


def rows(pool: Pool, load: str, runs: int) -> Iterator[str]:
    """Yields the table lines of a workload."""
    workload = dataclasses.replace(LOADS[load], seconds=USUAL)
    blocks = stage.blocks(stage.stage_of(pool, workload, [GALERA, FLUSH_2]), 2 * runs)
    efficiency = Efficiency(blocks)
    for seconds in (USUAL, WARM_UP):
        lengths = chosen(blocks, seconds)
        lost = statistics.fmean(map(efficiency.lost, lengths))
        takes = 2 * VARIANTS * (seconds + efficiency.beside)
        judged = ratios.target_text(takes, TARGET) if seconds == WARM_UP else ""
        yield f"| {load} | {seconds:g} | {ratios.Figure.of(lengths)} | {lost:.3f} | {takes:.1f} | {judged} |"


def main() -> None:
    """Reads the command line and prints the table."""
    parser = ratios.arguments(__doc__, 24, "warm-ups of each workload")
    parser.add_argument("--loads", nargs="*", choices=LOADS, default=[*LOADS], metavar="LOAD")
    arguments = parser.parse_args()
    print("| workload | warm-up rounds, s | chosen rounds, s | time, relative to the best | warm-up of four, s | |")
    print("|---|---|---|---|---|---|")
    with stage.clusters() as pool:
        for load in arguments.loads:
            for row in rows(pool, load, arguments.runs):
                print(row, flush=True)


if __name__ == "__main__":
    ratios.run(main)
