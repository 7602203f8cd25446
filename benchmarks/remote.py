"""The cost of machines that ssh reaches: time until three nodes are ready on them, and what a round takes longer.

    python benchmarks/remote.py [--runs 3] [--rounds 30]

The machines are stand-in hosts of the tests: namespaces of this machine with a real ssh server. They take the same
cores as local processes, and no network lies between, unless ssh is led over a line that is 10 ms longer each way.
Ready: three Galera nodes, from the call of bring_up to its return. Local processes alternate with them. Machines have
the programs already, and the copy of the data that nodes start from; the first cluster of a run sends both, and is
shown without a target. Round: the wall time of a round of mysqlslap that was not measured (switch, reset, settle,
counters, start of the load generator), less that of a local round drawn after it. Its target is in milliseconds: 10,
and six round trips of the line. What the smallest question takes, which the shell of a host answers without a program,
is shown beside: it has the two ends of ssh, on the same cores, and the line.
"""

from __future__ import annotations

import contextlib
import itertools
import statistics
import time
from collections.abc import Callable, Iterator, Sequence

from benchmarks import ratios, stage
from pytest_dbcluster import ClusterSpec, MySQLSlap
from pytest_dbcluster.clusters.startup import ready_template
from pytest_dbcluster.hosts.provisioner import Provisioner
from pytest_dbcluster.hosts.provisioners.ssh.host import SshHost
from pytest_dbcluster.hosts.provisioners.ssh.provisioner import SshProvisioner
from pytest_dbcluster.releases.release import Release
from tests.support.stand_ins import StandIns

GALERA = ClusterSpec("galera", nodes=3)
READY = 3.0
ROUND_TRIPS = (0.0, 0.02)  # seconds
OVERHEAD, TRIPS = 0.010, 6
QUESTIONS = 51


@contextlib.contextmanager
def machines(round_trip: float) -> Iterator[SshProvisioner]:
    """A provisioner of three machines and one for the load; all of them end with the block."""
    with StandIns(count=3, load=1, round_trip=round_trip) as hosts:
        made = SshProvisioner(machines=hosts.servers, load_machines=hosts.loads, config=hosts.config)
        with contextlib.closing(made):
            yield made


def bring_up_lines(release: Release, remote: Provisioner, local: Provisioner, runs: int) -> list[str]:
    """The table lines about bring-ups."""
    sides = (remote, local)
    for provisioner in sides:
        ready_template(release, provisioner, {}, stage.tell)
    first_remote, first_local = ([stage.ready(GALERA, release, provisioner)] for provisioner in sides)
    over_ssh, locally = ratios.alternate(
        runs, *(lambda side=side: stage.ready(GALERA, release, side) for side in sides)
    )
    return [
        ratios.line("three Galera nodes ready: over ssh; as processes", over_ssh, locally, READY),
        ratios.line("the first ones of a run", first_remote, first_local),
    ]


def beside(provisioner: Provisioner, stack: contextlib.ExitStack) -> Callable[[], float]:
    """A function that draws a round on a cluster of its own, and returns its unmeasured seconds."""
    pool = stack.enter_context(stage.clusters(provisioner))
    testbed = stage.stage_of(pool, MySQLSlap("write"), [GALERA])
    blocks = itertools.count(-1)

    def draw() -> float:
        done = testbed.round(0, block=next(blocks), position=0)
        return done.wall - done.seconds

    draw()  # the first one makes the tables
    return draw


def round_trip(provisioner: Provisioner) -> float:
    """The median time of the smallest question to a host, in seconds."""
    (host,) = hosts = provisioner.acquire(ClusterSpec("standalone"))
    assert isinstance(host, SshHost)
    took = []
    for _ in range(QUESTIONS):
        began = time.monotonic()
        host.session.agent.use(1.0)
        took.append(time.monotonic() - began)
    provisioner.give_back(hosts)
    return statistics.median(took)


def overhead(local: Provisioner, remotes: Sequence[Provisioner], rounds: int) -> list[str]:
    """The table lines about rounds."""
    lines = []
    for delay, provisioner in zip(ROUND_TRIPS, remotes, strict=True):
        with contextlib.ExitStack() as stack:  # no other clusters: each takes some CPU although nobody uses it
            far, here = beside(provisioner, stack), beside(local, stack)
            over_ssh, locally = ratios.alternate(rounds, far, here)
        lines.append(overhead_line(over_ssh, locally, delay, round_trip(provisioner)))
        stage.tell(lines[-1])
    return lines


def overhead_line(over_ssh: Sequence[float], locally: Sequence[float], delay: float, trip: float) -> str:
    """The table line of rounds of both sides, given in seconds. delay: of the line. trip: of the smallest question."""
    ours, others = ([1e3 * took for took in side] for side in (over_ssh, locally))
    longer = ratios.difference(ours, others)
    said = ratios.target_text(longer.median, 1e3 * (OVERHEAD + TRIPS * delay))
    what = f"unmeasured ms of a round, line of {1e3 * delay:g} ms, a question {1e3 * trip:.1f} ms: over ssh; local"
    return f"| {what} | {ratios.Figure.of(ours)} | {ratios.Figure.of(others)} | {longer} | {said} |"


def main() -> None:
    """Reads the command line and prints the table."""
    parser = ratios.arguments(__doc__, 3, "bring-ups of each side")
    parser.add_argument(
        "--rounds", type=ratios.positive, default=30, metavar="N", help="rounds of each side (default 30)"
    )
    given = parser.parse_args()
    release = stage.server()
    with contextlib.ExitStack() as stack:
        local = stack.enter_context(stage.hosts())
        remotes = [stack.enter_context(machines(round_trip)) for round_trip in ROUND_TRIPS]
        lines = [*bring_up_lines(release, remotes[0], local, given.runs), *overhead(local, remotes, given.rounds)]
    print("| | ours | other | ratio | |")
    print("|---|---|---|---|---|")
    print("\n".join(lines))


if __name__ == "__main__":
    ratios.run(main)
