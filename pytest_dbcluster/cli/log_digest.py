"""``dbcluster init --workload DIR --from LOG --schema FILE``: a log becomes a workload directory. Experimental."""

from __future__ import annotations

import argparse
import contextlib
import shlex
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_dbcluster.cli.text import tell
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.spec import DEFAULT_RELEASE, ClusterSpec, ReleaseName

if TYPE_CHECKING:
    from pytest_dbcluster.workloads.digest.digest_directory import ReadLog
    from pytest_dbcluster.workloads.digest.digest_report import LogDigest
    from pytest_dbcluster.workloads.workload import Setting

MOST_CHECKS = 3  # transactions that differ are left out before each further one
APART = 1  # exit code of --check if a figure is more than 10 % apart
OPTIONS = {"schema": "--schema", "keep_literals": "--keep-literals", "check": "--check", "release": "--release"}


def add_digest(init: argparse.ArgumentParser) -> None:
    """Add the options of a digest to the parser of ``dbcluster init``."""
    add = init.add_argument_group("a workload from a production log (experimental)").add_argument
    add(
        "--from",
        dest="from_log",
        metavar="LOG",
        help="write the SQL files of --workload from this log, and no test: a slow log with long_query_time=0, or a "
        "general log, of MariaDB or MySQL; also .gz",
    )
    add("--schema", metavar="FILE", help="the CREATE TABLE statements of its tables, such as of mysqldump --no-data")
    add("--keep-literals", action="store_true", help="write texts of the log into the directory (default: stand-ins)")
    add(
        "--check",
        action="store_true",
        help=f"run the workload on a server here ({DEFAULT_RELEASE}), and compare its counters with the log",
    )
    add("--release", metavar="NAME:VERSION", help="the server of --check")


def run_digest(arguments: argparse.Namespace, write: Callable[[Path, Mapping[str, str]], None]) -> int:
    """Write the directory and print the report; with ``--check`` run it too.

    write: writes files below a directory. The check takes transactions that differ from the log out of a directory that
    this call has written. Returns 0, or 1 if a figure of the others is more than 10 % apart. Raises ConfigError for
    missing options, and for a log or a schema that cannot be used.
    """
    from pytest_dbcluster.workloads.digest import digest_directory, digest_report

    if arguments.workload is None or not arguments.from_log or not arguments.schema:
        raise ConfigError(
            "--from needs a directory and a schema: dbcluster init --workload shop/ --from slow.log --schema schema.sql"
        )
    directory = Path(arguments.directory) / arguments.workload
    if directory.exists() and not directory.is_dir():
        raise ConfigError(f"--workload {directory} is a file: name a directory")
    tell("dbcluster init --from is experimental: read digest.md before you trust the workload")
    digest, read, files = digest_directory.write_digest(
        Path(arguments.from_log),
        Path(arguments.schema),
        directory,
        keep_literals=arguments.keep_literals,
        progress=tell,
    )
    own = arguments.check and (directory / digest_directory.MANIFEST).exists()
    if own:
        tell(f"checking {directory} as it is; nothing is written")
    else:
        write(directory, files)
    shown = str(directory)
    for line in digest_report.terminal(digest, shown):
        print(line)
    if not digest.runnable:
        raise ConfigError(f"no transaction of {arguments.from_log} can run: {shown}/digest.md says why")
    if not arguments.check:
        print("check:    the same command with --check runs it, and compares its counters with the log")
        print(f"then:     dbcluster init --workload {shlex.quote(arguments.workload)} writes a test of it")
        return 0
    return _check(arguments, digest, read, directory, own=own)


def refuse_without_log(arguments: argparse.Namespace) -> None:
    """Raise ConfigError if an option of a digest is given without --from."""
    for name, option in OPTIONS.items():
        if getattr(arguments, name):
            raise ConfigError(f"{option} belongs to --from LOG, which makes a workload from a log")


def _check(arguments: argparse.Namespace, digest: LogDigest, read: ReadLog, directory: Path, *, own: bool) -> int:
    """Run the workload and print the comparison. own: whether the directory may have changes of the user."""
    from pytest_dbcluster.workloads.digest import digest_check, digest_directory, digest_report
    from pytest_dbcluster.workloads.sql import SQLFiles

    threads = max(1, min(digest_check.MOST_THREADS, digest.totals.connections))
    with _server(arguments.release or DEFAULT_RELEASE) as setting:
        for number in range(1, MOST_CHECKS + 1):
            run = digest_check.check(digest, read, SQLFiles(directory, threads=threads), setting)
            figures = digest_check.compare(digest, read, run)
            for line in digest_check.lines(figures):
                print(line)
            apart = [figure.name for figure in figures if not figure.fits]
            differing = digest_check.responsible(digest_check.compare_each(digest, read, run)) if apart else []
            if own or number == MOST_CHECKS or not differing:
                break
            left = [(outcome, how) for checked, how in differing for outcome in checked.outcomes]
            for outcome, how in left:
                digest_directory.leave_out(digest, directory, outcome, how)
            for line in digest_report.refusals(digest, [outcome for outcome, _ in left]):
                print(line)
            print(f"checking the {len(digest.runnable)} others; {digest_report.coverage(digest)}")
    for checked, how in differing:
        print(f"differs: {checked.files}: {how}")
    if apart:
        print(f"differs: {', '.join(apart)}; digest.md names what could not be explained")
        return APART
    print("all figures agree within 10 %")
    return 0


@contextlib.contextmanager
def _server(release: str) -> Iterator[Setting]:
    """One server on this machine, for the context."""
    from pytest_dbcluster.testbed.pool import open_pool
    from pytest_dbcluster.workloads.workload import Setting

    spec = ClusterSpec("standalone", release=ReleaseName.parse(release))
    pool = open_pool("local", progress=tell)
    with contextlib.ExitStack() as stack:
        stack.callback(pool.leave)
        pool.provisioner.expect([spec])
        variant = pool.resolution.resolve(spec, switched=False)
        (running,) = pool.running([variant])
        yield Setting(running.cluster, pool.client(variant.release), variant.release, "quick", tell)
