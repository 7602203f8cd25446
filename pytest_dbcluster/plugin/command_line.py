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
    """A path of the command line, from the working directory; an empty one stays, since a later check refuses it."""
    return str(Path.cwd() / path) if path.strip() else path


def add_ssh_options(add: Callable[..., None]) -> None:
    """Add the options of the provisioner ssh."""
    add(
        "--db-host",
        action="append",
        metavar="USER@ADDRESS",
        help="machine for one node of each cluster, for --db-provisioner ssh; repeatable; a Host of ~/.ssh/config too; "
        "USER@ADDRESS=PRIVATE_ADDRESS if the machines reach each other at other addresses",
    )
    add(
        "--db-load-host",
        action="append",
        metavar="USER@ADDRESS",
        help="machine for the load generator and proxies (default: the last --db-host, beside a server); repeatable: "
        "sysbench and TPC-C divide their clients between all machines, mysqlslap runs on the first",
    )
    add(
        "--db-host-keys",
        metavar="FILE",
        help="file with the host keys of the machines, in the format of known_hosts (default: those that ssh knows)",
    )
    add("--db-ssh-config", metavar="FILE", help="ssh configuration in place of ~/.ssh/config")
    add(
        "--db-host-directory",
        metavar="DIR",
        help="directory of the machines for our directory with the servers' data (default /var/tmp)",
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
        help="where clusters run: local (processes of this machine), container, vm, ssh (the machines of --db-host), "
        "or ec2 (new instances). Default: the provisioner in the mark `provisioner` of all chosen tests, or "
        f"{DEFAULT_PROVISIONER}",
    )
    add_ssh_options(add)
    add_ec2_options(add, "with --db-provisioner ec2: ")
    add(
        "--db-image",
        action="append",
        metavar="NAME:VERSION=IMAGE",
        help="image for the containers of a release; repeatable (default: the image of `dbcluster image build`)",
    )
    add(
        "--db-storage",
        metavar="PROFILE",
        help="limit each node's disk to the writes per second of a volume, if the spec of the cluster has no limit: "
        f"{', '.join(storage_profiles.PROFILES)} (default: no limit)",
    )
    add(
        "--db-profile",
        default="quick",
        metavar="quick|paper",
        help="quick: short rounds that keep their tables (default); paper: the command lines of published "
        "measurements, which take longer",
    )
    add(
        "--db-parity",
        default=PARITIES[0],
        metavar="vendor|normalised",
        help="vendor: the defaults of each vendor (default); normalised: the same durability, binlog, appliers, "
        "isolation and character set on all servers",
    )
    add("--db-cnf", metavar="FILE", help="my.cnf with server options for every cluster; options of the cluster win")
    add(
        "--db-cnf-root",
        metavar="DIR",
        help="directory with a copy of the files of the host that a my.cnf came from, for lines such as !include /etc/",
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
        metavar="TIME",
        help="maximum measured time of one claim, such as 90s or 5m "
        f"(default {BUDGETS['quick']:g}s; profile paper: {BUDGETS['paper']:g}s); overrides the mark budget of a test",
    )
    add(
        "--db-run-budget",
        metavar="TIME",
        help="maximum time of the whole run, such as 45m or 2h; claims without a verdict by then are inconclusive",
    )
    add(
        "--db-wait",
        default=LOCK_WAIT,
        metavar="TIME",
        help="how long the run waits for another run on this machine, or for a lock of the cache, such as 90s or 2h; "
        f"then it ends with exit code 2 and names the process that has the lock (default {LOCK_WAIT})",
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
        help="seed for the order of rounds (default: 64 random bits, printed with each claim). A seed repeats the "
        "order of a run. The error limits hold for a random order, not for a seed whose result you know",
    )
    add(
        "--db-strict",
        action="store_true",
        help="an inconclusive claim fails its test (default: pytest shows the test as I, neither passed nor failed)",
    )
    add(
        "--db-keep",
        action="store_true",
        help="leave the last clusters running (with -n: those of each worker), and print how to connect and end them",
    )
    add(
        "--db-results",
        type=from_here,
        metavar="DIR",
        help=f"directory of the results; the run removes earlier results (default {DEFAULT_RESULTS} below pytest's "
        "rootdir)",
    )
    add(
        "--db-resume",
        action="store_true",
        help="continue an interrupted run: keep the answers in the results directory, also inconclusive ones, and "
        "measure the claims without an answer, or with other clusters, releases, workloads or options",
    )
    add(
        "--db-history",
        type=from_here,
        metavar="FILE",
        help="add the claims of this run to a history, such as reports/history.jsonl, and warn if a ratio differs "
        "from those of earlier runs on such a machine; `dbcluster history list` shows it",
    )
    add(
        "--db-history-strict",
        action="store_true",
        help="a warning of --db-history fails the run with exit code 1 (default: the exit code does not change)",
    )
    add(
        "--db-github",
        action="store_true",
        help="write the step summary, annotations and outputs of GitHub Actions (default in GitHub Actions)",
    )
