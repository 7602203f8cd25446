"""``dbcluster ps``, ``down``, ``reap`` and ``doctor`` with ``--provisioner ec2``: what runs have in an account."""

from __future__ import annotations

import argparse
import time

from pytest_dbcluster.cli.text import tell
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.formatting import counted, duration, printable
from pytest_dbcluster.hosts.provisioners.ec2.aws import Account
from pytest_dbcluster.hosts.provisioners.ec2.reaper import Reaped, Reaper, Thing
from pytest_dbcluster.reporting.tables import layout

HEAD = ("run", "owner", "state", "ends", "has")


def reaper(arguments: argparse.Namespace) -> Reaper:
    """The reaper for the region of a command. Raises ConfigError."""
    return Reaper(Account(arguments.region), tell)


def run_ps(arguments: argparse.Namespace) -> int:
    """List what runs have in the account, a line for each run, and name what only looks as if it were theirs."""
    found = reaper(arguments).look()
    runs: dict[str, list[Thing]] = {}
    for one in found:
        if not one.foreign:
            runs.setdefault(one.run_id, []).append(one)
    print(layout.plain(HEAD, [row(things) for things in runs.values()]))
    for one in found:
        if one.foreign:
            tell(f"{one} has the tag of run {one.run_id}, and is not ours: {one.foreign}")
    return 0


def row(things: list[Thing]) -> tuple[str, ...]:
    """The line of a run."""
    counts: dict[str, int] = {}
    for one in things:
        counts[one.kind.noun] = counts.get(one.kind.noun, 0) + 1
    ends = max(one.expires for one in things)
    left = ends - time.time()
    alive = [one.alive for one in things]
    state = "alive" if True in alive else "dead: dbcluster reap" if False in alive else "of another machine"
    if left <= 0:
        state = "expired: dbcluster reap"
    when = f"in {duration(left)}" if left > 0 else f"{duration(-left)} ago"
    has = ", ".join(counted(number, noun) for noun, number in counts.items())
    return things[0].run_id, things[0].owner.partition("/")[0], state, when, has


def run_down(arguments: argparse.Namespace) -> int:
    """End runs by their ids, whose ever they are. Raises ConfigError where none is named."""
    if arguments.all or not arguments.wanted:
        raise ConfigError(
            "dbcluster down --provisioner ec2 takes the ids of runs; dbcluster ps --provisioner ec2 lists them, and "
            "dbcluster reap --provisioner ec2 ends those that are dead or expired"
        )
    ends = reaper(arguments)
    known = {one.run_id for one in ends.look()}
    if unknown := [one for one in arguments.wanted if one not in known]:
        there = ", ".join(sorted(known)) or "none"
        raise ConfigError(f"no run in this account has the id {printable(unknown[0])!r}; there is: {there}")
    return max(told(ends.end(wanted)) for wanted in arguments.wanted)


def run_reap(arguments: argparse.Namespace) -> int:
    """End the run of --run, with --expired every run whose time to live is over, else those of this user's too."""
    if arguments.of_run and arguments.expired:
        raise ConfigError("dbcluster reap takes --run ID or --expired, not both")
    ends = reaper(arguments)
    if arguments.of_run:
        reaped = ends.end(arguments.of_run)
    elif arguments.expired:
        reaped = ends.expired()
    else:
        reaped = ends.dead()
    if not (reaped.done or reaped.left):
        print("no run has left anything")
    return told(reaped)


def told(reaped: Reaped) -> int:
    """Print what was ended, and what is left. Returns the exit code: 1 when anything is left."""
    for line in reaped.done:
        print(line)
    for line in reaped.left:
        tell(f"left: {line}")
    return 1 if reaped.left else 0
