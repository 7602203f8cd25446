"""The command ``dbcluster``: releases, images, clusters for hand work, and what this machine offers."""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_dbcluster.errors import ConfigError, DBClusterError, Unsupported
from pytest_dbcluster.spec import DEFAULT_RELEASE

if TYPE_CHECKING:
    from pytest_dbcluster.hosts.provisioners.container.engine import Engine
    from pytest_dbcluster.hosts.provisioners.container.images import Image

PLANNED = {
    "compare": "compare two recorded runs",
    "history": "show how recorded results moved over time",
    "report": "make the report of recorded results",
}
INTERRUPTED = 130  # what a shell reports for SIGINT


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command: 0 when it was done, 2 for wrong input, 1 for everything else that went wrong."""
    arguments = _parser().parse_args(argv)
    run: Callable[[argparse.Namespace], int] = arguments.run
    try:
        return run(arguments)
    except DBClusterError as error:
        from pytest_dbcluster.redaction import redact

        print(f"dbcluster: {redact(str(error))}", file=sys.stderr)
        return 2 if isinstance(error, ConfigError) else 1
    except KeyboardInterrupt:
        print("dbcluster: interrupted", file=sys.stderr)
        return INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="dbcluster", description="Real database clusters on this machine: for pytest-dbcluster, and for hand work."
    )
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    def add(name: str, run: Callable[[argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
        made.set_defaults(run=run, command=name)
        return made

    add("releases", _releases, "list the releases and tools that are known, cached or found here")
    fetch = add("fetch", _fetch, "fetch releases ahead, without root, into the cache")
    fetch.add_argument("names", nargs="+", metavar="NAME:VERSION", help="such as mariadb:11.8, or sysbench, haproxy")
    _add_up(add("up", _up, "bring a cluster up that stays, and print how to connect"))
    add("ps", _ps, "list the runs and kept clusters of this machine")
    down = add("down", _down, "end kept clusters")
    down.add_argument("wanted", nargs="*", metavar="ID|NAME", help="as dbcluster ps shows them")
    down.add_argument("--all", action="store_true", help="end every kept cluster")
    add("reap", _reap, "end what runs left behind that are dead")
    add("doctor", _doctor, "say what this machine offers, and what that rules out")
    cached = add("cache", _cache, "list what the cache holds, and its size")
    cached.add_argument("what", nargs="?", choices=("list", "clean"), default="list", help="clean removes all of it")
    cached.add_argument("names", nargs="*", metavar="ENTRY", help="what clean removes, as listed; default all")
    _add_image(add("image", _image_list, "make container images of releases, without a registry"))
    for name, text in PLANNED.items():
        add(name, _planned, f"{text} (planned)")
    return parser


def _add_up(up: argparse.ArgumentParser) -> None:
    up.add_argument("topology", metavar="TOPOLOGY", help="such as galera, standalone")
    up.add_argument("--nodes", type=int, metavar="N", help="default 3, and 1 for standalone")
    up.add_argument("--release", default=DEFAULT_RELEASE, metavar="NAME:VERSION", help=f"default {DEFAULT_RELEASE}")
    up.add_argument("--proxy", metavar="NAME", help="a proxy in front, such as haproxy")
    up.add_argument(
        "--provisioner", default="local", metavar="NAME", help="where it runs: local (default) or container"
    )
    up.add_argument(
        "--image", action="append", default=[], metavar="NAME:VERSION=IMAGE", help="of a release's containers"
    )
    up.add_argument("--option", action="append", default=[], metavar="NAME=VALUE", help="a server option; repeatable")
    up.add_argument("--cnf", metavar="FILE", help="a my.cnf that lies under --option")
    up.add_argument("--name", default="", help="a name for dbcluster ps and down")


def _add_image(image: argparse.ArgumentParser) -> None:
    actions = image.add_subparsers(title="commands", required=True, metavar="COMMAND")
    build = actions.add_parser("build", help="make images from Debian packages and bring them into the engine")
    build.add_argument("names", nargs="+", metavar="NAME:VERSION", help="such as mariadb:11.8")
    build.add_argument("--again", action="store_true", help="make them anew, of what the mirror has now")
    build.set_defaults(run=_image_build)
    actions.add_parser("list", help="list the home-made images of the engine").set_defaults(run=_image_list)
    remove = actions.add_parser("remove", help="remove home-made images from the engine")
    remove.add_argument("names", nargs="+", metavar="NAME", help="a release or an image, as listed")
    remove.set_defaults(run=_image_remove)


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Rows under a head, each column as wide as its widest cell."""
    widths = [max(len(row[n]) for row in (head, *rows)) for n in range(len(head))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in (head, *rows)]
    return "\n".join(line.rstrip() for line in lines)


def megabytes(size: int) -> str:
    """Bytes as ``142 MB``; nothing where the size is not known."""
    return f"{size / 1e6:.0f} MB" if size else ""


def _releases(arguments: argparse.Namespace) -> int:
    from pytest_dbcluster.releases import release

    rows = [(row.name, row.state, row.version, megabytes(row.size), row.source) for row in release.known()]
    print(table(("release", "state", "version", "size", "where"), rows))
    return 0


def _fetch(arguments: argparse.Namespace) -> int:
    from pytest_dbcluster.releases import release

    for name in arguments.names:
        with _turn():
            found = release.find(name, progress=_tell)
        print(f"{found.name} {found.version}: {found.bin} ({found.source})")
    return 0


def _image_build(arguments: argparse.Namespace) -> int:
    from pytest_dbcluster.hosts.provisioners.container import images

    offers = [images.offer(name) for name in arguments.names]
    with _engine() as engine:
        for offer in offers:
            with _turn():
                made = images.build(offer, engine, _tell, again=arguments.again)
            print(made.tag)
    return 0


def _turn() -> AbstractContextManager[None]:
    """The machine's, for what takes cores and the disk: nobody measures meanwhile."""
    from pytest_dbcluster.system import machine_lock

    return machine_lock.this().turn(machine_lock.BUILDING, run="dbcluster", progress=_tell)


def _image_list(arguments: argparse.Namespace) -> int:
    from pytest_dbcluster.hosts.provisioners.container import images

    with _engine() as engine:
        _show_images("image", images.found(engine))
    return 0


def _image_remove(arguments: argparse.Namespace) -> int:
    from pytest_dbcluster.hosts.provisioners.container import images

    with _engine() as engine:
        _show_images("removed", [image for name in arguments.names for image in images.remove(engine, name)])
    return 0


@contextlib.contextmanager
def _engine() -> Iterator[Engine]:
    from pytest_dbcluster.hosts.provisioners.container import engine

    reached = engine.connect()
    with contextlib.closing(reached.client):
        yield reached


def _show_images(head: str, images: Sequence[Image]) -> None:
    from pytest_dbcluster.cli import housekeeping

    now = time.time()
    rows = [
        (one.tag or "(untagged)", one.release, one.exact, megabytes(one.size), housekeeping.duration(now - one.built))
        for one in images
    ]
    print(table((head, "release", "version", "size", "age"), rows))


def options_of(pairs: Sequence[str]) -> dict[str, str]:
    """``--option NAME=VALUE`` as a mapping. Raises ConfigError for one without a name or a value."""
    found = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not (name.strip() and equals):
            raise ConfigError(f"--option takes NAME=VALUE, such as innodb_flush_log_at_trx_commit=2; got {pair!r}")
        found[name] = value
    return found


def _up(arguments: argparse.Namespace) -> int:
    from pytest_dbcluster import registry
    from pytest_dbcluster.cli import housekeeping
    from pytest_dbcluster.clusters import proxy, topology
    from pytest_dbcluster.clusters.servers import options
    from pytest_dbcluster.hosts.provisioner import module_of
    from pytest_dbcluster.plugin.settings import given_images
    from pytest_dbcluster.spec import ClusterSpec, ReleaseName

    module_of(arguments.provisioner)
    topology.topology(arguments.topology)
    if arguments.proxy:
        registry.find("proxy", arguments.proxy, planned=proxy.PLANNED)
    nodes = arguments.nodes if arguments.nodes is not None else 1 if arguments.topology == "standalone" else 3
    below = options.read_cnf(Path(arguments.cnf)) if arguments.cnf else {}
    name = ReleaseName.parse(arguments.release)
    spec = ClusterSpec(arguments.topology, nodes=nodes, release=name, proxy=arguments.proxy)
    spec = spec.with_options(options_of(arguments.option)).named(arguments.name)
    if arguments.name:
        housekeeping.free_name(arguments.name)
    from pytest_dbcluster.cli.hand import leave_running

    images = given_images(arguments.image, arguments.provisioner)
    print(leave_running(spec, below, where=arguments.provisioner, images=images, progress=_tell))
    return 0


def _ps(arguments: argparse.Namespace) -> int:
    import dataclasses

    from pytest_dbcluster.cli import housekeeping

    head = [field.name.replace("run_", "") for field in dataclasses.fields(housekeeping.Row)]
    print(table(head, [dataclasses.astuple(row) for row in housekeeping.rows()]))
    return 0


def _down(arguments: argparse.Namespace) -> int:
    from pytest_dbcluster.cli import housekeeping

    if bool(arguments.wanted) == arguments.all:
        raise ConfigError("dbcluster down takes either the ids or names of clusters, or --all; dbcluster ps lists them")
    ended = housekeeping.down_all() if arguments.all else map(housekeeping.down, arguments.wanted)
    for run, processes in ended:
        print(f"ended run {run.run_id} ({processes} processes)")
    return 0


def _reap(arguments: argparse.Namespace) -> int:
    from pytest_dbcluster.cli import housekeeping
    from pytest_dbcluster.hosts import runs
    from pytest_dbcluster.system import worker_files

    ended, swept, files = runs.reap(), housekeeping.reap_engine(_tell), worker_files.reap()
    for run, processes in ended:
        print(f"ended dead run {run.run_id} of process {run.owner} ({processes} processes)")
    for run_id in swept:
        print(f"removed containers and networks of run {run_id}, whose directory is gone")
    for place in files:
        print(f"removed {place}, whose run is gone")
    if not (ended or swept or files):
        print("no dead run has left anything")
    return 0


def _doctor(arguments: argparse.Namespace) -> int:
    from pytest_dbcluster.cli import doctor

    print(doctor.text(doctor.findings()))
    return 0


def _cache(arguments: argparse.Namespace) -> int:
    from pytest_dbcluster.cli import housekeeping
    from pytest_dbcluster.system import cache

    if arguments.names and arguments.what == "list":
        raise ConfigError("dbcluster cache list takes no names: it lists everything")
    rows = housekeeping.clean(arguments.names, _tell) if arguments.what == "clean" else housekeeping.cached()
    now = time.time()
    shown = [
        (one.name, megabytes(one.size), one.holds, f"{housekeeping.duration(now - one.used)} ago" if one.used else "")
        for one in rows
    ]
    total = megabytes(sum(one.size for one in rows)) or "0 MB"
    print(table(("removed" if arguments.what == "clean" else "entry", "size", "holds", "used"), shown))
    print(f"{total} in {cache.root()}")
    return 0


def _planned(arguments: argparse.Namespace) -> int:
    raise Unsupported(f"{arguments.command} is planned and not built yet")


if __name__ == "__main__":
    sys.exit(main())
