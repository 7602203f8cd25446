"""``dbcluster history``: list, draw and export the results of claims in earlier runs, and accept a new level."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from pytest_dbcluster.cli.text import tell
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.formatting import printable, quantity
from pytest_dbcluster.reporting import unwritten
from pytest_dbcluster.reporting.history import history_file, views
from pytest_dbcluster.reporting.history.history_file import History

HISTORY = "reports/history.jsonl"


def add_history(history: argparse.ArgumentParser) -> None:
    """Add the commands of ``dbcluster history`` to its parser."""
    history.epilog = "pytest --db-history FILE adds the claims of a run to FILE, and creates a missing FILE"
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
        run_list,
        "list the newest run of each claim beside the runs before it, and the changes",
    )
    draw = add("draw", run_draw, "draw a chart of each claim")
    draw.add_argument("directory", metavar="DIRECTORY", help="directory for the charts, one SVG for each claim")
    export = add("export", run_export, "write every run of every claim as CSV, for other programs")
    export.add_argument("output", metavar="FILE.csv", help="the file to write")
    accept = add("accept", run_accept, "accept that a claim has a new level from a run on", some=False)
    accept.add_argument("claim", metavar="CLAIM", help="the claim's id, or a part of it that no other claim has")
    accept.add_argument("run_id", metavar="RUN", help="the id of the first run of the new level, or its beginning")
    accept.add_argument("reason", metavar="REASON", help='the reason, such as "another disk since Monday"')


def run_list(arguments: argparse.Namespace) -> int:
    """``dbcluster history list``: the newest run of each claim beside the runs before it."""
    history = _read(arguments)
    print(views.table(history, arguments.claim))
    for item in views.claims(history, arguments.claim):
        for sentence in item.sentences():
            print(printable(f"{item.claim_id} ({item.release}): {sentence}"))
    return 0


def run_draw(arguments: argparse.Namespace) -> int:
    """``dbcluster history draw DIRECTORY``: a chart of each claim. Raises Unsupported without matplotlib."""
    directory, drawn = Path(arguments.directory), 0
    for name, text in views.charts(_read(arguments), arguments.claim):
        _write(directory / name, text)
        drawn += 1
    print(f"wrote {quantity(drawn, 'chart')} into {directory}; a chart needs two runs of a claim")
    return 0


def run_export(arguments: argparse.Namespace) -> int:
    """``dbcluster history export FILE.csv``: every run of every claim as a line of CSV."""
    history, path = _read(arguments), Path(arguments.output)
    _write(path, views.as_csv(history, arguments.claim))
    print(
        f"wrote {quantity(sum(len(item.entries) for item in views.claims(history, arguments.claim)), 'line')} to {path}"
    )
    return 0


def run_accept(arguments: argparse.Namespace) -> int:
    """``dbcluster history accept CLAIM RUN REASON``: compare later runs with this one and those after it."""
    path = _existing(arguments)
    try:
        accepted = history_file.accept(path, arguments.claim, arguments.run_id, arguments.reason)
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}") from None
    for entry in accepted:
        print(f"accepted: {entry.claim_id} ({entry.release}) has a new level since {views.day(entry)}, run {entry.run}")
    return 0


def _read(arguments: argparse.Namespace) -> History:
    """The history of ``--file``. Raises ConfigError for a missing file, and for one without the claims of --claim."""
    path = _existing(arguments)
    history = history_file.read(path)
    for problem in history.problems:
        tell(problem)
    if not history.entries:
        raise ConfigError(f"{path} has no run; pytest --db-history {path} adds one")
    if not views.claims(history, arguments.claim):
        known = "".join(f"\n  {claim}" for claim in dict.fromkeys(entry.claim_id for entry in history.entries))
        raise ConfigError(f"{path} has no claim with {arguments.claim!r} in its id; it has:{known}")
    return history


def _existing(arguments: argparse.Namespace) -> Path:
    path = Path(arguments.file)
    if not path.exists():
        raise ConfigError(f"{path}: there is no such history; pytest --db-history {path} creates it")
    return path


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        unwritten.write(path, text)
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}; name another file") from None
