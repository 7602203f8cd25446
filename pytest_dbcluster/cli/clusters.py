"""``dbcluster ps``, ``down`` and ``reap``: list and end clusters, and clean up after dead runs."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import os
import re
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pytest_dbcluster import registry
from pytest_dbcluster.cli.text import add_wait, tell
from pytest_dbcluster.clusters import kept
from pytest_dbcluster.errors import ConfigError, ProvisionError, Unsupported
from pytest_dbcluster.formatting import Report, duration, elide, quantity, size
from pytest_dbcluster.hosts import runs
from pytest_dbcluster.hosts.given import (
    EC2_TITLE,
    PLACES,
    SSH_TITLE,
    Add,
    HelpText,
    add_common,
    add_ec2_options,
    add_ssh_options,
    remote_arguments,
)
from pytest_dbcluster.hosts.runs import Run
from pytest_dbcluster.reporting.tables import layout
from pytest_dbcluster.spec import DEFAULT_RELEASE

if TYPE_CHECKING:
    from pytest_dbcluster.hosts.provisioners.ssh.leftovers import EndedLeftovers, Leftovers

# ``dbcluster ps`` answers at once, so functions import what starts clusters or reaches other machines.
SHOWN_NAMES = 3  # clusters of a run in a line of ``dbcluster ps``
WIDEST_TEST = 60  # characters of a test's node id in it


@dataclasses.dataclass(frozen=True)
class ClusterRow:
    """A line of ``dbcluster ps``: one kept cluster of a run, or all clusters of a run without kept ones."""

    run_id: str
    """The id of the run."""

    name: str
    """The name of a kept cluster; otherwise the first cluster names of the run, "-" if it has none."""

    topology: str
    """The topology of a kept cluster, otherwise "-"."""

    nodes: str
    """The number of nodes of a kept cluster, otherwise "-"."""

    release: str
    """The release of a kept cluster, otherwise "-"."""

    age: str
    """The time since the start of the run, as text."""

    owner: str
    """The user, with the process id of a run that is not kept."""

    state: str
    """The state of the run, with the test that it measures, or with the command to end a dead one."""


def rows(now: float | None = None) -> list[ClusterRow]:
    """Every cluster of every run of this machine's data directory, the oldest run first.

    The texts of other users' runs may have any content.
    """
    return [row for run in runs.list_runs() for row in _rows(run, now or time.time())]


def _rows(run: Run, now: float) -> list[ClusterRow]:
    age, owner, state = duration(now - run.began), _owner(run), _state(run)
    clusters = kept.read(run.directory)
    if clusters:
        return [
            ClusterRow(
                run.run_id, cluster.name, cluster.topology, str(len(cluster.nodes)), cluster.release, age, owner, state
            )
            for cluster in clusters
        ]
    try:
        directories = [path for path in sorted(run.directory.glob("*-*")) if path.is_dir()]
    except OSError:  # another user's, or just removed
        directories = []
    names = [re.sub(r"^\d+-", "", path.name) for path in directories]
    return [ClusterRow(run.run_id, _some_names(names) or "-", "-", "-", "-", age, owner, state)]


def _some_names(names: Sequence[str]) -> str:
    """The first names, each once, and the number of others: a run of a whole suite has dozens of clusters."""
    once = list(dict.fromkeys(names))
    first = ", ".join(once[:SHOWN_NAMES])
    return first if len(once) <= SHOWN_NAMES else f"{first} and {len(once) - SHOWN_NAMES} more"


def _owner(run: Run) -> str:
    """The user, with the process id of a run that is not kept."""
    return run.user if run.kept else f"{run.user} (pid {run.owner})"


def _state(run: Run) -> str:
    if not run.kept:
        command = "dbcluster reap" if run.mine else f"dbcluster reap, as {run.user}"
        if run.alive:
            return f"running {elide(run.test, WIDEST_TEST)}".rstrip()
        return "ended: its supervisor cleans up" if run.is_ending else f"dead: {command}"
    if elsewhere := next((one for one in kept.read(run.directory) if one.place and one.ends), None):
        assert elsewhere.ends
        if elsewhere.over:
            return f"kept, its hosts have ended: {elsewhere.end}" if run.mine else "kept, its hosts have ended"
        return f"kept, ends in {duration(elsewhere.ends - time.time())}"
    visible = run.mine or os.getuid() == 0  # other users cannot see the processes of the run
    return "kept, its servers have ended" if visible and not run.processes() else "kept"


def down(wanted: str) -> tuple[Run, int]:
    """End one kept run by its id or name; return the run and the number of ended processes.

    Root may end a run of another user by its id. Raises ConfigError for an unknown id or name, and for a run that is
    alive and not kept. It raises it too for another user's run, and for a run that is kept on other machines.
    """
    run = kept.choose(wanted, runs.list_runs())
    if not run.kept and run.alive:
        raise ConfigError(f"run {run.run_id} belongs to process {run.owner}, which still runs: end that process")
    if elsewhere := next((one for one in kept.read(run.directory) if one.place and run.mine), None):
        raise ConfigError(f"run {run.run_id} is kept on other machines ({elsewhere.place}): {elsewhere.end}")
    if not run.mine and os.getuid() != 0:
        command = runs.as_owner(run, f"down {run.run_id}")
        raise ConfigError(f"run {run.run_id} belongs to {run.user}: end it as root, or {command}")
    return run, runs.end(run)


def down_all() -> list[tuple[Run, int]]:
    """End every run of this user that is kept on this machine; return each with the number of ended processes."""
    return [
        (run, runs.end(run))
        for run in runs.list_runs()
        if run.kept and run.mine and not any(one.place for one in kept.read(run.directory))
    ]


def reap_engine(progress: Report) -> list[str]:
    """Remove the containers and networks of runs without a directory; return the ids of these runs.

    A run leaves them if the container engine stops before the run ends. Without an engine, nothing happens; if the
    engine does not answer, ``progress`` gets the reason.
    """
    from pytest_dbcluster.hosts.provisioners.container import engine

    if not engine.has_socket():
        return []
    try:
        with contextlib.closing(engine.connect()) as connected:
            return engine.reap(connected)
    except (ProvisionError, Unsupported) as error:
        progress(f"cannot look for containers of dead runs: {error}")
        return []


def add_cluster(command: argparse.ArgumentParser, title: str) -> Add:
    """Add the topology of a command's clusters, ``--wait``, and a group with nodes, release and proxy.

    title: of the group. Returns the function that adds further options to the group.
    """
    command.add_argument("topology", metavar="TOPOLOGY", help=", ".join(registry.names("topology")))
    add_wait(command)
    add = command.add_argument_group(title).add_argument
    add_nodes(add)
    add_common(add, "--release", default=DEFAULT_RELEASE)
    names = ", ".join(registry.names("proxy"))
    add(
        "--proxy",
        metavar="NAME",
        help=HelpText(f"a proxy in front of the nodes: {names} (default: none)", names),
    )
    return add


def add_nodes(add: Add) -> None:
    """Add the number of nodes."""
    whole = "number of nodes (default 3; for standalone 1, for drbd 2)"
    add("--nodes", type=int, metavar="N", help=HelpText(whole, "nodes (default 3; standalone 1, drbd 2)"))


def add_server_option(add: Add) -> None:
    """Add the option that sets an option of the servers."""
    add("--option", action="append", default=[], metavar="NAME=VALUE", help="a server option; repeatable")


def add_ps(ps: argparse.ArgumentParser) -> None:
    """Add the options of ``dbcluster ps`` to its parser."""
    ps.set_defaults(run=run_ps)
    ps.usage = "%(prog)s [options]"
    add_elsewhere(ps)


def add_down(down: argparse.ArgumentParser) -> None:
    """Add the options of ``dbcluster down`` to its parser."""
    down.set_defaults(run=run_down)
    down.usage = "%(prog)s [options] ID|NAME ..."
    down.add_argument("wanted", nargs="*", metavar="ID|NAME", help="an id or a name that dbcluster ps shows")
    down.add_argument("--all", action="store_true", help="end all your clusters that still run")
    add_elsewhere(down)


def add_reap(reap: argparse.ArgumentParser) -> None:
    """Add the options of ``dbcluster reap`` to its parser."""
    reap.set_defaults(run=run_reap)
    reap.usage = "%(prog)s [options]"
    reap.add_argument(
        "--programs",
        action="store_true",
        help="with ssh: also remove the programs on the machines, which otherwise stay for later runs",
    )
    reap.add_argument("--run", dest="of_run", metavar="ID", help="with ec2: end this run of any user")
    reap.add_argument("--expired", action="store_true", help="with ec2: end only runs after their time to live")
    add_elsewhere(reap)


def add_where(command: argparse.ArgumentParser) -> None:
    """Add the options for the place of clusters that end with the command."""
    add = command.add_argument_group("where").add_argument
    text = HelpText(f"where clusters run (default local): {PLACES}", "local (default), container, vm, ssh or ec2")
    add("--provisioner", default="local", metavar="NAME", help=text)
    add_common(add, "--image", action="append", default=[])
    add_ssh_options(command.add_argument_group(SSH_TITLE).add_argument)
    add_ec2_options(command.add_argument_group(EC2_TITLE).add_argument)


def add_elsewhere(command: argparse.ArgumentParser) -> None:
    """Add the options of a command that is about this machine or other machines."""
    command.set_defaults(of_run="", expired=False)
    command.epilog = (
        f"example: dbcluster {command.prog.split()[-1]} --provisioner ssh --db-host admin@db1 --db-host admin@db2"
    )
    add = command.add_argument_group("where").add_argument
    add(
        "--provisioner",
        default="local",
        choices=("local", "ssh", "ec2"),
        help=HelpText(
            "local: this machine, with its containers and guests (default); ssh: the machines of --db-host; ec2: the "
            "resources of runs in an AWS account",
            "this machine (default), machines or AWS",
        ),
    )
    add("--region", default="", metavar="REGION", help="with ec2: the region (default: that of boto3)")
    add_ssh_options(command.add_argument_group(SSH_TITLE).add_argument)


def options_of(pairs: Sequence[str]) -> dict[str, str]:
    """The values of ``--option NAME=VALUE`` by name. Raises ConfigError without a name or without ``=``."""
    options = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not (name.strip() and equals):
            raise ConfigError(f"--option needs NAME=VALUE, such as innodb_flush_log_at_trx_commit=2; got {pair!r}")
        options[name] = value
    return options


def run_ps(arguments: argparse.Namespace) -> int:
    """``dbcluster ps``: list the runs and kept clusters of this machine, or of other machines."""
    if _in_account(arguments):
        from pytest_dbcluster.cli.ec2 import leftovers

        return leftovers.run_ps(arguments)
    if (elsewhere := _elsewhere(arguments)) is not None:
        return _ps_elsewhere(elsewhere)
    head = [field.name.replace("run_", "") for field in dataclasses.fields(ClusterRow)]
    print(layout.plain(head, [dataclasses.astuple(row) for row in rows()]))
    return 0


def _in_account(arguments: argparse.Namespace) -> bool:
    """Whether a command is about an AWS account, and not about machines. Raises ConfigError."""
    if arguments.provisioner == "ec2":
        remote_arguments(arguments, arguments.provisioner)
        return True
    of_account = {"--region": arguments.region, "--run": arguments.of_run, "--expired": arguments.expired}
    if given := [option for option, value in of_account.items() if value]:
        raise ConfigError(f"{given[0]} is about runs in an AWS account: use --provisioner ec2")
    return False


def _elsewhere(arguments: argparse.Namespace) -> Leftovers | None:
    """The leftovers of runs on the machines of a command; None for a command about this machine. Raises ConfigError."""
    machines = remote_arguments(arguments, arguments.provisioner)
    if arguments.provisioner != "ssh":
        return None
    from pytest_dbcluster.hosts.provisioners.ssh.leftovers import Leftovers

    return Leftovers(**machines)


def _ps_elsewhere(leftovers: Leftovers) -> int:
    lines = []
    for found in leftovers.look():
        for run in found.runs:
            state = "alive" if run.alive else "dead: dbcluster reap"
            lines.append((found.machine, run.run_id, run.owner, run.since, state, size(run.size)))
        if found.programs:
            lines.append((found.machine, "-", "-", "-", "programs for later runs", size(found.programs)))
    print(layout.plain(("machine", "run", "owner", "since", "state", "size"), lines))
    return _print_ended(leftovers)


def _print_ended(leftovers: Leftovers, ended: Sequence[EndedLeftovers] = ()) -> int:
    """Print what ended and what remains, and the machines that did not answer. Returns the exit code."""
    for one in ended:
        for line in one.done:
            print(f"{one.machine}: {line}")
    left = [f"{one.machine}: {line}" for one in ended for line in one.left]
    for line in (*left, *leftovers.problems.values()):
        tell(line)
    return 1 if left or leftovers.problems else 0


def run_down(arguments: argparse.Namespace) -> int:
    """``dbcluster down ID|NAME ...``: end kept clusters, and print what remains of them."""
    if _in_account(arguments):
        from pytest_dbcluster.cli.ec2 import leftovers

        return leftovers.run_down(arguments)
    if (elsewhere := _elsewhere(arguments)) is not None:
        if arguments.all or not arguments.wanted:
            raise ConfigError(
                "dbcluster down --provisioner ssh needs the ids of runs; dbcluster ps --provisioner ssh lists them, "
                "and dbcluster reap --provisioner ssh ends all dead ones"
            )
        return max(_print_ended(elsewhere, elsewhere.end(wanted)) for wanted in arguments.wanted)
    if bool(arguments.wanted) == arguments.all:
        raise ConfigError("dbcluster down needs the ids or names of clusters, or --all; dbcluster ps lists them")
    ended = down_all() if arguments.all else map(down, arguments.wanted)
    for run, processes in ended:
        print(f"ended run {run.run_id} ({quantity(processes, 'process')})")
        if left := runs.leftovers(run):
            tell(left)
    for run in runs.list_runs() if arguments.all else ():
        if run.kept and not run.mine:
            tell(f"left run {run.run_id}, which belongs to {run.user}; {runs.as_owner(run, f'down {run.run_id}')}")
        elif there := next((one for one in kept.read(run.directory) if one.place), None):
            tell(f"left run {run.run_id}, which is kept on other machines ({there.place}): {there.end}")
    return 0


def run_reap(arguments: argparse.Namespace) -> int:
    """``dbcluster reap``: end the processes of this user's dead runs, and remove their containers and files.

    Names the dead runs of other users, with the command that cleans each of them up.
    """
    from pytest_dbcluster.system import worker_files

    if _in_account(arguments):
        from pytest_dbcluster.cli.ec2 import leftovers

        return leftovers.run_reap(arguments)
    if (elsewhere := _elsewhere(arguments)) is not None:
        return _reap_elsewhere(elsewhere, programs=arguments.programs)
    if arguments.programs:
        raise ConfigError("--programs is about programs on other machines: use --provisioner ssh and --db-host")
    ended, swept, files = runs.reap(), reap_engine(tell), worker_files.reap()
    for run, processes in ended:
        print(f"ended dead run {run.run_id} of process {run.owner} ({quantity(processes, 'process')})")
    for run_id in swept:
        print(f"removed containers and networks of dead run {run_id}")
    for path in files:
        print(f"removed {path} of an ended run")
    others = [run for run in runs.dead() if not run.mine]
    for run in others:
        tell(f"left dead run {run.run_id}, which belongs to {run.user}; {runs.as_owner(run, 'reap')}")
    if not (ended or swept or files):
        print(f"nothing to remove: no dead run{' of yours' if others else ''} left anything")
    return 0


def _reap_elsewhere(leftovers: Leftovers, *, programs: bool) -> int:
    ended = leftovers.reap(programs=programs)
    code = _print_ended(leftovers, ended)
    if ended and not any(one.done or one.left for one in ended):
        print(f"nothing to remove: no dead run left anything on {', '.join(one.machine for one in ended)}")
    return code
