"""``dbcluster ps``, ``down``, ``reap`` and ``doctor`` with ``--provisioner ec2``: resources of runs in an account."""

from __future__ import annotations

import argparse
import time

from pytest_dbcluster.cli.text import tell
from pytest_dbcluster.clusters import kept
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.formatting import duration, printable, quantity
from pytest_dbcluster.hosts import runs
from pytest_dbcluster.hosts.provisioners.ec2.aws import Account
from pytest_dbcluster.hosts.provisioners.ec2.reaper import Reaped, Reaper, Thing
from pytest_dbcluster.hosts.provisioners.ec2.settings import PLACE
from pytest_dbcluster.hosts.runs import Run
from pytest_dbcluster.reporting.tables import layout

HEAD = ("run", "owner", "state", "ends", "has")


def reaper(arguments: argparse.Namespace) -> Reaper:
    """The reaper for the region of a command. Raises ConfigError."""
    return Reaper(Account(arguments.region), tell)


def run_ps(arguments: argparse.Namespace) -> int:
    """List the resources of runs in the account, a line for each run, and name those that resemble ours."""
    found = reaper(arguments).look()
    runs: dict[str, list[Thing]] = {}
    for one in found:
        if not one.foreign:
            runs.setdefault(one.run_id, []).append(one)
    print(layout.plain(HEAD, [row(things) for things in runs.values()]))
    for one in found:
        if one.foreign:
            tell(f"{one} has the tag of run {one.run_id}, but is not ours: {one.foreign}")
    return 0


def row(things: list[Thing]) -> tuple[str, ...]:
    """The line of a run."""
    counts: dict[str, int] = {}
    for one in things:
        counts[one.kind.noun] = counts.get(one.kind.noun, 0) + 1
    ends = max(one.expires for one in things)
    left = ends - time.time()
    alive = [one.alive for one in things]
    state = (
        "kept"
        if any(one.kept for one in things)
        else "alive"
        if True in alive
        else "dead: dbcluster reap"
        if False in alive
        else "of another machine, or before a boot"
    )
    if left <= 0:
        state = "expired: dbcluster reap"
    when = f"in {duration(left)}" if left > 0 else f"{duration(-left)} ago"
    has = ", ".join(quantity(number, noun) for noun, number in counts.items())
    return things[0].run_id, things[0].owner.partition("/")[0], state, when, has


def run_down(arguments: argparse.Namespace) -> int:
    """End runs of any user by their ids. Raises ConfigError without an id."""
    if arguments.all or not arguments.wanted:
        raise ConfigError(
            "dbcluster down --provisioner ec2 needs the ids of runs; dbcluster ps --provisioner ec2 lists them, and "
            "dbcluster reap --provisioner ec2 ends dead and expired ones"
        )
    ends = reaper(arguments)
    known = {one.run_id for one in ends.look()}
    recorded = {run.run_id for run in kept_runs(ends.region)}
    if unknown := [one for one in arguments.wanted if one not in known | recorded]:
        there = ", ".join(sorted(known | recorded)) or "none"
        raise ConfigError(f"no run in this account has the id {printable(unknown[0])!r}; known: {there}")
    code = max(print_reaped(ends.end(wanted)) for wanted in arguments.wanted)
    forget(ends)
    return code


def kept_runs(region: str) -> list[Run]:
    """The kept runs of this user and machine on instances of a region."""
    place = f"{PLACE}{region}"
    return [
        run for run in runs.list_runs()
        if run.kept and run.mine and any(one.place == place for one in kept.read(run.directory))
    ]  # fmt: skip


def forget(ends: Reaper) -> None:
    """Remove keys and records of kept runs without any resources in the account."""
    recorded = kept_runs(ends.region)
    there = {one.run_id for one in ends.look()} if recorded else set()
    for run in recorded:
        if run.run_id not in there:
            runs.end(run, clean_up=False)
            print(f"ended run {run.run_id}: nothing of it remains")


def run_reap(arguments: argparse.Namespace) -> int:
    """End the run of --run, with --expired every expired run, otherwise also this user's dead runs."""
    if arguments.of_run and arguments.expired:
        raise ConfigError("dbcluster reap accepts --run ID or --expired, not both")
    ends = reaper(arguments)
    if arguments.of_run:
        reaped = ends.end(arguments.of_run)
    elif arguments.expired:
        reaped = ends.end_expired()
    else:
        reaped = ends.dead()
    if not (reaped.done or reaped.left):
        print("nothing to remove: no run left anything")
    if not (arguments.of_run or arguments.expired):
        _tell_unknown(ends)
    code = print_reaped(reaped)
    forget(ends)
    return code


def _tell_unknown(ends: Reaper) -> None:
    """Name the runs of this user of which only the time to live is known: this machine may have begun them."""
    for run_id, expires in ends.unknown().items():
        left = duration(max(0.0, expires - time.time()))
        tell(
            f"run {run_id} stays until it expires in {left}: another machine began it, or this one before its last "
            f"boot; dbcluster reap --provisioner ec2 --run {run_id} ends it"
        )


def print_reaped(reaped: Reaped) -> int:
    """Print what ended and what remains. Returns the exit code: 1 if anything remains."""
    for line in reaped.done:
        print(line)
    for line in reaped.left:
        tell(f"left: {line}")
    return 1 if reaped.left else 0
