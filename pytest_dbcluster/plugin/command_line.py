"""All options ``--db-...`` of pytest's command line, with their help texts; ``settings`` checks their values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from pytest_dbcluster import registry
from pytest_dbcluster.claims import critical_values
from pytest_dbcluster.hosts.given import (
    EC2_TITLE,
    LOCK_WAIT,
    PLACES,
    SSH_TITLE,
    Add,
    add_common,
    add_ec2_options,
    add_ssh_options,
)
from pytest_dbcluster.plugin.settings import BUDGETS, DEFAULT_PROVISIONER, DEFAULT_RESULTS
from pytest_dbcluster.spec import PARITIES, STORAGE_PROFILES

ALLURE = "--allure"
OF_ALLURE = (
    "an option of `dbcluster report DIR --allure`, which makes Allure's page of the results in DIR; "
    "pytest --alluredir DIR only writes Allure's files"
)


def from_here(path: str) -> str:
    """A path of the command line, from the working directory; an empty one stays, since a later check refuses it."""
    return str(Path.cwd() / path) if path.strip() else path


def add_options(group: Callable[[str], Add]) -> None:
    """Add all options ``--db-...``. group: makes the group of options with a title, and returns its ``addoption``."""
    _add_servers(group("database clusters: what to measure"))
    rounds = group("database clusters: how long, and how sure")
    _add_budgets(rounds)
    _add_rounds(rounds)
    _add_places(group("database clusters: where"))
    add_ssh_options(group(f"database clusters: {SSH_TITLE}"))
    add_ec2_options(group(f"database clusters: {EC2_TITLE}"))
    _add_results(group("database clusters: results and history"))
    _add_others(group("database clusters: other options"))


def hints(words: Sequence[str]) -> dict[str, str]:
    """Unknown options of a command line of pytest -> what to write instead, if we know it."""
    names = {word.partition("=")[0] for word in words}
    found = {ALLURE: OF_ALLURE} if ALLURE in names else {}
    known: list[str] = []
    add_options(lambda _: lambda name, **_: known.append(name))
    for name in (one for one in names if one.startswith("--db-") and one not in known):
        if close := registry.suggestion("option", name, known):
            found[name] = close.removeprefix("; ")
    return found


def _add_servers(add: Add) -> None:
    add_common(add, "--db-release", "; repeatable", action="append")
    add("--db-cnf", metavar="FILE", help="my.cnf with server options for every cluster; options of the cluster win")
    add_common(add, "--db-cnf-root")
    add_common(add, "--db-parity", default=PARITIES[0])
    add(
        "--db-profile",
        default="quick",
        metavar="quick|paper",
        help="quick: short rounds that keep their tables (default); paper: the command lines of published "
        "measurements, which take longer",
    )


def _add_budgets(add: Add) -> None:
    add(
        "--db-budget",
        metavar="TIME",
        help="maximum measured time of one claim, such as 90s or 5m "
        f"(default {BUDGETS['quick']:g}s; profile paper: {BUDGETS['paper']:g}s); overrides the mark budget of a test",
    )
    add(
        "--db-event-budget",
        metavar="TIME",
        help="maximum time of all repetitions of one measure.event, such as 10m; claims without a verdict by then are "
        "inconclusive (default: no limit)",
    )
    add(
        "--db-run-budget",
        metavar="TIME",
        help="maximum time of the whole run, such as 45m or 2h; claims without a verdict by then are inconclusive",
    )


def _add_rounds(add: Add) -> None:
    add(
        "--db-max-pairs",
        type=int,
        default=critical_values.LOOKS[-1],
        metavar="N",
        help="maximum number of pairs for one claim; a pair is a round of each variant (default and upper limit: 160)",
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


def _add_places(add: Add) -> None:
    add(
        "--db-provisioner",
        metavar="NAME",
        help="where clusters run (default: the provisioner in the mark `provisioner` of all chosen tests, or "
        f"{DEFAULT_PROVISIONER}): {PLACES}",
    )
    add_common(add, "--db-image", action="append")
    add(
        "--db-storage",
        metavar="PROFILE",
        help="limit each node's disk to the writes per second of a volume, if the spec of the cluster has no limit: "
        f"{', '.join(STORAGE_PROFILES)} (default: no limit)",
    )


def _add_results(add: Add) -> None:
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
        "--db-trace",
        type=from_here,
        metavar="FILE",
        help="write every phase of every cluster and round into this file, in Chrome's trace event format: "
        "https://ui.perfetto.dev opens it",
    )
    add(
        "--db-github",
        action="store_true",
        help="write the step summary, annotations and outputs of GitHub Actions (default in GitHub Actions)",
    )


def _add_others(add: Add) -> None:
    add(
        "--db-why",
        action="store_true",
        help="after the verdict of each claim, run a few more rounds, which no verdict counts, and compare the "
        "statements, plans, waits and status of the servers of its two variants",
    )
    add_common(add, "--db-wait", default=LOCK_WAIT)
    add(
        "--db-keep",
        action="store_true",
        help="leave the last clusters running (with -n: those of each worker), and print how to connect and end them",
    )
