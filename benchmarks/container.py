"""What containers cost over hosts of this machine: until three nodes are ready, and in a round beside what it measures.

    python benchmarks/container.py [--runs 5] [--blocks 10] [--modes write key]

Ready: three Galera nodes, from the call of bring_up to its return; images, programs, templates and the run's network
are there. Beside: switch, reset, settle, counters, the load's start and drain of quick rounds as tests draw them, but
for the random pause before them, on clusters behind haproxy. Both sides alternate. The throughput is a fact and has no
target: packets of containers pass two virtual interfaces and a bridge, those of local servers the loopback.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Sequence

from benchmarks import ratios, stage
from fixtures.clusters import GALERA
from pytest_dbcluster import ClusterSpec, MySQLSlap, ReleaseName
from pytest_dbcluster.clusters.startup import bring_up, ready_template
from pytest_dbcluster.hosts.provisioner import Provisioner
from pytest_dbcluster.hosts.provisioners.container.provisioner import ContainerProvisioner
from pytest_dbcluster.releases.release import Release
from pytest_dbcluster.rounds.round import Round
from pytest_dbcluster.spec import DEFAULT_RELEASE
from pytest_dbcluster.testbed import testbed
from pytest_dbcluster.testbed.pool import Pool
from pytest_dbcluster.workloads.mysqlslap import MODES

SPEC = ClusterSpec("galera", nodes=3)
READY, BESIDE = 1.5, 1.05
Sides = tuple[Provisioner, Provisioner]


@contextlib.contextmanager
def sides() -> Iterator[Sides]:
    """Containers and hosts of this machine, ended with the block, however it ends."""
    with contextlib.closing(ContainerProvisioner()) as contained, stage.hosts() as local:
        yield contained, local


def ready(release: Release, provisioner: Provisioner) -> float:
    """Seconds of one bring-up as tests do it."""
    with contextlib.ExitStack() as stack:

        def start() -> None:
            cluster = bring_up(stage.to_start(SPEC, release, provisioner), provisioner)
            stack.callback(provisioner.give_back, cluster.hosts)
            stack.callback(cluster.close)

        took = ratios.seconds(start)
        stage.tell(f"{type(provisioner).__name__}: ready in {took:.2f} s")
        return took


def started(made: Sides, runs: int) -> str:
    """The line about bring-ups."""
    name = ReleaseName.parse(DEFAULT_RELEASE)
    found = [(each.supply(name, stage.tell), each) for each in made]
    for release, each in found:
        ready_template(release, each, {}, stage.tell)
        ready(release, each)  # of neither side the first one counts
    contained, local = ratios.alternate(runs, *(lambda one=one: ready(*one) for one in found))
    return line("three Galera nodes ready", contained, local, READY)


@dataclasses.dataclass(frozen=True)
class Rounds:
    """Rounds of one load on either side, pair by pair."""

    contained: Sequence[Round]
    local: Sequence[Round]

    def lines(self, mode: str) -> list[str]:
        """Of the time beside, of the whole round, and of the throughput."""
        beside = [[one.wall - one.seconds for one in each] for each in (self.contained, self.local)]
        wall = [[one.wall for one in each] for each in (self.contained, self.local)]
        speed = [[one.throughput for one in each] for each in (self.contained, self.local)]
        more = [one - other for one, other in zip(*beside, strict=True)]
        share = ratios.Figure.of([one / all_of_it for one, all_of_it in zip(more, wall[1], strict=True)])
        return [
            line(f"{mode}: beside what a round measures", beside[0], beside[1], BESIDE),
            f"| {mode}: what is more, of a local round | | | {share} | |",
            line(f"{mode}: a whole round", wall[0], wall[1], None),
            line(f"{mode}: operations a second", speed[0], speed[1], None),
        ]


def rounds(pools: Sequence[Pool], mode: str, blocks: int) -> Rounds:
    """Blocks of one round on either side, each beginning with the other one; the first block is dropped."""
    rooms = [stage.stage_of(pool, MySQLSlap(mode), [GALERA]) for pool in pools]
    found: list[dict[int, Round]] = []
    for block in range(blocks + 1):
        order = (0, 1) if block % 2 else (1, 0)
        found.append({side: rooms[side].round(0, block=block - 1, position=place) for place, side in enumerate(order)})
    for room in rooms:
        room.check()
    return Rounds([each[0] for each in found[1:]], [each[1] for each in found[1:]])


def line(what: str, contained: Sequence[float], local: Sequence[float], target: float | None) -> str:
    """A line of the table; what is a fact has no target."""
    found = ratios.ratio(contained, local)
    judged = "" if target is None else ratios.met(found.median, target)
    return f"| {what} | {ratios.Figure.of(contained)} | {ratios.Figure.of(local)} | {found} | {judged} |"


def main() -> None:
    """Reads the command line and prints the table."""
    parser = ratios.arguments(__doc__, 5, "bring-ups of each side")
    parser.add_argument("--blocks", type=ratios.positive, default=10, metavar="N", help="rounds of each (default 10)")
    parser.add_argument("--modes", nargs="*", choices=MODES, default=["write", "key"], metavar="MODE")
    said = parser.parse_args()
    testbed.JITTER = 0.0  # the pause before a round is a share of the last one's length: of the slower side's more
    with sides() as made:
        print("| | containers | local | containers / local | |\n|---|---|---|---|---|")
        print(started(made, said.runs), flush=True)
        with stage.clusters(made[0]) as contained, stage.clusters(made[1]) as local:
            for mode in said.modes:
                print("\n".join(rounds((contained, local), mode, said.blocks).lines(mode)), flush=True)


if __name__ == "__main__":
    ratios.run(main)
