"""Variants of pairs on DRBD that several tests measure, and a load of single commits."""

from __future__ import annotations

import dataclasses
import itertools
import time
from collections.abc import Callable

from pytest_dbcluster.rounds.round import RunResult
from pytest_dbcluster.spec import ClusterSpec, ReleaseName
from pytest_dbcluster.workloads.workload import Setting
from tests.support.fakes import Idle

NEAR = ClusterSpec("drbd", nodes=2, release=ReleaseName("mariadb", "10.11")).with_needs(disk="1G", rtt=0).named("near")
FAR = NEAR.with_needs(rtt=0.1).named("far")
SENT = FAR.with_options(drbd_protocol="A").named("sent")
APART = FAR.with_options(drbd_connected=False).named("apart")


@dataclasses.dataclass(frozen=True)
class Commits(Idle):
    """Some commits, one after the other.

    shortest: seconds of the shortest one of each round. halfway: done before the last two commits of a round; a test
    that changes something in the middle of a round puts it there, and takes it out.
    """

    writes: bool = True
    shortest: list[float] = dataclasses.field(default_factory=list, compare=False)
    halfway: list[Callable[[], object]] = dataclasses.field(default_factory=list, compare=False)

    def prepare(self, setting: Setting) -> None:
        """Make the table."""
        setting.cluster.writers[0].query("CREATE TABLE IF NOT EXISTS mysql.kept (id INT PRIMARY KEY) ENGINE=InnoDB")

    def reset(self, setting: Setting) -> None:
        """Leave it empty."""
        setting.cluster.writers[0].query("DELETE FROM mysql.kept")

    def run(self, setting: Setting) -> RunResult:
        """Insert some rows."""
        times = [time.monotonic()]
        for number in range(5):
            if number == 3:
                for does in self.halfway:
                    does()
            setting.cluster.writers[0].query(f"INSERT INTO mysql.kept VALUES ({number})")
            times.append(time.monotonic())
        self.shortest.append(min(after - before for before, after in itertools.pairwise(times)))
        return RunResult(times[-1] - times[0], 5, 5)
