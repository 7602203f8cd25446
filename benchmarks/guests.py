"""The cost of guests: time until three nodes are ready in them, eight boots at once, and the CPU of one that is idle.

    python benchmarks/guests.py [--runs 5] [--seconds 20]

Ready: three Galera nodes, from the call of bring_up to its return, with the boot of their guests and the copies of the
data to their disks. Local processes alternate with them. Kernel, programs, templates and the run's network exist
already, and so do the images of disks, which the first cluster of a run makes; that one is shown without a target.
Booted: guests of 1 GiB without a server, until each has answered. Idle: the CPU time of a guest with its kernel and its
disk, without a server, and with one that nobody uses (shown without a target: a part of it is the server's own).
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence

from benchmarks import ratios, stage
from pytest_dbcluster import ClusterSpec
from pytest_dbcluster.clusters.startup import bring_up, ready_template
from pytest_dbcluster.hosts.host import Host
from pytest_dbcluster.hosts.provisioners.vm.provisioner import GuestProvisioner
from pytest_dbcluster.releases.release import Release

GALERA = ClusterSpec("galera", nodes=3)
SERVER = ClusterSpec("standalone")
MANY = 8
READY, BOOTED, IDLE = 3.0, 3.0, 0.01


def bring_up_lines(release: Release, guests: GuestProvisioner, runs: int) -> list[str]:
    """The table lines about bring-ups."""
    with stage.hosts() as local:
        sides = (guests, local)
        for provisioner in sides:
            ready_template(release, provisioner, {}, stage.tell)
        first_guests, first_local = ([stage.ready(GALERA, release, provisioner)] for provisioner in sides)
        in_guests, locally = ratios.alternate(
            runs, *(lambda side=side: stage.ready(GALERA, release, side) for side in sides)
        )
    return [
        ratios.line("three Galera nodes ready: in guests; as processes", in_guests, locally, READY),
        ratios.line("the first ones of a run", first_guests, first_local),
    ]


def boot(guests: GuestProvisioner, number: int) -> float:
    """The seconds until so many guests, begun at once, have answered."""
    hosts: Sequence[Host] = ()

    def start() -> None:
        nonlocal hosts
        hosts = guests.acquire(ClusterSpec("galera", nodes=number))

    took = ratios.seconds(start)
    guests.give_back(hosts)
    stage.tell(f"{number} booted in {took:.2f} s")
    return took


def boot_line(guests: GuestProvisioner, runs: int) -> str:
    """The table line about boots; its target is the seconds of all."""
    many, one = ratios.alternate(runs, lambda: boot(guests, MANY), lambda: boot(guests, 1))
    return ratios.line(f"{MANY} guests booted at once; one", many, one, BOOTED, absolute=True)


def idle(release: Release, guests: GuestProvisioner, runs: int, seconds: float) -> list[str]:
    """The table lines about the CPU time of guests that do nothing."""
    with contextlib.ExitStack() as stack:
        (bare,) = guests.acquire(SERVER)
        stack.callback(guests.give_back, [bare])
        cluster = bring_up(stage.to_start(SERVER, release, guests), guests)
        stack.callback(guests.give_back, cluster.hosts)
        stack.callback(cluster.close)
        without, served = ([cpu_use(host, seconds) for _ in range(runs)] for host in (bare, *cluster.hosts))
    return [
        ratios.line("an idle guest: CPU seconds; seconds", *columns(without), target=IDLE),
        ratios.line("with an idle server: CPU seconds; seconds", *columns(served)),
    ]


def cpu_use(host: Host, seconds: float) -> tuple[float, float]:
    """The CPU seconds of a host, and how long it was looked at."""
    host.run(["true"])  # what was begun before it is done
    began, before = time.monotonic(), host.cpu_seconds() or 0.0
    time.sleep(seconds)
    after, wall = host.cpu_seconds() or 0.0, time.monotonic() - began
    stage.tell(f"idle: {after - before:.2f} CPU seconds in {wall:.1f} s")
    return after - before, wall


def columns(pairs: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    """The first ones and the second ones of pairs."""
    return [one for one, _ in pairs], [other for _, other in pairs]


def main() -> None:
    """Reads the command line and prints the table."""
    parser = ratios.arguments(__doc__, 5, "bring-ups of each side, boots, and looks at idle guests")
    parser.add_argument(
        "--seconds", type=ratios.positive, default=20, metavar="N", help="of a look at an idle guest (default 20)"
    )
    arguments = parser.parse_args()
    release = stage.server()
    with contextlib.closing(GuestProvisioner()) as guests:
        boot(guests, 1)  # the first boot makes the network
        print("| | this | that | this / that | |\n|---|---|---|---|---|")
        print("\n".join(bring_up_lines(release, guests, arguments.runs)), flush=True)
        print(boot_line(guests, arguments.runs), flush=True)
        print("\n".join(idle(release, guests, arguments.runs, arguments.seconds)), flush=True)


if __name__ == "__main__":
    ratios.run(main)
