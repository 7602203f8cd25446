"""``dbcluster up``, ``ps``, ``down`` and ``reap``: start, list and end clusters, and clean up after dead runs."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import os
import re
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from pytest_dbcluster import registry
from pytest_dbcluster.cli.ec2 import leftovers as ec2
from pytest_dbcluster.cli.text import add_wait, own_options, tell
from pytest_dbcluster.clusters import kept
from pytest_dbcluster.clusters.servers.cnf_file import CnfFile
from pytest_dbcluster.clusters.startup import bring_up
from pytest_dbcluster.errors import ConfigError, ProvisionError, Unsupported, merge_names
from pytest_dbcluster.formatting import Report, duration, elide, option_seconds, quantity, size
from pytest_dbcluster.hosts import runs
from pytest_dbcluster.hosts.given import (
    EC2_TITLE,
    LOCAL_PLACES,
    PLACES,
    SSH_TITLE,
    Add,
    HelpText,
    add_common,
    add_ec2_options,
    add_ssh_options,
    remote_arguments,
)
from pytest_dbcluster.hosts.kept_logs import KeptLogs
from pytest_dbcluster.hosts.network import measured_back
from pytest_dbcluster.hosts.network.measured_back import MeasuredBack
from pytest_dbcluster.hosts.provisioner import Keeps, provisioner_class
from pytest_dbcluster.hosts.provisioners.container import engine
from pytest_dbcluster.hosts.provisioners.ssh.leftovers import EndedLeftovers, Leftovers
from pytest_dbcluster.hosts.runs import Run
from pytest_dbcluster.reporting.tables import layout
from pytest_dbcluster.spec import DEFAULT_RELEASE, PARITIES, ClusterSpec
from pytest_dbcluster.system import cache
from pytest_dbcluster.system.machine_lock import Turns
from pytest_dbcluster.testbed.resolution import Resolution

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
    if not engine.has_socket():
        return []
    try:
        with contextlib.closing(engine.connect()) as connected:
            return engine.reap(connected)
    except (ProvisionError, Unsupported) as error:
        progress(f"cannot look for containers of dead runs: {error}")
        return []


def free_name(name: str) -> None:
    """Raise ConfigError if a kept cluster of this user has this name."""
    for run in runs.list_runs():
        if run.mine and any(cluster.name == name for cluster in kept.read(run.directory)):
            raise ConfigError(f"a kept cluster already has the name {name!r} (run {run.run_id}); choose another --name")


def leave_running(
    spec: ClusterSpec,
    below: CnfFile | None,
    *,
    where: str = "local",
    images: Mapping[str, str] | None = None,
    progress: Report,
) -> str:
    """Start a cluster and leave it running; return the text that says how to connect.

    - below: a my.cnf; options of the spec override it.
    - where: the name of a provisioner.
    - images: container images by release; the provisioner chooses the image of other releases.

    If the spec needs a network, ``progress`` gets the required and measured values. An error or Ctrl-C removes
    everything that this started. Raises Unsupported for a provisioner that cannot leave a cluster running.
    """
    chosen_class = provisioner_class(where)
    provisioner = chosen_class(keep=True, chosen=dict(images)) if images else chosen_class(keep=True)
    if not isinstance(provisioner, Keeps):
        raise Unsupported(f"the provisioner {where} cannot leave a cluster running")
    provisioner.logs = KeptLogs(cache.root() / "logs", "up")
    shutil.rmtree(provisioner.logs.directory / "up", ignore_errors=True)  # logs of the last failed start
    turns = Turns.on(provisioner.offers, provisioner.run_id, progress)
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.closing(provisioner))
        resolution = Resolution(provisioner, fragments=Path(), below=below, progress=progress)
        resolution.building = turns.building
        variant = resolution.resolve(spec, switched=False)
        for line in merge_names(resolution.overridden):
            progress(own_options(line, ("cnf", "cnf_root")))
        stack.enter_context(turns.building())
        servers = variant.topology.servers(spec.nodes)
        progress(f"starting {servers} x {variant.release_name} {variant.version} as {spec.topology}")
        cluster = bring_up(variant.to_start(), provisioner, progress=progress)
        progress(f"ready in {cluster.ready_seconds:.1f} s")
        if cluster.path and (asked := spec.needs.network):
            back = MeasuredBack()
            back.before(spec.short_name, cluster.path, asked)
            progress(measured_back.line(spec.short_name, asked, back.of(spec.short_name)))
        return kept.describe(kept.write(cluster, provisioner, name=spec.name))


def add_up(up: argparse.ArgumentParser) -> None:
    """Add the options of ``dbcluster up`` to its parser."""
    up.set_defaults(run=run_up)
    up.usage = "%(prog)s TOPOLOGY [options]"
    up.epilog = (
        "example: dbcluster up galera --proxy haproxy --option innodb_flush_log_at_trx_commit=2 --name mine; "
        "dbcluster down mine ends it"
    )
    add = add_cluster(up, "what to start")
    add("--name", default="", help="a name for dbcluster ps and down (default: topology and nodes)")
    add = up.add_argument_group("options of the servers").add_argument
    add_server_option(add)
    add("--cnf", metavar="FILE", help="a my.cnf with server options for every node; --option overrides them")
    add_common(add, "--cnf-root")
    add_common(add, "--parity", choices=PARITIES, default=PARITIES[0])
    add = up.add_argument_group("where").add_argument
    add(
        "--provisioner", default="local", metavar="NAME", help=f"where the cluster runs (default local): {LOCAL_PLACES}"
    )
    add_common(add, "--image", action="append", default=[])
    add("--rtt", metavar="TIME", help="round-trip time between two nodes, such as 5ms (default: no delay)")


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


def run_up(arguments: argparse.Namespace) -> int:
    """``dbcluster up TOPOLOGY``: start a cluster, leave it running, and print how to connect."""
    from pytest_dbcluster.clusters import proxy, topology
    from pytest_dbcluster.clusters.servers import cnf_file
    from pytest_dbcluster.hosts.provisioner import module_of, parse_images

    module_of(arguments.provisioner)
    if (elsewhere := arguments.provisioner) in ("ssh", "ec2"):
        raise ConfigError(
            "up cannot leave a cluster on machines behind ssh, because servers there end with the command; "
            f"measure on them with dbcluster compare --provisioner {elsewhere} or with a test"
            + (", which leaves its cluster running with --db-keep" if elsewhere == "ec2" else "")
            + ", or use --provisioner local"
        )
    topology.topology(arguments.topology)
    if arguments.proxy:
        registry.find("proxy", arguments.proxy, planned=proxy.PLANNED)
    nodes = topology.usual_nodes(arguments.topology) if arguments.nodes is None else arguments.nodes
    root = Path(arguments.cnf_root) if arguments.cnf_root else None
    below = cnf_file.read(Path(arguments.cnf), root) if arguments.cnf else None
    spec = ClusterSpec(
        arguments.topology, nodes=nodes, release=arguments.release, proxy=arguments.proxy, parity=arguments.parity
    )
    spec = spec.with_options(options_of(arguments.option))
    if arguments.rtt is not None:
        spec = spec.with_needs(rtt=option_seconds("--rtt", arguments.rtt, "5ms"))
    spec = spec.named(arguments.name)
    if arguments.name:
        free_name(arguments.name)
    images = parse_images(arguments.image, arguments.provisioner)
    print(leave_running(spec, below, where=arguments.provisioner, images=images, progress=tell))
    return 0


def run_ps(arguments: argparse.Namespace) -> int:
    """``dbcluster ps``: list the runs and kept clusters of this machine, or of other machines."""
    if _in_account(arguments):
        return ec2.run_ps(arguments)
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
    return Leftovers(**machines) if arguments.provisioner == "ssh" else None


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
        return ec2.run_down(arguments)
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
    from pytest_dbcluster.hosts import runs
    from pytest_dbcluster.system import worker_files

    if _in_account(arguments):
        return ec2.run_reap(arguments)
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
