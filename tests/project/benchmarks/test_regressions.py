"""The parts of the script that makes up regressions: a server that is slowed, and what is said of it."""

from __future__ import annotations

import dataclasses

import psutil

from benchmarks import regressions
from pytest_dbcluster import wait
from pytest_dbcluster.releases import find
from pytest_dbcluster.reporting.history.history_file import History
from pytest_dbcluster.spec import ClusterSpec
from tests.support.clusters import bring_up
from tests.support.histories import simulated


def test_a_slowed_server_has_programs_that_take_its_cpu(tmp_path, mariadb, provisioner):
    """As long as it runs; its release has the name of the healthy one, so that both are one series."""
    given = regressions.slow_release(tmp_path / "slowed", 3)
    release = find.find(given)
    cluster = bring_up(ClusterSpec("standalone"), release, provisioner, options={})
    children = psutil.Process(cluster.nodes[0].process.pid).children()
    alive = [child.status() for child in children]
    cluster.close()
    provisioner.give_back(cluster.hosts)

    assert (str(release.name), release.version) == (str(mariadb.name), mariadb.version)
    assert len(alive) == 3
    wait.until(lambda: [f"{child} is left" for child in children if child.is_running()], "the programs", seconds=60)


def test_only_a_run_that_differs_warns():
    """A line for each run, judged as when it was the newest; both variants are slower by half in the slowed one."""
    *healthy, last = simulated(1, number=8)
    slower = {name: value / 2 for name, value in last.medians.items()}
    lines = regressions.judge(History((*healthy, dataclasses.replace(last, medians=slower))))

    assert ["WARNS" in line for line in lines] == [False] * 7 + [True]
    assert lines[-1].startswith("run 8: ")
    assert ", limit 6.0" in lines[-1]
