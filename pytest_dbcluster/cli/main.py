"""The command ``dbcluster``: its parser, and the function that runs a command.

It imports the module of a command when the user chooses the command, so that ``--help`` answers at once.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence

from pytest_dbcluster import wait
from pytest_dbcluster.cli.text import own_options, tell
from pytest_dbcluster.errors import ConfigError, DBClusterError
from pytest_dbcluster.formatting import option_seconds
from pytest_dbcluster.hosts.given import LOCK_WAIT
from pytest_dbcluster.version import __version__

FIRST_STEPS = """\
first steps:
  dbcluster init my_project     writes a first test, then: cd my_project && pytest
  dbcluster up galera           starts three nodes to look at; dbcluster down ends them
`dbcluster COMMAND --help` lists the options of a command, `pytest --help` the --db-... options of a test run."""
INTERRUPTED = 130  # the exit code of a shell for SIGINT
# Each command; the module of ``cli`` whose function ``add_COMMAND`` adds its options; and its description.
COMMANDS = (
    ("init", "init", "write a first test, its my.cnf and a GitHub workflow into a directory"),
    ("releases", "releases", "list the server releases and tools: downloaded, installed, or available for download"),
    ("fetch", "releases", "download releases and tools into the cache; needs no root"),
    ("up", "clusters", "start a cluster, leave it running, and print how to connect"),
    ("compare", "compare", "say whether one my.cnf or release is worse than another, in five minutes"),
    ("calibrate", "calibrate", "measure how far fresh equal clusters differ on this machine"),
    ("ps", "clusters", "list the clusters of all users of this machine: of test runs, and of up"),
    ("down", "clusters", "end clusters that up, or pytest --db-keep, left running"),
    ("reap", "clusters", "remove the servers, containers and files of your killed runs"),
    ("doctor", "doctor", "check this machine, and list the claims that cannot be measured on it"),
    ("cache", "cache", "list the entries of the cache with their sizes, or remove them"),
    ("image", "releases", "make container images of releases, without an image registry"),
    ("report", "report", "make the page of results again, of one run or of several runs"),
    ("history", "history", "show the results of claims in earlier runs, and their changes"),
    ("ec2", "ec2.commands", "fetch prices of Amazon EC2, and print the permissions that a run needs there"),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. The exit code is 0 for success, 2 for wrong input, 130 for Ctrl-C, 1 for other errors.

    SIGTERM and SIGHUP end a command as Ctrl-C does, with 143 and 129. ``compare`` also returns 3 (worse) and 4 (could
    not tell).
    """
    words = sys.argv[1:] if argv is None else argv
    try:
        with _ending_signals():
            return _run(parser(words).parse_args(words))
    except _Ended as ended:
        tell(f"dbcluster: ended by {ended.number.name}")
        return 128 + ended.number
    except KeyboardInterrupt:
        print("dbcluster: interrupted", file=sys.stderr)
        return INTERRUPTED


def _run(arguments: argparse.Namespace) -> int:
    """Run a command; an error of the package becomes a sentence and an exit code."""
    run: Callable[[argparse.Namespace], int] = arguments.run
    try:
        with wait.lock_limit(option_seconds("--wait", getattr(arguments, "wait", LOCK_WAIT)), "--wait"):
            return run(arguments)
    except DBClusterError as error:
        from pytest_dbcluster.redaction import redact

        tell(f"dbcluster: {own_options(redact(str(error)), vars(arguments))}")
        return 2 if isinstance(error, ConfigError) else 1


class _Ended(KeyboardInterrupt):
    """The command got SIGTERM or SIGHUP."""

    def __init__(self, number: int) -> None:
        self.number = signal.Signals(number)
        super().__init__(self.number.name)


@contextlib.contextmanager
def _ending_signals() -> Iterator[None]:
    """A context in which the first SIGTERM or SIGHUP raises ``_Ended``; later ones do not disturb the cleanup."""
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


def parser(words: Sequence[str]) -> argparse.ArgumentParser:
    """The parser for these words: it has every command, and the options of the command in the words."""
    made = argparse.ArgumentParser(
        prog="dbcluster",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Set up and inspect real database clusters on this machine, as pytest-dbcluster uses them.",
        epilog=FIRST_STEPS,
    )
    version = f"pytest-dbcluster {__version__}"
    made.add_argument("--version", action="version", version=version, help="print the version and exit")
    commands = made.add_subparsers(title="commands", required=True, metavar="COMMAND")
    chosen = next((word for word in words if not word.startswith("-")), "")
    for name, module, text in COMMANDS:
        command = commands.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
        if name == chosen:
            add: Callable[[argparse.ArgumentParser], None]
            add = getattr(importlib.import_module(f"pytest_dbcluster.cli.{module}"), f"add_{name}")
            add(command)
    return made


if __name__ == "__main__":
    sys.exit(main())
