"""Every ``--db-...`` option of the command line."""

from __future__ import annotations

from typing import Any

from pytest_dbcluster import storage_profiles
from pytest_dbcluster.claims import critical_values
from pytest_dbcluster.plugin.settings import BUDGETS
from pytest_dbcluster.spec import DEFAULT_RELEASE, PARITIES


def add_options(group: Any) -> None:
    """Add every ``--db-...`` option to an option group of pytest."""
    add = group.addoption
    add(
        "--db-release",
        action="append",
        metavar="NAME:VERSION[=DIRECTORY]",
        help=f"server release to measure, repeatable (default {DEFAULT_RELEASE}); `dbcluster releases` lists them",
    )
    add(
        "--db-provisioner",
        default="local",
        metavar="NAME",
        help="where clusters run: local (default) or container; vm and ec2 are planned",
    )
    add(
        "--db-image",
        action="append",
        metavar="NAME:VERSION=IMAGE",
        help="image of a release's containers, repeatable (default: what `dbcluster image build NAME:VERSION` makes)",
    )
    add(
        "--db-storage",
        metavar="PROFILE",
        help=f"storage profile of clusters that name none: {', '.join(storage_profiles.PROFILES)} "
        "(default this machine's own disk)",
    )
    add(
        "--db-profile",
        default="quick",
        metavar="quick|paper",
        help="quick keeps the workload's tables between rounds (default); paper runs the published command lines",
    )
    add(
        "--db-parity",
        default=PARITIES[0],
        metavar="vendor|normalised",
        help="vendor: each server's own defaults (default); normalised: the same durability, binlog, appliers, "
        "isolation and character set on all",
    )
    add("--db-cnf", metavar="FILE", help="my.cnf with server options for every cluster; the cluster's own options win")
    add(
        "--db-max-pairs",
        type=int,
        default=critical_values.LOOKS[-1],
        metavar="N",
        help="maximum pairs of rounds of a claim (default and maximum: 160)",
    )
    add(
        "--db-budget",
        type=float,
        metavar="SECONDS",
        help=f"maximum measured time of one claim (default {BUDGETS['quick']:g}, in paper {BUDGETS['paper']:g})",
    )
    add(
        "--db-run-budget",
        type=float,
        metavar="SECONDS",
        help="maximum time of the whole run; claims without a verdict by then are inconclusive",
    )
    add(
        "--db-alpha",
        type=float,
        default=critical_values.ALPHAS[0],
        metavar="A",
        help="chance of a wrong verdict per claim and side: .0005 (default) or .0001",
    )
    add("--db-seed", type=int, metavar="N", help="seed of the order of rounds; printed with each claim")
    add("--db-strict", action="store_true", help="an inconclusive claim fails its test")
    add(
        "--db-keep",
        action="store_true",
        help="leave the last clusters (with -n: of each worker) running and print how to connect",
    )
    add("--db-results", default="reports/latest", metavar="DIR", help="where results go (default reports/latest)")
