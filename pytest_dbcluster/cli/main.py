"""The command ``dbcluster``: its parser, its help texts, and the function that runs each command.

The module of a command is imported when the command runs, so that ``--help`` answers at once.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence

from pytest_dbcluster import registry, wait
from pytest_dbcluster.cli.ec2 import commands as ec2
from pytest_dbcluster.cli.text import add_wait, known_size, own_options, tell, turn
from pytest_dbcluster.errors import ConfigError, DBClusterError
from pytest_dbcluster.hosts.given import LOCK_WAIT, add_ec2_options, lock_wait
from pytest_dbcluster.reporting.tables import layout
from pytest_dbcluster.spec import DEFAULT_RELEASE, PARITIES

FIRST_STEPS = """\
first steps:
  dbcluster init my_project     writes a first test, then: cd my_project && pytest
  dbcluster up galera           starts three nodes to look at; dbcluster down ends them
`dbcluster COMMAND --help` lists the options of a command, `pytest --help` the --db-... options of a test run."""
INTERRUPTED = 130  # what a shell reports for SIGINT
HISTORY = "reports/history.jsonl"
COMPARE_SECONDS = 300.0  # of a whole comparison, with the starts of its clusters


def _command(module: str, function: str) -> Callable[[argparse.Namespace], int]:
    """What runs a command: a function of a module of ``cli``, which is imported when the command runs."""

    def run(arguments: argparse.Namespace) -> int:
        imported = importlib.import_module(f"pytest_dbcluster.cli.{module}")
        found: Callable[[argparse.Namespace], int] = getattr(imported, function)
        return found(arguments)

    return run


_report = _command("report", "run_report")
_init = _command("init", "run_init")
_up = _command("clusters", "run_up")
_compare = _command("compare", "run_compare")
_calibrate = _command("calibrate", "run_calibrate")
_ps = _command("clusters", "run_ps")
_down = _command("clusters", "run_down")
_reap = _command("clusters", "run_reap")
_cache = _command("cache", "run_cache")
_image_build = _command("images", "run_build")
_image_list = _command("images", "run_list")
_image_remove = _command("images", "run_remove")
_history_list = _command("history", "run_list")
_history_draw = _command("history", "run_draw")
_history_export = _command("history", "run_export")
_history_accept = _command("history", "run_accept")
_doctor = _command("doctor", "run_doctor")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. The exit code is 0 for success, 2 for wrong input, 130 for Ctrl-C, 1 for other errors.

    SIGTERM and SIGHUP end a command as Ctrl-C does, with 143 and 129.

    ``compare`` also returns 3 (worse) and 4 (could not tell).
    """
    arguments = _parser().parse_args(argv)
    run: Callable[[argparse.Namespace], int] = arguments.run
    try:
        limit = lock_wait("--wait", getattr(arguments, "wait", LOCK_WAIT))
        with wait.limited(limit, "--wait"), _ending_signals():
            return run(arguments)
    except DBClusterError as error:
        from pytest_dbcluster.redaction import redact

        tell(f"dbcluster: {own_options(redact(str(error)), vars(arguments))}")
        return 2 if isinstance(error, ConfigError) else 1
    except _Ended as ended:
        tell(f"dbcluster: ended by {ended.number.name}")
        return 128 + ended.number
    except KeyboardInterrupt:
        print("dbcluster: interrupted", file=sys.stderr)
        return INTERRUPTED


class _Ended(KeyboardInterrupt):
    """The command got SIGTERM or SIGHUP."""

    def __init__(self, number: int) -> None:
        self.number = signal.Signals(number)
        super().__init__(self.number.name)


@contextlib.contextmanager
def _ending_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP raise ``_Ended``, the first one alone: what it began is cleaned up then."""
    ended: list[int] = []

    def end(number: int, frame: object) -> None:
        ended.append(number)
        if len(ended) == 1:
            raise _Ended(number)

    mine = threading.current_thread() is threading.main_thread()
    numbers = [one for one in (signal.SIGTERM, signal.SIGHUP) if mine and signal.getsignal(one) is signal.SIG_DFL]
    for number in numbers:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="dbcluster",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Set up and inspect real database clusters on this machine, as pytest-dbcluster uses them.",
        epilog=FIRST_STEPS,
    )
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    def add(name: str, run: Callable[[argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
        command.set_defaults(run=run, command=name)
        return command

    init = add("init", _init, "write a first test, its my.cnf and a GitHub workflow into a directory")
    init.add_argument("directory", nargs="?", default=".", metavar="DIRECTORY", help="default: this directory")
    add("releases", _releases, "list the server releases and tools: downloaded, installed, or to be downloaded")
    fetch = add("fetch", _fetch, "download releases and tools into the cache; needs no root")
    fetch.add_argument(
        "names", nargs="+", metavar="NAME:VERSION", help="as mariadb:11.8, or sysbench, haproxy, vm, stand-in, allure"
    )
    add_wait(fetch)
    _add_up(add("up", _up, "start a cluster, leave it running, and print how to connect"))
    _add_compare(add("compare", _compare, "say whether one my.cnf or release is worse than another, in five minutes"))
    _add_calibrate(add("calibrate", _calibrate, "measure how far fresh equal clusters differ on this machine"))
    _add_inspection(add)
    cached = add("cache", _cache, "list the entries of the cache with their sizes, or remove them")
    cached.add_argument(
        "what", nargs="?", choices=("list", "clean"), default="list", help="list (default), or clean to remove"
    )
    add_wait(cached)
    cached.add_argument("names", nargs="*", metavar="ENTRY", help="an entry to remove, as listed (default all)")
    _add_image(add("image", _image_list, "make container images of releases, without an image registry"))
    _add_report(add("report", _report, "make the page of recorded results again, of one run or of several together"))
    _add_history(add("history", _history_list, "show what claims were in earlier runs, and what has changed"))
    of_ec2 = add("ec2", ec2.run_policy, "fetch prices of Amazon EC2, and print the permissions that a run needs there")
    ec2.add_actions(of_ec2)
    return parser


def _add_inspection(add: Callable[..., argparse.ArgumentParser]) -> None:
    """The commands about what is there already, on this machine or elsewhere."""
    ps = add("ps", _ps, "list the clusters of all users of this machine: of test runs, and those left running by up")
    _add_elsewhere(ps)
    down = add("down", _down, "end clusters that up, or pytest --db-keep, left running")
    down.add_argument("wanted", nargs="*", metavar="ID|NAME", help="an id or a name that dbcluster ps shows")
    down.add_argument("--all", action="store_true", help="end all clusters of yours that were left running")
    _add_elsewhere(down)
    reap = add("reap", _reap, "remove what your killed runs left behind: their servers, containers and files")
    reap.add_argument(
        "--programs",
        action="store_true",
        help="with --provisioner ssh: remove the programs that were sent too, which stay for later runs otherwise",
    )
    reap.add_argument(
        "--run", dest="of_run", metavar="ID", help="with --provisioner ec2: end this run, whose ever it is"
    )
    reap.add_argument(
        "--expired", action="store_true", help="with --provisioner ec2: end only what has outlived its time to live"
    )
    _add_elsewhere(reap)
    doctor = add("doctor", _doctor, "check this machine, and list the claims that cannot be measured on it")
    _add_elsewhere(doctor)
    add_ec2_options(doctor.add_argument, "with --provisioner ec2: ")


def _add_up(up: argparse.ArgumentParser) -> None:
    up.epilog = (
        "example: dbcluster up galera --proxy haproxy --option innodb_flush_log_at_trx_commit=2 --name mine; "
        "dbcluster down mine ends it"
    )
    up.add_argument("topology", metavar="TOPOLOGY", help=", ".join(registry.names("topology")))
    up.add_argument("--nodes", type=int, metavar="N", help="number of nodes (default 3; for standalone 1, for drbd 2)")
    up.add_argument(
        "--release",
        default=DEFAULT_RELEASE,
        metavar="NAME:VERSION[=DIRECTORY]",
        help=f"server release (default {DEFAULT_RELEASE}); `dbcluster releases` lists them; =DIRECTORY uses an "
        "unpacked server",
    )
    up.add_argument(
        "--proxy",
        metavar="NAME",
        help=f"a proxy in front of the nodes: {' or '.join(registry.names('proxy'))} (default: none)",
    )
    _add_where(up, "container or vm; not ssh or ec2, where servers end with the command")
    up.add_argument(
        "--rtt", type=float, metavar="SECONDS", help="how far the nodes are apart, there and back: 0.005 is 5 ms"
    )
    up.add_argument("--option", action="append", default=[], metavar="NAME=VALUE", help="a server option; repeatable")
    up.add_argument(
        "--cnf", metavar="FILE", help="a my.cnf with server options for every node; --option overrides them"
    )
    up.add_argument(
        "--cnf-root", metavar="DIR", help="a copy of the files of its old host: !include /etc/... is read there"
    )
    up.add_argument(
        "--parity",
        choices=PARITIES,
        default=PARITIES[0],
        help="vendor: each server's own defaults (default); normalised: options that make vendors comparable",
    )
    add_wait(up)
    up.add_argument("--name", default="", help="a name for dbcluster ps and down (default: topology and nodes)")


def _add_where(up: argparse.ArgumentParser, others: str) -> None:
    """Where a cluster runs. others: the provisioners besides local, for the help text."""
    up.add_argument(
        "--provisioner",
        default="local",
        metavar="NAME",
        help=f"where the cluster runs: local, as processes of this machine (default), {others}",
    )
    up.add_argument(
        "--image",
        action="append",
        default=[],
        metavar="NAME:VERSION=IMAGE",
        help="image for the containers of a release, with --provisioner container; repeatable",
    )
    _add_machines(up.add_argument)
    add_ec2_options(up.add_argument, "with --provisioner ec2: ")


def _add_machines(option: Callable[..., object]) -> None:
    """The options of a test run that name machines, and say how ssh reaches them."""
    machines = "with --provisioner ssh: "
    option(
        "--db-host",
        action="append",
        default=[],
        metavar="USER@ADDRESS",
        help=f"{machines}a machine for one node of each cluster; repeatable; a Host of ~/.ssh/config too",
    )
    option(
        "--db-load-host",
        action="append",
        default=[],
        metavar="USER@ADDRESS",
        help=f"{machines}a machine for the load generator and proxies; repeatable",
    )
    option("--db-host-keys", metavar="FILE", help=f"{machines}file with the host keys of the machines")
    option("--db-ssh-config", metavar="FILE", help=f"{machines}configuration of ssh instead of ~/.ssh/config")
    option(
        "--db-host-directory",
        metavar="DIR",
        help=f"{machines}directory of the machines in which ours is (default /var/tmp)",
    )


def _add_elsewhere(command: argparse.ArgumentParser) -> None:
    """The options of a command that is about this machine, or about machines elsewhere."""
    command.set_defaults(of_run="", expired=False)
    command.epilog = (
        f"example: dbcluster {command.prog.split()[-1]} --provisioner ssh --db-host admin@db1 --db-host admin@db2"
    )
    command.add_argument(
        "--provisioner",
        default="local",
        choices=("local", "ssh", "ec2"),
        help="local: this machine, with its containers and guests (default); ssh: the machines of --db-host; ec2: what "
        "runs have in an account of AWS",
    )
    command.add_argument(
        "--region", default="", metavar="REGION", help="with --provisioner ec2: the region (default: as boto3 finds it)"
    )
    _add_machines(command.add_argument)


def _add_compare(compare: argparse.ArgumentParser) -> None:
    compare.epilog = (
        "exit code: 0 no worse, 3 worse, 4 could not tell, 1 error, 2 wrong arguments, such as two equal files; two "
        "files whose lines differ without effect are no worse"
    )
    option = compare.add_argument
    option("--cnf", action="append", default=[], metavar="FILE", help="a my.cnf; give two, the current one first")
    option("--option", action="append", default=[], metavar="NAME=VALUE", help="a server option of both; repeatable")
    option("--cnf-root", metavar="DIR", help="a copy of the host's files: !include /etc/... is read below it")
    option(
        "--release",
        action="append",
        default=[],
        metavar="NAME:VERSION",
        help=f"a server release; give two to compare them, the current one first (default {DEFAULT_RELEASE})",
    )
    option("--topology", default="standalone", metavar="NAME", help="such as galera, standalone (default standalone)")
    option("--nodes", type=int, metavar="N", help="number of nodes (default 3; for standalone 1, for drbd 2)")
    option(
        "--workload",
        action="append",
        default=[],
        metavar="NAME[:MODE]",
        help="tpcc, sysbench:SCRIPT or mysqlslap:MODE; repeatable (default sysbench:oltp_read_write and tpcc)",
    )
    _add_how(option)
    add_wait(compare)


def _add_how(option: Callable[..., object]) -> None:
    """How two clusters are compared, and where."""
    option("--threads", type=int, metavar="N", help="connections of each workload (default: the workload's own)")
    option(
        "--seconds",
        type=float,
        default=COMPARE_SECONDS,
        metavar="S",
        help=f"time of the whole comparison, with the starts of its clusters (default {COMPARE_SECONDS:g})",
    )
    option("--seed", type=int, metavar="N", help="seed for the order of rounds (default random)")
    option("--equal", action="store_true", help="measure two files or releases that do not differ in effect (A/A)")
    option(
        "--results",
        default="reports/compare",
        metavar="DIR",
        help="directory of the results and their page (default reports/compare)",
    )
    option(
        "--resume",
        action="store_true",
        help="take over the answers that are in the results, and measure what has none, or has changed",
    )
    option(
        "--provisioner",
        default="local",
        metavar="NAME",
        help="where the clusters run: local (default), container, vm, ssh or ec2",
    )
    option("--image", action="append", default=[], metavar="NAME:VERSION=IMAGE", help="image of a release; repeatable")
    _add_machines(option)
    add_ec2_options(option, "with --provisioner ec2: ")


def _add_calibrate(calibrate: argparse.ArgumentParser) -> None:
    calibrate.description = (
        "Start pairs of fresh equal clusters, measure each pair, and keep how far they differ in each metric. "
        "Claims between variants on separate clusters of this kind then count only what lies beyond that difference "
        "(1 in 200), instead of beyond a default. Each pair is kept at once: after Ctrl-C the same command goes on. "
        "Let nothing else run on the machine."
    )
    calibrate.epilog = (
        "example: dbcluster calibrate galera --workload mysqlslap:write takes about an hour, with --seconds 480 eight "
        "minutes"
    )
    option = calibrate.add_argument
    option("topology", metavar="TOPOLOGY", help=", ".join(registry.names("topology")))
    option("--nodes", type=int, metavar="N", help="number of nodes (default 3; for standalone 1, for drbd 2)")
    option(
        "--release",
        default=DEFAULT_RELEASE,
        metavar="NAME:VERSION",
        help=f"server release (default {DEFAULT_RELEASE})",
    )
    option("--proxy", metavar="NAME", help=f"a proxy: {' or '.join(registry.names('proxy'))} (default: none)")
    option(
        "--workload",
        default="mysqlslap:write",
        metavar="NAME[:MODE]",
        help="tpcc, sysbench:SCRIPT or mysqlslap:MODE (default mysqlslap:write)",
    )
    option("--threads", type=int, metavar="N", help="connections of the workload (default: the workload's own)")
    option("--open-loop", action="store_true", help="at 70 %% of capacity, for claims about latencies")
    option("--pairs", type=int, default=24, metavar="N", help="pairs of clusters to have in all (default 24)")
    option("--rounds", type=int, metavar="N", help="rounds of each cluster (default 40; with --seconds what it allows)")
    option(
        "--seconds",
        type=float,
        metavar="S",
        help="time of all pairs with the starts of their clusters (default: what --rounds takes)",
    )
    option("--again", action="store_true", help="forget the pairs that are known, and begin anew")
    add_wait(calibrate)
    _add_where(calibrate, "container, vm, ssh, on the machines of --db-host, or ec2")


def _add_report(report: argparse.ArgumentParser) -> None:
    report.epilog = (
        "The page is one file that needs no network. Claims of several releases, topologies, storages, machines or "
        "runs are also printed side by side, and written as Markdown beside the page; --output FILE.md writes that "
        "table alone."
    )
    report.add_argument("directories", nargs="+", metavar="DIR", help="a results directory, such as reports/latest")
    report.add_argument("--output", metavar="FILE", help="the file to write (default DIR/index.html)")
    report.add_argument("--allure", action="store_true", help="also make Allure's page, allure.html; fetches Allure 3")
    report.add_argument(
        "--by",
        default="release",
        metavar="WHAT",
        help="the columns of the printed table: release (default), topology, storage, machine or run",
    )


def _add_image(image: argparse.ArgumentParser) -> None:
    actions = image.add_subparsers(title="commands", required=True, metavar="COMMAND")
    build = actions.add_parser("build", help="make images from Debian packages and load them into the container engine")
    build.add_argument("names", nargs="+", metavar="NAME:VERSION", help="such as mariadb:11.8")
    build.add_argument(
        "--again", action="store_true", help="make existing images again, from the mirror's current packages"
    )
    add_wait(build)
    build.set_defaults(run=_image_build)
    actions.add_parser("list", help="list the images that build made").set_defaults(run=_image_list)
    remove = actions.add_parser("remove", help="remove images that build made")
    remove.add_argument("names", nargs="+", metavar="NAME", help="a release or an image, as listed")
    remove.set_defaults(run=_image_remove)


def _add_history(history: argparse.ArgumentParser) -> None:
    history.epilog = "pytest --db-history FILE adds the claims of a run to FILE, and begins it"
    actions = history.add_subparsers(title="commands", required=True, metavar="COMMAND")

    def add(
        name: str, run: Callable[[argparse.Namespace], int], text: str, *, some: bool = True
    ) -> argparse.ArgumentParser:
        action = actions.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
        action.set_defaults(run=run)
        action.add_argument("--file", default=HISTORY, metavar="FILE", help=f"the history (default {HISTORY})")
        if some:
            action.add_argument("--claim", default="", metavar="TEXT", help="only claims whose id contains this text")
        return action

    add(
        "list",
        _history_list,
        "list the newest run of each claim beside the runs before it, and what has changed",
    )
    draw = add("draw", _history_draw, "draw a chart of each claim")
    draw.add_argument("directory", metavar="DIRECTORY", help="where to write the charts, one SVG for each claim")
    export = add("export", _history_export, "write every run of every claim as CSV, for other programs")
    export.add_argument("output", metavar="FILE.csv", help="the file to write")
    accept = add("accept", _history_accept, "accept that a claim has a new level from a run on", some=False)
    accept.add_argument("claim", metavar="CLAIM", help="its id, or a part of it that no other claim has")
    accept.add_argument("run_id", metavar="RUN", help="the id of the first run of the new level, or its beginning")
    accept.add_argument("reason", metavar="REASON", help='why, such as "another disk since Monday"')


def _releases(arguments: argparse.Namespace) -> int:
    from pytest_dbcluster.releases import find

    rows = [(row.name, row.state, row.version, known_size(row.size), row.source) for row in find.known()]
    print(layout.plain(("release", "state", "version", "size", "where"), rows))
    return 0


def _fetch(arguments: argparse.Namespace) -> int:
    from pytest_dbcluster.releases import find
    from pytest_dbcluster.reporting.allure import program

    for name in arguments.names:
        if name == program.NAME:
            print(f"{name} {program.VERSION}: {program.fetch(tell)}")
            continue
        with turn():
            release = find.find(name, progress=tell)
        print(f"{release.name} {release.version}: {release.bin} ({release.source})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
