"""The command ``dbcluster``: its parser, and the function that runs a command.

It imports the module of a command when the user chooses the command, so that ``--help`` answers at once. No module of
the package with a dataclass is imported before. ``benchmarks/start_up.py`` measures the time.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import importlib
import signal
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pytest_dbcluster.version import __version__

FIRST_STEPS = """\
first steps:
  dbcluster init my_project  writes a first test, then: cd my_project && pytest
  dbcluster up galera        starts three nodes; dbcluster down ends them
`dbcluster COMMAND --help` lists the options of a command, and `pytest --help`
the --db-... options of a test run."""
WHOLE = "The documentation has the whole text of each option: reference/cli.\n"
INTERRUPTED = 130  # the exit code of a shell for SIGINT
HELP_COLUMN = 32  # of the texts in the help of a command, if the names of the options are short enough
CLOSE = 0.7  # the least likeness of options for a suggestion, see ``registry.suggestion``
# Each group of commands: the command; the module of ``cli`` whose function ``add_COMMAND`` adds its options; and its
# description.
GROUPS = {
    "measure": (
        ("init", "init", "write a first test, its my.cnf and a GitHub workflow"),
        ("compare", "compare.command", "compare two my.cnf files or releases, in five minutes"),
        ("calibrate", "calibrate", "measure how far fresh equal clusters differ on this machine"),
        ("report", "report", "make the page of results again, of one run or of several runs"),
        ("history", "history", "show the results of claims in earlier runs, and their changes"),
    ),
    "clusters": (
        ("up", "up", "start a cluster, leave it running, and print how to connect"),
        ("ps", "clusters", "list the clusters of all users, of test runs and of up"),
        ("down", "clusters", "end clusters that up, or pytest --db-keep, left running"),
        ("reap", "clusters", "remove the servers, containers and files of your killed runs"),
    ),
    "machine": (
        ("doctor", "doctor.command", "check this machine, and list claims that cannot be measured on it"),
        ("releases", "releases", "list server releases and tools, with their state on this machine"),
        ("fetch", "releases", "download releases and tools into the cache; needs no root"),
        ("image", "releases", "make container images of releases, without an image registry"),
        ("cache", "cache", "list the entries of the cache with their sizes, or remove them"),
    ),
    "cloud": (("ec2", "ec2.commands", "fetch prices of Amazon EC2, and print the permissions of a run"),),
}
COMMANDS = tuple(command for commands in GROUPS.values() for command in commands)


class HelpLines(argparse.HelpFormatter):
    """The help of a command with brief texts, in which the names of options stay whole."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        return getattr(action.help, "brief", action.help)

    def add_text(self, text: str | None) -> None:
        """Add a description or an epilog; argparse calls this."""
        super().add_text(getattr(text, "brief", text))

    def _split_lines(self, text: str, width: int) -> list[str]:
        return textwrap.wrap(" ".join(text.split()), width, break_on_hyphens=False)


class Parser(argparse.ArgumentParser):
    """A parser that suggests the closest name for an unknown command, value or option."""

    def __init__(self, **settings: Any) -> None:
        formatter = functools.partial(HelpLines, max_help_position=HELP_COLUMN)
        super().__init__(**{"formatter_class": formatter, **settings})

    def format_help(self) -> str:
        """The help; it ends with the place of the whole texts if it has brief ones."""
        texts = [self.description, self.epilog, *(action.help for action in self._actions)]
        whole = any(hasattr(text, "brief") for text in texts)
        return f"{super().format_help()}{WHOLE if whole else ''}"

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """End with an error if the action does not accept the value; argparse calls this for each value."""
        if action.choices is None or value in action.choices:
            return
        from pytest_dbcluster import registry

        name = action.metavar if action.dest == argparse.SUPPRESS else action.dest
        self.error(str(registry.unknown(str(name).lower(), value, action.choices)))

    def parse_known_args(self, *args: Any, **settings: Any) -> Any:
        """As in argparse, but unknown words end with an error, which suggests the closest option."""
        parsed, unknown = super().parse_known_args(*args, **settings)
        if unknown:
            from pytest_dbcluster import registry

            name = next((word.partition("=")[0] for word in unknown if word.startswith("-")), "")
            close = registry.suggestion("option", name, self._option_string_actions, close=CLOSE)
            self.error(f"unrecognized arguments: {' '.join(unknown)}{close}")
        return parsed, unknown


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
        from pytest_dbcluster.cli.text import tell

        tell(f"dbcluster: ended by {ended.number.name}")
        return 128 + ended.number
    except KeyboardInterrupt:
        print("dbcluster: interrupted", file=sys.stderr)
        return INTERRUPTED


def _run(arguments: argparse.Namespace) -> int:
    """Run a command; an error of the package becomes a sentence and an exit code."""
    from pytest_dbcluster import wait
    from pytest_dbcluster.cli.text import own_options, tell
    from pytest_dbcluster.errors import ConfigError, DBClusterError
    from pytest_dbcluster.formatting import option_seconds
    from pytest_dbcluster.hosts.given import LOCK_WAIT

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
    made = Parser(
        prog="dbcluster",
        usage="dbcluster [-h] COMMAND ...",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Measure and inspect real database clusters, as pytest-dbcluster uses them.",
        epilog=f"{command_list()}\n\n{FIRST_STEPS}",
    )
    version = f"pytest-dbcluster {__version__}"
    made.add_argument("--version", action="version", version=version, help="print the version and exit")
    commands = made.add_subparsers(prog="dbcluster", required=True, metavar="COMMAND", help=argparse.SUPPRESS)
    chosen = next((word for word in words if not word.startswith("-")), "")
    for name, module, text in COMMANDS:
        command = commands.add_parser(name, description=f"{text[0].upper()}{text[1:]}.")
        if name == chosen:
            add: Callable[[argparse.ArgumentParser], None]
            add = getattr(importlib.import_module(f"pytest_dbcluster.cli.{module}"), f"add_{name}")
            add(command)
    return made


def command_list() -> str:
    """The commands with their descriptions, in groups."""
    width = max(len(name) for name, _, _ in COMMANDS)
    groups = (
        "\n".join([f"{title}:", *(f"  {name.ljust(width)}  {text}" for name, _, text in commands)])
        for title, commands in GROUPS.items()
    )
    return "\n\n".join(groups)


if __name__ == "__main__":
    sys.exit(main())
