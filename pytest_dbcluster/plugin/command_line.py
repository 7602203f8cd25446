"""All options ``--db-...`` of pytest's command line, with their help texts; ``settings`` checks their values."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pytest_dbcluster import storage_profiles
from pytest_dbcluster.claims import critical_values
from pytest_dbcluster.hosts.given import LOCK_WAIT, add_ec2_options
from pytest_dbcluster.plugin.settings import BUDGETS, DEFAULT_PROVISIONER, DEFAULT_RESULTS
from pytest_dbcluster.spec import DEFAULT_RELEASE, PARITIES


def from_here(path: str) -> str:
    """A path that was typed, from the working directory; an empty one, which is refused later, stays as it is."""
    return str(Path.cwd() / path) if path.strip() else path


def add_ssh_options(add: Callable[..., None]) -> None:
    """Add the options of the provisioner ssh."""
    add(
        "--db-host",
        action="append",
        metavar="USER@ADDRESS",
        help="machine for one node of each cluster, for --db-provisioner ssh; repeatable; a Host of ~/.ssh/config too; "
        "USER@ADDRESS=PRIVATE_ADDRESS where the machines reach each other at other addresses",
    )
    add(
        "--db-load-host",
        action="append",
        metavar="USER@ADDRESS",
        help="machine for the load generator and proxies (default: the last --db-host, beside a server); repeatable: "
        "sysbench and TPC-C divide their terminals between all of them, mysqlslap runs on the first",
    )
    add(
        "--db-host-keys",
        metavar="FILE",
        help="file with the host keys of the machines, as known_hosts has them (default: those that ssh knows)",
    )
    add("--db-ssh-config", metavar="FILE", help="configuration of ssh instead of ~/.ssh/config")
    add(
        "--db-host-directory",
        metavar="DIR",
        help="directory of the machines in which ours is made, with the servers' data (default /var/tmp)",
    )


def add_options(group: Any) -> None:
    """Add all options ``--db-...`` to an option group of pytest."""
    add = group.addoption
    add(
        "--db-release",
        action="append",
        metavar="NAME:VERSION[=DIRECTORY]",
        help=f"server release to measure; repeatable (default {DEFAULT_RELEASE}); `dbcluster releases` lists them",
    )
    add(
        "--db-provisioner",
        metavar="NAME",
        help="where clusters run: local, as processes of this machine, container, vm, or ssh, on the machines of "
        "--db-host, or ec2, on instances that are launched (default: what the mark `provisioner` of all chosen tests "
        f"names, else {DEFAULT_PROVISIONER})",
    )
    add_ssh_options(add)
    add_ec2_options(add, "with --db-provisioner ec2: ")
    add(
        "--db-image",
        action="append",
        metavar="NAME:VERSION=IMAGE",
        help="image for the containers of a release; repeatable (default: made by `dbcluster image build`)",
    )
    add(
        "--db-storage",
        metavar="PROFILE",
        help="limit each node's disk to the writes per second of a volume, where the spec of the cluster has no limit: "
        f"{', '.join(storage_profiles.PROFILES)} (default: no limit)",
    )
    add(
        "--db-profile",
        default="quick",
        metavar="quick|paper",
        help="quick: short rounds on tables that are kept between them (default); paper: the command lines of "
        "published measurements, which take longer",
    )
    add(
        "--db-parity",
        default=PARITIES[0],
        metavar="vendor|normalised",
        help="vendor: each server's own defaults (default); normalised: the same durability, binlog, appliers, "
        "isolation and character set on all servers",
    )
    add("--db-cnf", metavar="FILE", help="my.cnf with server options for every cluster; the cluster's own options win")
    add(
        "--db-cnf-root",
        metavar="DIR",
        help="directory with a copy of the files of the host that a my.cnf came from: !include /etc/... is read there",
    )
    add(
        "--db-max-pairs",
        type=int,
        default=critical_values.LOOKS[-1],
        metavar="N",
        help="maximum number of pairs for one claim; a pair is a round of each variant (default and upper limit: 160)",
    )
    add(
        "--db-budget",
        type=float,
        metavar="SECONDS",
        help=f"maximum measured time of one claim (default {BUDGETS['quick']:g}; profile paper: {BUDGETS['paper']:g}); "
        "wins over the mark budget of a test",
    )
    add(
        "--db-run-budget",
        type=float,
        metavar="SECONDS",
        help="maximum time of the whole run; claims without a verdict by then are inconclusive",
    )
    add(
        "--db-wait",
        default=LOCK_WAIT,
        metavar="TIME",
        help="how long the run waits for another one that has the machine, or a lock of the cache, such as 90s or 2h; "
        f"then it ends with exit code 2 and names the process that has it (default {LOCK_WAIT})",
    )
    add(
        "--db-alpha",
        type=float,
        default=critical_values.ALPHAS[0],
        metavar="A",
        help="probability of a wrong verdict, per claim and side: .0005 (default) or .0001",
    )
    add(
        "--db-seed",
        type=int,
        metavar="N",
        help="seed for the order of rounds (default: 64 random bits, printed with each claim); a given seed repeats "
        "the order of a run: the promised error is that of a random order, not of a seed whose result was seen",
    )
    add(
        "--db-strict",
        action="store_true",
        help="an inconclusive claim fails its test (default: the test is shown as I, neither passed nor failed)",
    )
    add(
        "--db-keep",
        action="store_true",
        help="leave the last clusters running (with -n: those of each worker); print how to connect and to end them",
    )
    add(
        "--db-results",
        type=from_here,
        metavar="DIR",
        help=f"directory of the results; those of the run before are removed (default {DEFAULT_RESULTS} below pytest's "
        "rootdir)",
    )
    add(
        "--db-resume",
        action="store_true",
        help="continue an interrupted run: take over the answers in the results directory, inconclusive ones too, and "
        "measure the claims that have none, or whose clusters, release, workload or options have changed",
    )
    add(
        "--db-history",
        type=from_here,
        metavar="FILE",
        help="add the claims of this run to a history, such as reports/history.jsonl, and warn where a ratio differs "
        "from those of earlier runs on such a machine; `dbcluster history list` shows it",
    )
    add(
        "--db-history-strict",
        action="store_true",
        help="a warning of --db-history makes the run red: exit code 1 (default: it changes nothing)",
    )
    add(
        "--db-github",
        action="store_true",
        help="write the step summary, annotations and outputs of GitHub Actions (default in GitHub Actions)",
    )
