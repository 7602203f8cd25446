"""The cost of containers over local processes: time until three nodes are ready, and unmeasured time of a round.

    python benchmarks/container.py [--runs 5] [--blocks 10] [--modes write key]

Ready: three Galera nodes, from the call of bring_up to its return. Images, programs, templates and the run's network
exist already. Unmeasured time ("beside"): switch, reset, settle, counters, start of the load generator, and drain. The
rounds are quick rounds as in tests, without the random pause before them, on clusters behind HAProxy. Both sides
alternate. The throughput is shown without a target: packets of containers pass two virtual interfaces and a bridge,
packets of local servers only the loopback interface.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Sequence

from benchmarks import ratios, stage
from fixtures.clusters import GALERA
from pytest_dbcluster import ClusterSpec, MySQLSlap, ReleaseName
from pytest_dbcluster.clusters.startup import ready_template
from pytest_dbcluster.hosts.provisioner import Provisioner
from pytest_dbcluster.hosts.provisioners.container.provisioner import ContainerProvisioner
from pytest_dbcluster.rounds.round import Round
from pytest_dbcluster.spec import DEFAULT_RELEASE
from pytest_dbcluster.testbed.pool import Pool
from pytest_dbcluster.workloads.mysqlslap import MODES

SPEC = ClusterSpec("galera", nodes=3)
READY, BESIDE = 1.5, 1.05
Sides = tuple[Provisioner, Provisioner]


@contextlib.contextmanager
def sides() -> Iterator[Sides]:
    """A container provisioner and a local one; both stop their hosts when the block ends, also after an error."""
    with contextlib.closing(ContainerProvisioner()) as contained, stage.hosts() as local:
        yield contained, local


def bring_up_line(made: Sides, runs: int) -> str:
    """The table line about bring-ups."""
    name = ReleaseName.parse(DEFAULT_RELEASE)
    pairs = [(provisioner.supply(name, stage.tell), provisioner) for provisioner in made]
    for release, provisioner in pairs:
        ready_template(release, provisioner, {}, stage.tell)
        stage.ready(SPEC, release, provisioner)  # the first bring-up of each side does not count
    contained, local = ratios.alternate(runs, *(lambda pair=pair: stage.ready(SPEC, *pair) for pair in pairs))
    return ratios.line("three Galera nodes ready", contained, local, READY)


@dataclasses.dataclass(frozen=True)
class Rounds:
    """Rounds of one workload on both sides; rounds with the same index form a pair."""

    contained: Sequence[Round]
    local: Sequence[Round]

    def lines(self, mode: str) -> list[str]:
        """The table lines about the unmeasured time, the whole round, and the throughput."""
        both = (self.contained, self.local)
        beside = [[drawn.wall - drawn.seconds for drawn in side] for side in both]
        wall = [[drawn.wall for drawn in side] for side in both]
        speed = [[drawn.throughput for drawn in side] for side in both]
        more = [contained - local for contained, local in zip(*beside, strict=True)]
        share = ratios.Figure.of([seconds / whole for seconds, whole in zip(more, wall[1], strict=True)])
        return [
            ratios.line(f"{mode}: unmeasured seconds of a round", beside[0], beside[1], BESIDE),
            f"| {mode}: additional seconds / a whole local round | | | {share} | |",
            ratios.line(f"{mode}: a whole round", wall[0], wall[1]),
            ratios.line(f"{mode}: operations a second", speed[0], speed[1]),
        ]


def rounds(pools: Sequence[Pool], mode: str, blocks: int) -> Rounds:
    """Blocks of one round on each side; the side that goes first alternates, and the first block is dropped."""
    testbeds = [stage.stage_of(pool, MySQLSlap(mode), [GALERA]) for pool in pools]
    drawn: list[dict[int, Round]] = []
    for block in range(blocks + 1):
        order = (0, 1) if block % 2 else (1, 0)
        drawn.append(
            {side: testbeds[side].round(0, block=block - 1, position=number) for number, side in enumerate(order)}
        )
    for source in testbeds:
        source.check()
    return Rounds([block[0] for block in drawn[1:]], [block[1] for block in drawn[1:]])


def main() -> None:
    """Reads the command line and prints the table."""
    parser = ratios.arguments(__doc__, 5, "bring-ups of each side")
    parser.add_argument("--blocks", type=ratios.positive, default=10, metavar="N", help="rounds of each (default 10)")
    parser.add_argument("--modes", nargs="*", choices=MODES, default=["write", "key"], metavar="MODE")
    arguments = parser.parse_args()
    with sides() as made:
        print("| | containers | local | containers / local | |\n|---|---|---|---|---|")
        print(bring_up_line(made, arguments.runs), flush=True)
        with stage.clusters(made[0]) as contained, stage.clusters(made[1]) as local:
            for mode in arguments.modes:
                print("\n".join(rounds((contained, local), mode, arguments.blocks).lines(mode)), flush=True)


if __name__ == "__main__":
    ratios.run(main)
